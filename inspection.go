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
	"github.com/jaydb/jay/metadata"
)

// maxListed is how many prefixes, tags and identities InspectIDs keeps, each.
const maxListed = 10_000

// serverSideDigits is how many digits a server-side ID has.
const serverSideDigits = 19

// inspection is an InspectIDs under way.
type inspection struct {
	db         *DB
	report     IDReport
	hiloPrefix []byte // folded
	separator  []byte // folded
	nodeTag    string // folded

	rows       map[rowKey]*IDPrefix       // by the collection as written
	foldedRows map[rowKey]*IDPrefix       // by the collection folded
	rest       *IDPrefix                  // nil while all are listed
	tags       map[string]*tagState       // by tag and separator
	identities map[string]*IdentityReport // by the ID without its number
	unlisted   map[string]bool            // what there are too many of
}

// rowKey names a row of the report.
type rowKey struct{ prefix, collection string }

// tagState is what is gathered about a HiLo tag.
type tagState struct {
	HiLoReport
	leases    []ids.Lease
	documents int64 // that have a number up to the mark
	leased    int64 // that have a number of an open lease
	recorded  bool  // there is a mark
}

// inspectIDs reads the counters, the documents' headers, and the HiLo
// documents, all from the snapshot of one scan.
func (db *DB) inspectIDs(ctx context.Context, progress func(documents int64)) (IDReport, error) {
	// Before the snapshot: what is lost later may be of later ranges.
	lost := db.gaps.unused()
	w, err := db.startScan(Scan{})
	if err != nil {
		return IDReport{}, err
	}
	defer w.close()

	in := &inspection{
		db:         db,
		report:     IDReport{NodeTag: db.rules.NodeTag, Prefixes: []IDPrefix{}, HiLo: []HiLoReport{}, Identities: []IdentityReport{}, Warnings: []IDWarning{}},
		hiloPrefix: []byte(db.rules.Fold(hiloPrefix)),
		separator:  []byte(db.foldSep),
		nodeTag:    db.rules.Fold(db.rules.NodeTag),
		rows:       make(map[rowKey]*IDPrefix),
		foldedRows: make(map[rowKey]*IDPrefix),
		tags:       make(map[string]*tagState),
		identities: make(map[string]*IdentityReport),
		unlisted:   make(map[string]bool),
	}
	if err := in.atSnapshot(w, func() error { return in.readCounters(ctx, w) }); err != nil {
		return IDReport{}, err
	}
	for more := true; more; {
		if more, err = w.headers(ctx, 8192, in.document); err != nil {
			return IDReport{}, err
		}
		if progress != nil {
			progress(in.report.Documents)
		}
	}
	if err := in.atSnapshot(w, func() error { return in.readHiLo(ctx, w, lost) }); err != nil {
		return IDReport{}, err
	}
	in.finish()
	return in.report, nil
}

// atSnapshot calls fn, none of the user's code, while neither the database nor
// the scan can be closed.
func (in *inspection) atSnapshot(w *scan, fn func() error) error {
	if err := in.db.enter(); err != nil {
		return err
	}
	defer in.db.exit()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return w.closed
	}
	return fn()
}

// readCounters reads the marks and identities.
func (in *inspection) readCounters(ctx context.Context, w *scan) error {
	err := eachKey(ctx, w.snapshot, spaceHiLo, func(tag string, value []byte) error {
		marks, err := decodeMarks(value)
		if t := in.tag(tag); err == nil && t != nil {
			t.Mark, t.Top, t.OpenLeases = marks.Mark, marks.Top, len(marks.Leases)
			t.leases, t.recorded = marks.Leases, true
		}
		return err
	})
	if err != nil {
		return err
	}
	return eachKey(ctx, w.snapshot, spaceIdentity, func(name string, value []byte) error {
		record, err := decodeIdentity(value)
		if err != nil {
			return err
		}
		if len(in.identities) >= maxListed {
			in.unlisted["identities"] = true
			return nil
		}
		last := int64(record.settled(in.db.ceilings.session).last)
		prefix := strings.TrimSuffix(name, ids.IdentityMark) + in.db.foldSep
		in.identities[prefix] = &IdentityReport{Name: name, Last: last, NeedsFloor: record.node != in.db.node}
		return nil
	})
}

