package jay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/definitions"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/native"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/storage"
)

// Index declares a secondary index on one collection, for EnsureIndex. Its fields
// (see package index):
//
//	Name    string    the default is the fields, joined by commas
//	Fields  []string  one to eight paths, such as "Address.City", or expressions, such as "Price * Quantity"; "-Total" is descending
//	Unique  bool      refuses a document that has the values of another one
//	Where   string    indexes only documents of which this condition is true
//	Kind    string    its kind; "" for an ordered index, "groups" for counts and sums
//	Options map[string]string  what its kind lets it choose, such as "strict"
//
// and its methods:
//
//	OptionTexts()  the options as "name=value", by name
type Index = index.Index

// IndexState is the stage of an index's life: IndexBuilding, IndexReady or
// IndexDropping. See package index.
type IndexState = index.State

const (
	// IndexBuilding is an index to which existing documents are being added. Writes
	// maintain it already; queries do not use it yet.
	IndexBuilding = index.Building

	// IndexReady is an index that queries use.
	IndexReady = index.Ready

	// IndexDropping is an index whose entries are being removed.
	IndexDropping = index.Dropping
)

// IndexInfo is the declaration of an index and its state, as Indexes returns them. Its fields (see
// package index), and those of the embedded Index:
//
//	Index                   its declaration
//	Collection  string      the collection that it indexes
//	State       IndexState  whether it is being built, ready or being dropped
//	Automatic   bool        whether a query made it, by Options.AutoIndexes
//	Errors      int64       the number of documents for which an expression of the index fails: see IndexView.Errors
//	OptionTexts()           see Index
type IndexInfo = index.Info

// UniqueError is returned for a write that would give two documents the same values
// in a unique index. Nothing was changed. errors.Is(err, ErrUnique) is true. Its
// fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Value       string  the values, as a JSON array
//	ID          string  the refused document
//	Other       string  the document that has the values
type UniqueError = index.UniqueError

// KindError is returned for an index of a kind that this version does not know: by
// EnsureIndex, and by writes into a collection that a newer version has given one. Nothing
// was changed. errors.Is(err, ErrIndex) is true. Its fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Kind        string  its kind
type KindError = index.KindError

// OptionError is returned for an option of an index that its kind does not have, or not with
// this value: by EnsureIndex, and by writes into a collection that a newer version has given such an index. Nothing
// was changed. errors.Is(err, ErrIndex) is true. Its fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Kind        string  its kind
//	Option      string  the name of the option
//	Value       string  its value; "" for an option that is missing
//	Rule        string  the rule that it breaks
type OptionError = index.OptionError

// FunctionError is returned where a Go function is needed that the program has not registered by RegisterFunction: by ComputedIndexes.Ensure, and by
// writes into a collection that has an index with it. Nothing was changed. errors.Is(err, ErrIndex) is true. Its
// fields (see package index):
//
//	Index       string  the name of the index, or of its part
//	Collection  string  its collection
//	Function    string  the name of the function
//	Version     string  its version
type FunctionError = index.FunctionError

// ReferrersError is returned for a write of a document that more than 1,024 others load in one index: what they have in it would be made again in the
// same commit. Nothing is written. errors.Is(err, ErrIndex) is true. Its fields (see package index):
//
//	Index       string  the name of the index, or of its part
//	Collection  string  of the documents that refer to it
//	ID          string  of the document that was to be written
//	Limit       int     of how many documents the entries are made again
type ReferrersError = index.ReferrersError

// ComputeError is returned for a write of a document for which an expression of a strict index fails, such as by a division by
// zero, and by the build of such an index, which ends at the document. Nothing was changed. errors.Is(err, ErrInvalidDocument) is
// true. Its fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Field       string  the expression
//	ID          string  the refused document
//	Reason      string  such as "/: a division by zero"
type ComputeError = index.ComputeError

