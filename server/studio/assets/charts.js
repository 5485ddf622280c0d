// Charts: small, of a fixed size so that nothing moves, drawn as SVG, with their units and a sentence that says the
// same. Colours follow the meaning of a line (its kind), not its place: those of ops.css.

import {count, fill, h} from './ui.js';

// ---- Figures over time

// History keeps the last points of several lines. A point is an object; null in one is a gap.
export class History {
  constructor(most) { this.most = most; this.points = []; }
  add(point) {
    this.points.push(point);
    if (this.points.length > this.most) this.points.splice(0, this.points.length - this.most);
  }
  line(name) { return this.points.map((point) => point[name] ?? null); }
}

// rates returns what has happened between two replies of figures, a second: the figures only rise. It is
// null if the server has begun anew between them.
export function rates(before, after) {
  const seconds = (Date.parse(after.at) - Date.parse(before.at)) / 1000;
  if (!(seconds > 0)) return null;
  const a = before.stats.engine, b = after.stats.engine;
  const rise = (name) => Number(b[name]) - Number(a[name]);
  const kinds = {};
  for (const one of after.operations) {
    const old = before.operations.find((o) => o.verb === one.verb);
    const n = one.count - (old?.count ?? 0);
    if (n < 0) return null;
    const kind = kinds[one.kind] ??= {count: 0, documents: 0, failed: 0, under: []};
    kind.count += n;
    kind.documents += one.documents - (old?.documents ?? 0);
    kind.failed += one.failed - (old?.failed ?? 0);
    one.under.forEach((m, i) => { kind.under[i] = (kind.under[i] ?? 0) + m - (old?.under[i] ?? 0); });
  }
  if (rise('commits') < 0 || rise('logSyncs') < 0) return null;
  const looked = rise('cacheHits') + rise('cacheMisses');
  const perSecond = (kind) => (kinds[kind]?.count ?? 0) / seconds;
  const late = (kind, q) => (kinds[kind]?.count > 0 ? quantile(kinds[kind].under, q) : null);
  return {
    at: Date.parse(after.at),
    reads: perSecond('read'), queries: perSecond('query'), writes: perSecond('write'), transactions: perSecond('transaction'),
    failed: Object.values(kinds).reduce((sum, k) => sum + k.failed, 0) / seconds,
    readHalf: late('read', 0.5), readLate: late('read', 0.99), queryHalf: late('query', 0.5), queryLate: late('query', 0.99),
    writeHalf: late(kinds.write?.count ? 'write' : 'transaction', 0.5), writeLate: late(kinds.write?.count ? 'write' : 'transaction', 0.99),
    commits: rise('commits') / seconds, syncs: rise('logSyncs') / seconds,
    sync: rise('logSyncs') > 0 ? rise('logSyncNs') / rise('logSyncs') : null,
    hits: looked > 0 ? 100 * rise('cacheHits') / looked : null,
    written: rise('writtenBytes') / seconds, stalled: 100 * rise('stallNs') / 1e9 / seconds,
    disk: Number(b.diskBytes), log: Number(b.logBytes), cache: Number(b.cacheBytes), memory: Number(b.memTableBytes), debt: Number(b.debtBytes), depth: Number(b.readDepth),
  };
}

// quantile returns the duration, in nanoseconds, below which the part q of all lie, from classes of powers of two of
// microseconds: exact to the class, and in between it is guessed.
export function quantile(under, q) {
  const all = under.reduce((sum, n) => sum + n, 0);
  if (all === 0) return null;
  const wanted = q * all;
  let below = 0;
  for (let i = 0; i < under.length; i++) {
    if (under[i] > 0 && below + under[i] >= wanted) {
      const from = i === 0 ? 0 : 2 ** (i - 1), to = 2 ** i;
      return (from + (to - from) * (wanted - below) / under[i]) * 1000;
    }
    below += under[i];
  }
  return 2 ** (under.length - 1) * 1000;
}

