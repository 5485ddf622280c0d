// Two or three texts side by side, with their differences marked.

import * as diff from './diff.js';
import {count, fill, h} from './ui.js';

const CONTEXT = 3; // equal lines around a difference that are shown
const MOST = 1000; // rows that are made at first, and with each further click

// compare shows two texts: titles are nodes or texts. Equal lines far from a difference are
// folded away behind a button.
export function compare(left, right, [leftTitle, rightTitle]) {
  const a = left.split('\n');
  const b = right.split('\n');
  const rows = diff.lines(left, right).map(({kind, left: i, right: j}) => {
    if (kind === 'changed') {
      const [start, leftEnd, rightEnd] = diff.within(a[i], b[j]);
      return {equal: false, cells: [cell(i, a[i], 'removed', start, leftEnd), cell(j, b[j], 'added', start, rightEnd)]};
    }
    return {equal: kind === 'same', cells: [i < 0 ? null : cell(i, a[i], kind === 'removed' && 'removed'), j < 0 ? null : cell(j, b[j], kind === 'added' && 'added')]};
  });
  return sheet(rows, [leftTitle, rightTitle]);
}

// compare3 shows what two writers made of a text. Lines of the same origin stand beside each
// other.
export function compare3(base, theirs, yours, titles) {
  const lines = [base, theirs, yours].map((text) => text.split('\n'));
  const sides = [theirs, yours].map((text) => against(base, text, lines[0].length));
  const rows = [];
  for (let i = 0; i <= lines[0].length; i++) {
    const added = sides.map((side) => side.added[i] ?? []);
    for (let n = 0; n < Math.max(added[0].length, added[1].length); n++) {
      rows.push({equal: false, cells: [null, ...added.map((list, k) => (n < list.length ? cell(list[n], lines[k + 1][list[n]], 'added') : null))]});
    }
    if (i === lines[0].length) break;
    const kept = sides.map((side) => side.kept[i]);
    const same = kept.map((j, k) => j >= 0 && lines[k + 1][j] === lines[0][i]);
    rows.push({equal: same[0] && same[1], cells: [
      cell(i, lines[0][i], !(same[0] && same[1]) && 'removed'),
      ...kept.map((j, k) => {
        if (j < 0) return null;
        if (same[k]) return cell(j, lines[k + 1][j], false);
        const [start, , end] = diff.within(lines[0][i], lines[k + 1][j]);
        return cell(j, lines[k + 1][j], 'added', start, end);
      }),
    ]});
  }
  return sheet(rows, titles);
}

// against says for each line of base which line of text it became, or -1, and which lines were
// added in front of it.
function against(base, text, n) {
  const kept = new Array(n).fill(-1);
  const added = [];
  let at = 0;
  for (const row of diff.lines(base, text)) {
    if (row.left >= 0) at = row.left + 1;
    if (row.left >= 0 && row.right >= 0) kept[row.left] = row.right;
    else if (row.right >= 0) (added[at] ??= []).push(row.right);
  }
  return {kept, added};
}

function cell(number, text, kind, start = 0, end = -1) {
  return {number, text, kind, start, end};
}

// sheet makes the rows. Long runs of equal lines are one button each.
function sheet(rows, titles) {
  const near = new Array(rows.length).fill(false);
  rows.forEach((row, i) => {
    if (row.equal) return;
    for (let k = Math.max(0, i - CONTEXT); k <= Math.min(rows.length - 1, i + CONTEXT); k++) near[k] = true;
  });
  const parts = []; // runs of rows that are shown or hidden
  rows.forEach((row, i) => {
    const last = parts[parts.length - 1];
    if (last && last.shown === near[i]) last.rows.push(row);
    else parts.push({shown: near[i], rows: [row]});
  });
  const body = h('tbody');
  const node = h('div', {class: ['compare', titles.length === 3 && 'compare-three'], tabindex: 0, role: 'group', 'aria-label': 'Differences'},
    h('table', null, h('caption', {class: 'only-read'}, 'Lines of the texts, side by side'), h('colgroup', null, titles.map(() => [h('col', {class: 'compare-number'}), h('col')])), h('thead', null, h('tr', null, titles.map((title) => h('th', {scope: 'col', colspan: 2}, title)))), body));
  if (rows.every((row) => row.equal)) {
    fill(body, h('tr', null, h('td', {class: 'compare-none', colspan: titles.length * 2}, 'The texts are the same.')));
    return node;
  }
  for (const part of parts) {
    if (part.shown || part.rows.length <= 2) body.append(...make(part.rows, titles.length));
    else body.append(hidden(part.rows, titles.length));
  }
  return node;
}

function make(rows, columns) {
  const out = rows.slice(0, MOST).map((row) => h('tr', null, row.cells.map((c) => (c === null
    ? [h('td', {class: 'compare-number'}), h('td', {class: 'compare-empty'})]
    : [h('td', {class: 'compare-number'}, c.number + 1), h('td', {class: c.kind && `compare-${c.kind}`}, c.kind === 'removed' && h('span', {class: 'only-read'}, 'before: '), c.kind === 'added' && h('span', {class: 'only-read'}, 'after: '), text(c))]))));
  if (rows.length > MOST) out.push(hidden(rows.slice(MOST), columns));
  return out;
}

function text(c) {
  if (c.end < 0 || c.start === c.end) return h('code', null, c.text);
  return h('code', null, c.text.slice(0, c.start), h('mark', null, c.text.slice(c.start, c.end)), c.text.slice(c.end));
}

function hidden(rows, columns) {
  const row = h('tr', null, h('td', {class: 'compare-more', colspan: columns * 2}, h('button', {type: 'button', on: {click: () => {
    const made = make(rows, columns);
    row.replaceWith(...made);
    made[0].querySelector('td')?.scrollIntoView({block: 'nearest'});
  }}}, `${count(rows.length)} more lines`)));
  return row;
}
