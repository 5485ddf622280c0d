// The live feed of changes. Rows do not move under the pointer: what comes while one looks at the list waits behind
// a pill. So many rows are kept in memory, and no more.

import * as api from '../api.js';
import {Window, follow} from '../feed.js';
import {button, count, empty, errorBox, fill, h, icon, link, notice, state} from '../ui.js';

const most = 500;

// Rows stay for long: a time of the day stays true, and "3 seconds ago" does not.
const clock = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', second: '2-digit'});

export const page = {
  title: 'Changes',
  mount(container, params, app) {
    const p = new Changes(container, params, app);
    p.begin();
    return () => p.end();
  },
};

class Changes {
  constructor(container, params, app) {
    Object.assign(this, {app, db: params.db, window: new Window(most), paused: false, over: false, seen: 0, since: 'now'});
    const q = params.query;
    this.filter = {collection: q.get('collection') ?? '', prefix: q.get('prefix') ?? '', id: q.get('id') ?? ''};
    if (q.get('from') === 'start') this.since = '';
    this.sign = h('span', {class: 'feed-sign', role: 'status'});
    this.pause = button('Pause', {icon: 'pause', key: 'p', run: () => this.toggle()});
    this.counted = h('span', {class: 'muted number'});
    this.pill = h('button', {type: 'button', class: 'pill', hidden: true, on: {click: () => this.release()}});
    this.message = h('div');
    this.rows = h('tbody');
    this.none = h('div');
    this.list = h('div', {class: 'feed', on: {
      pointerenter: () => { this.over = true; this.hold(); }, pointerleave: () => { this.over = false; this.hold(); },
      focusin: () => { this.hold(); }, focusout: () => { setTimeout(() => this.hold()); },
    }}, h('table', {class: 'table feed-table'}, h('caption', {class: 'only-read'}, 'Changes, the newest first'), h('thead', null, h('tr', null, ['ID', 'Change', 'Collection', 'Etag', 'When'].map((t, i) => h('th', {scope: 'col', class: i === 3 && 'number'}, t)))), this.rows), this.none);
    const input = (key, text, hint) => h('input', {type: 'text', class: 'mono', 'aria-label': text, placeholder: hint, value: this.filter[key], autocomplete: 'off', spellcheck: 'false', data: {key}, list: key === 'collection' ? 'feed-collections' : undefined, on: {change: (event) => this.choose({[key]: event.target.value.trim()})}});
    const names = h('datalist', {id: 'feed-collections'});
    api.get(api.jay(this.db, 'collections'), {signal: app.signal}).then(({collections}) => fill(names, collections.map((c) => h('option', {value: c.name}))), () => {});
    fill(container,
      h('div', {class: 'head'}, h('h1', null, 'Changes'), this.sign, this.counted, h('div', {class: 'buttons'}, this.pause, button('Clear', {run: () => { this.window.clear(); this.draw(); }}), this.since === '' ? null : button('From the beginning', {title: 'Begin with all documents', run: () => { app.note({from: 'start'}); this.restart(''); }}))),
      h('div', {class: 'filters', role: 'group', 'aria-label': 'Filter'}, input('collection', 'Collection', 'any collection'), names, input('prefix', 'Prefix', 'any prefix'), input('id', 'ID', 'any ID')),
      this.message, h('div', {class: 'pill-place'}, this.pill), this.list);
    app.keys([{key: 'p', text: 'Pause or go on', run: () => { this.toggle(); }}, {key: 'n', text: 'Show what is newer', run: () => { this.release(); }}]);
    app.commands([{text: 'Pause or go on', hint: 'p', run: () => this.toggle()}]);
    app.search({placeholder: 'Only IDs with this prefix', value: this.filter.prefix, run: (text) => this.choose({prefix: text.trim()})});
  }

  begin() {
    this.abort = new AbortController();
    this.show('connecting');
    this.draw();
    follow(this.db, this.filter, this.since, {
      change: (change, token) => { this.seen++; this.since = token; this.window.add(change); this.drawSoon(); },
      state: (kind, error) => this.show(kind, error),
    }, this.abort.signal);
  }

