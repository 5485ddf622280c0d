// A new document. What is typed as its ID decides how the final one is made: the five ways are
// explained beside the field, with the ID that this request becomes. The address has the request
// (id), the collection, or the document that is cloned.

import * as api from '../api.js';
import * as json from '../json.js';
import {TOO_LARGE, collectionOf, load, problem, put, refusal, store, withCollection} from '../document.js';
import {checker} from '../violations.js';
import {editor} from '../editor.js';
import {button, copy, errorBox, field, fill, h, link, notice} from '../ui.js';

// The ways to make an ID, in the order of the guide.
const ways = [
  {id: 'hilo', title: 'HiLo', text: 'The next number of a range that the server has reserved. The usual choice.'},
  {id: 'server-side', title: 'Server-side', text: 'Ends with /: the number of this write, in 19 digits, always rising. For logs.'},
  {id: 'identity', title: 'Identity', text: 'Ends with |: the next number of a counter: 1, 2, 3 … For invoices.'},
  {id: 'semantic', title: 'As it is', text: 'Anything else: the ID is what you type.'},
  {id: 'guid', title: 'GUID', text: 'Empty: random, and the same nowhere else.'},
];

export const page = {
  title: 'New document',
  mount(container, params, app) {
    const shown = new NewPage(container, params, app);
    shown.start();
    return () => {
      shown.editor?.dispose();
      shown.schema?.dispose();
    };
  },
};

class NewPage {
  constructor(container, params, app) {
    Object.assign(this, {container, app, db: params.db, query: params.query});
    this.way = 'guid';
    this.collections = [];
    this.template = ''; // the text before anything was typed
    this.saved = null; // what the text was when it was saved last
    this.asked = 0;
  }

