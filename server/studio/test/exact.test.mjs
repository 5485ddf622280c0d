import assert from 'node:assert/strict';
import {test} from 'node:test';
import {minus, plus, read, share} from '../assets/exact.js';

test('no digit of a whole number is lost', () => {
  assert.deepEqual(read('{"a":[9007199254740993,-9007199254740993,1.5,1e3,0],"b":{"c":"\\u0041","d":null,"e":true,"f":false}}'),
    {a: [9007199254740993n, -9007199254740993n, 1.5, 1000, 0], b: {c: 'A', d: null, e: true, f: false}});
  assert.equal(read('9223372036854775807'), 9223372036854775807n);
  assert.equal(read('9007199254740991'), 9007199254740991);
});

test('calculations are exact', () => {
  assert.equal(minus(9007199254740993n, 2), 9007199254740991);
  assert.equal(plus(9007199254740991, 2), 9007199254740993n);
  assert.equal(share(1, 4), 0.25);
  assert.equal(share(5, 0), 0);
  assert.equal(share(9223372036854775807n, 9223372036854775807n), 1);
});
