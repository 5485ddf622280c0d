// Indexes: which there are, how large, how far a build is; make one, drop one. Computed ones stand below the others, which their parts are not among.

import * as api from '../api.js';
import {computedTable, dropComputed, newComputed} from '../computed.js';
import * as exact from '../exact.js';
import {button, bytes, confirm, count, dialog, empty, errorBox, field, fill, h, icon, link, notice, patience, progress, state, table, toast} from '../ui.js';

export const page = {
  title: 'Indexes',
  mount(container, params, app) {
    const p = new Indexes(container, params, app);
    p.load();
    return () => clearTimeout(p.timer);
  },
};

class Indexes {
  constructor(container, params, app) {
    Object.assign(this, {app, db: params.db, collection: params.query.get('collection') ?? '', list: h('div'), failed: h('div')});
    const add = app.can('admin') && button('New index', {icon: 'plus', kind: 'primary', key: 'n', run: () => this.create()});
    const compute = add && button('New computed index', {icon: 'plus', key: 'm', run: () => this.compute()});
    this.summary = h('span', {class: 'muted number'});
    fill(container, h('div', {class: 'head'}, h('h1', null, 'Indexes'), this.summary, h('div', {class: 'buttons'}, compute, add)), this.failed, this.list);
    if (add) {
      app.keys([{key: 'n', text: 'New index', run: () => { this.create(); }}, {key: 'm', text: 'New computed index', run: () => { this.compute(); }}]);
      app.commands([{text: 'New index', hint: 'n', run: () => this.create()}, {text: 'New computed index', hint: 'm', run: () => this.compute()}]);
    }
    // An address can bring a declaration, such as one that a query suggests.
    if (add && params.query.has('fields')) this.create({collection: this.collection, fields: params.query.get('fields').split(','), where: params.query.get('where') ?? ''});
  }

  async load() {
    const mine = this.asked = (this.asked ?? 0) + 1; // an older list may come last
    const done = this.loaded ? () => {} : patience(this.list);
    try {
      const {signal} = this.app;
      const old = this.disk && performance.now() - this.measured < 30_000; // the sizes cost more, and change slowly
      const [{indexes}, {computed}, disk, {operations}] = await Promise.all([
        exact.get(api.jay(this.db, 'indexes', {collection: this.collection}), {signal}),
        exact.get(api.jay(this.db, 'indexes/computed'), {signal}),
        old ? this.disk : exact.get(api.jay(this.db, 'disk'), {signal}),
        exact.get(api.at('/jay/v1/operations', {database: this.db}), {signal}),
      ]);
      if (mine !== this.asked) return done();
      if (!old) this.measured = performance.now();
      this.disk = disk;
      done();
      fill(this.failed);
      this.draw(indexes, computed.filter((ix) => !this.collection || ix.maps.some((m) => m.collection.toLowerCase() === this.collection.toLowerCase())), disk, operations);
      this.loaded = true;
    } catch (error) {
      done();
      if (mine === this.asked && error.name !== 'AbortError') fill(this.failed, errorBox(error, button('Try again', {run: () => this.load()})));
    }
  }