// ValueError is returned for a write of a document with a value that a strict index cannot hold, such as a vector of another number of
// dimensions than an index of the kind "vectors" has, and by the build of such an index, which ends at the document. Nothing was changed.
// errors.Is(err, ErrInvalidDocument) is true. Its fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Field       string  the field
//	ID          string  the refused document
//	Rule        string  such as "a vector of this index has 768 numbers"
//	Value       string  what breaks it, such as "there are 3"
type ValueError = index.ValueError

// Indexes returns the indexes of a collection, or all of them if collection
// is "", by collection and name.
func (db *DB) Indexes(ctx context.Context, collection string) ([]IndexInfo, error) {
	return db.core.ListIndexes(ctx, collection)
}

// IndexError says why an expression of an index fails for a document. Its fields (see Failure in package index):
//
//	ID      string  the document
//	Field   string  the expression
//	Reason  string  such as "/: a division by zero"
type IndexError = index.Failure

// IndexView reads what one index has: see IndexOf. It is safe for concurrent use.
type IndexView struct{ of core.IndexView }

// IndexOf returns a view of an index of a collection. Whether there is such an index is found out by its methods.
func IndexOf(db *DB, collection, name string) IndexView {
	return IndexView{core.IndexView{DB: &db.core, Collection: collection, Name: name}}
}

// Errors returns the documents for which expressions of an index fail, in the order of their folded IDs, those behind the ID after, which
// may be "". It returns an IndexError for each expression that fails for one of at most limit documents; 0 is 100, and
// 10,000 is the most. So a call with the last ID of the one before continues it.
//
// An index has the errors of all its documents, from the commit that makes one to the commit that changes or deletes the document. A document
// that has expired counts until it is deleted. ErrIndex is returned if the collection has no such index.
func (v IndexView) Errors(ctx context.Context, after string, limit int) ([]IndexError, error) {
	return v.of.Errors(ctx, after, limit)
}

// IndexTerm is a term that an index of words has, as its analyzer makes it of a word: see Term in package index. Its fields:
//
//	Text       string  the term
//	Documents  int64   how many documents have it
type IndexTerm = index.Term

// IndexTermList says which terms IndexView.Terms returns: see TermList in package index. Its fields:
//
//	Field   string  a field of the index; "" is the first one
//	Prefix  string  that the terms begin with, folded as they are
//	After   string  a term: those behind it are returned
//	Limit   int     of terms; 0 is 100, and 10,000 is the most
type IndexTermList = index.TermList

// Terms returns terms that an index of kind text has of a field, in the order of their bytes, each with the number of documents that have it
// now: a call with the last term of the one before continues it. A document that has expired counts until it is deleted. ErrIndex is returned if
// the collection has no such index, or it is not ready.
func (v IndexView) Terms(ctx context.Context, list IndexTermList) ([]IndexTerm, error) {
	return v.of.Terms(ctx, list)
}

// IndexOption changes one EnsureIndex.
type IndexOption func(*indexOptions)

type indexOptions struct{ inner indexer.Options }

// IndexProgress makes EnsureIndex report now and then how many documents have been
// added. EnsureIndexes reports it for one index after another: those that are built in one pass are
// at the same number.
func IndexProgress(fn func(documents int64)) IndexOption {
	return func(o *indexOptions) { o.inner.Progress = fn }
}

// ReplaceIndex makes EnsureIndex replace an index of the same name that is declared
// otherwise. The new one is built beside the old one, which answers queries until the
// new one is ready and is dropped then; meanwhile Indexes has both. If the process ends,
// the next Open continues. If documents refuse the new one, the old one stays.
func ReplaceIndex() IndexOption {
	return func(o *indexOptions) { o.inner.Replace = true }
}

