// A document: its text beside what is known of it, its revisions, its attachments. The address
// has the ID, the view (text or revisions), and the two revisions that are compared.

import * as api from '../api.js';
import * as diff from '../diff.js';
import * as json from '../json.js';
import {TOO_LARGE, collectionOf, load, problem, put, refusal, remove, revision, revisions} from '../document.js';
import {checker} from '../violations.js';
import {compare, compare3} from '../compare.js';
import {editor} from '../editor.js';
import {button, bytes, confirm, copy, count, dialog, downloads, errorBox, fill, h, icon, link, menu, notice, patience, plural, progress, save as saveFile, time, toast} from '../ui.js';

export const page = {
  title: (params) => params.query.get('id') ?? 'Document',
  mount(container, params, app) {
    const shown = new DocumentPage(container, params, app);
    shown.start();
    return () => shown.end();
  },
};

class DocumentPage {
  constructor(container, params, app) {
    Object.assign(this, {container, app, db: params.db, id: params.query.get('id') ?? '', query: params.query});
    this.doc = null; // as it was loaded
    this.base = ''; // the text with which the editing began
    this.version = ''; // that must be there when it is saved: '' for none
    this.writes = app.can('write');
  }

  async start() {
    const {app} = this;
    if (this.id === '') return app.failed(new api.ApiError('The address names no document.', {kind: 'refused', remedy: 'Choose one in the list of documents.'}));
    this.editor = editor({
      label: `Document ${this.id}`, readOnly: !this.writes,
      input: () => this.changed(), check: () => { this.warn(); this.schema?.soon(); }, hint: 'The text of the document.',
    });
    this.schema = checker({db: this.db, editor: this.editor, signal: app.signal, collection: () => (this.doc === null || this.doc.large ? '' : collectionOf(this.editor.value) || this.doc.collection)});
    this.message = h('div', {class: 'document-message'});
    this.warning = h('div', {class: 'document-warning'});
    this.head = h('div', {class: 'head document-head'});
    this.about = h('aside', {class: 'document-about', 'aria-label': 'About the document'});
    this.view = h('div', {class: 'document-view'});
    const done = patience(this.container);
    let doc;
    try {
      doc = await load(this.db, this.id, {signal: app.signal});
    } catch (error) {
      done();
      return app.failed(error);
    }
    done();
    if (app.signal.aborted) return;
    fill(this.container, this.head, this.message, h('div', {class: 'document'}, h('div', {class: 'document-main'}, this.warning, this.schema.node, this.view), this.about));
    this.container.classList.add('document-page');
    app.unsaved(() => this.dirty());
    this.bind();
    if (doc === null) return this.missing();
    this.take(doc);
    this.show(this.query.get('view') === 'revisions' ? 'revisions' : 'text');
    this.seen = () => { if (document.visibilityState === 'visible') this.look(); };
    document.addEventListener('visibilitychange', this.seen);
    addEventListener('focus', this.seen);
  }

  end() {
    this.editor?.dispose();
    this.schema?.dispose();
    this.ended = true;
    if (this.seen) {
      document.removeEventListener('visibilitychange', this.seen);
      removeEventListener('focus', this.seen);
    }
  }

  bind() {
    const {app} = this;
    const keys = [{key: 'ctrl+f', text: 'Find in the text', typing: true, run: () => { if (this.shown !== 'text' || this.doc === null) return false; this.editor.find(); }},
      {key: 'v', text: 'Revisions, or the text', run: () => this.show(this.shown === 'text' ? 'revisions' : 'text', true)}];
    const commands = [{text: 'Format the text', hint: 'alt shift f', run: () => { this.editor.format(); }},
      {text: 'Fold or unfold all', hint: '', run: () => this.editor.foldAll()},
      {text: 'Revisions', hint: 'v', run: () => this.show('revisions', true)}, {text: 'Download the document', hint: '', run: () => this.download()}];
    if (this.writes) {
      keys.unshift({key: 'ctrl+s', text: 'Save', typing: true, run: () => { this.save(); }}, {key: 'e', text: 'Edit the text', run: () => { this.show('text', true); this.editor.focus(); }},
        {key: 'c', text: 'Clone', run: () => { this.clone(); }});
      commands.unshift({text: 'Save', hint: 'ctrl+s', run: () => this.save()}, {text: 'Clone', hint: 'c', run: () => this.clone()}, {text: 'Delete', hint: '', run: () => this.delete()});
    }
    app.keys(keys);
    app.commands(commands);
  }

