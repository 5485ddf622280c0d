import assert from 'node:assert/strict';
import {test} from 'node:test';
import {jay, may, query, raven} from '../assets/api.js';
import {chord} from '../assets/keys.js';
import {score} from '../assets/palette.js';
import {ago, bytes, count, duration, plural, visible} from '../assets/ui.js';
import {unaccounted} from '../assets/pages/ids.js';

test('paths escape what stands in them', () => {
  assert.equal(jay('a/b', 'rows', {startsWith: 'x&y=+é', none: '', column: ['A', 'B']}), '/jay/v1/databases/a%2Fb/rows?startsWith=x%26y%3D%2B%C3%A9&column=A&column=B');
  assert.equal(raven('shop', 'docs', {id: 'a b+c'}), '/databases/shop/docs?id=a%20b%2Bc'); // in a PUT a plus sign is one
  assert.equal(query({}), '');
});

test('rights are the larger of those of the database and of all', () => {
  assert.equal(may({'*': 'admin'}, '', 'admin'), true);
  assert.equal(may({'*': 'read', shop: 'write'}, 'Shop', 'write'), true);
  assert.equal(may({'*': 'write', shop: 'read'}, 'shop', 'write'), true);
  assert.equal(may({shop: 'write'}, 'other', 'read'), false);
  assert.equal(may({shop: 'write'}, 'shop', 'admin'), false);
  assert.equal(may(undefined, 'shop', 'read'), false);
});

test('a key is written as its event is pressed', () => {
  const press = (key, more) => chord({key, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...more});
  assert.equal(press('S', {metaKey: true}), 'ctrl+s');
  assert.equal(press('?', {shiftKey: true}), '?');
  assert.equal(press('Enter', {ctrlKey: true}), 'ctrl+enter');
  assert.equal(press('Enter', {ctrlKey: true, shiftKey: true}), 'ctrl+shift+enter');
  assert.equal(press('Tab', {shiftKey: true}), 'shift+tab');
  assert.equal(press(' '), 'space');
});

test('the palette finds commands by letters in their order, the beginnings of words first', () => {
  assert.equal(score('New document', 'xyz'), 0);
  assert.ok(score('New document', 'nd') > score('End', 'nd'));
  assert.ok(score('Indexes', 'ind') > score('Find something', 'ind'));
  assert.ok(score('anything', '') > 0);
});

test('numbers, sizes and times', () => {
  assert.equal(count(12408), '12,408');
  assert.equal(count(9007199254740993n), '9,007,199,254,740,993');
  assert.equal(plural(1, 'document'), '1 document');
  assert.equal(plural(0, 'document'), '0 documents');
  assert.equal(bytes(999), '999 B');
  assert.equal(bytes(4_100_000), '4.1 MB');
  assert.equal(duration(900_000), '900 µs');
  assert.equal(duration(2_100_000_000), '2.1 s');
  const now = Date.parse('2026-11-22T12:00:00Z');
  assert.equal(ago(new Date('2026-11-22T11:58:00Z'), now), '2 min ago');
  assert.equal(ago(new Date('2026-11-22T11:59:58Z'), now), 'now');
  assert.equal(ago(new Date('2025-11-01T00:00:00Z'), now), 'last yr');
});

test('a text that would be shown in another order shows its marks', () => {
  assert.equal(visible('bidi/\u202egpj.exe\u202c'), 'bidi/\\u202egpj.exe\\u202c');
  assert.equal(visible('a\u0007b\u009bc'), 'a\\u0007b\\u009bc');
  assert.equal(visible('Größe\tא日本🙂\n'), 'Größe\tא日本🙂\n');
});

test('numbers without a reason are not nothing to worry about', () => {
  const report = (hilo, unused, deleted) => ({hilo: [{unaccounted: hilo}], identities: [{unused, deleted}]});
  assert.equal(unaccounted(report(0, 5, 5)), false);
  assert.equal(unaccounted(report(50000, 0, 0)), true);
  assert.equal(unaccounted(report(0, 5, 4)), true);
});
