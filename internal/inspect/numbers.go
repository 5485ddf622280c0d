package inspect

import (
	"context"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

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

// readHiLo reads the HiLo documents and accounts for the numbers of each tag.
func (in *inspection) readHiLo(ctx context.Context, snapshot storage.Reader, hand atHand) error {
	for _, prefix := range slices.Sorted(maps.Keys(in.tags)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := in.tags[prefix]
		doc, err := in.db.Docs.ReadFolded(snapshot, string(in.hiloPrefix)+t.Tag)
		if err != nil && err != errs.ErrNotFound {
			return err
		}
		in.hiloDocument(t, doc)
		t.divide(hand)
		t.Forecast = in.forecast(&t.usage)
		in.report.HiLo = append(in.report.HiLo, t.HiLo)
	}
	return nil
}

// numbersAtHand collects it from the clients of this process.
func numbersAtHand(db *core.Database) atHand {
	a := atHand{lost: make(map[string]int64), late: db.Writer.Unused.ReturnedLate(), held: make(map[string][]ids.Lease)}
	for tag, n := range db.Writer.Unused.Free() {
		a.lost[db.Env.Rules.Fold(tag)] += n
	}
	db.EachClient(func(c *ids.Client) {
		c.Held(func(tag string, low, high int64) {
			tag = db.Env.Rules.Fold(tag)
			a.held[tag] = append(a.held[tag], ids.Lease{Low: low, End: high})
		})
	})
	return a
}

// atHand is what only this process knows about numbers, and the disk does not, by
// folded tag.
type atHand struct {
	lost map[string]int64           // drawn and not used
	late map[string]map[int64]int64 // by end, the last used number of ranges returned late
	held map[string][]ids.Lease     // undrawn numbers of clients
}

// identityState is what is gathered about an identity.
type identityState struct {
	Identity
	usage
}

// isLeased reports whether n is in an open lease.
func (t *tagState) isLeased(n int64) bool {
	i := sort.Search(len(t.leases), func(i int) bool { return t.leases[i].End >= n })
	return i < len(t.leases) && t.leases[i].Low <= n
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

// tagState is what is gathered about a HiLo tag.
type tagState struct {
	HiLo
	usage
	leases   []ids.Lease
	leased   int64 // documents that have a number of an open lease
	recorded bool  // there is a mark
}

// unused returns how many numbers no document has.
func (u *usage) unused() int64 { return max(u.last-u.documents, 0) }

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

// usage is how documents use the numbers of a counter. Numbers above last do not
// count.
type usage struct {
	last      int64
	documents int64              // that have a number
	newest    int64              // the highest of them
	before    int64              // the highest that was not written lately
	deleted   map[int64]struct{} // numbers of deleted documents
}

// lately is the period over which the rate of a counter is measured.
const lately = 30 * 24 * time.Hour
