import assert from 'node:assert/strict';
import {test} from 'node:test';
import {View, along, circle, degrees, drawn, grid, normal, outline, pairsOf, scale, shapesOf, shapesOfObject, shapesOfText, together, unrolled} from '../assets/places.js';

const near = (a, b, by = 1e-6) => assert.ok(Math.abs(a - b) <= by, `${a} is not ${b}`);

test('WKT', () => {
  assert.deepEqual(shapesOfText(' point ( 13.4 52.5 7)'), [{kind: 'point', at: [13.4, 52.5]}]);
  assert.deepEqual(shapesOfText('POINT Z (1 2 3)'), [{kind: 'point', at: [1, 2]}]);
  assert.deepEqual(shapesOfText('MULTIPOINT((1 2),(3 4))'), shapesOfText('MULTIPOINT(1 2, 3 4)'));
  assert.deepEqual(shapesOfText('LINESTRING(0 0, 1e1 -1.5)'), [{kind: 'line', points: [[0, 0], [10, -1.5]]}]);
  assert.equal(shapesOfText('POLYGON((0 0, 9 0, 9 9, 0 0),(1 1, 2 1, 2 2, 1 1))')[0].rings.length, 2);
  assert.equal(shapesOfText('GEOMETRYCOLLECTION(POINT(1 2), MULTIPOLYGON(((0 0, 9 0, 9 9, 0 0))))').length, 2);
  assert.deepEqual(shapesOfText('ENVELOPE(170, -170, 10, -10)')[0].rings[0][1], [190, -10]);
  assert.equal(shapesOfText('CIRCLE(13 52 d=500)')[0].rings[0].length, 73);
  assert.deepEqual(shapesOfText('POINT EMPTY'), []);
  for (const text of ['Berlin', 'POINT', 'POINT(1)', 'POINT(181 0)', 'POINT(0 91)', 'POINT(1 2) x', 'LINESTRING(1 2', 'Point of view', 'CIRCLE(0 0 d=-1)', '']) assert.equal(shapesOfText(text), null, text);
});

test('GeoJSON, and what is none', () => {
  assert.deepEqual(shapesOfObject({type: 'Point', coordinates: [1, 2, 3]}), [{kind: 'point', at: [1, 2]}]);
  assert.equal(shapesOfObject({type: 'Polygon', coordinates: [[[0, 0], [9, 0], [9, 9], [0, 0]]]})[0].kind, 'area');
  for (const value of [null, {}, {type: 'Point'}, {type: 'Point', coordinates: [1]}, {type: 'Point', coordinates: ['a', 2]}, {type: 'Point', coordinates: [0, 95]}, {type: 'Polygon', coordinates: 5}]) assert.equal(shapesOfObject(value), null, JSON.stringify(value));
});

test('places of documents', () => {
  assert.deepEqual(shapesOf({Name: 'a', At: {lat: 1, Lng: 2}, Stops: [{Where: 'POINT(3 4)'}, {Where: {type: 'Point', coordinates: [5, 6]}}]}).map((s) => s.at), [[2, 1], [3, 4], [5, 6]]);
  assert.deepEqual(shapesOf({N: 1, E: 2, Latitude: 91, Longitude: 0}, [[['N'], ['E']]]).map((s) => s.at), [[2, 1]]);
  assert.deepEqual(shapesOf({lat: 1, lng: 2}, [[['lat'], ['lng']]]).length, 1, 'once');
  assert.deepEqual(shapesOf({'@metadata': {lat: 1, lng: 2}, lat: 'x', lng: 2}), []);
  assert.deepEqual(shapesOf(null), []);
  assert.deepEqual(pairsOf('from Shops as s where spatial.within(spatial.point(s.At.N, s.At.E), spatial.circle(1, 2, 3)) order by spatial.distance(spatial.point(s.At.N, s.At.E), spatial.point(1, 2))', 's').map(String), ['At,N,At,E', 'At,N,At,E']);
  assert.deepEqual(pairsOf('spatial.point(1, 2)'), []);
});

test('great circles', () => {
  const way = along([0, 60], [90, 60]);
  const highest = Math.max(...way.map((p) => p[1]));
  near(highest, Math.atan(Math.tan(60 * Math.PI / 180) * Math.SQRT2) * 180 / Math.PI, 0.05); // the vertex of a great circle
  assert.deepEqual(along([1, 2], [1, 2]), [[1, 2]]);
  for (const [lng] of along([170, 0], [-170, 0])) assert.ok(Math.abs(lng) >= 170);
});

