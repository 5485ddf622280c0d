// A search for words in the documents of a collection: by an index of words where there is one, and otherwise by looking at each document. It makes the query and
// the elements of its answers; what is found stands in <mark>.

import * as api from './api.js';
import * as rql from './rql.js';
import {h, link} from './ui.js';

export const pageSize = 50;
const mostFields = 16; // a query has no more highlights
const begins = '\uE000', ends = '\uE001'; // around what is found; no font has a sign for them

// planOf returns how a collection is searched: {index, fields: [{name, analyzer}], query, parameters}. Without an index of words fields are those that some
// of its documents have; there are none if these have none whose name can stand in a query.
export async function planOf(db, collection, words, signal) {
  const {indexes} = await api.get(api.jay(db, 'indexes', {collection}), {signal});
  // The index with the most fields finds the most. One of a part of the documents would miss others.
  const all = indexes.filter((ix) => ix.kind === 'text' && ix.state === 'ready' && !ix.where).sort((a, b) => b.fields.length - a.fields.length);
  let fields;
  if (all.length > 0) {
    const analyzers = (all[0].options?.analyzer ?? 'standard').split(', ');
    fields = all[0].fields.map((name, i) => ({name, analyzer: analyzers[analyzers.length > 1 ? i : 0]}));
  } else {
    const rows = await api.get(api.jay(db, 'rows', {collection, pageSize: 50}), {signal});
    fields = rows.fields.filter((name) => rql.name(name) === name && !name.startsWith('@')).map((name) => ({name, analyzer: ''}));
  }
  fields = fields.slice(0, mostFields);
  const options = JSON.stringify({PreTags: [begins], PostTags: [ends], Plain: true});
  const searches = fields.map(({name, analyzer}) => `search(${name}, $words${analyzer ? `, '${analyzer}'` : ''})`);
  return {
    index: all[0]?.name ?? '', fields,
    query: `from ${rql.literal(collection)} where ${searches.join(' or ')} order by score() select id() as id include ${fields.map(({name}) => `highlight(${name}, 160, 2, $tags)`).join(', ')}`,
    parameters: {words, tags: options},
  };
}

// pageOf returns a page of answers: {rows: [{id, shown: [[field, [fragment]]]}], next}.
export async function pageOf(db, plan, after, signal) {
  const reply = await api.send('POST', api.jay(db, 'query'), {query: plan.query, parameters: plan.parameters, pageSize, ...(after ? {after} : {})}, {signal});
  return {next: reply.next, rows: reply.rows.map(({row, highlights}) => ({id: row.id, shown: Object.entries(highlights ?? {}).filter(([, fragments]) => fragments.length > 0)}))};
}

// marked returns a fragment as nodes: what stands between the signs is found.
export function marked(fragment) {
  return fragment.split(begins).flatMap((part, i) => {
    const at = part.indexOf(ends);
    if (i === 0 || at < 0) return [part];
    return [h('mark', null, part.slice(0, at)), part.slice(at + 1)];
  });
}

// answer returns the element of an answer.
export function answer({id, shown}, href) {
  return h('li', null, link(href, {class: 'id mono'}, id),
    shown.map(([field, fragments]) => h('p', {class: 'fragments'}, h('span', {class: 'muted'}, field), ' ', fragments.map((one, i) => [i > 0 && ' … ', ...marked(one)]))));
}
