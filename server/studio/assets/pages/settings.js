// Settings: revisions, expiry, collections, tokens, and what the server is.

import * as api from '../api.js';
import * as exact from '../exact.js';
import {bar} from '../charts.js';
import {button, bytes, code, confirm, copy, count, dialog, duration, empty, errorBox, field, fill, h, icon, link, notice, patience, plural, state, table, tabs, time, toast} from '../ui.js';
import * as operation from '../operation.js';

const parts = [
  {id: 'revisions', text: 'Revisions', show: revisions}, {id: 'collections', text: 'Collections', show: collections}, {id: 'expiry', text: 'Expiry', show: expiry},
  {id: 'tokens', text: 'Tokens', show: tokens}, {id: 'server', text: 'Server', show: server},
];

export const page = {
  title: 'Settings',
  mount(container, params, app) {
    const body = h('div', {role: 'tabpanel'});
    let asked = 0; // counts what was asked for, so that what comes late is dropped
    const show = async (id) => {
      const part = parts.find((p) => p.id === id) ?? parts[0];
      const mine = ++asked;
      body.dataset.part = part.id;
      fill(body);
      const done = patience(body);
      try {
        const drawn = await part.show(params.db, app, async () => { if (body.dataset.part === part.id) await show(part.id); });
        done();
        if (mine === asked) fill(body, drawn);
      } catch (error) {
        done();
        if (mine === asked && error.name !== 'AbortError') fill(body, errorBox(error, button('Try again', {run: () => show(part.id)})));
      }
    };
    const chosen = params.query.get('part') ?? 'revisions';
    const list = tabs('Settings', parts, (id) => { app.note({part: id}, {push: true}); show(id); }, chosen);
    fill(container, h('div', {class: 'head'}, h('h1', null, 'Settings')), list.node, body);
    show(chosen);
  },
};

// ---- Revisions

// ageDays reads RavenDB's spelling of a time span, 14.00:00:00, as days; span writes it.
export function ageDays(text) {
  const found = /^(?:(\d+)\.)?(\d+):(\d+):(\d+)/.exec(text ?? '');
  return found ? Number(found[1] ?? 0) + Number(found[2]) / 24 + Number(found[3]) / 1440 + Number(found[4]) / 86400 : null;
}
export function span(days) { return `${Math.floor(days)}.${String(Math.round(days % 1 * 24)).padStart(2, '0')}:00:00`; }

