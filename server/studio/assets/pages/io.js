// Import and export. Files go to the server as they are, a piece at a time; both are operations of the server,
// which says how far they are.

import * as api from '../api.js';
import * as operation from '../operation.js';
import {button, bytes, count, downloads, errorBox, field, fill, h, icon, link, notice, plural, progress, state, toast} from '../ui.js';

const formats = [
  {id: 'ndjson', text: 'NDJSON – a document a line', ends: ['.ndjson', '.jsonl']},
  {id: 'json', text: 'JSON – one array', ends: ['.json']},
  {id: 'csv', text: 'CSV', ends: ['.csv', '.tsv']},
  {id: 'extjson', text: 'Extended JSON of MongoDB', ends: ['.ejson']},
  {id: 'ravendbdump', text: 'Dump of RavenDB', ends: ['.ravendbdump']},
];

// formatOf finds the format by the name of a file; a further .gz or .zst packs it. It is here for tests, too.
export function formatOf(name) {
  const plain = name.toLowerCase().replace(/\.(gz|zst)$/, '');
  return formats.find((f) => f.ends.some((end) => plain.endsWith(end)))?.id ?? 'ndjson';
}

// belongings tells how many attachments and revisions came with documents.
const belongings = (p) => [p.attachments && plural(p.attachments, 'attachment'), p.revisions && plural(p.revisions, 'revision')].filter(Boolean).map((one) => `, ${one}`).join('');

export const page = {
  title: 'Import and export',
  mount(container, params, app) {
    const io = new Transfers(container, params, app);
    return () => io.end();
  },
};

class Transfers {
  constructor(container, params, app) {
    Object.assign(this, {app, db: params.db, queue: [], running: null});
    fill(container, h('div', {class: 'head'}, h('h1', null, 'Import and export')),
      h('div', {class: 'two'}, app.can('write') ? this.importing(params) : h('section', null, h('h2', null, 'Import'), notice('info', h('p', null, 'To import needs the right write in this database.'))), this.exporting(params)));
    app.unsaved(() => !!this.running);
  }

  end() { this.running?.stop(); }

  // ---- Import

  importing(params) {
    const choose = h('input', {type: 'file', multiple: true, class: 'only-read', id: 'import-files', tabindex: -1, 'aria-label': 'Files to import', on: {change: () => { this.add([...choose.files]); choose.value = ''; }}});
    const drop = h('div', {class: 'drop'}, icon('upload'), h('p', null, h('b', null, 'Drop files here')), h('p', {class: 'muted'}, 'NDJSON, JSON, CSV, Extended JSON, dumps of RavenDB – plain, .gz or .zst'), button('Choose files', {run: () => { choose.click(); }}), choose);
    const over = (on) => (event) => { if (![...event.dataTransfer?.types ?? []].includes('Files')) return; event.preventDefault(); drop.classList.toggle('over', on); };
    const section = h('section', {class: 'importing', on: {dragenter: over(true), dragover: over(true), dragleave: over(false), drop: (event) => { over(false)(event); this.add([...event.dataTransfer.files]); }}});
    const names = h('datalist', {id: 'import-collections'});
    api.get(api.jay(this.db, 'collections'), {signal: this.app.signal}).then(({collections}) => {
      const own = collections.filter((c) => !c.name.startsWith('@')).map((c) => h('option', {value: c.name}));
      fill(names, own);
      this.collections?.append(...own.map((o) => h('option', {value: o.value}, o.value)));
      if (this.wanted) this.collections.value = this.wanted;
    }, () => {});
    const text = (name, label, hint, more) => { const input = h('input', {type: 'text', autocomplete: 'off', spellcheck: 'false', ...more}); this.options[name] = () => input.value.trim(); return field(label, input, hint); };
    const check = (name, label, hint, on = false) => { const input = h('input', {type: 'checkbox', checked: on}); this.options[name] = () => input.checked || undefined; return h('label', {class: 'check'}, input, h('span', null, label, ' ', h('span', {class: 'muted'}, hint))); };
    this.options = {};
    const format = h('select', null, h('option', {value: ''}, 'by the name of the file'), formats.map((f) => h('option', {value: f.id}, f.text)));
    this.options.format = () => format.value;
    const options = h('details', {class: 'options'}, h('summary', null, 'Options'),
      field('Format', format),
      text('collection', 'Collection', 'Of documents that name none.', {list: 'import-collections', value: params.query.get('collection') ?? ''}),
      text('id', 'ID to ask for', 'Of documents that bring none: users| counts, users/ is by the number of the write. Empty is HiLo of the collection.', {class: 'mono', placeholder: 'users|'}),
      text('idPrefix', 'Prefix of IDs', 'In front of the IDs of CSV and Extended JSON.', {class: 'mono', placeholder: 'users/'}),
      text('idColumn', 'Column with IDs', 'Of CSV.', {class: 'mono'}),
      text('delimiter', 'Character between cells', 'Of CSV: a comma by itself, tab for tabs.', {maxlength: 3}),
      check('infer', 'Take columns of CSV for what they look like', '– numbers, or true and false, if all their cells are'),
      check('insert', 'Refuse documents whose ID is in use', '– without it they are replaced'),
      check('keep', 'Go on after bad records', '– up to 1,000 are kept, and can be downloaded', true));
    this.files = h('ul', {class: 'transfers', 'aria-label': 'Imports'});
    fill(section, h('h2', null, 'Import'), drop, names, options, this.files,
      h('p', {class: 'hint muted'}, 'Attachments, revisions, counters and compare-exchange values of an export come with its documents; its subscriptions and its configuration of revisions only with the right admin.'));
    return section;
  }