  // take makes a loaded document the one that is edited.
  take(doc) {
    this.doc = doc;
    this.id = doc.id;
    this.version = doc.changeVector;
    this.base = doc.large ? '' : doc.text; // a large one is not edited
    this.editor.value = this.base;
    this.describe();
  }

  // beginning shows the part of a large document that a browser lays out at once.
  beginning() {
    const text = this.doc.text.slice(0, 64 << 10);
    return h('div', null, notice('careful', h('p', null, TOO_LARGE), h('p', {class: 'actions'}, button('Download', {run: () => this.download()}))),
      h('pre', {class: 'document-beginning', tabindex: 0, 'aria-label': 'The beginning of the document'}, text));
  }

  // dirty reports whether something would be lost. Spaces are not.
  dirty() {
    if (!this.editor || this.editor.value === this.base) return false;
    const {tree} = this.editor;
    if (tree === null || this.base === '') return true;
    return json.minify(this.editor.value) !== json.minify(this.base);
  }

  changed() {
    this.saveButton?.classList.toggle('primary', this.editor.value !== this.base);
    this.dot.hidden = this.editor.value === this.base;
  }

  // warn says what is valid, and still seldom meant.
  warn() {
    const {tree} = this.editor;
    const twice = tree !== null && this.editor.value.length < 1 << 20 ? json.duplicates(tree) : [];
    if (twice.length === 0) return fill(this.warning);
    const at = json.position(this.editor.value, twice[0].nameStart);
    fill(this.warning, notice('careful', h('p', null, 'The name ', h('code', null, json.quote(twice[0].name)), ` is there twice: readers take the last one. `,
      h('button', {type: 'button', class: 'link', on: {click: () => this.editor.select(twice[0].nameStart, twice[0].nameEnd, {focus: true})}}, `line ${at.line}`))));
  }

  // missing says that there is no document. There is no text either, so no key saves one.
  missing() {
    this.doc = null;
    this.shown = 'text';
    this.base = this.editor.value;
    this.version = '';
    fill(this.head, h('h1', {class: 'mono'}, this.id));
    this.describe();
    const {app} = this;
    fill(this.view, h('section', {class: 'empty'}, h('h2', null, 'There is no document with this ID.'),
      h('p', {class: 'muted'}, 'It may have been deleted, or the ID may be misspelt. Case does not matter.'),
      h('div', {class: 'buttons start'}, this.writes && link(app.address('/db/:db/new', {db: this.db}, {id: this.id}), {class: 'button primary'}, 'Write it'),
        link(app.address('/db/:db/documents', {db: this.db}), {class: 'button'}, 'All documents'),
        button('Revisions', {run: () => this.showRevisions()}))));
    fill(this.about);
  }

  // ---- Head and about

