package kindtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	public "github.com/jaydb/jay/jaytest"
)

// A campaign has as many histories as this environment variable says, as in 10000, or those from a seed on, as in 17+1.
// Without it there are 3, others in each run.
const campaignVariable = "JAY_KIND_HISTORIES"

// CampaignSeeds returns the seeds of the histories of a campaign.
func CampaignSeeds(t *testing.T) (first, count uint64) {
	t.Helper()
	text := os.Getenv(campaignVariable)
	switch from, n, given := strings.Cut(text, "+"); {
	case text == "" && testing.Short():
		return rand.Uint64N(1 << 40), 1
	case text == "":
		return rand.Uint64N(1 << 40), 3
	case !given:
		from, n = "0", text
		fallthrough
	default:
		var errs [2]error
		first, errs[0] = strconv.ParseUint(from, 10, 64)
		count, errs[1] = strconv.ParseUint(n, 10, 32)
		jaytest.Must(t, errors.Join(errs[:]...))
		return first, count
	}
}

// campaign: whatever happens to a database, the entries are those of the documents, and queries find with the index
// what they find without. Each history has one database, from its seed: documents that come, change, expire and go,
// renames of the collection, drops and builds of the index, settling, restarts, power failures in the middle of all
// that, with what was not synced kept in part, and backups that are restored.
func (s *Subject) campaign(t *testing.T) {
	first, count := CampaignSeeds(t)
	defer checks.NoSettler()()
	defer checks.NoSweeper()() // else documents go between two queries that are compared
	answered := 0
	for i := range count {
		seed := first + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) { answered += s.history(t, seed) })
		if t.Failed() {
			t.Fatalf("%s=%d+1 repeats it", campaignVariable, seed)
		}
	}
	if answered == 0 && count >= 10 { // a few histories may have no index whenever they ask
		t.Error("the index has answered no query")
	}
}

// life is a database in a history.
type life struct {
	s          *Subject
	db         *public.DB
	r          *rand.Rand
	collection string
	answered   int // queries that the index has answered
}

// history runs one, and returns how many queries the index has answered.
func (s *Subject) history(t *testing.T, seed uint64) int {
	r := rand.New(rand.NewPCG(seed, 5))
	build := builders[[]string{"commits", "tables"}[r.IntN(2)]]()
	defer build()
	l := &life{s: s, db: public.Open(t, nil), r: r, collection: things}
	for range 3 + r.IntN(4) {
		for range 2 + r.IntN(12) {
			if err := l.step(); !isRefused(err) {
				jaytest.Must(t, err)
			}
		}
		l.turn(t)
		l.agree(t)
	}
	return l.answered
}

// step does one thing to the database. Its error is that of a power failure, or a fault.
func (l *life) step() error {
	db, r := l.db.DB, l.r
	switch r.IntN(20) {
	case 0:
		to := things
		if l.collection == things {
			to = "Items"
		}
		_, err := db.RenameCollection(ctx, l.collection, to)
		if err == nil {
			l.collection = to
		}
		return err
	case 1:
		list, err := db.Indexes(ctx, l.collection)
		if err == nil && len(list) == 1 {
			err = db.DropIndex(ctx, l.collection, indexName)
		}
		return err
	case 2, 3, 4:
		return db.EnsureIndex(ctx, l.collection, l.s.Index)
	case 5, 6:
		_, err := checks.SettleSome(db)
		return err
	case 7:
		return db.Flush(ctx)
	case 8:
		l.db.Clock.Advance(time.Minute)
		_, err := db.Sweep(ctx)
		return err
	case 9:
		expires := jay.ExpiresAt(l.db.Clock.Now().Add(time.Duration(r.IntN(120)) * time.Second))
		_, err := db.Put(ctx, fmt.Sprint("things/", r.IntN(40)), []byte(l.s.Body(r)), jay.InCollection(l.collection), expires)
		return err
	}
	p := pair{s: l.s, random: r, collection: l.collection}
	change, _ := p.drawn()
	return change(db)
}

// isRefused reports whether a step was refused, as its document is in another collection or there is nothing to rename.
func isRefused(err error) bool {
	return errors.Is(err, jay.ErrNotFound) || errors.Is(err, jay.ErrCollection)
}

// turn is what happens to the program or the machine.
func (l *life) turn(t *testing.T) {
	t.Helper()
	switch l.r.IntN(8) {
	case 0:
		l.db.Restart()
	case 1:
		l.db.CutPower(50 * l.r.IntN(3))
	case 2, 3, 4: // the power goes at one of the next syncs
		cut := l.db.Disk.CutPower(l.r.IntN(12), 50*l.r.IntN(3), l.r)
		for range 12 {
			_ = l.step() // in a world that is gone, from some time on
		}
		l.db.Disk.OnSync(nil)
		if found := cut.Disk(); found != nil {
			l.db.Disk = found
			l.db.CutPower(100) // of what is found nothing more is lost
		}
	case 5:
		l.restored(t)
	}
	l.find(t)
}

// find finds out what the collection is called after a power failure, which may have come before or after a rename.
func (l *life) find(t *testing.T) {
	t.Helper()
	checks.WaitIndexTasks(l.db.DB)
	list, err := l.db.Collections(ctx)
	jaytest.Must(t, err)
	names := make([]string, 0, len(list))
	for _, c := range list {
		names = append(names, c.Name)
	}
	for _, name := range []string{things, "Items"} {
		if slices.Contains(names, name) {
			l.collection = name
		}
	}
}

// restored restores a backup, and looks at what is restored.
func (l *life) restored(t *testing.T) {
	t.Helper()
	_, stream := jaytest.BackUp(t, l.db.DB)
	into := filepath.Join(t.TempDir(), "restored")
	_, err := jay.Restore(ctx, into, jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(stream))
	jaytest.Must(t, err)
	db := jaytest.Open(t, into, &jay.Options{Now: l.db.Clock.Now})
	defer jaytest.Close(t, db)
	checks.WaitIndexTasks(db)
	l.compare(t, db)
}

// agree compares the entries with the documents, and queries with the index with those without.
func (l *life) agree(t *testing.T) {
	t.Helper()
	checks.WaitIndexTasks(l.db.DB)
	jaytest.Must(t, l.db.Flush(ctx))
	jaytest.Must(t, checks.Indexes(l.db.DB))
	l.compare(t, l.db.DB)
}

func (l *life) compare(t *testing.T, db *jay.DB) {
	t.Helper()
	jaytest.Verify(t, db)
	for range 6 {
		rql := l.s.query(l.r, l.collection)
		at := min(uint(strings.Index(rql, " group by ")), uint(strings.Index(rql, " where ")))
		without := rql[:at] + " use no index" + rql[at:]
		if got, want := sortedRows(t, db, rql), sortedRows(t, db, without); !slices.Equal(got, want) {
			t.Fatalf("%s: got %q with the index, and %q without", rql, got, want)
		}
		if used(t, db, rql) {
			l.answered++
		}
		if l.s.Order != "" && l.s.Groups == nil {
			order := " order by " + l.s.Order
			if got, want := pages(t, db, rql+order), jaytest.Rows(t, db, without+order); !slices.Equal(got, want) {
				t.Fatalf("%s: got %q with the index, and %q without", rql+order, got, want)
			}
		}
	}
}