// tag returns the state of a folded tag, nil if there are too many.
func (in *inspection) tag(tag string) *tagState {
	prefix := tag + in.db.foldSep
	t := in.tags[prefix]
	if t != nil {
		return t
	}
	if len(in.tags) >= maxListed {
		in.unlisted["HiLo tags"] = true
		return nil
	}
	t = &tagState{HiLoReport: HiLoReport{Tag: tag}}
	in.tags[prefix] = t
	return t
}

// document counts a document. It keeps nothing that it is given.
func (in *inspection) document(id []byte, h *metadata.Header, _ int) {
	in.report.Documents++
	s := in.shapeOf(id)
	row := in.row(s.prefix, h.Collection)
	row.Documents++
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
		in.tags[string(s.prefix)].use(s.number, own)
	case ids.Identity:
		row.Identity++
		row.HighestIdentity = max(row.HighestIdentity, s.number)
		if i := in.identities[string(s.prefix)]; i != nil {
			i.Highest = max(i.Highest, s.number)
		} else {
			in.tags[string(s.prefix)].use(s.number, in.db.opts.HiLoMode != HiLo4)
		}
	default:
		row.Semantic++
	}
	if tag, is := bytes.CutPrefix(id, in.hiloPrefix); is {
		in.tag(string(tag)) // there may be no mark
	}
}

// use notes that a document has number n. The nil state notes nothing.
func (t *tagState) use(n int64, own bool) {
	if t == nil {
		return
	}
	if own {
		t.Highest = max(t.Highest, n)
	}
	if n > t.Mark {
		return
	}
	t.documents++
	i := sort.Search(len(t.leases), func(i int) bool { return t.leases[i].End >= n })
	if i < len(t.leases) && t.leases[i].Low <= n {
		t.leased++
	}
}

// row returns the row of a prefix and a collection.
func (in *inspection) row(prefix, collection []byte) *IDPrefix {
	if row := in.rows[rowKey{string(prefix), string(collection)}]; row != nil {
		return row
	}
	written := rowKey{string(prefix), string(collection)}
	folded := rowKey{written.prefix, in.db.collectionKey(written.collection)}
	row := in.foldedRows[folded]
	switch {
	case row != nil:
	case len(in.foldedRows) < maxListed:
		row = &IDPrefix{Prefix: written.prefix, Collection: orEmpty(written.collection)}
		in.foldedRows[folded] = row
	default:
		if in.rest == nil {
			in.rest = &IDPrefix{Rest: true}
		}
		return in.rest
	}
	if len(in.rows) < 2*maxListed { // spellings are many
		in.rows[written] = row
	}
	return row
}

// idShape is what an ID looks like.
type idShape struct {
	prefix   []byte
	strategy ids.Strategy
	number   int64  // of HiLo and Identity
	nodeTag  []byte // of HiLo and ServerSide, folded
}

// shapeOf takes a folded ID apart.
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
	if in.db.rules.CaseSensitive {
		letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	}
	rest = bytes.TrimRight(id, letters)
	if n := len(id) - len(rest); n < 1 || n > 4 || !bytes.HasSuffix(rest, []byte("-")) {
		return id, nil
	}
	return rest[:len(rest)-1], id[len(rest):]
}

// isGUID tells whether an ID has the form of a UUID.
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

// readHiLo reads the HiLo documents and adds up what became of the numbers.
func (in *inspection) readHiLo(ctx context.Context, w *scan, lost map[string]int64) error {
	stored, err := in.db.loadSettings()
	if err != nil {
		return err
	}
	lostOf := make(map[string]int64)
	for tag, n := range lost {
		lostOf[in.db.rules.Fold(tag)] += n
	}
	for _, prefix := range slices.Sorted(maps.Keys(in.tags)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := in.tags[prefix]
		doc, err := in.db.readFolded(w.snapshot, string(in.hiloPrefix)+t.Tag)
		if err != nil && err != ErrNotFound {
			return err
		}
		in.hiloDocument(t, doc)
		t.divide(lostOf[t.Tag])
		t.YearsLeft = yearsLeft(t.Mark, stored.Created, in.db.opts.Now())
		in.report.HiLo = append(in.report.HiLo, t.HiLoReport)
	}
	return nil
}

