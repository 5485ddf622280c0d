package jay

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/ids"
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

// maxListed is how many prefixes, tags and identities InspectIDs keeps of each
// kind, and maxDeleted how many numbers of deleted documents.
const (
	maxListed  = 10_000
	maxDeleted = 1 << 20
)

// lately is the period over which the rate of a counter is measured.
const lately = 30 * 24 * time.Hour

// serverSideDigits is how many digits a server-side ID has.
const serverSideDigits = 19

// inspection is an InspectIDs under way.
type inspection struct {
	db         *DB
	report     IDReport
	hiloPrefix []byte // folded
	separator  []byte // folded
	nodeTag    string // folded

	now     time.Time
	age     time.Duration // of the database
	cutoff  uint64        // ticks: what was written up to here was not written lately
	etags   usage
	deletes int // numbers of deleted documents that are kept

	rows       map[rowKey]*IDPrefix      // by the collection as written
	foldedRows map[rowKey]*IDPrefix      // by the collection folded
	rest       *IDPrefix                 // nil while all are listed
	tags       map[string]*tagState      // by tag and separator
	identities map[string]*identityState // by the ID without its number
	unlisted   map[string]int            // the kinds of which there are too many, and how many are kept
}

// rowKey names a row of the report.
type rowKey struct{ prefix, collection string }

// usage is how documents use the numbers of a counter. Numbers above last do not
// count.
type usage struct {
	last      int64
	documents int64              // that have a number
	newest    int64              // the highest of them
	before    int64              // the highest that was not written lately
	deleted   map[int64]struct{} // numbers of deleted documents
}

// use records that a document has number n.
func (u *usage) use(n int64, recent bool) {
	if n > u.last {
		return
	}
	u.documents++
	u.newest = max(u.newest, n)
	if !recent {
		u.before = max(u.before, n)
	}
	delete(u.deleted, n) // the document was written again
}

// unused returns how many numbers no document has.
func (u *usage) unused() int64 { return max(u.last-u.documents, 0) }

// tagState is what is gathered about a HiLo tag.
type tagState struct {
	HiLoReport
	usage
	leases   []ids.Lease
	leased   int64 // documents that have a number of an open lease
	recorded bool  // there is a mark
}

// identityState is what is gathered about an identity.
type identityState struct {
	IdentityReport
	usage
}

// atHand is what only this process knows about numbers, and the disk does not, by
// folded tag.
type atHand struct {
	lost map[string]int64           // drawn and not used
	late map[string]map[int64]int64 // by end, the last used number of ranges returned late
	held map[string][]ids.Lease     // undrawn numbers of clients
}

// numbersAtHand collects it from the clients of this process.
func numbersAtHand(db *DB) atHand {
	a := atHand{lost: make(map[string]int64), late: db.writer.Unused.ReturnedLate(), held: make(map[string][]ids.Lease)}
	for tag, n := range db.writer.Unused.Free() {
		a.lost[db.env.Rules.Fold(tag)] += n
	}
	eachClient(db, func(c *ids.Client) {
		c.Held(func(tag string, low, high int64) {
			tag = db.env.Rules.Fold(tag)
			a.held[tag] = append(a.held[tag], ids.Lease{Low: low, End: high})
		})
	})
	return a
}

// inspect reads the counters, the deletes, the documents' headers, and the HiLo
// documents, all from the snapshot of one Cursor.
func inspect(ctx context.Context, db *DB, progress func(documents int64)) (IDReport, error) {
	if err := db.env.Enter(); err != nil {
		return IDReport{}, err
	}
	// Before the snapshot: numbers lost later may belong to later ranges.
	hand := numbersAtHand(db)
	db.env.Exit()
	w, err := db.startScan(docs.Range{}, db.env.Engine.Snapshot)
	if err != nil {
		return IDReport{}, err
	}
	defer w.Close()

	in := &inspection{
		db:         db,
		report:     IDReport{NodeTag: db.env.Rules.NodeTag, Prefixes: []IDPrefix{}, HiLo: []HiLoReport{}, Identities: []IdentityReport{}, Warnings: []IDWarning{}},
		hiloPrefix: []byte(db.env.Rules.Fold(format.HiLoPrefix)),
		separator:  []byte(db.env.FoldedSeparator),
		nodeTag:    db.env.Rules.Fold(db.env.Rules.NodeTag),
		rows:       make(map[rowKey]*IDPrefix),
		foldedRows: make(map[rowKey]*IDPrefix),
		tags:       make(map[string]*tagState),
		identities: make(map[string]*identityState),
		unlisted:   make(map[string]int),
		now:        db.env.Now(),
	}
	in.cutoff = metadata.Ticks(in.now.Add(-lately))
	if err := in.atSnapshot(w, func(r storage.Reader) error { return in.readCounters(ctx, r) }); err != nil {
		return IDReport{}, err
	}
	if err := in.readDeletes(ctx, w); err != nil {
		return IDReport{}, err
	}
	for more := true; more; {
		if more, err = w.Headers(ctx, 8192, in.document); err != nil {
			return IDReport{}, err
		}
		if progress != nil {
			progress(in.report.Documents)
		}
	}
	if err := in.atSnapshot(w, func(r storage.Reader) error { return in.readHiLo(ctx, r, hand) }); err != nil {
		return IDReport{}, err
	}
	in.finish()
	return in.report, nil
}