// EnsureIndex makes sure that a collection has an index, and returns nil only when
// the index is ready. An existing index is left as it is; one of the same name with
// another declaration is ErrIndexExists, unless ReplaceIndex is among opts.
//
// A new index is built while reads and writes continue. If ctx ends before it is
// ready, EnsureIndex returns its error and the build continues; if the process
// ends, the next Open continues it. If documents violate the uniqueness, or have
// more entries than an index can hold, EnsureIndex returns the *UniqueError or
// *DocumentError and there is no index.
//
// EnsureIndex continues what an earlier call has left unfinished. If an index of
// the name is being dropped, it waits and then builds the index anew; if a build
// has failed with the disk, it builds again. If the index is dropped while
// EnsureIndex waits for it, the error is ErrIndex.
func (db *DB) EnsureIndex(ctx context.Context, collection string, ix Index, opts ...IndexOption) error {
	return db.EnsureIndexes(ctx, collection, []Index{ix}, opts...)
}

// EnsureIndexes makes sure that a collection has these indexes, and returns nil only when
// all are ready. Those that are new are declared in one commit and built in one pass over the
// documents, which takes much less time than one EnsureIndex after another.
//
// If one of the declarations is invalid or is refused with ErrIndexExists, nothing
// is changed. Otherwise each index ends as EnsureIndex would end it: documents that refuse one of
// them, by its uniqueness or its bounds, do not keep the others from becoming ready. The error joins those of
// all indexes that are not. Two declarations of one name must be the same.
func (db *DB) EnsureIndexes(ctx context.Context, collection string, indexes []Index, opts ...IndexOption) error {
	var o indexOptions
	for _, option := range opts {
		option(&o)
	}
	return db.core.EnsureIndexes(ctx, collection, indexes, o.inner)
}

// DropIndex removes an index of a collection and its entries. Queries that have
// begun are not affected; a build in progress is cancelled, and its EnsureIndex
// returns ErrIndex. DropIndex returns ErrIndex if there is no such index. If ctx
// ends before the index is removed, DropIndex returns its error and the drop
// continues; if the process ends, the next Open continues it.
func (db *DB) DropIndex(ctx context.Context, collection, name string) error {
	return db.core.DropIndex(ctx, collection, name)
}

// EnsureIndexes makes sure that the collection has the indexes declared by the tags
// of T's fields, and returns when all are ready:
//
//	type User struct {
//		ID    string
//		Email string    `jay:"unique"`
//		City  string    `jay:"index,index=byCityAndAge"`
//		Born  time.Time `jay:"index=byCityAndAge,desc"`
//		Tags  []string  `jay:"index"`
//		About string    `jay:"text,analyzer=english"`
//		Lat   float64   `jay:"latitude"`
//		Lng   float64   `jay:"longitude"`
//		Area  string    `jay:"place"`
//		Home  Address   // fields of its own may be tagged, too
//	}
//
// "text" enters a field into an index of words, called "text": all fields of T with the word are in one, and those with "text=NAME" in one of that
// name. Behind it "analyzer=english" and "weight=3" say what is so of this field: see Index.Options.
//
// "latitude" and "longitude" are two numbers of one struct that are a place, and "place" is a text of WKT or an object of GeoJSON: each has an index of
// the kind "places", whose name may follow, as in "latitude=home".
//
// "index" and "unique" declare an index on the field; with a name, all fields with
// that name form one index, in the order of the struct. A name has letters, digits, _, -, . and
// /. "desc" makes the field descending in the declaration before it. "utc", of a text, enters instants
// into it, as "At as utc" does in Index.Fields. Both words, "index,unique", declare one unique
// index. Fields of type time.Time, of pointers to it and of slices of it are entered as
// instants.
//
// An existing index that is declared otherwise now, as by a Jay that entered times as
// text, is replaced: see ReplaceIndex. Indexes that are no longer declared are kept. See
// DB.EnsureIndex for the rest. Indexes are no part of a transaction: on a collection
// from In EnsureIndexes returns ErrUsage.
func (c *Collection[T]) EnsureIndexes(ctx context.Context, opts ...IndexOption) error {
	db, ok := c.via.(*DB)
	if !ok {
		return fmt.Errorf("%w: EnsureIndexes in a transaction", ErrUsage)
	}
	declared, err := c.DeclaredIndexes()
	if err != nil {
		return err
	}
	opts = append(slices.Clip(opts), ReplaceIndex())
	return db.EnsureIndexes(ctx, c.m.Collection, declared, opts...)
}

