import test from 'node:test';
import assert from 'node:assert/strict';
import {advice, steps, summary} from '../assets/explain.js';

// The words of plans are those of internal/exec and internal/plan in Jay.
test('each step of a plan has its kind and its figures', () => {
  const kinds = (e) => steps({keysExamined: 3, documentsRead: 2, returned: 1, ...e}).map((s) => `${s.kind} ${s.text} ${s.amount ?? '-'}`);
  assert.deepEqual(kinds({plan: ['scan Orders', 'filter: A = 1', 'sort in memory, keeping the first 3']}), ['scan Orders 2', 'filter A = 1 -', 'memory sort in memory, keeping the first 3 -', 'answer 1 answer 1']);
  assert.deepEqual(kinds({plan: ['index "A,-B", one range', 'read documents', 'already in order']}), ['index "A,-B", one range 3', 'read read documents 2', 'ordered already in order -', 'answer 1 answer 1']);
  assert.deepEqual(kinds({plan: ['index "A", all of it', 'answer from entries, read no documents', 'group in memory', 'keep groups: count() > 1']}),
    ['index "A", all of it 3', 'covered answer from entries, read no documents 2', 'memory group in memory -', 'filter count() > 1 -', 'answer 1 answer 1']);
  assert.deepEqual(kinds({plan: ['look up 2 documents by ID']}), ['index look up 2 documents by ID 3', 'answer 1 answer 1']);
  const [union] = steps({plan: ['union of', '   index "A", one range', '   index "B", 2 ranges', 'read documents'], keysExamined: 3, documentsRead: 2, returned: 1});
  assert.deepEqual([union.kind, union.parts], ['index', ['index "A", one range', 'index "B", 2 ranges']]);
  assert.equal(kinds({plan: ['scan Orders', 'expected 9 documents by scan Orders, and not at least 5 keys and 5 documents by index "A", one range']})[1],
    'expected 9 documents by scan Orders, and not at least 5 keys and 5 documents by index "A", one range -');
  assert.equal(kinds({plan: ['something new']})[0], 'other something new -');
});

test('the picture says its figures in words', () => {
  assert.equal(summary({keysExamined: 0, documentsRead: 300000, returned: 3, elapsedNs: 211442000}), '0 index keys examined, 300,000 documents read, 3 answers, 211 ms');
  assert.match(advice({plan: ['scan Orders', 'filter: not A = 1'], keysExamined: 0, documentsRead: 5000, returned: 3}), /reads 5,000 documents for 3 answers/);
  assert.match(advice({plan: ['scan Orders', 'expected 5000 documents by scan Orders, and not more'], keysExamined: 900, documentsRead: 5000, returned: 3}), /less time than an index/);
  assert.match(advice({plan: ['scan Orders, as the query asks'], keysExamined: 0, documentsRead: 5000, returned: 3}), /asks for no index/);
  assert.equal(advice({plan: ['scan Orders'], suggestion: {fields: ['A']}}), null);
});
