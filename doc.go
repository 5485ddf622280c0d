// Package jay is an embedded JSON document store that assigns IDs the way RavenDB
// does.
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
//
//	orders.Query().Where(jay.Eq("Status", "open")).OrderBy("-Total").Limit(10)
//	db.RQL("from Orders where Status = 'open' order by Total desc limit 10", nil)
//
// are the same query, in Go and as text. [DB.EnsureIndex] declares an index, which
// queries then use automatically; Explain shows how.
//
// # The path of an insert
//
//	Collection.Insert ─┐                  requested ID and body
//	DB.Put, DB.Store  ─┼─► DB.write       write.go, in five steps:
//	DB.Apply          ─┘
//	1. prepare  validate, take @metadata out, classify the ID   no lock, no number
//	2. draw     HiLo numbers and GUIDs, so that no refusal costs one
//	3. resolve  server-side ID, identity; document, change      in a transaction of
//	   & stage  entry, collection and index entries             the storage engine
//	4. commit   one batch for all who come together, one shared sync
//	5. publish  the caller's metadata and ID
//
// Step 3 may run more than once; it only reads and stages. Packages ids, metadata
// and storage do not know one another: this package joins them.
//
// # Caveats
//
// A database belongs to one process at a time; a second Open returns ErrLocked. A
// Document and its body never change, and must not be changed. Documents come in
// the byte order of their folded IDs, so users/10-A comes before users/2-A; the
// order of writes is that of Metadata.Etag. HiLo numbers have gaps after a crash,
// identities have none as long as every write is synced.
package jay