  describe() {
    const {app, doc, db} = this;
    if (doc === null) return;
    const list = app.address('/db/:db/documents', {db}, {collection: doc.collection});
    this.dot = h('span', {class: 'document-dot', title: 'Not saved', role: 'img', 'aria-label': 'Not saved', hidden: this.editor.value === this.base});
    this.saveButton = this.writes && !doc.large && button('Save', {key: 'ctrl+s', run: () => this.save()});
    fill(this.head,
      h('h1', null, link(list, {class: 'muted'}, doc.collection), h('span', {class: 'muted document-slash', 'aria-hidden': 'true'}, '›'), h('span', {class: 'mono document-id'}, doc.id)), copy(doc.id, 'Copy the ID'), this.dot,
      h('div', {class: 'buttons'}, this.saveButton,
        this.writes && !doc.large && link(app.address('/db/:db/new', {db}, {clone: doc.id}), {class: 'button'}, 'Clone'),
        this.writes && button('Delete', {kind: 'danger', run: () => this.delete()}),
        button('', {icon: 'more', kind: 'quiet', label: 'More', 'aria-haspopup': 'menu', run: (event, node) => { this.more(node); }})));
    const item = (name, ...value) => [h('dt', null, name), h('dd', null, ...value)];
    fill(this.about, h('dl', {class: 'document-facts'},
      item('Version', h('span', {class: 'mono document-version', title: doc.changeVector, tabindex: 0}, shortVector(doc.changeVector)), copy(doc.changeVector, 'Copy the change vector')),
      item('Written', focusable(time(doc.lastModified))),
      item('Collection', link(list, null, doc.collection)),
      item('Size', bytes(doc.bytes)),
      doc.expires !== '' && item('Expires', focusable(time(doc.expires)))),
    this.section('Refers to', doc.references.length > 0
      ? h('ul', {class: 'document-links'}, doc.references.map((id) => h('li', null, link(app.address('/db/:db/doc', {db}, {id}), {class: 'mono'}, id))))
      : h('p', {class: 'muted'}, 'No text in it is the ID of another document.'), doc.moreReferences && h('p', {class: 'muted'}, 'There may be more.')),
    this.section('Revisions', h('p', null, doc.revisions > 0
      ? button(doc.revisions >= 1000 ? '1,000 or more' : plural(doc.revisions, 'version'), {run: () => this.show(this.shown === 'revisions' ? 'text' : 'revisions', true), 'aria-expanded': String(this.shown === 'revisions')})
      : h('span', {class: 'muted'}, doc.keepsRevisions ? 'None yet: the next write keeps this version.' : 'None are kept of this collection.'))),
    this.attachments());
  }

  section(title, ...children) { return h('section', null, h('h2', null, title), ...children); }

  more(anchor) {
    menu(anchor, [
      {text: 'Load again', icon: 'refresh', run: () => this.reload()},
      {text: 'Download', icon: 'download', run: () => this.download()},
      {text: 'Copy as curl', icon: 'copy', run: () => navigator.clipboard.writeText(`curl '${location.origin}${api.jay(this.db, 'document', {id: this.id})}'`).then(() => toast('Copied.'))},
      {text: 'Query its collection', icon: 'query', run: () => this.app.go(this.app.address('/db/:db/query', {db: this.db}, {q: `from ${this.doc.collection === '' ? '@all_docs' : rqlName(this.doc.collection)} where id() = '${this.id.replace(/'/g, "''")}'`}))},
    ]);
  }

  download() {
    saveFile(this.id.replace(/[^\p{L}\p{N}._-]+/gu, '-').slice(0, 100) + '.json', this.doc?.large ? this.doc.text : this.editor.value);
  }

  show(view, push = false) {
    if (view === 'text' && this.doc === null) return this.missing();
    this.shown = view;
    this.app.note({view: view === 'text' ? null : view, ...(view === 'text' && {from: null, to: null})}, {push});
    if (view === 'revisions') this.showRevisions();
    else {
      fill(this.view, this.doc?.large ? this.beginning() : this.editor.node);
      this.describe();
    }
  }

  fail(error, ...actions) {
    if (error.name === 'AbortError') return;
    fill(this.message, errorBox(error, ...actions.filter(Boolean), button('Close', {kind: 'quiet', run: () => fill(this.message)})));
  }

  // ---- Writing

