import test from 'node:test';
import assert from 'node:assert/strict';
import * as document from '../assets/document.js';
import * as json from '../assets/json.js';

const same = (text, want) => assert.equal(json.minify(text), want);

test('what the server makes is no part of the text that is edited', () => {
  const row = '{"id":"a/1","collection":"As","changeVector":"A:7-x","bytes":12,"references":["b/1"],"document":{"N":9007199254740993,"P":1.10,"N":-0,' +
    '"@metadata":{"@collection":"As","Note":1.0,"@expires":"2030-01-01T00:00:00Z","@change-vector":"A:7-x","@id":"a/1","@last-modified":"x","@flags":"HasRevisions","@attachments":[{"Size":1}]}}}';
  const doc = document.read(row);
  same(doc.text, '{"N":9007199254740993,"P":1.10,"N":-0,"@metadata":{"@collection":"As","Note":1.0,"@expires":"2030-01-01T00:00:00Z"}}');
  assert.equal(doc.expires, '2030-01-01T00:00:00Z');
  assert.deepEqual([doc.id, doc.changeVector, doc.bytes, doc.references], ['a/1', 'A:7-x', 12, ['b/1']]);
  same(document.read('{"id":"a","document":{"@metadata":{"@id":"a"}}}').text, '{}');
});

test('a text that is no document says why', () => {
  assert.equal(document.problem('{"a":1}'), null);
  assert.equal(document.problem('{"a":1,"@metadata":{}}'), null);
  assert.match(document.problem('[1]').message, /line 1, column 1: expected a document, which is an object/);
  assert.match(document.problem('{"@metadata":[]}').message, /column 14: expected an object for @metadata/);
  assert.match(document.problem('{').message, /expected a name/);
});

test('a collection is put in, changed and taken out, and nothing else changes', () => {
  const with_ = (text, name) => document.withCollection(text, name);
  for (const [text, name, want] of [
    ['{}', 'Users', '{"@metadata":{"@collection":"Users"}}'],
    ['{"P":1.10}', 'It\'s "x"', '{"P":1.10,"@metadata":{"@collection":"It\'s \\"x\\""}}'],
    ['{"P":1.10,"@metadata":{}}', 'Users', '{"P":1.10,"@metadata":{"@collection":"Users"}}'],
    ['{"P":1.10,"@metadata":{"A":1.0}}', 'Users', '{"P":1.10,"@metadata":{"@collection":"Users","A":1.0}}'],
    ['{"@metadata":{"@collection":"Old","A":1.0},"P":1.10}', 'Users', '{"@metadata":{"@collection":"Users","A":1.0},"P":1.10}'],
    ['{"P":1.10,"@metadata":{"@collection":"Old","A":1.0}}', '', '{"P":1.10,"@metadata":{"A":1.0}}'],
    ['{"P":1.10,"@metadata":{"@collection":"Old"}}', '', '{"P":1.10}'],
    ['{"P":1.10}', '', '{"P":1.10}'],
  ]) {
    same(with_(text, name), want);
    same(with_(json.format(text), name), want);
    assert.equal(document.collectionOf(with_(text, name)), name);
  }
  assert.equal(document.collectionOf('{"@metadata":{"@collection":"A'), '');
});

test('the place of a refusal is that of its byte', () => {
  const text = '{\n  "é": "é😀",\n  "Lone": "x\\ud800"\n}';
  const byte = new TextEncoder().encode(text.slice(0, text.indexOf('\\ud800'))).length;
  const found = document.refusal({message: `put "a": invalid document: surrogates must come in pairs (byte ${byte})`}, text);
  assert.deepEqual([found.offset, found.line, found.column], [text.indexOf('\\ud800'), 3, 13]);
  assert.equal(document.refusal({message: 'something else'}, text), null);
});