  add(files) {
    for (const file of files) {
      const one = new Import(this, file);
      this.files.append(one.node);
      this.queue.push(one);
    }
    this.next();
  }

  // next imports the files one after the other.
  async next() {
    if (this.running) return;
    for (;;) {
      this.running = this.queue.shift() ?? null;
      if (!this.running || this.app.signal.aborted) { this.running = null; return; }
      if (!this.running.canceled) await this.running.run();
    }
  }

  // ---- Export

  exporting(params) {
    const collections = this.collections = h('select', null, h('option', {value: ''}, 'all documents'));
    this.wanted = params.query.get('collection') ?? '';
    const prefix = h('input', {type: 'text', class: 'mono', autocomplete: 'off', spellcheck: 'false', placeholder: 'users/', value: params.query.get('prefix') ?? ''});
    const query = h('input', {type: 'text', class: 'mono', autocomplete: 'off', spellcheck: 'false', placeholder: "from Orders where Status = 'open'", value: params.query.get('q') ?? ''});
    const format = h('select', null, formats.map((f) => h('option', {value: f.id}, f.text)));
    const packed = h('select', null, h('option', {value: ''}, 'not packed'), h('option', {value: 'gzip'}, 'packed with gzip'), h('option', {value: 'zstd'}, 'packed with zstd'));
    const list = h('ul', {class: 'transfers', 'aria-label': 'Exports'}), failed = h('div');
    const guard = h('input', {type: 'checkbox', checked: true});
    const guarded = h('label', {class: 'check', hidden: true}, guard, h('span', null, 'For a spreadsheet ', h('span', {class: 'muted'}, '– an apostrophe keeps texts such as =1+1 from being formulas; without it an import finds what there was')));
    const all = h('input', {type: 'checkbox', checked: true});
    const withAll = h('label', {class: 'check'}, all, h('span', null, 'With attachments and revisions ', h('span', {class: 'muted'}, '– revisions of all documents or of a collection; compare-exchange values and subscriptions if all documents are exported')));
    format.addEventListener('change', () => { guarded.hidden = format.value !== 'csv'; withAll.hidden = ['csv', 'extjson'].includes(format.value); });
    return h('section', null, h('h2', null, 'Export'), h('form', {on: {submit: async (event) => {
      event.preventDefault();
      fill(failed);
      try {
        const id = await operation.number(this.db, this.app.signal);
        const chosen = query.value.trim() ? {query: query.value.trim()} : {collection: collections.value, startsWith: prefix.value.trim()};
        const path = api.jay(this.db, 'export', {...chosen, format: format.value, compression: packed.value, spreadsheet: format.value === 'csv' && guard.checked || undefined, bare: !all.checked || undefined, operation: id});
        list.prepend(new Export(this, id, path, query.value.trim() || collections.value || prefix.value.trim() || 'all documents').node);
      } catch (error) { if (error.name !== 'AbortError') fill(failed, errorBox(error)); }
    }}}, field('What', collections), field('Prefix of IDs', prefix), field('Or the answers of a query', query), field('Format', format), guarded, withAll, field('Compression', packed), failed,
    h('div', {class: 'buttons start'}, button('Export', {icon: 'download', kind: 'primary', type: 'submit'}))), list,
    h('p', {class: 'hint muted'}, 'All documents are those of one moment, however long it takes. Indexes and other settings of the database are not in the file: a ', link(this.app.address('/db/:db/backup', {db: this.db}), null, 'backup'), ' has everything.'));
  }
}