  async save() {
    if (!this.writes || this.doc === null || this.doc.large) return false;
    if (this.saving) { // what was typed meanwhile is saved when that has ended
      this.again = true;
      return false;
    }
    const text = this.editor.value;
    const wrong = problem(text);
    if (wrong !== null) {
      this.show('text');
      this.editor.setError(wrong);
      this.editor.goToError();
      return false;
    }
    this.saving = true;
    const before = this.version;
    try {
      const {Id, ChangeVector} = await put(this.db, this.id, text, before);
      if (this.follows(before, ChangeVector)) this.base = text;
      fill(this.message);
      toast(`Saved ${Id}.`);
      if (!this.ended) await this.refresh();
      return true;
    } catch (error) {
      if (error.kind === 'conflict' && error.fields.ActualChangeVector !== undefined) await this.conflict();
      else {
        const refused = refusal(error, text);
        if (refused !== null) this.editor.setError(refused);
        this.fail(error, refused !== null && button('Go there', {run: () => this.editor.goToError()}));
      }
      return false;
    } finally {
      this.saving = false;
      if (this.again && !this.ended) {
        this.again = false;
        if (this.editor.value !== this.base) this.save();
      }
    }
  }

  // follows takes over the version that a write of this page has made of the version before, and reports whether the page had
  // that one until now. If it has loaded another one meanwhile, that is the version of the text that it shows.
  follows(before, after) {
    if (this.version !== before) return false;
    this.version = after;
    return true;
  }

  // refresh loads what is known of the document, and leaves the text and its version alone: it says if a newer one is stored.
  async refresh() {
    const {version} = this;
    try {
      const doc = await load(this.db, this.id);
      if (doc === null || this.ended || this.version !== version) return;
      if (doc.changeVector !== this.version) return this.saving ? undefined : this.newer();
      this.doc = doc;
      this.describe();
      this.changed();
    } catch (error) {
      this.fail(error);
    }
  }

  async reload() {
    if (this.dirty() && !await confirm({title: 'Load the document again?', text: 'What you have typed is replaced by what is stored.', action: 'Load', kind: 'danger'})) return;
    const text = this.editor.value;
    try {
      const doc = await load(this.db, this.id, {signal: this.app.signal});
      if (doc === null) return this.missing();
      if (this.editor.value !== text) return doc.changeVector === this.version ? undefined : this.newer(); // what was typed meanwhile stays
      fill(this.message);
      this.take(doc);
      this.show(this.shown);
    } catch (error) {
      this.fail(error);
    }
  }

  // look asks whether the document was changed by another writer, when one comes back to the page.
  async look() {
    if (this.looking || this.saving || this.doc === null) return;
    this.looking = true;
    const {version} = this;
    const late = () => this.saving || this.version !== version; // the page itself has written meanwhile
    try {
      const {etag} = await api.text('HEAD', api.raven(this.db, 'docs', {id: this.id}), {signal: this.app.signal});
      if (etag !== version && !late()) this.newer();
    } catch (error) {
      if (error.kind === 'missing' && !late()) fill(this.message, notice('careful', h('p', null, 'The document was deleted meanwhile. Its text is still here: ', this.writes && button('Write it again', {run: () => { this.version = ''; this.save(); }}))));
    } finally {
      this.looking = false;
    }
  }

  newer() {
    fill(this.message, notice('careful', h('p', null, 'Another writer has changed this document since you opened it.'),
      h('p', {class: 'actions'}, this.dirty() ? button('Compare with mine', {run: () => this.conflict()}) : button('Load the newer version', {run: () => this.reload()}))));
  }

