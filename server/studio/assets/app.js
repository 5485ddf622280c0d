// The studio of Jay: start reading here.
//
// There is no framework and no build step; a browser loads these files as they are.
//
//   app.js     this file: the frame (bar, rail), the palette, and what pages are given
//   routes.js  the table of pages: to add one, write pages/NAME.js and add its line
//   router.js  addresses, back and forward
//   base.js    the path of the host that the server is below
//   ui.js      h(), fill(), and the pieces pages are made of: buttons, dialogs, menus, tables, numbers
//   api.js     calls of the server, and their errors
//   json.js    documents as text: reads JSON without changing a digit. Never JSON.parse a document
//   keys.js    keyboard
//   base.css   colours, sizes and the pieces of ui.js; a page may have a NAME.css, which is found by itself
//   pages/     one module per page
//
// A page is an object:
//
//   export const page = {
//     title: 'Documents',                      // or (params) => text
//     mount(container, params, app) {          // params: those of the path and params.query (URLSearchParams)
//       …                                      // fill the container, start what it needs
//       return () => { … };                    // unmount: end what was started. Nothing may go on after it
//     },
//   };
//
// app has what a page needs beside the modules:
//
//   app.signal            an AbortSignal that ends with the page: pass it to every call
//   app.go(href)          moves to another page; app.address(path, params, query) writes its address
//   app.note({prefix})    keeps state of the page in the address without showing the page anew
//   app.keys([{key, text, run}])          keys of this page, which ? lists
//   app.commands([{text, hint, run}])     commands of this page in the palette
//   app.leaving(run)      runs before another address is shown, for a last note
//   app.unsaved(() => bool)               asks before the page is left while it returns true
//   app.can(right)        whether the rights of the session allow 'read', 'write' or 'admin' here
//   app.search({placeholder, value, run(text)})  what the field in the bar does on this page
//   app.handOver({files})  leaves something for the page that is shown next, which finds it in app.handed
//   app.failed(error)     shows an error in place of the page
//
// Text never becomes HTML: h() makes text nodes, and the Content-Security-Policy of the server makes the browser
// refuse the rest. Colours are those of base.css, so that dark and light are right everywhere.

import * as api from './api.js';
import {Keys} from './keys.js';
import {Router, address, root} from './router.js';
import {routes} from './routes.js';
import {button, confirm, dialog, errorBox, field, fill, h, icon, keyName, link, menu, patience, toast} from './ui.js';
import {openPalette} from './palette.js';

const bar = document.getElementById('bar');
const rail = document.getElementById('rail');
const main = document.getElementById('page');

const keys = new Keys();
let session = null; // {Name, Rights, FixedDatabases, SignedInElsewhere}
let only = ''; // the database, where there is one and can be no other
let current = null; // {route, params, end, commands, unsaved, abort}
let searching = null; // the field of the bar
let handed = null; // what a page has left for the next one

// ---- The page that is shown

async function show(route, params, query) {
  close();
  const state = current = {route, params: {...params, query}, commands: [], unsaved: null, abort: new AbortController(), ends: []};
  frame();
  main.setAttribute('aria-busy', 'true');
  const container = h('div', {class: 'content'});
  fill(main, container);
  const loaded = patience(container);
  let page;
  try {
    ({page} = await route.load());
  } catch (error) {
    if (current !== state) return;
    loaded();
    return fill(container, errorBox({message: 'This page could not be loaded.', remedy: 'If the server was updated, load the studio again.'}, button('Load again', {run: () => location.reload()})));
  } finally {
    loaded();
    main.removeAttribute('aria-busy');
  }
  if (current !== state) return;
  const title = typeof page.title === 'function' ? page.title(state.params) : page.title;
  document.title = [title, params.db, 'Jay'].filter(Boolean).join(' · ');
  container.dataset.page = route.path;
  try {
    const end = page.mount(container, state.params, pageApp(state, container));
    if (end) state.ends.push(end);
  } catch (error) {
    console.error(error);
    fill(container, errorBox(error, button('Load again', {run: () => location.reload()})));
  }
  if (document.activeElement === document.body || document.activeElement === null) main.focus({preventScroll: true});
}

function close() {
  if (!current) return;
  current.abort.abort();
  for (const end of current.ends.reverse()) end();
  current = null;
  searching = null;
}

// pageApp is what a page is given.
function pageApp(state, container) {
  const db = state.params.db ?? '';
  const given = handed;
  handed = null;
  return {
    signal: state.abort.signal,
    handed: given,
    handOver: (values) => { handed = values; },
    session,
    address,
    go: (href, options) => router.go(href, options),
    note: (values, options) => { if (current === state) router.note(values, options); },
    can: (right, name = db) => api.may(session?.Rights, name, right),
    keys: (list) => { state.ends.push(keys.add('This page', list)); },
    commands: (list) => { state.commands.push(...list); },
    leaving: (run) => { state.leaving = run; },
    unsaved: (asks) => { state.unsaved = asks; },
    search: (options) => { state.search = options; if (current === state) frame(); },
    failed: (error) => { if (error.name !== 'AbortError') fill(container, errorBox(error, button('Try again', {run: () => router.run()}))); },
  };
}

