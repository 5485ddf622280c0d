// The documents of a database: collections at the left, and a list that shows some fields of each document. The
// list is a window on what may be millions of rows (rows.js): only the rows that can be seen are in the page, and
// their elements are used again when it scrolls.

import * as api from '../api.js';
import * as feed from '../feed.js';
import {parse} from '../json.js';
import {Rows, cursorOf, shown} from '../rows.js';
import * as rql from '../rql.js';
import * as words from '../words.js';
import {button, bytes, code, confirm, count, empty, errorBox, fill, h, icon, link, menu, notice, patience, plural, save, time, toast} from '../ui.js';

// listedCollections bounds the collections that are drawn: a database can have 100,000.
const listedCollections = 500;

export const page = {
  title: ({query}) => query.get('collection') || 'Documents',
  mount(container, params, app) {
    container.classList.add('documents');
    const view = new DocumentsPage(container, params, app);
    view.start();
    return () => view.stop();
  },
};

const overscan = 12; // rows above and below what can be seen
const ahead = 60; // rows before an end of the window at which the next page is asked for
const mostSelected = 10_000;

class DocumentsPage {
  constructor(container, {db, query}, app) {
    Object.assign(this, {container, db, app, collection: query.get('collection') ?? '', prefix: query.get('prefix') ?? '', from: query.get('from') ?? '', words: query.get('words') ?? ''});
    this.order = this.prefix !== '' || query.get('order') === 'id' ? 'id' : 'newest';
    this.collections = null;
    this.selected = new Set();
    this.active = -1; // the row that keys act on, in the window
    this.anchor = -1; // where a selection with shift began
    this.fields = new Set();
    this.newer = new Set();
    this.layout = readLayout(db, this.collection);
    this.pool = [];
    this.fitted = {}; // widths of columns, and which have numbers; both stay as they were first
    this.numbers = {};
    this.rows = new Rows((where) => this.page(where), {total: () => this.total(), changed: (change) => this.moved(change)});
  }

  get narrow() { return innerWidth <= 640; }
  get rowHeight() { return this.height ??= Math.round(parseFloat(getComputedStyle(this.container).getPropertyValue('--row-height'))); }

  total() {
    if (this.prefix !== '' || this.collections === null) return null;
    if (this.collection === '') return this.collections.reduce((sum, c) => sum + c.documents, 0);
    return this.collections.find((c) => c.name.toLowerCase() === this.collection.toLowerCase())?.documents ?? 0;
  }

  href(values) { return this.app.address('/db/:db/documents', {db: this.db}, {collection: this.collection, order: this.order === 'id' ? 'id' : '', ...values}); }
  newHref() { return this.app.address('/db/:db/new', {db: this.db}, {collection: this.collection.startsWith('@') ? '' : this.collection}); }

  // ---- The page

