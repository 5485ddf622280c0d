// The pieces that pages are made of. A component is a function that returns a DOM node:
//
//   const n = h('p', {class: 'muted'}, 'There are ', h('b', null, count(7)), ' rows.');
//
// Text is always text: h makes text nodes and never HTML, so that nothing in a document
// can become part of the page. When something changes, the part of the page that shows
// it is made again: fill(n, …).

import {download} from './api.js';

const svgTags = new Set(['svg', 'path', 'g', 'line', 'rect', 'circle', 'polyline', 'polygon', 'text', 'title', 'desc', 'use', 'defs', 'marker', 'clipPath', 'tspan']);

// h makes an element. In props, on: {click: f} are listeners, style: {width: '3px'} and
// data: {id: 7} are set by name, class may be a list with holes, true stands for an
// attribute without a value, and false, null and undefined for none. Children are nodes,
// texts, numbers, lists of them, and null, false or undefined for nothing.
export function h(tag, props, ...children) {
  const node = svgTags.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') for (const [event, f] of Object.entries(value)) { if (f) node.addEventListener(event, f); }
    else if (name === 'style') for (const [property, v] of Object.entries(value)) node.style.setProperty(property, v);
    else if (name === 'data') Object.assign(node.dataset, value);
    else if (name === 'class') node.setAttribute('class', Array.isArray(value) ? value.filter(Boolean).join(' ') : value);
    else if (name === 'value' || name === 'checked' || name === 'indeterminate') node[name] = value;
    else if (name.startsWith('on')) throw new TypeError(`h: listeners go into on: {…}, not ${name}`);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) add(node, child);
    else node.append(child instanceof Node ? child : visible(String(child)));
  }
}

