// Queries: RQL with completion, its answers as a table, as JSON or on a map, and how it was answered as a
// picture, or its answers as they become. The address has the text (q), the values of parameters (p), the view, and whether it is live.

import * as api from '../api.js';
import * as json from '../json.js';
import * as rql from '../rql.js';
import {cell, names as namesOf} from '../cells.js';
import {advice, picture, summary} from '../explain.js';
import {editor} from '../editor.js';
import {LiveView} from '../live.js';
import {map} from '../map.js';
import {pairsOf} from '../places.js';
import {button, bytes, copy, count, dialog, duration, empty, errorBox, field, fill, h, icon, link, menu, notice, patience, plural, progress, save as saveFile, tabs, time, toast} from '../ui.js';

const PAGE = 50; // rows of a page
const GROUPS = 1000; // groups and distinct rows, which have no pages, and answers on a map
const MAX_COLUMNS = 60; // of the table
const MAX_ROWS = 1000; // that are drawn: a limit of the query may be more
const MAX_HISTORY = 50; // queries that are kept for a database
const MAX_KEPT = 10_000; // characters of a query that is kept, or stands in the address

export const page = {
  title: 'Query',
  mount(container, params, app) {
    const shown = new QueryPage(container, params, app);
    shown.start();
    return () => shown.end();
  },
};

class QueryPage {
  constructor(container, params, app) {
    Object.assign(this, {container, app, db: params.db});
    this.view = ['json', 'map', 'explain'].includes(params.query.get('view')) ? params.query.get('view') : 'table';
    this.values = readValues(params.query.get('p')); // of parameters, as they are typed
    this.known = {collections: [], fields: [], indexes: []};
    this.fieldsOf = new Map();
    this.first = params.query.get('q') ?? '';
    this.run = 0; // counts runs, so that a late answer is dropped
    this.result = null; // {text, rows, next, cursors, elapsed, query, parameters}
    this.isLive = params.query.get('live') === '1'; // the answers are followed
  }

  start() {
    const {app} = this;
    this.editor = editor({
      label: 'Query in RQL', language: 'rql', value: this.first, grow: [3, 14], placeholder: "from Orders where Total > 100 order by Total desc", hint: 'Ctrl Enter runs the query, Ctrl Space completes.',
      input: () => this.typed(), complete: (text, caret) => {
        this.learnFields();
        return rql.completions(text, caret, {...this.known, parameters: [...this.values.keys()]});
      },
    });
    this.runButton = button('Run', {icon: 'play', kind: 'primary', key: 'ctrl+enter', run: () => { this.ask(); }});
    this.parameters = h('div', {class: 'query-parameters'});
    this.status = h('div', {class: 'query-status', role: 'status', 'aria-live': 'polite'});
    this.results = h('div', {class: 'query-results'});
    this.tabs = tabs('Answers', [{id: 'table', text: 'Table'}, {id: 'json', text: 'JSON'}, {id: 'map', text: 'Map'}, {id: 'explain', text: 'Explain'}], (id) => this.pick(id), this.view);
    this.liveButton = button('Live', {icon: 'changes', 'aria-pressed': String(this.isLive), title: 'Follow the answers as they become (l)', run: () => this.setLive(!this.isLive)});
    this.exportButton = button('Export', {icon: 'download', 'aria-haspopup': 'menu', run: (event, node) => { this.exportMenu(node); }});
    fill(this.container, h('div', {class: 'head'}, h('h1', null, 'Query'), h('div', {class: 'buttons'},
      button('History', {run: () => { this.showHistory(); }}), this.exportButton, this.liveButton, this.runButton)),
    this.editor.node, this.parameters, h('div', {class: 'query-bar'}, this.tabs.node, this.status), this.results);
    this.container.classList.add('query-page');
    app.keys([{key: 'ctrl+enter', text: 'Run the query', typing: true, run: () => { this.ask(); }}, {key: 'e', text: 'Edit the query', run: () => { this.editor.focus(); }},
      {key: 'h', text: 'History', run: () => { this.showHistory(); }}, {key: 'x', text: 'Explain', run: () => { this.tabs.select('explain'); this.pick('explain'); }},
      {key: 'l', text: 'Live, or not', run: () => { this.setLive(!this.isLive); }},
      {key: 'm', text: 'Map', run: () => { this.tabs.select('map'); this.pick('map'); }}, {key: 'n', text: 'Next page', run: () => { this.turn(1); }}, {key: 'p', text: 'Page before', run: () => { this.turn(-1); }}]);
    app.commands([{text: 'Run the query', hint: 'ctrl enter', run: () => this.ask()}, {text: 'Explain', hint: 'x', run: () => { this.tabs.select('explain'); this.pick('explain'); }},
      {text: 'Answers on a map', hint: 'm', run: () => { this.tabs.select('map'); this.pick('map'); }}, {text: 'Follow the answers, or stop', hint: 'l', run: () => this.setLive(!this.isLive)}, {text: 'History of queries', hint: 'h', run: () => this.showHistory()}, {text: 'Export as CSV', hint: '', run: () => this.export('csv')}, {text: 'Export as NDJSON', hint: '', run: () => this.export('ndjson')}]);
    this.showParameters();
    this.learn();
    if (this.first.trim() !== '') this.ask();
    else this.showStart();
    this.editor.select(this.first.length, this.first.length, {focus: true});
  }

