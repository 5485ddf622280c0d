// A map of the places that answers have: a graticule, a scale, and the places as points, lines and areas. It loads nothing: there are no coasts. places.js has
// the numbers.

import {View, degrees, drawn, grid, mostPlaces, scale, shapesOf, together} from './places.js';
import {button, count, fill, h, link, plural} from './ui.js';

const mostText = 1200; // characters of a document that are shown

// collect returns what is drawn of answers, [{id, value, raw}], by the pairs of fields that are latitudes and longitudes:
// {marks: [{row, lines, bounds}], without, cut}. Without is how many have no place, and cut whether places are left out.
export function collect(rows, pairs) {
  const marks = [];
  let without = 0, cut = false;
  for (const row of rows) {
    const shapes = shapesOf(row.value, pairs);
    if (shapes.length === 0) without++;
    cut ||= marks.length + shapes.length > mostPlaces;
    for (const shape of shapes.slice(0, mostPlaces - marks.length)) marks.push({row, ...drawn(shape)});
  }
  return {marks, without, cut};
}

// map makes a map: rows are [{id, value, raw()}], href returns the address of a document. It returns {node, dispose}.
export function map({rows, pairs, href, more}) {
  const {marks, without, cut} = collect(rows, pairs);
  const documents = [...new Set(marks.map((m) => m.row))];
  let chosen = null, view = null, pressed = null;

  const scene = h('g'), lines = h('g', {class: 'map-grid'}), labels = h('g', {class: 'map-labels'}), ruler = h('g', {class: 'map-scale'}), window = h('rect', {x: 0, y: 0});
  const svg = h('svg', {class: 'map-drawing', 'aria-hidden': 'true'}, h('defs', null, h('clipPath', {id: 'map-window'}, window)), lines, h('g', {'clip-path': 'url(#map-window)'}, scene), labels, ruler);
  const said = h('p', {class: 'only-read', role: 'status'});
  const card = h('section', {class: 'map-card', 'aria-label': 'The document', hidden: true});
  const tool = (icon, label, run) => button('', {icon, label, run});
  const frame = h('div', {class: 'map-frame', tabindex: 0, role: 'application', 'aria-label': `Map of ${plural(marks.length, 'place')}`,
    'aria-keyshortcuts': 'ArrowLeft ArrowRight ArrowUp ArrowDown + - 0 PageDown PageUp', title: 'Arrows move, + and - zoom, 0 shows all, PageDown and PageUp go from document to document'}, svg);
  const node = h('div', {class: 'map'}, h('div', {class: 'map-stage'}, frame,
    h('div', {class: 'map-tools'}, tool('plus', 'Nearer', () => zoom(2)), tool('minus', 'Farther', () => zoom(0.5)), tool('refresh', 'All places', () => all())), card),
  said, h('p', {class: 'muted query-note'}, note()));

  function note() {
    const parts = [`${plural(marks.length, 'place')} of ${plural(documents.length, 'document')}`];
    if (cut) parts.push(`more than ${count(mostPlaces)} are not drawn: ask for fewer`);
    if (without > 0) parts.push(`${plural(without, 'answer has', 'answers have')} no place: WKT, GeoJSON, latitude and longitude, or what an index of places has`);
    if (more) parts.push(`only the first ${count(rows.length)} answers are here`);
    return `${parts.join('; ')}.`;
  }

  function all() { view.fit(together(marks.map((m) => m.bounds))); draw(); }
  function zoom(factor, x, y) { view.by(factor, x, y); draw(); }

  function draw() {
    const {width, height} = view;
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    const {step, lngs, lats} = grid(view);
    const west = Math.max(0, view.x(view.lng - 180)), east = Math.min(width, view.x(view.lng + 180)), north = Math.max(0, view.y(90)), south = Math.min(height, view.y(-90));
    const edge = {x: west, y: north, width: Math.max(0, east - west), height: Math.max(0, south - north)};
    for (const [name, value] of Object.entries(edge)) window.setAttribute(name, value);
    fill(lines, h('rect', {class: 'map-earth', ...edge}),
      lngs.map((lng) => h('line', {class: lng % 360 === 0 && 'zero', x1: view.x(lng), x2: view.x(lng), y1: north, y2: south})),
      lats.map((lat) => h('line', {class: lat === 0 && 'zero', x1: west, x2: east, y1: view.y(lat), y2: view.y(lat)})));
    fill(labels, lngs.filter((lng) => view.x(lng) > west + 60 && view.x(lng) < east - 24).map((lng) => h('text', {x: view.x(lng) + 4, y: north + 14}, degrees(lng - 360 * Math.round(lng / 360), 'EW', step))),
      lats.filter((lat) => view.y(lat) > north + 28 && view.y(lat) < south - 4 && view.y(lat) < height - 48).map((lat) => h('text', {x: west + 6, y: view.y(lat) - 4}, degrees(lat, 'NS', step))));
    const bar = scale(view), x = width - bar.pixels - 16, y = height - 14;
    fill(ruler, h('rect', {x: x - 8, y: y - 20, width: bar.pixels + 16, height: 28, rx: 4}), h('path', {d: `M${x} ${y - 5}v5h${bar.pixels}v-5`}), h('text', {x: x + bar.pixels / 2, y: y - 6}, bar.text));
    fill(scene, ['area', 'line', 'point'].flatMap((kind) => marks.filter((m) => m.kind === kind && m.row !== chosen)).concat(marks.filter((m) => m.row === chosen)).map(drawMark));
  }

  function drawMark(mark) {
    const props = {class: ['map-mark', mark.kind, mark.row === chosen && 'chosen'], data: {row: rows.indexOf(mark.row)}};
    return view.turns(mark.bounds).map((turn) => {
      const at = ([lng, lat]) => `${view.x(lng + turn).toFixed(1)} ${view.y(lat).toFixed(1)}`;
      if (mark.kind === 'point') return h('circle', {...props, cx: view.x(mark.lines[0][0][0] + turn).toFixed(1), cy: view.y(mark.lines[0][0][1]).toFixed(1), r: mark.row === chosen ? 7 : 5});
      return h('path', {...props, 'fill-rule': 'evenodd', d: mark.lines.map((l) => `M${l.map(at).join('L')}${mark.kind === 'area' ? 'Z' : ''}`).join('')});
    });
  }

  // show shows a document beside the map, and its places in another colour.
  function show(row, {move = false} = {}) {
    chosen = row;
    card.hidden = row === null;
    if (row !== null) {
      const text = row.raw(), shown = text.length > mostText ? `${text.slice(0, mostText)}…` : text;
      fill(card, h('div', {class: 'map-head'}, row.id === '' ? h('b', null, 'A row') : link(href(row.id), {class: 'mono'}, row.id), button('', {icon: 'close', kind: 'quiet', label: 'Close', run: () => { show(null); frame.focus(); }})), h('pre', {tabindex: 0, 'aria-label': 'The document as JSON'}, shown));
      said.textContent = `${row.id}, ${documents.indexOf(row) + 1} of ${documents.length}`;
      if (move) {
        const b = together(marks.filter((m) => m.row === row).map((m) => m.bounds));
        view.to((b.west + b.east) / 2, (b.south + b.north) / 2);
      }
    }
    draw();
  }

  const place = (event) => { const box = frame.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  frame.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    pressed = {x: event.clientX, y: event.clientY, lng: view.lng, lat: view.lat, moved: false, row: event.target.closest?.('[data-row]')?.dataset.row};
    frame.setPointerCapture(event.pointerId);
  });
  frame.addEventListener('pointermove', (event) => {
    if (pressed === null) return;
    const x = event.clientX - pressed.x, y = event.clientY - pressed.y;
    if (!pressed.moved && Math.hypot(x, y) < 4) return;
    pressed.moved = true;
    view.to(pressed.lng - x / view.zoom / view.stretch, pressed.lat + y / view.zoom);
    draw();
  });
  frame.addEventListener('pointerup', () => {
    if (pressed !== null && !pressed.moved) show(pressed.row === undefined ? null : rows[Number(pressed.row)]);
    pressed = null;
  });
  frame.addEventListener('pointercancel', () => { pressed = null; });
  frame.addEventListener('wheel', (event) => { event.preventDefault(); zoom(2 ** (-event.deltaY / (event.deltaMode === 0 ? 300 : 6)), ...place(event)); }, {passive: false});
  frame.addEventListener('dblclick', (event) => zoom(2, ...place(event)));
  frame.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 80 / view.zoom, turn = {PageDown: 1, PageUp: -1}[event.key];
    const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
    if (move) { view.to(view.lng + move[0] * step / view.stretch, view.lat + move[1] * step); draw(); }
    else if (event.key === '+' || event.key === '=') zoom(2);
    else if (event.key === '-') zoom(0.5);
    else if (event.key === '0') all();
    else if (event.key === 'Escape' && chosen !== null) show(null);
    else if (turn && documents.length > 0) {
      const at = documents.indexOf(chosen);
      show(documents[at < 0 ? (turn > 0 ? 0 : documents.length - 1) : (at + turn + documents.length) % documents.length], {move: true});
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  const watcher = new ResizeObserver(() => {
    const {clientWidth: width, clientHeight: height} = frame;
    if (width === 0 || height === 0) return;
    if (view === null) { view = new View(width, height); all(); return; }
    Object.assign(view, {width, height});
    view.to(view.lng, view.lat);
    draw();
  });
  watcher.observe(frame);
  return {node, marks: marks.length, dispose: () => watcher.disconnect()};
}