// atSnapshot calls fn, which runs no user code, while neither the database nor the
// cursor can be closed.
func (in *inspection) atSnapshot(w *docs.Cursor, fn func(storage.Reader) error) error {
	if err := in.db.env.Enter(); err != nil {
		return err
	}
	defer in.db.env.Exit()
	return w.Use(fn)
}

// readCounters reads the marks and identities.
func (in *inspection) readCounters(ctx context.Context, snapshot storage.Reader) error {
	stored, err := settings.Load(in.db.env.Engine)
	if err != nil {
		return err
	}
	if !stored.Created.IsZero() {
		in.age = in.now.Sub(stored.Created)
	}
	if in.report.Etags.Last, err = in.db.reserved.LastEtag(snapshot); err != nil {
		return err
	}
	in.etags.last = int64(min(in.report.Etags.Last, math.MaxInt64))

	err = counters.EachKey(ctx, snapshot, format.SpaceHiLo, func(tag string, value []byte) error {
		marks, err := format.DecodeMarks(value)
		if t := in.tag(tag); err == nil && t != nil {
			t.Mark, t.Top, t.OpenLeases = marks.Mark, marks.Top, len(marks.Leases)
			t.leases, t.recorded, t.last = marks.Leases, true, marks.Mark
			t.NeedsFloor = in.untagged() && marks.Node != in.db.env.Node
		}
		return err
	})
	if err != nil {
		return err
	}
	return counters.EachKey(ctx, snapshot, format.SpaceIdentity, func(name string, value []byte) error {
		record, err := format.DecodeIdentity(value)
		if err != nil {
			return err
		}
		if len(in.identities) >= maxListed {
			in.unlisted["identities"] = maxListed
			return nil
		}
		last := int64(in.db.reserved.Number(record).Last)
		prefix := strings.TrimSuffix(name, ids.IdentityMark) + in.db.env.FoldedSeparator
		in.identities[prefix] = &identityState{
			IdentityReport: IdentityReport{Name: name, Last: last, NeedsFloor: record.Node != in.db.env.Node},
			usage:          usage{last: last},
		}
		return nil
	})
}

// untagged reports whether this database makes HiLo IDs without a node tag.
func (in *inspection) untagged() bool { return in.db.opts.HiLoMode != HiLo4 }

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
	if s.strategy == ids.Identity {
		if i := in.identities[string(s.prefix)]; i != nil {
			return &i.usage
		}
	}
	if s.strategy == ids.Identity || s.strategy == ids.HiLo {
		if t := in.tags[string(s.prefix)]; t != nil {
			return &t.usage
		}
	}
	return nil
}

// tag returns the state of a folded tag, or nil if there are too many.
func (in *inspection) tag(tag string) *tagState {
	prefix := tag + in.db.env.FoldedSeparator
	t := in.tags[prefix]
	if t != nil {
		return t
	}
	if len(in.tags) >= maxListed {
		in.unlisted["HiLo tags"] = maxListed
		return nil
	}
	// A tag without a record belongs to node 0.
	t = &tagState{HiLoReport: HiLoReport{Tag: tag, NeedsFloor: in.untagged() && in.db.env.Node != 0}}
	in.tags[prefix] = t
	return t
}

