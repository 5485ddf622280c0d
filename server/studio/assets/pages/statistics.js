// Statistics: what the database does just now, as small charts, and what it holds. The figures of the server only
// rise; the charts draw their differences.

import * as api from '../api.js';
import * as exact from '../exact.js';
import {History, bar, chart, rates} from '../charts.js';
import {button, bytes, count, duration, empty, errorBox, fill, h, link, notice, patience, plural, table} from '../ui.js';

const points = 120, every = 1000; // two minutes

const perSecond = (n) => `${n >= 100 ? count(Math.round(n)) : n >= 10 ? n.toFixed(0) : n.toFixed(1)}/s`;
const ratio = (n) => `${n.toFixed(n === 100 ? 0 : 1)} %`;

const charts = [
  {title: 'Writes and reads', lines: [{key: 'writes', text: 'writes', kind: 'write'}, {key: 'transactions', text: 'transactions', kind: 'transaction'}, {key: 'reads', text: 'reads', kind: 'read'}, {key: 'queries', text: 'queries', kind: 'query'}], format: perSecond, least: 10},
  {title: 'Time of a write', lines: [{key: 'writeHalf', text: 'half within', kind: 'write'}, {key: 'writeLate', text: '99 % within', kind: 'late'}], format: duration, least: 1e5},
  {title: 'Time of a read', lines: [{key: 'readHalf', text: 'half within', kind: 'read'}, {key: 'readLate', text: '99 % within', kind: 'late'}], format: duration, least: 1e4},
  {title: 'Time of a query', lines: [{key: 'queryHalf', text: 'half within', kind: 'query'}, {key: 'queryLate', text: '99 % within', kind: 'late'}], format: duration, least: 1e5},
  {title: 'Commits and syncs', lines: [{key: 'commits', text: 'commits', kind: 'write'}, {key: 'syncs', text: 'syncs', kind: 'sync'}], format: perSecond, least: 10},
  {title: 'Time of a sync', lines: [{key: 'sync', text: 'mean', kind: 'sync'}], format: duration, least: 1e6},
  {title: 'Found in the cache', lines: [{key: 'hits', text: 'of the blocks asked for', kind: 'cache'}], format: ratio, most: 100},
  {title: 'Memory', lines: [{key: 'cache', text: 'cache', kind: 'cache'}, {key: 'memory', text: 'not in tables yet', kind: 'sync'}], format: bytes, least: 1e6},
  {title: 'Written to the disk', lines: [{key: 'written', text: 'log and tables', kind: 'disk'}], format: (n) => `${bytes(n)}/s`, least: 1e5},
  {title: 'On disk', lines: [{key: 'disk', text: 'all files', kind: 'disk'}, {key: 'log', text: 'the log', kind: 'sync'}], format: bytes, least: 1e6},
  {title: 'Still to be merged', lines: [{key: 'debt', text: 'about', kind: 'disk'}], format: bytes, least: 1e6},
  {title: 'Waits and failures', lines: [{key: 'stalled', text: '% of the time writers wait', kind: 'late'}, {key: 'failed', text: 'failed a second', kind: 'failed'}], format: (n) => n.toFixed(1), least: 1},
];

export const page = {
  title: 'Statistics',
  mount(container, params, app) {
    const p = new Statistics(container, params, app);
    p.tick();
    p.measure();
    return () => p.end();
  },
};