  draw(all, computed, disk, operations) {
    const parts = computed.flatMap((ix) => [...(ix.parts ?? []), ...(ix.next?.parts ?? [])]);
    const indexes = all.filter((ix) => !parts.some((part) => part.collection === ix.collection && part.name === ix.name));
    const size = (ix) => disk.indexes.find((one) => one.collection === ix.collection && one.name === ix.name)?.bytes ?? 0;
    const building = all.filter((ix) => ix.state !== 'ready');
    const number = indexes.length + computed.length;
    fill(this.summary, number ? `${count(number)} in ${bytes(all.reduce((sum, ix) => sum + Number(size(ix)), 0))}` : null);
    const shown = JSON.stringify([all, computed, disk.indexes, operations.filter((o) => o.kind === 'build an index' && o.status === 'InProgress')], (k, v) => (typeof v === 'bigint' ? String(v) : v));
    if (shown !== this.shown) { // nothing moves while nothing changes
      this.shown = shown;
      fill(this.list, this.collection && h('p', {class: 'filter-note'}, `Those of ${this.collection}. `, link(this.app.address('/db/:db/indexes', {db: this.db}), null, 'Show all')),
        number === 0 ? this.none() : indexes.length > 0 && table([
          {title: 'Index', cell: (ix) => h('span', {class: 'mono'}, ix.name)},
          {title: 'Collection', cell: (ix) => ix.collection},
          {title: 'Fields', cell: (ix) => h('span', {class: 'fields-of'}, ix.fields.map((f) => h('code', {class: 'chip'}, f.replace(/^-/, ''), f.startsWith('-') ? h('span', {title: 'descending'}, ' ↓') : null)))},
          {title: 'Kind', cell: (ix) => [ix.kind && h('span', {class: 'tag'}, ix.kind), Object.entries(ix.options ?? {}).sort().map(([name, value]) => h('span', {class: 'tag'}, name, ' ', h('code', null, value))), ix.unique && h('span', {class: 'tag'}, 'unique'), ix.where && h('span', {class: 'tag', title: ix.where}, 'where ', h('code', null, ix.where)), ix.automatic && h('span', {class: 'tag', title: 'A query has made it'}, 'automatic'), !ix.kind && !ix.unique && !ix.where && !ix.automatic && h('span', {class: 'muted'}, 'plain')]},
          {title: 'State', cell: (ix) => this.state(ix, operations)},
          {title: 'On disk', number: true, cell: (ix) => bytes(size(ix))},
          {title: '', number: true, cell: (ix) => this.app.can('admin') && ix.state !== 'dropping' && button('', {icon: 'delete', kind: 'quiet', label: `Drop ${ix.name} of ${ix.collection}`, run: () => this.drop(ix)})},
        ], indexes, {caption: 'Indexes'}),
        computed.length > 0 && computedTable(computed, {db: this.db, app: this.app, size, drop: (ix) => this.dropComputed(ix)}),
        number > 0 && h('p', {class: 'hint muted'}, 'Sizes are estimates, and do not count what was written last. Which indexes queries have used is not recorded: a query’s Explain names the one it takes.'));
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), building.length ? 500 : 5000);
  }

  state(ix, operations) {
    if (ix.state === 'ready') return state('fine', 'ready');
    if (ix.state === 'dropping') return state('careful', 'is being dropped');
    const build = operations.find((o) => o.kind === 'build an index' && o.status === 'InProgress' && (o.subject === `${ix.collection}: ${ix.name}` || o.subject === `${ix.collection}: ${ix.fields.join(',')}`));
    if (!build?.progress) return state('careful', 'is being built');
    const bar = progress(`Build of ${ix.name}`);
    bar.update(Number(build.progress.documents), Number(build.progress.total));
    return h('span', {class: 'building'}, bar.node);
  }

  none() {
    return empty('There are no indexes.',
      h('p', null, 'Without one, a query reads all documents of its collection. With an index on the fields of its condition and its order it reads the answers only. Writes keep indexes up to date: they are never stale.'),
      this.app.can('admin') ? h('div', {class: 'buttons start'}, button('New index', {icon: 'plus', kind: 'primary', run: () => this.create()})) : h('p', {class: 'muted'}, 'To make one needs the right admin.'));
  }

  async drop(ix) {
    if (!await confirm({title: `Drop ${ix.name}?`, action: 'Drop the index', text: `Queries of ${ix.collection} that use it read more documents from then on. No document changes, and the index can be made again.${ix.unique ? ' Its values are no longer kept unique.' : ''}`})) return;
    try {
      await api.send('DELETE', api.jay(this.db, 'indexes', {collection: ix.collection, name: ix.name}));
      toast(`${ix.name} is dropped.`);
      this.disk = null;
    } catch (error) { toast(error.message, {kind: 'wrong'}); }
    await this.load();
  }

  async dropComputed(ix) {
    if (!await dropComputed(this.db, ix)) return;
    this.disk = null;
    await this.load();
  }

  async compute() {
    const made = await newComputed(this.db, this.app);
    this.disk = null;
    if (made) await this.load();
  }

  async create(given = {collection: this.collection, fields: [''], where: ''}) {
    const made = await newIndex(this.db, given, this.app);
    this.disk = null;
    if (made) await this.load();
  }
}

