package jay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/builder"
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
//	Name    string    the default is the names of the fields, joined by commas
//	Fields  []string  one to eight paths, such as "Address.City", or expressions, such as "Price * Quantity";
//	                  "-Total" is descending
//	Unique  bool      refuses a document that has the same values as another one
//	Where   string    indexes only documents for which this condition is true
//	Kind    string    the kind: "" for an ordered index, or "groups", "ends", "text", "places" or "vectors"
//	Options map[string]string  options of the kind, such as "strict"
//
// and its methods:
//
//	OptionTexts()  the options as "name=value", in the order of names
type Index = index.Index

// IndexState is the stage of an index's life: IndexBuilding, IndexReady or
// IndexDropping. See package index.
type IndexState = index.State

const (
	// IndexBuilding means that existing documents are being added to the index. Writes maintain it already;
	// queries do not use it yet.
	IndexBuilding = index.Building

	// IndexReady means that queries use the index.
	IndexReady = index.Ready

	// IndexDropping means that the entries of the index are being removed.
	IndexDropping = index.Dropping
)

// IndexInfo is the declaration of an index and its state, as Indexes returns them. It has these fields (see
// package index), and the fields of the embedded Index:
//
//	Index                   its declaration
//	Collection  string      the collection that it indexes
//	State       IndexState  the state: being built, ready or being dropped
//	Automatic   bool        whether a query made it, by Options.AutoIndexes
//	Errors      int64       the number of documents for which an expression of the index fails: see IndexView.Errors
//	OptionTexts()           see Index
type IndexInfo = index.Info

// UniqueError is the error of a write that would give two documents the same values in a unique index. Nothing
// was changed. errors.Is(err, ErrUnique) is true. Its fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Value       string  the values, as a JSON array
//	ID          string  the refused document
//	Other       string  the document that has the values
type UniqueError = index.UniqueError

// KindError is the error for an index of a kind that this version does not know: EnsureIndex returns it, and so
// do writes into a collection in which a newer version has declared such an index. Nothing was changed.
// errors.Is(err, ErrIndex) is true. Its fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Kind        string  its kind
//	Known       string  the kinds that this version knows, if the index was to be declared
type KindError = index.KindError

// OptionError is the error for an option of an index that its kind does not have, or whose value is invalid:
// EnsureIndex returns it, and so do writes into a collection in which a newer version has declared such an
// index. Nothing was changed. errors.Is(err, ErrIndex) is true. Its fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Kind        string  its kind
//	Option      string  the name of the option
//	Value       string  its value; "" for an option that is missing
//	Rule        string  the rule that it breaks
//	Unknown     bool    whether the kind has no such option: Rule then lists those that it has
type OptionError = index.OptionError

// FunctionError is the error for a Go function that the program has not registered with RegisterFunction:
// ComputedIndexes.Ensure returns it, and so do writes into a collection that has an index with the function.
// Nothing was changed. errors.Is(err, ErrIndex) is true. Its fields (see package index):
//
//	Index       string  the name of the index, or of its part
//	Collection  string  its collection
//	Function    string  the name of the function
//	Version     string  its version
type FunctionError = index.FunctionError

// ReferrersError is the error of a write of a document that more than 1,024 other documents load in one index:
// the same commit would have to make the index entries of all of them again. Nothing was written.
// errors.Is(err, ErrIndex) is true. Its fields (see package index):
//
//	Index       string  the name of the index, or of its part
//	Collection  string  of the documents that load it
//	ID          string  of the refused document
//	Limit       int     the greatest number of documents whose entries one commit makes again
type ReferrersError = index.ReferrersError

// ComputeError is the error of a write of a document for which an expression of a strict index fails, such as a
// division by zero. The build of such an index also returns it, and ends at the document. Nothing was changed.
// errors.Is(err, ErrInvalidDocument) is true. Its fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Field       string  the expression
//	ID          string  the refused document
//	Reason      string  such as "/: a division by zero"
type ComputeError = index.ComputeError

