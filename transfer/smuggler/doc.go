// Package smuggler imports documents into a database and exports them: the one import and
// the one export of the command and of the server. RavenDB calls its own the same.
//
// A [Format] says how records are read and written. The formats of this package are those of
// [All]: NDJSON, JSON, CSV, MongoDB's Extended JSON and RavenDB's dumps, by package transfer.
// A program may have others, as the command has SQLite.
//
// An [Importer] stores the records of an [Input] in batches, one transaction each. It keeps what an export wrote: IDs, collections, custom
// metadata, attachments, revisions, counters, subscriptions and compare-exchange values. A
// record that is refused ends the import, or goes to [Rejects]. With a name in
// ImportOptions.Resume each transaction also notes how far the import is, so that one that
// was killed goes on and stores nothing twice.
//
// An [Exporter] writes documents, and what belongs to them, as of one moment.
//
// Both are streams: beside a batch they hold one record. Whoever must count the memory does
// so with the functions Room and Keep of the options. Importers and exporters are for one
// goroutine.
package smuggler
