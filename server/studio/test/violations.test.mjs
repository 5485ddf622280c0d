import assert from 'node:assert/strict';
import {test} from 'node:test';
import * as json from '../assets/json.js';
import {placeOf} from '../assets/violations.js';

const text = '{"a": 1.10, "b/c~": {"d": [true, {"e": null}]}, "": "x", "0": [[]]}';
const placed = (pointer) => {
  const {start, end} = placeOf(json.parse(text), pointer);
  return text.slice(start, end);
};

test('a violation is at its value, at the name of what has parts, or at what would contain it', () => {
  for (const [pointer, want] of [['', '{'], ['/a', '1.10'], ['/b~1c~0', '"b/c~"'], ['/b~1c~0/d', '"d"'], ['/b~1c~0/d/0', 'true'], ['/b~1c~0/d/1', '{'], ['/b~1c~0/d/1/e', 'null'],
    ['/', '"x"'], ['/0/0', '['], ['/none', '{'], ['/a/none/0', '1.10'], ['/b~1c~0/none', '"b/c~"'], ['/b~1c~0/d/7', '"d"']]) {
    assert.equal(placed(pointer), want, pointer);
  }
});