// ValueError is the error of a write of a document with a value that a strict index cannot hold, such as a
// vector whose number of dimensions differs from that of an index of the kind "vectors". The build of such an
// index also returns it, and ends at the document. Nothing was changed. errors.Is(err, ErrInvalidDocument) is
// true. Its fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Field       string  the field
//	ID          string  the refused document
//	Rule        string  such as "a vector of this index has 768 numbers"
//	Value       string  the violation, such as "there are 3"
type ValueError = index.ValueError

// Indexes returns the indexes of a collection, or all indexes if collection is "", in the order of collections
// and names.
func (db *DB) Indexes(ctx context.Context, collection string) ([]IndexInfo, error) {
	return db.core.ListIndexes(ctx, collection)
}

// IndexError is the failure of an expression of an index for a document. Its fields (see Failure in package
// index):
//
//	ID      string  the document
//	Field   string  the expression
//	Reason  string  such as "/: a division by zero"
type IndexError = index.Failure

// IndexView reads the contents of one index: see IndexOf. It is safe for concurrent use.
type IndexView struct{ of core.IndexView }

// IndexOf returns a view of an index of a collection. IndexOf does not check that the index exists; the methods
// of the view do.
func IndexOf(db *DB, collection, name string) IndexView {
	return IndexView{core.IndexView{DB: &db.core, Collection: collection, Name: name}}
}

// Errors returns the documents for which expressions of an index fail, in the order of their folded IDs,
// beginning after the ID after, which may be "". It covers at most limit documents, and returns an IndexError
// for each expression that fails for one of them. A limit of 0 means 100; the greatest limit is 10,000. To
// continue, call Errors with the last ID of the previous result.
//
// An index records the errors of all its documents, from the commit that causes an error to the commit that
// changes or deletes the document. An expired document counts until it is deleted. Errors returns ErrIndex if
// the collection has no such index.
func (v IndexView) Errors(ctx context.Context, after string, limit int) ([]IndexError, error) {
	return v.of.Errors(ctx, after, limit)
}

// IndexTerm is a term in an index of kind text, as its analyzer makes it from a word: see Term in package
// index. Its fields:
//
//	Text       string  the term
//	Documents  int64   the number of documents that contain it
type IndexTerm = index.Term

// IndexTermList selects the terms that IndexView.Terms returns: see TermList in package index. Its fields:
//
//	Field   string  a field of the index; "" means the first one
//	Prefix  string  the prefix of the terms, folded like the terms
//	After   string  a term: the list begins after it
//	Limit   int     greatest number of terms; 0 means 100, and 10,000 is the maximum
type IndexTermList = index.TermList

// Terms returns terms of a field in an index of kind text, in the order of their bytes, each with the present
// number of documents that contain it. To continue, call Terms with the last term of the previous result as
// After. An expired document counts until it is deleted. Terms returns ErrIndex if the collection has no such
// index, or the index is not ready.
func (v IndexView) Terms(ctx context.Context, list IndexTermList) ([]IndexTerm, error) {
	return v.of.Terms(ctx, list)
}

// IndexOption is an option of EnsureIndex, EnsureIndexes and ComputedIndexes.Ensure.
type IndexOption func(*indexOptions)

type indexOptions struct{ inner indexer.Options }

// IndexProgress makes EnsureIndex call fn now and then with the number of documents that have been added.
// EnsureIndexes reports one index after another: indexes that are built in one pass have the same number.
func IndexProgress(fn func(documents int64)) IndexOption {
	return func(o *indexOptions) { o.inner.Progress = fn }
}

// ReplaceIndex makes EnsureIndex replace an index of the same name that has another declaration. The old index
// serves queries while the new one is built, and is dropped when the new one is ready; until then Indexes
// returns both. If the process ends, the next Open continues the build. If documents refuse the new index, the
// old one stays.
func ReplaceIndex() IndexOption {
	return func(o *indexOptions) { o.inner.Replace = true }
}

