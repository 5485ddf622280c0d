// Places of documents, and where they lie on a map: what reads WKT and GeoJSON as the server does, sides that are great circles, the antimeridian and the poles, and
// the numbers of a map. It has no DOM, so that it can be tested. A position is [longitude, latitude] in degrees.

export const mostPlaces = 2000; // that are drawn
const mostVertices = 20_000; // of a place, as in the server
const mostDepth = 8; // of a document, in which places are looked for
const earth = 6_371_008.8; // metres
const radian = Math.PI / 180;

// A shape is {kind: 'point', at}, {kind: 'line', points}, or {kind: 'area', rings, straight}. The sides of a straight one are parallels and meridians.

// ---- Reading

const lists = /^\s*(POINT|LINESTRING|POLYGON|MULTIPOINT|MULTILINESTRING|MULTIPOLYGON|GEOMETRYCOLLECTION|CIRCLE|ENVELOPE)\b/i;

// shapesOfText returns the shapes of a text of WKT, or null.
export function shapesOfText(text) {
  if (!lists.test(text) || text.length > 2_000_000) return null;
  const parts = text.match(/[A-Za-z]+|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[(),=]/g);
  let at = 0;
  const take = (sign) => { if (parts[at++] !== sign) throw new TypeError('no WKT'); };
  const number = () => { const n = Number(parts[at++]); if (!Number.isFinite(n)) throw new TypeError('no number'); return n; };
  const position = () => { const p = [number(), number()]; while (parts[at] !== undefined && /^[-+.\d]/.test(parts[at])) at++; return checked(p); };
  const many = (read) => {
    if (/^EMPTY$/i.test(parts[at] ?? '')) { at++; return []; }
    const out = [];
    take('(');
    for (;;) { out.push(read()); if (parts[at] !== ',') break; at++; }
    take(')');
    return out;
  };
  const inner = () => { if (parts[at] !== '(') return position(); at++; const p = position(); take(')'); return p; };
  const shape = () => {
    const kind = parts[at++].toUpperCase();
    if (/^(Z|M|ZM)$/i.test(parts[at] ?? '')) at++;
    switch (kind) {
      case 'POINT': return many(position).map(point);
      case 'MULTIPOINT': return many(inner).map(point);
      case 'LINESTRING': return line(many(position));
      case 'MULTILINESTRING': return many(() => many(position)).flatMap(line);
      case 'POLYGON': return area(many(() => many(position)));
      case 'MULTIPOLYGON': return many(() => many(() => many(position))).flatMap(area);
      case 'GEOMETRYCOLLECTION': return many(shape).flat();
      case 'ENVELOPE': {
        take('(');
        const [west, , east, , north, , south] = [number(), take(','), number(), take(','), number(), take(','), number()];
        take(')');
        return box(west, east, north, south);
      }
      case 'CIRCLE': {
        take('(');
        const middle = position();
        if (/^d$/i.test(parts[at] ?? '')) { at++; take('='); }
        const radius = number();
        take(')');
        return circle(middle, radius);
      }
    }
    throw new TypeError(`no ${kind}`);
  };
  try {
    const out = shape();
    return at === parts.length ? out : null;
  } catch {
    return null;
  }
}

// shapesOfObject returns the shapes of an object of GeoJSON, or null.
export function shapesOfObject(value) {
  try {
    switch (value?.type) {
      case 'Point': return [point(checked(value.coordinates))];
      case 'MultiPoint': return value.coordinates.map((p) => point(checked(p)));
      case 'LineString': return line(value.coordinates.map(checked));
      case 'MultiLineString': return value.coordinates.flatMap((l) => line(l.map(checked)));
      case 'Polygon': return area(value.coordinates.map((ring) => ring.map(checked)));
      case 'MultiPolygon': return value.coordinates.flatMap((rings) => area(rings.map((ring) => ring.map(checked))));
      case 'GeometryCollection': return value.geometries.flatMap((one) => shapesOfObject(one) ?? []);
    }
  } catch { /* it is no place */ }
  return null;
}

function checked(p) {
  const [lng, lat] = p;
  if (!(Math.abs(lng) <= 180 && Math.abs(lat) <= 90)) throw new RangeError('no place');
  return [lng, lat];
}

