// Package jay is an embedded document database: it keeps JSON documents and Go
// structs in a directory, with indexes, queries and transactions, without a server.
//
// [Open] a directory and put JSON in it:
//
//	db, err := jay.Open("acorns.jay", nil)
//	...
//	meta, err := db.Put(ctx, "users/ann", json.RawMessage(`{"Name":"Ann"}`))
//	doc, err := db.Get(ctx, meta.ID)
//
// Or use a [Collection], which stores Go values:
//
//	users, err := jay.CollectionOf[User](db)
//	ann := &User{Name: "Ann"}
//	_, err = users.Insert(ctx, ann) // ann.ID is now users/1-A
//	ann, err = users.Get(ctx, ann.ID)
//
// # IDs
//
// The requested ID selects the strategy that makes the final ID, as in RavenDB:
//
//	requested ID         final ID
//	"users/ann"          users/ann                                (semantic)
//	""                   a random UUID                            (GUID)
//	"users/"             users/0000000000000000042-A              (server-side)
//	"users|"             users/7                                  (identity)
//	no ID                users/33-A                               (HiLo)
//
// "No ID" means an insert into a Collection of a value with an empty ID field, or a call of [DB.Store]. The
// comparison of IDs ignores case, unless the database was created with Options.CaseSensitive. docs/ids.md has
// the rules.
//
// # Working with documents
//
// [DB.Update] runs a function as one serializable transaction, [DB.View] as a read-only transaction. A
// [Session] is a unit of work, modelled on RavenDB's session: it assigns IDs at once, keeps one entity for each
// document, and saves the entities that were changed. [DB.Patch] edits a document in place; [DB.BulkInsert] is
// the fastest way to load many. [DB.Revisions] reads older versions of documents, if the database is configured
// to keep them.
//
//	orders.Query().Where(jay.Eq("Status", "open")).OrderBy("-Total").Limit(10)
//	db.RQL("from Orders where Status = 'open' order by Total desc limit 10", nil)
//
// The two lines are the same query, in Go and as text. [DB.EnsureIndex] declares an index, which queries then
// use automatically. Explain shows the plan of a query.
//
// Conditions, orders and indexes name a field by its path of JSON names, such as "Address.City", not by the
// names of Go fields.
//
// # Concurrency and durability
//
// Any number of goroutines may use a [DB], a [Collection] or a [BulkWriter] at once. One goroutine at a time
// may use a [Session] or a [Batch]. A write is on disk when its call returns, and concurrent writes share the
// syncs (see Options.Durability). Each write is atomic: a refused write changes nothing.
//
// # Errors
//
// Compare errors with errors.Is: ErrNotFound, ErrExists, ErrConflict and the others. Types such as
// [ConflictError] and [DocumentError] hold the details. docs/errors.md lists all errors, with a remedy and an
// HTTP status for each.
//
// # Packages
//
// Programs need only this package. The packages ids, index, metadata, patch, query and storage define the types
// that this package aliases, and document them. Package storage/storagetest has a disk in memory that fails on
// request, for tests.
//
// # Caveats
//
// One process at a time can open a database; a second Open returns ErrLocked. A Document and its body are
// immutable. Iterations follow the byte order of folded IDs, so users/10-A comes before users/2-A.
// Metadata.Etag gives the order of writes. HiLo numbers have gaps after a crash. Identities have no gaps as
// long as every write is synced.
package jay
