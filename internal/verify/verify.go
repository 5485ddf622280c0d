// Package verify checks what is stored in a database: every record by itself, and all
// that must agree with one another.
//
// It reads a snapshot, one key space after the other, and keeps no list of what it has
// seen. Where two key spaces must agree (documents and index entries, say), each record
// adds a number of 128 bits to one of 65,536 sums when it is met on one side, and takes
// it away when it is met on the other: see [ledger]. Sums that are not 0 at the end name
// the records to look at again, one by one. So the memory is the same for every size,
// and a database without damage is read once.
//
// Records that are sorted alike (a document, its revisions, whether it was deleted) are
// merged instead.
package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Bounds. docs/limits.md has them.
const (
	DefaultDamages = 1000    // that a report lists
	MaxDamages     = 100_000 // that it may be asked to list

	stepKeys  = 4096    // keys that are read at a time
	stepBytes = 4 << 20 // bytes of them

	maxGroups = 100_000 // numbers that are compared by name when the sums do not agree
)

// Config is what Run is given.
type Config struct {
	// Use calls fn with the reader that is checked, the same state each time. The
	// database may end between two calls; then Use returns an error.
	Use func(fn func(storage.Reader) error) error

	// Pause is called between two calls of Use. It reports progress and may wait. An
	// error ends the run. nil for nothing.
	Pause func(Progress) error

	// Damages is how many damages, and how many warnings, the report lists.
	Damages int
}

// Progress is how far a run is.
type Progress struct {
	Step  string // what is looked at, such as "documents"
	Keys  int64  // that were read, in all steps
	Bytes int64  // of them
	Found int64  // damages
}

// Damage is something that is not as it must be.
type Damage struct {
	Kind    Kind
	Key     []byte // nil for none
	Subject string // what it is about, for people
	Problem string
}

// Report is what a run has found.
type Report struct {
	Documents, Revisions, Changes, Deletions, IndexEntries, Contents, ContentBytes int64
	Keys, Bytes                                                                    int64

	Damages     []Damage
	Found       int64 // damages, also those that are not listed
	Warnings    []Damage
	Warned      int64
	ByKind      map[Kind]int64
	Unread      int64    // ranges of keys that could not be read
	NotCompared []string // what could not be compared, and why
}

// verifier is a run.
type verifier struct {
	ctx    context.Context
	config Config
	report *Report
	step   string

	settings  format.Settings
	rules     ids.Rules
	separator string          // folded
	nodeTags  map[string]bool // of IDs that are made here; folded
	origins   map[uint64]format.Origin
	ceiling   uint64 // no etag that was used is above it
	ceilingOK bool
	counts    format.CountState
	counted   bool // numbers of documents are kept
	sizes     format.CountState
	sized     bool // numbers of bytes are kept, and those of attachments and of what is due
	tallies   tallies
	times     format.TimesState
	timed     bool // the record of the times is there
	indexes   []*openIndex
	byNumber  map[uint32]*openIndex

	byCollection map[string]*catalog.Collection // of the indexes that are ready

	catalogOK bool // the record of the indexes could be read
	leftovers map[uint32]bool

	gaps gaps // what cannot be read, sorted; not more than maxGroups

	ledger  *ledger
	again   bool     // the last step: look at each record in a sum that is not 0
	groups  groups   // what the last step counts by name
	skipped []string // see Report.NotCompared

	unknown          bool // a document cannot be decoded: what it counts for is not known
	unknownLists     bool // so is a list of attachments
	unknownRevisions bool // so is a revision

	numbers  numbers
	contents contents

	key, value []byte // scratch of entryDerivation
}

// openIndex is an index, as far as it can be checked.
type openIndex struct {
	*catalog.Index
	ready bool
	flags byte // that documents need
}

// Run checks a database. The error is one of ctx, of Config, or of a reader that fails
// for another reason than damage.
func Run(ctx context.Context, c Config) (*Report, error) {
	if c.Damages <= 0 {
		c.Damages = DefaultDamages
	}
	c.Damages = min(c.Damages, MaxDamages)
	v := &verifier{ctx: ctx, config: c, report: &Report{ByKind: make(map[Kind]int64)}, leftovers: make(map[uint32]bool)}
	v.ledger = newLedger()
	defer v.ledger.release()
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"settings", v.readSettings},
		{"leases", v.readLeases}, // before the documents, for the node tags
		{"documents", v.readDocuments},
		{"changes", v.readChanges},
		{"collections", v.readCollections},
		{"counters", v.readCounters},
		{"expiry", v.readTimes},
		{"subscriptions", v.readSubscriptions},
		{"definitions", v.readDefinitions},
		{"results of requests", v.readRequests},
		{"cluster", v.readCluster},
		{"indexes", v.readIndexes},
		{"attachments", v.readAttachments},
		{"damages", v.lookAgain},
	} {
		v.step = step.name
		if err := step.run(); err != nil {
			return v.report, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	v.report.NotCompared = v.skipped
	return v.report, nil
}

// use calls fn with the reader.
func (v *verifier) use(fn func(storage.Reader) error) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	return v.config.Use(fn)
}

// pause is called between two uses.
func (v *verifier) pause() error {
	if v.config.Pause == nil {
		return v.ctx.Err()
	}
	return v.config.Pause(Progress{Step: v.step, Keys: v.report.Keys, Bytes: v.report.Bytes, Found: v.report.Found})
}

// damage notes a damage, or a warning if its kind is one. The key is copied.
func (v *verifier) damage(kind Kind, key []byte, problem string, args ...any) {
	v.about(kind, key, v.describe(key), problem, args...)
}

// about is damage with a subject that the key does not have.
func (v *verifier) about(kind Kind, key []byte, subject, problem string, args ...any) {
	r := v.report
	list, n := &r.Damages, &r.Found
	if kind.IsWarning() {
		list, n = &r.Warnings, &r.Warned
	}
	*n++
	r.ByKind[kind]++
	if len(*list) >= v.config.Damages {
		return
	}
	*list = append(*list, Damage{Kind: kind, Key: append([]byte(nil), key...), Subject: subject, Problem: fmt.Sprintf(problem, args...)})
}

// get returns the value at a key. found is false if there is none, and known if that
// cannot be said, as the key lies in what cannot be read.
func (v *verifier) get(r storage.Reader, key []byte) (value []byte, found, known bool, err error) {
	if _, lies := v.gapAt(key); lies {
		return nil, false, false, nil
	}
	stored, closer, err := r.Get(key)
	switch {
	case err == nil:
		value = append([]byte(nil), stored...)
		return value, true, true, closer.Close()
	case err == storage.ErrNotFound:
		return nil, false, true, nil
	case errors.Is(err, storage.ErrCorrupt), errors.Is(err, storage.ErrUnreadable):
		return nil, false, false, nil
	}
	return nil, false, false, err
}

// lacks notes that something is not compared.
func (v *verifier) lacks(what string, args ...any) {
	if len(v.skipped) < 100 {
		v.skipped = append(v.skipped, fmt.Sprintf(what, args...))
	}
}