function point(at) { return {kind: 'point', at}; }
function line(points) { return points.length > 1 && points.length <= mostVertices ? [{kind: 'line', points}] : []; }
function area(rings) { return rings.length > 0 && rings.every((ring) => ring.length > 3) && rings.flat().length <= mostVertices ? [{kind: 'area', rings}] : []; }

function box(west, east, north, south) {
  checked([west, south]);
  checked([east, north]);
  const to = east < west ? east + 360 : east;
  return [{kind: 'area', straight: true, rings: [[[west, south], [to, south], [to, north], [west, north], [west, south]]]}];
}

// circle returns the area of all points that are up to radius, in metres, from another one.
export function circle([lng, lat], radius) {
  const d = radius / earth, ring = [];
  if (!(d >= 0 && d <= Math.PI)) throw new RangeError('no circle');
  for (let i = 0; i <= 72; i++) {
    const turn = i * 5 * radian, φ = lat * radian;
    const to = Math.asin(Math.min(1, Math.max(-1, Math.sin(φ) * Math.cos(d) + Math.cos(φ) * Math.sin(d) * Math.cos(turn))));
    const by = Math.atan2(Math.sin(turn) * Math.sin(d) * Math.cos(φ), Math.cos(d) - Math.sin(φ) * Math.sin(to));
    ring.push([normal(lng + by / radian), to / radian]);
  }
  return [{kind: 'area', rings: [ring]}];
}

// normal returns a longitude between -180 and 180.
export function normal(lng) { return lng - 360 * Math.floor((lng + 180) / 360); }

const latitudes = /^lat(itude)?$/i, longitudes = /^(lng|lon|long|longitude)$/i;

// shapesOf returns the shapes that a document has: texts of WKT, objects of GeoJSON, and pairs of numbers that are called latitude and longitude, or as a query
// calls them: pairs are [['Lat'], ['Lng']], by steps from the document.
export function shapesOf(value, pairs = []) {
  const out = [];
  const walk = (one, depth) => {
    if (out.length >= mostPlaces || depth > mostDepth) return;
    if (typeof one === 'string') { out.push(...shapesOfText(one) ?? []); return; }
    if (one === null || typeof one !== 'object') return;
    if (Array.isArray(one)) { for (const v of one) walk(v, depth + 1); return; }
    const shapes = shapesOfObject(one);
    if (shapes !== null) { out.push(...shapes); return; }
    const names = Object.keys(one);
    pair(one[names.find((n) => latitudes.test(n))], one[names.find((n) => longitudes.test(n))]);
    for (const name of names) if (name !== '@metadata') walk(one[name], depth + 1);
  };
  const pair = (lat, lng) => {
    if (typeof lat !== 'number' || typeof lng !== 'number' || Math.abs(lat) > 90 || Math.abs(lng) > 180) return;
    if (!out.some((s) => s.kind === 'point' && s.at[0] === lng && s.at[1] === lat)) out.push(point([lng, lat]));
  };
  const reach = (path) => path.reduce((v, step) => v?.[step], value);
  for (const [lat, lng] of pairs) pair(reach(lat), reach(lng));
  walk(value, 0);
  return out.slice(0, mostPlaces);
}

// pairsOf returns the pairs of fields in texts with spatial.point(Lat, Lng): a query, or the fields of indexes.
export function pairsOf(text, alias = '') {
  const out = [];
  const steps = (path) => path.split('.').slice(alias !== '' && path.startsWith(`${alias}.`) ? 1 : 0);
  for (const m of text.matchAll(/spatial\s*\.\s*point\s*\(\s*([\p{L}_][\p{L}\p{N}_.]*)\s*,\s*([\p{L}_][\p{L}\p{N}_.]*)\s*\)/giu)) out.push([steps(m[1]), steps(m[2])]);
  return out;
}

// ---- Lines on the sphere

const vector = ([lng, lat]) => [Math.cos(lat * radian) * Math.cos(lng * radian), Math.cos(lat * radian) * Math.sin(lng * radian), Math.sin(lat * radian)];