  end() {
    clearTimeout(this.timer);
    clearTimeout(this.poll);
    this.editor.dispose();
    this.viewer?.dispose();
    this.following?.end();
    this.cancel?.abort();
    this.ended = true;
  }

  // ---- What completion knows

  async learn() {
    const {app, db} = this;
    try {
      const [{collections}, {indexes}, {computed}] = await Promise.all(['collections', 'indexes', 'indexes/computed'].map((path) => api.get(api.jay(db, path), {signal: app.signal})));
      this.known.collections = collections;
      this.known.computed = computed;
      this.allIndexes = indexes;
      if (this.result === null && this.editor.value.trim() === '') this.showStart();
      await this.learnFields();
    } catch { /* completion knows less; the query says what is wrong */ }
  }

  async learnFields() {
    const collection = rql.collectionOf(this.editor.value);
    if (collection === null || collection === this.collection) return;
    this.collection = collection;
    this.known.indexes = (this.allIndexes ?? []).filter((i) => i.collection.toLowerCase() === collection.toLowerCase());
    if (!this.fieldsOf.has(collection)) {
      const exists = collection === '' || this.known.collections.some((c) => c.name.toLowerCase() === collection.toLowerCase());
      if (!exists) {
        this.known.fields = [];
        return;
      }
      try {
        this.fieldsOf.set(collection, (await api.get(api.jay(this.db, 'fields', {collection}), {signal: this.app.signal})).fields);
      } catch { return; }
    }
    if (this.collection !== collection) return;
    this.known.fields = this.fieldsOf.get(collection);
    if (!this.ended) this.editor.refresh();
  }