// DeclaredIndexes returns the indexes declared by the tags of T's fields, in the
// order of the fields. CollectionOf has refused an invalid tag with ErrIndex, and an index on a field that
// the body of a document lacks: the ID, the version, an unexported field and one with the tag json:"-".
func (c *Collection[T]) DeclaredIndexes() ([]Index, error) {
	return catalog.Tagged(c.m.Type, c.m.Collection, c.m.Drop)
}

// Computed declares a computed index, whose entries are computed from documents: members of each document, or of each element of
// one of its arrays, and counts and sums of groups of them. See package index, which has its parts Map, Reduce and Member. Its
// fields:
//
//	Name    string         identifies it, without regard to case
//	Maps    []index.Map    what documents have in it
//	Reduce  *index.Reduce  makes groups of what the maps give; nil for none
//	Strict  bool           refuses documents for which an expression fails
type Computed = index.Computed

// RegisterFunction makes a Go function known to the program, by a name and a version of 1 to 128 bytes each: index.Map names them, and a
// query in "each function('orders/lines', '2') as line". The function makes entries of the body of a document, which is decoded into D and has neither
// ID nor metadata; an entry E is encoded as JSON, and counts as the element of an array does. Both as package encoding/json does it.
//
// It must be registered before a database is opened that has an index with it, such as in an init function: see FunctionError. RegisterFunction panics if
// the name or the version is not valid, or both together are registered already.
//
// The same body must always give the same entries, in each process and on each machine: the function looks at no clock, no random number, no
// other document and no variable that changes, and does not use the database. What it gives otherwise is damage that Verify finds. A function that is changed so that it gives other
// entries gets another version, and the index is declared with it by ReplaceIndex; the program keeps the old one registered until the new one is
// built. It is called by several goroutines at once, in the commit of each write and more than once, so it should take microseconds.
//
// A document for which the function returns an error or panics, or which does not fit into D, or for which it gives more than 10,000 entries or
// 8 MiB, has no entries, and is among the errors of the index; a strict index refuses it.
func RegisterFunction[D, E any](name, version string, fn func(D) ([]E, error)) {
	native.Register(native.ID{Name: name, Version: version}, func(body []byte) (entries [][]byte, err error) {
		var d D
		if err := json.Unmarshal(body, &d); err != nil {
			return nil, err
		}
		list, err := fn(d)
		if err != nil {
			return nil, err
		}
		if len(list) > native.MaxEntries { // before they are encoded
			return make([][]byte, len(list)), nil
		}
		entries = make([][]byte, len(list))
		for i, e := range list {
			if entries[i], err = json.Marshal(e); err != nil {
				return nil, err
			}
		}
		return entries, nil
	})
}

// ComputedInfo is a computed index and its state: see package index. Its fields:
//
//	Computed  Computed       the declaration, in canonical form
//	State     IndexState     IndexBuilding until all parts are built; meanwhile answers are computed from documents
//	Next      *ComputedInfo  takes its place when its parts are built; nil for none
//	Algebra   string         the declaration in one line, as Explain shows it
//	Parts     []IndexInfo    the indexes that keep its answers
//	Without   []string       why maps and members have no part: what they give is computed when it is asked for
//	Unknown   string         why this version does not understand the declaration; "" for none
type ComputedInfo = index.ComputedInfo