// along returns the positions of a great circle from a to b, without a, so close that lines between them can be drawn.
export function along(a, b, step = 2) {
  const u = vector(a), v = vector(b);
  const angle = Math.acos(Math.min(1, Math.max(-1, u[0] * v[0] + u[1] * v[1] + u[2] * v[2])));
  const n = Math.ceil(angle / radian / step), out = [];
  for (let i = 1; i < n; i++) {
    const s = Math.sin(angle * (1 - i / n)) / Math.sin(angle), t = Math.sin(angle * i / n) / Math.sin(angle);
    const w = u.map((x, k) => s * x + t * v[k]);
    out.push([Math.atan2(w[1], w[0]) / radian, Math.asin(Math.min(1, Math.max(-1, w[2]))) / radian]);
  }
  out.push(b);
  return out;
}

// unrolled returns positions whose longitudes go on over the antimeridian: each is less than half of the way around from the one before.
export function unrolled(points) {
  const out = [];
  for (const [lng, lat] of points) {
    const before = out.at(-1)?.[0];
    // At a pole all longitudes are one: it goes up along the meridian that it came on.
    const pole = Math.abs(lat) > 90 - 1e-9 && before !== undefined;
    out.push([pole ? before : before === undefined ? lng : lng + 360 * Math.round((before - lng) / 360), lat]);
  }
  return out;
}

// outline returns a line, or a ring, as it is drawn. A ring around a pole goes up to the edge of the map there.
export function outline(points, {ring = false, straight = false} = {}) {
  if (straight) return points;
  const dense = [points[0]];
  for (let i = 1; i < points.length; i++) dense.push(...along(points[i - 1], points[i]));
  const out = unrolled(dense);
  const turn = out.at(-1)[0] - out[0][0];
  if (!ring || Math.abs(turn) < 180) return out;
  // Inside is the smaller side: that of the pole to which the ring is nearer, on average.
  let mean = 0;
  for (let i = 1; i < out.length; i++) mean += (out[i][0] - out[i - 1][0]) * Math.sin((out[i][1] + out[i - 1][1]) / 2 * radian);
  const pole = mean * turn > 0 ? 90 : -90;
  return [...out, [out.at(-1)[0], pole], [out[0][0], pole], out[0]];
}

// drawn returns a shape with its outlines, and the bounds of them: {west, east, south, north}.
export function drawn(shape) {
  const lines = shape.kind === 'point' ? [[shape.at]] : shape.kind === 'line' ? [outline(shape.points)] : shape.rings.map((ring) => outline(ring, {ring: true, straight: shape.straight}));
  const bounds = {west: Infinity, east: -Infinity, south: Infinity, north: -Infinity};
  // A hole stands where its area does.
  for (let i = 1; i < lines.length; i++) {
    const by = 360 * Math.round((lines[0][0][0] - lines[i][0][0]) / 360);
    if (by !== 0) lines[i] = lines[i].map(([lng, lat]) => [lng + by, lat]);
  }
  for (const l of lines) for (const [lng, lat] of l) {
    bounds.west = Math.min(bounds.west, lng); bounds.east = Math.max(bounds.east, lng);
    bounds.south = Math.min(bounds.south, lat); bounds.north = Math.max(bounds.north, lat);
  }
  return {kind: shape.kind, lines, bounds};
}

// together returns the bounds of several: the shortest way around the earth that has all of them. It is null for none.
export function together(all) {
  if (all.length === 0) return null;
  const south = Math.min(...all.map((b) => b.south)), north = Math.max(...all.map((b) => b.north));
  const sorted = all.map((b) => { const west = normal(b.west); return [west, west + b.east - b.west]; }).sort((a, b) => a[0] - b[0]);
  // The widest gap is left out.
  let gap = -1, west = sorted[0][0], reach = sorted[0][1];
  for (let i = 1; i <= sorted.length; i++) {
    const next = i < sorted.length ? sorted[i][0] : sorted[0][0] + 360;
    if (next - reach > gap) { gap = next - reach; west = normal(next); }
    if (i < sorted.length) reach = Math.max(reach, sorted[i][1]);
  }
  return {south, north, west, east: gap <= 0 ? west + 360 : west + 360 - gap};
}

// ---- The map: parallels and meridians are straight, and as long as they are at one parallel, so that nothing is out of its shape there.