test('the antimeridian and the poles', () => {
  assert.deepEqual(unrolled([[170, 0], [-170, 0], [170, 5]]).map((p) => p[0]), [170, 190, 170]);
  const {bounds} = drawn({kind: 'area', rings: [[[175, -1], [-175, -1], [-175, 1], [175, 1], [175, -1]]]});
  near(bounds.west, 175); near(bounds.east, 185);
  const cap = outline([[0, 80], [120, 80], [-120, 80], [0, 80]], {ring: true});
  assert.equal(Math.max(...cap.map((p) => p[1])), 90);
  near(Math.max(...cap.map((p) => p[0])) - Math.min(...cap.map((p) => p[0])), 360);
  assert.equal(Math.min(...outline([[0, -80], [-120, -80], [120, -80], [0, -80]], {ring: true}).map((p) => p[1])), -90);
  const around = drawn(circle([10, 89], 500_000)[0]).bounds;
  assert.equal(around.north, 90);
  near(around.east - around.west, 360);
  const small = drawn(circle([179.9, 0], 100_000)[0]).bounds;
  near(small.east - small.west, 2 * 100_000 / 111_195, 0.01);
  assert.deepEqual([-180, 180, 190, -541].map(normal), [-180, -180, -170, 179]);
});

test('bounds go the short way around', () => {
  const point = (lng, lat) => ({west: lng, east: lng, south: lat, north: lat});
  const b = together([point(179, 1), point(-179, -1), point(170, 0)]);
  near(b.west, 170); near(b.east, 181); near(b.south, -1);
  assert.deepEqual(together([point(5, 5)]), {south: 5, north: 5, west: 5, east: 5});
  assert.equal(together([]), null);
  const all = together([{west: -180, east: 180, south: -90, north: 90}]);
  near(all.east - all.west, 360);
});

test('a view goes there and back, and stays on the earth', () => {
  const view = new View(800, 400);
  near(view.zoom, 400 / 180);
  assert.equal(view.stretch, 1);
  view.fit({west: 13, east: 14, south: 52, north: 53});
  near(view.stretch, Math.cos(52.5 * Math.PI / 180));
  const [lng, lat] = view.at(view.x(13.3), view.y(52.2));
  near(lng, 13.3); near(lat, 52.2);
  const before = view.at(100, 50);
  view.by(2, 100, 50);
  near(view.at(100, 50)[0], before[0]); near(view.at(100, 50)[1], before[1]);
  for (let i = 0; i < 60; i++) view.by(2);
  assert.equal(view.zoom, view.most);
  for (let i = 0; i < 80; i++) view.by(0.5);
  assert.equal(view.zoom, view.least);
  view.fit({west: 0, east: 0, south: 90, north: 90});
  assert.ok(view.y(90) >= -1e-6 && view.y(90) <= view.height / 2, 'a pole is at the edge of the view, or in it');
  view.fit(null);
  assert.deepEqual(view.turns({west: 175, east: 185}), [-360, 0], 'at both edges');
  view.to(180, 0);
  assert.deepEqual(view.turns({west: 175, east: 185}), [-360], 'in the middle');
});

test('a graticule and a scale are round', () => {
  const view = new View(800, 400);
  const whole = grid(view);
  assert.equal(whole.step, 45);
  assert.deepEqual(whole.lats, [-90, -45, 0, 45, 90]);
  view.fit({west: 13.3, east: 13.5, south: 52.4, north: 52.6});
  assert.ok(grid(view).lngs.length >= 2 && grid(view).lngs.length <= 9);
  for (let zoom = 3; zoom < 400_000; zoom *= 1.7) {
    view.to(13, 52, zoom);
    const {metres, pixels} = scale(view);
    assert.ok(pixels <= 140 && pixels >= 140 / 2.6, `${pixels}`);
    // A bar of so many pixels to the east is so long by haversines.
    const degree = pixels / view.zoom / view.stretch * Math.PI / 180;
    near(2 * Math.asin(Math.cos(view.lat * Math.PI / 180) * Math.sin(degree / 2)) * 6_371_008.8 / metres, 1, 0.02);
  }
  assert.equal(scale(new View(800, 400).to(0, 0, 111_195)).text, '100 m');
  assert.equal(scale(new View(800, 400).to(0, 0, 3)).text, '5000 km');
  assert.deepEqual([degrees(13.5, 'EW', 0.5), degrees(-0.05, 'NS', 0.05), degrees(0, 'NS', 1), degrees(-90, 'NS', 45), degrees(180, 'EW', 45)], ['13.5° E', '0.05° S', '0°', '90° S', '180°']);
});
