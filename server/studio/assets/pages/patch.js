// Changes by query: what a query finds is patched by a script, or deleted. What would happen is seen before it does.

import * as api from '../api.js';
import * as exact from '../exact.js';
import * as operation from '../operation.js';
import {lines} from '../diff.js';
import {editor} from '../editor.js';
import {check, layOut, member, parse, quote, raw, textOf} from '../json.js';
import * as rql from '../rql.js';
import {button, confirm, count, duration, errorBox, field, fill, h, icon, link, notice, patience, plural, progress, state, tabs} from '../ui.js';

const samples = {
  patch: "from Orders as o\nwhere o.Total < 10\nupdate {\n  o.Small = true;\n}",
  delete: "from Orders\nwhere Status = 'cancelled'",
};

export const page = {
  title: 'Patch by query',
  mount(container, params, app) {
    const p = new Patch(container, params, app);
    return () => p.end();
  },
};

class Patch {
  constructor(container, params, app) {
    Object.assign(this, {app, db: params.db, mode: params.query.get('delete') ? 'delete' : 'patch', previewed: null, kept: {}});
    const ids = params.query.getAll('id');
    const given = params.query.get('q') ?? (ids.length ? `from @all_docs\nwhere id() in (${ids.map(rql.literal).join(', ')})${this.mode === 'patch' ? '\nupdate {\n  \n}' : ''}` : '');
    this.known = {};
    this.values = readValues(params.query.get('p'));
    this.inputs = h('div', {class: 'query-parameters'});
    this.text = editor({label: 'Query and script', language: 'rql', value: given, grow: [7, 24], placeholder: samples.patch.replaceAll('\n', ' ').replace(/ +/g, ' '), hint: 'Ctrl Enter previews, Ctrl Space completes.',
      input: () => this.changed(), complete: (text, caret) => rql.completions(text, caret, this.known)});
    this.show = button('Preview', {icon: 'play', kind: 'primary', key: 'ctrl+enter', run: () => this.preview()});
    this.go = button('', {run: () => this.run()});
    this.out = h('div', {'aria-live': 'polite'});
    this.help = h('p', {class: 'hint muted'});
    const modes = tabs('What to do', [{id: 'patch', text: 'Patch'}, {id: 'delete', text: 'Delete'}], (id) => this.choose(id), this.mode);
    fill(container, h('div', {class: 'head'}, h('h1', null, 'Patch by query')), modes.node, h('div', {class: 'script'}, this.text.node, this.inputs), this.help,
      h('div', {class: 'buttons start'}, this.show, this.go), this.out);
    app.keys([{key: 'ctrl+enter', text: 'Preview', typing: true, run: () => { this.preview(); }}]);
    app.commands([{text: 'Preview what would change', hint: 'Ctrl ↵', run: () => this.preview()}]);
    app.unsaved(() => !!this.running && !this.detached);
    this.mark();
    this.learn();
    this.ask();
    if (given && params.query.get('preview')) this.preview();
  }

  end() {
    this.abort?.abort();
    this.text.dispose();
  }

  // learn asks for the names that can be completed.
  async learn() {
    try {
      this.known.collections ??= (await api.get(api.jay(this.db, 'collections'), {signal: this.app.signal})).collections;
      const collection = rql.collectionOf(this.text.value);
      if (collection === null || collection === this.collection || !this.known.collections.some((c) => c.name.toLowerCase() === collection.toLowerCase())) return;
      this.collection = collection;
      const {fields} = await api.get(api.jay(this.db, 'fields', {collection}), {signal: this.app.signal});
      if (collection === this.collection) this.known.fields = fields;
    } catch { /* completion knows less */ }
  }

  choose(mode) {
    this.kept[this.mode] = this.text.value;
    this.mode = mode;
    this.text.value = this.kept[mode] ?? '';
    this.changed();
    this.app.note({delete: mode === 'delete'});
  }

  changed() {
    this.learn();
    this.ask();
    this.void();
  }

  // void forgets the preview, also one that still runs: it is of another text.
  void() {
    this.abort?.abort();
    this.abort = null;
    this.previewed = null;
    if (!this.running) fill(this.out);
    const values = JSON.stringify(Object.fromEntries([...this.values].filter(([name]) => this.asked.includes(name))));
    this.app.note({q: this.text.value.length < 4000 ? this.text.value.trim() : '', p: values !== '{}' && values.length < 4000 ? values : ''});
    this.mark();
  }

  // ask has a field for each parameter of the text.
  ask() {
    const names = rql.parameters(this.text.value);
    if (this.asked && names.join() === this.asked.join()) return;
    this.asked = names;
    fill(this.inputs, names.map((name) => h('label', {class: 'query-parameter'}, h('span', {class: 'mono'}, `$${name}`),
      h('input', {type: 'text', class: 'mono', autocomplete: 'off', spellcheck: 'false', value: this.values.get(name) ?? '', placeholder: 'a value, such as 10 or open', on: {input: (event) => { this.values.set(name, event.target.value); this.void(); }}}))));
  }