  end() { this.abort?.abort(); cancelAnimationFrame(this.frame); clearTimeout(this.timer); }

  restart(since) {
    this.end();
    this.window.clear();
    this.seen = 0;
    this.since = since;
    fill(this.message);
    this.begin();
  }

  choose(values) {
    Object.assign(this.filter, values);
    this.app.note({...this.filter});
    this.restart('now');
  }

  show(kind, error) {
    this.kind = kind;
    const [mark, text] = {connecting: ['idle', 'connecting'], live: ['fine', this.paused ? 'paused' : 'live'], interrupted: ['careful', 'interrupted, connecting again'], gone: ['wrong', 'stopped'], refused: ['wrong', 'stopped']}[kind];
    fill(this.sign, state(this.paused && kind === 'live' ? 'idle' : mark, text));
    if (kind === 'gone') {
      const {reason, oldest} = error.fields;
      fill(this.message, notice('careful', h('p', null, h('b', null, 'Changes are missing here. '), `The server cannot go on behind the last change that was shown: ${reason}. The oldest etag that it could go on behind is ${oldest}.`),
        h('p', null, 'What is below stays as it was. Deletions in between cannot be shown any more.'),
        h('p', {class: 'actions'}, button('Begin again with all documents', {run: () => this.restart('')}), button('Go on with what comes now', {run: () => this.restart('now')}))));
    } else if (kind === 'refused') fill(this.message, errorBox(error, button('Try again', {run: () => this.restart(this.since)})));
    else fill(this.message);
  }

  toggle() {
    this.paused = !this.paused;
    const fresh = button(this.paused ? 'Go on' : 'Pause', {icon: this.paused ? 'play' : 'pause', key: 'p', run: () => this.toggle()});
    const focused = this.pause === document.activeElement;
    this.pause.replaceWith(fresh);
    this.pause = fresh;
    if (focused) fresh.focus();
    this.show(this.kind);
    this.hold();
  }

  // hold keeps the rows where they are while they are looked at.
  hold() {
    const held = this.paused || this.over || this.list.contains(document.activeElement);
    if (this.window.held === held) return;
    this.window.held = held;
    if (!held) this.release();
  }

  release() { this.window.release(); this.draw(true); }

  drawSoon() { this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.draw(); }); }

  draw(anew) {
    const w = this.window;
    this.pill.hidden = w.newer === 0;
    if (w.newer) fill(this.pill, icon('up'), `${count(w.newer)} newer`);
    fill(this.counted, this.seen ? `${count(this.seen)} seen` + (w.dropped ? `, the newest ${count(most)} kept` : '') : null);
    if (anew || !w.held || this.rows.childElementCount === 0) {
      // Rows that stay are moved, and not made again.
      const old = new Map([...this.rows.children].map((node) => [node.change, node]));
      this.rows.replaceChildren(...w.rows.map((change) => old.get(change) ?? this.row(change)));
    }
    const bare = w.rows.length === 0;
    this.rows.parentNode.hidden = bare;
    if (bare !== this.bare) {
      this.bare = bare;
      fill(this.none, bare && empty('Nothing has changed since you came.', h('p', null, 'What any client writes or deletes appears here at once: write a document in another tab, or with curl.'), h('p', {class: 'muted'}, 'A document that is written several times in a short time appears once, with its newest version.')));
    }
  }

  row(change) {
    const node = h('tr', {class: change.type},
      h('td', null, change.type === 'delete' ? h('span', {class: 'mono'}, change.id) : link(this.app.address('/db/:db/doc', {db: this.db}, {id: change.id}), {class: 'mono'}, change.id)),
      h('td', null, change.type === 'delete' ? state('wrong', 'deleted') : state('fine', 'stored')),
      h('td', null, change.collection), h('td', {class: 'number'}, count(BigInt(change.etag))), h('td', null, change.lastModified ? h('time', {datetime: change.lastModified, title: change.lastModified}, clock.format(new Date(change.lastModified))) : h('span', {class: 'muted'}, '–')));
    node.change = change;
    return node;
  }
}
