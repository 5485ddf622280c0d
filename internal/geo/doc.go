// Package geo has places on the earth, how they lie to one another, and how far apart they are.
//
// A [Place] is points, lines, areas, circles and boxes, read from WKT or GeoJSON, or made of coordinates. The earth is a sphere of [Radius]; the
// lines between the vertices of lines and areas are the shortest ones on it, parts of great circles, and the sides of a box are meridians and
// parallels. So nothing special happens at the antimeridian and at the poles. Distances are in metres.
//
// Nothing here knows of documents and indexes: an index of places must find what these functions say of each place by itself. All work is
// bounded by the number of vertices, which is at most [MaxVertices] in a place. A Place is immutable, and safe for concurrent use.
package geo