// EnsureIndex makes sure that a collection has an index, and returns nil only when the index is ready. It does
// not change an existing index. It returns ErrIndexExists for an index of the same name with another
// declaration, unless opts contain ReplaceIndex.
//
// A new index is built while reads and writes continue. If ctx ends before the index is ready, EnsureIndex
// returns the error of ctx and the build continues; if the process ends, the next Open continues the build. If
// documents violate the uniqueness, or have more entries than an index can hold, EnsureIndex returns a
// *UniqueError or *DocumentError, and the collection does not get the index.
//
// EnsureIndex continues the unfinished work of an earlier call. If an index of the name is being dropped,
// EnsureIndex waits and then builds the new index. If a build has failed because of the disk, EnsureIndex
// builds again. If the index is dropped while EnsureIndex waits for it, the error is ErrIndex.
func (db *DB) EnsureIndex(ctx context.Context, collection string, ix Index, opts ...IndexOption) error {
	return db.EnsureIndexes(ctx, collection, []Index{ix}, opts...)
}

// EnsureIndexes makes sure that a collection has these indexes, and returns nil only when all are ready. It
// declares the new indexes in one commit and builds them in one pass over the documents, which takes much less
// time than one EnsureIndex after another.
//
// If one of the declarations is invalid or is refused with ErrIndexExists, nothing is changed. Otherwise the
// result for each index is the same as with EnsureIndex: documents that violate the uniqueness or the bounds of
// one index do not prevent the others from becoming ready. The returned error joins the errors of all indexes
// that are not ready. Two declarations of one name must be the same.
func (db *DB) EnsureIndexes(ctx context.Context, collection string, indexes []Index, opts ...IndexOption) error {
	var o indexOptions
	for _, option := range opts {
		option(&o)
	}
	return db.core.EnsureIndexes(ctx, collection, indexes, o.inner)
}

// DropIndex removes an index of a collection and its entries. Running queries are not affected. DropIndex
// cancels a build in progress, and its EnsureIndex returns ErrIndex. DropIndex returns ErrIndex if the index
// does not exist. If ctx ends before the index is removed, DropIndex returns the error of ctx and the drop
// continues; if the process ends, the next Open continues the drop.
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
//		Login string    `jay:"unique,where=Gone = false"`
//		Gone  bool
//		About string    `jay:"text,analyzer=english"`
//		Lat   float64   `jay:"latitude"`
//		Lng   float64   `jay:"longitude"`
//		Area  string    `jay:"place"`
//		Home  Address   // its fields may be tagged, too
//	}
//
// "text" adds a field to an index of kind text. All fields of T with the word "text" are in one index of the
// name "text", and fields with "text=NAME" are in one index of that name. After it, "analyzer=english" and
// "weight=3" set options of this field: see Index.Options.
//
// "latitude" and "longitude" mark two numbers of one struct that form a place, and "place" marks a text in WKT
// or an object in GeoJSON. Each place has an index of the kind "places", whose name may follow, as in
// "latitude=home".
//
// "index" and "unique" declare an index on the field; with a name, all fields with that name form one index, in
// the order of the struct. A name has letters, digits, _, -, . and /. "desc" makes the field descending in the
// preceding declaration. "utc", for a text, indexes it as an instant, as "At as utc" does in Index.Fields. Both
// words, "index,unique", declare one unique index. "where=" restricts the preceding index to documents for which
// the condition is true, as Index.Where does. The condition is everything after "where=", commas included, so it
// comes last in a tag. If an index has several fields, the tag of one of them has the condition.
//
// Fields of type time.Time, of pointers to it and of slices of it are indexed as instants.
//
// EnsureIndexes replaces an existing index whose declaration differs, such as an index of an older Jay that
// indexed times as text: see ReplaceIndex. It keeps indexes that are no longer declared. The other rules are
// those of DB.EnsureIndex. Indexes are not part of a transaction: on a collection from In, EnsureIndexes
// returns ErrUsage.
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

