// Replies about documents (counters, figures, reports) as values of JavaScript in which no digit is lost: a
// whole number beyond 2^53 is a BigInt, any other number is a Number. count() of ui.js writes both.

import * as api from './api.js';
import {decode, parse} from './json.js';

// read returns the value of a text of JSON.
export function read(text) { return value(text, parse(text)); }

function value(text, node) {
  switch (node.kind) {
    case 'object': return Object.fromEntries(node.members.map((m) => [m.name, value(text, m.value)]));
    case 'array': return node.items.map((item) => value(text, item));
    case 'string': return decode(text.slice(node.start, node.end));
    case 'number': return number(text.slice(node.start, node.end));
    case 'true': return true;
    case 'false': return false;
  }
  return null;
}

// number returns a number with all its digits, where it is a whole one.
export function number(literal) {
  const n = Number(literal);
  return !Number.isSafeInteger(n) && /^-?\d+$/.test(literal) ? BigInt(literal) : n;
}

// get is api.get without a loss.
export async function get(path, options) { return read((await api.text('GET', path, options)).text); }

// minus and plus calculate with both kinds, and return a Number where it is exact.
export function minus(a, b) { return small(BigInt(a) - BigInt(b)); }
export function plus(a, b) { return small(BigInt(a) + BigInt(b)); }

function small(n) { return n >= Number.MIN_SAFE_INTEGER && n <= Number.MAX_SAFE_INTEGER ? Number(n) : n; }

// share returns a part of a whole as a Number from 0 to 1.
export function share(part, whole) {
  if (BigInt(whole) <= 0n) return 0;
  return Math.max(0, Math.min(1, Number(BigInt(part) * 1_000_000n / BigInt(whole)) / 1_000_000));
}
