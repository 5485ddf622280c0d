// Backups: make one, which the browser stores; what those of this run of the server contained; how one is restored.

import * as api from '../api.js';
import * as exact from '../exact.js';
import * as operation from '../operation.js';
import {button, bytes, code, count, copy, errorBox, field, fill, h, icon, notice, patience, plural, progress, state, table, time} from '../ui.js';

export const page = {
  title: 'Backup',
  mount(container, params, app) {
    const db = params.db, failed = h('div'), under = h('ul', {class: 'transfers', 'aria-label': 'Backups under way'}), list = h('div');
    const base = h('select', null, h('option', {value: ''}, 'everything'));
    const once = h('input', {type: 'checkbox', checked: !app.can('write'), disabled: !app.can('write')}); // a reader's is not recorded
    const go = button('Make a backup', {icon: 'download', kind: 'primary', type: 'submit', key: 'b'});
    const make = async () => {
      fill(failed);
      try {
        const id = await operation.number(db, app.signal);
        const path = api.jay(db, 'backup', {since: base.value, once: once.checked || undefined, operation: id});
        const bar = progress('Backup'), sign = h('span', null, state('careful', 'under way')), more = h('div');
        const cancel = app.can('write') && button('Cancel', {kind: 'quiet', label: 'Cancel the backup', run: () => operation.kill(db, id).catch((error) => fill(more, errorBox(error)))});
        const node = h('li', {class: 'transfer'}, h('header', null, h('b', null, base.value ? 'Incremental backup' : 'Full backup'), sign, cancel), bar.node, more);
        under.prepend(node);
        bar.update(0, 0, 'begins');
        await api.download(path);
        const last = await operation.watch(db, id, (now) => { if (now.Progress?.rawBytes !== undefined) bar.update(0, 0, `${bytes(now.Progress.rawBytes)} before compression`); }, app.signal);
        cancel && cancel.remove();
        bar.node.hidden = true;
        if (last.Status === 'Completed') {
          fill(sign, state('fine', 'whole'));
          fill(more, h('p', null, 'It is in the downloads of the browser: ', contents(last.Result), '.'));
        } else {
          fill(sign, state('wrong', last.Status === 'Canceled' ? 'cancelled' : 'failed'));
          fill(more, errorBox({message: last.Status === 'Canceled' ? 'The backup was cut short.' : operation.reason(last), remedy: 'The file is not whole, and no restore takes it: delete it.'}));
        }
        await load();
      } catch (error) { if (error.name !== 'AbortError') fill(failed, errorBox(error)); }
    };
    const load = async () => {
      try {
        const {operations} = await exact.get(api.at('/jay/v1/operations', {database: db, pageSize: 1000}), {signal: app.signal});
        const all = operations.filter((o) => o.kind === 'backup' && o.status === 'Completed');
        const chosen = base.value;
        fill(base, h('option', {value: ''}, 'everything'), all.map((o) => h('option', {value: o.result.id}, `only what has changed since ${new Date(o.result.created).toLocaleString()}`)));
        if (all.some((o) => o.result.id === chosen)) base.value = chosen;
        fill(list, all.length > 0 && [h('h2', null, 'Made since the server began'), table([
          {title: 'Made', cell: (o) => time(o.result.created)}, {title: 'Kind', cell: (o) => (o.result.base ? `since etag ${count(o.result.after)}` : 'full')},
          {title: 'Documents', number: true, cell: (o) => count(o.result.documents)}, {title: 'Up to etag', number: true, cell: (o) => count(o.result.etag)}, {title: 'Size', number: true, cell: (o) => bytes(o.result.bytes)},
          {title: 'ID', cell: (o) => h('span', {class: 'mono id-of'}, o.result.id, copy(o.result.id, 'Copy the ID'))},
        ], all, {caption: 'Backups'})]);
      } catch (error) { if (error.name !== 'AbortError') fill(list, errorBox(error)); }
    };
    const name = /^[\w.-]+$/.test(db) ? db : 'NAME';
    fill(container, h('div', {class: 'head'}, h('h1', null, 'Backup')),
      h('p', {class: 'lead'}, 'A backup has everything as it is at one moment: documents, attachments, revisions, counters, configuration, subscriptions, and the declarations of indexes. Reads and writes go on meanwhile.'),
      h('form', {class: 'backup-form', on: {submit: (event) => { event.preventDefault(); make(); }}}, field('What', base), h('label', {class: 'check'}, once, h('span', null, 'None will follow it ', h('span', {class: 'muted'}, '– for a copy that is for something else, such as a test'))), failed, h('div', {class: 'buttons start'}, go)),
      under, list,
      h('h2', null, 'Restore'), h('p', null, 'A backup is restored into a new directory, on the machine of the server. Each restored database gets a node tag of its own, so that its IDs are never those of the original:'),
      code(`jay verify ${name}.backup\njay restore --copy-tag B ${name}-restored ${name}.backup`), h('p', {class: 'hint muted'}, 'Moved to databases/NAME in the data directory, while no process has it open, and created with that name, it is a database of this server.'));
    app.keys([{key: 'b', text: 'Make a backup', run: () => { make(); }}]);
    app.commands([{text: 'Make a backup', hint: 'b', run: () => make()}]);
    load();
  },
};

function contents(r) {
  return [plural(r.documents, 'document'), Number(r.deletions) > 0 && `, ${plural(r.deletions, 'deletion')}`, `, up to etag ${count(r.etag)}, ${bytes(r.bytes)} (${bytes(r.rawBytes)} before compression)`];
}
