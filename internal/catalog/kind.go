package catalog

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/score"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Kinds of indexes
//
// A declaration names a kind. The kind makes a Keeper, which decides what documents have in the
// index and how its keys are read. What is the same for all kinds lies elsewhere: the declaration
// and its state (here), staging (internal/write), building and dropping (internal/indexer), checks
// (internal/verify), repairs (ForRebuild and the indexer). The ordered index is the kind whose name is
// "". What it has beyond the door is named in docs/decisions/0104-kinds-of-indexes.md.
//
// A Keeper is either a Decoder or a Stager. The entries of a Decoder are stored as they are made,
// under the number of the index, and their keys lead to their documents:
//
//	'x' number(4) key id 00 → value     key is the Keeper's
//
// (An entry of a unique ordered index has the ID in its value.) A Stager keeps other keys under the number of its
// index, such as sums, of which the entries of documents are parts.

// Kind is a kind of indexes.
type Kind struct {
	// Open returns the Keeper of an index whose declaration has been read, or why there can be
	// none, as an ErrIndex. The options of the declaration have been checked: see Index.Option.
	Open func(ix *Index) (Keeper, error)

	// Options are those that a declaration may have.
	Options []Option

	// Field parses a field of a declaration, in place of a path; nil for a kind whose fields are paths. A Keeper of such
	// a kind reads the bodies of documents itself: Document.Values and Document.Reached are not for it.
	Field func(text string) (query.Field, error)

	// Whole is true for a kind whose fields have arrays as values, such as vectors, and not the elements of these.
	Whole bool

	// Feature is what the format of a database needs that has an index of the kind; the zero Feature is nothing.
	Feature storage.Feature
}

// Keeper decides what documents have in one index. All it knows of a document is its body. It is
// immutable, and safe for concurrent use.
type Keeper interface {
	// Count returns how many entries a document may have, at least as many as Extract adds. The
	// bounds of indexes are compared with it before an entry is made, so it must take one pass over the
	// document at most.
	Count(d *Document) int

	// Bytes returns how many bytes that many entries of a document have, EntryBytes for
	// each included. It is exact, or an upper bound, as asked for.
	Bytes(d *Document, count int, p Precision) int

	// Extract adds the entries of a document to e. The same body gives the same entries. It returns
	// a *metadata.Error, an *index.ComputeError or an *index.ValueError if the document cannot be in the index: then it cannot be written, and the index
	// cannot be built. A Keeper that rather has the document without its value adds an entry
	// that says so.
	Extract(d *Document, e *Entries) error

	// Describe says in words what a key of the index is, for people. Anything may follow the
	// number of the index, or nothing.
	Describe(key []byte) string
}

// Decoder is a Keeper whose entries are stored as Extract makes them.
type Decoder interface {
	// AppendID appends the folded ID of the document that an entry belongs to. It returns
	// ErrCorrupt for a key or a value that Extract does not make.
	AppendID(dst, key, value []byte) ([]byte, error)
}

// Stager is a Keeper that stages its keys itself. It is built by commits, unless it is a Tabler.
type Stager interface {
	// Stage stages that a document gives these entries, and no others, whatever it gave before. That may
	// be the same, or not be known to the caller: a Stager keeps for each document what it has staged for it. It
	// does nothing but read and stage keys under the number of its index, as it may run more than once.
	Stage(tx storage.Tx, folded string, given []Entry) error

	// GivenFacts calls add with what must be stored because of one entry of a document, and
	// StoredFacts with what is stored under one key. A fact is any text, and has a weight: an index is whole if
	// the weights of each fact add up to the same on both sides. Verify compares them. StoredFacts returns ErrCorrupt for
	// a key or value that Stage does not write.
	GivenFacts(folded string, e *Entry, add func(fact []byte, weight int64) error) error
	StoredFacts(key, value []byte, add func(fact []byte, weight int64) error) error
}

// NewStager is a Stager that has less to do for a document that was not there before.
type NewStager interface {
	// StageNew is Stage for a document of which nothing is staged: the index is ready, and there is no document of this ID.
	StageNew(tx storage.Tx, folded string, given []Entry) error
}

// Tabler is a Stager of which an index over many documents is built by tables: what it stages for a document that was not there before
// follows from that document alone, and is keys with values, and additions to numbers.
type Tabler interface {
	Stager

	// Fill stages what a document gives of which nothing is staged, as Stage does. The same keys are set for no other document; numbers may be
	// added at keys of others. It is safe for concurrent use.
	Fill(s Staging, folded []byte, given []Entry) error
}