  // conflict shows what one began with, what another writer has made of it, and what one has typed.
  async conflict() {
    let theirs;
    try {
      theirs = await load(this.db, this.id);
    } catch (error) {
      return this.fail(error);
    }
    if (theirs?.large) return this.fail({message: 'Another writer has made this document larger than what is edited here. Your text is still in the editor.', remedy: TOO_LARGE});
    const yours = this.editor.value;
    const base = this.base;
    const close = () => {
      fill(this.message);
      this.container.classList.remove('document-conflict');
      this.show('text');
    };
    this.container.classList.add('document-conflict');
    const yoursText = json.check(yours) === null ? json.format(yours) : yours;
    if (theirs === null) {
      fill(this.message, notice('careful', h('p', null, h('b', null, 'Not saved: '), 'another writer has deleted the document meanwhile. Your text is still here.'), h('p', {class: 'actions'},
        button('Keep it deleted', {run: () => { this.base = this.editor.value; this.app.go(this.app.address('/db/:db/documents', {db: this.db}), {force: true}); }}),
        button('Save mine as a new document', {kind: 'primary', run: () => { this.version = ''; close(); return this.save(); }}),
        button('Back to the text', {kind: 'quiet', run: close}))));
      return;
    }
    const ways = h('div', {class: 'conflict-ways'},
      button('Keep theirs', {title: 'The editor gets their version; undo brings yours back', run: () => {
        this.version = theirs.changeVector;
        this.base = theirs.text;
        this.doc = theirs;
        close();
        this.editor.replace(theirs.text);
        this.changed();
        toast('Theirs is in the editor. Undo brings yours back.');
      }}),
      button('Save mine over it', {kind: 'danger', run: () => {
        this.version = theirs.changeVector;
        close();
        return this.save();
      }}),
      button('Edit the merge', {kind: 'primary', disabled: json.check(yours) !== null, run: () => {
        this.version = theirs.changeVector;
        this.base = theirs.text;
        this.doc = theirs;
        close();
        this.merge(base, theirs.text, yours);
      }}),
      button('Back to the text', {kind: 'quiet', run: close}));
    fill(this.message);
    fill(this.view, h('section', {class: 'conflict', 'aria-label': 'Conflict'},
      h('div', {class: 'box careful'}, icon('warn'), h('div', null, h('p', {class: 'what'}, 'Not saved: another writer was quicker.'),
        h('p', null, 'Nothing is lost. Choose what is to be stored; the merge takes every change that only one of you has made.'), ways)),
      compare3(base, theirs.text, yoursText, ['You began with', h('span', null, 'Theirs, written ', time(theirs.lastModified)), 'Yours'])));
    ways.querySelector('.primary')?.focus();
  }

  // merge puts the merged text into the editor, and lists what both writers have changed.
  merge(base, theirs, yours) {
    const {text, conflicts} = diff.merge(base, theirs, yours);
    this.editor.replace(text, 0);
    this.changed();
    if (conflicts.length === 0) {
      fill(this.message, notice('fine', h('p', null, 'Merged: no member was changed by both of you. Look at it, and save. Undo brings yours back.')));
      return;
    }
    const shown = (value) => (value === null ? h('i', null, 'removed') : h('code', null, value.length > 60 ? value.slice(0, 60) + '…' : value));
    fill(this.message, notice('careful', h('p', null, h('b', null, plural(conflicts.length, 'value')), ' changed by both of you. The merge has yours; choose, and save.'),
      h('ul', {class: 'conflict-values'}, conflicts.map((c) => h('li', null, h('code', null, c.path), ': yours ', shown(c.yours), ', theirs ', shown(c.theirs), ' ',
        c.yours !== null && c.theirs !== null && button('Take theirs', {run: (event, node) => this.takeTheirs(c, node)}))))));
  }

  takeTheirs(conflict, node) {
    const {tree} = this.editor;
    const target = tree === null ? null : json.at(tree, ...conflict.steps);
    if (target === null) return toast('The text has changed: this value is no longer there.', {kind: 'wrong'});
    const now = this.editor.value;
    const value = json.layOut(json.parse(conflict.theirs), conflict.theirs, '  ', depthOf(conflict.steps));
    this.editor.replace(now.slice(0, target.start) + value + now.slice(target.end), target.start);
    node.disabled = true;
    fill(node, 'Theirs taken');
  }

  clone() { this.app.go(this.app.address('/db/:db/new', {db: this.db}, {clone: this.id})); }