// visible writes characters that turn the direction of a text, and control characters, as escapes: an ID that
// ends in "gpj.exe" turned round must not be read as one that ends in "exe.jpg".
export function visible(text) {
  return text.replace(/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// fill replaces what is in a node.
export function fill(node, ...children) {
  const all = document.createDocumentFragment();
  add(all, children);
  node.replaceChildren(all);
  return node;
}

// ---- Icons: the path of a 16 × 16 drawing, in the colour of the text.

const paths = {
  documents: 'M4 1.500h5l3.500 3.500v9.500h-8.500zM9 1.500v3.500h3.500',
  query: 'M7 2.500a4.500 4.500 0 1 1 0 9 4.500 4.500 0 0 1 0-9zM10.500 10.500l3.500 3.500',
  indexes: 'M2.500 3.500h11M2.500 8h7M2.500 12.500h4M12 8v6m-2-2l2 2 2-2',
  ids: 'M5.500 2.500l-1.500 11M11.500 2.500l-1.500 11M2.500 6h11.500M2 10.500h11.500',
  changes: 'M1.500 8.500h3l2-5.500 3 10 2-4.500h3',
  io: 'M5 13V3M2.500 5.500L5 3l2.500 2.500M11 3v10M8.500 10.500L11 13l2.500-2.500',
  patch: 'M2.500 13.500l1-3.500 7.500-7.500 2.500 2.500-7.500 7.500zM9.500 4l2.500 2.500',
  statistics: 'M2.500 13.500v-4M6.200 13.500v-7M9.800 13.500v-9M13.500 13.500v-12',
  operations: 'M8 1.500a6.500 6.500 0 1 0 6.500 6.500M8 4.500v3.500l2.500 2',
  backup: 'M2.500 4.500c0-3.500 11-3.500 11 0v7c0 3.500-11 3.500-11 0zM2.500 4.500c0 3.500 11 3.500 11 0M2.500 8c0 3.500 11 3.500 11 0',
  settings: 'M2 4.500h7M12 4.500h2M2 11.500h2M7 11.500h7M10.500 3a1.500 1.500 0 1 1 0 3 1.500 1.500 0 0 1 0-3zM5.500 10a1.500 1.500 0 1 1 0 3 1.500 1.500 0 0 1 0-3z',
  databases: 'M2.500 4c0-3 11-3 11 0v8c0 3-11 3-11 0zM2.500 4c0 3 11 3 11 0',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  more: 'M3.500 8h.01M8 8h.01M12.500 8h.01',
  down: 'M4 6l4 4 4-4',
  up: 'M4 10l4-4 4 4',
  right: 'M6 4l4 4-4 4',
  left: 'M10 4L6 8l4 4',
  top: 'M4 11l4-4 4 4M3.500 3.500h9',
  end: 'M4 5l4 4 4-4M3.500 12.500h9',
  delete: 'M3 4.500h10M6.500 4.500v-2h3v2M4.500 4.500l.7 9h5.600l.7-9',
  download: 'M8 2v8.500M4.500 7.500L8 11l3.500-3.500M3 13.500h10',
  upload: 'M8 11V2.500M4.500 5.500L8 2l3.500 3.500M3 13.500h10',
  refresh: 'M13.500 8a5.500 5.500 0 1 1-1.800-4.100M13.500 1.500v3h-3',
  columns: 'M2.500 3h11v10h-11zM6.200 3v10M9.800 3v10',
  check: 'M3 8.500l3.500 3.500L13 4.500',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
  play: 'M4.500 3l8 5-8 5z',
  pause: 'M5 3v10M11 3v10',
  warn: 'M8 2l6.500 11.500h-13zM8 6.500v3.500M8 12v.01',
  info: 'M8 1.500a6.500 6.500 0 1 1 0 13 6.500 6.500 0 0 1 0-13zM8 7v4.500M8 4.500v.01',
  keyboard: 'M1.500 4h13v8h-13zM4 6.500h.01M6.500 6.500h.01M9 6.500h.01M11.500 6.500h.01M4.500 9.500h7',
  user: 'M8 2a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM2.500 14c.5-5 10.500-5 11 0',
  link: 'M7 9a3 3 0 0 0 4.500 0l2-2a3 3 0 0 0-4.500-4.200l-1 1M9 7a3 3 0 0 0-4.500 0l-2 2A3 3 0 0 0 7 13.200l1-1',
};

export function icon(name) {
  if (!paths[name]) throw new TypeError(`icon: there is no ${name}`);
  return h('svg', {class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true'}, h('path', {d: paths[name]}));
}

// ---- Buttons and links

// button makes a button: {icon, kind: 'primary' | 'danger' | 'quiet', key: 'ctrl+s' (shown, not bound), label: the name for
// screen readers if there is no text, disabled, title, run}. While the promise that run returns is
// open, the button is busy and cannot be pressed again.
export function button(text, {icon: drawing, kind, key, label, disabled, title, run, ...rest} = {}) {
  const node = h('button', {type: 'button', class: ['button', kind, !text && 'square'], 'aria-label': text ? label : label ?? title, title: title ?? (text ? undefined : label), disabled, ...rest},
    drawing && icon(drawing), text && h('span', null, text), key && h('kbd', {'aria-hidden': 'true'}, keyName(key)));
  if (run) node.addEventListener('click', async (event) => {
    const result = run(event, node);
    if (!(result instanceof Promise)) return;
    node.disabled = true;
    node.setAttribute('aria-busy', 'true');
    try { await result; } finally { node.disabled = !!disabled; node.removeAttribute('aria-busy'); }
  });
  return node;
}

const mac = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform);

// keyName writes a key as the system does: ctrl+enter is ⌘↵ on a Mac.
export function keyName(key) {
  return key.split(' ').map((chord) => chord.split('+').map((part) => {
    const names = {ctrl: mac ? '⌘' : 'Ctrl', enter: '↵', escape: 'Esc', shift: mac ? '⇧' : 'Shift', alt: mac ? '⌥' : 'Alt', arrowup: '↑', arrowdown: '↓', arrowleft: '←', arrowright: '→', pageup: 'PgUp', pagedown: 'PgDn', home: 'Home', end: 'End', delete: 'Del', ' ': 'Space'};
    return names[part.toLowerCase()] ?? (part.length === 1 ? (chord.includes('+') ? part.toUpperCase() : part) : part);
  }).join(mac ? '' : '+')).join(' ');
}

// link makes a link to a page; the router sees the click.
export function link(href, props, ...children) { return h('a', {href, ...props}, ...children); }

// field labels an input: field('Name', h('input', …), 'what it is for').
let fields = 0;
export function field(text, input, hint) {
  input.id ||= `field-${++fields}`;
  const help = hint && h('p', {class: 'hint', id: `${input.id}-hint`}, hint);
  if (help) input.setAttribute('aria-describedby', help.id);
  return h('div', {class: 'field'}, h('label', {for: input.id}, text), input, help);
}

// ---- Messages

// errorBox says where it happened what happened, and what to do next. An error without a
// remedy may bring one: actions are buttons.
export function errorBox(error, ...actions) {
  return h('div', {class: 'error box', role: 'alert'}, icon('warn'), h('div', null,
    h('p', {class: 'what'}, error.message || String(error)),
    error.remedy && h('p', {class: 'remedy'}, error.remedy),
    actions.length > 0 && h('p', {class: 'actions'}, actions)));
}

// notice is a calm box: kind is 'info', 'fine' or 'careful'.
export function notice(kind, ...children) {
  return h('div', {class: ['box', kind]}, icon({info: 'info', fine: 'check', careful: 'warn'}[kind]), h('div', null, ...children));
}

// empty is what a page shows instead of an empty table: a headline, and what to do next.
export function empty(headline, ...children) {
  return h('section', {class: 'empty'}, h('h2', null, headline), ...children);
}

// state is a word with a dot of its colour and shape: 'fine', 'careful', 'wrong' or 'idle'.
export function state(kind, text) { return h('span', {class: ['state', kind]}, text); }

// toast shows a message at the edge for some seconds: {kind: 'fine' | 'wrong', action: 'Undo', run, seconds}. What went
// wrong stays until it is closed. It returns a function that closes it.
export function toast(text, {kind = 'fine', action, run, seconds = action ? 10 : 4} = {}) {
  const close = () => { clearTimeout(timer); node.remove(); };
  const node = h('div', {class: ['toast', kind]}, h('span', null, text),
    action && button(action, {kind: 'quiet', run: () => { close(); return run(); }}),
    button('', {icon: 'close', label: 'Close the message', kind: 'quiet', run: close}));
  document.getElementById('toasts').append(node);
  const timer = kind === 'wrong' ? 0 : setTimeout(close, seconds * 1000);
  return close;
}

// progress is a bar with its numbers: update(done, total, text); without a total it has no end that is known.
export function progress(label) {
  const bar = h('div', {class: 'fill'});
  const track = h('div', {class: 'track', role: 'progressbar', 'aria-label': label, 'aria-valuemin': 0, 'aria-valuemax': 100}, bar);
  const text = h('span', {class: 'muted number'});
  const node = h('div', {class: 'progress'}, track, text);
  return {node, update(done, total, words) {
    const percent = total > 0 ? Math.min(100, done / total * 100) : 0;
    node.classList.toggle('endless', !(total > 0));
    bar.style.setProperty('width', `${percent}%`);
    if (total > 0) track.setAttribute('aria-valuenow', Math.round(percent)); else track.removeAttribute('aria-valuenow');
    fill(text, words ?? (total > 0 ? `${count(done)} of ${count(total)}` : count(done)));
  }};
}

// patience shows what is loading, but not before 200 ms are over: const done = patience(node, 'Counting'); … done().
export function patience(node, text = 'Loading') {
  const timer = setTimeout(() => node.append(sign), 200);
  const sign = h('p', {class: 'patience', role: 'status'}, h('span', {class: 'spin', 'aria-hidden': 'true'}), text, ' …');
  return () => { clearTimeout(timer); sign.remove(); };
}

// ---- Dialogs, menus, tabs

// dialog opens a dialog over the page and returns a promise of what close was called
// with; Escape and a click outside close it with undefined: content(close) makes its children.
export function dialog(title, content, {wide, label, fromTop = false} = {}) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    let result;
    const close = (value) => { result = value; node.close(); };
    const node = h('dialog', {class: ['dialog', wide && 'wide'], 'aria-label': label ?? title, on: {
      close: () => { node.remove(); before?.focus?.(); resolve(result); },
      pointerdown: (event) => { if (event.target === node) close(); },
    }});
    fill(node, h('div', {class: 'sheet'}, title && h('h2', null, title), content(close)));
    document.body.append(node);
    node.showModal();
    node.querySelector('[autofocus]')?.focus({preventScroll: fromTop});
    if (fromTop) node.scrollTop = 0; // showModal has scrolled to what it has focused
  });
}

