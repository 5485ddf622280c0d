// A document between the server and the editor. The server answers a document with its @metadata,
// in which it has put what it knows; the editor has the part of it that a writer decides on: the
// collection, and custom members. All of it is text: no value is ever made a number.

import * as api from './api.js';
import * as json from './json.js';

// made are the members of @metadata that the server makes.
const made = new Set(['@id', '@change-vector', '@last-modified', '@etag', '@attachments', '@flags', '@index-score', '@counters', '@timeseries', '@projection']);

// MAX_EDITED is the longest text that the studio lays out and edits, in characters: much longer ones stop the tab.
export const MAX_EDITED = 4 << 20;

// TOO_LARGE is what is said of one that is longer.
export const TOO_LARGE = 'The studio shows the beginning of a document of more than 4 MiB, and does not edit it: download it, or use a program.';

// read splits a row of the server, {"id":…,"document":…} at node of text: {id, collection, changeVector,
// lastModified, bytes, text, large, …}, where text is that of the editor, laid out unless it is large.
export function read(text, node = json.parse(text)) {
  const row = {};
  for (const m of node.members) if (m.name !== 'document') row[m.name] = json.valueOf(text, m.value);
  const document = json.member(node, 'document');
  const {body, expires} = editable(text, document);
  const large = body.length > MAX_EDITED;
  return {...row, expires, large, text: large ? body : json.format(body)};
}

// editable returns the text of a document as it is edited.
export function editable(text, document) {
  let expires = '';
  const parts = [];
  for (const m of document.members) {
    if (m.name !== '@metadata' || m.value.kind !== 'object') {
      parts.push(text.slice(m.nameStart, m.nameEnd) + ':' + json.raw(text, m.value));
      continue;
    }
    expires = json.textOf(text, json.member(m.value, '@expires'));
    const kept = m.value.members.filter((one) => !made.has(one.name));
    if (kept.length > 0) parts.push('"@metadata":' + json.join(text, kept));
  }
  return {body: `{${parts.join(',')}}`, expires};
}

// load returns a document and what is known of it, or null if there is none.
export async function load(db, id, options) {
  try {
    const {text} = await api.text('GET', api.jay(db, 'document', {id}), options);
    return read(text);
  } catch (error) {
    if (error.kind === 'missing') return null;
    throw error;
  }
}

// revisions returns a page of the revisions of a document: {rows, next}.
export function revisions(db, id, before, options) {
  return api.get(api.jay(db, 'revisions', {id, before, pageSize: 50}), options);
}

// revision returns one of them, with its text.
export async function revision(db, id, changeVector, options) {
  const {text} = await api.text('GET', api.jay(db, 'revisions', {id, changeVector}), options);
  return read(text);
}

// put stores a text under an ID, or under the one that is made of it: {Id, ChangeVector}. match is
// the version that must be there: '' for none, null for any.
export async function put(db, id, text, match, options) {
  const headers = {'Content-Type': 'application/json', ...(match !== null && {'If-Match': `"${match}"`})};
  return reply(await api.text('PUT', `${api.raven(db, 'docs')}?id=${encodeURIComponent(id)}`, {...options, body: text, headers}));
}

// store stores a text under a HiLo ID of a collection: {id, changeVector}.
export async function store(db, collection, text, options) {
  return reply(await api.text('POST', api.jay(db, 'documents', {collection}), {...options, body: text, headers: {'Content-Type': 'application/json'}}));
}

function reply({text}) {
  return JSON.parse(text); // an ID and a version: no document
}

// remove deletes a document that has this version.
export function remove(db, id, match, options) {
  return api.request('DELETE', `${api.raven(db, 'docs')}?id=${encodeURIComponent(id)}`, {...options, headers: match === null ? {} : {'If-Match': `"${match}"`}});
}

// problem says what keeps a text from being a document, or returns null: {message, offset}.
export function problem(text) {
  const error = json.check(text);
  if (error !== null) return error;
  const root = json.parse(text);
  if (root.kind !== 'object') return new json.JSONError(text, root.start, 'expected a document, which is an object', `a value of the kind ${root.kind}`);
  const metadata = json.member(root, '@metadata');
  if (metadata !== null && metadata.kind !== 'object') return new json.JSONError(text, metadata.start, 'expected an object for @metadata', `a value of the kind ${metadata.kind}`);
  return null;
}

// refusal finds the place in a text that an error of the server names by its byte, or returns null.
export function refusal(error, text) {
  const m = /invalid document: (.*) \(byte (\d+)\)$/.exec(error.message);
  if (m === null) return null;
  const before = new TextDecoder().decode(new TextEncoder().encode(text).slice(0, Number(m[2])));
  const {line, column} = json.position(text, before.length);
  return {offset: before.length, line, column, message: `line ${line}, column ${column}: ${m[1]}`};
}

// collectionOf returns the collection that a text names, or ''.
export function collectionOf(text) {
  try {
    return json.textOf(text, json.at(json.parse(text), '@metadata', '@collection'));
  } catch {
    return '';
  }
}

// withCollection returns a text that names another collection, or none for ''. Nothing else in
// it changes.
export function withCollection(text, collection) {
  const root = json.parse(text);
  const name = json.quote(collection);
  const metadata = json.member(root, '@metadata');
  if (metadata === null || metadata.kind !== 'object') {
    if (collection === '' || root.kind !== 'object') return text;
    const last = root.members[root.members.length - 1];
    const member = `"@metadata": {\n    "@collection": ${name}\n  }`;
    if (last === undefined) return `${text.slice(0, root.start)}{\n  ${member}\n}${text.slice(root.end)}`;
    return `${text.slice(0, last.value.end)},\n  ${member}${text.slice(last.value.end)}`;
  }
  const value = json.member(metadata, '@collection');
  if (value !== null && collection !== '') return text.slice(0, value.start) + name + text.slice(value.end);
  if (collection !== '') {
    const first = metadata.members[0];
    return `${text.slice(0, metadata.start + 1)}${first ? '' : '\n    '}"@collection": ${name}${first ? ', ' : '\n  '}${text.slice(metadata.start + 1).trimStart()}`;
  }
  if (value === null) return text;
  const kept = metadata.members.filter((m) => m.name !== '@collection');
  if (kept.length > 0) return text.slice(0, metadata.start) + json.layOut(json.parse(json.join(text, kept)), json.join(text, kept), '  ', 1) + text.slice(metadata.end);
  const others = root.members.filter((m) => m.name !== '@metadata');
  return json.format(json.join(text, others));
}
