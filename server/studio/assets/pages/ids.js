// The ID doctor, drawn: for each sequence of numbers what has become of them, and how long they last.

import * as api from '../api.js';
import * as exact from '../exact.js';
import {bar} from '../charts.js';
import {button, count, dialog, empty, errorBox, field, fill, h, icon, link, notice, patience, plural, table, toast} from '../ui.js';

export const page = {
  title: 'IDs',
  mount(container, params, app) {
    const body = h('div'), summary = h('span', {class: 'muted number'});
    const again = button('Look again', {icon: 'refresh', key: 'r', run: () => load()});
    fill(container, h('div', {class: 'head'}, h('h1', null, 'IDs'), summary, h('div', {class: 'buttons'}, again)), body);
    app.keys([{key: 'r', text: 'Look again', run: () => { load(); }}]);
    app.commands([{text: 'Look at the IDs again', hint: 'r', run: () => load()}]);
    let report = null, chosen = (params.query.get('prefix') ?? '').toLowerCase();
    const show = () => { fill(body, draw(report, params.db, app, load, chosen)); };
    app.search({placeholder: 'Only prefixes that begin so', value: chosen, run: (text) => { chosen = text.trim().toLowerCase(); app.note({prefix: chosen}); if (report) show(); }});
    let asked = 0; // counts loads: the report of an older one may come last
    const load = async () => {
      const mine = ++asked;
      const done = body.firstChild ? () => {} : patience(body, 'Reading the metadata of all documents');
      try {
        const found = await exact.get(api.jay(params.db, 'ids'), {signal: app.signal});
        done();
        if (mine !== asked) return;
        report = found;
        fill(summary, `${plural(report.documents, 'document')}, node tag ${report.nodeTag}, ${count(report.etags.last)} writes`);
        show();
      } catch (error) {
        done();
        if (mine === asked && error.name !== 'AbortError') fill(body, errorBox(error, button('Try again', {run: () => load()})));
      }
    };
    load();
  },
};

// What can be done about a warning, where that is not in its text.
const remedies = {
  'above-mark': 'Numbers are skipped while IDs are in use, so none is made twice. Nothing has to be done.',
  'above-identity': 'Set the identity to the highest number if the numbers between should stay unused.',
  'hilo-edited': 'A higher Max counts; a lower one is ignored. Nothing has to be done.',
  'hilo-missing': 'The mark is kept beside the document, and so no number comes again. Nothing has to be done.',
  'hilo-without-max': 'Edit the document so that its Max is a number, or delete it.',
  'needs-capacity': 'Open the database with Options.HiLoCapacity.',
  'needs-floor': 'Set a number that the original of this copy will never reach.',
  'shared-prefix': 'That is allowed. If it was not meant, write the documents of one collection under a prefix of their own.',
  'too-many': 'What is not listed was not checked.',
};

// unaccounted reports whether a sequence has numbers without a document and without a reason.
export function unaccounted(report) {
  return report.hilo.some((r) => Number(r.unaccounted) > 0) || report.identities.some((r) => Number(exact.minus(r.unused, r.deleted)) > 0);
}

// shown bounds what is drawn of a list: the report has up to 10,000 of each.
const shown = 200;

