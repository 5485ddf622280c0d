import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Rows, shown} from '../assets/rows.js';

// server answers pages of n rows as GET {J}/rows does.
function server(n) {
  const all = Array.from({length: n}, (_, i) => ({id: String(i).padStart(6, '0')}));
  return async ({after, from, at, reverse, pageSize}) => {
    let list = all, about;
    if (at !== undefined) from = all[Math.min(n - 1, Math.floor(Number(at) * n))].id;
    if (from !== undefined) { list = all.filter(({id}) => reverse ? id <= from : id >= from); about = list.length > 0 ? all.indexOf(list[0]) / n : undefined; }
    if (after !== undefined) list = all.filter(({id}) => reverse ? id < after : id > after);
    if (reverse) list = [...list].reverse();
    const rows = list.slice(0, pageSize);
    return {rows, about, next: list.length > pageSize ? rows.at(-1).id : undefined};
  };
}

// consistent checks that the rows follow one another, and that an exact number is the right one.
function consistent(w) {
  for (let i = 1; i < w.rows.length; i++) assert.equal(Number(w.rows[i].id), Number(w.rows[i - 1].id) + 1, 'a gap or a repetition');
  if (w.exact) assert.equal(w.first, Number(w.rows[0].id));
}

test('a window that goes on for 10,000 rows and back keeps its size', async () => {
  const n = 12_345;
  const w = new Rows(server(n), {pageSize: 100, most: 600, total: () => n});
  await w.start();
  let largest = 0;
  while (!w.atEnd) { await w.more('down'); consistent(w); largest = Math.max(largest, w.rows.length); }
  assert.equal(w.rows.at(-1).id, '012344');
  while (!w.atStart) { await w.more('up'); consistent(w); largest = Math.max(largest, w.rows.length); }
  assert.equal(w.rows[0].id, '000000');
  assert.equal(largest, 600);
  assert.equal(w.exact, true);
});

test('the end comes by walking backwards, with its numbers', async () => {
  const w = new Rows(server(1000), {pageSize: 100, total: () => 1000});
  await w.end();
  consistent(w);
  assert.deepEqual([w.first, w.exact, w.atEnd, w.atStart, w.rows.length], [900, true, true, false, 100]);
  await w.more('up');
  consistent(w);
  assert.equal(w.first, 800);
});

test('the end of what nobody has counted has no numbers, until the window reaches the start', async () => {
  const w = new Rows(server(150), {pageSize: 100});
  await w.end();
  assert.equal(w.exact, false);
  await w.more('up');
  consistent(w);
  assert.deepEqual([w.first, w.exact], [0, true]);
});

test('a place has rows above and below, and its number is a guess', async () => {
  const w = new Rows(server(1000), {pageSize: 100, total: () => 1000});
  assert.equal(await w.place({from: '000500'}), 100);
  consistent(w);
  assert.deepEqual([w.rows[100].id, w.exact, w.first, w.atStart, w.atEnd], ['000500', false, 400, false, false]);
  while (!w.atStart) await w.more('up');
  assert.deepEqual([w.first, w.exact], [0, true]);
  assert.equal(await w.place({from: 'x'}), 99); // behind the last
  assert.equal(w.atEnd, true);
  assert.equal(await w.place({at: '0.0000'}), 0);
  assert.equal(w.rows[0].id, '000000');
});

test('pages go on by the cursors of rows that have them', async () => {
  const asked = [];
  const w = new Rows(async ({after, reverse}) => {
    asked.push([after, reverse]);
    return {rows: after === undefined ? [{id: 'b', cursor: '7'}, {id: 'a', cursor: '5'}] : [{id: 'c', cursor: '3'}], next: after === undefined ? '5' : undefined};
  });
  await w.start();
  await w.more('down');
  await w.place({at: '0.5'});
  assert.deepEqual(asked, [[undefined, undefined], ['5', false], [undefined, undefined], ['7', true]]);
});

test('an empty list has both ends', async () => {
  const w = new Rows(async () => ({rows: []}), {total: () => 0});
  await w.start();
  assert.deepEqual([w.rows.length, w.atStart, w.atEnd], [0, true, true]);
  assert.equal(await w.more('down'), false);
  assert.equal(await w.place({from: 'x'}), 0);
});

test('a reply that comes after another place was opened is dropped', async () => {
  const answer = server(1000);
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  let hold = false;
  const w = new Rows(async (where) => { if (hold) { hold = false; await held; } return answer(where); }, {pageSize: 100, total: () => 1000});
  await w.start();
  hold = true;
  const late = w.more('down');
  await w.end();
  release();
  assert.equal(await late, false);
  consistent(w);
  assert.equal(w.first, 900);
});

test('a place that another one has overtaken has no number', async () => {
  const answer = server(1000);
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  const w = new Rows(async (where) => { if (where.from === '000500') await held; return answer(where); }, {pageSize: 100, total: () => 1000});
  const late = w.place({from: '000500'});
  assert.equal(await w.place({from: '000020'}), 20);
  release();
  assert.equal(await late, null);
  assert.equal(w.rows[20].id, '000020');
});

test('values are shown as they are stored', () => {
  assert.deepEqual(shown('9007199254740993'), {text: '9007199254740993', kind: 'number'});
  assert.deepEqual(shown('1.10'), {text: '1.10', kind: 'number'});
  assert.deepEqual(shown('-1e400'), {text: '-1e400', kind: 'number'});
  assert.deepEqual(shown('"\\u00e9 \\"<b>"'), {text: 'é "<b>', kind: 'text'});
  assert.deepEqual(shown('"a \\"cut\\" te…'), {text: 'a "cut" te…', kind: 'text'});
  assert.deepEqual(shown('{"n":1.0}'), {text: '{"n":1.0}', kind: 'tree'});
  assert.deepEqual(shown('null'), {text: 'null', kind: 'word'});
  assert.deepEqual(shown(null), {text: '', kind: 'none'});
  assert.deepEqual(shown('"ends with …"'), {text: 'ends with …', kind: 'text'});
});