// Narrow is a Keeper of which a body without an array may have one entry at most.
type Narrow interface {
	// IsNarrow reports whether it is so for this index. Then Bytes says, of a body of NarrowBytes and roughly, no more than an index in 64 may have of
	// the bytes of all entries of a document.
	IsNarrow() bool
}

// NarrowBytes is how long a body is at most that is sure to be within the bounds of a collection all of whose indexes are narrow, if it has no array.
const NarrowBytes = 4 << 10

// Staging is the part of storage.Tx that reads nothing.
type Staging interface {
	Set(key, head, tail []byte)
	Delete(key []byte)
	Add(key []byte, deltas ...int64)
}

// Settler is a Stager with work in the background. Its Stage does little for each document, such as noting in a tail what
// has changed, and Answer.Open reads the tail, too, so that each snapshot answers exactly. Settle moves what is in the tail to where
// it is found faster, or merges what has become many.
//
// A worker of the database calls Settle, one call at a time, when the database is opened and after commits into the index, also while the
// index is built; not in a database that is only read, and not in a process that does not know the kind. On a shared store each process has a
// worker, and of two that have read the same one settles it.
type Settler interface {
	Stager

	// Settle returns a part of the work that r shows, or nil if nothing is worth doing now. It may read as much as it needs, and ends with
	// ctx, with its error. r is of one moment, and is valid until Settle returns. An error but that of ctx or of the engine is logged, and the
	// index is not settled again until the database is opened.
	Settle(ctx context.Context, r storage.Reader) (Settling, error)
}

// Presser is a Settler whose queries become slow if its work waits for long.
type Presser interface {
	// Pressure returns what the last Settle has seen. The worker calls it.
	Pressure() Pressure
}

// Pressure is how much a Settle has seen to be done.
type Pressure struct {
	Presses   bool    // the worker must not rest
	Documents int     // that the part settles
	Slow      float64 // how many times as long for a document as the worker writers must take; 0 if they need not wait
	Trail     Trail
}

// Trail is a range of keys, [Lo, Hi), that each query reads from one end to the other, and from which settling deletes. Until the engine compacts the range, a
// query also passes the deleted keys. If they are many, the worker compacts the range as soon as nothing is left to be settled.
type Trail struct {
	Lo, Hi  []byte
	Deleted int // how many deleted keys the last Settle has passed there, as far as the engine knows
}

// Pass adds the number of deleted keys that an iterator over the range has passed.
func (t *Trail) Pass(it storage.Iterator) {
	if p, knows := it.(storage.Passer); knows {
		t.Deleted += p.Passed()
	}
}

// Settling stages a part of the work of a Settler, in a transaction of its own, which may run it more than once. It writes keys under
// the number of the index only. It returns false, and has staged nothing, if what Settle has read of r is not so any more: see Seen. Writers wait
// meanwhile, so a part reads and writes about a MiB at most. The commit does not wait for the disk: a crash may undo it.
type Settling func(tx storage.Tx) (settled bool, err error)

// Answerer is a Keeper of an index that helps to answer queries.
type Answerer interface {
	// Answer returns how the index answers a question, or nil if it cannot.
	Answer(q *Question) *Answer
}

// Question is what a query asks of an index. Its documents are those of one collection, and
// those with the condition of a partial index.
type Question struct {
	Conditions []query.Expr  // all of them must be true
	Orders     []query.Order // in which answers are wanted; nil for no order
	Need       int           // how many answers are wanted, if the query needs no more candidates when it has the first ones of the order; 0 for all

	// Scores are those of the query, of which the first conditions are the Parts; nil for a query without. An answer in the order of
	// scores sets the Frequencies that are not known, when it is opened, and begins behind After.
	Scores *score.Scores
}

// Ranker is a Keeper that knows how frequent words are.
type Ranker interface {
	// Frequencies returns how often the words of a search are in the documents that m shows, or nil if the index does not have
	// these words.
	Frequencies(m Means, words *score.Words) (*text.Frequencies, error)
}