const pending = () => !!current?.unsaved?.();

async function leave() {
  if (!pending()) return true;
  return !!await confirm({title: 'Leave without saving?', text: 'What you have changed on this page is not saved. It is lost when you leave.', action: 'Leave', kind: 'danger'});
}

addEventListener('beforeunload', (event) => { if (pending()) event.preventDefault(); });

function missing(path) {
  if (path === '/') return home();
  const [, db] = /^\/db\/([^/]+)\/?$/.exec(path) ?? [];
  if (db) return router.go(`${root}/db/${db}/documents`, {replace: true, force: true});
  close();
  frame();
  fill(main, h('div', {class: 'content'}, errorBox({message: `There is no page ${path}.`, remedy: 'The address may be misspelt.'}, link(first(), {class: 'button'}, only || 'Databases'))));
}

// first is the address of the first page: the only database, or the list of them.
const first = () => (only ? address('/db/:db/documents', {db: only}) : address('/databases'));

// home opens the first page.
function home() { router.go(first(), {replace: true, force: true}); }

// findOnly finds out whether there is one database and can be no other. Then no list is shown.
async function findOnly() {
  only = '';
  if (!session?.FixedDatabases) return;
  try {
    const {Databases: names} = await api.get(api.at('/databases', {namesOnly: true, pageSize: 2}));
    if (names.length === 1) only = names[0];
  } catch { /* the page of databases asks again, and shows what is wrong */ }
}

const router = new Router(routes, {show, leave, pending, missing, leaving: () => current?.leaving?.()});

// ---- The frame

// feather is the mark of Jay.
function feather() {
  return h('svg', {viewBox: '0 0 32 32', 'aria-hidden': 'true'}, h('path', {class: 'feather', d: 'M6 28C8 14 14 6 27 3c1 11-4 19-16 20z'}), h('path', {class: 'quill', d: 'M6 28C11 19 16 12 23 7'}));
}

function frame() {
  const db = current?.params.db;
  const inDatabase = routes.filter((route) => route.rail);
  document.body.classList.toggle('in-database', !!db);
  fill(rail, db ? h('ul', null, inDatabase.map((route) => h('li', null, link(address(route.path, {db}), {
    'aria-current': current.route === route || current.route.under === route.path ? 'page' : undefined, title: `${route.rail} (g ${route.key})`,
  }, icon(route.icon), h('span', null, route.rail))))) : null);
  rail.hidden = !db;
  rail.querySelector('[aria-current]')?.scrollIntoView({block: 'nearest', inline: 'nearest'}); // in a narrow window it scrolls

  const search = current?.search;
  searching = search ? h('input', {type: 'search', class: 'search', placeholder: search.placeholder, 'aria-label': search.placeholder, autocomplete: 'off', spellcheck: 'false', value: search.value ?? '', on: {
    keydown: (event) => {
      if (event.key === 'Enter') { event.preventDefault(); search.run(searching.value); }
      else if (event.key === 'Escape') { searching.value = ''; search.run(''); searching.blur(); event.stopPropagation(); }
    },
  }}) : null;
  const where = h('div', {class: 'where'},
    link(first(), {class: 'brand', 'aria-label': only ? `Jay: ${only}` : 'Jay: databases'}, feather()),
    db && only ? h('span', {class: 'name'}, db) : db ? button(db, {icon: 'down', kind: 'quiet', class: 'button quiet database', 'aria-haspopup': 'menu', 'aria-expanded': 'false', title: 'Change the database', run: (event, node) => { chooseDatabase(node); } }) : h('span', {class: 'name'}, 'Jay'));
  fill(bar, where, h('div', {class: 'middle'}, searching, search && h('kbd', {class: 'key', 'aria-hidden': 'true'}, '/')),
    h('div', {class: 'right'},
      button('', {icon: 'keyboard', kind: 'quiet', label: 'Keys of this page', title: 'Keys (?)', run: () => { showKeys(); }}),
      button('Go to', {kind: 'quiet', key: 'ctrl+k', class: 'button quiet palette-button', title: 'All commands', run: () => { palette(); }}),
      session?.Name && button('', {icon: 'user', kind: 'quiet', label: `Signed in as ${session.Name}`, run: (event, node) => { menu(node, [
        {text: `Signed in as ${session.Name}`, disabled: true, run() {}}, ...(signsOut() ? [{text: 'Sign out', run: signOut}] : [])]); }})));
}

