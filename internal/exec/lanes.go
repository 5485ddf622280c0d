package exec

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// lanes look at the documents of a scan on several goroutines, as long as processors are free.
//
// They work in rounds, within a call of the one who wants the answers: no goroutine outlives it. In a round each goroutine
// takes a part of the documents from the cursor, one goroutine at a time, copies them as they are stored, and looks at its
// copies while another one takes the next part. What has come of the parts is handed over in the order of the scan, so that
// the answers are those of one goroutine. If no processor is free, the caller looks at the documents where they are.
type lanes struct {
	r      *Run
	scan   *scanSource
	counts bool          // only the number of answers is wanted
	groups *query.Groups // where groups are gathered, if only these are wanted; else nil
	room   int           // parts of the next round
	given  int           // parts of the last round that were handed over

	mu    sync.Mutex // guards what follows, and the cursor of the scan, during a round
	lanes []*lane
	used  int // lanes that a goroutine of the round has
	parts []part
	taken int  // parts that have begun
	full  bool // no further part begins
	ended bool // no further round begins
}

// part is a part of the documents, and what has come of it.
type part struct {
	docs   []*docs.Document // the answers; or
	n      int64            // their number; or
	groups *query.Groups    // those of them, empty without answers, and nil before the first one
	looked int64            // documents
	err    error            // why it ended early

	copies []byte   // IDs and documents that were looked at, or will be
	ends   [][2]int // for each of them where its ID ends, and where it does
	beyond bool     // groups are too large for a part: they must be made of the copies once more
}

// groupBytes bounds the groups of a part, which are kept until the round ends.
const groupBytes = 256 << 10

// lane is the state of one goroutine.
type lane struct {
	of      *lanes
	matcher *query.Matcher // nil for no condition
	sorter  *query.Sorter  // nil for no bound
	pace    *query.Pace
	meta    docMeta
	header  metadata.Header
	member  docs.Membership
	key     []byte        // scratch
	groups  *query.Groups // to which documents are added; nil for those of the part
}

// scanRun is what a run does while several goroutines look at its documents.
type scanRun struct{ r *Run }

// newLanes returns the lanes of a scan, or nil if one goroutine is as good, or if the condition needs
// something of which the run has only one.
func (s scanRun) newLanes() *lanes {
	r := s.r
	scan, is := r.source.(*scanSource)
	if !is || r.fan != nil || r.loading.spec != nil || r.meta.scorer != nil || r.env.Fresh != nil || runtime.GOMAXPROCS(0) == 1 {
		return nil
	}
	return &lanes{r: r, scan: scan, room: 1} // short scans start no goroutine
}

// count counts what matches of all documents of a scan. If there are no lanes, or nothing for them to do, it leaves all of them
// to the caller.
func (s scanRun) count(ctx context.Context) (n int64, err error) {
	l := s.newLanes()
	if l == nil || s.r.matcher == nil {
		return 0, nil
	}
	l.counts = true
	err = l.all(ctx, func(p *part) error {
		n += p.n
		return nil
	})
	return n, err
}

// group gathers all documents of a scan into groups. If there are no lanes, it leaves all of them to the caller.
func (s scanRun) group(ctx context.Context, groups *query.Groups) error {
	l := s.newLanes()
	if l == nil {
		return nil
	}
	l.groups = groups
	held := groups.Bytes()
	return l.all(ctx, func(p *part) error {
		if p.groups != nil {
			if p.beyond || !groups.Fits(p.groups) {
				l.ended = true // the rest is as large
				if err := l.addAlone(p); err != nil {
					return err
				}
			} else if err := groups.Merge(p.groups); err != nil {
				return fmt.Errorf("%w: %w", errs.ErrQuery, err)
			}
			p.groups.Reset()
		}
		before := held
		held = max(held, groups.Bytes())
		return s.r.payer.Pay(held - before)
	})
}

// addAlone adds the documents of a part to the groups of all.
func (l *lanes) addAlone(p *part) error {
	n := l.lanes[0]
	n.groups = l.groups
	again := part{copies: p.copies, ends: p.ends}
	n.lookAtCopies(&again)
	l.r.stats.documents += again.looked - p.looked
	return again.err
}