async function revisions(db, app, again) {
  const read = async () => (await exact.get(api.jay(db, 'settings'), {signal: app.signal})).revisions ?? {Default: null, Collections: {}};
  const config = await read();
  const stats = await exact.get(api.jay(db, 'stats'), {signal: app.signal});
  const rules = [...(config.Default ? [['', config.Default]] : []), ...Object.entries(config.Collections ?? {})];
  const save = async (change) => {
    const next = await read(); // all rules are written at once: others may have changed since these were shown
    next.Collections ??= {};
    change(next);
    await api.send('POST', api.raven(db, 'admin/revisions/config'), next);
    await again();
  };
  const can = app.can('admin');
  const edit = async (name, rule) => {
    const done = await dialog(name === null ? 'New rule' : name === '' ? 'All other collections' : name, (close) => {
      const collection = name === null && h('input', {type: 'text', autofocus: true, autocomplete: 'off', spellcheck: 'false', placeholder: 'Orders; empty for all others'});
      const number = h('input', {type: 'text', inputmode: 'numeric', pattern: '[0-9]*', value: rule?.MinimumRevisionsToKeep ?? '', autofocus: name !== null});
      const days = h('input', {type: 'text', inputmode: 'decimal', pattern: '[0-9]*([.][0-9]+)?', value: rule?.MinimumRevisionAgeToKeep ? Math.round(ageDays(rule.MinimumRevisionAgeToKeep) * 1000) / 1000 : ''});
      const off = h('input', {type: 'checkbox', checked: rule?.Disabled ?? false}), failed = h('div');
      return h('form', {on: {submit: async (event) => {
        event.preventDefault();
        const made = {Disabled: off.checked};
        if (number.value !== '') made.MinimumRevisionsToKeep = Number(number.value);
        if (days.value !== '') made.MinimumRevisionAgeToKeep = span(Number(days.value));
        try { await save((c) => { const to = name ?? collection.value.trim(); if (to === '') c.Default = made; else c.Collections[to] = made; }); close(true); } catch (error) { fill(failed, errorBox(error)); }
      }}}, collection && field('Collection', collection), field('Keep at least', number, 'revisions of each document. Empty means all.'), field('Keep for', days, 'days. Empty means for ever. What is older is removed if there are more revisions than the number above.'),
      h('label', {class: 'check'}, off, h('span', null, 'Keep none for now ', h('span', {class: 'muted'}, '– those that are there stay'))), failed, h('div', {class: 'buttons'}, button('Cancel', {run: () => close()}), button('Save', {kind: 'primary', type: 'submit'})));
    });
    if (done) toast('The rule is saved.');
  };
  const counted = new Map((stats.revisions ?? []).map((r) => [r.collection, r.revisions]));
  return [
    h('p', {class: 'lead'}, 'A revision is an older version of a document. A rule says of which collections they are kept, how many, and for how long.'),
    rules.length ? table([
      {title: 'Collection', cell: ([name]) => (name === '' ? h('i', null, 'all others') : name)},
      {title: 'Keeps', cell: ([, r]) => (r.Disabled ? state('idle', 'none for now') : state('fine', [r.MinimumRevisionsToKeep !== undefined && r.MinimumRevisionsToKeep !== null ? `${count(r.MinimumRevisionsToKeep)} of each document` : 'all', r.MinimumRevisionAgeToKeep ? ` for ${count(Math.round(ageDays(r.MinimumRevisionAgeToKeep) * 10) / 10)} days` : ''].join('')))},
      {title: 'Stored', number: true, cell: ([name]) => (counted.has(name) ? count(counted.get(name)) : '–')},
      {title: '', number: true, cell: ([name, r]) => can && h('span', {class: 'buttons'}, button('Edit', {kind: 'quiet', label: `Edit the rule of ${name || 'all others'}`, run: () => edit(name, r)}), button('', {icon: 'delete', kind: 'quiet', label: `Remove the rule of ${name || 'all others'}`, run: async () => {
        if (await confirm({title: 'Remove the rule?', action: 'Remove', text: 'No more revisions are made. Those that are there stay until they are purged.'})) try { await save((c) => { if (name === '') c.Default = null; else delete c.Collections[name]; }); } catch (error) { toast(error.message, {kind: 'wrong'}); }
      }}))},
    ], rules, {caption: 'Rules of revisions'}) : empty('No revisions are kept.', h('p', null, 'With a rule, the document page shows older versions and what differs, and a deleted document can be brought back.')),
    can && h('div', {class: 'buttons start'}, button('New rule', {icon: 'plus', kind: rules.length ? undefined : 'primary', run: () => edit(null)}), rules.length > 0 && button('Remove what no rule keeps …', {run: async () => {
      if (!await confirm({title: 'Remove what no rule keeps?', action: 'Remove', text: 'Revisions beyond the rules are removed for good, as an operation.'})) return;
      try { await api.send('POST', api.raven(db, 'admin/revisions/config/enforce'), {}); app.go(app.address('/db/:db/operations', {db})); } catch (error) { toast(error.message, {kind: 'wrong'}); }
    }})),
    !can && h('p', {class: 'muted'}, 'To change rules needs the right admin.'),
  ];
}

// ---- Collections

async function collections(db, app, again) {
  const {collections: all} = await exact.get(api.jay(db, 'collections'), {signal: app.signal});
  const can = app.can('admin');
  const begin = async (what, fn) => {
    try {
      const {OperationId} = await fn();
      const last = await operation.watch(db, OperationId, () => {}, app.signal);
      if (last.Status === 'Completed') toast(`${what}: ${plural(last.Result.documents, 'document')}.`);
      else toast(operation.reason(last), {kind: 'wrong'});
      await again();
    } catch (error) { if (error.name !== 'AbortError') toast(error.message, {kind: 'wrong'}); }
  };
  const rename = async (c) => {
    const to = await dialog(`Rename ${c.name}`, (close) => {
      const input = h('input', {type: 'text', value: c.name, autofocus: true, required: true, autocomplete: 'off', spellcheck: 'false'});
      return h('form', {on: {submit: (event) => { event.preventDefault(); close(input.value.trim()); }}}, field('New name', input, 'A collection of this name must not have documents. IDs stay as they are; indexes come along.'), h('div', {class: 'buttons'}, button('Cancel', {run: () => close()}), button('Rename', {kind: 'primary', type: 'submit'})));
    });
    if (to && to !== c.name) await begin(`${c.name} is ${to} now`, () => api.send('POST', api.jay(db, 'collections/rename'), {from: c.name, to}));
  };
  return [
    h('p', {class: 'lead'}, 'A collection is the documents that name it. It begins with the first, and ends with the last.'),
    all.length ? table([
      {title: 'Collection', cell: (c) => link(app.address('/db/:db/documents', {db}, {collection: c.name}), null, c.name)}, {title: 'Documents', number: true, cell: (c) => count(c.documents)},
      {title: '', number: true, cell: (c) => can && c.name !== '@hilo' && h('span', {class: 'buttons'}, button('Rename', {kind: 'quiet', label: `Rename ${c.name}`, run: () => rename(c)}), button('', {icon: 'delete', kind: 'quiet', label: `Delete ${c.name}`, run: async () => {
        if (await confirm({title: `Delete ${c.name}?`, type: c.name, action: 'Delete the collection', text: `Its ${plural(c.documents, 'document')} and its indexes are deleted. A backup brings them back.`})) await begin(`${c.name} is deleted`, () => api.send('DELETE', api.jay(db, 'collections', {name: c.name})));
      }}))},
    ], all, {caption: 'Collections'}) : empty('There are no collections.', h('p', null, 'Store a document that names one in its @metadata.@collection.')),
  ];
}