class Statistics {
  constructor(container, params, app) {
    Object.assign(this, {app, db: params.db, history: new History(points), last: null, paused: false});
    this.charts = charts.map((one) => chart({...one, span: 'Of the last two minutes, a point a second.'}));
    this.summary = h('span', {class: 'muted number'});
    this.failed = h('div');
    this.notes = h('div');
    this.collections = h('div');
    this.disk = h('div');
    this.memory = h('div');
    this.verbs = h('div');
    this.pause = button('Pause', {icon: 'pause', key: 'p', run: () => this.toggle()});
    fill(container, h('div', {class: 'head'}, h('h1', null, 'Statistics'), this.summary, h('div', {class: 'buttons'}, this.pause)), this.failed, this.notes,
      h('div', {class: 'charts'}, this.charts.map((c) => c.node)), h('p', {class: 'hint muted'}, 'The last two minutes, a point a second. Times are exact to a factor of two at worst: the server counts them in classes.'),
      h('div', {class: 'two'}, h('section', null, h('h2', null, 'Collections'), this.collections), h('section', null, h('h2', null, 'On disk'), this.disk)),
      h('section', null, h('h2', null, 'Shares of the memory'), this.memory), h('section', null, h('h2', null, 'Since the server began'), this.verbs));
    this.charts.forEach((c) => c.update(this.history));
    app.keys([{key: 'p', text: 'Pause or go on', run: () => { this.toggle(); }}]);
    this.visible = () => { if (!document.hidden) { this.last = null; this.tick(); } };
    document.addEventListener('visibilitychange', this.visible);
  }

  end() { clearTimeout(this.timer); document.removeEventListener('visibilitychange', this.visible); }

  toggle() {
    this.paused = !this.paused;
    const fresh = button(this.paused ? 'Go on' : 'Pause', {icon: this.paused ? 'play' : 'pause', key: 'p', run: () => this.toggle()});
    this.pause.replaceWith(fresh);
    fresh.focus();
    this.pause = fresh;
    this.last = null;
    this.tick();
  }

  async tick() {
    clearTimeout(this.timer);
    if (this.paused || document.hidden || this.app.signal.aborted) return;
    try {
      const now = await exact.get(api.jay(this.db, 'figures'), {signal: this.app.signal});
      fill(this.failed);
      if (this.last) {
        const point = rates(this.last, now);
        this.history.add(point ?? {});
        this.charts.forEach((c) => c.update(this.history));
      }
      this.last = now;
      this.draw(now);
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.last = null;
      this.history.add({});
      fill(this.failed, errorBox(error));
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tick(), every);
  }

  draw({stats, operations}) {
    const documents = stats.collections.reduce((sum, c) => exact.plus(sum, c.documents), 0);
    fill(this.summary, `${plural(documents, 'document')}, ${count(stats.counters.etag)} writes, ${bytes(stats.engine.diskBytes)} on disk, ${stats.engine.encrypted ? 'encrypted' : 'not encrypted'}`);
    const e = stats.engine;
    const notes = [
      e.failed && 'The disk has failed: writes are refused until the database is opened again.',
      stats.diskFull && 'The disk is almost full: writes are refused, deletions go on.',
      e.stalled && 'Writers wait for the disk just now.',
      stats.counting && 'The database is being counted after an upgrade: the figures of collections are too small until then.',
    ].filter(Boolean);
    if (String(notes) !== this.noted) { this.noted = String(notes); fill(this.notes, notes.map((text) => notice('careful', h('p', null, text)))); }
    const list = [...stats.collections].sort((a, b) => Number(b.bytes) - Number(a.bytes));
    const text = JSON.stringify(list, (k, v) => (typeof v === 'bigint' ? String(v) : v));
    if (text !== this.listed) {
      this.listed = text;
      fill(this.collections, list.length ? table([
        {title: 'Collection', cell: (c) => link(this.app.address('/db/:db/documents', {db: this.db}, {collection: c.name}), null, c.name)},
        {title: 'Documents', number: true, cell: (c) => count(c.documents)}, {title: 'Bytes', number: true, cell: (c) => h('span', {title: 'As they are stored, before compression'}, bytes(c.bytes))},
      ], list.slice(0, 100), {caption: 'Collections'}) : h('p', {class: 'muted'}, 'There are no documents.'), list.length > 100 && h('p', {class: 'muted'}, `The largest 100 of ${count(list.length)}.`));
    }
    this.drawMemory(stats.memory);
    if (operations.length !== this.verbCount || !this.verbsAt || Date.now() - this.verbsAt > 5000) {
      this.verbCount = operations.length;
      this.verbsAt = Date.now();
      fill(this.verbs, operations.length ? table([
        {title: 'Operation', cell: (o) => o.verb}, {title: 'Count', number: true, cell: (o) => count(o.count)}, {title: 'Documents', number: true, cell: (o) => count(o.documents)},
        {title: 'Mean', number: true, cell: (o) => duration(Math.round(Number(o.totalNs) / Number(o.count)))}, {title: 'Failed', number: true, cell: (o) => (o.failed ? count(o.failed) : h('span', {class: 'muted'}, '–'))},
      ], operations, {caption: 'Operations'}) : h('p', {class: 'muted'}, 'Nothing was done yet.'));
    }
  }

