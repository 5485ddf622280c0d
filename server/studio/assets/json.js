// JSON as text, without loss.
//
// JSON.parse makes a float64 of 9007199254740993, 1.1 of 1.10, Infinity of 1e400 and one
// member of two with the same name. A document must keep all of these, so that the studio
// never runs JSON.parse on one. This module reads the text itself: a tree has the offsets of
// each value, and the text at these offsets is the value. What a page changes it changes in the
// text; format and minify change white space only.
//
// The parser is iterative, so that nesting costs no stack, and reports the first error with its
// line, its column and what was expected there.

// MAX_DEPTH bounds the levels of a text. Jay itself refuses a document long before.
export const MAX_DEPTH = 10_000;

// JSONError is the first error of a text. Lines and columns begin with 1; a column counts
// characters, a pair of surrogates as one.
export class JSONError extends Error {
  constructor(text, offset, expected, found) {
    const at = position(text, offset);
    super(`line ${at.line}, column ${at.column}: ${expected}${found ? `, but there is ${found}` : ''}`);
    this.name = 'JSONError';
    this.offset = offset;
    this.line = at.line;
    this.column = at.column;
    this.expected = expected;
    this.found = found;
  }
}

// position returns the line and the column of an offset.
export function position(text, offset) {
  let line = 1;
  let start = 0;
  for (let i = text.indexOf('\n'); i >= 0 && i < offset; i = text.indexOf('\n', start)) {
    line++;
    start = i + 1;
  }
  let column = 1;
  for (let i = start; i < offset; i++) {
    const c = text.charCodeAt(i);
    if (c >= 0xd800 && c < 0xdc00 && i + 1 < offset && isLow(text.charCodeAt(i + 1))) i++;
    column++;
  }
  return {line, column};
}