// next returns the next answer of a scan, nil at the end. ok is false if no lanes look at it.
func (s scanRun) next(ctx context.Context) (doc *docs.Document, ok bool, err error) {
	r := s.r
	scan, is := r.source.(*scanSource)
	if !is || r.matcher == nil && r.bound == nil {
		return nil, false, nil
	}
	if !scan.begun && r.stats.documents >= knobs.ScanAlone {
		scan.begun, scan.lanes = true, s.newLanes()
	}
	if scan.lanes != nil {
		doc, err = scan.lanes.next(ctx)
		return doc, true, err
	}
	switch {
	case scan.begun:
		scan.w.Interrupt = nil
	case scan.w.Interrupt == nil:
		scan.w.Interrupt = scan.askAlone
	}
	return nil, false, nil
}

// errLanes ends the search of one goroutine for the next answer: lanes go on.
var errLanes = errors.New("several goroutines go on")

// askAlone is docs.Cursor.Interrupt of a scan for which there may be lanes.
func (s *scanSource) askAlone() error {
	if s.r.stats.documents >= knobs.ScanAlone {
		return errLanes
	}
	return nil
}

// next returns the next answer, nil at the end.
func (l *lanes) next(ctx context.Context) (*docs.Document, error) {
	for {
		for l.given < l.taken {
			p := &l.parts[l.given]
			if len(p.docs) > 0 {
				doc := p.docs[0]
				p.docs[0], p.docs = nil, p.docs[1:]
				return doc, nil
			}
			if p.err != nil {
				return nil, p.err
			}
			l.given++
		}
		if l.ended {
			return nil, nil
		}
		if err := l.round(ctx); err != nil {
			return nil, err
		}
	}
}