  async start() {
    const {app, query} = this;
    if (!app.can('write')) return app.failed(new api.ApiError('Your rights allow no writing here.', {kind: 'forbidden'}));
    this.message = h('div', {class: 'document-message'});
    this.id = h('input', {type: 'text', class: 'mono', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', placeholder: 'users/ann', value: query.get('id') ?? '', on: {input: () => { this.changed(); this.typed(); }}});
    this.list = h('datalist', {id: 'new-collections'});
    this.collection = h('input', {type: 'text', list: 'new-collections', autocomplete: 'off', spellcheck: 'false', placeholder: 'Users', value: query.get('collection') ?? '', on: {input: () => { this.changed(); this.chosen = true; this.foretell(); this.note(); this.schema.soon(); }}});
    this.chosen = query.has('collection');
    this.becomes = h('p', {class: 'new-becomes', role: 'status', 'aria-live': 'polite'});
    this.rows = new Map(ways.map((way) => [way.id, h('button', {type: 'button', class: 'new-way', role: 'radio', 'aria-checked': 'false', tabindex: -1, data: {way: way.id}, on: {click: () => { this.changed(); this.choose(way.id); }}},
      h('span', {class: 'new-way-title'}, way.title), h('code', {class: 'new-way-form'}), h('span', {class: 'muted'}, way.text))]));
    this.saveButton = button('Save', {kind: 'primary', key: 'ctrl+s', run: () => { this.save(); }}); // save says when it can be used again
    this.editor = editor({label: 'Text of the new document', value: '{\n  \n}', input: () => this.changed(), check: () => { this.showCollection(); this.schema?.soon(); }, hint: 'A JSON object.'});
    // What one has not begun to write has no mistakes.
    this.schema = checker({db: this.db, editor: this.editor, signal: app.signal, collection: () => (this.dirty() ? this.collectionName() : '')});
    const choices = h('div', {class: 'new-ways', role: 'radiogroup', 'aria-label': 'How the ID is made', on: {keydown: (event) => this.arrow(event)}}, [...this.rows.values()]);
    fill(this.container, h('div', {class: 'head'}, h('h1', null, 'New document'), h('div', {class: 'buttons'}, this.saveButton)), this.message,
      h('div', {class: 'new'}, h('div', {class: 'new-form'}, field('ID', this.id), this.becomes, choices, field('Collection', this.collection, 'What kind of document it is. Queries and lists go by it.'), this.list),
        h('div', {class: 'document-main'}, this.schema.node, h('div', {class: 'document-view'}, this.editor.node))));
    this.container.classList.add('document-page');
    app.unsaved(() => this.dirty());
    app.keys([{key: 'ctrl+s', text: 'Save', typing: true, run: () => { this.save(); }}]);
    app.commands([{text: 'Save', hint: 'ctrl+s', run: () => this.save()}, {text: 'Format the text', hint: 'alt shift f', run: () => { this.editor.format(); }},
      ...ways.map((way) => ({text: `ID: ${way.title}`, hint: '', run: () => { this.changed(); this.choose(way.id); }}))]);
    await Promise.all([this.loadCollections(), this.begin()]);
    if (app.signal.aborted) return;
    const request = query.get('id');
    if (this.id.value !== (request ?? '')) return; // an ID was typed meanwhile
    if (query.get('way') === 'hilo' || (request === null && this.collectionName() !== '')) this.choose('hilo', false);
    else this.typed();
    if (this.way === 'hilo') this.focusText();
    else this.id.focus();
  }

  // begin puts the first text into the editor: that of the document that is cloned, or one with the
  // fields that others of the collection have.
  async begin() {
    const {app, db, query} = this;
    const source = query.get('clone');
    try {
      if (source !== null) {
        const doc = await load(db, source, {signal: app.signal});
        if (doc === null) fill(this.message, notice('careful', h('p', null, `There is no document ${source} any more.`)));
        else if (doc.large) fill(this.message, notice('careful', h('p', null, TOO_LARGE)));
        else this.setTemplate(doc.text);
        return;
      }
      const collection = query.get('collection');
      if (!collection) return this.setTemplate('{\n  \n}');
      const {fields, documents} = await api.get(api.jay(db, 'fields', {collection}), {signal: app.signal});
      const usual = fields.filter((f) => !/[.[]/.test(f.path.replace(/'(?:[^'\\]|\\.)*'/g, '')) && f.documents * 2 >= documents).slice(0, 40);
      this.setTemplate(usual.length === 0 ? '{\n  \n}' : json.format(`{${usual.map((f) => `${json.quote(nameOf(f.path))}:${blank(f.types)}`).join(',')}}`));
    } catch (error) {
      if (error.name !== 'AbortError') fill(this.message, errorBox(error));
    }
  }

  setTemplate(text) {
    if (this.editor.value.replace(/\s/g, '') !== '{}') return; // something was typed meanwhile
    this.template = text;
    this.editor.value = text;
    this.showCollection();
  }

  async loadCollections() {
    try {
      const {collections} = await api.get(api.jay(this.db, 'collections'), {signal: this.app.signal});
      this.collections = collections.map((c) => c.name).filter((name) => !name.startsWith('@'));
      fill(this.list, this.collections.map((name) => h('option', {value: name})));
      if (!this.chosen) this.guess();
    } catch { /* the field takes any name without a list, too */ }
  }

  // ---- The ID

  // choose makes another way the one that is used, by writing the request that asks for it.
  choose(way, focus = true) {
    const stem = this.id.value.replace(/[|/\s]+$/, '') || this.prefix();
    this.way = way;
    this.id.value = {hilo: '', 'server-side': `${stem.replace(/\/.*$/, '')}/`, identity: `${stem.replace(/\/.*$/, '')}|`, semantic: stem.includes('/') ? stem : `${stem}/`, guid: ''}[way];
    this.id.placeholder = way === 'hilo' ? 'made by the server, or type one' : way === 'guid' ? 'empty: a GUID' : 'users/ann';
    if (way === 'hilo' && this.collectionName() === '') this.guess();
    this.mark();
    this.guess();
    this.note();
    this.foretell();
    if (!focus) return;
    if (way === 'hilo' && this.collectionName() === '') this.collection.focus();
    else if (way !== 'guid' && way !== 'hilo') {
      this.id.focus();
      this.id.setSelectionRange(this.id.value.length, this.id.value.length);
    }
  }

  // prefix is what the ID of a document of the chosen collection begins with.
  prefix() {
    const name = this.collectionName();
    if (name === '') return 'users';
    return (name.match(/\p{Lu}/gu) ?? []).length <= 1 ? name.toLowerCase() : name;
  }

  typed() {
    const text = this.id.value;
    this.way = text.trim() === '' ? 'guid' : text.endsWith('|') ? 'identity' : text.endsWith('/') ? 'server-side' : 'semantic';
    this.mark();
    this.guess();
    this.schema?.soon();
    this.note();
    this.asked++; // what is on its way is foretold of another ID
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.foretell(), 120);
  }

  arrow(event) {
    const step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const i = ways.findIndex((way) => way.id === document.activeElement?.dataset.way);
    const next = ways[(i + step + ways.length) % ways.length].id;
    this.changed();
    this.choose(next, false);
    this.rows.get(next).focus();
  }

  mark() {
    const stem = this.prefix();
    const example = {hilo: `${stem}/33-A`, 'server-side': `${stem}/`, identity: `${stem}|`, semantic: `${stem}/ann`, guid: '3f2b8c1e-6d0a-…'};
    for (const [way, row] of this.rows) {
      row.setAttribute('aria-checked', String(way === this.way));
      row.tabIndex = way === this.way ? 0 : -1;
      row.querySelector('.new-way-form').textContent = example[way];
    }
  }

  // foretell asks the server which ID the request becomes.
  async foretell() {
    const mine = ++this.asked;
    this.taken = false;
    if (this.way === 'hilo' && this.collectionName() === '') return fill(this.becomes, 'Name the collection: its name begins the ID.');
    try {
      // An empty ID is one, too: api.query would leave it out.
      const next = await api.get(this.way === 'hilo' ? api.jay(this.db, 'nextid', {hilo: true, collection: this.collectionName()}) : `${api.jay(this.db, 'nextid')}?id=${encodeURIComponent(this.id.value)}`, {signal: this.app.signal});
      if (mine !== this.asked) return;
      this.id.removeAttribute('aria-invalid');
      this.taken = next.taken;
      const shown = (id) => h('b', {class: 'mono'}, id);
      switch (next.strategy) {
        case 'semantic':
          if (next.taken) return fill(this.becomes, h('span', {class: 'state careful'}, 'In use'), ' ', link(this.app.address('/db/:db/doc', {db: this.db}, {id: next.id}), {class: 'mono'}, next.id), ' is there already, and is not replaced from here.');
          return fill(this.becomes, 'Will be saved as ', shown(next.id), '.');
        case 'guid': return fill(this.becomes, 'Will be saved under a random GUID of 36 characters.');
        case 'hilo': return fill(this.becomes, 'Will be saved as ', shown(next.form), ' with the next number of the range.');
        default: return fill(this.becomes, 'Will be saved as ', shown(next.id), ', unless another write comes first.');
      }
    } catch (error) {
      if (mine !== this.asked || error.name === 'AbortError') return;
      if (this.way !== 'hilo') this.id.setAttribute('aria-invalid', 'true');
      fill(this.becomes, h('span', {class: 'state wrong'}, error.message));
    }
  }

  note() {
    this.app.note({id: this.way === 'hilo' ? null : this.id.value, way: this.way === 'hilo' ? 'hilo' : null, collection: this.chosen || this.way === 'hilo' ? this.collection.value : null});
  }

  // ---- The collection

  // collectionName is that of the text, or of the field.
  collectionName() {
    return (this.named || this.collection.value).trim();
  }

  // guess proposes the collection that the ID suggests, until one is chosen.
  guess() {
    if (this.chosen || this.named || this.way === 'hilo') return;
    const m = /^(\p{L}[^/|]*)[/|]/u.exec(this.id.value);
    const stem = m ? m[1] : '';
    this.collection.value = stem === '' ? '' : this.collections.find((name) => name.toLowerCase() === stem.toLowerCase()) ?? stem[0].toUpperCase() + stem.slice(1);
  }

  // showCollection shows the collection that the text names.
  showCollection() {
    const before = this.named;
    this.named = collectionOf(this.editor.value);
    this.collection.disabled = this.named !== '';
    if (this.named !== '') this.collection.value = this.named;
    else if (before) this.collection.value = '';
    if (before !== this.named) {
      this.mark();
      if (this.way === 'hilo') this.foretell();
    }
  }

  focusText() {
    const {editor: shown} = this;
    shown.focus();
    const empty = /""|: (0|false|null|\[\]|\{\})/.exec(shown.value);
    const caret = empty === null ? shown.value.indexOf('\n  ') + 3 : empty.index + (empty[0] === '""' ? 1 : 2);
    shown.select(Math.max(0, caret), Math.max(0, caret));
  }

  dirty() {
    const text = this.editor.value;
    return text !== this.template && text !== this.saved && text.replace(/\s/g, '') !== '{}';
  }

  // changed makes it possible to save again: what would be stored now is another document.
  changed() {
    this.saveButton.disabled = false;
  }

  // ---- Saving

  // save stores the document. What is stored is not stored once more, also not by the key, before something has changed.
  async save() {
    if (this.saving || this.saveButton.disabled) return;
    const text = this.editor.value;
    const wrong = problem(text);
    if (wrong !== null) {
      this.editor.setError(wrong);
      this.editor.goToError();
      return;
    }
    const {way} = this, request = this.id.value; // they may be others when the reply comes
    this.saving = true;
    this.saveButton.disabled = true;
    this.saveButton.setAttribute('aria-busy', 'true');
    try {
      const collection = this.collectionName();
      const whole = this.named || collection === '' ? text : withCollection(text, collection);
      this.sent = whole;
      let id;
      if (way === 'hilo') {
        if (collection === '') {
          this.collection.focus();
          fill(this.message, errorBox({message: 'A HiLo ID needs a collection.', remedy: 'Name it: its name begins the ID.'}));
          this.saveButton.disabled = false;
          return;
        }
        ({id} = await store(this.db, collection, whole));
      } else {
        ({Id: id} = await put(this.db, request, whole, way === 'semantic' ? '' : null));
      }
      this.saved = text;
      this.showSaved(id);
    } catch (error) {
      this.saveButton.disabled = false;
      if (error.kind === 'conflict' && way === 'semantic' && error.fields.ActualChangeVector !== undefined) {
        fill(this.message, errorBox({message: `Not saved: ${request} is there already.`, remedy: 'Choose another ID, or change the document that is there.'},
          link(this.app.address('/db/:db/doc', {db: this.db}, {id: request}), {class: 'button', target: '_blank'}, 'Open it beside this page')));
        this.id.focus();
      } else if (error.name !== 'AbortError') {
        const refused = refusal(error, this.sent);
        if (refused !== null && this.sent === text) this.editor.setError(refused);
        fill(this.message, errorBox(error));
      }
    } finally {
      this.saving = false;
      this.saveButton.removeAttribute('aria-busy');
    }
  }

  showSaved(id) {
    const open = link(this.app.address('/db/:db/doc', {db: this.db}, {id}), {class: 'mono new-saved'}, id);
    fill(this.message, notice('fine', h('p', null, 'Saved as ', open, ' ', copy(id, 'Copy the ID')),
      h('p', {class: 'actions'}, link(this.app.address('/db/:db/doc', {db: this.db}, {id}), {class: 'button'}, 'Open it'), button('Write another', {run: () => this.another()}))));
    open.focus();
    if (this.way === 'semantic') fill(this.becomes); else this.foretell(); // its own ID is no mistake
  }

  another() {
    fill(this.message);
    this.saveButton.disabled = false;
    this.saved = this.editor.value;
    if (this.way === 'semantic') {
      this.id.focus();
      this.id.select();
    } else {
      this.focusText();
    }
  }
}

// nameOf returns the name of a path of one step.
function nameOf(path) {
  return path.startsWith("'") ? path.slice(1, -1).replace(/\\(.)/g, (_, c) => ({n: '\n', r: '\r', t: '\t'})[c] ?? c) : path;
}

// blank is an empty value of a type.
function blank(types) {
  const type = types.find((t) => t !== 'null') ?? 'null';
  return {string: '""', number: '0', boolean: 'false', array: '[]', object: '{}'}[type] ?? 'null';
}