function isLow(c) {
  return c >= 0xdc00 && c < 0xe000;
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /[\p{L}\p{N}_$@.+-]+/uy;

// States of the parser: what may come next.
const VALUE = 0; // a value
const ITEM = 1; // the first item of an array, or its end
const NAME = 2; // the name of a member
const FIRST = 3; // the first name of an object, or its end
const COLON = 4;
const NEXT = 5; // a comma, or the end of the object or array
const END = 6; // nothing

// parse returns the tree of a text, or throws a JSONError. A node has
//
//   kind         "object", "array", "string", "number", "true", "false" or "null"
//   start, end   offsets of its text
//   members      of an object: {name, nameStart, nameEnd, value}, in the order of the text,
//                repeated names included
//   items        of an array
export function parse(text) {
  const n = text.length;
  const stack = [];
  let top = null;
  let root = null;
  let state = VALUE;
  let member = null;
  let i = text.charCodeAt(0) === 0xfeff ? 1 : 0;

  const add = (node) => {
    if (top === null) {
      root = node;
      state = END;
    } else {
      if (top.kind === 'object') member.value = node;
      else top.items.push(node);
      state = NEXT;
    }
  };
  const open = (node) => {
    if (stack.length === MAX_DEPTH) throw new JSONError(text, node.start, `at most ${MAX_DEPTH} levels`, 'one more');
    add(node);
    stack.push(node);
    top = node;
  };
  const close = () => {
    top.end = i + 1;
    stack.pop();
    top = stack.length > 0 ? stack[stack.length - 1] : null;
    state = top === null ? END : NEXT;
  };

  for (;;) {
    let c = 0;
    while (i < n && ((c = text.charCodeAt(i)) === 32 || c === 10 || c === 13 || c === 9)) i++;
    if (i >= n) {
      if (state === END) return root;
      throw atEnd(text, state, top);
    }
    switch (state) {
      case ITEM:
        if (c === 93) { // ]
          close();
          i++;
          continue;
        }
      // falls through
      case VALUE: {
        if (c === 34) { // "
          const end = stringEnd(text, i);
          add({kind: 'string', start: i, end});
          i = end;
        } else if (c === 123) { // {
          open({kind: 'object', start: i, end: -1, members: []});
          state = FIRST;
          i++;
        } else if (c === 91) { // [
          open({kind: 'array', start: i, end: -1, items: []});
          state = ITEM;
          i++;
        } else if (c === 45 || (c >= 48 && c <= 57)) {
          const end = numberEnd(text, i);
          add({kind: 'number', start: i, end});
          i = end;
        } else {
          const kind = c === 116 ? 'true' : c === 102 ? 'false' : c === 110 ? 'null' : '';
          if (kind === '' || !text.startsWith(kind, i) || isWordAt(text, i + kind.length)) throw noValue(text, i, state, top);
          add({kind, start: i, end: i + kind.length});
          i += kind.length;
        }
        continue;
      }
      case FIRST:
        if (c === 125) {//}
          close();
          i++;
          continue;
        }
      // falls through
      case NAME: {
        if (c !== 34) throw noName(text, i, state);
        const end = stringEnd(text, i);
        member = {name: decode(text.slice(i, end)), nameStart: i, nameEnd: end, value: null};
        top.members.push(member);
        i = end;
        state = COLON;
        continue;
      }
      case COLON:
        if (c !== 58) throw new JSONError(text, i, `expected : after the name ${shorten(text.slice(member.nameStart, member.nameEnd))}`, found(text, i));
        i++;
        state = VALUE;
        continue;
      case NEXT: {
        const object = top.kind === 'object';
        if (c === 44) { // ,
          i++;
          state = object ? NAME : VALUE;
          continue;
        }
        if (c === (object ? 125 : 93)) {
          close();
          i++;
          continue;
        }
        throw new JSONError(text, i, object ? 'expected , or }' : 'expected , or ]', found(text, i));
      }
      default:
        throw new JSONError(text, i, 'expected the end', found(text, i));
    }
  }
}

// check returns the error of a text, or null.
export function check(text) {
  try {
    parse(text);
    return null;
  } catch (err) {
    if (err instanceof JSONError) return err;
    throw err;
  }
}

// stringEnd returns the offset behind a string that begins at i.
function stringEnd(text, i) {
  const start = i;
  const n = text.length;
  for (i++; i < n; i++) {
    const c = text.charCodeAt(i);
    if (c === 34) return i + 1;
    if (c < 32) {
      if (c === 10 || c === 13) throw new JSONError(text, i, 'expected " at the end of the text', 'the end of the line');
      throw new JSONError(text, i, `expected an escape such as \\t or \\u${hex4(c)}`, `the control character U+${hex4(c)}`);
    }
    if (c === 92) {
      const e = text.charCodeAt(i + 1);
      if (e === 117) { // u
        for (let k = i + 2; k < i + 6; k++) {
          if (!isHex(text.charCodeAt(k))) throw new JSONError(text, Math.min(k, n), 'expected four hex digits after \\u', found(text, k));
        }
        i += 5;
      } else if (e === 34 || e === 92 || e === 47 || e === 98 || e === 102 || e === 110 || e === 114 || e === 116) {
        i++;
      } else if (i + 1 >= n) {
        break;
      } else {
        throw new JSONError(text, i, 'expected one of the escapes \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u', shorten(text.slice(i, i + 2)));
      }
    }
  }
  const line = text.indexOf('\n', start);
  throw new JSONError(text, line < 0 ? n : line, 'expected " at the end of the text', 'the end');
}

function isHex(c) {
  return (c >= 48 && c <= 57) || (c >= 65 && c <= 70) || (c >= 97 && c <= 102);
}

function hex4(c) {
  return c.toString(16).padStart(4, '0');
}

// numberEnd returns the offset behind a number that begins at i.
function numberEnd(text, i) {
  NUMBER.lastIndex = i;
  const match = NUMBER.exec(text);
  if (match === null) {
    if (text.startsWith('-Infinity', i)) throw new JSONError(text, i, 'expected a value', '-Infinity, which JSON does not have');
    throw new JSONError(text, i + 1, 'expected a digit after -', found(text, i + 1));
  }
  const end = NUMBER.lastIndex;
  const c = text.charCodeAt(end);
  if (c >= 48 && c <= 57) throw new JSONError(text, i, 'expected a number without zeros in front', shorten(wordAt(text, i)));
  const again = (c === 46 && /[.eE]/.test(match[0])) || ((c === 69 || c === 101) && /[eE]/.test(match[0]));
  if (again) throw new JSONError(text, i, 'expected a number', shorten(wordAt(text, i)));
  if (c === 46) throw new JSONError(text, end + 1, 'expected a digit after the decimal point', found(text, end + 1));
  if (c === 69 || c === 101) {
    const sign = text.charCodeAt(end + 1);
    const at = end + (sign === 43 || sign === 45 ? 2 : 1);
    throw new JSONError(text, at, 'expected a digit of the exponent', found(text, at));
  }
  if (isWordAt(text, end)) throw new JSONError(text, i, 'expected a number', shorten(wordAt(text, i)));
  return end;
}

function wordAt(text, i) {
  WORD.lastIndex = i;
  const match = WORD.exec(text);
  return match === null ? '' : match[0];
}

function isWordAt(text, i) {
  return /[\p{L}\p{N}_]/u.test(text.charAt(i));
}

// found describes what is at an offset.
function found(text, i) {
  if (i >= text.length) return 'the end';
  const c = text.codePointAt(i);
  if (c === 10 || c === 13) return 'the end of the line';
  if (c === 34) {
    try {
      return shorten(text.slice(i, stringEnd(text, i)));
    } catch {
      return '"';
    }
  }
  const word = wordAt(text, i);
  if (word !== '') return shorten(word);
  const shown = String.fromCodePoint(c);
  return /[\p{C}\p{Z}]/u.test(shown) ? `the character U+${c.toString(16).toUpperCase().padStart(4, '0')}` : shown;
}

function shorten(text) {
  const all = Array.from(text.slice(0, 100));
  return all.length > 40 ? all.slice(0, 40).join('') + '…' : all.join('');
}

function noValue(text, i, state, top) {
  const c = text.charAt(i);
  const word = wordAt(text, i);
  if (c === "'") return new JSONError(text, i, 'expected double quotes around a text', "'");
  if (/^(true|false|null)$/i.test(word)) return new JSONError(text, i, `expected ${word.toLowerCase()}`, word);
  if (/^(NaN|Infinity|undefined)$/.test(word)) return new JSONError(text, i, 'expected a value', `${word}, which JSON does not have`);
  if (text.startsWith('//', i) || text.startsWith('/*', i)) return new JSONError(text, i, 'expected a value', 'a comment, which JSON does not have');
  if (state === VALUE && top !== null && top.kind === 'array' && (c === ']' || c === ',')) {
    return new JSONError(text, i, 'expected a value after the comma', c);
  }
  return new JSONError(text, i, state === ITEM ? 'expected a value or ]' : 'expected a value', found(text, i));
}

function noName(text, i, state) {
  const c = text.charAt(i);
  if (c === "'") return new JSONError(text, i, 'expected double quotes around a name', "'");
  if (state === NAME && c === '}') return new JSONError(text, i, 'expected a name after the comma', '}');
  if (text.startsWith('//', i) || text.startsWith('/*', i)) return new JSONError(text, i, 'expected a name in double quotes', 'a comment, which JSON does not have');
  return new JSONError(text, i, state === FIRST ? 'expected a name in double quotes or }' : 'expected a name in double quotes', found(text, i));
}

function atEnd(text, state, top) {
  const what = {
    [VALUE]: 'a value', [ITEM]: 'a value or ]', [NAME]: 'a name in double quotes', [FIRST]: 'a name in double quotes or }', [COLON]: ':',
    [NEXT]: top !== null && top.kind === 'array' ? ', or ]' : ', or }',
  }[state];
  return new JSONError(text, text.length, `expected ${what}`, 'the end');
}

// decode returns the text of a string literal. A lone surrogate stays one.
export function decode(literal) {
  const inside = literal.slice(1, -1);
  if (!inside.includes('\\')) return inside;
  return inside.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (_, hex, c) => {
    if (hex !== undefined) return String.fromCharCode(parseInt(hex, 16));
    return {b: '\b', f: '\f', n: '\n', r: '\r', t: '\t'}[c] ?? c;
  });
}

