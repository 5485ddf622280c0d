import assert from 'node:assert/strict';
import {test} from 'node:test';
import {History, ceiling, describe, path, quantile, rates, widths} from '../assets/charts.js';

test('a history keeps the last points, and gaps', () => {
  const history = new History(3);
  for (const a of [1, 2, 3, 4]) history.add({a});
  history.add({});
  assert.deepEqual(history.line('a'), [3, 4, null]);
});

test('ceilings are round and never too low', () => {
  assert.deepEqual([0, -1, NaN, 0.3, 1, 3, 5.1, 99, 100, 101, 4e9].map(ceiling), [1, 1, 1, 0.5, 1, 5, 10, 100, 100, 200, 5e9]);
});

test('quantiles lie in their class', () => {
  assert.equal(quantile([], 0.5), null);
  assert.equal(quantile([0, 0], 0.5), null);
  assert.equal(quantile([0, 0, 10], 0.5), 3000); // half of 2 to 4 µs
  assert.equal(quantile([0, 10, 0, 1], 0.99) > 4000, true);
  assert.equal(quantile([10], 1), 1000);
});

const figures = (at, count, under, engine = {}) => ({at, operations: [{verb: 'get', kind: 'read', count, documents: count, failed: 0, under}],
  stats: {engine: {commits: 0, logSyncs: 0, logSyncNs: 0, cacheHits: 0, cacheMisses: 0, writtenBytes: 0, stallNs: 0, diskBytes: 5, logBytes: 1, cacheBytes: 2, memTableBytes: 3, debtBytes: 0, readDepth: 1, ...engine}}});

test('rates are differences a second', () => {
  const before = figures('2026-11-22T10:00:00.0000000Z', 10, [10, 0, 0]);
  const after = figures('2026-11-22T10:00:02.0000000Z', 30, [10, 0, 20], {commits: 8, logSyncs: 4, logSyncNs: 4e6, cacheHits: 3, cacheMisses: 1});
  const r = rates(before, after);
  assert.equal(r.reads, 10);
  assert.equal(r.readHalf, 3000);
  assert.equal(r.writes, 0);
  assert.equal(r.writeHalf, null);
  assert.equal(r.commits, 4);
  assert.equal(r.sync, 1e6);
  assert.equal(r.hits, 75);
  assert.equal(rates(after, before), null);
  assert.equal(rates(after, figures('2026-11-22T10:00:03Z', 1, [1, 0, 0])), null, 'the server began anew');
});

test('paths have gaps, and single points can be seen', () => {
  assert.equal(path([1, 2, null, 3], (i) => i, (v) => v), 'M0.0 1.0L1.0 2.0M3.0 3.0L3.5 3.0');
  assert.equal(path([null], (i) => i, (v) => v), '');
});

test('what is described are the numbers', () => {
  assert.equal(describe('Reads', [1, null, 3], String), 'Reads: now 3, least 1, most 3.');
  assert.equal(describe('Reads', [null], String), 'Reads: nothing yet.');
});

test('parts fill their bar, small ones can be seen, and numbers beyond 2^53 count', () => {
  assert.deepEqual(widths([1, 1], 2), [500, 500]);
  assert.deepEqual(widths([0, 1], 0), [0, 0]);
  const [a, b] = widths([9007199254740993n, 1], 9007199254740994n);
  assert.equal(a + b <= 1000.001 && b >= 5.9, true);
});
