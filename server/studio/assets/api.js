// Calls of the server. What has documents in it is read as text and never by JSON.parse,
// which would change 9007199254740993 and 1.10: json.js reads it without a loss. Replies
// about documents (counts, indexes, versions, …) are plain JSON.
//
//   const {collections} = await api.get(api.jay(db, 'collections'), {signal});
//   const {text, etag} = await api.text('GET', api.raven(db, 'docs', {id}));
//   await api.text('PUT', api.raven(db, 'docs', {id}), {body: text, headers: {'If-Match': etag}});

import {base} from './base.js';

// ApiError is a call that has failed. kind says what to do: 'offline', 'signin', 'elsewhere', 'forbidden', 'missing', 'nodatabase',
// 'conflict', 'busy', 'large', 'refused', 'unknown' (a write whose outcome is not known) or 'server'.
export class ApiError extends Error {
  constructor(message, {kind, status = 0, type = '', fields = {}, remedy = remedies[kind], request = ''}) {
    super(message);
    Object.assign(this, {name: 'ApiError', kind, status, type, fields, remedy, request});
  }
}

const remedies = {
  offline: 'Check that the server is running and that this machine reaches it, then try again.',
  signin: 'Sign in again; what you typed is still here.',
  elsewhere: 'Sign in there, then load this page again.',
  forbidden: 'Ask for a token with this right: jay serve token create NAME --right DATABASE=RIGHT.',
  missing: 'It may have been deleted meanwhile. Load the list again.',
  nodatabase: 'It may have been deleted or renamed. See the list of databases.',
  conflict: 'Load the newer version, compare, and save again.',
  busy: 'The server has much to do. Try again in some seconds.',
  large: 'Ask for less at a time, or raise the bound of the server.',
  unknown: 'The write may have been stored or not. Load the document before you write it again.',
  server: 'The log of the server says more. Trying again may help.',
};

function kindOf(status, type, headers) {
  if (type.endsWith('UnknownOutcomeException')) return 'unknown';
  if (headers.has('Database-Missing')) return 'nodatabase';
  switch (status) {
    case 401: return headers.has('WWW-Authenticate') ? 'signin' : 'elsewhere'; // the program around the server signs its users in
    case 403: return 'forbidden';
    case 404: return 'missing';
    case 409: return 'conflict';
    case 413: return 'large';
    case 429: return 'busy';
    case 503: return 'offline'; // it shuts down
  }
  return status >= 500 && status !== 501 ? 'server' : 'refused';
}

// onSignin is called when a call needs a token; app.js sets it.
let onSignin = () => {};
export function whenSignedOut(f) { onSignin = f; }

// The second half of a session is kept by the page, for all tabs of this origin: a cookie goes to every port of the host.
const place = 'jay-session-key' + base;
let held = '', signed = false;
function key() { try { return localStorage.getItem(place) ?? held; } catch { return held; } }
function keep(value) {
  held = value;
  try { if (value) localStorage.setItem(place, value); else localStorage.removeItem(place); } catch { /* a browser that keeps nothing: the session ends with this page */ }
}

// acceptKey takes the half that an invitation brings in the address, and removes it there.
export function acceptKey() {
  if (!location.hash.startsWith('#key=')) return;
  keep(location.hash.slice(5));
  history.replaceState(null, '', location.pathname + location.search);
}

// sessionHeaders are those that a request needs beside the cookie.
export function sessionHeaders() { return signed && key() ? {'Jay-Session-Key': key()} : {}; }

// ticketed returns the address of a download by the browser itself, which sends no header: a ticket in it works once.
export async function ticketed(path) {
  if (!signed) return path;
  const url = new URL(path, location.href), whole = url.pathname + url.search;
  const {Ticket} = await send('POST', at('/jay/v1/session/ticket'), {Path: whole});
  return `${whole}${url.search ? '&' : '?'}ticket=${Ticket}`;
}

// download lets the browser store what a path replies with; the page keeps none of it.
export async function download(path, name = '') {
  const a = document.createElement('a');
  a.href = await ticketed(path);
  a.download = name;
  document.body.append(a);
  a.click();
  a.remove();
}