  typed() {
    if (this.editor.error !== null) this.editor.setError(null);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.ended) return;
      this.note();
      this.showParameters();
      this.learnFields();
    }, 250);
  }

  note() {
    const text = this.editor.value;
    const values = Object.fromEntries([...this.values].filter(([name]) => rql.parameters(text).includes(name)));
    const p = Object.keys(values).length > 0 ? JSON.stringify(values) : null;
    this.app.note({q: text.length <= MAX_KEPT ? text : null, p: p !== null && p.length <= MAX_KEPT ? p : null, view: this.view === 'table' ? null : this.view, live: this.isLive ? '1' : null});
  }

  // ---- Parameters

  showParameters() {
    const names = rql.parameters(this.editor.value);
    const now = [...this.parameters.querySelectorAll('[data-parameter]')].map((n) => n.dataset.parameter);
    if (names.join() === now.join()) return;
    fill(this.parameters, names.map((name) => {
      const input = h('input', {type: 'text', class: 'mono', value: this.values.get(name) ?? '', data: {parameter: name}, spellcheck: 'false', autocomplete: 'off', placeholder: 'text, 12, ["a","b"]', on: {
        input: () => { this.values.set(name, input.value); this.note(); },
      }});
      return h('label', {class: 'query-parameter'}, h('span', {class: 'mono'}, '$' + name), input);
    }));
  }

  // valuesText returns the values of the parameters as a JSON object: they keep their digits, since they are text here, too.
  valuesText() {
    return `{${rql.parameters(this.editor.value).filter((name) => (this.values.get(name) ?? '') !== '' || this.values.has(name)).map((name) => `${json.quote(name)}:${valueText(this.values.get(name))}`).join(',')}}`;
  }

  // body returns the text of a request: for a query and its parameters as text, or for those that are on the page.
  body(more = {}, {query, parameters} = {query: this.editor.value, parameters: this.valuesText()}) {
    const parts = [`"query":${json.quote(query)}`, `"parameters":${parameters}`, ...Object.entries(more).map(([name, value]) => `"${name}":${JSON.stringify(value)}`)];
    return `{${parts.join(',')}}`;
  }

  post(path, body, signal) {
    return api.text('POST', api.jay(this.db, path), {body, headers: {'Content-Type': 'application/json'}, signal});
  }

  // ---- Running

  pick(view) {
    this.view = view;
    this.endLive();
    this.note();
    if (view === 'explain') this.explain();
    else if (this.result !== null && (view !== 'map' || this.result.size === GROUPS || this.result.next === '')) this.show();
    else if (this.editor.value.trim() !== '') this.ask();
  }

  // ask runs the query from its beginning.
  ask() {
    this.note();
    this.showParameters();
    if (this.editor.value.trim() === '') return this.showStart();
    remember(this.db, this.editor.value, this.values);
    this.result = null;
    if (this.isLive) return this.follow();
    if (this.view === 'explain') return this.explain();
    return this.load([{after: '', begin: 0}]);
  }

  // setLive follows the answers as they become, or runs the query once again.
  setLive(is) {
    if (!is) this.endLive();
    this.isLive = is;
    this.liveButton.setAttribute('aria-pressed', String(is));
    this.ask();
  }

  // endLive ends what is followed. The page shows its answers until others are drawn.
  endLive() {
    this.following?.end();
    this.following = null;
    if (!this.isLive) return;
    this.isLive = false;
    this.liveButton.setAttribute('aria-pressed', 'false');
    this.note();
  }

  // follow shows the answers as they become.
  follow() {
    this.run++;
    this.cancel?.abort();
    this.following?.end();
    this.results.removeAttribute('aria-busy');
    this.editor.setError(null);
    const query = this.editor.value;
    this.following = new LiveView({db: this.db, query, parameters: this.valuesText(), status: this.status, results: this.results,
      href: (id) => this.app.address('/db/:db/doc', {db: this.db}, {id}), failed: (error) => this.fail(error, query), again: () => this.ask()});
  }

  // load reads the page of the last of cursors: [{after, begin}], of all pages up to it. Pages after the first are of the query
  // that is shown, whatever is typed by then.
  async load(cursors, {query, parameters} = {query: this.editor.value, parameters: this.valuesText()}) {
    const {after} = cursors[cursors.length - 1];
    const run = ++this.run;
    this.cancel?.abort();
    const cancel = this.cancel = new AbortController();
    this.app.signal.addEventListener('abort', () => cancel.abort(), {once: true});
    const stop = this.wait(cancel);
    const start = performance.now();
    try {
      const size = this.view === 'map' || rql.grouped(query) ? GROUPS : PAGE;
      const {text} = await this.post('query', this.body({pageSize: size, ...(after !== '' && {after})}, {query, parameters}), cancel.signal);
      if (run !== this.run || this.ended) return;
      const root = json.parse(text);
      const rows = json.member(root, 'rows').items.map((node) => ({node, id: json.textOf(text, json.member(node, 'id')), value: json.member(node, 'document') ?? json.member(node, 'row')}));
      const limit = rql.limitOf(query);
      const ownLimit = limit !== null; // a limit of the query is its end, and no page
      const cursor = json.textOf(text, json.member(root, 'next'));
      const next = ownLimit ? '' : cursor;
      // Large answers end a page before the limit of the query.
      const more = json.member(root, 'more') !== null || rows.length > MAX_ROWS || (ownLimit && cursor !== '' && rows.length < limit);
      rows.splice(MAX_ROWS);
      this.result = {text, rows, next, more, cursors, ownLimit, query, parameters, size, elapsed: json.valueOf(text, json.member(root, 'elapsedNs')), took: (performance.now() - start) * 1e6};
      this.editor.setError(null);
      stop();
      this.show();
    } catch (error) {
      stop();
      if (run === this.run) this.fail(error, query);
    }
  }

  // wait shows that a query runs, and how to end it, when that takes longer than a moment.
  wait(cancel) {
    fill(this.status);
    this.results.setAttribute('aria-busy', 'true');
    const timer = setTimeout(() => fill(this.status, h('span', {class: 'spin', 'aria-hidden': 'true'}), 'Running … ', button('Cancel', {kind: 'quiet', run: () => cancel.abort()})), 200);
    return () => {
      clearTimeout(timer);
      this.results.removeAttribute('aria-busy');
    };
  }

  // fail shows why a query has failed: in its text, if that is still what is typed.
  fail(error, query) {
    if (error.name === 'AbortError') {
      if (!this.ended) fill(this.status, 'Cancelled.');
      return;
    }
    fill(this.status);
    const place = rql.errorOf(error.message);
    if (place !== null && query === this.editor.value && this.placeable(place)) {
      this.editor.setError({offset: rql.offsetOf(this.editor.value, place.line, place.column), line: place.line, column: place.column, message: `line ${place.line}, column ${place.column}: ${place.text}`});
      fill(this.results, h('p', {class: 'muted query-note'}, 'The query was not run.'));
      return;
    }
    fill(this.results, errorBox(error, error.kind !== 'refused' && button('Try again', {run: () => this.ask()})));
  }

  placeable(place) { return this.editor.value.split('\n').length >= place.line; }

  turn(step) {
    const r = this.result;
    if (r === null || this.view === 'explain') return;
    if (step > 0 && r.next !== '') this.load([...r.cursors, {after: r.next, begin: r.cursors[r.cursors.length - 1].begin + r.rows.length}], r);
    else if (step < 0 && r.cursors.length > 1) this.load(r.cursors.slice(0, -1), r);
  }

  // ---- Answers

  show() {
    const r = this.result;
    this.showStatus();
    this.viewer?.dispose();
    this.viewer = null;
    if (r.rows.length === 0) {
      fill(this.results, empty('No answers.', h('p', {class: 'muted'}, r.cursors.length > 1 ? 'There is nothing behind the page before.' : 'The query is valid, and no document fits. Names and paths are those of the JSON, and case matters in them.'),
        h('div', {class: 'buttons start'}, button('Explain', {run: () => { this.tabs.select('explain'); this.pick('explain'); }}))));
    } else if (this.view === 'json') {
      this.viewer = editor({label: 'Answers as JSON', readOnly: true, value: json.format(`[${r.rows.map((row) => json.raw(r.text, row.value)).join(',')}]`), grow: [3, 40], hint: 'The answers, which cannot be edited here.'});
      fill(this.results, this.viewer.node, this.pager());
    } else if (this.view === 'map') {
      this.showMap();
    } else {
      fill(this.results, this.table(), this.pager());
    }
  }

  // showMap draws the places that the answers have. Which numbers are latitudes and longitudes is in the query, and in the indexes of places of the collection.
  async showMap() {
    const r = this.result, collection = (rql.collectionOf(r.query) ?? '').toLowerCase();
    if (!this.allIndexes) {
      try { this.allIndexes = (await api.get(api.jay(this.db, 'indexes'), {signal: this.app.signal})).indexes; } catch { this.allIndexes = []; }
      if (r !== this.result || this.view !== 'map' || this.ended) return;
    }
    const indexed = this.allIndexes.filter((ix) => ix.kind === 'places' && ix.collection.toLowerCase() === collection).flatMap((ix) => ix.fields);
    const rows = r.rows.filter((row) => row.value !== null).map((row) => ({id: row.id, value: JSON.parse(json.raw(r.text, row.value)), raw: () => json.format(row.value.kind === 'object' ? `{${row.value.members.filter((m) => m.name !== '@metadata').map((m) => `${json.quote(m.name)}:${json.raw(r.text, m.value)}`).join(',')}}` : json.raw(r.text, row.value))}));
    const shown = map({rows, pairs: [...pairsOf(r.query, rql.aliasOf(r.query) ?? ''), ...indexed.flatMap((field) => pairsOf(field))], href: (id) => this.app.address('/db/:db/doc', {db: this.db}, {id}), more: r.next !== '' || r.more});
    if (shown.marks === 0) {
      shown.dispose();
      fill(this.results, empty('No place in these answers.', h('p', {class: 'muted'}, 'Places are texts of WKT, objects of GeoJSON, numbers called latitude and longitude, and what spatial.point(Lat, Lng) in the query or in an index of places names.')), this.pager());
      return;
    }
    this.viewer = shown;
    fill(this.results, shown.node, this.pager());
  }

  showStatus() {
    const r = this.result;
    const {begin} = r.cursors[r.cursors.length - 1];
    let rows = plural(r.rows.length, 'row');
    if (r.cursors.length > 1 || r.next !== '') rows = `rows ${count(begin + 1)}–${count(begin + r.rows.length)}`;
    if (r.next !== '') rows += ', more follow';
    else if (r.cursors.length > 1) rows += ', the last ones';
    if (r.more) rows = `the first ${count(r.rows.length)} rows; the export has all`;
    const all = h('span');
    fill(this.status, rows, r.next !== '' && [' ', all, button('Count all', {kind: 'quiet', run: (event, node) => this.countAll(all, node)})], h('span', {class: 'muted'}, ` · ${duration(r.elapsed)} in the database`, h('span', {class: 'query-took'}, `, ${duration(r.took)} until here`)));
  }

  async countAll(node, pressed) {
    const start = performance.now();
    try {
      const body = `{"Query":${json.quote(this.result.query)},"QueryParameters":${this.result.parameters},"PageSize":0}`;
      const {text} = await api.text('POST', api.raven(this.db, 'queries'), {body, headers: {'Content-Type': 'application/json'}, signal: this.app.signal});
      const total = json.valueOf(text, json.member(json.parse(text), 'LongTotalResults'));
      fill(node, ` of ${count(total)}, counted in ${duration((performance.now() - start) * 1e6)}`);
      pressed.remove();
    } catch (error) {
      if (error.name !== 'AbortError') toast(error.message, {kind: 'wrong'});
    }
  }

  pager() {
    const r = this.result;
    if (r.cursors.length === 1 && r.next === '') return r.ownLimit && !r.more && h('p', {class: 'muted query-note'}, 'The limit of the query is its end.');
    return h('div', {class: 'query-pager'}, button('Before', {icon: 'left', disabled: r.cursors.length === 1, run: () => this.turn(-1)}), button('Next', {icon: 'right', disabled: r.next === '', run: () => this.turn(1)}));
  }

  table() {
    const {text, rows} = this.result;
    const documents = rows.some((row) => row.id !== '');
    const names = namesOf(rows.map((row) => row.value));
    const columns = names.slice(0, MAX_COLUMNS);
    const cells = rows.map((row) => columns.map((name) => json.member(row.value, name)));
    const numeric = columns.map((_, i) => cells.some((row) => row[i]?.kind === 'number') && cells.every((row) => row[i] === null || row[i].kind === 'number' || row[i].kind === 'null'));
    return h('div', {class: 'query-table', tabindex: 0, role: 'region', 'aria-label': 'Answers'},
      h('table', {class: 'table', 'aria-label': 'Answers'}, h('thead', null, h('tr', null, documents && h('th', {scope: 'col'}, 'id()'), columns.map((name, i) => h('th', {scope: 'col', class: numeric[i] && 'number'}, name)))),
        h('tbody', null, rows.map((row, n) => h('tr', null, documents && h('td', null, link(this.app.address('/db/:db/doc', {db: this.db}, {id: row.id}), {class: 'mono'}, row.id)),
          columns.map((name, i) => h('td', {class: numeric[i] && 'number', data: {title: name}}, cell(text, cells[n][i]))))))),
      names.length > columns.length && h('p', {class: 'muted query-note'}, `${count(names.length - columns.length)} more members: see JSON, or select columns.`));
  }

  // ---- Explain

  async explain() {
    const run = ++this.run;
    const query = this.editor.value;
    if (query.trim() === '') return this.showStart();
    this.cancel?.abort();
    const cancel = this.cancel = new AbortController();
    const stop = this.wait(cancel);
    try {
      const {text} = await this.post('explain', this.body({pageSize: PAGE}), cancel.signal);
      stop();
      if (run !== this.run || this.ended) return;
      this.editor.setError(null);
      this.drawPlan(JSON.parse(text)); // a plan: no document
    } catch (error) {
      stop();
      if (run === this.run) this.fail(error, query);
    }
  }

  drawPlan(e) {
    const width = Math.max(280, Math.min(760, this.results.clientWidth - 8));
    fill(this.status, summary(e));
    const offer = e.suggestion ? this.offer(e) : h('p', {class: 'muted'}, advice(e));
    fill(this.results, h('section', {class: 'query-plan', 'aria-label': 'How the query was answered'}, picture(e, width), offer,
      h('details', {open: width < 480}, h('summary', null, 'The plan in words'), h('ol', null, e.plan.map((line) => h('li', {class: line.startsWith('   ') && 'part'}, line.trim()))), h('p', {class: 'muted'}, summary(e), '. As it was read: ', h('code', null, e.query)))));
  }

  // offer proposes the index that would help, and makes it.
  offer(e) {
    const fields = e.suggestion.fields.join(', ');
    const state = h('div', {role: 'status'}), {run} = this;
    if (!this.app.can('admin')) {
      return notice('info', h('p', null, 'An index on ', h('code', null, fields), ` of ${e.collection} would help. Making one needs the right `, h('code', null, 'admin'), '.'));
    }
    const make = button('Make this index', {kind: 'primary', run: async () => {
      try {
        const reply = await api.send('PUT', api.jay(this.db, 'indexes'), {collection: e.collection, index: e.suggestion});
        if (!reply?.ready) await this.built(e, state);
        toast(`The index on ${fields} is ready.`);
        if (run === this.run && this.view === 'explain' && !this.ended) this.explain();
      } catch (error) {
        if (error.name !== 'AbortError') fill(state, errorBox(error));
      }
    }});
    return h('div', {class: 'box info'}, icon('info'), h('div', null, h('p', null, 'An index on ', h('code', null, fields), ' of ', h('b', null, e.collection), ' would serve this query.'), h('p', {class: 'actions'}, make,
      copy(`jay index create ${e.collection} ${e.suggestion.fields.join(',')}`, 'Copy the command that makes it')), state));
  }

  // built waits for a build that takes longer than a moment.
  async built(e, state) {
    const bar = progress('Building the index');
    fill(state, bar.node, h('p', {class: 'muted'}, 'It goes on when you leave this page.'));
    for (;;) {
      await new Promise((resolve) => { this.poll = setTimeout(resolve, 500); });
      const {indexes} = await api.get(api.jay(this.db, 'indexes', {collection: e.collection}), {signal: this.app.signal});
      const mine = indexes.find((i) => i.fields.join() === e.suggestion.fields.join());
      if (!mine) throw new api.ApiError('The index is not there: its build has failed, or it was dropped.', {kind: 'server'});
      if (mine.state === 'ready') return;
      bar.update(mine.progress?.done ?? 0, mine.progress?.total ?? 0, mine.state);
    }
  }

  // ---- Export

  exportMenu(anchor) {
    const nothing = this.editor.value.trim() === '';
    menu(anchor, [{text: 'All answers as CSV', disabled: nothing, run: () => this.export('csv')}, {text: 'All answers as NDJSON, one a line', disabled: nothing, run: () => this.export('ndjson')}]);
  }

  // export takes all answers as a stream into a file.
  export(format) {
    if (this.editor.value.trim() === '') return;
    const body = (exact) => this.body({format, exact});
    const collection = rql.collectionOf(this.editor.value) || 'documents';
    return dialog(format === 'csv' ? 'Export as CSV' : 'Export as NDJSON', (close) => {
      const stop = new AbortController();
      const guard = h('input', {type: 'checkbox', checked: true});
      const state = h('div');
      const bar = progress('Export');
      const go = button('Export', {kind: 'primary', autofocus: true, run: async () => {
        fill(state, bar.node);
        try {
          const response = await api.request('POST', api.jay(this.db, 'export'), {body: body(format === 'csv' && !guard.checked), headers: {'Content-Type': 'application/json'}, signal: stop.signal});
          const parts = await take(response, (lines, size) => bar.update(0, 0, `${plural(lines, 'line')}, ${bytes(size)}`));
          saveFile(`${this.db}-${collection.replace(/[^\p{L}\p{N}_-]+/gu, '-')}.${format}`, parts);
          close();
          toast('Exported: the file is whole.');
        } catch (error) {
          if (error.name === 'AbortError') return;
          const place = rql.errorOf(error.message ?? '');
          fill(state, errorBox(error.kind ? error : {message: 'The export was cut short, and nothing was saved.', remedy: 'Try again. The log of the server may say why.'}));
          if (place) this.fail(error, this.editor.value);
        }
      }});
      return h('div', null, h('p', {class: 'muted'}, format === 'csv' ? 'One row for each answer; the columns are the members that any answer has. What is no scalar is JSON.' : 'One JSON object a line; documents have their @metadata. Import takes it.'),
        format === 'csv' && h('label', {class: 'query-check'}, guard, h('span', null, 'For a spreadsheet: an apostrophe keeps texts such as =1+1 from being formulas. Numbers are never changed.')), state,
        h('div', {class: 'buttons'}, button('Cancel', {run: () => { stop.abort(); close(); }}), go));
    });
  }

  // ---- History, and an empty page

  showHistory() {
    const all = remembered(this.db);
    return dialog('History', (close) => h('div', null, all.length === 0 ? h('p', {class: 'muted'}, 'Queries that you run are kept here, in this browser.')
      : h('ul', {class: 'query-history'}, all.map((one, i) => h('li', null, h('button', {type: 'button', autofocus: i === 0, on: {click: () => {
        close();
        this.values = new Map(Object.entries(one.p ?? {}));
        this.editor.replace(one.q, one.q.length);
        this.typed();
        this.editor.focus();
      }}}, h('code', null, one.q), time(new Date(one.at).toISOString()))))),
    h('div', {class: 'buttons'}, all.length > 0 && button('Forget all', {kind: 'danger', run: () => { localStorage.removeItem(keyOf(this.db)); close(); }}), button('Close', {run: () => close()}))), {wide: true});
  }

  showStart() {
    fill(this.status);
    const names = this.known.collections.filter((c) => !c.name.startsWith('@')).slice(0, 6);
    const put = (text) => { this.editor.replace(text, text.length); this.typed(); this.ask(); this.editor.focus(); };
    fill(this.results, h('section', {class: 'empty'}, h('h2', null, 'Ask for documents.'),
      h('p', {class: 'muted'}, 'RQL reads as SQL does, over JSON: from, where, order by, select, limit. Ctrl Space completes.'),
      names.length > 0 && h('ul', {class: 'query-starts'}, names.map((c) => h('li', null, h('button', {type: 'button', class: 'link mono', on: {click: () => put(`from ${rql.name(c.name)}`)}}, `from ${rql.name(c.name)}`), ' ', h('span', {class: 'muted number'}, count(c.documents))))),
      h('ul', {class: 'query-starts'}, [["from @all_docs order by @metadata.@etag desc limit 20", 'what was written last'], ['from @all_docs group by @metadata.@collection select key() as Collection, count() as Documents', 'how many there are of each kind']].map(([text, note]) =>
        h('li', null, h('button', {type: 'button', class: 'link mono', on: {click: () => put(text)}}, text), ' ', h('span', {class: 'muted'}, note))))));
  }
}