// ComputedPreview is what a declaration of a computed index makes of some documents: see package index, which has its parts Part,
// Previewed and Mapped. Its fields:
//
//	Algebra    string             the declaration in one line
//	Parts      []index.Part       the indexes that would keep its answers
//	Without    []string           why maps and members would have no part
//	Documents  []index.Previewed  what the maps make of each document: entries, and expressions that fail
//	Results    []json.RawMessage  what the reduce makes of these documents together
type ComputedPreview = index.ComputedPreview

// ComputedFailure is an expression of a computed index that fails for a document: see package index. Its fields:
//
//	Collection  string      that of the document
//	Failure     IndexError  the document, the expression, and why it fails
type ComputedFailure = index.ComputedFailure

// ComputedIndexes are the computed indexes of a database. It is safe for concurrent use.
type ComputedIndexes struct{ of core.ComputedIndexes }

// ComputedOf returns the computed indexes of a database.
func ComputedOf(db *DB) ComputedIndexes {
	return ComputedIndexes{core.ComputedIndexes{Database: &db.core}}
}

// Ensure makes sure that there is a computed index, and returns nil when its parts are ready: the indexes that keep its answers. One of the
// same name that is declared otherwise is ErrIndexExists, unless ReplaceIndex is among opts: then the parts of the new one are built beside
// the old one, which answers until they are ready, and parts of the same declaration stay. A declaration that is not valid is ErrIndex, and says why.
//
// Queries may use a new index at once: what is not kept yet is computed from documents, as is what cannot be kept. If ctx ends,
// Ensure returns its error and the build continues; if the process ends, the next Open continues it. If documents refuse a part, the
// index is dropped, or stays as it was if it was to be replaced, and Ensure returns why.
//
// The parts are among DB.Indexes, with names such as "computed:Orders/ByProduct:17", and are not dropped for themselves. DropCollection drops
// the computed indexes all of whose maps are of the collection; RenameCollection makes maps of the old name those of the new one.
//
// The first computed index of a database raises its format to 12: older versions then refuse it.
func (c ComputedIndexes) Ensure(ctx context.Context, declared Computed, opts ...IndexOption) error {
	var o indexOptions
	for _, option := range opts {
		option(&o)
	}
	return c.of.Ensure(ctx, declared, o.inner)
}

// Drop removes a computed index and the entries of its parts. It returns ErrIndex if there is none of the name. If ctx ends, or the
// process, the removal of entries continues as that of DropIndex does.
func (c ComputedIndexes) Drop(ctx context.Context, name string) error {
	return c.of.Drop(ctx, name)
}

// Declared returns the declaration of a computed index, in canonical form. It returns ErrNoIndex if there is none of the name. It is much
// cheaper than List.
func (c ComputedIndexes) Declared(ctx context.Context, name string) (Computed, error) {
	return c.of.Declared(ctx, name)
}

// Canonical checks a declaration, and returns it in the form in which List and Declared return it. It stores nothing. One that is not valid is
// ErrIndex, and says why.
func (c ComputedIndexes) Canonical(declared Computed) (Computed, error) {
	d, err := catalog.CanonicalComputed(declared)
	if err != nil {
		return Computed{}, err
	}
	return d.Declared, nil
}

// Documents returns the query of the documents that have the entries which q asks for, a query of a computed index: for callers that want
// the documents in place of the members, as RavenDB's clients do. Conditions, orders and facets are on members. Of the columns of q those are on members
// whose first name isMember accepts; others, JavaScript, and what q includes are of the documents. The text of the query is its String, for DB.RQL.
//
// It returns ErrNoIndex if there is no such index, and ErrQuery if the index has a reduce, several maps, or elements of arrays: its entries are not those of
// the documents of a collection. Select such a query's id().
func (c ComputedIndexes) Documents(ctx context.Context, q *query.Query, isMember func(name string) bool) (*query.Query, error) {
	return c.of.Documents(ctx, q, isMember)
}