  start() {
    const {app, db} = this;
    this.aside = h('nav', {class: 'collections', 'aria-label': 'Collections'});
    this.heading = h('h1', null, this.collection || 'All documents');
    this.summary = h('span', {class: 'muted number'});
    this.prefixInput = h('input', {type: 'text', class: 'prefix mono', value: this.prefix, 'aria-label': 'IDs that begin with', placeholder: 'IDs that begin with …', autocomplete: 'off', spellcheck: 'false', on: {
      change: () => this.filter(this.prefixInput.value.trim()),
      keydown: (event) => { if (event.key === 'Enter') this.filter(this.prefixInput.value.trim()); if (event.key === 'Escape') { this.filter(''); this.list.focus(); event.stopPropagation(); } },
    }});
    this.wordsInput = h('input', {type: 'search', class: 'words', value: this.words, 'aria-label': 'Search for words', placeholder: 'Words in the texts …', autocomplete: 'off', spellcheck: 'false', maxlength: 1000, on: {
      keydown: (event) => { if (event.key === 'Enter') this.searchFor(this.wordsInput.value.trim()); if (event.key === 'Escape') { this.searchFor(''); event.stopPropagation(); } },
    }});
    this.where = h('span', {class: 'muted number where-now', 'aria-live': 'off'});
    this.columnsButton = button('Columns', {icon: 'columns', kind: 'quiet', label: 'Columns', 'aria-haspopup': 'menu', 'aria-expanded': 'false', run: () => this.chooseColumns()});
    this.orderButton = button('Newest first', {icon: 'indexes', kind: 'quiet', 'aria-haspopup': 'menu', 'aria-expanded': 'false', title: 'Order of the rows (o)', run: () => this.chooseOrder()});
    this.drawOrder();
    this.mapLink = this.canSearch && link(app.address('/db/:db/query', {db}, {q: `from ${rql.name(this.collection)}`, view: 'map'}), {class: 'button quiet', hidden: true}, 'Map');
    this.canvas = h('div', {class: 'canvas', role: 'rowgroup'});
    this.headRow = h('div', {class: 'row head-row', role: 'row'});
    this.list = h('div', {class: 'list', role: 'grid', tabindex: 0, 'aria-label': 'Documents', 'aria-multiselectable': 'true'}, h('div', {role: 'rowgroup', class: 'list-head'}, this.headRow), this.canvas);
    this.thumb = h('div', {class: 'thumb'});
    this.bubble = h('div', {class: 'bubble', hidden: true});
    this.track = h('div', {class: 'scroll-track', 'aria-hidden': 'true'}, this.thumb, this.bubble);
    this.pill = h('button', {type: 'button', class: 'pill newer', hidden: true, on: {click: () => this.reload()}});
    this.frame = h('div', {class: 'list-frame'}, this.list, this.track, this.pill);
    this.bottom = h('div', {class: 'selection', role: 'toolbar', 'aria-label': 'Selected documents', hidden: true});
    this.message = h('div', {class: 'list-message'});
    const go = (icon, label, run) => button('', {icon, kind: 'quiet', label, title: label, run});
    fill(this.container, this.aside, h('div', {class: 'list-page'},
      h('div', {class: 'head'}, this.heading, this.summary, h('div', {class: 'buttons'},
        app.can('write') && link(this.newHref(), {class: 'button primary', title: 'New document (n)'}, icon('plus'), h('span', null, 'New')),
        app.can('write') && link(app.address('/db/:db/io', {db}), {class: 'button'}, icon('upload'), h('span', null, 'Import')),
        app.can('write') && this.collection !== '' && button('', {icon: 'more', kind: 'quiet', label: `More about ${this.collection}`, 'aria-haspopup': 'menu', 'aria-expanded': 'false', run: (event, node) => { this.showMore(node); }}))),
      this.tools = h('div', {class: 'list-tools'}, this.canSearch && this.wordsInput, this.prefixInput, this.orderButton, this.columnsButton, this.mapLink, h('span', {class: 'grow'}), this.where,
        go('top', 'First rows (Home)', () => this.toStart()), go('end', 'Last rows (End)', () => this.toEnd())),
      this.message, this.frame, this.bottom));

    this.list.addEventListener('scroll', () => this.draw(), {passive: true});
    this.list.addEventListener('keydown', (event) => this.pressed(event));
    this.list.addEventListener('click', (event) => this.clicked(event));
    this.headRow.addEventListener('pointerdown', (event) => this.resizeBegins(event));
    this.headRow.addEventListener('keydown', (event) => this.resizedByKey(event));
    this.track.addEventListener('pointerdown', (event) => this.dragged(event));
    this.container.addEventListener('dragover', (event) => { if (event.dataTransfer?.types.includes('Files')) event.preventDefault(); });
    this.container.addEventListener('drop', (event) => this.dropped(event));
    this.watcher = new ResizeObserver(() => { this.height = undefined; this.draw(true); });
    this.watcher.observe(this.list);
    this.seen = () => (document.hidden ? this.unfollow() : this.follow());
    document.addEventListener('visibilitychange', this.seen);

    app.leaving(() => app.note({from: this.noted}));
    app.search({placeholder: 'Search or jump to an ID', run: (text) => { if (text.trim() !== '') this.jump(text.trim()); else this.list.focus(); }});
    app.keys([
      {key: 'n', text: 'New document', run: () => { if (!app.can('write')) return false; app.go(this.newHref()); }},
      {key: 'p', text: 'Filter by the beginning of the ID', run: () => { this.prefixInput.focus(); this.prefixInput.select(); }},
      {key: 'w', text: 'Search for words', run: () => { if (!this.canSearch) return false; this.wordsInput.focus(); this.wordsInput.select(); }},
      {key: 'c', text: 'Columns', run: () => this.chooseColumns()},
      {key: 'o', text: 'Newest first, or by ID', run: () => this.setOrder(this.order === 'id' ? 'newest' : 'id')},
      {key: 'r', text: 'Load again', run: () => { this.reload(); }},
      {key: 'arrowdown', text: 'Next row', run: (event) => this.toList(event)},
      {key: 'arrowup', text: 'Row before', run: (event) => this.toList(event)},
      {key: 'home', text: 'First row', run: () => { this.toStart(); }},
      {key: 'end', text: 'Last row', run: () => { this.toEnd(); }},
      {key: 'enter', text: 'Open the document', run: () => false},
      {key: 'x', text: 'Select the row', run: (event) => this.toList(event)},
      {key: 'delete', text: 'Delete what is selected', run: () => { if (this.selected.size === 0 || !app.can('write')) return false; this.remove(); }},
      {key: 'escape', text: 'Select nothing', run: () => { if (this.selected.size === 0) return false; this.selected.clear(); this.drawSelection(); this.draw(true); }},
    ]);
    app.commands([
      ...(app.can('write') ? [{text: 'New document', hint: 'n', run: () => app.go(this.newHref())}, {text: 'Import documents', run: () => app.go(app.address('/db/:db/io', {db}))}] : []),
      {text: 'First rows', hint: 'Home', run: () => this.toStart()}, {text: 'Last rows', hint: 'End', run: () => this.toEnd()}, {text: 'Columns', hint: 'c', run: () => this.chooseColumns()}, {text: this.order === 'id' ? 'Newest first' : 'By ID', hint: 'o', run: () => this.setOrder(this.order === 'id' ? 'newest' : 'id')},
      {text: 'Export these documents', run: () => app.go(app.address('/db/:db/io', {db}, {collection: this.collection}))},
    ]);
    this.load();
    this.offerMap();
  }

  stop() {
    this.unfollow();
    clearTimeout(this.noting);
    document.removeEventListener('visibilitychange', this.seen);
    this.watcher.disconnect();
    this.rows.generation++;
  }

  async load() {
    if (this.words !== '' && this.canSearch) return this.search();
    const done = patience(this.message);
    await this.attempt(async () => {
      // The rows do not wait for the counts.
      const counted = this.loadCollections();
      counted.catch(() => {}); // it is awaited below, unless the rows fail first
      if (this.from) { await counted; await this.place({from: this.from}); } else await this.rows.start();
      await counted;
      done();
      const {rows, atStart, atEnd} = this.rows; // neither, if another place was asked for meanwhile
      if (rows.length === 0 && atStart && atEnd && this.prefix === '') return this.showEmpty();
      if (this.rows.rows.length === 0) this.showNone();
      this.draw(true);
      this.follow();
    });
    done();
  }