function draw(report, db, app, load, chosen) {
  if (Number(report.documents) === 0 && report.hilo.length === 0 && report.identities.length === 0) {
    return empty('No document has an ID yet.', h('p', null, 'When there are documents, this page shows which prefixes their IDs have, which numbers are used, open and lost, and how long they last.'),
      app.can('write') && h('p', null, link(app.address('/db/:db/new', {db}), {class: 'button primary'}, icon('plus'), 'New document')));
  }
  const fits = (name) => name.toLowerCase().startsWith(chosen);
  const own = report.prefixes.filter((p) => !p.prefix.startsWith('raven/') && fits(p.prefix));
  const sequences = [...report.hilo.filter((r) => fits(`${r.tag}/`)).map((r) => () => hilo(r, report)), ...report.identities.filter((r) => fits(r.name)).map((r) => () => identity(r, db, app, load))];
  const warnings = report.warnings.filter((w) => fits(w.name));
  const more = (all, what) => all.length > shown && h('p', {class: 'muted'}, `The first ${count(shown)} of ${count(all.length)} ${what}. Search for a prefix to see others.`);
  return [
    warnings.length > 0 && h('section', {'aria-label': 'Findings'}, more(warnings, 'findings'), warnings.slice(0, shown).map((w) => notice('careful', h('p', null, h('b', {class: 'mono'}, w.name), ' ', sentence(w.text, w.name)), h('p', {class: 'muted'}, remedies[w.kind] ?? ''), actions(w, db, app, load)))),
    report.warnings.length === 0 && notice('fine', h('p', null, unaccounted(report) ? 'No number can come twice. Some have no document, and the database does not know why: their documents may have gone with their collection, or the numbers were drawn and not used.' : 'Nothing to worry about: no number can come twice, and none is missing without a reason.')),
    h('h2', null, 'Sequences'),
    h('div', {class: 'sequences'}, sequences.slice(0, shown).map((draw) => draw()), chosen === '' && etags(report)), more(sequences, 'sequences'),
    chosen !== '' && sequences.length === 0 && h('p', {class: 'muted'}, 'No sequence begins so.'),
    h('div', {class: 'buttons start'}, app.can('write') && button('New identity', {icon: 'plus', run: () => seed(db, {name: '', last: 0}, load)})),
    h('h2', null, 'Prefixes'),
    table([
      {title: 'Prefix', cell: (p) => p.rest ? h('i', null, 'all others') : h('span', {class: 'mono'}, p.prefix || '(none)')},
      {title: 'Collection', cell: (p) => p.collection},
      {title: 'Documents', number: true, cell: (p) => count(p.documents)},
      ...[['HiLo', 'hilo'], ['Identity', 'identity'], ['Server-side', 'serverSide'], ['GUID', 'guid'], ['Semantic', 'semantic']].map(([title, key]) => ({title, number: true, cell: (p) => Number(p[key]) ? count(p[key]) : h('span', {class: 'muted'}, '–')})),
    ], own.slice(0, shown), {caption: 'Prefixes'}), more(own, 'prefixes'),
    h('p', {class: 'hint muted'}, 'The strategy is what an ID looks like: users/7 may also have been written by hand.', Number(report.expiring) > 0 && ` ${plural(report.expiring, 'document')} will expire.`, Number(report.deletedWithRevisions) > 0 && ` Of ${plural(report.deletedWithRevisions, 'deleted document')} revisions are kept.`),
  ];
}

// sentence begins with a capital if the name that stands in front does not.
function sentence(text) { return text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith('.') ? '' : '.'); }

function actions(w, db, app, load) {
  if (!app.can('write')) return null;
  if (w.kind === 'needs-floor' && w.name.endsWith('|') || w.kind === 'above-identity') return h('p', {class: 'actions'}, button('Set the identity', {run: () => seed(db, {name: w.name, last: 0}, load)}));
  if (w.kind === 'needs-floor' && app.can('admin')) return h('p', {class: 'actions'}, button('Raise the counter', {run: () => raise(db, w.name, load)}));
  return null;
}

function sequence(name, kind, figure, facts, ...rest) {
  return h('article', {class: 'sequence'}, h('header', null, h('h3', {class: 'mono'}, name), h('span', {class: 'tag'}, kind), rest), figure, h('dl', {class: 'facts'}, facts.filter(Boolean).map(([term, text, title]) => h('div', {title}, h('dt', null, term), h('dd', {class: 'number'}, text)))));
}

function hilo(r, report) {
  const used = exact.minus(r.mark, r.unused);
  const parts = [
    {kind: 'used', text: 'used', value: used, hint: 'A document has the number.'},
    {kind: 'open', text: 'open', value: r.inOpenLeases, hint: 'In ranges that a client may still hold, or has lost when it crashed.'},
    {kind: 'held', text: 'held here', value: r.heldInThisProcess, hint: 'Held by clients of this process.'},
    {kind: 'deleted', text: 'deleted', value: r.deleted, hint: 'The document was deleted or has expired.'},
    {kind: 'lost', text: 'lost', value: exact.plus(r.lostInThisProcess, r.returnedLate), hint: 'Drawn for writes that were refused, or returned too late.'},
    {kind: 'unaccounted', text: 'unaccounted', value: r.unaccounted, hint: 'Lost in crashes, skipped, or held by clients elsewhere: the disk does not say.'},
  ];
  return sequence(`${r.tag}/`, r.serverHi ? 'HiLo2010' : 'HiLo', bar(`Numbers of ${r.tag}`, parts, r.mark), [
    ['Mark', count(r.mark), 'The highest number that was granted and not returned'],
    ['Max', r.max === null ? 'missing' : count(r.max), r.document ? `What the document Raven/HiLo/${r.tag} says` : 'There is no HiLo document'],
    ['Highest in use', count(r.highest)],
    ['Open ranges', count(r.openLeases), 'Ranges that can still be returned: the store does not know the names of their clients'],
    ['Ever granted up to', count(r.top)],
    lasts(r),
  ], r.needsFloor && h('span', {class: 'tag careful'}, 'needs a minimum'));
}

