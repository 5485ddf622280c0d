// Computed indexes on the page of indexes: which there are, how large, which documents fail; a new one from a declaration, after a preview
// of what it makes of documents.

import * as api from './api.js';
import {editor} from './editor.js';
import {JSONError, decode, parse} from './json.js';
import * as rql from './rql.js';
import {bytes, button, count, dialog, errorBox, field, fill, h, link, plural, state, table, toast, confirm} from './ui.js';

// computedTable shows computed indexes. size returns the bytes of a part; drop is called with one to be dropped.
export function computedTable(list, {db, app, size, drop}) {
  const all = (ix) => ix.parts.reduce((sum, part) => sum + Number(size(part)), 0);
  const errors = (ix) => Math.max(0, ...ix.parts.map((part) => Number(part.errors ?? 0)));
  return table([
    {title: 'Computed index', cell: (ix) => (ix.unknown ? h('span', {class: 'mono'}, ix.name) : link(app.address('/db/:db/query', {db}, {q: fromIndex(ix.name)}), {class: 'mono', title: 'Query its results'}, ix.name))},
    {title: 'Maps and groups', cell: (ix) => ix.unknown ?? h('span', {class: 'algebra'}, ix.algebra.split('; ').map((text) => h('code', null, text)))},
    {title: 'State', cell: (ix) => (ix.unknown ? state('wrong', 'not understood') : ix.next ? state('careful', 'is being replaced') : ix.state === 'ready' ? state('fine', 'ready') : state('careful', 'is being built'))},
    {title: 'Kept by', cell: (ix) => [plural(ix.parts?.length ?? 0, 'part'), ix.without && h('span', {class: 'tag careful', title: ix.without.join('\n')}, 'not all is kept')]},
    {title: 'On disk', number: true, cell: (ix) => bytes(ix.parts ? all(ix) : 0)},
    {title: 'Errors', number: true, cell: (ix) => (ix.parts && errors(ix) > 0 ? button(count(errors(ix)), {kind: 'quiet', label: `Errors of ${ix.name}`, run: () => showErrors(db, app, ix.name)}) : count(0))},
    {title: '', number: true, cell: (ix) => app.can('admin') && button('', {icon: 'delete', kind: 'quiet', label: `Drop ${ix.name}`, run: () => drop(ix)})},
  ], list, {caption: 'Computed indexes'});
}

// fromIndex is a query of all results of an index.
function fromIndex(name) { return `from index ${rql.literal(name)}`; }

// dropComputed asks, and drops a computed index. It resolves to true if it is dropped.
export async function dropComputed(db, ix) {
  if (!await confirm({title: `Drop ${ix.name}?`, action: 'Drop the index', text: 'Queries of its name are refused from then on. No document changes, and the index can be made again.'})) return false;
  try {
    await api.send('DELETE', api.jay(db, 'indexes/computed', {name: ix.name}));
    toast(`${ix.name} is dropped.`);
  } catch (error) { toast(error.message, {kind: 'wrong'}); }
  return true;
}

// showErrors lists documents for which an expression of the index fails.
async function showErrors(db, app, name) {
  const list = h('div');
  const load = async () => {
    try {
      const {errors} = await api.get(api.jay(db, 'indexes/computed/errors', {name, limit: 100}), {signal: app.signal});
      fill(list, table([
        {title: 'Document', cell: (e) => link(app.address('/db/:db/doc', {db}, {id: e.id}), {class: 'mono'}, e.id)},
        {title: 'Expression', cell: (e) => h('code', null, e.field)},
        {title: 'Reason', cell: (e) => e.reason},
      ], errors, {caption: 'Errors'}), errors.length >= 100 && h('p', {class: 'hint muted'}, 'There may be more: jay index errors lists those of each part.'));
    } catch (error) { if (error.name !== 'AbortError') fill(list, errorBox(error)); }
  };
  load();
  await dialog(`Errors of ${name}`, (close) => [h('p', null, 'The document has no value there until it is changed.'), list, h('div', {class: 'buttons'}, button('Close', {run: () => close(), autofocus: true}))], {wide: true});
}

const sample = `{
  "name": "Orders/ByCustomer",
  "maps": [
    {"collection": "Orders",
     "select": [{"name": "Customer"}, {"name": "Total"}]}
  ],
  "reduce": {
    "groupBy": ["Customer"],
    "select": [{"name": "Customer"},
               {"name": "Orders", "expression": "count()"},
               {"name": "Total", "expression": "sum(Total)"}]
  }
}`;