  // offerMap shows the way to the map where the collection has an index of places.
  async offerMap() {
    if (!this.canSearch) return;
    try {
      const {indexes} = await api.get(api.jay(this.db, 'indexes', {collection: this.collection}), {signal: this.app.signal});
      this.mapLink.hidden = !indexes.some((ix) => ix.kind === 'places');
    } catch { /* the list says what is wrong */ }
  }

  // ---- Words

  get canSearch() { return this.collection !== '' && !this.collection.startsWith('@'); }

  searchFor(text) {
    if (text === this.words) return;
    const replace = this.words !== '';
    this.words = text;
    this.app.go(this.href({words: text, order: ''}), {replace});
  }

  // search shows the documents that have the words of the address, the best first, and says what answers.
  async search() {
    for (const node of [this.prefixInput, this.orderButton, this.columnsButton, ...this.tools.querySelectorAll('button')]) node.hidden = true;
    const done = patience(this.message, 'Searching');
    await this.attempt(async () => {
      const counted = this.loadCollections();
      counted.catch(() => {}); // it is awaited below
      const plan = await words.planOf(this.db, this.collection, this.words, this.app.signal);
      const list = h('ol', {class: 'found', tabindex: 0, 'aria-label': 'Documents with the words'});
      const more = button('More', {run: () => this.attempt(() => next())});
      more.hidden = true;
      let after = '', found = 0;
      const next = async () => {
        const page = plan.fields.length === 0 ? {rows: []} : await words.pageOf(this.db, plan, after, this.app.signal);
        list.append(...page.rows.map((row) => words.answer(row, this.app.address('/db/:db/doc', {db: this.db}, {id: row.id}))));
        after = page.next ?? '';
        found += page.rows.length;
        more.hidden = after === '';
        this.where.textContent = after === '' ? plural(found, 'document') : `the best ${count(found)}`;
      };
      await next();
      const names = plan.fields.map(({name}) => name).join(', ');
      fill(this.message, plan.index !== '' ? h('p', {class: 'muted'}, `The index ${plan.index} answers: it has the words of ${names}.`) : notice('info', `There is no index of words here, so each document is looked at, in ${names || 'no field'}. `,
        link(this.app.address('/db/:db/indexes', {db: this.db}), null, 'An index of kind text'), ' answers at once.'));
      fill(this.frame, found === 0 ? empty(`No document of ${this.collection} has these words.`, h('p', null, link(this.href({}), null, 'Show all'))) : h('div', {class: 'found-frame'}, list, more));
      await counted;
    });
    done();
  }

  async loadCollections() {
    const {collections} = await api.get(api.jay(this.db, 'collections'), {signal: this.app.signal});
    this.collections = collections;
    const all = collections.reduce((sum, c) => sum + c.documents, 0);
    const sorted = [...collections].sort((a, b) => (a.name[0] === '@') - (b.name[0] === '@') || a.name.localeCompare(b.name));
    // Of very many collections only the first are listed, and the present one.
    const listed = sorted.filter((c, i) => i < listedCollections || c.name.toLowerCase() === this.collection.toLowerCase());
    const of = (name) => this.app.address('/db/:db/documents', {db: this.db}, {collection: name, order: this.order === 'id' && this.prefix === '' ? 'id' : ''});
    const entry = (name, text, n) => h('li', null, link(of(name), {'aria-current': name.toLowerCase() === this.collection.toLowerCase() ? 'page' : undefined, title: text, class: name[0] === '@' && 'special'},
      h('span', {class: 'grow'}, text), h('span', {class: 'number muted'}, count(n))));
    const pick = h('select', {'aria-label': 'Collection', on: {change: () => this.app.go(of(pick.value))}},
      [['', 'All documents', all], ...listed.map((c) => [c.name, c.name, c.documents])].map(([name, text, n]) => h('option', {value: name, selected: name === this.collection}, `${text} (${count(n)})`)));
    const wanted = h('input', {type: 'text', class: 'mono', autocomplete: 'off', spellcheck: 'false', placeholder: 'Collection', 'aria-label': 'Go to a collection'});
    const more = listed.length < sorted.length && h('form', {on: {submit: (event) => { event.preventDefault(); if (wanted.value.trim()) this.app.go(of(wanted.value.trim())); }}},
      h('p', {class: 'muted'}, `${count(sorted.length - listed.length)} more are not listed. Type the name of one:`), wanted);
    fill(this.aside, h('ul', null, entry('', 'All documents', all), listed.map((c) => entry(c.name, c.name === '@empty' ? 'no collection' : c.name, c.documents))), pick, more);
    pick.value = this.collection;
    const total = this.total();
    fill(this.summary, total === null ? '' : plural(total, 'document'));
  }

  // attempt runs what may fail, and shows above the list why it has.
  async attempt(run) {
    try {
      fill(this.message);
      await run();
    } catch (error) {
      if (error.name === 'AbortError') return;
      fill(this.message, errorBox(error, button('Try again', {run: () => this.load()})));
    }
  }

  async page(where) {
    const columns = this.layout.columns;
    const params = {collection: this.collection, startsWith: this.prefix, order: this.order === 'newest' ? 'newest' : undefined, ...where, column: columns ?? (this.collection === '' ? ['@preview'] : undefined)};
    if (!where.reverse) delete params.reverse;
    const reply = await api.get(api.jay(this.db, 'rows', params), {signal: this.app.signal});
    for (const name of reply.fields) if (this.fields.size < 500) this.fields.add(name);
    if (!columns && !this.shownColumns) this.shownColumns = reply.columns;
    // Pages without a choice may choose otherwise: the first choice stays.
    if (!columns && this.collection !== '' && this.shownColumns.length === 0 && reply.columns.length > 0) this.shownColumns = reply.columns;
    if (!columns && this.collection !== '') this.layout = {...this.layout, columns: this.shownColumns};
    return reply;
  }

