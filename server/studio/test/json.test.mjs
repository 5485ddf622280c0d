// Run by node --test. The random cases print their seed; JAY_SEED repeats one.

import test from 'node:test';
import assert from 'node:assert/strict';
import * as json from '../assets/json.js';

const SEED = Number(process.env.JAY_SEED ?? 20261122);

// random is a small generator (mulberry32), so that a failure can be repeated.
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const SCALARS = ['0', '-0', '1', '1.10', '1e400', '-1E-7', '1e+2', '9007199254740993', '0.1000000000000000055511151231257827', 'true', 'false', 'null', '""',
  '"\\ud800"', '"\\u0000"', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"é😀"', '"</script><script>alert(1)</script>"', '"\u2028"', '"{[,:]}"'];
const NAMES = ['"a"', '"a"', '"b"', '""', '"__proto__"', '"constructor"', '"\\u0061"', '"a b"', '"é"', '"1"'];

// make makes a text that is valid, with white space of all kinds.
function make(rnd, depth) {
  const pick = (list) => list[Math.floor(rnd() * list.length)];
  const space = () => pick(['', '', '', ' ', '\n', '\t', '\r\n', '  \n ']);
  const r = rnd();
  if (depth === 0 || r < 0.4) return pick(SCALARS);
  const n = Math.floor(rnd() * 5);
  const parts = Array.from({length: n}, () => (r < 0.7 ? `${space()}${pick(NAMES)}${space()}:` : '') + space() + make(rnd, depth - 1) + space());
  return r < 0.7 ? `{${parts.join(',') || space()}}` : `[${parts.join(',') || space()}]`;
}

// bare returns the text without white space outside strings, by another way than json.js.
function bare(text) {
  return text.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (m) => (m[0] === '"' ? m : ''));
}

test('every literal stays as it is', () => {
  for (const scalar of SCALARS) {
    const text = `{"v": ${scalar} }`;
    assert.equal(json.raw(text, json.at(json.parse(text), 'v')), scalar);
    assert.equal(json.minify(text), `{"v":${scalar}}`);
    assert.equal(json.format(text), `{\n  "v": ${scalar}\n}`);
  }
});

test('repeated names stay, and the last one is the value', () => {
  const text = '{"a":1,"a":2.0,"\\u0061":3}';
  const root = json.parse(text);
  assert.equal(root.members.length, 3);
  assert.equal(json.raw(text, json.member(root, 'a')), '3');
  assert.deepEqual(json.duplicates(root).map((m) => text.slice(m.nameStart, m.nameEnd)), ['"a"', '"\\u0061"']);
  assert.equal(json.minify(json.format(text)), text);
});

test('names of prototypes are names', () => {
  const text = '{"__proto__":{"x":1},"constructor":2}';
  assert.equal(json.raw(text, json.at(json.parse(text), '__proto__', 'x')), '1');
  assert.equal(json.member(json.parse('{}'), 'toString'), null);
});

test('format changes white space only, and looks as JSON.stringify does', () => {
  for (const text of ['{}', '[]', '[[],{}]', '{"a":[1,2,{"b":[]}],"c":"d"}', '1', '"x"', ' null ']) {
    assert.equal(json.format(text), JSON.stringify(JSON.parse(text), null, 2));
    assert.equal(json.minify(text), JSON.stringify(JSON.parse(text)));
  }
});

test(`random texts come through without a change (seed ${SEED})`, () => {
  const rnd = random(SEED);
  for (let i = 0; i < 3000; i++) {
    const text = make(rnd, 5);
    JSON.parse(text); // valid, as another parser says
    const laid = json.format(text);
    assert.equal(bare(laid), bare(text));
    assert.equal(json.minify(laid), bare(text));
    assert.equal(json.format(laid), laid);
    const root = json.parse(text);
    json.each(root, (node) => { // each node is a value, of the kind that another parser finds in its text
      const value = JSON.parse(json.raw(text, node));
      const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value === 'boolean' ? String(value) : typeof value;
      assert.equal(node.kind, kind);
    });
  }
});