// request sends a call and returns the Response if it succeeded; it throws an ApiError, or
// an AbortError if signal ended it.
export async function request(method, path, {body, headers, signal, quiet} = {}) {
  let response;
  try {
    response = await fetch(path, {method, body, headers: {...headers, ...sessionHeaders()}, signal, credentials: 'same-origin', redirect: 'error', cache: 'no-store'});
  } catch (error) {
    if (signal?.aborted || error.name === 'AbortError') throw error;
    throw new ApiError('The server does not answer.', {kind: 'offline'});
  }
  if (response.ok || response.status === 304) return response;
  const error = await problem(method, response);
  if (error.kind === 'signin' && !quiet) onSignin(error);
  throw error;
}

async function problem(method, response) {
  let message = '', type = '', fields = {};
  try {
    fields = JSON.parse(await response.text());
    message = fields.Message ?? '';
    type = fields.Type ?? '';
  } catch { /* a reply without a body, as 404 of a document, or one of a proxy: the status says it */ }
  const kind = kindOf(response.status, type, response.headers);
  if (!message) message = kind === 'missing' ? 'It is not there.' : `${method} was answered with status ${response.status}.`;
  return new ApiError(message, {kind, status: response.status, type, fields, request: response.headers.get('X-Request-Id') ?? ''});
}

// text returns {text, etag, status, headers} of a reply, as it came.
export async function text(method, path, options) {
  const response = await request(method, path, options);
  return {text: await response.text(), etag: unquote(response.headers.get('ETag')), status: response.status, headers: response.headers};
}

function unquote(tag) { return tag?.replace(/^"|"$/g, '') ?? ''; }

// get returns plain JSON. Not for documents.
export async function get(path, options) { return (await request('GET', path, options)).json(); }

// send sends a value as JSON, and returns plain JSON, or null for an empty reply. Not for documents.
export async function send(method, path, value, options = {}) {
  const body = value === undefined ? undefined : JSON.stringify(value);
  const reply = await (await request(method, path, {...options, body, headers: {...(body && {'Content-Type': 'application/json'}), ...options.headers}})).text();
  return reply === '' ? null : JSON.parse(reply);
}

// query writes parameters: null, undefined and '' are left out; lists repeat their name.
export function query(params) {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(params ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== '') out.append(name, one);
    }
  }
  const text = out.toString();
  return text === '' ? '' : '?' + text;
}

// at is a path of the server itself, jay one of Jay's own interface to a database, raven one of RavenDB's protocol:
// docs/server/endpoints.md has them all.
export function at(path, params) { return base + path + query(params); }
export function jay(db, path, params) { return `${base}/jay/v1/databases/${encodeURIComponent(db)}/${path}${query(params)}`; }
export function raven(db, path, params) { return `${base}/databases/${encodeURIComponent(db)}/${path}${rawQuery(params)}`; }

// rawQuery escapes blanks as %20: in the URL of a write a plus sign is a plus sign.
function rawQuery(params) { return query(params).replaceAll('+', '%20'); }

// session tells who asks and with which rights; signIn swaps a token for a cookie.
export async function session(options) {
  signed = key() !== '';
  const reply = await get(at('/jay/v1/session'), options);
  signed = !!reply.Name && !reply.SignedInElsewhere; // else there is no session of this server, and no key
  return reply;
}
export async function signIn(token) {
  const reply = await (await request('POST', at('/jay/v1/session'), {headers: {Authorization: `Bearer ${token}`}, quiet: true})).json();
  keep(reply.Key);
  signed = true;
  return reply;
}
export async function signOut() {
  await request('DELETE', at('/jay/v1/session'), {quiet: true});
  keep('');
}

const ranks = {read: 1, write: 2, admin: 3};

// may says whether the rights of a session allow something: right is 'read', 'write' or 'admin'; db '' is the server.
export function may(rights, db, right) {
  const own = Object.entries(rights ?? {}).find(([name]) => name.toLowerCase() === db.toLowerCase())?.[1];
  return Math.max(ranks[own] ?? 0, ranks[rights?.['*']] ?? 0) >= ranks[right];
}