  // given writes the parameters as JSON. A value that is no JSON is a text; digits stay as they were typed.
  given() {
    return `{${this.asked.map((name) => { const typed = this.values.get(name) ?? ''; return `${quote(name)}:${check(typed) === null ? typed : quote(typed)}`; }).join(',')}}`;
  }

  // mark says what the second button would do. While it does so, nothing else is previewed: the page shows how far it is.
  mark() {
    const p = this.previewed, deletes = this.mode === 'delete';
    const text = !p ? (deletes ? 'Delete …' : 'Run …') : deletes ? `Delete ${plural(p.total, 'document')} …` : `Run on ${plural(p.total, 'document')} …`;
    const fresh = button(text, {kind: 'danger', disabled: !p || Number(p.total) === 0 || !this.app.can('write') || !!this.running, title: !this.app.can('write') ? 'This needs the right write' : !p ? 'See first what would change' : undefined, run: () => this.run()});
    this.go.replaceWith(fresh);
    this.go = fresh;
    this.show.disabled = !!this.running;
    fill(this.help, deletes ? 'The query finds the documents that are deleted.' : ['The query ends with ', h('code', null, 'update { … }'), ', a script in a part of JavaScript: ', h('code', null, 'this'), ' or the alias is the document.']);
  }

  // preview shows what would happen, and keeps what it has asked for: run sends that, and not what the page has by then.
  async preview() {
    if (this.running) return;
    if (!this.text.value.trim()) { this.text.select(0, 0, {focus: true}); return; }
    this.abort?.abort();
    const abort = this.abort = new AbortController();
    const query = this.text.value, parameters = this.given(), deletes = this.mode === 'delete';
    const done = patience(this.out, 'Trying it on the first documents');
    try {
      const {text} = await api.text('POST', api.jay(this.db, 'preview'), {signal: abort.signal, headers: {'Content-Type': 'application/json'}, body: `{"query":${quote(query)},"parameters":${parameters},"delete":${deletes},"first":20}`});
      done();
      if (this.abort !== abort) return;
      const root = parse(text); // the documents are read as text: no digit changes
      this.previewed = {query, parameters, deletes, total: exact.number(raw(text, member(root, 'total')))};
      fill(this.out, this.drawn(text, root));
    } catch (error) {
      done();
      if (this.abort !== abort) return;
      if (error.name !== 'AbortError') fill(this.out, errorBox(error));
    }
    this.mark();
  }

  drawn(text, root) {
    const rows = member(root, 'documents').items, total = this.previewed.total;
    if (rows.length === 0) return notice('info', h('p', null, 'The query finds no document: nothing would change.'));
    const statuses = rows.map((row) => textOf(text, member(row, 'status')));
    const failed = statuses.filter((s) => s === 'Failed').length, unchanged = statuses.filter((s) => s === 'NotModified').length;
    return [
      h('h2', null, this.mode === 'delete' ? `${plural(total, 'document')} would be deleted` : `${plural(total, 'document')} would be patched`),
      h('p', {class: 'muted'}, 'Nothing is stored yet. ', Number(total) > rows.length ? `The first ${plural(rows.length, 'document is', 'documents are')} shown.` : '', unchanged ? ` ${count(unchanged)} of those would stay as ${unchanged === 1 ? 'it is' : 'they are'}.` : ''),
      failed > 0 && notice('careful', h('p', null, `The script fails on ${count(failed)} of these. A run ends at the first such document; what was changed before stays.`)),
      h('div', {class: 'previews'}, rows.map((row) => this.one(text, row))),
    ];
  }

  one(text, row) {
    const id = textOf(text, member(row, 'id')), status = textOf(text, member(row, 'status'));
    const before = member(row, 'before'), after = member(row, 'after'), others = member(row, 'others'), error = member(row, 'error');
    const said = {Patched: state('careful', 'changes'), NotModified: state('idle', 'stays as it is'), Deleted: state('wrong', 'is deleted'), Failed: state('wrong', 'the script fails')}[status] ?? state('idle', status);
    return h('article', {class: 'preview'}, h('header', null, link(this.app.address('/db/:db/doc', {db: this.db}, {id}), {class: 'mono'}, id), said),
      error && h('p', {class: 'wrong-text'}, textOf(text, error)),
      others && h('p', {class: 'muted'}, 'Besides: ', others.items.map((o, i) => [i > 0 && ', ', h('code', null, textOf(text, o))])),
      status === 'Patched' && sides(shape(text, before), shape(text, after)),
      status === 'Deleted' && h('pre', {class: 'side-text', tabindex: 0}, shape(text, before)));
  }

