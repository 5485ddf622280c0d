// RQL for the editor: parts to colour, what can follow at the caret, and where an error of the
// server stands. The grammar is in docs/queries/rql.md; what is valid, the server decides.

const CLAUSES = ['from', 'group by', 'where', 'order by', 'select', 'include', 'limit'];
const WORDS = new Set(('from group by where order select include limit offset as use no index distinct and or not in all between exact true false null ' +
  'asc ascending desc descending update load declare function filter').split(' '));
const RESERVED = new Set('from group where order load update filter select include limit offset declare and or not in between all as distinct true false null'.split(' '));
const FUNCTIONS = ['exists', 'startsWith', 'endsWith', 'contains', 'regex', 'elemMatch', 'size', 'type', 'exact', 'search', 'lucene', 'fuzzy', 'proximity', 'boost', 'moreLikeThis', 'score', 'highlight', 'explanations', 'suggest', 'complete', 'id', 'count', 'sum', 'avg', 'min', 'max', 'first', 'last', 'list', 'key', 'year', 'month', 'day', 'hour', 'field',
  'abs', 'ceiling', 'coalesce', 'concat', 'dateDiff', 'datePart', 'dateTrunc', 'floor', 'if', 'join', 'length', 'lower', 'number', 'replace', 'round', 'substring', 'text', 'trim', 'upper'];
const GROUPS = ['count()', 'sum(', 'avg(', 'min(', 'max(', 'first(', 'last(', 'list(', 'key()'];
const SPACES = ['spatial.within(', 'spatial.intersects(', 'spatial.disjoint(', 'spatial.contains(', 'vector.search('];
const DISTANCES = ['spatial.distance(', 'vector.distance('];
const SHAPES = ['spatial.circle(', 'spatial.box(', 'spatial.point(', 'spatial.wkt('];
const PLACES = ['spatial.point(', 'spatial.wkt('];
const EMBEDDINGS = ['embedding.f32_i8(', 'embedding.f32_i1(', 'embedding.i8(', 'embedding.i1('];
const META = ['@metadata.@id', '@metadata.@collection', '@metadata.@etag', '@metadata.@last-modified', '@metadata.@change-vector'];