// confirm asks before something that cannot be undone. With type, that text has to be typed first.
export function confirm({title, text, action = 'Delete', kind = 'danger', type}) {
  return dialog(title, (close) => {
    const go = button(action, {kind, disabled: !!type, run: () => close(true), autofocus: !type});
    const input = type && h('input', {type: 'text', autocomplete: 'off', spellcheck: 'false', autofocus: true, on: {
      input: () => { go.disabled = input.value !== type; },
    }});
    return h('form', {on: {submit: (event) => { event.preventDefault(); if (!go.disabled) close(true); }}},
      typeof text === 'string' ? h('p', null, text) : text,
      type && field(`Type ${type} to go on`, input),
      h('div', {class: 'buttons'}, button('Cancel', {run: () => close()}), go));
  });
}

// menu opens a list of commands below a button: items are {text, icon, key, run, disabled, checked, danger} or null for a line.
export function menu(anchor, items) {
  const before = document.activeElement;
  const close = () => { node.remove(); anchor.setAttribute('aria-expanded', 'false'); removeEventListener('pointerdown', outside, true); removeEventListener('resize', close); };
  const outside = (event) => { if (!node.contains(event.target)) close(); };
  const rows = () => [...node.querySelectorAll('[role^=menuitem]:not([disabled])')];
  const node = h('div', {class: 'menu', role: 'menu', on: {
    keydown: (event) => {
      const all = rows(), at = all.indexOf(document.activeElement);
      const to = {ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1}[event.key];
      if (to !== undefined) all[to % all.length]?.focus();
      else if (event.key === 'Escape' || event.key === 'Tab') { close(); before?.focus?.(); }
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  }}, items.map((item) => item === null ? h('hr') : h('button', {
    type: 'button', role: item.checked === undefined ? 'menuitem' : 'menuitemcheckbox', 'aria-checked': item.checked === undefined ? undefined : String(item.checked),
    disabled: item.disabled, class: item.danger && 'danger', on: {click: () => { if (!item.stays) { close(); before?.focus?.(); } item.run(); }},
  }, item.checked === undefined ? item.icon && icon(item.icon) : h('span', {class: 'tick'}, item.checked && icon('check')), h('span', null, item.text), item.key && h('kbd', null, keyName(item.key)))));
  document.body.append(node);
  const box = anchor.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, innerWidth - node.offsetWidth - 8));
  const below = box.bottom + 4 + node.offsetHeight < innerHeight - 8;
  node.style.setProperty('left', `${left}px`);
  node.style.setProperty('top', `${below ? box.bottom + 4 : Math.max(8, box.top - 4 - node.offsetHeight)}px`);
  anchor.setAttribute('aria-expanded', 'true');
  addEventListener('pointerdown', outside, true);
  addEventListener('resize', close);
  rows()[0]?.focus();
  return close;
}