function identity(r, db, app, load) {
  const parts = [
    {kind: 'used', text: 'used', value: exact.minus(r.last, r.unused), hint: 'A document has the number.'},
    {kind: 'deleted', text: 'deleted', value: r.deleted, hint: 'The document was deleted or has expired.'},
    {kind: 'unaccounted', text: 'without a document', value: exact.minus(r.unused, r.deleted), hint: 'Skipped, seeded away, or drawn without a document.'},
  ];
  return sequence(r.name, 'identity', bar(`Numbers of ${r.name}`, parts, r.last), [
    ['Last', count(r.last)], ['Highest in use', count(r.highest)],
    Number(r.unused) === 0 ? ['Holes', 'none'] : ['Holes', count(r.unused)],
    lasts(r),
  ], r.needsFloor && h('span', {class: 'tag careful'}, 'needs a minimum'),
  app.can('write') && h('span', {class: 'buttons'},
    button('Next', {title: `Use up the next number of ${r.name}`, label: `Next number of ${r.name}`, run: async () => {
      try {
        const {NewIdentityValue} = exact.read((await api.text('POST', api.raven(db, 'identity/next', {name: r.name}))).text);
        toast(`The next number of ${r.name} is ${count(NewIdentityValue)}. It is used up now.`);
        await load();
      } catch (error) { toast(error.message, {kind: 'wrong'}); }
    }}), button('Set …', {label: `Set ${r.name}`, run: () => seed(db, r, load)})));
}

function etags(report) {
  return sequence('etags', 'all writes', null, [['Last', count(report.etags.last), 'The number of the newest write: server-side IDs are made of it'], lasts(report.etags)]);
}

// lasts writes the forecast.
function lasts(f) {
  if (f.yearsLeft === null || f.yearsLeft === undefined) return ['Lasts', 'no rate yet'];
  const years = Number(f.yearsLeft);
  const text = years > 1e6 ? `${powers(years)} years` : years >= 1 ? plural(Math.floor(years), 'year') : `${plural(Math.max(0, Math.floor(years * 365)), 'day')}`;
  return ['Lasts', text, `At ${count(Math.round(Number(f.perDay) * 10) / 10)} a day, ${f.recent ? 'the rate of the last 30 days' : 'the average since the database was made'}`];
}

function powers(n) {
  const power = Math.floor(Math.log10(n));
  return `10${[...String(power)].map((d) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[d]).join('')}`;
}

// seed sets an identity.
async function seed(db, r, load) {
  const done = await dialog(r.name ? `Set ${r.name}` : 'New identity', (close) => {
    const name = !r.name && h('input', {type: 'text', class: 'mono', required: true, placeholder: 'invoices|', autofocus: true, autocomplete: 'off', spellcheck: 'false'});
    const value = h('input', {type: 'text', inputmode: 'numeric', pattern: '[0-9]+', required: true, autofocus: !!r.name, value: r.name ? String(r.last) : '', autocomplete: 'off'});
    const force = h('input', {type: 'checkbox'}), failed = h('div');
    const go = button('Set', {kind: 'primary', type: 'submit'});
    return h('form', {on: {submit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      try {
        const {text} = await api.text('POST', api.raven(db, 'identity/seed', {name: r.name || name.value.trim(), value: value.value.trim(), force: force.checked || undefined}));
        close(exact.read(text).NewSeedValue);
      } catch (error) { fill(failed, errorBox(error)); } finally { go.disabled = false; }
    }}}, name && field('Name', name, 'The prefix of the IDs with a pipe at its end.'), field('Last used number', value, 'The next document gets the number after it. A lower number than the present one changes nothing.'),
    r.name && h('label', {class: 'check'}, force, h('span', null, 'Lower it, too ', h('span', {class: 'muted'}, '– IDs of deleted documents can come again then'))),
    failed, h('div', {class: 'buttons'}, button('Cancel', {run: () => close()}), go));
  });
  if (done === undefined) return;
  toast(`The last used number is ${count(done)}.`);
  await load();
}

// raise sets a minimum for the numbers of a HiLo tag.
async function raise(db, tag, load) {
  const done = await dialog(`Raise the counter of ${tag}`, (close) => {
    const value = h('input', {type: 'text', inputmode: 'numeric', pattern: '[0-9]+', required: true, autofocus: true}), failed = h('div');
    return h('form', {on: {submit: async (event) => {
      event.preventDefault();
      try {
        await api.request('POST', api.jay(db, 'counters'), {body: `{"hilo":{${JSON.stringify(tag)}:${value.value}}}`, headers: {'Content-Type': 'application/json'}});
        close(true);
      } catch (error) { fill(failed, errorBox(error)); }
    }}}, field('No number up to', value, 'is made here any more. It is never lowered again.'), failed, h('div', {class: 'buttons'}, button('Cancel', {run: () => close()}), button('Raise', {kind: 'primary', type: 'submit'})));
  });
  if (done) await load();
}