async function chooseDatabase(anchor) {
  let names = [];
  try { names = (await api.get(api.at('/databases', {namesOnly: true, pageSize: 200}))).Databases; } catch (error) { return toast(error.message, {kind: 'wrong'}); }
  menu(anchor, [...names.map((name) => ({text: name, checked: name === current?.params.db, run: () => router.go(address('/db/:db/documents', {db: name}))})), null,
    {text: 'All databases', run: () => router.go(address('/databases'))}]);
}

// ---- Palette and keys

function palette() {
  const db = current?.params.db;
  const all = [...(current?.commands ?? [])];
  if (db) for (const route of routes.filter((r) => r.rail)) all.push({text: route.rail, hint: `g ${route.key}`, run: () => router.go(address(route.path, {db}))});
  if (!only) all.push({text: 'Databases', hint: 'g b', run: () => router.go(address('/databases'))});
  all.push({text: 'Keys of this page', hint: '?', run: showKeys});
  if (signsOut()) all.push({text: 'Sign out', run: signOut});
  openPalette(all, {db, open: db && ((id) => router.go(address('/db/:db/doc', {db}, {id})))});
}

function showKeys() {
  return dialog('Keys', (shut) => h('div', {class: 'keys'},
    keys.groups.map(({title, keys: list}) => h('section', null, h('h3', null, title), h('dl', null, list.filter((k) => !k.hidden).map((k) => [h('dt', null, k.key.split(' ').map((one) => h('kbd', null, keyName(one)))), h('dd', null, k.text)])))),
    h('div', {class: 'buttons'}, button('Close', {run: () => shut(), autofocus: true}))), {fromTop: true});
}

keys.add('Everywhere', [
  {key: '/', text: 'Search', run: () => { if (!searching) return false; searching.focus(); searching.select(); }},
  {key: 'ctrl+k', text: 'All commands', run: () => { palette(); }},
  {key: '?', text: 'Keys of this page', run: () => { showKeys(); }},
  {key: 'g b', text: 'Databases', run: () => { router.go(address('/databases')); }},
  ...routes.filter((r) => r.rail).map((route) => ({key: `g ${route.key}`, text: route.rail, run: () => {
    if (!current?.params.db) return false;
    router.go(address(route.path, {db: current.params.db}));
  }})),
]);

// ---- Signing in

let signing = null;

// signIn asks for a token over whatever page is shown, which keeps what was typed on it.
function signIn(reason) {
  signing ??= (async () => {
    const signed = await dialog('', (shut) => {
      const input = h('input', {type: 'password', autocomplete: 'current-password', autofocus: true, spellcheck: 'false', placeholder: 'jay_…'});
      const failed = h('div');
      const go = button('Sign in', {kind: 'primary', type: 'submit'});
      return h('form', {class: 'signin', on: {submit: async (event) => {
        event.preventDefault();
        go.disabled = true;
        try {
          session = await api.signIn(input.value.trim());
          shut(true);
        } catch (error) {
          fill(failed, errorBox(error.kind === 'signin' ? {message: error.message, remedy: 'Check that the whole token was copied, and that it was not withdrawn.'} : error));
          go.disabled = false;
          input.select();
        }
      }}}, h('h2', null, feather(), 'Sign in'), reason && h('p', {class: 'muted'}, reason), h('input', {type: 'text', autocomplete: 'username', hidden: true, value: 'token'}), field('Token', input, 'It is made on the machine of the server: jay serve token create NAME --right DATABASE=admin'), failed,
      h('div', {class: 'buttons'}, go));
    }, {label: 'Sign in'});
    signing = null;
    return signed;
  })();
  return signing;
}

// signsOut reports whether there is a session to end. Where the program around the server signs its users in, it ends theirs.
function signsOut() { return session?.Name && !session.SignedInElsewhere; }

async function signOut() {
  if (!await leave()) return;
  try { await api.signOut(); } catch (error) { if (error.kind !== 'signin') return toast(error.message, {kind: 'wrong'}); }
  location.assign(first());
}

async function signedOut() {
  if (signing) return;
  if (await signIn('The session has ended. What you typed is still here.') && !pending()) router.run();
}

// ---- Start

async function start() {
  api.acceptKey();
  for (;;) {
    try {
      session = await api.session({quiet: true});
      break;
    } catch (error) {
      if (error.kind === 'signin') { if (await signIn('This server asks for a token.')) break; } else {
        fill(main, h('div', {class: 'content'}, errorBox(error, button('Try again', {run: () => location.reload()}))));
        return;
      }
    }
  }
  api.whenSignedOut(signedOut);
  await findOnly();
  keys.start();
  router.start();
}

start();