  get columns() { return this.layout.columns ?? this.shownColumns ?? []; }

  showEmpty() {
    const {app, db} = this;
    if (this.collection !== '' && this.collections?.some((c) => c.documents > 0)) {
      return fill(this.frame, empty(`${this.collection} has no documents.`, h('p', null, 'A collection is there as long as a document names it in its @metadata.'),
        h('p', null, app.can('write') && link(this.newHref(), {class: 'button primary'}, icon('plus'), `New document in ${this.collection}`))));
    }
    this.tools.hidden = true;
    const token = app.session?.Name && !app.session.SignedInElsewhere ? ` -H 'Authorization: Bearer jay_…'` : '';
    const url = location.origin + api.at('');
    fill(this.frame, empty(`${db} has no documents yet.`, app.can('write') ? h('ul', {class: 'ways'},
      h('li', null, icon('plus'), h('h3', null, 'Write one here'), h('p', {class: 'muted'}, 'Type JSON; the store makes the ID, or you do.'), h('p', null, link(this.newHref(), {class: 'button primary'}, 'New document'))),
      h('li', null, icon('upload'), h('h3', null, 'Drop a file on this page'), h('p', {class: 'muted'}, 'JSON lines, an array, CSV: the import shows what it does before and while it does it.'), h('p', null, link(app.address('/db/:db/io', {db}), {class: 'button'}, 'Import …'))),
      h('li', null, icon('keyboard'), h('h3', null, 'From a program'), h('p', {class: 'muted'}, 'With curl, or with any client of RavenDB:'),
        code(`curl -X PUT${token} \\\n  '${url}/databases/${encodeURIComponent(db)}/docs?id=users/' \\\n  -d '{"Name":"Ann","@metadata":{"@collection":"Users"}}'`),
        h('p', {class: 'muted'}, 'In Go, without a server:'), code('db, err := jay.Open("shop")\nmeta, err := db.Store(ctx, "Users", []byte(`{"Name":"Ann"}`))'))) : h('p', null, 'You may read it, but not write.')));
    this.follow();
  }

  // showNone says that a filter finds nothing.
  showNone() {
    fill(this.message, notice('info', `No ID here begins with ${this.prefix}.`, ' ', link(this.app.address('/db/:db/documents', {db: this.db}, {collection: this.collection}), null, 'Show all')));
  }

  // ---- Rows on the screen

  moved({added, dropped}) {
    const rows = added - dropped;
    if (this.active >= 0) this.active += rows;
    if (this.anchor >= 0) this.anchor += rows;
    if (rows !== 0) {
      this.sizeCanvas(); // before the position, which it bounds
      this.list.scrollTop += rows * this.rowHeight;
    }
    this.draw(true);
  }

  sizeCanvas() { this.canvas.style.setProperty('height', `${this.rows.rows.length * this.rowHeight}px`); }

  // draw brings the elements to the rows that can be seen. With all, it also fills them again.
  draw(all = false) {
    if (!this.canvas.isConnected) return;
    const {rows} = this.rows;
    this.sizeCanvas();
    const head = this.narrow ? 0 : this.headRow.offsetHeight;
    const top = this.list.scrollTop, height = this.list.clientHeight - head;
    const begin = Math.max(0, Math.floor(top / this.rowHeight) - overscan);
    const end = Math.min(rows.length, Math.ceil((top + height) / this.rowHeight) + overscan);
    if (all) this.drawHead();
    const used = new Map(), free = [];
    for (const element of this.pool) {
      if (!all && element.index >= begin && element.index < end && element.row === rows[element.index]) used.set(element.index, element);
      else free.push(element);
    }
    for (let i = begin; i < end; i++) {
      if (used.has(i)) continue;
      let element = free.pop();
      if (!element) { element = this.makeRow(); this.pool.push(element); this.canvas.append(element.node); }
      this.fillRow(element, i, rows[i]);
    }
    for (const element of free) { // beyond what is needed
      element.node.remove();
      this.pool.splice(this.pool.indexOf(element), 1);
    }
    if (rows.length > 0) {
      if (begin < ahead && !this.rows.atStart) this.more('up');
      if (end > rows.length - ahead && !this.rows.atEnd) this.more('down');
    }
    this.drawPlace(Math.floor(top / this.rowHeight), Math.min(rows.length, Math.floor((top + height) / this.rowHeight)));
  }

  async more(direction) {
    try {
      await this.rows.more(direction);
    } catch (error) {
      if (error.name !== 'AbortError') fill(this.message, errorBox(error, button('Go on', {run: () => { fill(this.message); return this.more(direction); }})));
    }
  }

  makeRow() {
    const box = h('input', {type: 'checkbox', tabindex: -1, 'aria-label': 'Select'});
    const id = h('a', {class: 'id mono', tabindex: -1});
    const check = h('div', {class: 'cell tick-box', role: 'gridcell'}, box);
    const name = h('div', {class: 'cell name', role: 'rowheader'}, id);
    const values = h('div', {class: 'values'});
    const when = h('time', null);
    const changed = h('div', {class: 'cell when muted', role: 'gridcell'}, when);
    return {node: h('div', {class: 'row', role: 'row'}, check, name, values, changed), box, id, values, when, cells: [], index: -1, row: null};
  }