  async delete() {
    const {doc, app} = this;
    if (doc === null || !this.writes) return;
    // Undo writes the text again. Attachments, and what was typed and not saved, it cannot bring back. What is known of the
    // document may be of the version before, if it was written just now.
    const known = doc.changeVector === this.version;
    const undoable = known && doc.keepsRevisions && doc.attachments.length === 0 && !this.dirty();
    if (!undoable) {
      const lost = [this.dirty() && 'what you have typed', doc.attachments.length > 0 && plural(doc.attachments.length, 'attachment'), !doc.keepsRevisions && 'every version of it', !known && 'what was written last'].filter(Boolean).join(', ');
      if (!await confirm({title: `Delete ${doc.id}?`, text: `This cannot be undone: ${lost} will be gone.`})) return;
    }
    try {
      await remove(this.db, doc.id, this.version);
    } catch (error) {
      if (error.kind === 'conflict') return this.fail(new api.ApiError('Not deleted: another writer has changed the document meanwhile.', {kind: 'conflict', remedy: 'Look at the newer version first.'}), button('Load the newer version', {run: () => this.reload()}));
      return this.fail(error);
    }
    this.base = this.editor.value;
    const {db} = this;
    if (undoable) {
      toast(`Deleted ${doc.id}.`, {action: 'Undo', run: async () => {
        try {
          await put(db, doc.id, doc.text, '');
          toast(`${doc.id} is back.`);
          app.go(app.address('/db/:db/doc', {db}, {id: doc.id}));
        } catch (error) {
          toast(error.kind === 'conflict' ? `Another writer has written ${doc.id} meanwhile: it is not replaced.` : error.message, {kind: 'wrong'});
        }
      }});
    } else {
      toast(`Deleted ${doc.id}.`);
    }
    app.go(app.address('/db/:db/documents', {db}, {collection: doc.collection}), {force: true});
  }

  // ---- Revisions

  async showRevisions() {
    this.shown = 'revisions';
    this.describe();
    const list = h('div', {class: 'revisions-list'});
    const shown = h('div', {class: 'revisions-shown'});
    fill(this.view, h('div', {class: 'revisions'}, h('div', {class: 'revisions-head'}, h('h2', null, 'Revisions'), this.doc && button('Back to the text', {icon: 'left', kind: 'quiet', run: () => this.show('text', true)})), list, shown));
    const done = patience(list);
    try {
      const first = await revisions(this.db, this.id, '', {signal: this.app.signal});
      done();
      if (first.rows.length === 0) return fill(list, h('p', {class: 'muted'}, 'There are none.'));
      this.revisions = first.rows;
      this.older = first.next ?? '';
      const query = new URLSearchParams(location.search);
      this.to = query.get('to') ?? first.rows.find((r) => !r.deletion)?.changeVector ?? first.rows[0].changeVector;
      this.from = query.get('from') ?? this.before(this.to);
      this.listRevisions(list, shown);
      await this.compareRevisions(shown);
    } catch (error) {
      done();
      if (error.name !== 'AbortError') fill(list, errorBox(error, button('Try again', {run: () => this.showRevisions()})));
    }
  }

  // before is the revision before another one: '' for none.
  before(vector) {
    const i = this.revisions.findIndex((r) => r.changeVector === vector);
    return this.revisions.slice(i + 1).find((r) => !r.deletion)?.changeVector ?? '';
  }