// Import is a file that is imported, and its line in the list.
class Import {
  constructor(io, file) {
    Object.assign(this, {io, file, canceled: false});
    this.bar = progress(`Import of ${file.name}`);
    this.sign = h('span', null, state('idle', 'waits'));
    this.figures = h('p', {class: 'muted number'}, bytes(file.size));
    this.more = h('div');
    this.cancel = button('Cancel', {kind: 'quiet', label: `Cancel the import of ${file.name}`, run: () => this.stop()});
    this.node = h('li', {class: 'transfer'}, h('header', null, h('b', {class: 'mono'}, file.name), this.sign, this.cancel), this.bar.node, this.figures, this.more);
    this.bar.update(0, file.size, `0 of ${bytes(file.size)}`);
  }

  async run() {
    const {db, app} = this.io, o = this.io.options;
    this.begun = performance.now();
    fill(this.sign, state('careful', 'is imported'));
    let last = null, problem = null;
    const done = new AbortController();
    try {
      this.id = await operation.number(db, app.signal);
      const given = Object.fromEntries(Object.entries(o).map(([name, value]) => [name, value()]));
      const params = {...given, keep: undefined, format: given.format || formatOf(this.file.name), delimiter: given.delimiter || (/\.tsv(\.gz|\.zst)?$/i.test(this.file.name) ? 'tab' : ''), rejects: given.keep ? 1000 : '', operation: this.id, name: this.file.name};
      this.upload = new AbortController();
      const watching = operation.watch(db, this.id, (now) => { last = now; if (now.Progress) this.show(now.Progress); }, done.signal).catch(() => last);
      try {
        await api.text('POST', api.jay(db, 'import', params), {body: this.file, signal: this.upload.signal});
      } catch (error) { if (error.name !== 'AbortError') problem = error; }
      // The operation knows how it has ended, also when the connection does not.
      last = await Promise.race([watching, new Promise((resolve) => setTimeout(resolve, 5000))]) ?? last;
    } catch (error) { problem ??= error; }
    done.abort();
    this.finish(last, problem);
  }

  show(p) {
    const seconds = (performance.now() - this.begun) / 1000;
    this.progress = p;
    this.bar.update(Number(p.read ?? 0), this.file.size, `${bytes(p.read ?? 0)} of ${bytes(this.file.size)}`);
    fill(this.figures, `${plural(p.documents, 'document')}${belongings(p)}, ${count(Math.round(Number(p.documents) / Math.max(seconds, 0.001)))} a second`, p.rejected ? `, ${count(p.rejected)} rejected` : '');
  }