// List returns the computed indexes, by name, those that are to replace others among them.
func (c ComputedIndexes) List(ctx context.Context) ([]ComputedInfo, error) {
	return c.of.List(ctx)
}

// Preview says what a declaration makes of documents, without declaring it: what each map of a document's collection gives for it, which
// expressions fail for it, and what the reduce makes of all these documents together. They are those with the given IDs, at most 100, or the
// first 10 of each collection of the maps. It reads documents as they are now, and changes nothing.
//
// A declaration that is not valid is ErrIndex, and an ID without a document ErrNotFound. ErrQuery is returned for more than 1,000 entries, and
// for more than 4 MiB of them or of results.
func (c ComputedIndexes) Preview(ctx context.Context, declared Computed, ids ...string) (*ComputedPreview, error) {
	return c.of.Preview(ctx, declared, ids)
}

// Errors returns the documents for which expressions of a computed index fail, by collection and ID, at most limit for each of its parts; 0
// is 100, and 10,000 is the most. Those of one part are continued by IndexView.Errors. What no part keeps is not noted. It returns
// ErrIndex if there is no computed index of the name.
func (c ComputedIndexes) Errors(ctx context.Context, name string, limit int) ([]ComputedFailure, error) {
	return c.of.Errors(ctx, name, limit)
}

// SchemaError is returned for a write of a document that violates the schema of its collection, whose mode is schema.Refuse. Nothing was
// changed. errors.Is(err, ErrSchema) is true. Its fields (see package schema):
//
//	ID          string              the document; "" if its ID was not made yet
//	Collection  string              its collection
//	Count       int                 how many violations it has
//	Violations  []schema.Violation  the first 100: Path, a JSON pointer; Keyword; Message
type SchemaError = schema.Error

// SchemaRuleError is returned for a schema that cannot be the rule of a collection. Nothing was changed. errors.Is(err, ErrSchemaRule) is true. Its
// fields (see package schema):
//
//	Collection  string  the collection
//	Path        string  JSON pointer into the schema; "" for the whole, or if it is not known
//	Rule        string  the rule that it breaks
//	Value       string  what was given, shortened
type SchemaRuleError = schema.RuleError

// SchemaCompilerError is returned for a write into a collection with a schema that this program cannot check documents against: Options.Schemas is
// missing, or refuses the schema. Nothing was changed. errors.Is(err, ErrSchemaRule) is true. Its fields (see package schema):
//
//	Collection  string  the collection
//	Cause       string  why Options.Schemas refuses the schema; "" if it is missing
type SchemaCompilerError = schema.CompilerError

// SchemaRules are the rules about the shape of documents: a JSON Schema for a collection, and what happens to a write that violates it. Each
// write of a body is checked once, before it is staged and outside of all locks: inserts, puts, patches, saves of sessions, transactions, bulk
// writers, changes by query, and what a server and an import write. A document is checked as it is stored, without its @metadata. Deletions,
// changes of attachments, expiry, refreshes, renames of collections, restores, repairs and standbys check nothing: docs/schemas.md has all rules.
//
// Rules are kept in the database. The first one raises its format to 17: older versions then refuse it. A program without
// Options.Schemas reads a collection with a rule, and deletes its documents; its other writes into the collection return a *SchemaCompilerError.
//
// Definitions.Schemas returns the handle, which is safe for concurrent use.
type SchemaRules struct{ db *core.Database }

// Schemas returns the rules of the database about the shape of its documents.
func (d Definitions) Schemas() SchemaRules { return SchemaRules(d) }

// Set stores a rule in the place of the one that the collection has. When it returns, the rule is on disk, and every document that is committed
// from then on was checked against it. The documents that are there are validated in the background: see Report. In an open transaction the documents
// that it has written already are checked again when it commits.
//
// Set returns a *SchemaRuleError for a schema that Options.Schemas refuses and for what is out of bounds, and a *SchemaCompilerError without
// Options.Schemas. Without it, a rule can still be switched off, if its schema stays as it is.
func (s SchemaRules) Set(ctx context.Context, rule schema.Rule) error {
	return s.inside(ctx, "set", rule.Collection, func() error { return s.db.Schemas.Set(ctx, s.db.Env, rule) })
}

