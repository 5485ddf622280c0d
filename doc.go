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
// or Go values, by way of a [Collection]:
//
//	users, err := jay.CollectionOf[User](db)
//	ann := &User{Name: "Ann"}
//	_, err = users.Insert(ctx, ann) // ann.ID is now users/1-A
//	ann, err = users.Get(ctx, ann.ID)
//
// # IDs
//
// The requested ID decides how the final one is made, as in RavenDB:
//
//	asked for            the document gets
//	"users/ann"          users/ann                                (semantic)
//	""                   a random UUID                            (GUID)
//	"users/"             users/0000000000000000042-A              (server-side)
//	"users|"             users/7                                  (identity)
//	nothing at all       users/33-A                               (HiLo)
//
// "Nothing at all" is an insert into a Collection whose ID field is empty, or
// [DB.Store]. IDs are compared without regard to case, unless the database was
// created with Options.CaseSensitive. docs/ids.md has the rules.
//
// # Working with documents
//
// [DB.Update] runs a function as one serializable transaction, [DB.View] as one
// that only reads. A [Session] is a unit of work after RavenDB's: it assigns IDs at
// once, keeps one entity for each document, and saves what was changed. [DB.Patch]
// edits a document in place; [DB.BulkInsert] is the fastest way to load many.
// [DB.Revisions] has the older versions of documents, if they are to be kept.
//
//	orders.Query().Where(jay.Eq("Status", "open")).OrderBy("-Total").Limit(10)
//	db.RQL("from Orders where Status = 'open' order by Total desc limit 10", nil)
//
// are the same query, in Go and as text. [DB.EnsureIndex] declares an index, which
// queries then use automatically; Explain shows how.
//
// A field of a condition, an order or an index is a path of JSON names, such as
// "Address.City", and not of the names in Go.
//
// # Concurrency and durability
//
// A [DB], a [Collection] and a [BulkWriter] may be used by any number of goroutines; a
// [Session] and a [Batch] by one at a time. A write is on disk when it returns, and
// concurrent writes share the syncs (see Options.Durability). Each write is atomic: a
// refused one changes nothing.
//
// # Errors
//
// Errors are compared with errors.Is: ErrNotFound, ErrExists, ErrConflict and the
// others. Types such as [ConflictError] and [DocumentError] have the details.
// docs/errors.md lists all of them, with what to do and an HTTP status.
//
// # Packages
//
// Programs need this package only. The packages ids, index, metadata, patch, query
// and storage hold the types behind the aliases here, and say what they promise.
// Package storage/storagetest has a disk in memory that fails on request, for tests.
//
// # Caveats
//
// A database belongs to one process at a time; a second Open returns ErrLocked. A
// Document and its body are immutable. Iterations are in the byte order of folded
// IDs, so that users/10-A comes before users/2-A; the order of writes is that of
// Metadata.Etag. HiLo numbers have gaps after a crash; identities have none as long
// as every write is synced.
package jay