// EnsureIndex is DB.EnsureIndex for the collection, for an index that a tag cannot declare, such as one with the
// option "sums". In addition it returns ErrIndex if a field or the condition names a member that the JSON of T does
// not have, unless the collection has the option AnyField: such an index would be empty, and if it is unique,
// it would refuse nothing. The check covers Fields and Where, and neither Options nor the fields of an index
// with the option "each". On a collection from In, EnsureIndex returns ErrUsage.
func (c *Collection[T]) EnsureIndex(ctx context.Context, ix Index, opts ...IndexOption) error {
	db, ok := c.via.(*DB)
	if !ok {
		return fmt.Errorf("%w: EnsureIndex in a transaction", ErrUsage)
	}
	if err := builder.CheckIndex(c.m, ix); err != nil {
		return err
	}
	return db.EnsureIndex(ctx, c.m.Collection, ix, opts...)
}

// DeclaredIndexes returns the indexes declared by the tags of T's fields, in the order of the fields.
// CollectionOf returns ErrIndex for an invalid tag, for a condition with a member that the JSON of T does not
// have, and for an index on a field that is not in the body of a document: the ID, the version, an unexported
// field and a field with the tag json:"-". It returns a *SyntaxError for a condition that cannot be parsed.
func (c *Collection[T]) DeclaredIndexes() ([]Index, error) {
	return catalog.Tagged(c.m.Type, c.m.Collection, c.m.Drop)
}

// Computed declares a computed index, whose entries are computed from documents: members of each document, or
// of each element of one of its arrays, and counts and sums of groups of these: see package index, which has
// its parts Map, Reduce and Member. Its fields:
//
//	Name    string         identifies it, without regard to case
//	Maps    []index.Map    the entries of documents
//	Reduce  *index.Reduce  groups the entries of the maps; nil for none
//	Strict  bool           refuses documents for which an expression fails
type Computed = index.Computed

// RegisterFunction registers a Go function under a name and a version of 1 to 128 bytes each. index.Map refers
// to both, and so does a query with "each function('orders/lines', '2') as line". The function makes entries
// from the body of a document. The body is decoded into D, without ID and metadata. Each entry E is encoded as
// JSON, and is treated like an element of an array. Package encoding/json does both.
//
// Register a function before you open a database that has an index with it, for example in an init function:
// see FunctionError. RegisterFunction panics if the name or the version is invalid, or if this name with this
// version is already registered.
//
// The function must be deterministic: the same body must always give the same entries, in each process and on
// each machine. It must not depend on the clock, random numbers, other documents or variables that change, and
// must not use the database. Entries that differ are damage that Verify finds. If you change the function so
// that it gives other entries, register it under another version, and declare the index with this version and
// ReplaceIndex; keep the old version registered until the new index is built. Several goroutines call the
// function at once, in the commit of each write and more than once, so it should take microseconds.
//
// A document has no entries, and is among the errors of the index, if the function returns an error or panics
// for it, if it does not decode into D, or if it gives more than 10,000 entries or 8 MiB. A strict index
// refuses such a document.
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
//	State     IndexState     IndexBuilding until all parts are built; until then answers are computed from documents
//	Next      *ComputedInfo  the index that replaces it when its parts are built; nil for none
//	Algebra   string         the declaration in one line, as Explain shows it
//	Parts     []IndexInfo    the indexes that store its answers
//	Without   []string       why maps and members have no part: queries compute their results
//	Unknown   string         why this version does not understand the declaration; "" for none
type ComputedInfo = index.ComputedInfo

// ComputedPreview is the result of a declaration of a computed index for some documents: see package index,
// which has its parts Part, Previewed and Mapped. Its fields:
//
//	Algebra    string             the declaration in one line
//	Parts      []index.Part       the indexes that would store its answers
//	Without    []string           why maps and members would have no part
//	Documents  []index.Previewed  results of the maps for each document: entries, and expressions that fail
//	Results    []json.RawMessage  results of the reduce for these documents together
type ComputedPreview = index.ComputedPreview

// ComputedFailure is an expression of a computed index that fails for a document: see package index. Its fields:
//
//	Collection  string      of the document
//	Failure     IndexError  the document, the expression, and why it fails
type ComputedFailure = index.ComputedFailure