// quote returns the string literal of a text.
export function quote(text) {
  return JSON.stringify(text);
}

// format lays a valid text out, a member or an item a line. It changes white space only.
export function format(text, indent = '  ') {
  return layOut(parse(text), text, indent);
}

// minify removes all white space that has no meaning. The text must be valid.
export function minify(text) {
  return layOut(parse(text), text, null);
}

// layOut returns the text of a node, laid out; an indent of null leaves all white space
// out. depth is that of the node.
export function layOut(node, text, indent, depth = 0) {
  const parts = [];
  const line = (d) => {
    if (indent !== null) parts.push('\n', indent.repeat(d));
  };
  const colon = indent === null ? ':' : ': ';
  // A frame is a container and the position of its next child.
  const frames = [];
  const begin = (node) => {
    if (node.kind !== 'object' && node.kind !== 'array') {
      parts.push(text.slice(node.start, node.end));
      return;
    }
    const children = node.kind === 'object' ? node.members : node.items;
    const brackets = node.kind === 'object' ? '{}' : '[]';
    if (children.length === 0) {
      parts.push(brackets);
      return;
    }
    parts.push(brackets[0]);
    frames.push({children, close: brackets[1], object: node.kind === 'object', next: 0});
  };
  begin(node);
  while (frames.length > 0) {
    const frame = frames[frames.length - 1];
    if (frame.next === frame.children.length) {
      frames.pop();
      line(depth + frames.length);
      parts.push(frame.close);
      continue;
    }
    if (frame.next > 0) parts.push(',');
    const child = frame.children[frame.next++];
    line(depth + frames.length);
    if (frame.object) {
      parts.push(text.slice(child.nameStart, child.nameEnd), colon);
      begin(child.value);
    } else {
      begin(child);
    }
  }
  return parts.join('');
}

