import test from 'node:test';
import assert from 'node:assert/strict';
import * as rql from '../assets/rql.js';

const known = {
  collections: [{name: 'Orders', documents: 12408}, {name: 'OrderLines'}, {name: 'My things'}],
  fields: [{path: 'Company', types: ['string']}, {path: 'Total', types: ['number']}, {path: 'ShipTo.City', types: ['string']}],
  indexes: [{name: 'Company', collection: 'Orders'}],
};

// at completes a query in which | is the caret.
function at(text) {
  const caret = text.indexOf('|');
  const whole = text.replace('|', '');
  const found = rql.completions(whole, caret, known);
  return {...found, texts: found.items.map((i) => i.text), apply: (i) => whole.slice(0, found.start) + found.items[i].text + whole.slice(found.end)};
}

test('parts to colour', () => {
  const text = "from Orders as o // all\nwhere o.Total >= $least and startsWith(Company, 'it''s') order by count()";
  assert.deepEqual(rql.tokens(text).filter((t) => t[2] !== 'mark').map(([s, e, kind]) => `${text.slice(s, e)} ${kind}`), [
    'from word', 'Orders name', 'as word', 'o name', '// all comment', 'where word', 'o name', 'Total name', '$least parameter', 'and word', 'startsWith function', 'Company name',
    "'it''s' string", 'order word', 'by word', 'count function']);
});

test('a text without an end is a string up to the end', () => {
  assert.deepEqual(rql.tokens("from 'My").pop(), [5, 8, 'string']);
});

test('completion follows the grammar', () => {
  assert.deepEqual(at('|').texts, ['from']);
  assert.deepEqual(at('fr|').texts, ['from']);
  assert.deepEqual(at('from |').texts, ['Orders', 'OrderLines', "'My things'", '@all_docs']);
  assert.deepEqual(at('from Or|').texts, ['Orders', 'OrderLines']);
  assert.deepEqual(at("from 'My|").texts, ["'My things'"]);
  assert.deepEqual(at('from Orders |').texts.slice(0, 5), ['as', 'use index', 'use no index', 'group by', 'where']);
  assert.deepEqual(at('from Orders use index |').texts, ["'Company'"]);
  assert.deepEqual(at('from Orders use |').texts, ['index', 'no index']);
  assert.deepEqual(at('from Orders use no |').texts, ['index']);
  assert.deepEqual(at('from Orders use no index |').texts.slice(0, 2), ['group by', 'where']);
  assert.ok(at('from Orders where |').texts.includes('ShipTo.City'));
  assert.deepEqual(at('from Orders where Ship|').texts, ['ShipTo.City']);
  assert.deepEqual(at('from Orders where City|').texts, ['ShipTo.City']);
  assert.deepEqual(at('from Orders where luc|').texts, ['lucene(']);
  assert.deepEqual(at('from Orders as o where o.To|').texts, ['o.Total']);
  assert.ok(at("from Orders where Company = 'x' |").texts.includes('and'));
  assert.ok(at("from Orders where Company = 'x' |").texts.includes('order by'));
  assert.ok(!at("from Orders where Company = 'x' |").texts.includes('in'));
  assert.ok(at('from Orders where Company |').texts.includes('in'));
  assert.deepEqual(at('from Orders order |').texts, ['by']);
  assert.ok(at('from Orders order by |').texts.includes('Total'));
  assert.ok(at('from Orders order by Total |').texts.includes('desc'));
  assert.ok(at('from Orders order by Total desc |').texts.includes('limit'));
  assert.ok(at('from Orders select |').texts.includes('distinct'));
  assert.deepEqual(at('from Orders where Total > $a and Total < $|').texts, ['$a']);
  assert.deepEqual(at('from Orders // wh|').texts, []);
  assert.deepEqual(at("from Orders where Company = 'Or|").texts, []);
});

test('functions of places and vectors are completed where they can stand', () => {
  assert.deepEqual(at('from Orders where spatial.|').texts, ['spatial.within(', 'spatial.intersects(', 'spatial.disjoint(', 'spatial.contains(', 'spatial.distance(']);
  assert.deepEqual(at('from Orders where vector.s|').texts, ['vector.search(']);
  assert.deepEqual(at('from Orders where spatial.within(spatial.p|').texts, ['spatial.point(']);
  assert.deepEqual(at('from Orders where spatial.within(spatial.point(Lat, Lng), spatial.|').texts, ['spatial.circle(', 'spatial.box(', 'spatial.point(', 'spatial.wkt(']);
  assert.deepEqual(at('from Orders where vector.search(embedding.|').texts, ['embedding.f32_i8(', 'embedding.f32_i1(', 'embedding.i8(', 'embedding.i1(']);
  assert.deepEqual(at('from Orders where vector.search(embedding.i8(E), vector.|').texts, []);
  assert.deepEqual(at('from Orders where spatial.within(At, spatial.circle(5, 1, 2)) and vector.|').texts, ['vector.search(', 'vector.distance(']);
  assert.deepEqual(at('from Orders order by vector.|').texts, ['vector.distance(']);
  assert.deepEqual(at('from Orders order by rank|').texts, ['rank.fuse(']);
  assert.deepEqual(at('from Orders order by rank.fuse(sco|').texts, ['score()']);
  assert.deepEqual(at('from Orders order by Total, ran|').texts, []);
  assert.deepEqual(at('from Orders order by spatial.distance(At, spatial.|').texts, ['spatial.point(', 'spatial.wkt(']);
  assert.deepEqual(at('from Orders select Total, spa|').texts, ['spatial.distance(']);
  assert.ok(rql.grouped('from Orders order by rank.fuse(score(), Total)'));
  assert.ok(!rql.grouped('from Orders order by rank.fuse'));
});