// document counts a document. It does not keep its arguments.
func (in *inspection) document(id []byte, h *metadata.Header, _ int) {
	in.report.Documents++
	s := in.shapeOf(id)
	row := in.row(s.prefix, h.Collection)
	row.Documents++
	recent := h.Modified > in.cutoff
	in.etags.use(int64(h.Etag), recent)
	if u := in.usageOf(s); u != nil {
		u.use(s.number, recent)
	}
	switch s.strategy {
	case ids.GUID:
		row.GUID++
	case ids.ServerSide:
		row.ServerSide++
	case ids.HiLo:
		row.HiLo++
		own := string(s.nodeTag) == in.nodeTag
		if own {
			row.HighestHiLo = max(row.HighestHiLo, s.number)
		}
		in.tags[string(s.prefix)].note(s.number, own)
	case ids.Identity:
		row.Identity++
		row.HighestIdentity = max(row.HighestIdentity, s.number)
		if i := in.identities[string(s.prefix)]; i != nil {
			i.Highest = max(i.Highest, s.number)
		} else {
			in.tags[string(s.prefix)].note(s.number, in.untagged())
		}
	default:
		row.Semantic++
	}
	if tag, is := bytes.CutPrefix(id, in.hiloPrefix); is {
		in.tag(string(tag)) // the tag may have no mark
	}
}

// note records what usage does not about a document with number n: whether it is
// the highest number made by this database, and whether its lease is open. On a nil
// tagState it does nothing.
func (t *tagState) note(n int64, own bool) {
	if t == nil {
		return
	}
	if own {
		t.Highest = max(t.Highest, n)
	}
	if n <= t.Mark && t.isLeased(n) {
		t.leased++
	}
}

// isLeased reports whether n is in an open lease.
func (t *tagState) isLeased(n int64) bool {
	i := sort.Search(len(t.leases), func(i int) bool { return t.leases[i].End >= n })
	return i < len(t.leases) && t.leases[i].Low <= n
}

// row returns the row of a prefix and a collection.
func (in *inspection) row(prefix, collection []byte) *IDPrefix {
	if row := in.rows[rowKey{string(prefix), string(collection)}]; row != nil {
		return row
	}
	written := rowKey{string(prefix), string(collection)}
	folded := rowKey{written.prefix, format.CollectionKey(written.collection)}
	row := in.foldedRows[folded]
	switch {
	case row != nil:
	case len(in.foldedRows) < maxListed:
		row = &IDPrefix{Prefix: written.prefix, Collection: write.OrEmpty(written.collection)}
		in.foldedRows[folded] = row
	default:
		if in.rest == nil {
			in.rest = &IDPrefix{Rest: true}
		}
		return in.rest
	}
	if len(in.rows) < 2*maxListed { // case variants are many
		in.rows[written] = row
	}
	return row
}

// idShape is the form of an ID.
type idShape struct {
	prefix   []byte
	strategy ids.Strategy
	number   int64  // of HiLo and Identity
	nodeTag  []byte // of HiLo and ServerSide, folded
}

// shapeOf parses a folded ID.
func (in *inspection) shapeOf(id []byte) idShape {
	if isGUID(id) {
		return idShape{strategy: ids.GUID}
	}
	rest, nodeTag := in.cutNodeTag(id)
	start := len(bytes.TrimRight(rest, "0123456789"))
	if prefix, digits := rest[:start], rest[start:]; len(digits) > 0 && bytes.HasSuffix(prefix, in.separator) {
		n, err := strconv.ParseInt(string(digits), 10, 64)
		switch {
		case nodeTag != nil && len(digits) == serverSideDigits && err == nil:
			return idShape{prefix: prefix, strategy: ids.ServerSide, nodeTag: nodeTag}
		case err != nil || digits[0] == '0':
		case nodeTag != nil:
			return idShape{prefix: prefix, strategy: ids.HiLo, number: n, nodeTag: nodeTag}
		default:
			return idShape{prefix: prefix, strategy: ids.Identity, number: n}
		}
	}
	s := idShape{strategy: ids.Semantic}
	if i := bytes.LastIndex(id, in.separator); i >= 0 {
		s.prefix = id[:i+len(in.separator)]
	}
	return s
}

// cutNodeTag cuts '-' and one to four letters off the end of a folded ID.
func (in *inspection) cutNodeTag(id []byte) (rest, nodeTag []byte) {
	letters := "abcdefghijklmnopqrstuvwxyz"
	if in.db.env.Rules.CaseSensitive {
		letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	}
	rest = bytes.TrimRight(id, letters)
	if n := len(id) - len(rest); n < 1 || n > 4 || !bytes.HasSuffix(rest, []byte("-")) {
		return id, nil
	}
	return rest[:len(rest)-1], id[len(rest):]
}

// isGUID reports whether an ID has the form of a UUID.
func isGUID(id []byte) bool {
	if len(id) != 36 {
		return false
	}
	for i, c := range id {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		default:
			return false
		}
	}
	return true
}