test(`damaged texts are refused exactly when JSON.parse refuses them (seed ${SEED})`, () => {
  const rnd = random(SEED + 1);
  const pieces = ['{', '}', '[', ']', ',', ':', '"', '\\', '0', '1', '.', 'e', '-', '+', 'true', 'null', ' ', '\n', '\u0001', '\u00a0', '\ufeff', "'", '//', 'u', 'x'];
  let refused = 0;
  for (let i = 0; i < 20_000; i++) {
    let text = make(rnd, 3);
    for (let n = 1 + Math.floor(rnd() * 2); n > 0; n--) {
      const at = Math.floor(rnd() * (text.length + 1));
      const cut = Math.floor(rnd() * 3);
      text = text.slice(0, at) + (rnd() < 0.7 ? pieces[Math.floor(rnd() * pieces.length)] : '') + text.slice(at + cut);
    }
    if (text.startsWith('\ufeff')) continue; // a mark of the byte order, which is let through
    let valid = true;
    try {
      JSON.parse(text);
    } catch {
      valid = false;
    }
    const error = json.check(text);
    assert.equal(error === null, valid, `${JSON.stringify(text)}: ${error}`);
    if (error !== null) {
      refused++;
      assert.ok(error.offset >= 0 && error.offset <= text.length, `${JSON.stringify(text)}: offset ${error.offset}`);
      assert.match(error.message, /^line \d+, column \d+: (expected|at most) /);
    }
  }
  assert.ok(refused > 5000, `only ${refused} texts were damaged`);
});

test('errors name the line, the column and what was expected', () => {
  for (const [text, want] of [
    ['', 'line 1, column 1: expected a value, but there is the end'],
    ['{', 'line 1, column 2: expected a name in double quotes or }, but there is the end'],
    ['{"a"', 'line 1, column 5: expected :, but there is the end'],
    ['{"a" 1}', 'line 1, column 6: expected : after the name "a", but there is 1'],
    ['{\n  "Total": 19.990,\n  "x": }', 'line 3, column 8: expected a value, but there is }'],
    ['{"a":1,}', 'line 1, column 8: expected a name after the comma, but there is }'],
    ['[1,]', 'line 1, column 4: expected a value after the comma, but there is ]'],
    ['[1 2]', 'line 1, column 4: expected , or ], but there is 2'],
    ['{"a":1 "b":2}', 'line 1, column 8: expected , or }, but there is "b"'],
    ["{'a':1}", "line 1, column 2: expected double quotes around a name, but there is '"],
    ['{a:1}', 'line 1, column 2: expected a name in double quotes or }, but there is a'],
    ['[True]', 'line 1, column 2: expected true, but there is True'],
    ['[NaN]', 'line 1, column 2: expected a value, but there is NaN, which JSON does not have'],
    ['[-Infinity]', 'line 1, column 2: expected a value, but there is -Infinity, which JSON does not have'],
    ['[01]', 'line 1, column 2: expected a number without zeros in front, but there is 01'],
    ['[1.]', 'line 1, column 4: expected a digit after the decimal point, but there is ]'],
    ['[1.5.2]', 'line 1, column 2: expected a number, but there is 1.5.2'],
    ['[1e]', 'line 1, column 4: expected a digit of the exponent, but there is ]'],
    ['[-]', 'line 1, column 3: expected a digit after -, but there is ]'],
    ['[12px]', 'line 1, column 2: expected a number, but there is 12px'],
    ['["a\nb"]', 'line 1, column 4: expected " at the end of the text, but there is the end of the line'],
    ['["\\x"]', 'line 1, column 3: expected one of the escapes \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u, but there is \\x'],
    ['["\\u12g4"]', 'line 1, column 7: expected four hex digits after \\u, but there is g4'],
    ['["a\tb"]', 'line 1, column 4: expected an escape such as \\t or \\u0009, but there is the control character U+0009'],
    ['["😀" x]', 'line 1, column 6: expected , or ], but there is x'],
    ['// x\n1', 'line 1, column 1: expected a value, but there is a comment, which JSON does not have'],
    ['1 2', 'line 1, column 3: expected the end, but there is 2'],
    ['[1\u00a0]', 'line 1, column 3: expected , or ], but there is the character U+00A0'],
    ['["abc', 'line 1, column 6: expected " at the end of the text, but there is the end'],
  ]) {
    assert.equal(json.check(text)?.message, want, text);
  }
});