const most = 8;

// newIndex asks for a declaration, and begins the build. It resolves to true when it has begun.
function newIndex(db, given, app) {
  return dialog('New index', (close) => {
    const failed = h('div'), rows = h('div', {class: 'index-fields'}), known = h('datalist', {id: 'index-fields'}), names = h('datalist', {id: 'index-collections'});
    const collection = h('input', {type: 'text', list: names.id, required: true, autocomplete: 'off', spellcheck: 'false', value: given.collection ?? '', autofocus: !given.collection, on: {change: () => fields()}});
    const unique = h('input', {type: 'checkbox'}), where = h('input', {type: 'text', class: 'mono', autocomplete: 'off', spellcheck: 'false', value: given.where ?? '', placeholder: "Status = 'open'"});
    const name = h('input', {type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: 200});
    const replace = h('input', {type: 'checkbox'});
    const go = button('Create', {kind: 'primary', type: 'submit'});
    const more = button('Another field', {icon: 'plus', kind: 'quiet', run: () => { row('').querySelector('input').focus(); }});
    const row = (text) => {
      const node = h('div', {class: 'index-field'},
        h('input', {type: 'text', class: 'mono', list: known.id, 'aria-label': 'Field', placeholder: 'Address.City', autocomplete: 'off', spellcheck: 'false', value: text.replace(/^-/, ''), required: true}),
        h('select', {'aria-label': 'Order', value: ''}, h('option', {value: ''}, 'ascending'), h('option', {value: '-', selected: text.startsWith('-')}, 'descending')),
        button('', {icon: 'close', kind: 'quiet', label: 'Leave this field out', run: () => { if (rows.children.length > 1) node.remove(); more.disabled = false; }}));
      rows.append(node);
      more.disabled = rows.children.length >= most;
      return node;
    };
    (given.fields?.length ? given.fields : ['']).slice(0, most).forEach(row);
    const fields = async () => {
      const of = collection.value.trim();
      if (!of) return;
      try {
        const found = await api.get(api.jay(db, 'fields', {collection: of}), {signal: app.signal, quiet: true});
        if (collection.value.trim() === of) fill(known, found.fields.filter((f) => !f.types.includes('object')).map((f) => h('option', {value: f.path})));
      } catch { /* the names of fields are a help only */ }
    };
    api.get(api.jay(db, 'collections'), {signal: app.signal}).then(({collections}) => fill(names, collections.filter((c) => !c.name.startsWith('@')).map((c) => h('option', {value: c.name}, `${count(c.documents)} documents`))), () => {});
    fields();
    return h('form', {on: {submit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      try {
        const index = {fields: [...rows.children].map((r) => r.querySelector('select').value + r.querySelector('input').value.trim()), unique: unique.checked};
        if (where.value.trim()) index.where = where.value.trim();
        if (name.value.trim()) index.name = name.value.trim();
        await api.send('PUT', api.jay(db, 'indexes', {background: true}), {collection: collection.value.trim(), index, replace: replace.checked});
        close(true);
      } catch (error) { fill(failed, errorBox(error)); } finally { go.disabled = false; }
    }}},
    field('Collection', collection), names, known,
    h('fieldset', {class: 'plain'}, h('legend', null, 'Fields, in the order in which they sort'), rows, more),
    h('label', {class: 'check'}, unique, h('span', null, 'Unique ', h('span', {class: 'muted'}, '– a document that has the values of another one is refused'))),
    field('Only documents where', where, 'A condition of RQL. Empty means all documents of the collection.'),
    h('details', null, h('summary', null, 'Name'), field('Name', name, 'Without one, the fields are the name.'), h('label', {class: 'check'}, replace, h('span', null, 'Replace an index of this name that is declared otherwise'))),
    failed, h('div', {class: 'buttons'}, button('Cancel', {run: () => close()}), go));
  }, {wide: true});
}