// tabs makes a list of tabs: items are {id, text}; pick(id) is called when another one is chosen. It returns {node, select(id)}.
export function tabs(label, items, pick, chosen = items[0].id) {
  const all = items.map((item) => h('button', {type: 'button', role: 'tab', id: item.tab, data: {id: item.id}, on: {click: () => { select(item.id); pick(item.id); }}}, item.text));
  const select = (id) => { for (const tab of all) { const is = tab.dataset.id === id; tab.setAttribute('aria-selected', String(is)); tab.tabIndex = is ? 0 : -1; } };
  const node = h('div', {class: 'tabs', role: 'tablist', 'aria-label': label, on: {keydown: (event) => {
    const at = all.indexOf(document.activeElement), step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step || at < 0) return;
    const to = all[(at + step + all.length) % all.length];
    to.focus();
    to.click();
    event.preventDefault();
  }}}, all);
  select(chosen);
  return {node, select};
}

// table makes a plain table for rows that fit on a page: columns are {title, cell(row), number, narrow: false}. On a narrow
// screen each row becomes two lines: the first column, and the others below it.
export function table(columns, rows, {caption, row: rowProps} = {}) {
  return h('table', {class: 'table'}, caption && h('caption', {class: 'only-read'}, caption),
    h('thead', null, h('tr', null, columns.map((c) => h('th', {scope: 'col', class: c.number && 'number'}, c.title)))),
    h('tbody', null, rows.map((row) => h('tr', rowProps?.(row) ?? null, columns.map((c) => h('td', {class: c.number && 'number', data: {title: c.title}}, c.cell(row)))))));
}