// Remove removes the rule of a collection, or returns ErrNotFound. The documents stay.
func (s SchemaRules) Remove(ctx context.Context, collection string) error {
	return s.inside(ctx, "remove", collection, func() error { return s.db.Schemas.Remove(ctx, s.db.Env, collection) })
}

// inside calls fn inside the gate, unless ctx has ended.
func (s SchemaRules) inside(ctx context.Context, verb, collection string, fn func() error) error {
	err := ctx.Err()
	if err == nil {
		err = s.db.Inside(fn)
	}
	if err != nil {
		return fmt.Errorf("%s the schema of %q: %w", verb, errs.Shorten(collection), err)
	}
	return nil
}

// Get returns the rule of a collection, or ErrNotFound. Case does not matter.
func (s SchemaRules) Get(ctx context.Context, collection string) (rule schema.Rule, err error) {
	err = s.inside(ctx, "get", collection, func() error {
		found, err := schemas.Get(s.db.Env.Engine, collection)
		if err == nil && found == nil {
			err = ErrNotFound
		}
		if err == nil {
			rule = *found
		}
		return err
	})
	return rule, err
}

// List returns all rules, also those that are off, in the order of the folded names of their collections.
func (s SchemaRules) List(ctx context.Context) (all []schema.Rule, err error) {
	if err = ctx.Err(); err == nil {
		err = s.db.Inside(func() (err error) {
			all, err = schemas.List(s.db.Env.Engine)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list schemas: %w", err)
	}
	return all, nil
}

// Validate returns a *SchemaError for a document that violates the rule of a collection, whether the rule refuses such documents or warns of
// them, and nil for a document that does not, and without a rule. It writes nothing. The document may have @metadata, which is left out. An invalid document is a
// *DocumentError.
func (s SchemaRules) Validate(ctx context.Context, collection string, document []byte) error {
	return s.inside(ctx, "validate by", collection, func() error {
		scanned, err := metadata.Scan(document, s.db.Env.Limits)
		if err != nil {
			return err
		}
		return s.db.Schemas.Validate(collection, scanned.Body)
	})
}

// Report returns what the validation of the documents that were there when the rule was set has found. It runs in the background, rests as
// long as it works, and begins anew when the database is opened before it has ended; until then Running is true, or it has not begun. What was written meanwhile is
// checked by its write. The report stays until the rule is set again. It is ErrNotFound without a rule.
func (s SchemaRules) Report(ctx context.Context, collection string) (report schema.Report, err error) {
	err = s.inside(ctx, "report on", collection, func() (err error) {
		report, err = s.db.Schemas.Report(s.db.Env, collection)
		return err
	})
	return report, err
}

// Wait is Report when the validation has ended. It returns what ends ctx, ErrNotFound without a rule, a *SchemaRuleError for a rule that is
// off, and a *SchemaCompilerError if this program cannot validate.
func (s SchemaRules) Wait(ctx context.Context, collection string) (schema.Report, error) {
	report, err := s.db.Schemas.Wait(ctx, s.db.Env, collection)
	if err != nil {
		return report, fmt.Errorf("wait for the validation of %q: %w", errs.Shorten(collection), err)
	}
	return report, nil
}

// Check validates all documents of rule.Collection against rule.Schema, which need not be the rule of the collection: so it says what a rule would
// find. Mode does not matter. It writes nothing, and can be called on a database that is only read. Documents that are written meanwhile may be among the documents
// or not. progress, if it is not nil, is called after each step of at most 1,000 documents.
func (s SchemaRules) Check(ctx context.Context, rule schema.Rule, progress func(documents int64)) (schema.Report, error) {
	report, err := s.db.Schemas.Try(ctx, s.db.Env, s.db.Docs, rule, progress)
	if err != nil {
		return report, fmt.Errorf("check %q by a schema: %w", errs.Shorten(rule.Collection), err)
	}
	return report, nil
}

// Definitions are what programs declare for a database and keep in it, beside the documents: JSON objects, by kind
// and name. jay serve keeps there the indexes and configurations that RavenDB's clients give it. They mean
// nothing to package jay. Backups and checkpoints have them, queries and changes do not. DB.Definitions returns the
// handle, which is safe for concurrent use.
//
// A kind has 1 to 64 lower-case letters, digits and hyphens. A name follows the rules of IDs, has at most 512
// bytes, and case does not matter. A definition has at most 256 KiB, and is returned as it was given, so that
// members which one program does not know are not lost.
//
// The first definition of a database raises its format to 5: older versions then refuse it.
type Definitions struct{ db *core.Database }

// Definitions returns the definitions of the database.
func (db *DB) Definitions() Definitions { return Definitions{&db.core} }

// Definition is a definition of a kind.
type Definition struct {
	Name   string          // folded
	Number uint64          // of the change that has stored it: it grows with every change, and never repeats
	Value  json.RawMessage // a JSON object
}

// Decode stores the value in *v as encoding/json does.
func (d *Definition) Decode(v any) error {
	if err := json.Unmarshal(d.Value, v); err != nil {
		return fmt.Errorf("definition %q: %w", errs.Shorten(d.Name), err)
	}
	return nil
}

// DefinitionChange stores a definition in the place of the one that is there, or removes it.
type DefinitionChange struct {
	Kind, Name string
	Value      json.RawMessage // nil removes the definition
	IfMissing  bool            // a definition that is there stays as it is
}

// Get returns a definition, or ErrNotFound.
func (d Definitions) Get(ctx context.Context, kind, name string) (*Definition, error) {
	var found *definitions.Definition
	err := d.read(ctx, func(r storage.Reader) (err error) {
		found, err = definitions.Get(r, kind, name)
		return err
	})
	if err == nil && found == nil {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("definition %q: %w", errs.Shorten(name), err)
	}
	return (*Definition)(found), nil
}

// List returns the definitions of a kind, in the order of their folded names.
func (d Definitions) List(ctx context.Context, kind string) (all []*Definition, err error) {
	err = d.read(ctx, func(r storage.Reader) error {
		found, err := definitions.List(r, kind)
		for _, one := range found {
			all = append(all, (*Definition)(one))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("definitions of the kind %q: %w", errs.Shorten(kind), err)
	}
	return all, nil
}

// Last returns the number of the last change of a definition; 0 if there was none.
func (d Definitions) Last(ctx context.Context) (n uint64, err error) {
	err = d.read(ctx, func(r storage.Reader) (err error) {
		n, err = definitions.Last(r)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("definitions: %w", err)
	}
	return n, nil
}

// read calls fn with what is committed, unless ctx has ended or the database is closed.
func (d Definitions) read(ctx context.Context, fn func(storage.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.db.Inside(func() error { return fn(d.db.Env.Engine) })
}

// Change makes changes in one commit, all or none, which is on disk when Change returns. There are at most 1,024.
// Removing a definition that is not there changes nothing. Bad kinds, names and values are ErrUsage, or an
// *IDError.
func (d Definitions) Change(ctx context.Context, changes ...DefinitionChange) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all := make([]definitions.Change, len(changes))
	for i, c := range changes {
		all[i] = definitions.Change(c)
	}
	err := definitions.Check(all)
	if err == nil {
		err = d.db.Inside(func() error {
			return d.db.Env.Engine.Update(ctx, true, func(tx storage.Tx) error { return definitions.Stage(tx, all) })
		})
	}
	if err != nil {
		return fmt.Errorf("change definitions: %w", err)
	}
	return nil
}
