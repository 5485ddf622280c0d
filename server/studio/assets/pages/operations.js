// Operations: those under way, with their progress, and how the last ones have ended.

import * as api from '../api.js';
import * as exact from '../exact.js';
import * as operation from '../operation.js';
import {button, bytes, confirm, count, duration, empty, errorBox, fill, h, patience, plural, progress, state, time, toast} from '../ui.js';

export const page = {
  title: 'Operations',
  mount(container, params, app) {
    const list = h('div'), failed = h('div');
    let timer, shown, rows = new Map();
    const compact = app.can('admin', '') && button('Compact …', {title: 'Frees what was deleted and overwritten', run: async () => {
      if (!await confirm({title: `Compact ${params.db}?`, kind: 'primary', action: 'Compact', text: 'All tables are merged, so that the space of what was deleted and overwritten is free. The database stays in use; it takes time, and free space on the disk.'})) return;
      try { await api.send('POST', api.at('/admin/compact'), {DatabaseName: params.db, Documents: true}); } catch (error) { toast(error.message, {kind: 'wrong'}); }
      await load();
    }});
    fill(container, h('div', {class: 'head'}, h('h1', null, 'Operations'), h('div', {class: 'buttons'}, compact)), failed, list);
    const load = async () => {
      clearTimeout(timer);
      const done = shown ? () => {} : patience(list);
      let under = false;
      try {
        const {operations} = await exact.get(api.at('/jay/v1/operations', {database: params.db, pageSize: 200}), {signal: app.signal});
        done();
        fill(failed);
        under = operations.some((o) => o.status === 'InProgress');
        if (operations.length === 0) fill(list, empty('Nothing was begun yet.', h('p', null, 'What takes long runs as an operation: imports, exports, patches and deletions by query, builds of indexes, backups. They are listed here while they run, with a button to cancel, and afterwards with how they have ended, until the server ends.')));
        else {
          const next = new Map();
          for (const o of operations) {
            const text = JSON.stringify(o, (k, v) => (typeof v === 'bigint' ? String(v) : v)), old = rows.get(String(o.id));
            next.set(String(o.id), old?.text === text ? old : {text, node: row(o, params.db, app, load)});
          }
          const order = [...next.values()].map((r) => r.node);
          if (!list.firstChild?.matches?.('.transfers')) fill(list, h('ul', {class: 'transfers', 'aria-label': 'Operations'}));
          if (order.some((node, i) => list.firstChild.children[i] !== node) || list.firstChild.children.length !== order.length) list.firstChild.replaceChildren(...order);
          rows = next;
        }
        shown = true;
      } catch (error) {
        done();
        if (error.name === 'AbortError') return;
        fill(failed, errorBox(error, button('Try again', {run: () => load()})));
      }
      timer = setTimeout(load, under ? 500 : 3000);
    };
    load();
    return () => clearTimeout(timer);
  },
};

const signs = {InProgress: ['careful', 'under way'], Completed: ['fine', 'done'], Faulted: ['wrong', 'failed'], Canceled: ['careful', 'cancelled']};

function row(o, db, app, load) {
  const [kind, text] = signs[o.status];
  const p = o.progress ?? {}, done = p.Processed ?? p.documents ?? p.DocumentsProcessed, total = p.Total ?? p.total;
  const node = h('li', {class: 'transfer'}, h('header', null, h('b', null, o.kind.charAt(0).toUpperCase() + o.kind.slice(1)), state(kind, text),
    h('span', {class: 'muted'}, 'began ', time(o.began), o.ended && `, took ${took(o)}`, o.by && `, by ${o.by}`),
    o.status === 'InProgress' && app.can('write') && (o.database || app.can('admin', '')) && button('Cancel', {kind: 'quiet', label: `Cancel: ${o.kind}`, run: async () => {
      try { await api.send('POST', o.database ? api.raven(db, 'operations/kill', {id: o.id}) : api.at('/operations/kill', {id: o.id})); } catch (error) { toast(error.message, {kind: 'wrong'}); }
      await load();
    }})), o.subject && h('p', {class: 'mono subject'}, o.subject));
  if (o.status === 'InProgress') {
    const bar = progress(o.kind);
    bar.update(Number(done ?? 0), Number(total ?? 0), done === undefined ? (p.rawBytes !== undefined ? bytes(p.rawBytes) : '') : undefined);
    node.append(bar.node);
  }
  const said = summary(o);
  if (said) node.append(h('p', {class: o.status === 'Faulted' ? 'wrong-text' : 'muted number'}, said));
  return node;
}

// took writes how long an operation took; the times have milliseconds.
function took(o) {
  const ms = Date.parse(o.ended) - Date.parse(o.began);
  return ms < 1 ? 'less than 1 ms' : duration(ms * 1e6);
}

// summary says what an operation has done.
export function summary(o) {
  const r = o.result ?? {};
  if (o.status === 'Faulted') return r.Message ?? 'The log of the server says why.';
  if (o.status === 'InProgress') return '';
  const parts = [];
  const n = r.documents ?? r.DocumentsProcessed ?? r.Total ?? o.progress?.Processed ?? o.progress?.documents;
  if (n !== undefined) parts.push(plural(n, 'document'));
  if (r.rejected) parts.push(`${count(r.rejected)} rejected`);
  if (r.bytes) parts.push(bytes(r.bytes));
  if (r.SizeBeforeCompactionInMb !== undefined) parts.push(`${mebibytes(r.SizeBeforeCompactionInMb)} before, ${mebibytes(r.SizeAfterCompactionInMb)} now`);
  return parts.join(', ');
}

function mebibytes(n) { return Number(n) === 0 ? 'less than 1 MiB' : `${count(n)} MiB`; }