// ---- Expiry

async function expiry(db, app) {
  const {expiry: e} = await exact.get(api.jay(db, 'stats'), {signal: app.signal});
  const facts = [['Will expire', e.expiring], ['Will be refreshed', e.refreshing], ['Due now', e.due], ['Kept though they are due', e.kept], ['Deleted since the start', e.deleted], ['Refreshed since the start', e.refreshed]];
  return [
    h('p', {class: 'lead'}, 'A document with ', h('code', null, '@expires'), ' in its metadata is deleted when that time has come, and one with ', h('code', null, '@refresh'), ' is written again, within a second.'),
    h('p', null, 'Expiration is ', e.disabled ? state('idle', 'disabled') : state('fine', 'enabled'), ', refresh is ', e.refreshDisabled ? state('idle', 'disabled') : state('fine', 'enabled'), '. What is disabled has no effect: POST admin/expiration/config and admin/refresh/config, or jay expiration, change it.'),
    h('dl', {class: 'facts large'}, facts.map(([t, n]) => h('div', null, h('dt', null, t), h('dd', {class: 'number'}, count(n ?? 0))))),
    Number(e.due ?? 0) > 0 && e.dueSince && h('p', null, 'The oldest has been due since ', time(e.dueSince), '.'),
    code('"@metadata": {"@collection": "Sessions", "@expires": "2030-01-02T03:04:05Z"}', 'Copy this line'),
  ];
}

// ---- Tokens

async function tokens(db, app, again) {
  if (!app.can('admin', '')) return empty('Tokens are for those who administer the server.', h('p', null, 'It needs the right admin of *.'));
  const {tokens: all, authenticates} = await api.get(api.at('/jay/v1/tokens'), {signal: app.signal});
  const make = async () => {
    const made = await newToken(db);
    if (!made) return;
    await dialog(`The token of ${made.name}`, (close) => h('div', null,
      notice('careful', h('p', null, h('b', null, 'Copy it now: '), 'it is shown this once. The server keeps its hash only.')),
      h('div', {class: 'secret'}, h('code', {class: 'mono', tabindex: 0}, made.token), copy(made.token, 'Copy the token')),
      h('div', {class: 'buttons'}, button('I have copied it', {kind: 'primary', autofocus: true, run: () => close()}))), {wide: true});
    await again();
  };
  if (authenticates) app.commands([{text: 'New token', run: make}]);
  return [
    h('p', {class: 'lead'}, 'A token says who asks, and what they may do in which database.'),
    !authenticates && notice('info', h('p', null, 'This server asks for no credentials, and so it gives none: any program of this machine could help itself to one that lasts. Start it with ', h('code', null, '--authenticate'), ', or make tokens on its machine:'), code('jay serve token create NAME --right DATABASE=write --data DIR')),
    all.length ? table([
      {title: 'Name', cell: (t) => [h('b', null, t.name), t.you && h('span', {class: 'tag'}, 'you')]},
      {title: 'Kind', cell: (t) => h('span', {title: t.of}, {token: 'token', certificate: 'certificate', subject: `certificates of ${t.of}`}[t.kind])},
      {title: 'Rights', cell: (t) => h('span', {class: 'fields-of'}, Object.entries(t.rights).map(([name, right]) => h('span', {class: 'tag'}, name === '*' ? 'all databases' : name, ': ', right)))},
      {title: 'Made', cell: (t) => time(t.created)}, {title: 'Expires', cell: (t) => (t.expired ? state('wrong', 'expired') : t.expires ? time(t.expires) : 'never')},
      {title: '', number: true, cell: (t) => authenticates && button('Withdraw', {kind: 'quiet', label: `Withdraw ${t.name}`, run: async () => {
        if (!await confirm({title: `Withdraw ${t.name}?`, action: 'Withdraw', text: t.you ? 'That is your own token: you are signed out at once.' : 'Who uses it is refused from now on, and their streams end.'})) return;
        try { await api.send('DELETE', api.at('/jay/v1/tokens', {name: t.name})); toast(`${t.name} is withdrawn.`); await again(); } catch (error) { toast(error.message, {kind: 'wrong'}); }
      }})},
    ], all, {caption: 'Tokens and certificates'}) : authenticates && h('p', {class: 'muted'}, 'There are none.'),
    authenticates && h('div', {class: 'buttons start'}, button('New token', {icon: 'plus', kind: 'primary', run: make})),
  ];
}