  async run() {
    const p = this.previewed;
    if (!p || this.running) return;
    const {query, parameters, deletes} = p;
    const sure = await confirm({title: deletes ? `Delete ${plural(p.total, 'document')}?` : `Run the script on ${plural(p.total, 'document')}?`, action: deletes ? 'Delete' : 'Run', type: deletes && Number(p.total) > 100 ? String(p.total) : undefined,
      text: deletes ? 'What the query finds when it begins is deleted. Revisions bring documents back where they are kept; else only a backup does.' : 'Documents are changed in batches, each as it is then. What was changed before a failure, or before you cancel, stays.'});
    if (!sure) return;
    this.running = true;
    this.abort?.abort(); // a preview that still runs, of the same text
    this.abort = null;
    this.mark();
    const bar = progress(deletes ? 'Deletion' : 'Patch'), sign = h('span', null, state('careful', 'under way')), more = h('div');
    const begun = performance.now(), asked = `{"Query":${quote(query)},"QueryParameters":${parameters}}`;
    try {
      const reply = exact.read((await api.text(deletes ? 'DELETE' : 'PATCH', api.raven(this.db, 'queries'), {headers: {'Content-Type': 'application/json'}, body: deletes ? asked : `{"Query":${asked}}`})).text);
      const id = reply.OperationId;
      this.previewed = null;
      this.mark();
      const cancel = button('Cancel', {run: async () => { try { await operation.kill(this.db, id); } catch (error) { fill(more, errorBox(error)); } }});
      fill(this.out, h('article', {class: 'transfer'}, h('header', null, h('b', null, deletes ? 'Delete by query' : 'Patch by query'), sign, cancel), bar.node, more));
      bar.update(0, Number(p.total));
      const last = await operation.watch(this.db, id, (now) => { if (now.Progress?.Total !== undefined) bar.update(Number(now.Progress.Processed), Number(now.Progress.Total)); }, this.app.signal);
      cancel.remove();
      const n = last.Result?.Total ?? last.Progress?.Processed ?? 0;
      const took = duration((performance.now() - begun) * 1e6);
      if (last.Status === 'Completed') {
        fill(sign, state('fine', 'done'));
        fill(more, h('p', null, deletes ? `${plural(n, 'document was', 'documents were')} deleted in ${took}.` : `${plural(n, 'document was', 'documents were')} visited in ${took}; those that the script did not change stayed as they were.`));
      } else if (last.Status === 'Canceled') {
        fill(sign, state('careful', 'cancelled'));
        fill(more, h('p', null, `${plural(n, 'document was', 'documents were')} done already, and stay so.`));
      } else {
        fill(sign, state('wrong', 'failed'));
        fill(more, errorBox({message: operation.reason(last), remedy: `${plural(last.Progress?.Processed ?? 0, 'document was', 'documents were')} done before, and stay so. Mend the script, and run it again.`}));
      }
    } catch (error) { if (error.name !== 'AbortError') fill(this.out, errorBox(error)); }
    this.running = null;
    this.mark();
  }
}

function readValues(text) {
  try { return new Map(Object.entries(JSON.parse(text ?? '{}')).filter(([, value]) => typeof value === 'string')); } catch { return new Map(); }
}

// shape lays a document out, without what the database adds to its metadata.
function shape(text, node) {
  const meta = member(node, '@metadata');
  if (meta?.members) {
    const own = new Set(['@change-vector', '@id', '@last-modified', '@flags', '@attachments']);
    meta.members = meta.members.filter((m) => !own.has(m.name));
    if (meta.members.length === 0) node.members = node.members.filter((m) => m.name !== '@metadata');
  }
  return layOut(node, text, '  ');
}

const context = 3;

// sides shows two texts beside each other: the lines that differ, and some around them.
function sides(before, after) {
  const a = before.split('\n'), b = after.split('\n'), all = lines(before, after);
  const near = all.map((_, i) => all.slice(Math.max(0, i - context), i + context + 1).some((l) => l.kind !== 'same'));
  const left = [], right = [];
  all.forEach((line, i) => {
    if (!near[i]) {
      if (i === 0 || near[i - 1]) { left.push(h('span', {class: 'gap'}, '⋯\n')); right.push(h('span', {class: 'gap'}, '⋯\n')); }
      return;
    }
    const mark = line.kind === 'same' ? '' : 'differs';
    left.push(h('span', {class: [mark && 'removed', line.left < 0 && 'none']}, line.left < 0 ? '\n' : `${mark ? '− ' : '  '}${a[line.left]}\n`));
    right.push(h('span', {class: [mark && 'added', line.right < 0 && 'none']}, line.right < 0 ? '\n' : `${mark ? '+ ' : '  '}${b[line.right]}\n`));
  });
  return h('div', {class: 'sides'}, h('pre', {tabindex: 0, 'aria-label': 'Before'}, left), h('pre', {tabindex: 0, 'aria-label': 'After'}, right));
}
