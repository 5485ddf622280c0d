import test from 'node:test';
import assert from 'node:assert/strict';
import * as diff from '../assets/diff.js';
import * as json from '../assets/json.js';

const SEED = Number(process.env.JAY_SEED ?? 20261122);

function random(seed) {
  return () => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    return seed / 0x80000000;
  };
}

// check asserts that a comparison has each line once, in order, and that lines that are the same are.
function check(left, right) {
  const a = left.split('\n');
  const b = right.split('\n');
  let i = 0;
  let j = 0;
  let same = 0;
  for (const row of diff.lines(left, right)) {
    if (row.left >= 0) assert.equal(row.left, i++);
    if (row.right >= 0) assert.equal(row.right, j++);
    if (row.kind === 'same') {
      same++;
      assert.equal(a[row.left], b[row.right]);
    }
    assert.equal(row.left >= 0, row.kind !== 'added');
    assert.equal(row.right >= 0, row.kind !== 'removed');
  }
  assert.equal(i, a.length);
  assert.equal(j, b.length);
  return same;
}

// longest returns the length of the longest common subsequence, the slow way.
function longest(a, b) {
  let row = new Array(b.length + 1).fill(0);
  for (const x of a) {
    const next = [0];
    b.forEach((y, j) => next.push(x === y ? row[j] + 1 : Math.max(row[j + 1], next[j])));
    row = next;
  }
  return row[b.length];
}

test(`comparisons are right, and as short as can be (seed ${SEED})`, () => {
  const rnd = random(SEED);
  for (let n = 0; n < 2000; n++) {
    const make = () => Array.from({length: Math.floor(rnd() * 12)}, () => 'abc'[Math.floor(rnd() * 3)]).join('\n');
    const [left, right] = [make(), make()];
    // A changed line pairs a removed and an added one, so that it costs no equal line.
    assert.equal(check(left, right), longest(left.split('\n'), right.split('\n')), JSON.stringify([left, right]));
  }
});

test('a changed line is one row', () => {
  assert.deepEqual(diff.lines('a\nb\nc', 'a\nx\nc').map((r) => r.kind), ['same', 'changed', 'same']);
  assert.deepEqual(diff.lines('a\nc', 'a\nb\nc').map((r) => r.kind), ['same', 'added', 'same']);
  assert.deepEqual(diff.lines('', '').map((r) => r.kind), ['same']);
});

test('two texts that have nothing in common are bounded', () => {
  const make = (c) => Array.from({length: 20_000}, (_, i) => `${c}${i}`).join('\n');
  assert.equal(check(make('a'), make('b')), 0);
});

test('within finds what differs, and splits no character', () => {
  assert.deepEqual(diff.within('"a": 1', '"a": 12'), [6, 6, 7]);
  assert.deepEqual(diff.within('x😀y', 'x😁y'), [1, 3, 3]);
  assert.deepEqual(diff.within('same', 'same'), [4, 4, 4]);
});

test('a merge takes what one writer has changed, and names what both have', () => {
  const base = '{"A":1,"B":[1,2],"C":{"x":1.10,"y":1},"D":0,"E":9007199254740993}';
  const theirs = '{"A":2,"B":[1,3],"C":{"x":1.10,"y":2},"E":9007199254740993,"F":"new"}';
  const yours = '{"A":1,"B":[9,2],"C":{"x":1.100,"y":3},"D":0,"E":9007199254740993,"G":1e400}';
  const got = diff.merge(base, theirs, yours);
  assert.equal(json.minify(got.text), '{"A":2,"B":[9,3],"C":{"x":1.100,"y":3},"E":9007199254740993,"G":1e400,"F":"new"}');
  assert.deepEqual(got.conflicts, [{path: 'C.y', steps: ['C', 'y'], base: '1', theirs: '2', yours: '3'}]);
});

test('a merge of a removed member that the other has changed is a conflict', () => {
  const got = diff.merge('{"A":1}', '{}', '{"A":2}');
  assert.equal(json.minify(got.text), '{"A":2}');
  assert.deepEqual(got.conflicts, [{path: 'A', steps: ['A'], base: '1', theirs: null, yours: '2'}]);
  assert.deepEqual(diff.merge('{"A":1}', '{"A":2}', '{}').conflicts, [{path: 'A', steps: ['A'], base: '1', theirs: '2', yours: null}]);
});

test('arrays of other lengths, and repeated names, are merged as a whole', () => {
  assert.deepEqual(diff.merge('{"L":[1]}', '{"L":[1,2]}', '{"L":[0]}').conflicts.map((c) => c.path), ['L']);
  const got = diff.merge('{"a":1,"a":2}', '{"a":1,"a":2}', '{"a":1,"a":3}');
  assert.equal(json.minify(got.text), '{"a":1,"a":3}');
  assert.equal(got.conflicts.length, 0);
});