  finish(last, problem) {
    this.cancel.remove();
    const p = last?.Result?.documents !== undefined ? last.Result : last?.Progress ?? this.progress ?? {documents: 0};
    if (p.read !== undefined) this.show(p);
    this.stored = p;
    const kept = plural(p.documents, 'document');
    if (this.canceled) fill(this.sign, state('careful', 'cancelled'));
    else if (problem || last?.Status === 'Faulted') fill(this.sign, state('wrong', 'failed'));
    else fill(this.sign, state(p.rejected ? 'careful' : 'fine', 'imported'));
    fill(this.more,
      this.canceled && h('p', null, `${kept} ${Number(p.documents) === 1 ? 'is' : 'are'} stored already, and stay.`),
      !this.canceled && (problem || last?.Status === 'Faulted') && errorBox({message: problem && problem.kind !== 'offline' ? problem.message : last?.Status === 'Faulted' ? operation.reason(last) : problem.message, remedy: `${kept} ${Number(p.documents) === 1 ? 'is' : 'are'} stored already, and stay. Mend the file and import it again; documents with an ID are replaced.`}),
      p.note && notice('careful', h('p', null, 'The first documents look like Extended JSON of MongoDB, and are stored as they are. The format Extended JSON, under Options, makes IDs, times and numbers of it.')),
      p.leftOut && notice('careful', h('p', null, `Left out: ${Object.entries(p.leftOut).map(([what, n]) => `${count(n)} ${what}`).join(', ')}.`)),
      p.problems?.length > 0 && h('details', {class: 'problems'}, h('summary', null, `Why ${plural(p.rejected, 'record was', 'records were')} rejected`), h('ul', null, p.problems.map((one) => h('li', null, h('b', null, one.place), ': ', one.message)), p.rejected > p.problems.length && h('li', {class: 'muted'}, `The reasons of the first ${count(p.problems.length)} are kept.`))),
      p.rejected > 0 && h('a', {class: 'button', download: '', on: {click: downloads}, href: api.jay(this.io.db, 'import/rejects', {operation: this.id})}, icon('download'), h('span', null, `Download ${plural(p.rejected, 'reject')}`)));
  }

  async stop() {
    if (this.canceled) return;
    this.canceled = true;
    if (!this.id) { fill(this.sign, state('careful', 'cancelled')); this.cancel.remove(); fill(this.more, h('p', null, 'Nothing was stored.')); return; }
    try { await operation.kill(this.io.db, this.id); } catch { /* it has ended meanwhile, or the server is gone: the upload ends in any case */ }
    this.upload?.abort();
  }
}

// Export is a download that the browser stores, and its line in the list.
class Export {
  constructor(io, id, path, what) {
    const sign = h('span', null, state('careful', 'is exported')), figures = h('p', {class: 'muted number'}, 'begins'), more = h('div'), bar = progress(`Export of ${what}`);
    const stop = io.app.can('write') && button('Cancel', {kind: 'quiet', label: `Cancel the export of ${what}`, run: async () => { try { await operation.kill(io.db, id); } catch (error) { toast(error.message, {kind: 'wrong'}); } }});
    this.node = h('li', {class: 'transfer'}, h('header', null, h('b', null, what), sign, stop), bar.node, figures, more);
    bar.update(0, 0, '');
    const begun = performance.now();
    const show = (p) => {
      bar.update(Number(p.documents), Number(p.total ?? 0), p.total ? undefined : '');
      fill(figures, `${plural(p.documents, 'document')}${belongings(p)}, ${bytes(p.bytes)}, ${count(Math.round(Number(p.documents) / Math.max((performance.now() - begun) / 1000, 0.001)))} a second`);
    };
    // A plain download: the browser writes the file while it comes, and this page keeps none of it.
    api.download(path).catch((error) => toast(error.message, {kind: 'wrong'}));
    operation.watch(io.db, id, (now) => { if (now.Progress) show(now.Progress); }, io.app.signal).then((last) => {
      stop?.remove();
      if (last.Result?.documents !== undefined) show(last.Result);
      if (last.Status === 'Completed') {
        bar.update(1, 1, 'in the downloads of the browser');
        fill(sign, state('fine', 'exported'));
        const left = Object.entries(last.Result.leftOut ?? {});
        if (left.length) fill(more, notice('careful', h('p', null, `Not in the file: ${left.map(([what, n]) => `${count(n)} ${what}`).join(', ')}. A backup has them.`)));
      } else {
        bar.node.hidden = true;
        fill(sign, state('wrong', last.Status === 'Canceled' ? 'cancelled' : 'failed'));
        fill(more, errorBox({message: last.Status === 'Canceled' ? 'The file is not whole: delete it.' : operation.reason(last)}));
      }
    }, (error) => { if (error.name !== 'AbortError') fill(more, errorBox(error)); });
  }
}