// hiloDocument compares the document of a tag, nil if there is none, with its
// mark.
func (in *inspection) hiloDocument(t *tagState, doc *Document) {
	name := hiloPrefix + t.Tag
	if doc == nil {
		if t.recorded {
			in.warn(WarnHiLoMissing, t.Tag, "document %q is not there, though numbers up to %d are granted; nothing is lost, the next range creates it anew", name, t.Mark)
		}
		return
	}

	t.Document = true
	hi, _ := numberOf(doc.body, serverHiField)
	switch {
	case hi > 0 && in.db.opts.HiLoCapacity == 0:
		in.warn(WarnNeedsCapacity, t.Tag, "document %q has a ServerHi, of HiLo2010: no range is granted until Options.HiLoCapacity says how many numbers its clients reserve", name)
		return
	case hi == 0 && gjson.GetBytes(doc.body, maxField).Type != gjson.Number:
		in.warn(WarnHiLoWithoutMax, t.Tag, "document %q has no number in %s; the next range goes on from the mark, %d, and puts it right", name, maxField, t.Mark)
		return
	}
	used, err := in.db.maxOf(doc.body)
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

// divide tells what became of the numbers that no document has.
func (t *tagState) divide(lost int64) {
	leased := -t.leased
	for _, l := range t.leases {
		leased += max(l.End-l.Low+1, 0)
	}
	// What this process lost is of ranges it holds: it counts once.
	t.Unused = max(t.Mark-t.documents, 0)
	t.LostInThisProcess = min(lost, t.Unused)
	others := t.Unused - t.LostInThisProcess
	t.InOpenLeases = min(max(leased-t.LostInThisProcess, 0), others)
	t.DeletedOrLost = others - t.InOpenLeases
}

// yearsLeft returns how long the numbers above mark last, or nil.
func yearsLeft(mark int64, created, now time.Time) *float64 {
	age := now.Sub(created)
	if mark <= 0 || created.IsZero() || age <= 0 {
		return nil
	}
	const year = 365.2425 * 24 * float64(time.Hour)
	years := float64(math.MaxInt64-mark) / float64(mark) * float64(age) / year
	return &years
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
		r.Identities = append(r.Identities, *in.identities[prefix])
		in.checkIdentity(prefix, in.identities[prefix])
	}
	slices.SortFunc(r.Identities, func(a, b IdentityReport) int { return strings.Compare(a.Name, b.Name) })
	in.checkNumbers()
	in.checkPrefixes()
	if in.rest != nil {
		r.Prefixes = append(r.Prefixes, *in.rest)
		in.warn(WarnTooMany, "", "there are more than %d prefixes: %d documents are counted in one entry, and not looked at one prefix at a time", maxListed, in.rest.Documents)
	}
	for _, what := range slices.Sorted(maps.Keys(in.unlisted)) {
		in.warn(WarnTooMany, "", "there are more than %d %s: the others are not looked at", maxListed, what)
	}
}

// checkIdentity warns about one identity.
func (in *inspection) checkIdentity(prefix string, i *IdentityReport) {
	if i.NeedsFloor {
		in.warn(WarnNeedsFloor, i.Name, "identity %q of this copy waits for a number that the original has not passed: seed it", i.Name)
	}
	if i.Highest <= i.Last {
		return
	}
	if t := in.tags[prefix]; t != nil && i.Highest <= t.Mark && in.db.opts.HiLoMode != HiLo4 {
		return // more likely a number of HiLo2
	}
	in.warn(WarnAboveIdentity, i.Name, "document %q is above the last number of identity %q, %d; it will be passed over, or seed the identity with %d", prefix+strconv.FormatInt(i.Highest, 10), i.Name, i.Last, i.Highest)
}

// checkNumbers warns about HiLo numbers that were not granted, those of
// prefixes that have no tag at all included.
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

// checkPrefixes warns about prefixes that collections share. The IDs without a
// prefix are nobody's.
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