const PART = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^'\\]|\\[\s\S]|'')*(?:'|$)|"(?:[^"\\]|\\[\s\S]|"")*(?:"|$))|(-?[0-9](?:_?[0-9])*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|(\$[\p{L}\p{N}_]+)|(@[\p{L}\p{N}_-]+|[\p{L}_][\p{L}\p{N}_]*)|([=!<>]=|<>|[=<>()[\]{},.*;])/gu;

// tokens returns the parts of a query as [start, end, kind]. Kinds are those of json.js, and
// comment, string, number, parameter, keyword, function, name, mark.
export function tokens(text) {
  const out = [];
  PART.lastIndex = 0;
  for (let m = PART.exec(text); m !== null; m = PART.exec(text)) {
    const start = m.index;
    const end = start + m[0].length;
    let kind = 'mark';
    if (m[1] !== undefined) kind = 'comment';
    else if (m[2] !== undefined) kind = 'string';
    else if (m[3] !== undefined) kind = 'number';
    else if (m[4] !== undefined) kind = 'parameter';
    else if (m[5] !== undefined) {
      const before = text.charAt(start - 1);
      if (before === '.') kind = 'name';
      else if (/^\s*\(/.test(text.slice(end, end + 20)) && FUNCTIONS.some((f) => f.toLowerCase() === m[0].toLowerCase())) kind = 'function';
      else kind = WORDS.has(m[0].toLowerCase()) ? 'word' : 'name';
    }
    out.push([start, end, kind]);
  }
  return out;
}

// parameters returns the names of the parameters of a query, without $, each once.
export function parameters(text) {
  const names = new Set();
  for (const [start, end, kind] of tokens(text)) if (kind === 'parameter') names.add(text.slice(start + 1, end));
  return [...names];
}

// collectionOf returns the collection that a query reads: '' for all documents, null if it
// is not said yet.
export function collectionOf(text) {
  const all = meaningful(text);
  const i = all.findIndex((t) => t.lower === 'from');
  const next = all[i + 1];
  if (i < 0 || next === undefined) return null;
  if (next.lower === '@all_docs') return '';
  if (next.kind === 'string') return unquote(next.text);
  return next.kind === 'name' ? next.text : null;
}

// indexOf returns the name of the computed index that a query reads, or ''.
export function indexOf(text) {
  const all = meaningful(text);
  const i = all.findIndex((t) => t.lower === 'from');
  return i >= 0 && all[i + 1]?.lower === 'index' && all[i + 2]?.kind === 'string' ? unquote(all[i + 2].text) : '';
}

// aliasOf returns the name that the query gives a document, or ''.
export function aliasOf(text) {
  const all = meaningful(text);
  const i = all.findIndex((t) => t.lower === 'from');
  return i >= 0 && all[i + 2]?.lower === 'as' && all[i + 3] !== undefined ? all[i + 3].text : '';
}

// grouped reports whether the answers are groups, distinct rows, or in an order by ranks, which have no pages.
export function grouped(text) {
  return meaningful(text).some((t, i, all) => (t.lower === 'rank' && all[i + 1]?.text === '.' && all[i + 2]?.lower === 'fuse' && all[i + 3]?.text === '(') || (t.kind === 'word' && ((t.lower === 'group' && all[i + 1]?.lower === 'by') || t.lower === 'distinct')) ||
    (t.kind === 'function' && ['count', 'sum', 'avg', 'min', 'max', 'first', 'last', 'list', 'key'].includes(t.lower)));
}

// limitOf returns the limit of a query: null if it has neither limit nor offset, 0 if the number
// is not written in it.
export function limitOf(text) {
  const all = meaningful(text);
  const i = all.findIndex((t) => t.kind === 'word' && (t.lower === 'limit' || t.lower === 'offset'));
  if (i < 0) return null;
  const rest = all.slice(i + 1);
  if (all[i].lower === 'offset' || rest[0]?.kind !== 'number') return 0;
  const number = rest[1]?.text === ',' ? rest[2] : rest[0]; // limit SKIP, MOST
  return number?.kind === 'number' ? Number(number.text.replaceAll('_', '')) : 0;
}

function meaningful(text) {
  const out = [];
  for (const [start, end, kind] of tokens(text)) {
    if (kind === 'comment') continue;
    const t = text.slice(start, end);
    out.push({text: t, lower: t.toLowerCase(), kind, start, end});
  }
  return out;
}

function unquote(literal) {
  const mark = literal[0];
  return literal.slice(1, literal.endsWith(mark) && literal.length > 1 ? -1 : undefined).replaceAll(mark + mark, mark).replace(/\\(.)/g, '$1');
}

// name returns a name as it stands in a query: in quotes if it needs them.
export function name(text) {
  if (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(text) && !RESERVED.has(text.toLowerCase())) return text;
  if (/^@[\p{L}_][\p{L}\p{N}_-]*$/u.test(text)) return text;
  return `'${text.replace(/\\/g, '\\\\').replace(/'/g, "''")}'`;
}

// literal returns a text as a value of RQL.
export function literal(text) {
  return `'${text.replace(/\\/g, '\\\\').replace(/'/g, "''").replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}'`;
}

// errorOf finds the place of an error of the server, whose message names line and column:
// {line, column, text}, or null.
export function errorOf(message) {
  const m = /line (\d+), column (\d+): ([\s\S]*)$/.exec(message);
  return m === null ? null : {line: Number(m[1]), column: Number(m[2]), text: m[3]};
}

// offsetOf returns the offset of a line and a column, which counts characters.
export function offsetOf(text, line, column) {
  let i = 0;
  for (let n = 1; n < line; n++) {
    const end = text.indexOf('\n', i);
    if (end < 0) return text.length;
    i = end + 1;
  }
  for (let n = 1; n < column && i < text.length && text[i] !== '\n'; n++) i += text.codePointAt(i) > 0xffff ? 2 : 1;
  return i;
}

// completions returns what can stand at the caret: {start, end, items} where each item,
// {text, kind, note}, replaces the text from start to end. known has what the server knows:
// { collections: [{name, documents}], fields: [{path, types}] of the query's collection,
// indexes: [{name, collection}], computed: computed indexes, as the server lists them, parameters: [names] }. Nothing of RQL stands in a script or after it.
export function completions(text, caret, known = {}) {
  const all = meaningful(text.slice(0, caret));
  const last = all[all.length - 1];
  if (insideOther(text, caret) || all.some(({kind, lower}, i) => kind === 'word' && lower === 'update' && all[i + 1]?.text === '{')) return none(caret);

  // What is being typed: a word, a path with points, a parameter or an open quote.
  let typed = '';
  let start = caret;
  const m = /(?:\$[\p{L}\p{N}_]*|(?:[@\p{L}_][\p{L}\p{N}_@-]*|\[[0-9]*\]|\.)+)$/u.exec(text.slice(0, caret));
  if (m !== null && !/^[\d.]/.test(m[0])) {
    typed = m[0];
    start = caret - typed.length;
  }
  const open = last !== undefined && last.kind === 'string' && last.end === caret && !closed(last.text) ? last : null;
  if (open !== null) {
    typed = unquote(open.text);
    start = open.start;
  }
  const before = meaningful(text.slice(0, start));
  const items = candidates(before, text, known, typed, open !== null);
  const lower = typed.toLowerCase();
  const found = rank(items, lower).slice(0, 100);
  return {start, end: wordEnd(text, caret, open !== null), items: found, typed};
}

function none(caret) {
  return {start: caret, end: caret, items: [], typed: ''};
}

function closed(literal) {
  const mark = literal[0];
  return literal.length > 1 && literal.endsWith(mark) && !literal.endsWith('\\' + mark);
}

// insideOther reports whether the caret is in a comment.
function insideOther(text, caret) {
  return tokens(text).some(([start, end, kind]) => kind === 'comment' && start < caret && (caret < end || (caret === end && text.startsWith('//', start))));
}

function wordEnd(text, caret, quoted) {
  if (quoted) return caret;
  const m = /^[\p{L}\p{N}_]*/u.exec(text.slice(caret));
  return caret + m[0].length;
}

// rank puts first what begins with the typed text, then what has it at the beginning of a
// part, then what has it inside.
function rank(items, typed) {
  if (typed === '') return items;
  const ranked = [];
  items.forEach((item, i) => {
    const text = (item.name ?? item.text).toLowerCase();
    const at = text.indexOf(typed);
    if (at < 0 || text === typed) return;
    ranked.push([at === 0 ? 0 : /[.\s_@]/.test(text[at - 1]) ? 1 : 2, i, item]);
  });
  return ranked.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((r) => r[2]);
}

const keyword = (text, note = '') => ({text, kind: 'keyword', note});

// candidates lists what the grammar allows behind these parts.
function candidates(before, text, known, typed, quoted) {
  const last = before[before.length - 1];
  const clause = clauseOf(before);
  if (typed.startsWith('$')) {
    return [...new Set([...(known.parameters ?? []), ...parameters(text).filter((p) => '$' + p !== typed)])].map((p) => ({text: '$' + p, kind: 'parameter', note: ''}));
  }
  if (before.length === 0) return quoted ? [] : [keyword('from')];
  if (last.lower === 'from') return [...collections(known), ...(known.computed?.length > 0 ? [keyword('index', 'a computed one')] : [])];
  if (last.lower === 'index' && before[before.length - 2].lower === 'from') return (known.computed ?? []).map((i) => ({text: literal(i.name), name: i.name, kind: 'index', note: 'computed'}));
  if (clause.name === 'from') {
    if (last.lower === 'as') return [];
    if (last.lower === 'use') return [keyword('index'), keyword('no index')];
    if (last.lower === 'no') return [keyword('index')];
    if (last.lower === 'index' && before[before.length - 2].lower === 'no') return following('from');
    if (last.lower === 'index') return (known.indexes ?? []).map((i) => ({text: literal(i.name), name: i.name, kind: 'index', note: i.collection}));
    return [...(before.length === 2 ? [keyword('as')] : []), keyword('use index'), keyword('use no index'), ...following('from')];
  }
  if (quoted) return [];
  if (last.lower === 'group' || last.lower === 'order') return [keyword('by')];
  const behind = last.kind === 'name' || last.kind === 'string' || last.kind === 'number' || last.kind === 'parameter' || last.text === ')' || last.text === ']' ||
    ['true', 'false', 'null'].includes(last.lower);
  const fields = () => fieldItems(text, known);
  switch (clause.name) {
    case 'where':
      if (/^(==?|!=|<>?|[<>]=)$/.test(last.text) || last.lower === 'between' || (last.text === '(' && before[before.length - 2]?.lower === 'in')) {
        return [...values(known, text), ...fields()];
      }
      if (last.lower === 'all') return [keyword('in')];
      if (behind) {
        return [...(conditionEnds(before) ? [keyword('and'), keyword('or')] : [keyword('in'), keyword('between'), keyword('all in'), keyword('as date'), keyword('as utc'), keyword('and'), keyword('or')]), ...following('where')];
      }
      return [...fields(), ...functions(), ...spacedAt(before, [...SPACES, ...DISTANCES]), keyword('not'), keyword('true'), keyword('false')];
    case 'group by':
      return behind ? following('group by') : fields();
    case 'order by':
      if (last.lower === 'as') return ['long', 'double', 'string', 'date', 'utc'].map((w) => keyword(w));
      if (behind || ['long', 'double', 'string', 'date', 'utc'].includes(last.lower)) return [keyword('desc'), keyword('asc'), keyword('as long'), keyword('as double'), keyword('as date'), keyword('as utc'), ...following('order by')];
      if (['desc', 'asc', 'descending', 'ascending'].includes(last.lower)) return following('order by');
      return [...fields(), ...spacedAt(before, last.lower === 'by' ? [...DISTANCES, 'rank.fuse('] : DISTANCES), {text: 'score()', kind: 'function', note: 'of searches'}, ...groupFunctions(text)];
    case 'select':
      if (last.lower === 'as') return [];
      if (behind) return [keyword('as'), ...following('select')];
      return [...(last.lower === 'select' ? [keyword('distinct'), keyword('*')] : []), ...fields(), ...spacedAt(before, DISTANCES), ...groupFunctions(text)];
    case 'include':
      return behind ? following('include') : fields();
    case 'limit':
      return last.kind === 'number' ? [keyword('offset')] : [];
  }
  return [];
}

// clauseOf returns the clause in which the last part stands.
function clauseOf(before) {
  for (let i = before.length - 1; i >= 0; i--) {
    const t = before[i];
    if (t.kind !== 'word') continue;
    if (t.lower === 'group' || t.lower === 'order') return {name: t.lower + ' by', i};
    if (CLAUSES.includes(t.lower) || t.lower === 'offset') return {name: t.lower === 'offset' ? 'limit' : t.lower, i};
  }
  return {name: '', i: 0};
}

function following(clause) {
  return CLAUSES.slice(CLAUSES.indexOf(clause) + 1).map((c) => keyword(c));
}

// conditionEnds reports whether the last value is the end of a condition, as in Total > 5.
function conditionEnds(before) {
  for (let i = before.length - 2; i >= 0; i--) {
    const t = before[i];
    if (/^(==?|!=|<>?|[<>]=)$/.test(t.text) || t.lower === 'between') return true;
    if (t.kind === 'word' && ['and', 'or', 'where', 'not'].includes(t.lower)) break;
  }
  const last = before[before.length - 1];
  return last.text === ')' || ['true', 'false', 'null'].includes(last.lower);
}

function collections(known) {
  const out = (known.collections ?? []).map((c) => ({text: name(c.name), name: c.name, kind: 'collection', note: c.documents === undefined ? '' : c.documents.toLocaleString('en')}));
  return [...out, {text: '@all_docs', kind: 'keyword', note: 'every document'}];
}

function fieldItems(text, known) {
  const alias = aliasOf(text);
  const prefix = alias === '' ? '' : alias + '.';
  const computed = known.computed?.find((i) => i.name.toLowerCase() === indexOf(text).toLowerCase());
  if (computed) return (computed.reduce ?? computed.maps?.[0])?.select.map((m) => ({text: prefix + name(m.name), kind: 'field', note: m.expression ?? ''})) ?? [];
  const out = (known.fields ?? []).map((f) => ({text: prefix + f.path, kind: 'field', note: (f.types ?? []).join(', ')}));
  return [...out, {text: 'id()', kind: 'function', note: 'the ID'}, ...META.map((m) => ({text: m, kind: 'field', note: 'metadata'}))];
}

// groupFunctions are those of groups, which a query of a computed index has not.
function groupFunctions(text) {
  return indexOf(text) === '' ? GROUPS.map((g) => ({text: g, kind: 'function', note: 'of a group'})) : [];
}

function functions() {
  return ['exact(', 'startsWith(', 'endsWith(', 'contains(', 'regex(', 'search(', 'lucene(', 'fuzzy(', 'proximity(', 'boost(', 'moreLikeThis(', 'exists(', 'elemMatch(', 'size(', 'type('].map((f) => ({text: f, kind: 'function', note: ''}));
}

// spaced are functions with a space in front, such as spatial.within(.
function spaced(names) {
  return names.map((f) => ({text: f, kind: 'function', note: f.startsWith('spatial.') ? 'of places' : f.startsWith('rank.') ? 'of several orders' : 'of vectors'}));
}

// calling returns the name of the function in whose parentheses the end of the parts stands, such as spatial.within, and the number of commas there:
// ['', 0] for none.
function calling(before) {
  let commas = 0;
  for (let i = before.length - 1, depth = 0; i >= 0; i--) {
    const {text} = before[i];
    if (text === ')') depth++;
    else if (text === '(' && depth-- === 0) return [before[i - 2]?.text === '.' ? before[i - 3].lower + '.' + before[i - 1].lower : before[i - 1]?.lower ?? '', commas];
    else if (text === ',' && depth === 0) commas++;
  }
  return ['', 0];
}

// spacedAt are the functions with a space that can stand behind these parts: those of a shape, of a place or of a vector in a function that wants one, else names.
function spacedAt(before, names) {
  const [name, commas] = calling(before);
  if (/^spatial\.(within|intersects|disjoint|contains|distance)$/.test(name)) return spaced(commas === 0 || name.endsWith('distance') ? PLACES : SHAPES);
  return spaced(name.startsWith('vector.') ? (commas === 0 ? EMBEDDINGS : []) : names);
}

function values(known, text) {
  const names = [...new Set([...(known.parameters ?? []), ...parameters(text)])];
  return [...names.map((p) => ({text: '$' + p, kind: 'parameter', note: ''})), keyword('true'), keyword('false'), keyword('null')];
}