  fillRow(element, index, row) {
    const {node, box, id, values, when} = element;
    element.index = index;
    element.row = row;
    node.id = `row-${index}`;
    node.dataset.index = index;
    node.style.setProperty('transform', `translateY(${index * this.rowHeight}px)`);
    const chosen = this.selected.has(row.id);
    node.setAttribute('aria-selected', String(chosen));
    node.setAttribute('aria-rowindex', this.rows.exact ? this.rows.first + index + 2 : index + 2);
    node.classList.toggle('active', index === this.active);
    box.checked = chosen;
    box.setAttribute('aria-label', `Select ${row.id}`);
    id.textContent = row.id;
    id.title = row.id;
    id.href = this.app.address('/db/:db/doc', {db: this.db}, {id: row.id});
    const columns = this.columns;
    while (element.cells.length > columns.length) element.cells.pop().remove();
    while (element.cells.length < columns.length) {
      const cell = h('div', {role: 'gridcell'});
      element.cells.push(cell);
      values.append(cell);
    }
    columns.forEach((name, i) => {
      const cell = element.cells[i], {text, kind} = shown(row.values[i]);
      cell.className = `cell value ${kind}`;
      cell.dataset.title = name === '@preview' ? '' : name;
      cell.textContent = text;
      cell.title = text.length > 24 ? text : '';
    });
    const date = new Date(row.lastModified);
    when.dateTime = row.lastModified;
    when.title = `${row.lastModified} · ${bytes(row.bytes)} · ${row.collection}`;
    when.textContent = Number.isNaN(date.getTime()) ? '' : time(row.lastModified).textContent;
  }

  drawHead() {
    const columns = this.columns;
    const fit = columns.map((name, i) => this.fit(name, i));
    const idWidth = this.layout.widths['@id'] ?? (this.fitted['@id'] ??= this.fitText(this.rows.rows.map((row) => row.id), 8.2, 160, 360));
    const grid = this.narrow ? '' : ['32px', `${idWidth}px`, ...fit.map(({width, fixed, most}) => fixed ? `${width}px` : `minmax(${width}px, ${most})`), 'minmax(104px, 1fr)'].join(' ');
    this.list.style.setProperty('--grid', grid);
    this.list.style.setProperty('--least', this.narrow ? '0px' : `${fit.reduce((sum, {width}) => sum + width, 32 + idWidth + 104 + 16)}px`);
    const key = grid + columns.join('\n');
    if (this.headKey === key) return this.drawAllBox();
    this.headKey = key;
    const handle = (name) => h('span', {class: 'handle', role: 'separator', 'aria-orientation': 'vertical', 'aria-label': `Width of ${name}`, tabindex: 0, data: {column: name}});
    this.allBox = h('input', {type: 'checkbox', 'aria-label': 'Select the rows that are loaded', on: {change: () => this.selectAll(this.allBox.checked)}});
    fill(this.headRow, h('div', {class: 'cell tick-box', role: 'columnheader'}, this.allBox), h('div', {class: 'cell name', role: 'columnheader'}, h('span', {class: 'label'}, 'ID'), handle('@id')),
      columns.map((name, i) => h('div', {class: ['cell value', fit[i].number && 'number'], role: 'columnheader', title: name}, h('span', {class: 'label'}, name === '@preview' ? 'Document' : name), handle(name))),
      h('div', {class: 'cell when', role: 'columnheader'}, h('span', {class: 'label'}, 'Changed')));
    this.drawAllBox();
  }

  // fit returns how wide a column is: as the user wants it, or as its first values need.
  fit(name, i) {
    const values = this.rows.rows.slice(0, 60).map((row) => shown(row.values[i])).filter(({kind}) => kind !== 'none');
    const number = this.numbers[name] ??= values.length > 0 && values.every(({kind}) => kind === 'number');
    if (this.layout.widths[name]) return {width: this.layout.widths[name], fixed: true, number};
    if (name === '@preview') return {width: 480, most: '1000fr', number}; // what is left is for it
    const width = this.fitted[name] ??= this.fitText([name, ...values.map(({text}) => text)], number ? 8 : 7, 72, 280) + (number ? 24 : 0);
    return {width, most: `${2 * width}px`, number};
  }

  fitText(texts, unit, least, most) {
    return Math.round(Math.max(least, Math.min(most, texts.reduce((n, text) => Math.max(n, text.length), 0) * unit + 24)));
  }

  drawAllBox() {
    if (!this.allBox) return;
    const loaded = this.rows.rows.filter((row) => this.selected.has(row.id)).length;
    this.allBox.checked = loaded > 0 && loaded === this.rows.rows.length;
    this.allBox.indeterminate = loaded > 0 && loaded < this.rows.rows.length;
  }