// newComputed asks for a declaration, shows what it makes of documents, and declares it. It resolves to true when that has begun.
export function newComputed(db, app) {
  return dialog('New computed index', (close) => {
    const failed = h('div'), shown = h('div', {class: 'computed-preview', 'aria-live': 'polite'});
    let asked = 0; // counts previews and changes, so that no preview stands by another declaration
    const changed = () => { asked++; fill(shown); };
    const text = editor({label: 'Declaration', language: 'json', value: sample, grow: [15, 15], input: () => { changed(); fill(failed); }});
    const id = h('input', {type: 'text', class: 'mono', autocomplete: 'off', spellcheck: 'false', on: {input: () => changed()}});
    const replace = h('input', {type: 'checkbox'});
    const declared = () => {
      parse(text.value); // says where it is no JSON
      return JSON.parse(text.value);
    };
    const attempt = async (what) => {
      fill(failed);
      try { await what(); } catch (error) { fill(failed, error instanceof JSONError ? errorBox(new Error(`The declaration is no JSON: ${error.message}`)) : errorBox(error)); }
    };
    const preview = () => attempt(async () => {
      changed();
      const mine = asked;
      const body = JSON.stringify({index: declared(), ids: id.value.trim() ? [id.value.trim()] : []});
      try {
        const {text: reply} = await api.text('POST', api.jay(db, 'indexes/computed/preview'), {body, headers: {'Content-Type': 'application/json'}, signal: app.signal});
        if (mine === asked) fill(shown, previewOf(reply));
      } catch (error) { if (mine === asked) throw error; }
    });
    const create = () => attempt(async () => {
      await api.send('PUT', api.jay(db, 'indexes/computed'), {index: declared(), replace: replace.checked});
      close(true);
    });
    return [
      h('p', {class: 'hint'}, 'Maps say which members each document, or each element of an array, gives. A reduce makes groups of them, with ', h('code', null, 'count()'), ', ', h('code', null, 'sum()'), ', ', h('code', null, 'avg()'), ', ', h('code', null, 'min()'), ', ', h('code', null, 'max()'), ', ', h('code', null, 'first(Total order by At)'), ' and ', h('code', null, 'last(Total order by At)'), '.'),
      text.node,
      field('Preview with document', id, 'Empty takes the first ten of each collection.'),
      h('div', {class: 'buttons start'}, button('Preview', {icon: 'play', run: preview})),
      failed, shown,
      h('label', {class: 'check'}, replace, h('span', null, 'Replace an index of this name that is declared otherwise')),
      h('div', {class: 'buttons'}, button('Cancel', {run: () => close()}), button('Create', {kind: 'primary', run: create})),
    ];
  }, {wide: true});
}

// previewOf shows the reply to a preview, digit by digit as it came.
export function previewOf(text) {
  const root = parse(text);
  const of = (node, name) => node.members.find((m) => m.name === name)?.value;
  const items = (node) => node?.items ?? [];
  const raw = (node) => text.slice(node.start, node.end);
  const words = (node) => decode(raw(node));
  const documents = items(of(root, 'documents')), results = of(root, 'results'), without = items(of(root, 'without'));
  const entries = documents.flatMap((doc) => items(of(doc, 'maps')).map((m) => h('article', {class: 'preview'},
    h('header', null, h('span', {class: 'mono'}, words(of(doc, 'id'))), ` map ${raw(of(m, 'map'))}`, items(of(m, 'entries')).length === 0 && h('span', {class: 'muted'}, ' gives no entry')),
    items(of(m, 'entries')).map((e) => h('pre', {class: 'entry'}, raw(e))),
    items(of(m, 'errors')).map((e) => h('p', null, state('wrong', `${words(of(e, 'field'))} fails: ${words(of(e, 'reason'))}`))))));
  return [
    h('h3', null, 'What the maps give'),
    entries.length > 0 ? entries : h('p', {class: 'muted'}, 'No document of these collections is there.'),
    results && [h('h3', null, 'What the reduce makes of these documents'), items(results).map((r) => h('pre', {class: 'entry'}, raw(r)))],
    without.length > 0 && [h('h3', null, 'Not kept, and computed when it is asked for'), h('ul', null, without.map((w) => h('li', null, words(w))))],
  ];
}