// ComputedIndexes are the computed indexes of a database. It is safe for concurrent use.
type ComputedIndexes struct{ of core.ComputedIndexes }

// ComputedOf returns the computed indexes of a database.
func ComputedOf(db *DB) ComputedIndexes {
	return ComputedIndexes{core.ComputedIndexes{Database: &db.core}}
}

// Ensure makes sure that a computed index exists, and returns nil when its parts are ready. The parts are the
// indexes that store its answers. Ensure returns ErrIndexExists for an index of the same name with another
// declaration, unless opts contain ReplaceIndex: then the old index answers queries while the parts of the new
// one are built, and parts with the same declaration stay. Ensure returns an ErrIndex with the reason for an
// invalid declaration.
//
// Queries may use a new index at once: results that are not stored yet, or cannot be stored, are computed from
// documents. If ctx ends, Ensure returns the error of ctx and the build continues; if the process ends, the
// next Open continues the build. If documents refuse a part, Ensure returns the reason, and the index is
// dropped; with ReplaceIndex, the old index stays.
//
// DB.Indexes returns the parts, too, with names such as "computed:Orders/ByProduct:17". A part cannot be
// dropped individually. DropCollection drops a computed index if all of its maps are over the dropped
// collection. RenameCollection changes maps over the old name to the new name.
//
// The first computed index of a database raises its format to 12: older versions then refuse the database.
func (c ComputedIndexes) Ensure(ctx context.Context, declared Computed, opts ...IndexOption) error {
	var o indexOptions
	for _, option := range opts {
		option(&o)
	}
	return c.of.Ensure(ctx, declared, o.inner)
}

// Drop removes a computed index and the entries of its parts. It returns ErrIndex if no computed index has the
// name. If ctx or the process ends, the removal of entries continues as with DropIndex.
func (c ComputedIndexes) Drop(ctx context.Context, name string) error {
	return c.of.Drop(ctx, name)
}

// Declared returns the declaration of a computed index, in canonical form. It returns ErrNoIndex if no computed
// index has the name. Declared is much cheaper than List.
func (c ComputedIndexes) Declared(ctx context.Context, name string) (Computed, error) {
	return c.of.Declared(ctx, name)
}

// Canonical checks a declaration, and returns it in the form in which List and Declared return it. It stores
// nothing. It returns an ErrIndex with the reason for an invalid declaration.
func (c ComputedIndexes) Canonical(declared Computed) (Computed, error) {
	d, err := catalog.CanonicalComputed(declared)
	if err != nil {
		return Computed{}, err
	}
	return d.Declared, nil
}

// Documents converts q, a query of a computed index, into the query for the documents that have the matching
// entries. Use it for callers that want the documents instead of the members, as RavenDB's clients do.
// Conditions, orders and facets apply to members. A column of q applies to a member if isMember accepts its
// first name. Other columns, JavaScript and includes apply to the documents. To run the query, pass its String
// to DB.RQL.
//
// Documents returns ErrNoIndex if the index does not exist, and ErrQuery if the index has a reduce, several
// maps, or elements of arrays, because its entries do not correspond to the documents of one collection. In
// such a query select id() instead.
func (c ComputedIndexes) Documents(ctx context.Context, q *query.Query, isMember func(name string) bool) (*query.Query, error) {
	return c.of.Documents(ctx, q, isMember)
}

// List returns the computed indexes in the order of their names, including those that will replace others.
func (c ComputedIndexes) List(ctx context.Context) ([]ComputedInfo, error) {
	return c.of.List(ctx)
}

// Preview applies a declaration to some documents, without storing it: it returns the results of each map for
// each document of its collection, the expressions that fail, and the results of the reduce for all these
// documents together. The documents are those with the given IDs, at most 100, or the first 10 of each
// collection of the maps. Preview reads the present documents, and changes nothing.
//
// Preview returns ErrIndex for an invalid declaration, ErrNotFound for an ID without a document, and ErrQuery
// for more than 1,000 entries, or for more than 4 MiB of entries or of results.
func (c ComputedIndexes) Preview(ctx context.Context, declared Computed, ids ...string) (*ComputedPreview, error) {
	return c.of.Preview(ctx, declared, ids)
}