  listRevisions(list, shown) {
    const radio = (name, row) => h('input', {type: 'radio', name: `revision-${name}`, checked: this[name] === row.changeVector, disabled: row.deletion, 'aria-label': `${name === 'from' ? 'Compare from' : 'Compare to'} the version of ${row.lastModified}`,
      on: {change: () => { this[name] = row.changeVector; this.app.note({from: this.from, to: this.to}); this.compareRevisions(shown); }}});
    fill(list, h('table', {class: 'table revisions-table'}, h('caption', {class: 'only-read'}, 'Revisions, the newest first'), h('thead', null, h('tr', null, ['From', 'To', 'Written', 'Version', 'Size'].map((title) => h('th', {scope: 'col', class: title === 'Size' && 'number'}, title)))),
      h('tbody', null, this.revisions.map((row) => h('tr', null,
        h('td', null, radio('from', row)), h('td', null, radio('to', row)),
        h('td', null, focusable(time(row.lastModified)), row.current && h('span', {class: 'muted'}, ' · current'), row.deletion && h('span', {class: 'state wrong'}, 'deleted')),
        h('td', {class: 'mono', title: row.changeVector}, shortVector(row.changeVector)),
        h('td', {class: 'number'}, row.deletion ? '' : bytes(row.bytes)))))),
    this.older !== '' && button('Older ones', {run: async () => {
      const page = await revisions(this.db, this.id, this.older, {signal: this.app.signal});
      this.revisions.push(...page.rows);
      this.older = page.next ?? '';
      this.listRevisions(list, shown);
    }}));
  }

  async compareRevisions(shown) {
    const asked = [this.from, this.to];
    const late = () => asked[0] !== this.from || asked[1] !== this.to; // others were chosen meanwhile
    try {
      const [from, to] = await Promise.all(asked.map((vector) => (vector === '' ? null : revision(this.db, this.id, vector, {signal: this.app.signal}))));
      if (to === null || late()) return;
      if (to.large || from?.large) {
        return fill(shown, notice('careful', h('p', null, 'These versions are not compared. ', TOO_LARGE),
          h('p', {class: 'actions'}, button('Download this version', {run: () => saveFile('revision.json', to.text)}))));
      }
      fill(shown, h('div', {class: 'revisions-ways'},
        this.writes && button('Bring this version back', {title: 'Puts it into the editor; nothing is stored before you save', run: () => this.bringBack(to)})),
      compare(from?.text ?? '', to.text, [from === null ? 'Nothing' : h('span', null, 'Written ', focusable(time(from.lastModified))), h('span', null, 'Written ', focusable(time(to.lastModified)))]));
    } catch (error) {
      if (error.name !== 'AbortError' && !late()) fill(shown, errorBox(error.kind === 'missing' ? {message: 'This version is not kept any more.', remedy: 'Choose another one.'} : error));
    }
  }

  bringBack(to) {
    if (this.doc === null) { // a deleted one: it is written as a new document
      this.doc = {...to, references: [], attachments: [], revisions: this.revisions.length, keepsRevisions: true};
      this.base = '';
      this.version = '';
      this.editor.value = '';
    }
    this.doc = {...this.doc, large: false}; // what is edited now is not
    this.editor.replace(to.text, 0);
    this.show('text', true);
    this.changed();
    fill(this.message, notice('info', h('p', null, 'This is the text of the version written ', time(to.lastModified), '. Save to make it the newest one; undo brings back what was here.')));
  }

  // ---- Attachments

  attachments() {
    const {doc, db} = this;
    const input = h('input', {type: 'file', multiple: true, hidden: true, 'aria-label': 'Files to attach', on: {change: () => { this.upload([...input.files]); input.value = ''; }}});
    this.uploads = h('div', {class: 'document-uploads'});
    const node = this.section('Attachments',
      doc.attachments.length === 0 && h('p', {class: 'muted'}, this.writes ? 'None. Drop files here, or choose them.' : 'None.'),
      h('ul', {class: 'document-attachments'}, doc.attachments.map((a) => h('li', null,
        h('a', {href: api.raven(db, 'attachments', {id: doc.id, name: a.Name}), download: a.Name, on: {click: downloads}, title: [a.ContentType, `SHA-256 ${a.Hash}`].filter(Boolean).join('\n')}, a.Name), h('span', {class: 'muted number'}, bytes(a.Size)),
        this.writes && button('', {icon: 'delete', kind: 'quiet', label: `Delete the attachment ${a.Name}`, run: () => this.detach(a)})))),
      this.uploads, this.writes && button('Attach files', {icon: 'upload', run: () => input.click()}), this.writes && input);
    if (this.writes) {
      node.addEventListener('dragover', (event) => { if (event.dataTransfer.types.includes('Files')) { event.preventDefault(); node.classList.add('dropping'); } });
      node.addEventListener('dragleave', () => node.classList.remove('dropping'));
      node.addEventListener('drop', (event) => { event.preventDefault(); node.classList.remove('dropping'); this.upload([...event.dataTransfer.files]); });
    }
    return node;
  }

