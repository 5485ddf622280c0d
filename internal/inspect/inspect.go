// Package inspect reports on the IDs of a database: how they were made, which numbers are used
// and what looks wrong (Run). It reads one snapshot, in steps that do not keep Close waiting,
// and changes nothing.
package inspect

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/hilo"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// maxListed is how many prefixes, tags and identities Run keeps of each
// kind, and maxDeleted how many numbers of deleted documents.
const (
	maxListed  = 10_000
	maxDeleted = 1 << 20
)

// inspection is a Run under way.
type inspection struct {
	db         *core.Database
	report     Report
	hiloPrefix []byte          // folded
	separator  []byte          // folded
	nodeTags   map[string]bool // of IDs that are made here: that of this process, and of those that have or had the store open; folded

	now     time.Time
	age     time.Duration // of the database
	cutoff  uint64        // ticks: what was written up to here was not written lately
	etags   usage
	deletes int // numbers of deleted documents that are kept

	rows       map[rowKey]*Prefix        // by the collection as written
	foldedRows map[rowKey]*Prefix        // by the collection folded
	rest       *Prefix                   // nil while all are listed
	tags       map[string]*tagState      // by tag and separator
	identities map[string]*identityState // by the ID without its number
	unlisted   map[string]int            // the kinds of which there are too many, and how many are kept
}

// rowKey names a row of the report.
type rowKey struct{ prefix, collection string }

// Run examines the IDs of all documents and the counters behind them. progress, if not nil, is
// called now and then with the number of documents seen so far.
//
// It reads the counters, the deletes, the documents' headers, and the HiLo
// documents, all from the snapshot of one Cursor.
func Run(ctx context.Context, db *core.Database, progress func(documents int64)) (Report, error) {
	if err := db.Env.Enter(); err != nil {
		return Report{}, err
	}
	// Before the snapshot: numbers lost later may belong to later ranges.
	hand := numbersAtHand(db)
	db.Env.Exit()
	w, err := db.Scan(docs.Range{}, db.Env.Engine.Snapshot)
	if err != nil {
		return Report{}, err
	}
	defer w.Close()

	in := &inspection{
		db:         db,
		report:     Report{NodeTag: db.Env.Rules.NodeTag, Prefixes: []Prefix{}, HiLo: []HiLo{}, Identities: []Identity{}, Warnings: []Warning{}},
		hiloPrefix: []byte(db.Env.Rules.Fold(format.HiLoPrefix)),
		separator:  []byte(db.Env.FoldedSeparator),
		nodeTags:   map[string]bool{db.Env.Rules.Fold(db.Env.Rules.NodeTag): true},
		rows:       make(map[rowKey]*Prefix),
		foldedRows: make(map[rowKey]*Prefix),
		tags:       make(map[string]*tagState),
		identities: make(map[string]*identityState),
		unlisted:   make(map[string]int),
		now:        db.Env.Now(),
	}
	in.cutoff = metadata.Ticks(in.now.Add(-lately))
	if err := in.atSnapshot(w, func(r storage.Reader) error { return in.readCounters(ctx, r) }); err != nil {
		return Report{}, err
	}
	if err := in.readDeletes(ctx, w); err != nil {
		return Report{}, err
	}
	if err := in.readBin(ctx, w); err != nil {
		return Report{}, err
	}
	for more := true; more; {
		if more, err = w.Headers(ctx, 8192, in.document); err != nil {
			return Report{}, err
		}
		if progress != nil {
			progress(in.report.Documents)
		}
	}
	if err := in.atSnapshot(w, func(r storage.Reader) error { return in.readHiLo(ctx, r, hand) }); err != nil {
		return Report{}, err
	}
	in.finish()
	return in.report, nil
}

// atSnapshot calls fn, which runs no user code, while neither the database nor the
// cursor can be closed.
func (in *inspection) atSnapshot(w *docs.Cursor, fn func(storage.Reader) error) error {
	if err := in.db.Env.Enter(); err != nil {
		return err
	}
	defer in.db.Env.Exit()
	return w.Use(fn)
}