// Errors returns the documents for which expressions of a computed index fail, in the order of collections and
// IDs, at most limit documents for each of its parts. A limit of 0 means 100; the greatest limit is 10,000. To
// continue with one part, use IndexView.Errors. Failures of expressions that no part stores are not recorded.
// Errors returns ErrIndex if no computed index has the name.
func (c ComputedIndexes) Errors(ctx context.Context, name string, limit int) ([]ComputedFailure, error) {
	return c.of.Errors(ctx, name, limit)
}

// SchemaError is the error of a write of a document that violates the schema of its collection, if the mode of
// the schema is schema.Refuse. Nothing was changed. errors.Is(err, ErrSchema) is true. Its fields (see package
// schema):
//
//	ID          string              the document; "" if it has no ID yet
//	Collection  string              its collection
//	Count       int                 the number of violations
//	Violations  []schema.Violation  the first 100: Path, a JSON pointer; Keyword; Message
type SchemaError = schema.Error

// SchemaRuleError is the error for a schema that is not valid as the rule of a collection. Nothing was changed.
// errors.Is(err, ErrSchemaRule) is true. Its fields (see package schema):
//
//	Collection  string  the collection
//	Path        string  JSON pointer into the schema; "" for the whole schema, or if unknown
//	Rule        string  the rule that it breaks
//	Value       string  the given value, shortened
type SchemaRuleError = schema.RuleError

// SchemaCompilerError is the error of a write into a collection with a schema, if this program cannot check
// documents against the schema: Options.Schemas is missing, or refuses the schema. Nothing was changed.
// errors.Is(err, ErrSchemaRule) is true. Its fields (see package schema):
//
//	Collection  string  the collection
//	Cause       string  why Options.Schemas refuses the schema; "" if Options.Schemas is missing
type SchemaCompilerError = schema.CompilerError

// SchemaRules are the rules about the shape of documents. A rule is a JSON Schema for a collection, and a mode
// for writes that violate it. Each write of a body is checked once, before it is staged and outside of all
// locks: inserts, puts, patches, saves of sessions, transactions, bulk writers, changes by query, and writes of
// a server or an import. The check applies to the stored document, without its @metadata. Deletions, changes of
// attachments, expiry, refreshes, renames of collections, restores, repairs and standbys check nothing:
// docs/schemas.md has all rules.
//
// The database stores the rules. The first rule raises its format to 17: older versions then refuse the
// database. A program without Options.Schemas can read a collection with a rule, and delete its documents; its
// other writes into the collection return a *SchemaCompilerError.
//
// Definitions.Schemas returns the handle, which is safe for concurrent use.
type SchemaRules struct{ db *core.Database }

// Schemas returns the handle of the schema rules of the database.
func (d Definitions) Schemas() SchemaRules { return SchemaRules(d) }

// Set stores the rule of a collection, replacing an existing rule. When Set returns, the rule is on disk, and
// every document that is committed afterwards has been checked against it. Existing documents are validated in
// the background: see Report. An open transaction checks the documents that it has already written again when
// it commits. A cluster-wide transaction that the coordinator is deciding at that moment is carried out unchecked;
// the report includes its documents.
//
// Set returns a *SchemaRuleError for a schema that Options.Schemas refuses and for values out of bounds, and a
// *SchemaCompilerError without Options.Schemas. Without Options.Schemas, Set can still switch a rule off, if
// its schema does not change.
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

// Get returns the rule of a collection, or ErrNotFound. The name is not case-sensitive.
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

// List returns all rules, including those that are off, in the order of the folded names of their collections.
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