// raw returns the text of a node as it stands.
export function raw(text, node) {
  return text.slice(node.start, node.end);
}

// member returns the value of the last member with this name, as readers of JSON do, or null.
export function member(node, name) {
  if (node === null || node.kind !== 'object') return null;
  for (let i = node.members.length - 1; i >= 0; i--) {
    if (node.members[i].name === name) return node.members[i].value;
  }
  return null;
}

// at returns the value behind names and numbers, or null.
export function at(node, ...path) {
  for (const step of path) {
    if (node === null) return null;
    if (typeof step === 'number') node = node.kind === 'array' ? node.items[step] ?? null : null;
    else node = member(node, step);
  }
  return node;
}

// textOf returns the text of a string, or "" of anything else.
export function textOf(text, node) {
  return node !== null && node.kind === 'string' ? decode(raw(text, node)) : '';
}

// valueOf returns what a node is in JavaScript. It is for replies of the server, such as
// numbers of rows, and never for documents.
export function valueOf(text, node) {
  return node === null ? undefined : JSON.parse(raw(text, node));
}

// join returns the text of an object with these members of nodes of text.
export function join(text, members) {
  return '{' + members.map((m) => `${text.slice(m.nameStart, m.nameEnd)}:${raw(text, m.value)}`).join(',') + '}';
}

