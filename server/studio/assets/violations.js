// What the document in an editor violates in the schema of its collection, marked while one types. The server validates the text and stores nothing.

import * as api from './api.js';
import * as json from './json.js';
import {button, count, fill, h, notice, plural} from './ui.js';

// Bounds of what is validated while one types, and shown.
export const MAX_CHECKED = 1 << 20; // characters of a text: a longer one is checked when it is saved
const MAX_LISTED = 10; // violations that are listed at first
const PAUSE = 350; // milliseconds without a change
const FORGET = 30_000; // milliseconds until a collection without a schema is asked for again

// steps returns the names and places in a JSON pointer. A place in an array is a number in items of node.
function steps(pointer, root) {
  const out = [];
  let node = root;
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    const step = node?.kind === 'array' ? Number(name) : name;
    out.push(step);
    node = node === null || node === undefined ? null : json.at(node, step);
  }
  return out;
}

// placeOf returns the range of a text that stands for the value at a JSON pointer: a scalar, or the name of the member or the bracket of what has parts.
// What is not there is at what would contain it.
export function placeOf(root, pointer) {
  const path = steps(pointer, root);
  let node = root, member = null;
  for (const step of path) {
    const next = json.at(node, step);
    if (next === null) break;
    member = node.kind === 'object' ? node.members.findLast((m) => m.name === step) : null;
    node = next;
  }
  if (node.kind !== 'object' && node.kind !== 'array') return {start: node.start, end: node.end};
  return member === null ? {start: node.start, end: node.start + 1} : {start: member.nameStart, end: member.nameEnd};
}

// checker validates the text of an editor, and marks what it finds. options: db, editor, collection() (the name, or ''), signal. node is for the page;
// soon() is to be called when the editor has checked its text, and now() when the collection is another one.
export function checker(options) { return new Checker(options); }

class Checker {
  constructor(options) {
    Object.assign(this, options, {without: new Map(), all: false});
    this.node = h('div', {class: 'document-violations', role: 'status', 'aria-live': 'polite'});
  }

  dispose() {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.ended = true;
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), PAUSE);
  }

  async now() {
    clearTimeout(this.timer);
    this.abort?.abort();
    const {editor} = this, text = editor.value, collection = this.collection();
    if (this.ended) return;
    if (collection === '' || collection.startsWith('@') || text.length > MAX_CHECKED) return this.show(null);
    if (editor.tree === null) return; // its error is shown, and the marks stay where they are until it can be read
    if (Date.now() < (this.without.get(collection) ?? 0)) return this.show(null);
    const abort = this.abort = new AbortController();
    this.signal.addEventListener('abort', () => abort.abort(), {once: true});
    let reply;
    try {
      const response = await api.request('POST', api.jay(this.db, 'schemas/validate', {collection}), {body: text, headers: {'Content-Type': 'application/json'}, signal: abort.signal, quiet: true});
      reply = await response.json();
    } catch (error) {
      if (abort.signal.aborted || this.ended) return;
      this.show(null);
      if (error.status === 422) fill(this.node, notice('careful', h('p', null, `The schema of ${collection} cannot be run here: ${error.message}.`)));
      return; // what else is wrong is said when the document is saved
    }
    if (abort.signal.aborted || this.ended || editor.value !== text) return;
    if (reply.mode === undefined) this.without.set(collection, Date.now() + FORGET);
    this.show(reply.count > 0 ? reply : null);
  }

  // show lists and marks what was found, or nothing.
  show(found) {
    const {editor} = this, {tree} = editor;
    const shown = JSON.stringify(found);
    const places = found === null || tree === null ? [] : found.violations.map((v) => placeOf(tree, v.path));
    editor.setMarks(places.map((place) => ({...place, kind: found.mode === 'refuse' ? 'm-refused' : 'm-warned'})));
    if (shown === this.shown && !this.again) return;
    Object.assign(this, {shown, again: false});
    if (found === null) return fill(this.node);
    const list = this.all ? found.violations : found.violations.slice(0, MAX_LISTED);
    const head = `${plural(found.count, 'place')} ${found.count === 1 ? 'violates' : 'violate'} the schema of ${found.collection}. `;
    fill(this.node, notice('careful', h('p', null, h('b', null, head), found.mode === 'refuse' ? 'The document is not saved like this.' : 'It can be saved: the schema only warns.'),
      h('ul', null, list.map((v) => h('li', null, h('button', {type: 'button', class: 'link', on: {click: () => this.go(v)}}, h('code', null, v.path === '' ? 'the document' : v.path), ` ${v.message}`)))),
      list.length < found.violations.length && h('p', {class: 'actions'}, button(`Show ${count(found.violations.length)}`, {run: () => { this.all = this.again = true; this.show(found); }})),
      this.all && found.violations.length < found.count && h('p', {class: 'muted'}, `${count(found.count - found.violations.length)} more are not listed.`)));
  }

  // go selects the place of a violation, as it is now.
  go(violation) {
    const {tree} = this.editor;
    if (tree === null) return this.editor.focus();
    const {start, end} = placeOf(tree, violation.path);
    this.editor.select(start, end, {focus: true});
  }
}