test('computed indexes are completed, and the members of what they give', () => {
  const computed = [{name: "Sales/By day", maps: [{collection: 'Orders', select: [{name: 'Day'}, {name: 'N'}]}], reduce: {groupBy: ['Day'], select: [{name: 'Day'}, {name: 'The sum', expression: 'sum(N)'}]}}, {name: 'Plain', maps: [{collection: 'Orders', select: [{name: 'Total'}]}]}];
  const texts = (text) => rql.completions(text.replace('|', ''), text.indexOf('|'), {...known, computed}).items.map((i) => i.text);
  assert.ok(texts('from |').includes('index'));
  assert.ok(!at('from |').texts.includes('index')); // there is none
  assert.deepEqual(texts('from index |'), ["'Sales/By day'", "'Plain'"]);
  assert.deepEqual(texts("from index 'Sales/By day' where |").slice(0, 2), ['Day', "'The sum'"]);
  assert.deepEqual(texts("from index 'plain' order by To|").slice(0, 1), ['Total']);
  assert.equal(rql.collectionOf("from index 'Plain'"), null);
});

test('a completion replaces the word at the caret', () => {
  assert.equal(at('from Orders where Comp|ny = 1').apply(0), 'from Orders where Company = 1');
  assert.equal(at("from 'My|").apply(0), "from 'My things'");
  assert.equal(at('from Orders as o where o.Sh|').apply(0), 'from Orders as o where o.ShipTo.City');
});

test('what a query reads', () => {
  assert.equal(rql.collectionOf('from Orders where x'), 'Orders');
  assert.equal(rql.collectionOf("from 'It''s' as i"), "It's");
  assert.equal(rql.collectionOf('from @all_docs'), '');
  assert.equal(rql.collectionOf('fro'), null);
  assert.deepEqual(rql.parameters("from A where b = $x and c = '$y' and d in ($x, $é)"), ['x', 'é']);
  assert.equal(rql.aliasOf('from A as a'), 'a');
  assert.ok(rql.grouped('from A group by b select key()'));
  assert.ok(rql.grouped('from A select distinct b'));
  assert.ok(!rql.grouped("from A where b = 'group by' and countries = 1"));
});

test('limits', () => {
  assert.equal(rql.limitOf('from A'), null);
  assert.equal(rql.limitOf("from A where b = 'limit 5'"), null);
  assert.equal(rql.limitOf('from A select b, c limit 1_000 offset 5'), 1000);
  assert.equal(rql.limitOf('from A LIMIT 20, 10'), 10);
  assert.equal(rql.limitOf('from A limit $n'), 0);
  assert.equal(rql.limitOf('from A offset 7'), 0);
});

test('names and values are quoted where they have to be', () => {
  assert.equal(rql.name('Orders'), 'Orders');
  assert.equal(rql.name('order'), "'order'");
  assert.equal(rql.name("it's"), "'it''s'");
  assert.equal(rql.name('@empty'), '@empty');
  assert.equal(rql.literal("a'\\\n"), "'a''\\\\\\n'");
});

test('errors of the server have a place', () => {
  const e = rql.errorOf('query: line 2, column 3: unexpected "oder", expected where');
  assert.deepEqual(e, {line: 2, column: 3, text: 'unexpected "oder", expected where'});
  assert.equal(rql.offsetOf('ab\n😀cd', 2, 2), 5);
  assert.equal(rql.errorOf('something else'), null);
});

test('nothing of RQL is offered in a script, nor after the bracket that closes it', () => {
  const known = {collections: [{name: 'Orders', documents: 1}], fields: [{path: 'N', types: ['number']}], indexes: []};
  for (const text of ['from Orders update { this.x = 1 }', 'from Orders update { this.x = 1 } ', 'from Orders update {\n  this.from = 1; where ', 'from Orders where N = 1 UPDATE { x } wh']) {
    assert.deepEqual(rql.completions(text, text.length, known).items, [], text);
  }
  assert.ok(rql.completions('from Orders where ', 18, known).items.some(({text}) => text === 'N'));
});
