// Differences of texts, line by line, and the merge of three versions of a document.

import * as json from './json.js';

// MAX_EDITS bounds the work and the memory of a comparison. With more lines that differ, the part
// between the equal lines at both ends counts as replaced as a whole.
export const MAX_EDITS = 2000;

// lines compares two texts and returns [{kind, left, right}]: kind is 'same', 'removed',
// 'added' or 'changed', left and right are numbers of lines that begin with 0, or -1. A removed
// line beside an added one is one changed line.
export function lines(left, right) {
  const a = left.split('\n');
  const b = right.split('\n');
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;

  const out = [];
  for (let i = 0; i < head; i++) out.push({kind: 'same', left: i, right: i});
  const middle = compare(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  for (const [kind, i, j] of middle) out.push({kind, left: i < 0 ? -1 : i + head, right: j < 0 ? -1 : j + head});
  for (let i = tail; i > 0; i--) out.push({kind: 'same', left: a.length - i, right: b.length - i});
  return pair(out);
}

// compare is Myers' algorithm (An O(ND) Difference Algorithm, 1986).
function compare(a, b) {
  const n = a.length;
  const m = b.length;
  const whole = () => [...a.map((_, i) => ['removed', i, -1]), ...b.map((_, j) => ['added', -1, j])];
  if (n === 0 || m === 0) return whole();
  const most = Math.min(n + m, MAX_EDITS);
  const v = new Int32Array(2 * most + 2);
  const trace = []; // by number of edits d: the furthest x before them, of the diagonals from -d to d + 1
  for (let d = 0; d <= most; d++) {
    trace.push(v.slice(most - d, most + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = isDown(v, most, k, d) ? v[most + k + 1] : v[most + k - 1] + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      v[most + k] = x;
      if (x >= n && x - k >= m) return path(trace, d, n, m);
    }
  }
  return whole();
}

// isDown reports whether the furthest path to diagonal k comes from the one above it, by an
// added line. zero is the position of diagonal 0.
function isDown(v, zero, k, d) {
  return k === -d || (k !== d && v[zero + k - 1] < v[zero + k + 1]);
}

// path walks back over the furthest points.
function path(trace, d, x, y) {
  const out = [];
  for (; d > 0; d--) {
    const v = trace[d];
    const k = x - y;
    const down = isDown(v, d, k, d);
    const before = down ? k + 1 : k - 1;
    const bx = v[d + before];
    const by = bx - before;
    while (x > bx && y > by) out.push(['same', --x, --y]);
    if (down) out.push(['added', -1, --y]);
    else out.push(['removed', --x, -1]);
  }
  while (x > 0) out.push(['same', --x, --y]);
  return out.reverse();
}

// pair makes changed lines of removed ones that added ones follow.
function pair(list) {
  const out = [];
  for (let i = 0; i < list.length;) {
    if (list[i].kind === 'same') {
      out.push(list[i++]);
      continue;
    }
    const removed = [];
    const added = [];
    for (; i < list.length && list[i].kind !== 'same'; i++) (list[i].kind === 'removed' ? removed : added).push(list[i]);
    const both = Math.min(removed.length, added.length);
    for (let k = 0; k < both; k++) out.push({kind: 'changed', left: removed[k].left, right: added[k].right});
    out.push(...removed.slice(both), ...added.slice(both));
  }
  return out;
}

// within returns where two lines differ: [start, leftEnd, rightEnd]. No half of a pair of
// surrogates stands at a border.
export function within(left, right) {
  let start = 0;
  const least = Math.min(left.length, right.length);
  while (start < least && left[start] === right[start]) start++;
  if (start > 0 && isHigh(left.charCodeAt(start - 1))) start--;
  let tail = 0;
  while (tail < least - start && left[left.length - 1 - tail] === right[right.length - 1 - tail]) tail++;
  if (tail > 0 && isLow(left.charCodeAt(left.length - tail))) tail--;
  return [start, left.length - tail, right.length - tail];
}

function isHigh(c) {
  return c >= 0xd800 && c < 0xdc00;
}

function isLow(c) {
  return c >= 0xdc00 && c < 0xe000;
}

// merge makes one document of what two writers made of base: {text, conflicts}. What only one
// has changed is as that one has it. What both have changed, and not to the same, is as in yours, and
// in conflicts: [{path, base, theirs, yours}] with texts, or null where there is nothing. Objects
// are merged member by member, and arrays of the same length item by item; digits and
// spellings stay.
export function merge(base, theirs, yours) {
  const conflicts = [];
  const tree = (text) => ({text, node: json.parse(text)});
  const text = mergeValue(tree(base), tree(theirs), tree(yours), [], conflicts);
  return {text: json.format(text), conflicts};
}

// mergeValue returns the text of the merged value, or null if it is removed. Each argument is
// {text, node}, or null.
function mergeValue(b, t, y, steps, conflicts) {
  if (same(t, y) || same(b, t)) return source(y);
  if (same(b, y)) return source(t);
  const all = [b, t, y];
  if (all.every((v) => v !== null && v.node.kind === 'object' && json.duplicates({ kind: 'object', members: v.node.members.map((m) => ({...m, value: {kind: 'null'}})) }).length === 0)) {
    return mergeObject(b, t, y, steps, conflicts);
  }
  const n = y?.node.items?.length;
  if (all.every((v) => v !== null && v.node.kind === 'array' && v.node.items.length === n)) {
    const items = y.node.items.map((_, i) => mergeValue(item(b, i), item(t, i), item(y, i), [...steps, i], conflicts));
    return `[${items.join(',')}]`;
  }
  conflicts.push({path: pathOf(steps), steps, base: source(b), theirs: source(t), yours: source(y)});
  return source(y);
}

function mergeObject(b, t, y, steps, conflicts) {
  const parts = [];
  const done = new Set();
  for (const from of [y, t]) {
    for (const m of from.node.members) {
      if (done.has(m.name)) continue;
      done.add(m.name);
      const value = mergeValue(child(b, m.name), child(t, m.name), child(y, m.name), [...steps, m.name], conflicts);
      if (value !== null) parts.push([m.name, `${from.text.slice(m.nameStart, m.nameEnd)}:${value}`]);
    }
  }
  if (steps.length === 0) parts.sort((a, b) => (a[0] === '@metadata') - (b[0] === '@metadata')); // it stays the last
  return `{${parts.map((p) => p[1]).join(',')}}`;
}

function pathOf(steps) {
  return steps.length === 0 ? 'the document' : steps.reduce((path, step) => (typeof step === 'number' ? `${path}[${step}]` : (path === '' ? '' : path + '.') + json.step(step)), '');
}

function same(a, b) {
  return a === null || b === null ? a === b : json.same(a.node, a.text, b.node, b.text);
}

function source(v) {
  return v === null ? null : json.raw(v.text, v.node);
}

function child(v, name) {
  const node = json.member(v.node, name);
  return node === null ? null : {text: v.text, node};
}

function item(v, i) {
  return {text: v.text, node: v.node.items[i]};
}