// Answer is how an index answers a question.
type Answer struct {
	Used    []int  // the positions of the conditions by which the candidates were chosen; may be empty if Ordered
	Exact   []int  // those of Used that are true of each candidate, so that they are not checked again
	Ordered bool   // the candidates come in the order asked for, equal ones by ID in the direction of the last order
	Text    string // says how, for Explain

	// Likely candidates are asked for in an order, and come so that the first ones are likely to be first in it: the query sorts those that are answers. They end when
	// Need answers have been found and no other candidate is likely to come before them, so that an answer may be missed. They are Bounded.
	Likely bool

	// Reads is true if most keys of the index are read to find candidates: plans do not count them.
	Reads bool

	// Open returns the candidates: each document of which all conditions in Used are true, once,
	// and perhaps others. With an error there are none: Open has closed what it had opened.
	Open func(m Means) (Candidates, error)
}

// Means are what a query lets an index find candidates with: its snapshot, in which a read returns an error when the query must end, as its context
// has ended; and what bounds their work and memory. They are not safe for concurrent use.
type Means interface {
	storage.Reader

	// Spend counts work beyond what reading takes, in units of a byte that is looked at.
	Spend(work int)

	// Hold counts bytes that are held in memory, or, if they are negative, no longer are. It returns an error beyond what the query may hold.
	// When candidates are closed, they hold nothing.
	Hold(bytes int) error
}

// Candidates are documents that may be answers. They are not safe for concurrent use.
type Candidates interface {
	// Next returns the folded ID of the next one, nil at the end. It is valid until the next call.
	Next() ([]byte, error)

	Close() error
}

// Examiner are Candidates that know how many keys they have examined; of others each candidate counts as one.
type Examiner interface {
	Candidates

	Examined() int64
}

// Bounded are Candidates of a Likely answer.
type Bounded interface {
	Candidates

	// Bound says that as many answers as are wanted have been found, of which the last is at this distance. It may be called again, with a lesser one.
	Bound(distance float64)
}

// Telling are Candidates that say how they were found, for Explain. It is asked before they are closed.
type Telling interface {
	Candidates

	Tell() string
}

// Counted are Candidates that are counted faster than one by one.
type Counted interface {
	Candidates

	// Count returns how many candidates are left, and how many keys it has examined. Nothing else is called after it but Close.
	Count() (n, keys int64, err error)
}

// GroupAnswerer is a Keeper of an index that keeps something of groups of documents.
type GroupAnswerer interface {
	// AnswerGroups returns how the index answers a query of groups, or nil if it cannot.
	AnswerGroups(q *GroupQuestion) *GroupAnswer
}

// GroupQuestion is what a query of groups asks of an index. Its documents are those of one collection, and those with
// the condition of a partial index.
type GroupQuestion struct {
	Each       query.Each // the documents are the elements of this fan-out, if it is one
	GroupBy    []query.Field
	Columns    []query.Column // what is wanted of each group, for its condition included
	Conditions []query.Expr   // on documents: all of them must be true
	Several    bool           // a document may be in several groups of the index
	Cut        bool           // the index has not all of some document: it has FlagCut
	Present    bool           // documents in which a field of the group by reaches nothing are left out
	Ranges     []GroupRange   // of the groups that the conditions leave, ascending; nil for all
	OfGroups   bool           // Ranges are those of conditions on groups, and not on documents, which may be in other groups, too
}

// GroupRange is a range of groups by what AppendKey makes of their members, one behind the other: from Lo up to but not
// including Hi, or those that begin with Lo if Hi is nil.
type GroupRange struct{ Lo, Hi []byte }

// GroupAnswer is how an index answers a query of groups.
type GroupAnswer struct {
	Text string // says how, for Explain

	// Read adds all groups to groups, which has the GroupBy and the Columns of the question. It returns how many keys it
	// has examined. The changes are what the query sees and r does not.
	Read func(r storage.Reader, changes GroupChanges, groups *query.Groups) (keys int64, err error)
}

// GroupChanges are documents that a query sees, and those that it does not see, other than the index has them.
type GroupChanges struct {
	Hidden map[string]bool // by folded ID: what the index has of them does not count
	Bodies [][]byte        // of documents of the collection that count, too
}

// Precision is how closely Keeper.Bytes counts.
type Precision int

// Each takes longer than the one before it.
const (
	Roughly Precision = iota // an upper bound, of the number of entries alone
	Closely                  // an upper bound, of the lengths of the values
	Exactly
)

