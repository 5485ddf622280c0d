// The databases of the server: how large they are; create one, delete one.

import * as api from '../api.js';
import {button, bytes, code, confirm, count, dialog, empty, errorBox, field, fill, h, icon, link, menu, patience, table, toast} from '../ui.js';

export const page = {
  title: 'Databases',
  mount(container, params, app) {
    container.classList.add('short');
    const list = h('div');
    const add = makes(app) && button('New database', {icon: 'plus', kind: 'primary', key: 'n', run: () => { create(app); }});
    fill(container, h('div', {class: 'head'}, h('h1', null, 'Databases'), h('div', {class: 'buttons'}, add)), list);
    if (add) {
      app.keys([{key: 'n', text: 'New database', run: () => { create(app); }}]);
      app.commands([{text: 'New database', hint: 'n', run: () => create(app)}]);
    }
    load(list, app);
  },
};

const most = 200;

// makes reports whether a database can be created here: not on the server of jay studio.
function makes(app) { return app.can('admin', '') && !app.session?.FixedDatabases; }

async function load(list, app) {
  const done = patience(list);
  try {
    const {Databases: all} = await api.get(api.at('/databases', {pageSize: most}), {signal: app.signal});
    done();
    if (all.length === 0) return fill(list, none(app));
    // The sizes come after the names: each is a call of its own.
    const figures = new Map(all.map(({Name}) => [Name, {documents: h('span'), size: h('span')}]));
    fill(list, table([
      {title: 'Name', cell: (d) => link(app.address('/db/:db/documents', {db: d.Name}), {class: 'named'}, icon('databases'), d.Name)},
      {title: 'Documents', number: true, cell: (d) => figures.get(d.Name).documents},
      {title: 'On disk', number: true, cell: (d) => figures.get(d.Name).size},
      {title: '', number: true, cell: (d) => !app.session?.FixedDatabases && app.can('admin', d.Name) && button('', {icon: 'more', kind: 'quiet', label: `More about ${d.Name}`, 'aria-haspopup': 'menu', run: (event, node) => {
        menu(node, [{text: 'Delete …', icon: 'delete', danger: true, run: () => remove(d.Name, app)}]);
      }})},
    ], all, {caption: 'Databases', row: (d) => ({data: {name: d.Name}})}), all.length === most && h('p', {class: 'muted'}, `The first ${most} are shown.`));
    // They open the database: only those that are seen are measured, some at a time.
    const waiting = [];
    let running = 0;
    const next = async () => {
      if (running === 4 || waiting.length === 0 || app.signal.aborted) return;
      running++;
      const Name = waiting.shift();
      await measure(Name, figures.get(Name), app);
      running--;
      next();
    };
    const watcher = new IntersectionObserver((entries) => {
      for (const {isIntersecting, target} of entries) {
        if (!isIntersecting) continue;
        watcher.unobserve(target);
        waiting.push(target.dataset.name);
        next();
      }
    });
    app.signal.addEventListener('abort', () => watcher.disconnect());
    for (const row of list.querySelectorAll('tr[data-name]')) if (app.can('read', row.dataset.name)) watcher.observe(row);
  } catch (error) {
    done();
    if (error.name !== 'AbortError') fill(list, errorBox(error, button('Try again', {run: () => load(list, app)})));
  }
}

async function measure(db, cells, app) {
  try {
    const stats = await api.get(api.raven(db, 'stats'), {signal: app.signal});
    fill(cells.documents, count(stats.CountOfDocuments));
    fill(cells.size, bytes(stats.SizeOnDisk.SizeInBytes));
  } catch (error) {
    if (error.name !== 'AbortError') fill(cells.documents, h('span', {class: 'state wrong', title: error.message}, 'cannot be read'));
  }
}

function none(app) {
  const here = location.origin + api.at('');
  return empty('There are no databases yet.',
    h('p', null, 'A database is a set of JSON documents. Make one here, or from a terminal:'),
    code(`curl -X PUT '${here}/admin/databases?name=shop' -d '{}'`),
    makes(app) && h('div', {class: 'buttons start'}, button('New database', {icon: 'plus', kind: 'primary', run: () => { create(app); }})));
}

async function create(app) {
  const name = await dialog('New database', (close) => {
    const input = h('input', {type: 'text', autofocus: true, autocomplete: 'off', spellcheck: 'false', maxlength: 128, required: true});
    const failed = h('div');
    const go = button('Create', {kind: 'primary', type: 'submit'});
    return h('form', {on: {submit: async (event) => {
      event.preventDefault();
      const name = input.value.trim();
      go.disabled = true;
      try {
        await api.send('PUT', api.at('/admin/databases', {name}), {DatabaseName: name});
        close(name);
      } catch (error) {
        fill(failed, errorBox(error.kind === 'conflict' ? {message: error.message, remedy: 'Choose another name.'} : error));
        input.setAttribute('aria-invalid', 'true');
      } finally { go.disabled = false; }
    }}}, field('Name', input, 'Letters, digits, _, - and . – it is part of addresses.'), failed, h('div', {class: 'buttons'}, button('Cancel', {run: () => close()}), go));
  });
  if (name) app.go(app.address('/db/:db/documents', {db: name}));
}

async function remove(name, app) {
  const sure = await confirm({title: `Delete ${name}?`, type: name, action: 'Delete the database',
    text: 'All its documents, indexes and revisions are removed from the disk. This cannot be undone; a backup brings them back.'});
  if (!sure) return;
  try {
    await api.send('DELETE', api.at('/admin/databases'), {DatabaseNames: [name], HardDelete: true});
    toast(`${name} is deleted.`);
    app.go(location.pathname, {replace: true});
  } catch (error) { toast(error.message, {kind: 'wrong'}); }
}
