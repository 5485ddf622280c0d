import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Events, Window, follow, live} from '../assets/feed.js';

test('events come whole, however the stream is cut', () => {
  const text = ': live\n\nid: A:1~1\ndata: {"id":"a"}\n\nid: A:2~1\r\ndata: {"id":\r\ndata: "b"}\r\n\r\n: nothing new\n\n';
  for (let size = 1; size < text.length; size++) {
    const got = [], comments = [];
    const events = new Events((e) => got.push(e), undefined, (c) => comments.push(c));
    for (let i = 0; i < text.length; i += size) events.push(text.slice(i, i + size));
    assert.deepEqual(got, [{id: 'A:1~1', data: '{"id":"a"}'}, {id: 'A:2~1', data: '{"id":\n"b"}'}]);
    assert.deepEqual(comments, ['live', 'nothing new']);
  }
});

const stream = (text) => new Response(new Blob([text]).stream(), {status: 200});
const changes = (...ids) => ids.map((id) => `id: t${id}\ndata: {"id":"${id}"}\n\n`).join('');

// served runs follow against replies, one after the other, and returns what it asked for and what came.
async function served(replies, since = 'now') {
  const asked = [], got = [], states = [], end = new AbortController();
  globalThis.fetch = async (path) => {
    asked.push(path);
    const next = replies.shift();
    if (!next) { end.abort(); throw new DOMException('', 'AbortError'); }
    return next();
  };
  await follow('shop', {prefix: 'a/'}, since, {change: (c, token) => got.push(`${c.id} ${token}`), state: (kind) => states.push(kind)}, end.signal, {wait: async () => {}});
  return {asked, got, states};
}

test('a broken feed goes on behind the last change', async () => {
  const {asked, got} = await served([() => stream(changes(1, 2)), () => { throw new TypeError('network'); }, () => stream(changes(3))]);
  assert.deepEqual(got, ['1 t1', '2 t2', '3 t3']);
  assert.deepEqual(asked.map((a) => new URLSearchParams(a.split('?')[1]).get('since')), ['now', 't2', 't2', 't3']);
});

test('a feed that breaks before its first change goes on where it has begun', async () => {
  const {asked, got} = await served([() => stream('id: t5\n\n: live\n\n'), () => stream(changes(6)), () => stream('')]);
  assert.deepEqual(got, ['6 t6']);
  assert.deepEqual(asked.map((a) => new URLSearchParams(a.split('?')[1]).get('since')), ['now', 't5', 't6', 't6']);
  const empty = await served([() => stream('id: \n\n: live\n\n')]);
  assert.deepEqual(empty.asked.map((a) => new URLSearchParams(a.split('?')[1]).get('since')), ['now', '']);
});

test('a feed whose changes are gone ends, and says so', async () => {
  const {states, asked} = await served([() => stream(changes(1)), () => new Response('{"Message":"gone","oldest":"812"}', {status: 410})]);
  assert.equal(states.at(-1), 'gone');
  assert.equal(asked.length, 2);
});

test('a window is bounded, and waits while it is held', () => {
  const w = new Window(3);
  for (const n of [1, 2, 3, 4]) w.add(n);
  assert.deepEqual(w.rows, [4, 3, 2]);
  w.held = true;
  for (const n of [5, 6, 7, 8]) w.add(n);
  assert.deepEqual([w.rows, w.newer, w.waiting.length], [[4, 3, 2], 4, 3]);
  w.release();
  assert.deepEqual([w.rows, w.newer], [[8, 7, 6], 0]);
});

const current = (n) => `id: t${n}\ndata: {"type":"current","etag":"${n}"}\n\n`;
const enters = (...ids) => ids.map((id) => `data: {"type":"enter","id":"${id}"}\n\n`).join('');

test('a live query comes in whole groups, and what a break has cut off is dropped', async () => {
  const asked = [], groups = [], end = new AbortController();
  const replies = [() => stream(enters('a', 'b') + current(1) + enters('c')), () => { throw new TypeError('network'); }, () => stream(enters('c', 'd') + current(2)), () => stream('')];
  globalThis.fetch = async (path) => {
    asked.push(new URLSearchParams(path.split('?')[1]));
    const next = replies.shift();
    if (!next) { end.abort(); throw new DOMException('', 'AbortError'); }
    return next();
  };
  await live('shop', 'from A where n = $n', '{"n":1.10}', {group: (events) => groups.push(events.map((e) => JSON.parse(e).id).join('')), state() {}}, end.signal, {wait: async () => {}});
  assert.deepEqual(groups, ['ab', 'cd']);
  assert.deepEqual(asked.map((a) => a.get('since')), ['', 't1', 't1', 't2', 't2']);
  assert.equal(asked[0].get('query') + asked[0].get('parameters'), 'from A where n = $n{"n":1.10}');
});