  // drawPlace says where one is: numbers if they are known, and about where if not.
  drawPlace(begin, end) {
    const {first, exact, rows} = this.rows, total = this.total();
    this.list.setAttribute('aria-rowcount', total === null ? -1 : total + 1);
    let text = '';
    if (rows.length === 0) text = 'no rows';
    else if (exact) text = `rows ${count(first + begin + 1)}–${count(first + end)}` + (total === null ? (this.rows.atEnd ? ` of ${count(first + rows.length)}` : '') : ` of ${count(Math.max(total, first + end))}`);
    else text = total === null ? 'somewhere in the middle' : `about row ${count(roughly(first + begin + 1))} of ${count(total)}`;
    if (this.where.textContent !== text) this.where.textContent = text;

    const whole = this.rows.atStart && this.rows.atEnd ? rows.length : total;
    const seen = Math.max(1, end - begin);
    this.track.classList.toggle('unknown', whole === null);
    this.track.classList.toggle('none', rows.length === 0 || this.rows.atStart && this.rows.atEnd && seen >= rows.length);
    const height = this.track.clientHeight;
    const size = Math.max(32, Math.min(height, whole ? height * seen / whole : 48));
    const room = Math.max(1, (whole ?? rows.length) - seen);
    const part = whole === null ? (this.rows.atStart && begin === 0 ? 0 : this.rows.atEnd && end >= rows.length ? 1 : this.guessed ?? .5) : Math.min(1, (first + begin) / room);
    this.part = part;
    this.thumb.style.setProperty('height', `${size}px`);
    if (!this.dragging) this.thumb.style.setProperty('transform', `translateY(${part * (height - size)}px)`);
    this.thumb.classList.toggle('about', !exact);

    this.noted = rows.length > 0 && (begin > 0 || !this.rows.atStart) ? cursorOf(rows[Math.min(begin, rows.length - 1)]) : '';
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.app.note({from: this.noted}), 300);
  }

  // ---- Moving

  async toStart() { await this.attempt(async () => { if (this.rows.atStart || await this.rows.start()) this.show(0); }); }
  async toEnd() { await this.attempt(async () => { if (this.rows.atEnd || await this.rows.end()) this.show(this.rows.rows.length - 1); }); }

  // place goes to an ID or to about a part of all, and puts that row at the top. It resolves to the number of the row, or to
  // null if another place was asked for meanwhile.
  async place(where) {
    const index = await this.rows.place(where);
    if (index === null) return null;
    this.sizeCanvas();
    this.list.scrollTop = index * this.rowHeight;
    this.draw(true);
    return index;
  }

  async jump(id) {
    await this.attempt(async () => {
      if (this.order === 'newest') { // an ID has its place among IDs
        this.order = 'id';
        this.drawOrder();
        this.app.note({order: 'id', from: id}, {push: true});
      }
      const index = await this.place({from: id});
      if (index === null) return;
      this.active = index;
      this.draw(true);
      this.list.focus({preventScroll: true});
      const found = this.rows.rows[index]?.id;
      if (!found) toast('There are no rows here.');
      else if (found.toLowerCase() !== id.toLowerCase()) toast(`There is no ${id}${this.collection ? ` in ${this.collection}` : ''}. This is where it would stand.`);
    });
  }

  // show makes a row the active one, and brings it into view.
  show(index) {
    const {rows} = this.rows;
    if (rows.length === 0) return;
    this.active = Math.max(0, Math.min(rows.length - 1, index));
    this.sizeCanvas();
    const head = this.narrow ? 0 : this.headRow.offsetHeight;
    const top = this.active * this.rowHeight, height = this.list.clientHeight - head;
    if (top < this.list.scrollTop) this.list.scrollTop = top;
    else if (top + this.rowHeight > this.list.scrollTop + height) this.list.scrollTop = top + this.rowHeight - height;
    this.draw(true);
    this.list.setAttribute('aria-activedescendant', `row-${this.active}`);
    if (document.activeElement === document.body || document.activeElement?.id === 'page') this.list.focus({preventScroll: true});
  }

  setOrder(order) {
    if (order === this.order) return;
    this.app.go(this.href({order: order === 'id' ? 'id' : '', prefix: ''}));
  }

  drawOrder() { fill(this.orderButton.querySelector('span'), this.order === 'id' ? 'By ID' : 'Newest first'); }

  chooseOrder() {
    menu(this.orderButton, [
      {text: 'Newest first', checked: this.order === 'newest', run: () => this.setOrder('newest')},
      {text: 'By ID', checked: this.order === 'id', run: () => this.setOrder('id')},
    ]);
  }

  filter(prefix) {
    if (prefix === this.prefix) return;
    const replace = this.prefix !== ''; // back leads to all rows, not to each letter
    this.prefix = prefix; // Enter is followed by the event change
    this.app.go(this.href({prefix, order: ''}), {replace});
  }

  dragged(event) {
    event.preventDefault();
    const box = this.track.getBoundingClientRect(), size = this.thumb.offsetHeight;
    const grip = event.target === this.thumb ? event.clientY - this.thumb.getBoundingClientRect().top : size / 2;
    let part = this.part ?? 0, timer = 0;
    const go = () => {
      clearTimeout(timer);
      timer = 0;
      this.attempt(async () => {
        this.guessed = part;
        if (this.rows.atStart && this.rows.atEnd) { this.list.scrollTop = part * (this.canvas.offsetHeight - this.list.clientHeight); this.draw(true); }
        else if (part <= .002) { await this.rows.start(); this.list.scrollTop = 0; this.draw(true); }
        else if (part >= .998) { await this.rows.end(); this.list.scrollTop = this.canvas.offsetHeight; this.draw(true); }
        else await this.place({at: part.toFixed(4)});
      });
    };
    const move = (e) => {
      part = Math.max(0, Math.min(1, (e.clientY - box.top - grip) / Math.max(1, box.height - size)));
      this.dragging = true;
      this.thumb.style.setProperty('transform', `translateY(${part * (box.height - size)}px)`);
      this.bubble.hidden = false;
      this.bubble.textContent = `about ${Math.round(part * 100)} %`;
      this.bubble.style.setProperty('transform', `translateY(${part * (box.height - size) + size / 2 - 12}px)`);
      timer ||= setTimeout(go, 150);
    };
    const up = () => {
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', up);
      removeEventListener('pointercancel', up);
      this.bubble.hidden = true;
      this.dragging = false;
      go();
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', up);
    addEventListener('pointercancel', up);
    move(event);
  }

  toList(event) {
    if (document.activeElement === this.list) return false;
    if (event.target.closest?.('.menu, .collections, button')) return false;
    this.list.focus({preventScroll: true});
    this.pressed(event);
  }

  pressed(event) {
    if (event.target !== this.list && event.target.closest('input, .handle')) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const {rows} = this.rows, seen = Math.max(1, Math.floor(this.list.clientHeight / this.rowHeight) - 2);
    const at = this.active < 0 ? Math.floor(this.list.scrollTop / this.rowHeight) - 1 : this.active;
    const step = {ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: seen, PageUp: -seen}[event.key];
    if (step) {
      this.show(at + step);
      if (event.shiftKey && rows[this.active]) { this.select(rows[this.active].id, true); this.draw(true); }
    } else if (event.key === 'Home') this.toStart();
    else if (event.key === 'End') this.toEnd();
    else if (event.key === 'Enter' && rows[this.active]) this.app.go(this.app.address('/db/:db/doc', {db: this.db}, {id: rows[this.active].id}));
    else if ((event.key === ' ' || event.key === 'x') && rows[this.active]) this.toggle(this.active, event.shiftKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  clicked(event) {
    const node = event.target.closest('.canvas .row');
    if (!node) return;
    const index = Number(node.dataset.index);
    if (event.target.closest('.tick-box')) return this.toggle(index, event.shiftKey);
    if (event.target.closest('a')) return; // the router's
    if (getSelection().toString() !== '') return; // text was marked
    this.active = index;
    this.draw(true);
    if (this.narrow || event.detail === 2) this.app.go(this.app.address('/db/:db/doc', {db: this.db}, {id: this.rows.rows[index].id}));
  }

  // ---- Selection

  select(id, on) {
    if (!on) this.selected.delete(id);
    else if (this.selected.size < mostSelected) this.selected.add(id);
    else if (!this.warned) { this.warned = true; toast(`At most ${count(mostSelected)} documents are selected at a time. For more, patch or delete by a query.`, {kind: 'wrong'}); }
    this.drawSelection();
  }

  toggle(index, range) {
    const {rows} = this.rows, on = !this.selected.has(rows[index].id);
    const from = range && this.anchor >= 0 ? this.anchor : index;
    for (let i = Math.min(from, index); i <= Math.max(from, index); i++) if (rows[i]) this.select(rows[i].id, range ? true : on);
    this.anchor = this.active = index;
    this.draw(true);
  }

  selectAll(on) {
    for (const row of this.rows.rows) this.select(row.id, on);
    this.draw(true);
  }

  drawSelection() {
    const n = this.selected.size;
    this.bottom.hidden = n === 0;
    if (n === 0) return;
    const write = this.app.can('write');
    fill(this.bottom, h('span', {class: 'number'}, `${count(n)} selected`), button('Export', {icon: 'download', run: () => this.exportSelected()}),
      write && button('Delete …', {icon: 'delete', kind: 'danger', run: () => this.remove()}),
      write && link(this.app.address('/db/:db/patch', {db: this.db}, {q: `from ${this.collection && !this.collection.startsWith('@') ? rql.name(this.collection) : '@all_docs'} where id() in (${[...this.selected].slice(0, 50).map(rql.literal).join(', ')})`}), {class: 'button', hidden: n > 50}, icon('patch'), 'Patch …'),
      button('', {icon: 'close', kind: 'quiet', label: 'Select nothing', run: () => { this.selected.clear(); this.drawSelection(); this.draw(true); }}));
  }

  showMore(anchor) {
    menu(anchor, [
      {text: 'Query it', icon: 'query', run: () => this.app.go(this.app.address('/db/:db/query', {db: this.db}, {q: `from ${rql.name(this.collection)}`}))},
      {text: 'Export it …', icon: 'download', run: () => this.app.go(this.app.address('/db/:db/io', {db: this.db}, {collection: this.collection}))},
      null,
      {text: 'Delete all its documents …', icon: 'delete', danger: true, run: () => this.removeAll()},
    ]);
  }

  // removeAll deletes the collection, as an operation of the server, which goes on when the page is left.
  async removeAll() {
    const n = this.total();
    const sure = await confirm({title: `Delete ${n === null ? 'all documents' : plural(n, 'document')} of ${this.collection}?`, type: this.collection, action: 'Delete all',
      text: 'It is done in steps of some documents each; the page Operations shows how far it is and can end it, and what is deleted by then stays deleted. Indexes stay.'});
    if (!sure) return;
    await this.attempt(async () => {
      await api.send('DELETE', api.raven(this.db, 'queries'), {Query: `from ${rql.name(this.collection)}`});
      this.app.go(this.app.address('/db/:db/operations', {db: this.db}));
    });
  }

  async remove() {
    const ids = [...this.selected];
    const sure = await confirm({title: `Delete ${plural(ids.length, 'document')}?`, action: `Delete ${plural(ids.length, 'document')}`,
      text: h('div', null, h('p', {class: 'mono some-ids'}, ids.slice(0, 5).join('\n') + (ids.length > 5 ? `\n… and ${count(ids.length - 5)} more` : '')), h('p', null, 'Revisions stay where the collection keeps them; otherwise this cannot be undone.'))});
    if (!sure) return;
    const size = 500;
    let done = 0;
    await this.attempt(async () => {
      for (; done < ids.length; done += size) { // each is one transaction
        const some = ids.slice(done, done + size);
        await api.send('POST', api.raven(this.db, 'bulk_docs'), {Commands: some.map((Id) => ({Type: 'DELETE', Id, ChangeVector: null}))});
        for (const id of some) this.selected.delete(id);
        this.rows.remove(new Set(some));
      }
      toast(`${plural(ids.length, 'document')} deleted.`);
    });
    this.drawSelection();
    await this.reload();
  }

  // exportSelected saves the documents as they are stored, one a line.
  async exportSelected() {
    const ids = [...this.selected], lines = [];
    await this.attempt(async () => {
      for (let i = 0; i < ids.length; i += 200) {
        const {text} = await api.text('POST', api.raven(this.db, 'docs'), {body: JSON.stringify({Ids: ids.slice(i, i + 200)}), signal: this.app.signal});
        const results = parse(text).members.find((m) => m.name === 'Results').value.items;
        for (const one of results) if (one.kind === 'object') lines.push(text.slice(one.start, one.end), '\n');
      }
      save(`${this.db}-${this.collection || 'documents'}.ndjson`, new Blob(lines, {type: 'application/x-ndjson'}));
    });
  }

  // ---- Columns

  chooseColumns() {
    const columns = this.columns;
    const names = [...new Set([...columns, '@preview', ...this.fields])];
    menu(this.columnsButton, [
      ...names.map((name) => ({text: name === '@preview' ? 'the whole document' : name, checked: columns.includes(name), run: () => {
        const next = columns.includes(name) ? columns.filter((c) => c !== name) : [...columns, name];
        if (next.length > 32) return toast('A list has at most 32 columns.', {kind: 'wrong'});
        this.setLayout({columns: next.length > 0 ? next : ['@preview']});
        this.reload();
      }})), null,
      {text: 'As at the beginning', run: () => { localStorage.removeItem(layoutKey(this.db, this.collection)); this.layout = readLayout(this.db, this.collection); this.shownColumns = undefined; this.reload(); }},
    ]);
  }

  setLayout(values) {
    this.layout = {...this.layout, ...values};
    writeLayout(this.db, this.collection, this.layout);
  }

  resizeBegins(event) {
    const handle = event.target.closest('.handle');
    if (!handle) return;
    event.preventDefault();
    const begin = event.clientX, width = handle.parentElement.offsetWidth;
    const move = (e) => this.resize(handle.dataset.column, width + e.clientX - begin);
    const up = () => { removeEventListener('pointermove', move); removeEventListener('pointerup', up); removeEventListener('pointercancel', up); };
    addEventListener('pointermove', move);
    addEventListener('pointerup', up);
    addEventListener('pointercancel', up);
  }

  resizedByKey(event) {
    const handle = event.target.closest('.handle'), step = {ArrowLeft: -16, ArrowRight: 16}[event.key];
    if (!handle || !step) return;
    event.preventDefault();
    event.stopPropagation();
    const {column} = handle.dataset;
    this.resize(column, handle.parentElement.offsetWidth + step);
    this.headRow.querySelector(`[data-column="${CSS.escape(column)}"]`)?.focus();
  }

  resize(column, width) {
    this.setLayout({columns: this.columns, widths: {...this.layout.widths, [column]: Math.max(64, Math.min(1200, Math.round(width)))}});
    this.drawHead();
  }

  // ---- What others change

  // follow counts what changes while the page can be seen: a browser has few connections to a server for all its tabs.
  follow() {
    if (this.unfollowed !== undefined && this.unfollowed !== null || document.hidden || !this.container.isConnected) return;
    const ends = new AbortController();
    this.unfollowed = () => ends.abort();
    feed.follow(this.db, {collection: this.collection, prefix: this.prefix}, 'now', {state() {}, change: ({id}) => {
      if (this.newer.size < 1000) this.newer.add(id);
      this.pill.hidden = false;
      fill(this.pill, icon('refresh'), `${this.newer.size < 1000 ? count(this.newer.size) : '1,000 or more'} changed`);
      if (!this.pill.isConnected) this.reload(); // the empty page has no list
    }}, ends.signal);
  }

  unfollow() {
    this.unfollowed?.();
    this.unfollowed = null;
  }

  // reload loads what is shown again, at the place where it is.
  async reload() {
    this.newer.clear();
    this.pill.hidden = true;
    if (!this.pill.isConnected) return this.app.go(location.pathname + location.search, {replace: true});
    await this.attempt(async () => {
      const row = this.rows.rows[Math.floor(this.list.scrollTop / this.rowHeight)], atTop = this.rows.atStart && this.list.scrollTop < this.rowHeight;
      await this.loadCollections();
      if (atTop || !row) { await this.rows.start(); this.draw(true); } else await this.place({from: cursorOf(row)});
      if (this.rows.rows.length > 0) return;
      if (this.prefix === '') this.showEmpty();
      else this.showNone();
    });
  }

  dropped(event) {
    if (!event.dataTransfer?.files.length || !this.app.can('write')) return;
    event.preventDefault();
    this.app.handOver({files: [...event.dataTransfer.files]});
    this.app.go(this.app.address('/db/:db/io', {db: this.db}));
  }
}

// roughly rounds a guess to two digits: more would say more than is known.
export function roughly(n) {
  if (n < 100) return Math.round(n);
  const unit = 10 ** (Math.floor(Math.log10(n)) - 1);
  return Math.round(n / unit) * unit;
}

// ---- What is remembered of a collection: its columns and their widths

function layoutKey(db, collection) { return `jay:list:${db}:${collection}`; }

function readLayout(db, collection) {
  try {
    const {columns, widths} = JSON.parse(localStorage.getItem(layoutKey(db, collection)) ?? '{}');
    return {columns: Array.isArray(columns) && columns.every((c) => typeof c === 'string') ? columns : undefined, widths: widths && typeof widths === 'object' ? widths : {}};
  } catch { return {columns: undefined, widths: {}}; } // storage is closed, or was changed by hand
}

function writeLayout(db, collection, layout) {
  try { localStorage.setItem(layoutKey(db, collection), JSON.stringify(layout)); } catch { /* storage is full or closed: it is forgotten with the page */ }
}
