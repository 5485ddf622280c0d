// Run by: node --test server/studio/test/
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {baseOf} from '../assets/base.js';
import {address, match} from '../assets/router.js';

const routes = [{path: '/databases'}, {path: '/db/:db/documents'}, {path: '/db/:db/doc'}];

test('a path finds its route and its parameters', () => {
  assert.equal(match(routes, '/databases').route, routes[0]);
  assert.deepEqual(match(routes, '/db/shop/documents/').params, {db: 'shop'});
  assert.deepEqual(match(routes, '/db/a%2Fb/doc').params, {db: 'a/b'});
  for (const none of ['/', '/db/shop', '/db/shop/documents/x', '/db//doc', '/db/%zz/doc']) assert.equal(match(routes, none), null, none);
});

test('an address is read back as it was written', () => {
  const text = address('/db/:db/doc', {db: 'a/b'}, {id: 'users/1?&#<"é', none: '', missing: undefined});
  const url = new URL(text, 'http://x');
  assert.deepEqual(match(routes, url.pathname.slice('/studio'.length)).params, {db: 'a/b'});
  assert.equal(url.searchParams.get('id'), 'users/1?&#<"é');
  assert.deepEqual([...url.searchParams.keys()], ['id']);
});

test('the address of a module says where the server is', () => {
  const file = '/studio/assets/0123456789abcdef/base.js';
  assert.equal(baseOf('http://x:1' + file), '');
  assert.equal(baseOf('https://x/admin/db' + file), '/admin/db');
  assert.equal(baseOf('https://x/studio/assets/0123456789abcdef' + file), '/studio/assets/0123456789abcdef');
  assert.equal(baseOf('file:///home/ann/server/studio/assets/base.js'), '');
});