// readHiLo reads the HiLo documents and accounts for the numbers of each tag.
func (in *inspection) readHiLo(ctx context.Context, snapshot storage.Reader, hand atHand) error {
	for _, prefix := range slices.Sorted(maps.Keys(in.tags)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := in.tags[prefix]
		doc, err := in.db.docs.ReadFolded(snapshot, string(in.hiloPrefix)+t.Tag)
		if err != nil && err != ErrNotFound {
			return err
		}
		in.hiloDocument(t, doc)
		t.divide(hand)
		t.Forecast = in.forecast(&t.usage)
		in.report.HiLo = append(in.report.HiLo, t.HiLoReport)
	}
	return nil
}

// hiloDocument compares the document of a tag, nil if there is none, with its mark.
func (in *inspection) hiloDocument(t *tagState, doc *docs.Document) {
	name := format.HiLoPrefix + t.Tag
	if t.NeedsFloor {
		in.warn(WarnNeedsFloor, t.Tag, "HiLo tag %q of this copy waits for a number that the original has not passed: its ids have no node tag; give the number with RaiseCounters", t.Tag)
	}
	if doc == nil {
		if t.recorded {
			in.warn(WarnHiLoMissing, t.Tag, "document %q is not there, though numbers up to %d are granted; nothing is lost, the next range creates it anew", name, t.Mark)
		}
		return
	}

	t.Document = true
	hi, _ := hilo.NumberOf(doc.JSON(), hilo.ServerHiField)
	t.ServerHi = hi
	switch {
	case hi > 0 && in.db.opts.HiLoCapacity == 0:
		in.warn(WarnNeedsCapacity, t.Tag, "document %q has a ServerHi, of HiLo2010: no range is granted until Options.HiLoCapacity says how many numbers its clients reserve", name)
		return
	case hi == 0 && gjson.GetBytes(doc.JSON(), format.HiLoMax).Type != gjson.Number:
		in.warn(WarnHiLoWithoutMax, t.Tag, "document %q has no number in %s; the next range goes on from the mark, %d, and puts it right", name, format.HiLoMax, t.Mark)
		return
	}
	used, err := in.db.ranges.MaxOf(doc.JSON())
	if err != nil {
		used = math.MaxInt64 // no number is left above it
	}
	t.Max = &used
	switch {
	case used > t.Mark:
		in.warn(WarnHiLoEdited, t.Tag, "document %q has Max %d, but only numbers up to %d are granted; the next range goes on from the Max", name, used, t.Mark)
	case used < t.Mark:
		in.warn(WarnHiLoEdited, t.Tag, "document %q has Max %d, but numbers up to %d are granted; the next range goes on from there, and puts it right", name, used, t.Mark)
	}
}

// divide attributes the numbers that no document has. Deletions are the most
// certain, then what this process knows; no number counts twice.
func (t *tagState) divide(hand atHand) {
	leased, late := -t.leased, int64(0)
	for _, l := range t.leases {
		leased += max(l.End-l.Low+1, 0)
		if last, found := hand.late[t.Tag][l.End]; found {
			late += l.End - last
		}
	}
	for n := range t.deleted {
		if t.isLeased(n) {
			leased--
		}
	}

	t.Unused = t.unused()
	rest := t.Unused
	take := func(n int64) int64 {
		n = min(max(n, 0), rest)
		rest -= n
		return n
	}
	t.Deleted = take(int64(len(t.deleted)))
	t.ReturnedLate = take(late)
	t.LostInThisProcess = take(hand.lost[t.Tag])
	t.HeldInThisProcess = take(t.unleased(hand.held[t.Tag]))
	// Numbers lost here, or returned late, are in leases that are still open.
	t.InOpenLeases = take(leased - t.ReturnedLate - t.LostInThisProcess)
	t.Unaccounted = rest
}

// unleased counts the numbers of ranges, up to the mark, that are in no lease.
func (t *tagState) unleased(ranges []ids.Lease) (n int64) {
	for _, r := range ranges {
		r.End = min(r.End, t.Mark)
		n += max(r.End-r.Low+1, 0)
		for _, l := range t.leases {
			n -= max(min(r.End, l.End)-max(r.Low, l.Low)+1, 0)
		}
	}
	return n
}