// kinds are those that this process knows.
var kinds = struct {
	sync.RWMutex
	byName map[string]Kind
}{byName: map[string]Kind{"": {Open: openOrdered, Options: []Option{Strictness()}}}}

// Register makes a kind known under a name, in this process, and returns what makes it
// unknown again. A database must not be open in between. It panics if the name is taken.
func Register(name string, kind Kind) (undo func()) {
	change := func(edit func(map[string]Kind)) {
		kinds.Lock()
		defer kinds.Unlock()
		next := maps.Clone(kinds.byName)
		edit(next)
		kinds.byName = next
	}
	change(func(known map[string]Kind) {
		if _, found := known[name]; found {
			panic(fmt.Sprintf("jay: there is a kind of indexes %q", name))
		}
		known[name] = kind
	})
	return func() { change(func(known map[string]Kind) { delete(known, name) }) }
}

// Forget makes a kind that is known unknown in this process, for tests, and returns what makes it known again. A
// database must not be open in between.
func Forget(name string) (restore func()) {
	kinds.Lock()
	defer kinds.Unlock()
	kind := kinds.byName[name]
	kinds.byName = maps.Clone(kinds.byName)
	delete(kinds.byName, name)
	return func() { Register(name, kind) }
}

// kindOf returns the kind with a name, if it is known.
func kindOf(name string) (kind Kind, known bool) {
	kinds.RLock()
	defer kinds.RUnlock()
	kind, known = kinds.byName[name]
	return kind, known
}

// knownKinds returns the names of the known kinds but the ordered one, joined by commas.
func knownKinds() string {
	kinds.RLock()
	defer kinds.RUnlock()
	names := slices.Sorted(maps.Keys(kinds.byName))
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return name == "" }), ", ")
}

// Document is a document whose entries are made, as the Keeper of one index sees it. It is valid
// until the call that it was given to returns.
type Document struct {
	Body []byte

	x     *extraction
	index int                  // the position of the index
	chunk int                  // of how many bytes of entries flush is called
	flush func(*Entries) error // or nil
}

// Values returns the values that a field of the index reaches, at least one: the missing
// value stands for none. All fields of all indexes of a collection are read in one pass.
func (d *Document) Values(field int) []query.Value { return d.x.slot(d.slot(field)).values }

// Reached returns how many values a field of the index reaches, without keeping more of them than an
// index may have.
func (d *Document) Reached(field int) int { return d.x.reader.Reached(d.slot(field)) }

func (d *Document) slot(field int) int { return d.x.ci.slots[d.index][field] }

// flushFull calls flush if there are many entries, and removes them.
func (d *Document) flushFull(e *Entries) error {
	if d.flush == nil || len(e.Arena) < d.chunk {
		return nil
	}
	err := d.flush(e)
	e.List, e.Arena = e.List[:0], e.Arena[:0]
	return err
}

// Add adds an entry of a document, for Keeper.Extract of a kind that is not ordered. Both are copied. The
// key is the Keeper's part: where it ends must follow from itself. An entry that is there
// already is added once; entries with one key have one value.
func (e *Entries) Add(d *Document, key, value []byte) {
	start := len(e.Arena)
	e.Arena = append(append(e.Arena, key...), value...)
	e.List = append(e.List, Entry{Index: d.x.ci.Indexes[d.index], order: int32(d.index), Values: e.Arena[start:len(e.Arena):len(e.Arena)], cut: int32(len(key)), added: true})
}

// Mark sets flags of the index of a document, for Keeper.Extract of a kind that is not ordered.
func (e *Entries) Mark(d *Document, flags byte) { e.flag(d.x.ci.Indexes[d.index], flags) }

// Given returns the key and the value that Entries.Add was given, for a Stager.
func (e *Entry) Given() (key, value []byte) { return e.Values[:e.cut], e.Values[e.cut:] }

// EntryKey returns the Keeper's part of the key of an entry that Entries.Add has made, and the folded ID:
// n is how many bytes that part has, if it has any.
func EntryKey(key []byte, n int) (part, folded []byte, err error) {
	rest := key[min(len(key), 5):]
	if n < 0 || len(rest) < n+2 || rest[len(rest)-1] != 0 || bytes.IndexByte(rest[n:], 0) != len(rest)-n-1 {
		return nil, nil, fmt.Errorf("index entry %x: %w", key, errs.ErrCorrupt)
	}
	return rest[:n], rest[n : len(rest)-1], nil
}