// Validate returns a *SchemaError for a document that violates the rule of a collection, whether the rule
// refuses such documents or only warns. It returns nil for a document that satisfies the rule, and if the
// collection has no rule. It writes nothing. Validate ignores @metadata of the document. It returns a
// *DocumentError for an invalid document.
func (s SchemaRules) Validate(ctx context.Context, collection string, document []byte) error {
	return s.inside(ctx, "validate by", collection, func() error {
		scanned, err := metadata.Scan(document, s.db.Env.Limits)
		if err != nil {
			return err
		}
		return s.db.Schemas.Validate(collection, scanned.Body)
	})
}

// Report returns the result of the validation of the documents that existed when the rule was set. The
// validation runs in the background, pauses for as long as it works, and starts again if the database is
// reopened before its end. Until its end, Running is true, or the validation has not begun. Documents that are
// written during the validation are checked by their writes. The report stays until the rule is set again.
// Report returns ErrNotFound if the collection has no rule.
func (s SchemaRules) Report(ctx context.Context, collection string) (report schema.Report, err error) {
	err = s.inside(ctx, "report on", collection, func() (err error) {
		report, err = s.db.Schemas.Report(s.db.Env, collection)
		return err
	})
	return report, err
}

// Wait waits for the end of the validation, and returns its Report. It returns the error of ctx if ctx ends,
// ErrNotFound without a rule, a *SchemaRuleError for a rule that is off, and a *SchemaCompilerError if this
// program cannot validate.
func (s SchemaRules) Wait(ctx context.Context, collection string) (schema.Report, error) {
	report, err := s.db.Schemas.Wait(ctx, s.db.Env, collection)
	if err != nil {
		return report, fmt.Errorf("wait for the validation of %q: %w", errs.Shorten(collection), err)
	}
	return report, nil
}

// Check validates all documents of rule.Collection against rule.Schema, which need not be the present rule of
// the collection, and so shows the violations of a possible rule. Check ignores the mode. It writes nothing,
// and works on a read-only database. It may or may not include documents that are written during the call.
// Check calls progress, if not nil, after each step of at most 1,000 documents.
func (s SchemaRules) Check(ctx context.Context, rule schema.Rule, progress func(documents int64)) (schema.Report, error) {
	report, err := s.db.Schemas.Try(ctx, s.db.Env, s.db.Docs, rule, progress)
	if err != nil {
		return report, fmt.Errorf("check %q by a schema: %w", errs.Shorten(rule.Collection), err)
	}
	return report, nil
}

// Definitions are JSON objects, by kind and name, that programs store in a database separately from the
// documents. jay serve stores there the indexes and configurations of RavenDB's clients. Package jay does not
// interpret definitions. Backups and checkpoints contain them; queries and change feeds do not. DB.Definitions
// returns the handle, which is safe for concurrent use.
//
// A kind has 1 to 64 lower-case letters, digits and hyphens. A name follows the rules of IDs, has at most 512
// bytes, and is not case-sensitive. A definition has at most 256 KiB, and is returned unchanged, so a program
// does not lose members that it does not know.
//
// The first definition of a database raises its format to 5: older versions then refuse the database.
type Definitions struct{ db *core.Database }

// Definitions returns the definitions of the database.
func (db *DB) Definitions() Definitions { return Definitions{&db.core} }

// Definition is a definition of a kind.
type Definition struct {
	Name   string          // folded
	Number uint64          // of the change that stored it; numbers grow with every change, and never repeat
	Value  json.RawMessage // a JSON object
}

// Decode stores the value in *v as encoding/json does.
func (d *Definition) Decode(v any) error {
	if err := json.Unmarshal(d.Value, v); err != nil {
		return fmt.Errorf("definition %q: %w", errs.Shorten(d.Name), err)
	}
	return nil
}

// DefinitionChange stores a definition, replacing an existing one, or removes it.
type DefinitionChange struct {
	Kind, Name string
	Value      json.RawMessage // nil removes the definition
	IfMissing  bool            // does not change an existing definition
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

// Last returns the number of the last change of any definition; 0 if there was none.
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

// Change makes up to 1,024 changes in one atomic commit, which is on disk when Change returns. Removing a
// missing definition changes nothing. Change returns ErrUsage or an *IDError for invalid kinds, names and
// values.
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
