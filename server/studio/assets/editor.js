// The text editor, for documents and for queries.
//
// It is a textarea, so that the browser gives it what people expect of a text: the caret,
// selection, IME, spell out by screen readers, touch. The textarea's own text is transparent; behind
// it lies a layer with the same text in colours, of which only the rows in sight exist, so that a
// document of some megabytes scrolls and types as a small one does. Colours decorate: the value
// is the text as it was loaded or typed, and is never made anew from what it means.
//
// Folding: the editor holds the whole text and a list of ranges that are folded. The textarea has
// the text with one character, ⋯, in place of each such range. Each edit is carried over to the whole
// text by its position, so that one edits beside folded parts, and nothing depends on what the
// placeholder looks like; copying copies what is folded. Of a text with very many lines only those around
// the caret are shown, and the rest is folded, since no browser lays them all out in time. An alternative, hiding lines of a
// contenteditable, was left: it would make the DOM the document.
//
// Undo is the editor's own, since a browser forgets its history when a script changes the text:
// ctrl-z takes back formatting, and a text that a dialog has put in, as it does typing.

import {h, fill, button, icon} from './ui.js';
import * as json from './json.js';
import * as rql from './rql.js';

const PLACEHOLDER = '⋯';

// Bounds of what the editor keeps and paints.
const MAX_UNDO = 300; // steps
const MAX_UNDO_CHARS = 32 << 20; // of all steps
const MAX_MATCHES = 10_000; // of a search
const MAX_PAINTED = 5_000; // characters of a row in colours; the rest is plain
const MAX_PAIRED = 2_000; // rows that are looked through for a bracket
const MAX_ROWS = 40_000; // in the textarea: Chromium takes seconds to lay out many more. Others are folded
const WINDOW = 10_000; // rows at each side of the caret that stay then
const MAX_PASTED = 1 << 20; // characters that are pasted by the browser itself

// A language colours a text, checks it and lays it out. tokens works on one line, or with whole
// set on the text.
export const languages = {
  json: {
    tokens: json.tokens,
    check(text) {
      try {
        return {tree: json.parse(text), error: null};
      } catch (err) {
        if (err instanceof json.JSONError) return {tree: null, error: err};
        throw err;
      }
    },
    format: json.format,
    pairs: {'{': '}', '[': ']', '"': '"'},
    opens: '{[',
    closes: '}]',
  },
  rql: {tokens: rql.tokens, whole: true, pairs: {'(': ')', '[': ']', "'": "'", '"': '"'}, opens: '([{', closes: ')]}'},
  text: {tokens: () => [], pairs: {}, opens: '', closes: ''},
};

let editors = 0;

// editor makes an editor:
//
//   label       its name for screen readers
//   language    'json', 'rql' or 'text'
//   value       the text
//   readOnly    nothing can be typed
//   grow        [least, most] rows that it is high; without it the page gives it its height
//   tools       buttons of the page, in front of the editor's own
//   input(text) is called after each change
//   check(error) is called when the text was checked: a JSONError, or null
//   complete(text, caret) returns what can stand there, as rql.completions does
//   hint        what to know of it, for aria-describedby
export function editor(options) {
  return new Editor(options);
}

class Editor {
  #text; // the whole text
  #list = []; // the folds: see #folds
  #foldedLines = 0; // of all of them
  #shown = ''; // the value of the textarea
  #rows = [0]; // offsets in #shown at which rows begin
  #tokens = null; // of #shown, in a language whose tokens are those of the whole text
  #undo = [];
  #redo = [];
  #before = {start: 0, end: 0}; // the selection before an edit
  #error = null;
  #tree = null; // of #text, if it was checked and is valid
  #checked = false; // whether #text was checked since its last change
  #found = null; // the error of that check
  #matches = []; // [start, end] in #text
  #match = -1;
  #set = []; // marks of the page, in #text: see setMarks
  #pair = []; // offsets in #shown of the bracket at the caret and its partner
  #timer = 0;
  #took = 0; // milliseconds of the last check
  #frame = 0;
  #freed = false; // Escape was pressed: Tab leaves the editor
  #popup = null;
  #expects = false; // a word was being typed for which nothing was known

