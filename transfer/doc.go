// Package transfer reads and writes documents in the formats of other systems: CSV, MongoDB's
// Extended JSON, and RavenDB's dumps. It does not use a database: a reader turns each record into
// the JSON of one document, with its ID and its collection in @metadata, as in an export of Jay. A
// writer takes such documents. The caller, such as the command jay, stores and reads the documents.
//
// Readers and writers work on streams. A reader holds one record in memory, and refuses a record
// that is larger than its options allow. A writer holds one document. The digits of numbers never
// change: 1.10 and 9007199254740993 are written as they were read.
//
// An invalid record is an [*Error], which has the place and the rule. If the reader can continue
// after the record, the error has the record in Raw.
//
// Readers and writers are for one goroutine.
package transfer