// ---- Numbers, sizes and times as people read them

const numbers = new Intl.NumberFormat('en');

// count writes a whole number: 12,408. It takes a BigInt, too.
export function count(n) { return numbers.format(n); }

// plural writes a number and its word: 1 document, 2 documents.
export function plural(n, one, many = one + 's') { return `${count(n)} ${Number(n) === 1 ? one : many}`; }

// bytes writes a size: 4.1 MB.
export function bytes(n) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
  let i = 0;
  for (n = Number(n); n >= 1000 && i < units.length - 1; i++) n /= 1000;
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

// duration writes nanoseconds: 0.9 ms, 2.1 s.
export function duration(ns) {
  ns = Number(ns);
  if (ns < 1e3) return `${ns} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(ns < 1e5 ? 1 : 0)} µs`;
  if (ns < 1e9) return `${(ns / 1e6).toFixed(ns < 1e8 ? 1 : 0)} ms`;
  if (ns < 60e9) return `${(ns / 1e9).toFixed(1)} s`;
  return `${Math.floor(ns / 60e9)} min ${Math.round(ns / 1e9) % 60} s`;
}

const relative = new Intl.RelativeTimeFormat('en', {numeric: 'auto', style: 'short'});

// ago writes how long ago a time was.
export function ago(date, now = Date.now()) {
  const seconds = (date.getTime() - now) / 1000;
  for (const [unit, length] of [['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60]]) {
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit).replace('.', '');
  }
  return Math.abs(seconds) < 5 ? 'now' : relative.format(Math.trunc(seconds), 'second').replace('.', '');
}

// time shows a time as it is from here, with the exact one on hover and focus.
export function time(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return h('span', null, String(text));
  return h('time', {datetime: text, title: text}, ago(date));
}

// copy makes a button that copies a text.
export function copy(text, label = 'Copy') {
  return button('', {icon: 'copy', kind: 'quiet', label, run: async () => {
    await navigator.clipboard.writeText(typeof text === 'function' ? text() : text);
    toast('Copied.');
  }});
}

// code shows lines to copy.
export function code(text, label = 'Copy these lines') {
  return h('div', {class: 'code'}, h('pre', {tabindex: 0, role: 'group', 'aria-label': 'Lines to copy'}, text), copy(text, label));
}

// downloads is what a click on a link to a download does.
export async function downloads(event) {
  const a = event.currentTarget;
  event.preventDefault();
  try { await download(a.getAttribute('href'), a.download); } catch (error) { toast(error.message, {kind: 'wrong'}); }
}

// save hands a text or a Blob to the user as a file.
export function save(name, content, type = 'application/json') {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type}));
  const a = h('a', {href: address, download: name});
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