// forecast estimates how long the numbers above those used will last.
func (in *inspection) forecast(u *usage) Forecast {
	if u.last <= 0 || in.age <= 0 {
		return Forecast{}
	}
	const day = 24 * float64(time.Hour)
	f := Forecast{Recent: in.age > lately && u.newest > u.before}
	perDay := float64(u.last) / max(float64(in.age)/day, 1)
	if f.Recent {
		perDay = float64(u.newest-u.before) / (float64(lately) / day)
	}
	years := float64(math.MaxInt64-u.last) / perDay / 365.2425
	f.PerDay, f.YearsLeft = &perDay, &years
	return f
}

// finish sorts the report and adds the warnings that need all of it.
func (in *inspection) finish() {
	r := &in.report
	for _, row := range in.foldedRows {
		r.Prefixes = append(r.Prefixes, *row)
	}
	slices.SortFunc(r.Prefixes, func(a, b IDPrefix) int {
		return cmp.Or(strings.Compare(a.Prefix, b.Prefix), strings.Compare(a.Collection, b.Collection))
	})
	for _, prefix := range slices.Sorted(maps.Keys(in.identities)) {
		i := in.identities[prefix]
		i.Unused = i.unused()
		i.Deleted = min(int64(len(i.deleted)), i.Unused)
		i.Forecast = in.forecast(&i.usage)
		r.Identities = append(r.Identities, i.IdentityReport)
		in.checkIdentity(prefix, &i.IdentityReport)
	}
	slices.SortFunc(r.Identities, func(a, b IdentityReport) int { return strings.Compare(a.Name, b.Name) })
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

// checkIdentity warns about one identity.
func (in *inspection) checkIdentity(prefix string, i *IdentityReport) {
	if i.NeedsFloor {
		in.warn(WarnNeedsFloor, i.Name, "identity %q of this copy waits for a number that the original has not passed; give it with SeedIdentity", i.Name)
	}
	if i.Highest <= i.Last {
		return
	}
	if t := in.tags[prefix]; t != nil && i.Highest <= t.Mark && in.db.opts.HiLoMode != HiLo4 {
		return // more likely a number of HiLo2
	}
	in.warn(WarnAboveIdentity, i.Name, "document %q is above the last number of identity %q, %d; it will be passed over, or seed the identity with %d", prefix+strconv.FormatInt(i.Highest, 10), i.Name, i.Last, i.Highest)
}

// checkNumbers warns about HiLo numbers that were not granted, including those of
// prefixes without a tag.
func (in *inspection) checkNumbers() {
	highest := make(map[string]int64)
	for prefix, t := range in.tags {
		highest[prefix] = t.Highest
	}
	for _, row := range in.foldedRows {
		highest[row.Prefix] = max(highest[row.Prefix], row.HighestHiLo)
	}
	for _, prefix := range slices.Sorted(maps.Keys(highest)) {
		granted := int64(0)
		if t := in.tags[prefix]; t != nil {
			granted = t.Mark
			if t.Max != nil {
				granted = max(granted, *t.Max)
			}
		}
		if n := highest[prefix]; n > granted {
			in.warn(WarnAboveMark, prefix, "number %d of %q is in use, but HiLo has counted up to %d; it will be passed over, or put a Max of %d in the HiLo document", n, prefix, granted, n)
		}
	}
}

// checkPrefixes warns about prefixes that collections share. IDs without a prefix
// belong to no collection in particular.
func (in *inspection) checkPrefixes() {
	rows := in.report.Prefixes
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Prefix == rows[0].Prefix {
			n++
		}
		if n > 1 && rows[0].Prefix != "" {
			in.warn(WarnSharedPrefix, rows[0].Prefix, "documents of %d collections have IDs that begin with %q, such as %q and %q", n, rows[0].Prefix, rows[0].Collection, rows[1].Collection)
		}
		rows = rows[n:]
	}
}

func (in *inspection) warn(kind IDWarningKind, name, format string, args ...any) {
	in.report.Warnings = append(in.report.Warnings, IDWarning{Kind: kind, Name: name, Text: fmt.Sprintf(format, args...)})
}

// InspectIDs examines the IDs of all documents and the counters behind them, and
// reports how the IDs were made, which numbers are used, and what looks wrong. It
// changes nothing. It reads every document's header and the records of all deletes,
// as they were when the call began, and keeps at most 10,000 prefixes, tags and
// identities each, and 1,048,576 numbers of deleted documents. progress, if not
// nil, is called now and then with the number of documents seen so far.
func (db *DB) InspectIDs(ctx context.Context, progress func(documents int64)) (IDReport, error) {
	r, err := inspect(ctx, db, progress)
	if err != nil {
		return IDReport{}, fmt.Errorf("inspect ids: %w", err)
	}
	return r, nil
}