test('nesting is bounded, and costs no stack', () => {
  const deep = (n) => '['.repeat(n) + ']'.repeat(n);
  assert.equal(json.check(deep(json.MAX_DEPTH)), null);
  assert.match(json.check(deep(json.MAX_DEPTH + 1)).message, /at most 10000 levels/);
  assert.equal(json.minify(json.format(deep(1000))), deep(1000));
  assert.match(json.check('['.repeat(200_000)).message, /at most 10000 levels/);
});

test('paths', () => {
  const text = '{"Lines":[{"Product":"p/1"},{"a b":{"it\'s":1}}],"Total":1}';
  const root = json.parse(text);
  assert.equal(json.pathAt(root, text.indexOf('p/1')), 'Lines[0].Product');
  assert.equal(json.pathAt(root, text.indexOf('it\'s')), "Lines[1].'a b'.'it''s'");
  assert.equal(json.pathAt(root, text.indexOf('"Total"')), 'Total');
  assert.equal(json.pathAt(root, 0), '');
});

test('parts to colour', () => {
  const kinds = (line) => json.tokens(line).map(([s, e, kind]) => `${line.slice(s, e)} ${kind}`);
  assert.deepEqual(kinds('  "a" : -1.10, "b\\"": ['), ['"a" name', ': mark', '-1.10 number', ', mark', '"b\\"" name', ': mark', '[ mark']);
  assert.deepEqual(kinds('"x", true, nul, 01, "open\\"'), ['"x" string', ', mark', 'true word', ', mark', 'nul bad', ', mark', '01 bad', ', mark', '"open\\" bad']);
  const rnd = random(SEED + 2);
  for (let i = 0; i < 500; i++) { // every character that is not white space belongs to a part, for valid texts none is bad
    for (const line of json.format(make(rnd, 4)).split('\n')) {
      let at = 0;
      for (const [start, end, kind] of json.tokens(line)) {
        assert.equal(line.slice(at, start).trim(), '', line);
        assert.notEqual(kind, 'bad', line);
        at = end;
      }
      assert.equal(line.slice(at).trim(), '', line);
    }
  }
});

test('values compare by their spelling, and not by white space', () => {
  const same = (a, b) => json.same(json.parse(a), a, json.parse(b), b);
  assert.ok(same('{"a": [1, 2]}', '{"a":[1,2]}'));
  assert.ok(!same('1.10', '1.1'));
  assert.ok(!same('9007199254740993', '9007199254740992'));
  assert.ok(!same('"\\u0061"', '"a"'));
});

test('a document of a megabyte is read in a moment', () => {
  const lines = Array.from({length: 8000}, (_, i) => `{"Product":"products/${i}-A","Quantity":${i},"Price":${i}.10,"Tags":["a","b\\n"],"Note":"${'x'.repeat(40)}"}`);
  const text = `{"Lines":[${lines.join(',')}]}`;
  assert.ok(text.length > 900_000);
  const start = performance.now();
  const laid = json.format(text);
  const took = performance.now() - start;
  assert.equal(json.minify(laid), text);
  if (process.env.JAY_TIMES) console.log(`format of ${text.length} characters: ${took.toFixed(0)} ms`);
});