  constructor({label, language = 'json', value = '', readOnly = false, grow, tools = [], input, check, complete, hint, placeholder}) {
    Object.assign(this, {language: languages[language], grow, onInput: input, onCheck: check, complete});
    const id = `editor-${++editors}`;
    this.area = h('textarea', {
      class: 'editor-area', 'aria-label': label, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', autocorrect: 'off', wrap: 'off',
      readonly: readOnly, placeholder, 'aria-describedby': `${id}-error ${id}-hint`, 'aria-multiline': 'true',
    });
    this.lines = h('div', {class: 'editor-lines'});
    this.numbers = h('div', {class: 'editor-numbers'});
    this.gutter = h('div', {class: 'editor-gutter', 'aria-hidden': 'true'}, this.numbers);
    this.body = h('div', {class: 'editor-body'}, this.gutter, h('div', {class: 'editor-text'}, h('div', {class: 'editor-layer', 'aria-hidden': 'true'}, this.lines), this.area));
    this.errorLine = h('button', {type: 'button', class: 'editor-error', id: `${id}-error`, hidden: true, title: 'Go there (F8)', on: {click: () => this.goToError()}});
    this.place = h('span', {class: 'editor-place muted'});
    this.live = h('div', {class: 'only-read', role: 'status', 'aria-live': 'polite'});
    this.finder = this.#makeFinder();
    const own = this.language.format ? [
      button('Format', {kind: 'quiet', key: 'alt+shift+f', title: 'Lay the text out: only white space changes, and undo takes it back', disabled: readOnly, run: () => this.format()}),
      button('Fold', {kind: 'quiet', title: 'Fold or unfold the parts of the document', run: () => (this.#folds.length > 0 ? this.unfoldAll() : this.foldAll())}),
    ] : [];
    this.foldButton = own[1];
    this.bar = h('div', {class: 'editor-bar', role: 'toolbar', 'aria-label': `${label}: tools`}, tools, own,
      button('Find', {kind: 'quiet', key: 'ctrl+f', run: () => this.find()}));
    this.node = h('div', {class: ['editor', `editor-${language}`, readOnly && 'editor-fixed', grow && 'editor-grows']}, this.bar, this.finder.node, this.body,
      h('div', {class: 'editor-foot'}, this.errorLine, this.place), this.live,
      h('p', {class: 'only-read', id: `${id}-hint`}, hint ?? '', ' Tab indents; press Escape and then Tab to leave the editor. F8 goes to the error.'));
    this.readOnly = readOnly;
    this.#listen();
    this.value = value;
    this.watcher = new ResizeObserver(() => this.#paintSoon());
    this.watcher.observe(this.body);
  }

  // value is the whole text. Setting it forgets the history: it is for another document.
  get value() { return this.#text; }

  set value(text) {
    text = text.replace(/\r\n?/g, '\n'); // as a textarea has it; JSON has no raw one inside texts
    this.#text = text;
    this.#tree = null;
    this.#checked = false;
    this.#set = [];
    this.#folds = [];
    this.#undo = [];
    this.#redo = [];
    if (count(text, 0, text.length) > MAX_ROWS) this.#folds = this.#parts();
    this.#show(0, 0);
    this.#check();
  }

  // #folds are the ranges of the text that are folded, in order: {start, end, lines} with the line ends in
  // them, and where their placeholders are: at in the textarea, behind hidden characters and before lines.
  get #folds() { return this.#list; }

  set #folds(list) {
    let hidden = 0;
    let lines = 0;
    for (const f of list) {
      Object.assign(f, {at: f.start - hidden, hidden, before: lines});
      hidden += f.end - f.start - 1;
      lines += f.lines;
    }
    this.#list = list;
    this.#foldedLines = lines;
  }

  get error() { return this.#error; }

  // tree is that of json.parse if the text is valid, else null.
  get tree() {
    this.#checkNow();
    return this.#tree;
  }

  focus() { this.area.focus({preventScroll: true}); }

  // dispose ends what the editor has begun.
  dispose() {
    clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
    this.watcher.disconnect();
    document.removeEventListener('selectionchange', this.moved);
    this.#closePopup();
  }

  // replace puts in a text in place of the whole one. Undo takes it back.
  replace(text, caret = null) {
    text = text.replace(/\r\n?/g, '\n');
    const at = caret ?? Math.min(this.#caret(), text.length);
    const [start, oldEnd, newEnd] = difference(this.#text, text);
    this.#edit(start, oldEnd, text.slice(start, newEnd), at, at, 'whole');
  }

  // insert puts a text in place of what is selected.
  insert(text) {
    this.#type(text);
  }

  // format lays the text out. The caret stays at its character.
  format() {
    const {error} = this.#checkNow();
    if (error !== null) {
      this.goToError();
      return false;
    }
    const caret = this.#caret();
    const laid = this.language.format(this.#text);
    if (laid === this.#text) {
      this.#say('The text is laid out already.');
      return true;
    }
    this.replace(laid, sameCharacter(this.#text, caret, laid));
    this.#say('Laid out. Undo takes it back.');
    return true;
  }

  // setError shows an error of a check that is not the editor's, such as one of the server:
  // {offset, line, column, message}, or null for none.
  setError(error) {
    this.#checkNow(); // one that is due would take the error away
    this.#error = error;
    this.errorLine.hidden = error === null;
    if (error !== null) fill(this.errorLine, icon('warn'), h('span', null, error.message));
    this.area.setAttribute('aria-invalid', String(error !== null));
    this.#paintSoon();
  }

  // setMarks marks ranges of the text: [{start, end, kind}], where kind is a class. They move with the text; those that an edit touches go.
  setMarks(marks) {
    if (marks.length === 0 && this.#set.length === 0) return;
    this.#set = [...marks].sort((a, b) => a.start - b.start);
    this.#paintSoon();
  }

  goToError() {
    if (this.#error === null) return;
    this.select(this.#error.offset, this.#error.offset);
    this.focus();
  }

  // select selects a range of the whole text and brings it into sight. What is folded there is
  // unfolded.
  select(start, end, {focus = false} = {}) {
    const hidden = this.#folds.filter((f) => f.start < Math.max(end, start + 1) && f.end > start);
    if (hidden.length > 0) this.#setFolds(this.#folds.filter((f) => !hidden.includes(f)), [start, end]);
    this.area.setSelectionRange(this.#toShown(start), this.#toShown(end));
    if (focus) this.focus();
    this.#scrollTo(this.#toShown(start));
    this.#paintSoon();
  }

  // selection is the range of the whole text that is selected.
  get selection() { return [this.#toWhole(this.area.selectionStart), this.#toWhole(this.area.selectionEnd)]; }

  undo() { this.#step(this.#undo, this.#redo); }

  redo() { this.#step(this.#redo, this.#undo); }

  // ---- Events

  #listen() {
    const area = this.area;
    const note = () => { this.#before = {start: area.selectionStart, end: area.selectionEnd}; };
    area.addEventListener('beforeinput', (event) => {
      note();
      if (event.inputType === 'historyUndo' || event.inputType === 'historyRedo') {
        event.preventDefault();
        if (event.inputType === 'historyUndo') this.undo();
        else this.redo();
      }
    });
    area.addEventListener('input', (event) => this.#typed(event));
    area.addEventListener('keydown', (event) => this.#pressed(event));
    area.addEventListener('scroll', () => this.#paint());
    area.addEventListener('copy', (event) => this.#copied(event));
    area.addEventListener('cut', (event) => this.#copied(event));
    area.addEventListener('paste', (event) => {
      const text = event.clipboardData?.getData('text/plain') ?? '';
      if (text.length <= MAX_PASTED || this.readOnly) return;
      event.preventDefault();
      this.#type(text.replace(/\r\n?/g, '\n'));
    });
    area.addEventListener('dragstart', (event) => { if (this.#folds.length > 0) event.preventDefault(); });
    area.addEventListener('blur', () => { this.#freed = false; setTimeout(() => { if (!this.#popup?.node.contains(document.activeElement)) this.#closePopup(); }); });
    this.moved = () => {
      if (document.activeElement !== area) return;
      this.#pairBrackets();
      this.#showPlace();
      this.#paintSoon();
    };
    document.addEventListener('selectionchange', this.moved);
    area.addEventListener('click', () => this.#closePopup());
    this.numbers.addEventListener('pointerdown', (event) => {
      event.preventDefault(); // the caret stays
      const row = Number(event.target.closest('[data-row]')?.dataset.row ?? -1);
      if (row >= 0 && event.target.closest('.editor-fold')) this.#toggleFold(row);
      else if (row >= 0) {
        area.setSelectionRange(this.#rows[row], this.#rowEnd(row));
        this.focus();
      }
    });
  }

  // #typed carries an edit of the textarea over to the whole text.
  #typed(event) {
    const now = this.area.value;
    const caret = this.area.selectionEnd;
    // What is behind the caret was there before, behind the edit.
    let oldEnd = this.#shown.length - (now.length - caret);
    let start = Math.min(this.#before.start, caret, Math.max(oldEnd, 0));
    let newEnd = caret;
    if (oldEnd < start || this.#shown.slice(0, start) !== now.slice(0, start) || this.#shown.slice(oldEnd) !== now.slice(newEnd)) {
      [start, oldEnd, newEnd] = difference(this.#shown, now);
    }
    if (start === oldEnd && start === newEnd) return;
    const inserted = now.slice(start, newEnd);
    const wholeStart = this.#toWhole(start);
    const wholeEnd = oldEnd === start ? wholeStart : this.#toWhole(oldEnd);
    const kind = event.inputType ?? '';
    this.#shown = now; // it is there already
    this.#change(wholeStart, wholeEnd, inserted, kind);
    this.#settle();
    if (this.complete && !event.isComposing) {
      if (kind.startsWith('insert') && /^[\p{L}\p{N}_.$@'"\s]$/u.test(inserted)) this.suggest(false);
      else if (this.#popup) {
        this.#popup.asked = false;
        this.suggest(false);
      }
    }
  }

  #pressed(event) {
    if (event.isComposing) return;
    const {key} = event;
    const ctrl = event.ctrlKey || event.metaKey;
    const lower = key.toLowerCase();
    if (ctrl && key === 'Enter') this.#dismiss(); // the page runs what is typed
    if (this.#popup && this.#popupKey(event)) return;
    const done = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    if (ctrl && !event.altKey && lower === 'z') {
      done();
      if (event.shiftKey) this.redo();
      else this.undo();
    } else if (ctrl && !event.altKey && lower === 'y') {
      done();
      this.redo();
    } else if (ctrl && !event.shiftKey && !event.altKey && lower === 'f') {
      done();
      this.find();
    } else if (key === 'F3' || (ctrl && lower === 'g' && !event.altKey)) {
      done();
      if (this.finder.node.hidden) this.find();
      else this.findNext(event.shiftKey ? -1 : 1);
    } else if (key === 'F8') {
      done();
      this.goToError();
    } else if (event.altKey && event.shiftKey && event.code === 'KeyF' && this.language.format) {
      done();
      if (!this.readOnly) this.format();
    } else if (ctrl && event.shiftKey && (event.code === 'BracketLeft' || event.code === 'BracketRight')) {
      done();
      this.#foldAtCaret(event.code === 'BracketLeft');
    } else if (ctrl && key === ' ' && this.complete) {
      done();
      this.suggest(true);
    } else if (key === 'Escape') {
      if (!this.finder.node.hidden) {
        done();
        this.closeFind();
      } else if (!this.#freed) {
        this.#freed = true; // and the page may close something
      }
      return;
    } else if (key === 'Tab' && !ctrl && !event.altKey && !this.readOnly) {
      if (this.#freed) return;
      done();
      this.#indent(event.shiftKey);
    } else if (key === 'Enter' && !ctrl && !event.altKey && !this.readOnly) {
      done();
      this.#newLine();
    } else if (key === 'Backspace' && !ctrl && !event.altKey && !this.readOnly) {
      if (this.#unpair()) done();
    } else if (key.length === 1 && !ctrl && !event.altKey && !this.readOnly) {
      if (this.#pairUp(key)) done();
    }
    this.#freed = false;
  }

  // #copied puts on the clipboard what is folded, too.
  #copied(event) {
    const [start, end] = this.selection;
    if (this.#folds.length === 0 || start === end) return;
    event.preventDefault();
    event.clipboardData.setData('text/plain', this.#text.slice(start, end));
    if (event.type === 'cut' && !this.readOnly) this.#edit(start, end, '', start, start, 'cut');
  }

  // ---- Typing habits

  // #type puts a text in place of the selection, as typing does.
  #type(text, back = 0) {
    const [start, end] = this.selection;
    this.#edit(start, end, text, start + text.length - back, start + text.length - back, 'type');
  }

  #pairUp(key) {
    const {pairs, closes} = this.language;
    const {selectionStart: start, selectionEnd: end} = this.area;
    const next = this.#shown[end] ?? '';
    if (start === end && next === key && (closes.includes(key) || pairs[key] === key) && key !== '') {
      if (pairs[key] === key && !this.#insideString(start)) return false;
      this.area.setSelectionRange(start + 1, start + 1); // over the one that is there
      return true;
    }
    const close = pairs[key];
    if (close === undefined) return false;
    if (start !== end) {
      const [a, b] = this.selection;
      if (this.#shown.slice(start, end).includes('\n') && close === key) return false;
      this.#edit(a, b, key + this.#text.slice(a, b) + close, a + 1, b + 1, 'pair');
      return true;
    }
    if (this.#insideString(start)) return false;
    if (close === key && /[\p{L}\p{N}_]/u.test(this.#shown[start - 1] ?? '')) return false;
    if (next !== '' && !/[\s\]}),:]/.test(next)) return false;
    this.#type(key + close, 1);
    return true;
  }

  // #insideString reports whether a position of the textarea is inside a string of its row.
  #insideString(i) {
    const row = this.#rowAt(i);
    const offset = i - this.#rows[row];
    return this.#tokensOf(row).some(([start, end, kind]) => start < offset && ((kind === 'string' || kind === 'name') && /^["']/.test(this.#rowText(row)[start]) ? offset < end : kind === 'bad' && this.#rowText(row)[start] === '"' && offset <= end));
  }

  #unpair() {
    const {selectionStart: start, selectionEnd: end} = this.area;
    if (start !== end || start === 0 || this.language.pairs[this.#shown[start - 1]] !== this.#shown[start] || this.#shown[start] === undefined) return false;
    if (this.#shown[start - 1] === '"' && this.#shown[start - 2] === '\\') return false;
    const at = this.#toWhole(start);
    this.#edit(at - 1, at + 1, '', at - 1, at - 1, 'delete');
    return true;
  }

  #newLine() {
    const {selectionStart: start} = this.area;
    const row = this.#rowAt(start);
    const before = this.#shown.slice(this.#rows[row], start);
    const indent = /^[ \t]*/.exec(before)[0];
    const last = before.trimEnd().slice(-1);
    const next = this.#shown[this.area.selectionEnd] ?? '';
    const {opens, closes} = this.language;
    if (last !== '' && opens.includes(last)) {
      const inside = `\n${indent}  `;
      const i = opens.indexOf(last);
      if (next === closes[i]) this.#type(`${inside}\n${indent}`, indent.length + 1);
      else this.#type(inside);
      return;
    }
    this.#type('\n' + indent);
  }

  #indent(out) {
    const {selectionStart: start, selectionEnd: end} = this.area;
    const first = this.#rowAt(start);
    const last = this.#rowAt(end > start && this.#rows.includes(end) ? end - 1 : end);
    if (first === last && !out && !(start === this.#rows[first] && end === this.#rowEnd(first) && end > start)) {
      this.#type('  ');
      return;
    }
    const from = this.#toWhole(this.#rows[first]);
    const to = this.#toWhole(this.#rowEnd(last));
    const old = this.#text.slice(from, to);
    // Lines that are folded move with the others.
    const changed = out ? old.replace(/^(?: {1,2}|\t)/gm, '') : old.replace(/^(?=.)/gm, '  ');
    if (changed === old) return;
    if (first === last && start === end) {
      const caret = Math.max(from, this.#toWhole(start) + changed.length - old.length);
      this.#edit(from, to, changed, caret, caret, 'indent');
    } else {
      this.#edit(from, to, changed, from, from + changed.length, 'indent');
    }
  }

  // ---- The text and its history

  // #edit replaces a range of the whole text, and selects.
  #edit(start, end, text, selectStart, selectEnd, kind) {
    if (this.readOnly) return;
    this.#before = {start: this.area.selectionStart, end: this.area.selectionEnd};
    this.#change(start, end, text, kind, [selectStart, selectEnd]);
    this.#show(selectStart, selectEnd);
    this.#settle();
  }

  // #change replaces a range of the whole text and notes it for undo.
  #change(start, end, text, kind, after = null) {
    const removed = this.#text.slice(start, end);
    const step = {start, removed, inserted: text, before: [this.#toWhole(this.#before.start), this.#toWhole(this.#before.end)], after, kind, at: performance.now()};
    this.#apply(start, end, text);
    const last = this.#undo[this.#undo.length - 1];
    if (last && joins(last, step)) {
      if (step.removed === '') last.inserted += step.inserted;
      else Object.assign(last, {start: step.start, removed: step.removed + last.removed});
      last.at = step.at;
    } else {
      this.#undo.push(step);
      let size = 0;
      for (let i = this.#undo.length - 1; i >= 0; i--) {
        size += this.#undo[i].removed.length + this.#undo[i].inserted.length;
        if (i < this.#undo.length - 1 && (size > MAX_UNDO_CHARS || this.#undo.length - i > MAX_UNDO)) {
          this.#undo.splice(0, i + 1);
          break;
        }
      }
    }
    this.#redo = [];
  }

  // #apply replaces a range of the whole text. Folds behind it move, those that it touches go.
  #apply(start, end, text) {
    this.#text = this.#text.slice(0, start) + text + this.#text.slice(end);
    const by = text.length - (end - start);
    this.#folds = this.#folds.filter((f) => f.end <= start || f.start >= end).map((f) => (f.start >= end ? {...f, start: f.start + by, end: f.end + by} : f));
    this.#set = this.#set.filter((m) => m.end <= start || m.start >= end).map((m) => (m.start >= end ? {...m, start: m.start + by, end: m.end + by} : m));
    this.#tree = null;
    this.#checked = false;
  }

  #step(from, to) {
    const step = from.pop();
    if (step === undefined || this.readOnly) return;
    const undoing = from === this.#undo;
    const [gone, text] = undoing ? [step.inserted, step.removed] : [step.removed, step.inserted];
    this.#apply(step.start, step.start + gone.length, text);
    to.push(step);
    const [start, end] = undoing ? step.before : step.after ?? [step.start + text.length, step.start + text.length];
    step.at = 0; // what is typed next is a step of its own
    this.#show(Math.min(start, this.#text.length), Math.min(end, this.#text.length));
    this.#scrollTo(this.area.selectionEnd);
    this.#settle();
  }

  // #settle is what follows each change of the text.
  #settle() {
    this.#split();
    this.#height();
    this.#paintSoon();
    this.#check();
    if (!this.finder.node.hidden) this.#search();
    this.onInput?.(this.#text);
  }

  // #show puts the text into the textarea, without what is folded, and selects.
  #show(start, end) {
    this.#bound(start);
    if (this.foldButton) this.foldButton.querySelector('span').textContent = this.#folds.length > 0 ? 'Unfold' : 'Fold';
    let shown = this.#text;
    if (this.#folds.length > 0) {
      const parts = [];
      let from = 0;
      for (const f of this.#folds) {
        parts.push(this.#text.slice(from, f.start), PLACEHOLDER);
        from = f.end;
      }
      parts.push(this.#text.slice(from));
      shown = parts.join('');
    }
    const {scrollTop, scrollLeft} = this.area;
    if (shown !== this.area.value) this.area.value = shown;
    this.#shown = shown;
    this.area.setSelectionRange(this.#toShown(start), this.#toShown(end));
    this.area.scrollTop = scrollTop;
    this.area.scrollLeft = scrollLeft;
    this.#split();
    this.#height();
    this.#paintSoon();
  }

  // #split finds the rows.
  #split() {
    const rows = [0];
    const text = this.#shown;
    for (let i = text.indexOf('\n'); i >= 0; i = text.indexOf('\n', i + 1)) rows.push(i + 1);
    this.#rows = rows;
    this.#tokens = null;
    this.#pair = [];
  }

  #height() {
    if (!this.grow) return;
    const rows = Math.min(Math.max(this.#rows.length, this.grow[0]), this.grow[1]);
    this.body.style.setProperty('--rows', String(rows));
  }

  #caret() { return this.#toWhole(this.area.selectionEnd); }

  // #toWhole returns the offset in the whole text of one in the textarea.
  #toWhole(i) {
    const f = this.#folds[lowest(this.#folds, (f) => f.at >= i) - 1];
    return f === undefined ? i : i + f.hidden + f.end - f.start - 1;
  }

  // #toShown is the opposite. An offset inside a folded range is behind its placeholder.
  #toShown(i) {
    const f = this.#folds[lowest(this.#folds, (f) => f.start >= i) - 1];
    if (f === undefined) return i;
    return i < f.end ? f.at + 1 : i - f.hidden - (f.end - f.start - 1);
  }

  #rowAt(i) {
    let lo = 0;
    let hi = this.#rows.length - 1;
    while (lo < hi) {
      const middle = (lo + hi + 1) >> 1;
      if (this.#rows[middle] <= i) lo = middle;
      else hi = middle - 1;
    }
    return lo;
  }

  #rowEnd(row) { return row + 1 < this.#rows.length ? this.#rows[row + 1] - 1 : this.#shown.length; }

  #rowText(row) { return this.#shown.slice(this.#rows[row], this.#rowEnd(row)); }

  // ---- Folding

  // #opening returns the offset in the whole text behind the bracket that row opens and does not
  // close, or -1.
  #opening(row) {
    const open = [];
    for (const [start, , kind] of this.#tokensOf(row)) {
      if (kind !== 'mark') continue;
      const c = this.#shown[this.#rows[row] + start];
      if (this.language.opens.includes(c)) open.push(start);
      else if (this.language.closes.includes(c)) open.pop();
    }
    if (open.length === 0 || !this.language.format) return -1;
    return this.#toWhole(this.#rows[row] + open[0] + 1);
  }

  // #closing returns the offset of the bracket that closes what is open at start, or -1.
  #closing(start) {
    const text = this.#text;
    let depth = 1;
    for (let i = start; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (c === 34) {
        for (i++; i < text.length && text.charCodeAt(i) !== 34; i++) {
          if (text.charCodeAt(i) === 92) i++;
          else if (text.charCodeAt(i) === 10) return -1;
        }
      } else if (c === 123 || c === 91) depth++;
      else if ((c === 125 || c === 93) && --depth === 0) return i;
    }
    return -1;
  }

  #foldOf(row) {
    const start = this.#opening(row);
    const end = start < 0 ? -1 : this.#closing(start);
    if (end < 0) return null;
    const lines = count(this.#text, start, end);
    return lines === 0 ? null : {start, end, lines};
  }

  #toggleFold(row) {
    const folded = this.#foldIn(row);
    if (folded) this.#unfold(folded);
    else {
      const fold = this.#foldOf(row);
      if (fold) this.#setFolds([...this.#folds.filter((f) => f.end <= fold.start || f.start >= fold.end), fold]);
    }
  }

  // #foldIn returns the fold whose placeholder is in a row.
  #foldIn(row) {
    const f = this.#folds[lowest(this.#folds, (f) => f.at >= this.#rows[row])];
    return f !== undefined && f.at <= this.#rowEnd(row) ? f : undefined;
  }

  #foldAtCaret(fold) {
    const row = this.#rowAt(this.area.selectionEnd);
    if (!fold) {
      const folded = this.#foldIn(row);
      if (folded) this.#unfold(folded);
      return;
    }
    for (let r = row; r >= 0; r--) { // the innermost part that is around the caret
      const range = this.#foldOf(r);
      if (range && (r === row || range.end >= this.#caret())) {
        this.#setFolds([...this.#folds.filter((f) => f.end <= range.start || f.start >= range.end), range]);
        return;
      }
    }
  }

  // foldAll folds the parts of the document, but not the document.
  foldAll() {
    const folds = this.#parts();
    if (this.#tree === null) this.#say('A text with an error cannot be folded as a whole.');
    else this.#setFolds(folds);
  }

  // #parts returns folds of the parts of the document: none, if it has an error.
  #parts() {
    const {tree} = this.#checkNow();
    const folds = [];
    const children = tree === null ? [] : tree.kind === 'object' ? tree.members.map((m) => m.value) : tree.items ?? [];
    for (const node of children) {
      if (node.kind !== 'object' && node.kind !== 'array') continue;
      const lines = count(this.#text, node.start + 1, node.end - 1);
      if (lines > 0) folds.push({start: node.start + 1, end: node.end - 1, lines});
    }
    return folds;
  }

  unfoldAll() { this.#setFolds([]); }

  // #unfold shows what is folded, as far as it can be shown with what is beside it.
  #unfold(fold) {
    const at = fold.start === 0 ? fold.end : fold.start;
    this.#setFolds(this.#folds.filter((f) => f !== fold), [at, at]);
    this.#scrollTo(this.#toShown(at));
  }

  // #bound folds what is far from an offset if the text has more rows than can be shown.
  #bound(at) {
    const text = this.#text;
    const all = count(text, 0, text.length);
    if (all - this.#foldedLines <= MAX_ROWS) return;
    const inside = this.#folds.find((f) => f.start < at && at < f.end);
    if (inside) at = inside.start;
    let from = text.lastIndexOf('\n', at - 1);
    let to = text.indexOf('\n', at);
    for (let n = 0; n < WINDOW && from > 0; n++) from = skip(this.#folds, text.lastIndexOf('\n', from - 1), -1);
    for (let n = 0; n < WINDOW && to >= 0; n++) to = text.indexOf('\n', skip(this.#folds, to + 1, 1));
    const folds = this.#folds.filter((f) => f.start >= from && (to < 0 || f.end <= to));
    if (from > 0) folds.unshift({start: 0, end: from, lines: count(text, 0, from)});
    if (to >= 0 && to + 1 < text.length) folds.push({start: to + 1, end: text.length, lines: count(text, to + 1, text.length)});
    this.#folds = folds;
  }

  #setFolds(folds, [start, end] = this.selection) {
    this.#folds = folds.sort((a, b) => a.start - b.start);
    this.#show(start, end);
    this.#say(this.#folds.length > 0 ? `${this.#folds.length} folded` : 'Unfolded');
  }

  // ---- The layer

  #paintSoon() {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#paint();
    });
  }

  // #paint makes the rows that are in sight.
  #paint() {
    const {area} = this;
    if (!area.isConnected) return;
    const style = this.metrics ??= measure(area);
    const begin = Math.max(0, Math.floor((area.scrollTop - style.padding) / style.line) - 5);
    const last = Math.min(this.#rows.length - 1, Math.ceil((area.scrollTop + area.clientHeight) / style.line) + 5);
    const caretRow = document.activeElement === area ? this.#rowAt(area.selectionEnd) : -1;
    const rows = [];
    const numbers = [];
    for (let row = begin; row <= last; row++) {
      rows.push(this.#paintRow(row, row === caretRow));
      numbers.push(this.#paintNumber(row, row === caretRow));
    }
    this.lines.replaceChildren(...rows);
    this.numbers.replaceChildren(...numbers);
    const top = begin * style.line + style.padding - area.scrollTop;
    this.lines.style.setProperty('transform', `translate(${style.left - area.scrollLeft}px, ${top}px)`);
    this.numbers.style.setProperty('transform', `translateY(${top}px)`);
    const all = this.#rows.length + this.#foldedLines;
    this.gutter.style.setProperty('--digits', String(Math.max(2, String(all).length)));
  }

  #paintNumber(row, current) {
    const begin = this.#rows[row];
    const f = this.#folds[lowest(this.#folds, (f) => f.at >= begin) - 1];
    const number = row + 1 + (f === undefined ? 0 : f.before + f.lines);
    const folded = this.#folds.length > 0 && this.#foldIn(row) !== undefined;
    const foldable = folded || this.#opening(row) >= 0;
    return h('div', {class: ['editor-number', current && 'current'], data: {row}}, h('span', null, String(number)), foldable && h('span', {class: ['editor-fold', folded && 'folded']}, icon('down')));
  }

  #paintRow(row, current) {
    const text = this.#rowText(row);
    const begin = this.#rows[row];
    const line = h('div', {class: ['editor-line', current && 'current']});
    if (text === '') return line;
    const marks = this.#marksOf(begin, begin + text.length);
    const tokens = text.length > MAX_PAINTED ? this.#tokensOf(row).filter(([, end]) => end <= MAX_PAINTED) : this.#tokensOf(row);
    if (tokens.length === 0 && marks.length === 0) {
      line.append(text);
      return line;
    }
    const cuts = new Set([0, text.length]);
    for (const [start, end] of [...tokens, ...marks]) cuts.add(start).add(end);
    const sorted = [...cuts].sort((a, b) => a - b);
    let t = 0;
    for (let i = 0; i + 1 < sorted.length; i++) {
      const [from, to] = [sorted[i], sorted[i + 1]];
      while (t < tokens.length && tokens[t][1] <= from) t++;
      const kinds = t < tokens.length && tokens[t][0] <= from ? [`t-${tokens[t][2]}`] : [];
      for (const [start, end, kind] of marks) if (start <= from && to <= end) kinds.push(kind);
      const piece = text.slice(from, to);
      line.append(kinds.length === 0 ? piece : h('span', {class: kinds.includes('m-fold') ? 'm-fold' : kinds}, piece));
    }
    return line;
  }

  #tokensOf(row) {
    if (!this.language.whole) {
      const text = this.#rowText(row);
      return this.language.tokens(text.length > MAX_PAINTED ? text.slice(0, MAX_PAINTED) : text);
    }
    const begin = this.#rows[row];
    const end = this.#rowEnd(row);
    this.#tokens ??= this.language.tokens(this.#shown);
    return this.#tokens.filter((t) => t[0] < end && t[1] > begin).map(([s, e, kind]) => [Math.max(s - begin, 0), Math.min(e, end) - begin, kind]);
  }

  // #marksOf returns what is marked between two offsets of the textarea, in offsets from begin.
  #marksOf(begin, end) {
    const out = [];
    const add = (start, stop, kind) => {
      if (start < end && stop > begin) out.push([Math.max(start, begin) - begin, Math.min(stop, end) - begin, kind]);
    };
    for (let k = lowest(this.#folds, (f) => f.at >= begin); k < this.#folds.length && this.#folds[k].at < end; k++) add(this.#folds[k].at, this.#folds[k].at + 1, 'm-fold');
    for (const i of this.#pair) add(i, i + 1, 'm-pair');
    if (this.#set.length > 0) {
      const from = this.#toWhole(begin), to = this.#toWhole(end);
      for (const m of this.#set) if (m.start <= to && m.end >= from) add(this.#toShown(m.start), this.#toShown(m.end), m.kind);
    }
    if (this.#error !== null && this.#error.offset !== undefined) {
      let i = this.#toShown(this.#error.offset);
      if (i >= end && i > begin && (i === this.#shown.length || this.#shown[i] === '\n')) i--; // at the end: the last character
      add(i, i + 1, 'm-error');
    }
    if (this.#matches.length > 0 && !this.finder.node.hidden) {
      const from = this.#toWhole(begin);
      let lo = 0;
      let hi = this.#matches.length;
      while (lo < hi) {
        const middle = (lo + hi) >> 1;
        if (this.#matches[middle][1] <= from) lo = middle + 1;
        else hi = middle;
      }
      for (let i = lo; i < this.#matches.length; i++) {
        const [s, e] = this.#matches[i];
        const shown = this.#toShown(s);
        if (shown >= end) break;
        if (this.#folds[lowest(this.#folds, (f) => f.start >= e) - 1]?.end > s) continue; // folded
        add(shown, this.#toShown(e), i === this.#match ? 'm-match m-now' : 'm-match');
      }
    }
    return out;
  }

  // #pairBrackets finds the partner of the bracket at the caret.
  #pairBrackets() {
    this.#pair = [];
    const {selectionStart: i, selectionEnd} = this.area;
    if (i !== selectionEnd || this.language.opens === '') return;
    const {opens, closes} = this.language;
    for (const at of [i - 1, i]) {
      const c = this.#shown[at] ?? '';
      const opening = c !== '' && opens.includes(c);
      if (!opening && !(c !== '' && closes.includes(c))) continue;
      const step = opening ? 1 : -1;
      let row = this.#rowAt(at);
      const marks = (row) => this.#tokensOf(row).filter((t) => t[2] === 'mark').map((t) => this.#rows[row] + t[0]);
      if (!marks(row).includes(at)) continue;
      let depth = 0;
      for (let n = 0; n < MAX_PAIRED && row >= 0 && row < this.#rows.length; n++, row += step) {
        const list = marks(row);
        if (!opening) list.reverse();
        for (const m of list) {
          if (opening ? m < at : m > at) continue;
          if (opens.includes(this.#shown[m])) depth += step;
          else if (closes.includes(this.#shown[m])) depth -= step;
          else continue;
          if (depth === 0) {
            this.#pair = [at, m];
            return;
          }
        }
      }
      return;
    }
  }

  #showPlace() {
    const at = json.position(this.#text, this.#caret());
    const path = this.#tree === null || this.#tree.kind === undefined ? '' : json.pathAt(this.#tree, this.#caret());
    fill(this.place, `line ${at.line}, column ${at.column}`, path !== '' && ` · ${path}`);
  }

  // #scrollTo brings an offset of the textarea into sight.
  #scrollTo(i) {
    const {area} = this;
    if (!area.isConnected) return;
    const style = this.metrics ??= measure(area);
    const row = this.#rowAt(i);
    const y = row * style.line + style.padding;
    if (y < area.scrollTop + style.line || y > area.scrollTop + area.clientHeight - 3 * style.line) area.scrollTop = Math.max(0, y - area.clientHeight / 3);
    const x = (i - this.#rows[row]) * style.character + style.left;
    if (x < area.scrollLeft || x > area.scrollLeft + area.clientWidth - 4 * style.character) area.scrollLeft = Math.max(0, x - area.clientWidth / 2);
  }

  #say(text) { this.live.textContent = text; }

  // ---- Checking

  #check() {
    clearTimeout(this.#timer);
    if (!this.language.check) return;
    // A text that takes long to check is checked when one stops typing.
    this.#timer = setTimeout(() => this.#checkNow(), Math.min(1000, Math.max(120, this.#took * 10)));
  }

  // #checkNow checks the text if that was not done since its last change.
  #checkNow() {
    clearTimeout(this.#timer);
    if (!this.language.check) return {tree: null, error: this.#error};
    if (this.#checked) return {tree: this.#tree, error: this.#found};
    const start = performance.now();
    const {tree, error} = this.language.check(this.#text);
    this.#took = performance.now() - start;
    [this.#tree, this.#found, this.#checked] = [tree, error, true];
    if (error?.offset !== this.#error?.offset || error?.message !== this.#error?.message) this.setError(error);
    this.onCheck?.(error);
    this.#showPlace();
    return {tree, error};
  }

  // ---- Search

  #makeFinder() {
    const input = h('input', {type: 'search', 'aria-label': 'Find in the text', placeholder: 'Find', spellcheck: 'false', autocomplete: 'off', on: {
      input: () => { this.#search(); this.#nearest(); },
      keydown: (event) => {
        if (event.key === 'Enter' || event.key === 'F3') this.findNext(event.shiftKey ? -1 : 1);
        else if (event.key === 'Escape') this.closeFind();
        else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'f') input.select();
        else return;
        event.preventDefault();
        event.stopPropagation();
      },
    }});
    const exact = h('input', {type: 'checkbox', on: {change: () => { this.#search(); this.#nearest(); }}});
    const state = h('span', {class: 'muted number', role: 'status'});
    const node = h('div', {class: 'editor-find', hidden: true, role: 'search'}, input, h('label', {class: 'check'}, exact, 'Aa', h('span', {class: 'only-read'}, ' (case matters)')), state,
      button('', {icon: 'up', kind: 'quiet', label: 'The match before (Shift Enter)', run: () => this.findNext(-1)}),
      button('', {icon: 'down', kind: 'quiet', label: 'The next match (Enter)', run: () => this.findNext(1)}),
      button('', {icon: 'close', kind: 'quiet', label: 'Close the search (Escape)', run: () => this.closeFind()}));
    return {node, input, exact, state};
  }

  // find opens the search, for what is selected.
  find() {
    const [start, end] = this.selection;
    const selected = this.#text.slice(start, end);
    this.finder.node.hidden = false;
    if (selected !== '' && selected.length < 200 && !selected.includes('\n')) this.finder.input.value = selected;
    this.finder.input.focus();
    this.finder.input.select();
    this.#search();
    this.#nearest();
  }

  closeFind() {
    this.finder.node.hidden = true;
    if (this.#match >= 0) this.select(...this.#matches[this.#match]);
    this.#matches = [];
    this.#match = -1;
    this.focus();
    this.#paintSoon();
  }

  #search() {
    const wanted = this.finder.input.value;
    this.#matches = [];
    this.#match = -1;
    if (wanted !== '') {
      const exact = this.finder.exact.checked;
      const pattern = new RegExp(wanted.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), exact ? 'g' : 'gi');
      for (let m = pattern.exec(this.#text); m !== null && this.#matches.length < MAX_MATCHES; m = pattern.exec(this.#text)) {
        this.#matches.push([m.index, m.index + m[0].length]);
      }
    }
    this.#showMatches();
  }

  // #nearest makes the match behind the caret the current one.
  #nearest() {
    if (this.#matches.length === 0) return;
    const caret = Math.min(...this.selection);
    const i = this.#matches.findIndex(([start]) => start >= caret);
    this.#goToMatch(i < 0 ? 0 : i);
  }

  findNext(step) {
    const n = this.#matches.length;
    if (n === 0) return;
    this.#goToMatch(this.#match < 0 ? 0 : (this.#match + step + n) % n);
  }

  #goToMatch(i) {
    this.#match = i;
    this.select(...this.#matches[i]);
    this.#showMatches();
  }

  #showMatches() {
    const n = this.#matches.length;
    const all = n === MAX_MATCHES ? `the first ${n.toLocaleString('en')}` : n.toLocaleString('en');
    this.finder.state.textContent = this.finder.input.value === '' ? '' : n === 0 ? 'none' : `${(this.#match + 1).toLocaleString('en')} of ${all}`;
    this.#paintSoon();
  }

  // ---- Completion

  // suggest opens the list of what can stand at the caret. asked is false while one types.
  suggest(asked) {
    if (!this.complete || this.readOnly || this.area.selectionStart !== this.area.selectionEnd) return this.#closePopup();
    const found = this.complete(this.#text, this.#caret());
    this.#expects = found.typed !== '';
    asked ||= this.#popup?.asked ?? false;
    if (found.items.length === 0 || (!asked && found.typed === '' && !/(\b(from|by|where|select|and|or|include|in)|=|<|>|,|\()\s+$/i.test(this.#text.slice(0, this.#caret())))) return this.#closePopup();
    this.#openPopup(found, asked);
  }

  // refresh opens the list anew, if it is open, since more is known now.
  refresh() {
    if (this.#popup) this.suggest(false);
    else if (document.activeElement === this.area && this.#expects) this.suggest(false);
  }

  #openPopup(found, asked) {
    this.#closePopup();
    const id = `${this.errorLine.id}-list`;
    const list = h('ul', {class: 'editor-list', role: 'listbox', id, 'aria-label': 'What can stand here'}, found.items.map((item, i) =>
      h('li', {role: 'option', id: `${id}-${i}`, 'aria-selected': String(i === 0), class: `k-${item.kind}`, on: {
        pointerdown: (event) => { event.preventDefault(); this.#popup.at = i; this.#take(); },
      }}, h('span', {class: 'editor-item'}, item.text), item.note && h('span', {class: 'muted'}, item.note))));
    document.body.append(list);
    const box = this.#boxOf(this.#toShown(found.start));
    const below = box.bottom + list.offsetHeight + 4 < innerHeight;
    list.style.setProperty('left', `${Math.max(4, Math.min(box.left, innerWidth - list.offsetWidth - 4))}px`);
    list.style.setProperty('top', `${below ? box.bottom + 2 : Math.max(4, box.top - list.offsetHeight - 2)}px`);
    this.#popup = {node: list, found, at: 0, asked};
    this.area.setAttribute('aria-controls', id);
    this.area.setAttribute('aria-haspopup', 'listbox');
    this.area.setAttribute('aria-autocomplete', 'list');
    this.area.setAttribute('aria-activedescendant', `${id}-0`);
    this.#say(`${found.items.length} suggestions: ${found.items[0].text}`);
  }

  #closePopup() {
    if (!this.#popup) return;
    this.#popup.node.remove();
    this.#popup = null;
    this.area.removeAttribute('aria-activedescendant');
    this.area.removeAttribute('aria-controls');
  }

  // #dismiss closes the list until something is typed.
  #dismiss() {
    this.#expects = false;
    this.#closePopup();
  }

  #popupKey(event) {
    const popup = this.#popup;
    const n = popup.found.items.length;
    const move = {ArrowDown: popup.at + 1, ArrowUp: popup.at - 1, PageDown: Math.min(n - 1, popup.at + 8), PageUp: Math.max(0, popup.at - 8)}[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (move !== undefined) {
      const items = popup.node.children;
      items[popup.at].setAttribute('aria-selected', 'false');
      popup.at = (move + n) % n;
      items[popup.at].setAttribute('aria-selected', 'true');
      items[popup.at].scrollIntoView({block: 'nearest'});
      this.area.setAttribute('aria-activedescendant', items[popup.at].id);
    } else if (event.key === 'Tab' || event.key === 'Enter') {
      if (event.shiftKey) return false;
      this.#take();
    } else if (event.key === 'Escape') {
      this.#dismiss();
    } else {
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  // #take puts the chosen item in.
  #take() {
    const {found, at} = this.#popup;
    this.#closePopup();
    this.#expects = false;
    const item = found.items[at];
    const blank = item.kind === 'keyword' && !/^[\s]/.test(this.#text.slice(found.end)) ? ' ' : '';
    const caret = found.start + item.text.length + blank.length;
    this.#edit(found.start, found.end, item.text + blank, caret, caret, 'take');
    if (blank !== '') this.suggest(false);
    this.focus();
  }

  // #boxOf returns where a character of the textarea is on the screen.
  #boxOf(i) {
    this.#paint();
    const style = this.metrics;
    const row = this.#rowAt(i);
    const first = Math.max(0, Math.floor((this.area.scrollTop - style.padding) / style.line) - 5);
    const line = this.lines.children[row - first];
    if (!line) return this.area.getBoundingClientRect();
    let left = i - this.#rows[row];
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (left <= node.length) {
        const range = document.createRange();
        range.setStart(node, left);
        range.collapse(true);
        const box = range.getClientRects()[0] ?? line.getBoundingClientRect();
        return box;
      }
      left -= node.length;
    }
    const box = line.getBoundingClientRect();
    return {left: box.left, top: box.top, bottom: box.bottom};
  }
}

// measure returns the sizes of the rows of a textarea.
function measure(area) {
  const style = getComputedStyle(area);
  const canvas = document.createElement('canvas').getContext('2d');
  canvas.font = style.font;
  return {line: parseFloat(style.lineHeight), padding: parseFloat(style.paddingTop), left: parseFloat(style.paddingLeft), character: canvas.measureText('0').width};
}

// skip returns an offset, or the end of the fold in which it is, in the direction of step.
function skip(folds, i, step) {
  const fold = folds[lowest(folds, (f) => f.start > i) - 1];
  return fold === undefined || i >= fold.end ? i : step < 0 ? fold.start : fold.end;
}

// lowest returns the index of the first item for which test is true: it is false for all before,
// and true for all behind.
function lowest(list, test) {
  let lo = 0;
  let hi = list.length;
  while (lo < hi) {
    const middle = (lo + hi) >> 1;
    if (test(list[middle])) hi = middle;
    else lo = middle + 1;
  }
  return lo;
}

// count counts the line ends between two offsets.
function count(text, start, end) {
  let n = 0;
  for (let i = text.indexOf('\n', start); i >= 0 && i < end; i = text.indexOf('\n', i + 1)) n++;
  return n;
}

// joins reports whether undo takes two steps back as one: letters typed or removed one behind the
// other, within a second, up to a blank or a new line.
function joins(last, step) {
  if (step.at - last.at > 1000 || step.kind !== last.kind) return false;
  if (step.kind === 'insertText' && step.removed === '' && step.inserted.length <= 2) {
    return last.start + last.inserted.length === step.start && !/\s$/.test(last.inserted);
  }
  return step.kind === 'deleteContentBackward' && step.inserted === '' && last.inserted === '' && step.start + step.removed.length === last.start;
}

// difference returns the range in which two texts differ: [start, endInOld, endInNew].
export function difference(before, now) {
  const least = Math.min(before.length, now.length);
  let start = 0;
  // By blocks, since most of a long text is the same.
  while (start + 1024 <= least && before.slice(start, start + 1024) === now.slice(start, start + 1024)) start += 1024;
  while (start < least && before.charCodeAt(start) === now.charCodeAt(start)) start++;
  let tail = 0;
  const most = least - start;
  while (tail + 1024 <= most && before.slice(before.length - tail - 1024, before.length - tail) === now.slice(now.length - tail - 1024, now.length - tail)) tail += 1024;
  while (tail < most && before.charCodeAt(before.length - 1 - tail) === now.charCodeAt(now.length - 1 - tail)) tail++;
  return [start, before.length - tail, now.length - tail];
}

// sameCharacter returns the offset in a text that was laid out of a character of the text
// before: as many characters that are no white space stand in front of it.
export function sameCharacter(before, offset, now) {
  let n = 0;
  for (let i = 0; i < offset; i++) if (!/\s/.test(before[i])) n++;
  let i = 0;
  for (; i < now.length && n > 0; i++) if (!/\s/.test(now[i])) n--;
  return i;
}
