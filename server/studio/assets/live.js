// The answers of a query as they become: what enters, changes and leaves them, on the page of queries.
//
// The server tells of whole commits, so the page draws a group of events at once and never half a transaction. Members keeps the answers; it knows
// nothing of the page.

import * as json from './json.js';
import {cell, names} from './cells.js';
import {live} from './feed.js';
import {button, count, empty, errorBox, fill, h, link, notice, plural, state} from './ui.js';

// Bounds of what is followed and shown.
export const MAX_ANSWERS = 1000; // with more the view stops, and says so
const MAX_EVENTS = 100; // of the list of what has happened, the newest
const MAX_COLUMNS = 20;

// Members are the answers, by their ID without regard to case. take(events) applies a group of events, each as text, and returns what has
// happened: [{kind, id, text, value}], where kind is 'enter', 'change' or 'leave'. After a break the server tells again what may be known, and what
// has become of it decides the kind. What has come to nothing is left out.
export class Members {
  constructor(most = MAX_ANSWERS) { Object.assign(this, {most, rows: new Map(), over: false}); }

  take(events) {
    const happened = [];
    for (const text of events) {
      const root = json.parse(text);
      const id = json.textOf(text, json.member(root, 'id')), key = id.toLowerCase();
      const there = this.rows.get(key);
      if (json.textOf(text, json.member(root, 'type')) === 'leave') {
        if (this.rows.delete(key)) happened.push({kind: 'leave', id});
        continue;
      }
      const version = json.textOf(text, json.member(root, 'changeVector'));
      if (there?.version === version && there.id === id) continue;
      const row = {id, version, text, value: json.member(root, 'document') ?? json.member(root, 'row')};
      this.rows.set(key, row);
      happened.push({kind: there ? 'change' : 'enter', ...row});
    }
    this.over = this.rows.size > this.most;
    return happened;
  }
}

const clock = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', second: '2-digit'});
const words = {enter: ['fine', 'entered'], change: ['careful', 'changed'], leave: ['wrong', 'left']};

// LiveView follows one query until end(). options: db, query, parameters (a JSON object as text), href(id), status (a node for the state of the
// connection), results (a node for the rest), failed(error) for what the server refuses.
export class LiveView {
  constructor(options) {
    Object.assign(this, options, {members: new Members(), events: [], totals: {enter: 0, change: 0, leave: 0}, begun: false});
    this.abort = new AbortController();
    this.counts = h('p', {class: 'muted number live-counts'});
    this.answers = h('div', {class: 'query-table', tabindex: 0, role: 'region', 'aria-label': 'Answers of now'});
    this.log = h('div', {class: 'live-log'});
    fill(this.results, h('div', {class: 'live'}, h('section', {class: 'live-answers'}, this.counts, this.answers), h('section', {class: 'live-events', 'aria-label': 'What has happened'}, h('h2', null, 'What has happened'), this.log)));
    this.nodes = new Map(); // of rows, by ID
    this.draw();
    live(this.db, this.query, this.parameters, {group: (events) => this.group(events), state: (kind, error) => this.connected(kind, error)}, this.abort.signal);
  }

  end() {
    this.abort.abort();
    cancelAnimationFrame(this.frame);
  }

  group(events) {
    const first = !this.begun;
    this.begun = true;
    let happened;
    try {
      happened = this.members.take(events);
    } catch (error) {
      return this.stop(error);
    }
    if (!first) {
      const at = clock.format(new Date());
      for (const one of happened) this.totals[one.kind]++;
      this.events = [...happened.reverse().map(({kind, id}) => ({kind, id, at})), ...this.events].slice(0, MAX_EVENTS);
      this.fresh = new Set(happened.map((one) => one.id));
    }
    if (this.members.over) {
      return this.stop({message: `The query has more than ${count(MAX_ANSWERS)} answers, and the studio follows so many at the most.`, remedy: 'Narrow the query, or follow it with a program.'});
    }
    this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  // stop ends the view for good, and says why.
  stop(error) {
    this.end();
    fill(this.status, state('wrong', 'stopped'));
    fill(this.results, errorBox(error));
  }

  connected(kind, error) {
    if (kind === 'refused') {
      this.end();
      fill(this.status, state('wrong', 'stopped'));
      return this.failed(error);
    }
    if (kind === 'gone') {
      this.end();
      fill(this.status, state('wrong', 'stopped'));
      return fill(this.results, notice('careful', h('p', null, h('b', null, 'Events are missing here. '), `The server cannot go on behind the last one: ${error.fields.reason ?? error.message}.`), h('p', {class: 'actions'}, button('Begin anew', {run: () => this.again()}))));
    }
    fill(this.status, ...({connecting: [state('idle', 'connecting')], live: [state('fine', 'live')], interrupted: [state('careful', 'interrupted, connecting again')]}[kind]));
  }

  draw() {
    const rows = [...this.members.rows.values()];
    const {enter, change, leave} = this.totals;
    fill(this.counts, this.begun ? `${plural(rows.length, 'answer')} · ${count(enter)} entered, ${count(change)} changed, ${count(leave)} left` : 'Reading the answers …');
    if (rows.length === 0) fill(this.answers, this.begun && empty('No answers now.', h('p', {class: 'muted'}, 'A document that becomes one appears here at once.')));
    else this.drawRows(rows);
    fill(this.log, this.events.length === 0 ? h('p', {class: 'muted'}, 'Nothing yet.') : h('table', {class: 'table'}, h('caption', {class: 'only-read'}, `What has happened, the newest first, at most ${MAX_EVENTS}`),
      h('thead', null, h('tr', null, ['Event', 'ID', 'When'].map((title) => h('th', {scope: 'col'}, title)))),
      h('tbody', null, this.events.map(({kind, id, at}) => h('tr', null, h('td', null, state(...words[kind])), h('td', {class: 'mono'}, id), h('td', null, at))))));
  }

  // drawRows draws the answers. The row of an answer that stays is moved, and not made again.
  drawRows(rows) {
    const columns = names(rows.map((row) => row.value)).slice(0, MAX_COLUMNS), heads = columns.join('\n');
    const nodes = new Map();
    for (const row of rows) {
      const old = heads === this.heads ? this.nodes.get(row.id) : undefined;
      const node = old?.row === row ? old : {row, tr: h('tr', null, h('td', null, link(this.href(row.id), {class: 'mono'}, row.id)), columns.map((name) => h('td', {data: {title: name}}, cell(row.text, json.member(row.value, name)))))};
      node.tr.classList.toggle('live-fresh', !!this.fresh?.has(row.id));
      nodes.set(row.id, node);
    }
    if (heads === this.heads && this.body?.isConnected) this.body.replaceChildren(...[...nodes.values()].map(({tr}) => tr));
    else {
      this.body = h('tbody', null, [...nodes.values()].map(({tr}) => tr));
      fill(this.answers, h('table', {class: 'table', 'aria-label': 'Answers of now'}, h('thead', null, h('tr', null, h('th', {scope: 'col'}, 'id()'), columns.map((name) => h('th', {scope: 'col'}, name)))), this.body));
    }
    Object.assign(this, {nodes, heads});
  }
}
