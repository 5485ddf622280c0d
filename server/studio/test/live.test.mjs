import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Members} from '../assets/live.js';

const event = (type, id, version, more = '') => `{"changeVector":"${version}","etag":"1","id":"${id}","type":"${type}"${more}}`;
const said = (happened) => happened.map((one) => `${one.kind} ${one.id}`).join(', ');

test('answers enter, change and leave, and keep their digits', () => {
  const m = new Members();
  assert.equal(said(m.take([event('enter', 'a/1', 'A:1', ',"document":{"n":1.10}'), event('enter', 'a/2', 'A:2', ',"row":{"n":2}')])), 'enter a/1, enter a/2');
  assert.equal(m.rows.get('a/1').text.slice(m.rows.get('a/1').value.start, m.rows.get('a/1').value.end), '{"n":1.10}');
  assert.equal(said(m.take([event('change', 'A/1', 'A:3', ',"document":{}'), event('leave', 'a/2', 'A:4')])), 'change A/1, leave a/2');
  assert.deepEqual([...m.rows.values()].map((row) => row.id), ['A/1']);
});

test('what is told again after a break changes nothing, and what was never there does not leave', () => {
  const m = new Members();
  m.take([event('enter', 'a/1', 'A:1', ',"document":{}'), event('enter', 'a/2', 'A:2', ',"document":{}')]);
  assert.equal(said(m.take([event('enter', 'a/1', 'A:1', ',"document":{}'), event('enter', 'a/2', 'A:5', ',"document":{}'), event('leave', 'b/1', 'A:6')])), 'change a/2');
});

test('more answers than are followed are noticed', () => {
  const m = new Members(2);
  m.take(['1', '2'].map((n) => event('enter', `a/${n}`, `A:${n}`, ',"document":{}')));
  assert.equal(m.over, false);
  m.take([event('enter', 'a/3', 'A:3', ',"document":{}')]);
  assert.equal(m.over, true);
});