export class View {
  constructor(width, height) { Object.assign(this, {width, height, lng: 0, lat: 0, stretch: 1, zoom: 1}); this.fit(null); }

  // A degree of latitude is zoom pixels, and one of longitude zoom * stretch.
  x(lng) { return this.width / 2 + (lng - this.lng) * this.zoom * this.stretch; }
  y(lat) { return this.height / 2 - (lat - this.lat) * this.zoom; }
  at(x, y) { return [this.lng + (x - this.width / 2) / this.zoom / this.stretch, this.lat - (y - this.height / 2) / this.zoom]; }

  get least() { return Math.min(this.height / 180, this.width / 360 / this.stretch); } // the whole earth
  get most() { return 400_000; } // about 30 cm a pixel

  // fit shows bounds, or the whole earth, with some space around.
  fit(bounds) {
    const all = bounds ?? {west: -180, east: 180, south: -90, north: 90};
    const lat = (all.south + all.north) / 2;
    this.stretch = all.north - all.south > 60 || all.east - all.west > 120 ? 1 : Math.max(0.1, Math.cos(lat * radian));
    const margin = bounds === null ? 1 : 0.8;
    const zoom = Math.min(margin * this.height / Math.max(all.north - all.south, 0.01), margin * this.width / Math.max(all.east - all.west, 0.01) / this.stretch);
    return this.to((all.west + all.east) / 2, lat, zoom);
  }

  // to moves the middle, and keeps the map on the earth.
  to(lng, lat, zoom = this.zoom) {
    this.zoom = Math.min(this.most, Math.max(this.least, zoom));
    const spare = Math.max(0, 90 - this.height / 2 / this.zoom);
    this.lat = Math.min(spare, Math.max(-spare, lat));
    this.lng = normal(lng);
    return this;
  }

  // by zooms, with the place at a pixel staying there.
  by(factor, x = this.width / 2, y = this.height / 2) {
    const [lng, lat] = this.at(x, y);
    const zoom = Math.min(this.most, Math.max(this.least, this.zoom * factor));
    return this.to(lng - (x - this.width / 2) / zoom / this.stretch, lat + (y - this.height / 2) / zoom, zoom);
  }

  // turns returns by how many degrees a shape is moved, as the earth is round, to be in view: once, or twice for one over the edge.
  turns({west, east}) {
    const half = Math.min(180, this.width / 2 / this.zoom / this.stretch);
    const out = [];
    for (let n = Math.ceil((this.lng - half - east) / 360); n <= Math.floor((this.lng + half - west) / 360) && out.length < 3; n++) out.push(n * 360);
    return out;
  }
}

// grid returns the lines of a graticule in view, which are at least so many pixels apart: {step, lngs, lats}.
export function grid(view, apart = 90) {
  const step = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 45].find((s) => s * view.zoom * view.stretch >= apart) ?? 90;
  const [west, north] = view.at(0, 0), [east, south] = view.at(view.width, view.height);
  const between = (from, to) => { const out = []; for (let i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9 && out.length < 100; i++) out.push(Number((i * step).toFixed(6))); return out; };
  return {step, lngs: between(Math.max(west, view.lng - 180), Math.min(east, view.lng + 180)), lats: between(Math.max(-90, south), Math.min(90, north))};
}

// scale returns the length of a bar, round and of at most so many pixels in the middle of the view: {metres, pixels, text}.
export function scale(view, most = 140) {
  const metres = earth * radian * Math.cos(view.lat * radian) / view.zoom / view.stretch; // of a pixel to the east
  const longest = most * metres, power = 10 ** Math.floor(Math.log10(longest));
  const round = [5, 2, 1].find((n) => n * power <= longest) * power;
  return {metres: round, pixels: round / metres, text: round >= 1000 ? `${round / 1000} km` : round >= 1 ? `${round} m` : `${Math.round(round * 100)} cm`};
}

// degrees writes a longitude ('E', 'W') or a latitude ('N', 'S').
export function degrees(n, [plus, minus], step = 0.0001) {
  const places = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const text = Math.abs(n).toFixed(places);
  return `${text}°${Number(text) === 0 || Number(text) === 180 ? '' : ` ${n > 0 ? plus : minus}`}`;
}