// all looks at all documents, and calls use with what has come of each part.
func (l *lanes) all(ctx context.Context, use func(*part) error) error {
	for !l.ended {
		if err := l.round(ctx); err != nil {
			return err
		}
		for i := range l.taken {
			p := &l.parts[i]
			if p.err != nil {
				return p.err
			}
			if err := use(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// round looks at the next parts.
func (l *lanes) round(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range l.taken {
		p := &l.parts[i]
		copies := p.copies[:0]
		if cap(copies) > 4*knobs.ScanPartBytes { // of a long document
			copies = nil
		}
		*p = part{groups: p.groups, copies: copies, ends: p.ends[:0]}
	}
	l.used, l.taken, l.given, l.full = 0, 0, 0, false
	room := l.room
	l.room = min(4*room, knobs.ScanParts)
	if more := room - len(l.parts); more > 0 {
		l.parts = append(l.parts, make([]part, more)...)
	}
	err := parallel.DoSpare(room, 1, func(helpers int) func(lo, hi int) error {
		n := l.lane(ctx)
		if n.groups = nil; helpers == 0 {
			n.groups = l.groups
		}
		return func(lo, hi int) error {
			for range hi - lo {
				n.work(ctx, helpers > 0)
			}
			return nil
		}
	})
	for i := range l.taken {
		l.r.stats.documents += l.parts[i].looked
	}
	return err
}

// lane returns a lane that no goroutine of this round has.
func (l *lanes) lane(ctx context.Context) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used == len(l.lanes) {
		l.lanes = append(l.lanes, l.newLane())
	}
	n := l.lanes[l.used]
	l.used++
	n.pace.Begin(ctx)
	return n
}

// newLane returns the next lane. The first one has what the run itself looks at documents with, which no other goroutine uses meanwhile.
func (l *lanes) newLane() *lane {
	r := l.r
	n := &lane{of: l, meta: docMeta{env: r.env}, matcher: r.matcher, pace: &r.pace}
	if r.bound != nil {
		n.sorter = r.sorter
	}
	if r.q.From != "" {
		n.member = docs.MembershipOf(format.CollectionKey(r.q.From))
	}
	if len(l.lanes) == 0 {
		return n
	}
	n.pace = new(query.Pace)
	n.pace.Within(&r.pace)
	if n.matcher != nil {
		n.matcher = n.matcher.Clone()
		n.matcher.SetPace(n.pace)
	}
	if n.sorter != nil {
		n.sorter = n.sorter.Clone()
		n.sorter.SetPace(n.pace)
	}
	return n
}

// work takes a part and looks at it, if one is left. With other goroutines it copies the part first.
func (n *lane) work(ctx context.Context, others bool) {
	p, err := n.take(ctx, others)
	if p == nil {
		return
	}
	n.lookAtCopies(p)
	if p.err == nil {
		p.err = err
	}
}

// take takes a part. What it has not copied it has looked at. The error is to come after what was copied.
func (n *lane) take(ctx context.Context, copies bool) (p *part, err error) {
	l := n.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full || l.ended {
		return nil, nil
	}
	p = &l.parts[l.taken]
	l.taken++
	size := 0
	more, err := l.scan.w.Records(ctx, func(folded, record []byte) bool {
		// A long one is the last one of the round, and copied for groups only: they may be made once more.
		long := len(record) >= knobs.ScanPartBytes
		l.full = l.full || long
		if copies && (!long || l.groups != nil) {
			p.copy(folded, record)
		} else {
			n.lookAtCopies(p)
			n.look(p, folded, record)
		}
		size += len(folded) + len(record)
		return size < knobs.ScanPartBytes && p.err == nil
	})
	l.ended = !more || p.err != nil
	return p, err
}

// copy copies a document as it is stored.
func (p *part) copy(folded, record []byte) {
	p.copies = append(p.copies, folded...)
	id := len(p.copies)
	p.copies = append(p.copies, record...)
	p.ends = append(p.ends, [2]int{id, len(p.copies)})
}

// lookAtCopies looks at the documents that were copied.
func (n *lane) lookAtCopies(p *part) {
	from := 0
	for _, end := range p.ends {
		n.look(p, p.copies[from:end[0]], p.copies[end[0]:end[1]])
		if p.err != nil || p.beyond {
			break
		}
		from = end[1]
	}
	if n.of.groups == nil {
		p.copies, p.ends = p.copies[:0], p.ends[:0]
	}
}

// look notes what comes of a document.
func (n *lane) look(p *part, folded, record []byte) {
	r := n.of.r
	if p.err != nil {
		return
	}
	body, err := n.header.Decode(record)
	if err != nil {
		p.err = fmt.Errorf("document %q: %w", folded, err)
		return
	}
	if !n.member.Has(n.header.Collection) {
		return
	}
	p.looked++
	if !n.pace.Spend(len(body)) || (scanRun{r}).leavesOut(folded, &n.header) {
		p.err = n.pace.Err()
		return
	}
	n.meta.folded, n.meta.header = folded, &n.header
	doc := query.Doc{Body: body, Meta: &n.meta}
	found := n.matcher == nil || n.matcher.Match(doc)
	if p.err = n.pace.Err(); !found || p.err != nil {
		return
	}
	switch {
	case n.of.counts:
		p.n++
	case n.of.groups != nil:
		p.err = n.group(p, doc)
	case n.sorter != nil && r.bound.isBefore(n.sorter, &n.key, doc):
		p.err = n.pace.Err()
	default:
		var copied *docs.Document
		if copied, p.err = r.docs.CopyDocument(folded, record); p.err == nil {
			p.docs = append(p.docs, copied)
		}
	}
}

// group adds a document to the groups of a part, or to those of all.
func (n *lane) group(p *part, doc query.Doc) error {
	if n.groups != nil {
		return groupError(doc, n.groups.Add(doc), n.of.r.pace.Err())
	}
	if p.groups == nil {
		p.groups = n.of.groups.Fork(groupBytes)
	}
	p.groups.SetPace(n.pace)
	err := p.groups.Add(doc)
	if errors.Is(err, query.ErrLimit) && n.pace.Err() == nil {
		p.beyond = true // one goroutine may find that they fit, and otherwise says which document they are too large with
		return nil
	}
	return groupError(doc, err, n.pace.Err())
}

// leavesOut reports whether a document of the snapshot is none of the run, whatever the condition: it has expired, the transaction has
// written it, or it was met before. It is safe for concurrent use.
func (s scanRun) leavesOut(folded []byte, h *metadata.Header) bool {
	r := s.r
	if r.gone && docs.IsGone(h, r.moment) || r.overlay.Written != nil && r.overlay.Written[string(folded)] {
		return true
	}
	if r.unweighed.met == nil {
		return false
	}
	_, found := r.unweighed.met[string(folded)]
	return found
}