  // drawMemory shows what is used of each share of the memory. Of garbage only Go's runtime knows it.
  drawMemory({boundBytes, outsideBytes, shares}) {
    const rows = shares.map((s) => ({...s, used: s.name === 'garbage' ? null : s.usedBytes}));
    const text = JSON.stringify([boundBytes, outsideBytes, rows], (k, v) => (typeof v === 'bigint' ? String(v) : v));
    if (text === this.shared) return;
    this.shared = text;
    fill(this.memory, table([
      {title: 'Share', cell: (s) => s.name}, {title: 'Used', number: true, cell: (s) => (s.used === null ? h('span', {class: 'muted', title: 'Only the runtime of Go knows it'}, '–') : bytes(s.used))},
      {title: 'May have', number: true, cell: (s) => bytes(s.bytes)},
      {title: 'Full', number: true, cell: (s) => (s.used === null || Number(s.bytes) === 0 ? h('span', {class: 'muted'}, '–') : `${Math.round(100 * Number(s.used) / Number(s.bytes))} %`)},
    ], rows, {caption: 'Shares of the memory'}), h('p', {class: 'hint muted'}, `The bound of the memory is ${bytes(boundBytes)}. ${Number(outsideBytes) > 0 ? `${bytes(outsideBytes)} are outside of the heap of Go.` : 'All of it is on the heap of Go.'}`));
  }

  // measure asks for the parts on the disk, which costs more, and so once.
  async measure() {
    const done = patience(this.disk);
    try {
      const u = await exact.get(api.jay(this.db, 'disk'), {signal: this.app.signal});
      done();
      const sum = (list) => list.reduce((n, one) => exact.plus(n, one.bytes), 0);
      const parts = [
        {kind: 'read', text: 'documents', value: exact.plus(sum(u.collections), u.otherDocuments)}, {kind: 'query', text: 'indexes', value: sum(u.indexes)}, {kind: 'write', text: 'revisions', value: u.revisions},
        {kind: 'transaction', text: 'attachments', value: u.attachments}, {kind: 'cache', text: 'order of changes', value: u.changes}, {kind: 'sync', text: 'log', value: u.logBytes}, {kind: 'other', text: 'other', value: u.other},
      ].map((p) => ({...p, written: bytes(p.value)}));
      const whole = parts.reduce((n, p) => exact.plus(n, p.value), 0);
      fill(this.disk, bar('On disk', parts, whole, {unit: ' bytes'}), h('dl', {class: 'facts'}, [['All files', bytes(u.totalBytes)], ['Free on the disk', u.freeBytes < 0 ? 'not known' : bytes(u.freeBytes)]].map(([t, d]) => h('div', null, h('dt', null, t), h('dd', {class: 'number'}, d)))),
        h('p', {class: 'hint muted'}, 'The parts are estimates, and do not count what was written last. ', button('Measure again', {kind: 'quiet', run: () => this.measure()})));
    } catch (error) {
      done();
      if (error.name !== 'AbortError') fill(this.disk, errorBox(error, button('Try again', {run: () => this.measure()})));
    }
  }
}