// newToken asks for a name and rights, and makes a token.
function newToken(db) {
  return dialog('New token', (close) => {
    const name = h('input', {type: 'text', autofocus: true, required: true, maxlength: 128, pattern: '[A-Za-z0-9_.\\-]+', autocomplete: 'off', spellcheck: 'false', placeholder: 'ci'});
    const rows = h('div', {class: 'index-fields'}), failed = h('div'), names = h('datalist', {id: 'token-databases'}, h('option', {value: '*'}, 'all databases'));
    api.get(api.at('/databases', {namesOnly: true})).then(({Databases}) => names.append(...Databases.map((n) => h('option', {value: n}))), () => {});
    const row = (text) => {
      const node = h('div', {class: 'index-field'}, h('input', {type: 'text', class: 'mono', 'aria-label': 'Database', list: names.id, required: true, value: text, autocomplete: 'off', spellcheck: 'false'}),
        h('select', {'aria-label': 'Right'}, h('option', {value: 'read'}, 'read'), h('option', {value: 'write'}, 'write'), h('option', {value: 'admin'}, 'admin')),
        button('', {icon: 'close', kind: 'quiet', label: 'Leave this right out', run: () => { if (rows.children.length > 1) node.remove(); }}));
      rows.append(node);
      return node;
    };
    row(db);
    const lasts = h('select', null, [['', 'does not expire'], ['1', 'for a day'], ['30', 'for 30 days'], ['90', 'for 90 days'], ['365', 'for a year']].map(([v, t]) => h('option', {value: v, selected: v === '90'}, t)));
    return h('form', {on: {submit: async (event) => {
      event.preventDefault();
      try {
        const rights = Object.fromEntries([...rows.children].map((r) => [r.querySelector('input').value.trim(), r.querySelector('select').value]));
        const body = {name: name.value.trim(), rights};
        if (lasts.value) body.expires = new Date(Date.now() + Number(lasts.value) * 86400e3).toISOString();
        close(await api.send('POST', api.at('/jay/v1/tokens'), body));
      } catch (error) { fill(failed, errorBox(error.kind === 'conflict' ? {message: error.message, remedy: 'Choose another name.'} : error)); }
    }}}, field('Name', name, 'Letters, digits, _, - and . – it is listed and withdrawn by it.'), h('fieldset', {class: 'plain'}, h('legend', null, 'Rights'), rows, button('Another database', {icon: 'plus', kind: 'quiet', run: () => { row('').querySelector('input').focus(); }})), names,
    field('Valid', lasts), h('p', {class: 'hint muted'}, 'Each right includes those before it: read, write, admin. Admin of * is admin of the server.'), failed, h('div', {class: 'buttons'}, button('Cancel', {run: () => close()}), button('Make it', {kind: 'primary', type: 'submit'})));
  }, {wide: true});
}

// ---- Server

async function server(db, app) {
  let s;
  try { s = await exact.get(api.at('/jay/v1/server'), {signal: app.signal}); } catch (error) {
    if (error.kind === 'forbidden') return empty('What the server is, is for those who may read all databases.', h('p', null, 'It needs a right of *.'));
    throw error;
  }
  const used = (title, part, write = count) => h('div', {class: 'used'}, h('h3', null, title), bar(title, [{kind: Number(part.used) > Number(part.most) * 0.8 ? 'lost' : 'used', text: '', value: part.used}], part.most, {legend: false}), h('p', {class: 'muted number'}, `${write(part.used)} of ${write(part.most)}`));
  return [
    h('dl', {class: 'facts large'}, [['Version', s.version || 'of a build without one'], ['Go', s.go], ['System', s.system], ['Processors', count(s.processors)], ['Runs for', duration(s.uptimeNs)], ['Memory of Go objects', bytes(s.heapBytes)], ['Goroutines', count(s.goroutines)],
      ['Asks for credentials', s.authenticates ? 'yes' : 'no'], ['Connection', s.encrypted ? 'TLS' : 'not encrypted'], ['Closes idle databases after', duration(s.idleAfterNs)], ['Largest body', bytes(s.maxBodyBytes)]].map(([t, d]) => h('div', null, h('dt', null, t), h('dd', {class: 'number'}, d)))),
    h('h2', null, 'What of its bounds is taken'),
    h('div', {class: 'bounds'}, used('Requests', s.requests), used('Requests that wait', s.waiting), used('Streams', s.streams), used('Changes sockets', s.sockets), used('Operations', s.operations), used('Databases', s.databases), used('Open databases', s.openDatabases), used('Memory of bodies', s.memory, bytes)),
    h('p', {class: 'hint muted'}, 'Figures for Prometheus are at ', h('code', null, api.at('/metrics')), '.'),
  ];
}
