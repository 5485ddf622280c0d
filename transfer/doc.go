// Package transfer reads and writes documents in the formats of other systems: CSV,
// MongoDB's Extended JSON, and RavenDB's dumps. It knows nothing of a database: a reader
// turns each record into the JSON of one document, with its ID and its collection in
// @metadata as an export of Jay has them, and a writer takes such documents. The command
// stores and reads them; a server can do the same.
//
// Everything is a stream. A reader holds one record, at most as large as its options
// allow, and refuses a larger one; a writer holds one document. Digits of numbers are never
// changed: 1.10 and 9007199254740993 are written as they were read.
//
// A record that is wrong is an [*Error] with its place and its rule. If the reader
// can go on behind it, the error has the record in Raw.
//
// Readers and writers are for one goroutine.
package transfer