// take reads a stream into a Blob, which the browser may keep on disk, and reports how far it is.
async function take(response, report) {
  const reader = response.body.getReader();
  let whole = new Blob([], {type: response.headers.get('Content-Type') ?? ''});
  let parts = [];
  let held = 0;
  let lines = 0;
  let size = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    parts.push(value);
    held += value.length;
    size += value.length;
    for (let i = value.indexOf(10); i >= 0; i = value.indexOf(10, i + 1)) lines++;
    report(lines, size);
    if (held > 4 << 20) {
      whole = new Blob([whole, ...parts], {type: whole.type});
      parts = [];
      held = 0;
    }
  }
  return new Blob([whole, ...parts], {type: whole.type});
}

// valueText returns what is typed for a parameter as JSON: itself if it is JSON, else a text.
function valueText(typed = '') {
  return json.check(typed) === null ? typed : json.quote(typed);
}

// readValues reads the values in the address.
function readValues(text) {
  try {
    return new Map(Object.entries(JSON.parse(text ?? '{}')).filter(([, value]) => typeof value === 'string'));
  } catch {
    return new Map();
  }
}

function keyOf(db) { return `jay.queries.${db.toLowerCase()}`; }

function remembered(db) {
  try {
    const all = JSON.parse(localStorage.getItem(keyOf(db)) ?? '[]');
    return Array.isArray(all) ? all.filter((one) => typeof one?.q === 'string').slice(0, MAX_HISTORY) : [];
  } catch {
    return [];
  }
}

// remember keeps a query, the newest first, each once.
function remember(db, q, values) {
  if (q.length > MAX_KEPT) return;
  const p = Object.fromEntries([...values].filter(([name]) => rql.parameters(q).includes(name)));
  const all = [{q, p, at: Date.now()}, ...remembered(db).filter((one) => one.q !== q)].slice(0, MAX_HISTORY);
  try { localStorage.setItem(keyOf(db), JSON.stringify(all)); } catch { /* a browser that keeps nothing */ }
}