// ceiling returns a round number that is not below n: 1, 2 or 5 times a power of ten, or of 1,000 for bytes.
export function ceiling(n) {
  if (!(n > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(n));
  for (const step of [1, 2, 5, 10]) if (step * power >= n * (1 - 1e-12)) return step * power;
  return 10 * power;
}

// path draws values as lines of a polygon, from the left on; a gap begins a new line. x(i) and y(v) are pixels.
export function path(values, x, y) {
  let out = '', open = false;
  values.forEach((v, i) => {
    if (v === null || !Number.isFinite(v)) { open = false; return; }
    const here = `${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
    out += open ? `L${here}` : `M${here}`;
    if (!open && (values[i + 1] ?? null) === null) out += `L${(x(i) + 0.5).toFixed(1)} ${y(v).toFixed(1)}`;
    open = true;
  });
  return out;
}

// describe says in a sentence what a line shows.
export function describe(name, values, format) {
  const known = values.filter((v) => v !== null);
  if (known.length === 0) return `${name}: nothing yet.`;
  const now = values.at(-1) === null ? 'nothing' : format(values.at(-1));
  return `${name}: now ${now}, least ${format(Math.min(...known))}, most ${format(Math.max(...known))}.`;
}

// ---- A chart of lines

const width = 296, height = 88, left = 4, right = 4, top = 8, bottom = 8;

// chart makes a chart: lines are [{key, text, kind}], format writes a value with its unit, span says what time it
// covers. top is the least upper end of its scale. update(history) draws it anew.
export function chart({title, lines, format, span, least = 0, most}) {
  const grid = h('g', {class: 'grid'}, [0, 0.5, 1].map((part) => { const y = top + part * (height - top - bottom); return h('line', {x1: left, x2: width - right, y1: y, y2: y}); }));
  const marks = lines.map((line) => h('path', {class: `line ${line.kind}`, d: ''}));
  const name = h('title'), words = h('desc');
  const svg = h('svg', {class: 'chart-lines', viewBox: `0 0 ${width} ${height}`, role: 'img', preserveAspectRatio: 'none'}, name, words, grid, marks);
  fill(name, title);
  const high = h('span', {class: 'chart-top'}), now = lines.map((line) => h('dd', {class: 'number'}));
  const node = h('figure', {class: 'chart'},
    h('figcaption', null, h('h2', null, title), h('span', {class: 'muted'}, high)),
    svg,
    h('dl', {class: 'chart-now'}, lines.map((line, i) => h('div', null, h('dt', null, h('span', {class: `swatch ${line.kind}`, 'aria-hidden': 'true'}), line.text), now[i]))));
  return {node, update(history) {
    const all = lines.map((line) => history.line(line.key));
    const largest = Math.max(least, ...all.flat().filter((v) => v !== null));
    const end = most ?? ceiling(largest);
    const x = (i) => width - right - (history.most - 1) * step + (history.most - history.points.length + i) * step;
    const step = (width - left - right) / (history.most - 1);
    const y = (v) => height - bottom - Math.min(1, v / end) * (height - top - bottom);
    all.forEach((values, i) => {
      marks[i].setAttribute('d', path(values, x, y));
      const last = values.at(-1) ?? null;
      fill(now[i], last === null ? '–' : format(last));
    });
    fill(high, format(end));
    fill(words, all.map((values, i) => describe(lines[i].text, values, format)).join(' ') + ` ${span}`);
  }};
}

// ---- A bar of parts

// bar makes one bar of parts: [{kind, text, value}], of a whole; values may be BigInt. Each part that is not empty can
// be seen, however small; the text beside it has the numbers.
export function bar(label, parts, whole, {unit = '', legend = true} = {}) {
  const shown = widths(parts.map((p) => p.value), whole);
  let at = 0;
  const pieces = parts.map((part, i) => {
    const piece = shown[i] > 0 && h('rect', {class: `part ${part.kind}`, x: at, y: 0, width: shown[i], height: 16});
    at += shown[i];
    return piece;
  });
  const said = parts.filter((p) => BigInt(p.value) > 0n).map((p) => `${p.text} ${count(p.value)}${unit}`.trim()).join(', ') || 'nothing';
  const svg = h('svg', {class: 'chart-bar', viewBox: '0 0 1000 16', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${label}: ${said}`}, h('rect', {class: 'part rest', x: 0, y: 0, width: 1000, height: 16}), pieces);
  return h('div', {class: 'bar-of'}, svg, legend && h('ul', {class: 'legend'}, parts.filter((p) => BigInt(p.value) > 0n).map((p) => h('li', {title: p.hint}, h('span', {class: `swatch ${p.kind}`, 'aria-hidden': 'true'}), p.text, ' ', h('b', {class: 'number'}, p.written ?? count(p.value))))));
}

// widths returns the widths of parts, of 1,000 for the whole. What is not empty has at least 6.
export function widths(values, whole) {
  const all = values.map((v) => BigInt(v)), total = BigInt(whole);
  if (total <= 0n) return all.map(() => 0);
  const raw = all.map((v) => (v <= 0n ? 0 : Math.max(6, Number(v * 1_000_000n / total) / 1000)));
  const sum = raw.reduce((a, b) => a + b, 0);
  return sum > 1000 ? raw.map((w) => w * 1000 / sum) : raw;
}