// duplicates returns the members whose name an earlier member of the same object has.
export function duplicates(root) {
  const out = [];
  each(root, (node) => {
    if (node.kind !== 'object' || node.members.length < 2) return;
    const seen = new Set();
    for (const m of node.members) {
      if (seen.has(m.name)) out.push(m);
      seen.add(m.name);
    }
  });
  return out;
}

// each calls fn with a node and all nodes inside it. What fn returns false for is not
// entered.
export function each(node, fn) {
  const left = [node];
  while (left.length > 0) {
    const one = left.pop();
    if (fn(one) === false) continue;
    if (one.kind === 'object') for (let i = one.members.length - 1; i >= 0; i--) left.push(one.members[i].value);
    else if (one.kind === 'array') for (let i = one.items.length - 1; i >= 0; i--) left.push(one.items[i]);
  }
}

const PLAIN = /^[\p{L}_][\p{L}\p{N}_]*$/u;

// step returns a name as a step of a path in RQL.
export function step(name) {
  return PLAIN.test(name) ? name : `'${name.replace(/\\/g, "\\\\").replace(/'/g, "''")}'`;
}

// pathAt returns the path of the value at an offset, such as Lines[2].Product, or "".
export function pathAt(root, offset) {
  let path = '';
  let node = root;
  for (;;) {
    let child = null;
    if (node.kind === 'object') {
      const m = node.members.find((m) => m.nameStart <= offset && offset <= m.value.end);
      if (m !== undefined) {
        path += (path === '' ? '' : '.') + step(m.name);
        child = m.value;
      }
    } else if (node.kind === 'array') {
      const i = node.items.findIndex((item) => item.start <= offset && offset <= item.end);
      if (i >= 0) {
        path += `[${i}]`;
        child = node.items[i];
      }
    }
    if (child === null) return path;
    node = child;
  }
}

// same reports whether two values are the same but for white space. Spelling counts: 1.10
// is not 1.1.
export function same(a, aText, b, bText) {
  if (a === null || b === null) return a === b;
  if (a.kind !== b.kind) return false;
  const left = raw(aText, a);
  const right = raw(bText, b);
  if (left === right) return true;
  if (a.kind !== 'object' && a.kind !== 'array') return false;
  return layOut(a, aText, null) === layOut(b, bText, null);
}

// A part of a line that is coloured.
const PART = /("(?:[^"\\]|\\.)*"?)(\s*:)?|-?[0-9][0-9a-zA-Z.+-]*|[a-zA-Z_$][\w$]*|[{}[\],:]|[^\s"{}[\],:\w$-]+|-/gu;

const STRING = /^"(?:[^"\\]|\\.)*"$/u;

// tokens returns the parts of a piece of text that are coloured, as [start, end, kind] with
// offsets in the piece. A string ends on its line, so that each line can be read without those
// before it, even of a text with errors. Kinds are name, string, number, word, mark, bad.
export function tokens(line) {
  const out = [];
  PART.lastIndex = 0;
  for (let m = PART.exec(line); m !== null; m = PART.exec(line)) {
    const c = m[0].charCodeAt(0);
    if (m[1] !== undefined) {
      const whole = STRING.test(m[1]);
      out.push([m.index, m.index + m[1].length, !whole ? 'bad' : m[2] !== undefined ? 'name' : 'string']);
      if (m[2] !== undefined) out.push([m.index + m[0].length - 1, m.index + m[0].length, 'mark']);
    } else if (c === 45 || (c >= 48 && c <= 57)) {
      NUMBER.lastIndex = 0;
      const whole = NUMBER.exec(m[0]) !== null && NUMBER.lastIndex === m[0].length;
      out.push([m.index, m.index + m[0].length, whole ? 'number' : 'bad']);
    } else if ('{}[],:'.includes(m[0])) {
      out.push([m.index, m.index + m[0].length, 'mark']);
    } else {
      out.push([m.index, m.index + m[0].length, m[0] === 'true' || m[0] === 'false' || m[0] === 'null' ? 'word' : 'bad']);
    }
  }
  return out;
}
