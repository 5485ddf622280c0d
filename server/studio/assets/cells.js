// Values of documents in the cells of a table.

import * as json from './json.js';
import {h} from './ui.js';

// cell shows a value as it is written, each digit of it: node is of json.parse(text), or null for none.
export function cell(text, node) {
  if (node === null) return null;
  const raw = json.raw(text, node);
  switch (node.kind) {
    case 'string': {
      const shown = json.decode(raw);
      const characters = shown.length > 120 ? Array.from(shown.slice(0, 240)).slice(0, 120).join('') + '…' : shown;
      return shown === '' ? h('span', {class: 'muted'}, '""') : h('span', {title: shown.length > 120 ? shown.slice(0, 2000) : undefined}, characters);
    }
    case 'number': return h('span', {class: 'mono t-number'}, raw);
    case 'object':
    case 'array': return h('code', {class: 'muted', title: raw.length > 80 ? raw.slice(0, 2000) : undefined}, raw.length > 80 ? raw.slice(0, 80) + '…' : raw);
    default: return h('span', {class: 'mono t-word'}, raw);
  }
}

// names returns the names of the members that some values have, in the order in which they come, without @metadata.
export function names(values) {
  const all = new Set();
  for (const value of values) {
    for (const m of value?.members ?? []) if (m.name !== '@metadata') all.add(m.name);
  }
  return [...all];
}