  // upload attaches files, one after the other: each makes a new version of the document.
  async upload(files) {
    for (const file of files) {
      const before = this.version;
      const bar = progress(`Uploading ${file.name}`);
      const stop = new AbortController();
      fill(this.uploads, h('p', null, file.name, ' ', button('Cancel', {kind: 'quiet', run: () => stop.abort()})), bar.node);
      try {
        const {ChangeVector} = await send(api.raven(this.db, 'attachments', {id: this.id, name: file.name, contentType: file.type || 'application/octet-stream'}), file, before, stop.signal,
          (done, total) => bar.update(done, total, `${bytes(done)} of ${bytes(total)}`));
        this.follows(before, ChangeVector);
      } catch (error) {
        fill(this.uploads);
        if (error.name === 'AbortError') return;
        if (error.kind === 'conflict') return this.fail(new api.ApiError('Not attached: another writer has changed the document meanwhile.', {kind: 'conflict', remedy: 'Look at the newer version first.'}), button('Look', {run: () => (this.dirty() ? this.conflict() : this.reload())}));
        return this.fail(error);
      }
    }
    fill(this.uploads);
    toast(`Attached ${files.length === 1 ? files[0].name : plural(files.length, 'file')}.`);
    await this.refresh();
  }

  async detach(attachment) {
    if (!await confirm({title: `Delete ${attachment.Name}?`, text: `The attachment of ${bytes(attachment.Size)} will be gone. The document stays.`})) return;
    const before = this.version;
    try {
      const {etag} = await api.text('DELETE', api.raven(this.db, 'attachments', {id: this.id, name: attachment.Name}), {headers: {'If-Match': `"${before}"`}});
      if (etag !== '') this.follows(before, etag);
      toast(`Deleted ${attachment.Name}.`);
      await this.refresh();
    } catch (error) {
      if (error.kind === 'conflict') this.newer();
      else this.fail(error);
    }
  }
}

// send uploads a file with progress, which fetch has not.
function send(url, file, version, signal, report) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('PUT', url);
    request.setRequestHeader('If-Match', `"${version}"`);
    for (const [name, value] of Object.entries(api.sessionHeaders())) request.setRequestHeader(name, value);
    request.upload.addEventListener('progress', (event) => report(event.loaded, event.total || file.size));
    request.addEventListener('load', () => {
      let fields = {};
      try { fields = JSON.parse(request.responseText); } catch { /* no reply of the server: the status says it */ }
      if (request.status === 201) return resolve(fields);
      reject(new api.ApiError(fields.Message ?? `The upload was answered with status ${request.status}.`, {kind: request.status === 409 ? 'conflict' : request.status === 401 ? 'signin' : request.status === 413 ? 'large' : 'refused', status: request.status, fields}));
    });
    request.addEventListener('error', () => reject(new api.ApiError('The upload was interrupted.', {kind: 'offline'})));
    request.addEventListener('abort', () => reject(new DOMException('cancelled', 'AbortError')));
    signal.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}

// shortVector shows the number of a version: A:4711.
function shortVector(vector) {
  return vector.split(',').map((part) => part.trim().replace(/-.*$/, '')).join(', ');
}

// focusable lets the keyboard reach the exact time.
function focusable(node) {
  node.tabIndex = 0;
  return node;
}

function depthOf(steps) { return steps.length; }

function rqlName(name) { return /^[\p{L}_@][\p{L}\p{N}_-]*$/u.test(name) ? name : `'${name.replace(/'/g, "''")}'`; }