// readCounters reads the marks and identities.
func (in *inspection) readCounters(ctx context.Context, snapshot storage.Reader) error {
	stored, err := settings.Load(in.db.Env.Engine)
	if err != nil {
		return err
	}
	if !stored.Created.IsZero() {
		in.age = in.now.Sub(stored.Created)
	}
	err = counters.EachKey(ctx, snapshot, format.SpaceLeases, func(key string, _ []byte) error {
		if tag, is := strings.CutPrefix(key, string(rune(format.LeaseUsed))); is {
			in.nodeTags[in.db.Env.Rules.Fold(tag)] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if in.report.Etags.Last, err = in.db.Reserved.LastEtag(snapshot); err != nil {
		return err
	}
	in.etags.last = int64(min(in.report.Etags.Last, math.MaxInt64))

	err = counters.EachKey(ctx, snapshot, format.SpaceHiLo, func(tag string, value []byte) error {
		marks, err := format.DecodeMarks(value)
		if t := in.tag(tag); err == nil && t != nil {
			t.Mark, t.Top, t.OpenLeases = marks.Mark, marks.Top, len(marks.Leases)
			t.leases, t.recorded, t.last = marks.Leases, true, marks.Mark
			t.NeedsFloor = in.untagged() && marks.Node != in.db.Env.Node
		}
		return err
	})
	if err != nil {
		return err
	}
	floors := in.db.Writer.Cluster == nil || in.db.Writer.Cluster.NeedsFloors()
	err = counters.EachKey(ctx, snapshot, format.SpaceIdentity, func(name string, value []byte) error {
		record, err := format.DecodeIdentity(value)
		if err != nil {
			return err
		}
		if len(in.identities) >= maxListed {
			in.unlisted["identities"] = maxListed
			return nil
		}
		last := int64(in.db.Reserved.Number(record).Last)
		prefix := strings.TrimSuffix(name, ids.IdentityMark) + in.db.Env.FoldedSeparator
		in.identities[prefix] = &identityState{
			Identity: Identity{Name: name, Last: last, NeedsFloor: floors && record.Node != in.db.Env.Node},
			usage:    usage{last: last},
		}
		return nil
	})
	if err != nil {
		return err
	}
	return in.readLost(ctx, snapshot)
}

// untagged reports whether this database makes HiLo IDs without a node tag.
func (in *inspection) untagged() bool { return in.db.HiLo.Generation != hilo.HiLo4 }

// readDeletes reads the records of deletes in chunks, so that Close need not wait
// long.
func (in *inspection) readDeletes(ctx context.Context, w *docs.Cursor) error {
	for from := []byte{format.SpaceChanges}; from != nil; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := in.atSnapshot(w, func(r storage.Reader) (err error) {
			from, err = in.readSomeDeletes(r, from)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readSomeDeletes reads change records from a key on, and returns the key to
// continue from, nil at the end.
func (in *inspection) readSomeDeletes(snapshot storage.Reader, from []byte) (next []byte, err error) {
	it, err := snapshot.Iterate(from, []byte{format.SpaceChanges + 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	ok := it.First()
	for n := 32_768; ok; ok = it.Next() {
		if n--; n < 0 {
			return bytes.Clone(it.Key()), nil
		}
		if value := it.Value(); len(value) > 0 && value[0] != format.ChangeDelete {
			continue
		}
		c, err := format.DecodeChange(it.Value())
		if err != nil {
			return nil, err
		}
		in.deleted([]byte(c.FoldedID))
	}
	return nil, it.Error()
}

// readBin reads the IDs of deleted documents that have revisions, in chunks: their numbers
// are known to be deleted however long that is ago.
func (in *inspection) readBin(ctx context.Context, w *docs.Cursor) error {
	for from := format.DeletedBounds[0]; from != nil; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := in.atSnapshot(w, func(r storage.Reader) (err error) {
			from, err = in.readSomeOfBin(r, from)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readSomeOfBin is readSomeDeletes for the list of deleted documents with revisions.
func (in *inspection) readSomeOfBin(snapshot storage.Reader, from []byte) (next []byte, err error) {
	it, err := snapshot.Iterate(from, format.DeletedBounds[1])
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	ok := it.First()
	for n := 8192; ok; ok = it.Next() {
		if n--; n < 0 {
			return bytes.Clone(it.Key()), nil
		}
		id, err := format.DeletedID(it.Key())
		if err != nil {
			return nil, err
		}
		// A document that is there again may have left the entry.
		there, err := docs.Exists(snapshot, format.DocumentKey(nil, id))
		if err != nil {
			return nil, err
		}
		if !there {
			in.report.DeletedWithRevisions++
			in.deleted([]byte(id))
		}
	}
	return nil, it.Error()
}

// deleted records the number of a deleted document.
func (in *inspection) deleted(id []byte) {
	s := in.shapeOf(id)
	u := in.usageOf(s)
	if u == nil || s.number > u.last {
		return
	}
	if in.deletes >= maxDeleted {
		in.unlisted["numbers of deleted documents"] = maxDeleted
		return
	}
	if u.deleted == nil {
		u.deleted = make(map[int64]struct{})
	}
	if _, found := u.deleted[s.number]; !found {
		u.deleted[s.number] = struct{}{}
		in.deletes++
	}
}

// usageOf returns the counter that the number of an ID is attributed to, or nil.
func (in *inspection) usageOf(s idShape) *usage {
	if s.strategy.FromCounter() {
		if i := in.identities[string(s.prefix)]; i != nil {
			return &i.usage
		}
	}
	if s.strategy.FromCounter() || s.strategy.FromRange() { // older HiLo IDs look like identities
		if t := in.tags[string(s.prefix)]; t != nil {
			return &t.usage
		}
	}
	return nil
}

// tag returns the state of a folded tag, or nil if there are too many.
func (in *inspection) tag(tag string) *tagState {
	prefix := tag + in.db.Env.FoldedSeparator
	t := in.tags[prefix]
	if t != nil {
		return t
	}
	if len(in.tags) >= maxListed {
		in.unlisted["HiLo tags"] = maxListed
		return nil
	}
	// A tag without a record belongs to node 0.
	t = &tagState{HiLo: HiLo{Tag: tag, NeedsFloor: in.untagged() && in.db.Env.Node != 0}}
	in.tags[prefix] = t
	return t
}

// document counts a document. It does not keep its arguments.
func (in *inspection) document(id []byte, h *metadata.Header, _ int) {
	in.report.Documents++
	if h.Timed && !h.Times().Expires.IsZero() {
		in.report.Expiring++
	}
	s := in.shapeOf(id)
	row := in.row(s.prefix, h.Collection)
	row.Documents++
	recent := h.Modified > in.cutoff
	in.etags.use(int64(h.Etag), recent)
	if u := in.usageOf(s); u != nil {
		u.use(s.number, recent)
	}
	*row.of(s.strategy)++
	switch {
	case s.strategy.FromRange():
		own := in.nodeTags[string(s.nodeTag)]
		if own {
			row.HighestHiLo = max(row.HighestHiLo, s.number)
		}
		in.tags[string(s.prefix)].note(s.number, own)
	case s.strategy.FromCounter():
		row.HighestIdentity = max(row.HighestIdentity, s.number)
		if i := in.identities[string(s.prefix)]; i != nil {
			i.Highest = max(i.Highest, s.number)
		} else {
			in.tags[string(s.prefix)].note(s.number, in.untagged())
		}
	}
	if tag, is := bytes.CutPrefix(id, in.hiloPrefix); is {
		in.tag(string(tag)) // the tag may have no mark
	}
}

// row returns the row of a prefix and a collection.
func (in *inspection) row(prefix, collection []byte) *Prefix {
	if row := in.rows[rowKey{string(prefix), string(collection)}]; row != nil {
		return row
	}
	written := rowKey{string(prefix), string(collection)}
	folded := rowKey{written.prefix, format.CollectionKey(written.collection)}
	row := in.foldedRows[folded]
	switch {
	case row != nil:
	case len(in.foldedRows) < maxListed:
		row = &Prefix{Prefix: written.prefix, Collection: write.OrEmpty(written.collection)}
		in.foldedRows[folded] = row
	default:
		if in.rest == nil {
			in.rest = &Prefix{Rest: true}
		}
		return in.rest
	}
	if len(in.rows) < 2*maxListed { // case variants are many
		in.rows[written] = row
	}
	return row
}

// finish sorts the report and adds the warnings that need all of it.
func (in *inspection) finish() {
	r := &in.report
	for _, row := range in.foldedRows {
		r.Prefixes = append(r.Prefixes, *row)
	}
	slices.SortFunc(r.Prefixes, func(a, b Prefix) int {
		return cmp.Or(strings.Compare(a.Prefix, b.Prefix), strings.Compare(a.Collection, b.Collection))
	})
	for _, prefix := range slices.Sorted(maps.Keys(in.identities)) {
		i := in.identities[prefix]
		i.Unused = i.unused()
		i.Deleted = min(int64(len(i.deleted)), i.Unused)
		i.Forecast = in.forecast(&i.usage)
		r.Identities = append(r.Identities, i.Identity)
		in.checkIdentity(prefix, &i.Identity)
	}
	slices.SortFunc(r.Identities, func(a, b Identity) int { return strings.Compare(a.Name, b.Name) })
	in.report.Etags.Forecast = in.forecast(&in.etags)
	in.checkNumbers()
	in.checkPrefixes()
	if in.rest != nil {
		r.Prefixes = append(r.Prefixes, *in.rest)
		in.warn(WarnTooMany, "", "there are more than %d prefixes: %d documents are counted in one entry, and not looked at one prefix at a time", maxListed, in.rest.Documents)
	}
	for _, what := range slices.Sorted(maps.Keys(in.unlisted)) {
		in.warn(WarnTooMany, "", "there are more than %d %s: the others are not looked at", in.unlisted[what], what)
	}
}
