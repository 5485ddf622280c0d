// Package metadata knows what surrounds a document's body: the check of the
// JSON that comes in ([Scan]), the `@metadata` object that is taken out of it
// ([Parse]), the record in which body and metadata are stored ([Header]), and
// the JSON that is given back ([AppendDocument]).
//
// A body is validated once, by Scan, when it comes in. Everything behind it
// relies on that: gjson and sjson never report malformed input.
//
// The stored bytes are described at [Header] and in docs/format.md.
package metadata
