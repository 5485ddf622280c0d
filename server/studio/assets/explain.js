// The plan of a query as a picture: what is read, how much of it, and what is done with it. Each step is a bar
// as wide as its part of the work, so that a scan of all documents for three answers looks like what it is.

import {count, duration, h, plural} from './ui.js';

// Kinds of steps, by how the server words them (internal/exec in Jay).
const kinds = [
  [/^(index|look up|union|keep what is in)/, 'index'],
  [/^scan /, 'scan'],
  [/^changes with etags/, 'index'],
  [/^(read documents|answer from entries, and read)/, 'read'],
  [/^(answer from entries|count entries|take the ends)/, 'covered'],
  [/^filter: /, 'filter'],
  [/^keep groups: /, 'filter'],
  [/^(sort in memory|group in memory)/, 'memory'],
  [/^already in order/, 'ordered'],
  [/^expected /, 'expected'],
];

const words = {index: 'Index', scan: 'Scan', read: 'Read', covered: 'From the index', filter: 'Filter', memory: 'In memory', ordered: 'In order', expected: 'Expected', other: 'Step', answer: 'Answers'};

// steps returns the steps of a plan with what is known of each: {kind, text, parts, amount, unit}.
export function steps(e) {
  const out = [];
  for (const line of e.plan) {
    const text = line.trim();
    const part = line.startsWith('   ');
    const last = out[out.length - 1];
    if (part && last) {
      last.parts.push(text);
      continue;
    }
    const kind = kinds.find(([pattern]) => pattern.test(text))?.[1] ?? 'other';
    out.push({kind, text: text.replace(/^filter: |^keep groups: |^scan |^expected |^index (?=")/, ''), parts: [], amount: null, unit: ''});
  }
  const source = out.find((s) => s.kind === 'index');
  if (source) Object.assign(source, {amount: e.keysExamined, unit: 'key'});
  const read = out.find((s) => s.kind === 'read' || s.kind === 'scan');
  if (read) Object.assign(read, {amount: e.documentsRead, unit: 'document'});
  const covered = out.find((s) => s.kind === 'covered');
  if (covered) Object.assign(covered, {amount: e.documentsRead, unit: 'document'});
  out.push({kind: 'answer', text: plural(e.returned, 'answer'), parts: [], amount: e.returned, unit: 'answer'});
  return out;
}

// summary says in words what the picture shows.
export function summary(e) {
  return `${plural(e.keysExamined, 'index key')} examined, ${plural(e.documentsRead, 'document')} read, ${plural(e.returned, 'answer')}, ${duration(e.elapsedNs)}`;
}

// picture draws a plan, width pixels wide. In a narrow one the text of a step is below its name.
export function picture(e, width = 640) {
  const narrow = width < 480;
  const row = narrow ? 80 : 64;
  const bar = narrow ? 46 : 26;
  const all = steps(e);
  const most = Math.max(1, ...all.map((s) => s.amount ?? 0));
  const label = `plan-${++pictures}`;
  const nodes = [h('title', {id: `${label}-title`}, 'The plan of the query'), h('desc', {id: `${label}-text`}, `${e.plan.map((line) => line.trim()).join('; ')}. ${summary(e)}.`)];
  const characters = Math.floor((width - (narrow ? 28 : 290)) / 7.3);
  all.forEach((step, i) => {
    const y = i * row;
    const answer = step.kind === 'answer';
    if (i > 0) nodes.push(h('path', {class: 'plan-arrow', d: `M12 ${y - 20}v12m-4 -4l4 4l4 -4`}));
    const text = step.parts.length > 0 ? `${step.text} ${step.parts.join(' and ')}` : step.text;
    const part = step.amount ? Math.max(0.006, step.amount / most) * (width - 28) : 0;
    nodes.push(h('g', {class: `plan-step plan-${step.kind}`, transform: `translate(0 ${y})`},
      h('circle', {class: 'plan-dot', cx: 12, cy: 12, r: 5}),
      h('text', {class: 'plan-kind', x: 28, y: 16}, words[step.kind]),
      step.amount !== null && h('text', {class: 'plan-amount', x: width, y: 16, 'text-anchor': 'end'}, plural(step.amount, step.unit)),
      !answer && h('text', {class: 'plan-text', x: narrow ? 28 : 136, y: narrow ? 36 : 16}, h('title', null, text), cut(text, characters)),
      step.amount !== null && h('rect', {class: 'plan-track', x: 28, y: answer ? 26 : bar, width: width - 28, height: 8, rx: 4}),
      part > 0 && h('rect', {class: 'plan-bar', x: 28, y: answer ? 26 : bar, width: Math.max(3, part), height: 8, rx: 4})));
  });
  const height = all.length * row - (narrow ? 40 : 24);
  return h('svg', {class: 'plan', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-labelledby': `${label}-title ${label}-text`}, nodes);
}

let pictures = 0;

function cut(text, most) {
  const all = Array.from(text);
  return all.length > most ? all.slice(0, Math.max(8, most - 1)).join('') + '…' : text;
}

// advice says what the plan is worth.
export function advice(e) {
  if (e.suggestion) return null; // the page offers the index
  const scans = (words) => e.plan.some((line) => line.startsWith('scan ')) && e.plan.some((line) => line.includes(words));
  if (scans('expected ')) return 'The scan was expected to take less time than an index.';
  if (scans(', as the query asks')) return 'The query asks for no index.';
  if (e.plan.some((line) => line.startsWith('scan ')) && e.documentsRead > 1000 && e.returned * 10 < e.documentsRead) {
    return `It reads ${count(e.documentsRead)} documents for ${plural(e.returned, 'answer')}, and no index would serve its conditions.`;
  }
  if (e.documentsRead === 0 && e.keysExamined > 0) return 'The index has all that the query needs: no document was read.';
  if (e.returned > 0 && e.documentsRead === e.returned) return 'It reads the documents that it answers, and no others.';
  return 'No index is suggested.';
}
