package simulation_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// beyond16 is a number of things that two bytes do not count.
const beyond16 = 1<<16 + 100

// grown is a database that grows without faults, beyond what some number of bytes counts.
type grown struct {
	*testing.T
	db      *jay.DB
	disk    *storagetest.Disk
	options jay.Options
}

// threshold is something of which a database has many. grow adds them and looks at them, and check looks at them once more after
// the database was opened again.
type threshold struct {
	name    string
	options jay.Options
	grow    func(g *grown) (check func())
	quick   bool // in short runs, too
	long    bool // only in a campaign
}

var thresholds = []threshold{
	{name: "documents of a collection and of one value of an index", grow: growDocuments},
	{name: "versions of a document", grow: growRevisions},
	{name: "identities", grow: growIdentities},
	{name: "ranges of HiLo", grow: growRanges, options: jay.Options{HiLoMode: jay.HiLo2, HiLoCapacity: 1}},
	{name: "tags of HiLo and collections", grow: growTags, long: true},
	{name: "compare-exchange values", grow: growValues},
	{name: "widths of etags", grow: growEtags, quick: true},
	{name: "operations of a batch", grow: growBatch, quick: true},
	{name: "documents that expire at one instant", grow: growExpiry},
	{name: "documents of one content", grow: growContents, long: true},
	{name: "levels of the tree", grow: growLevels},
	{name: "acknowledgements of a subscription", grow: growAcknowledgements, long: true},
	{name: "indexes that were there", grow: growIndexes, long: true},
	{name: "attachments of a document", grow: growAttachments, long: true, options: jay.Options{MaxAttachments: 10_000}},
}

// Ensure that a database goes on beyond 65,536 of what it counts, and beyond each width of an etag. A short run has the
// quick ones; the long ones belong to a campaign.
func TestSimulation_Thresholds(t *testing.T) {
	sample.OneGoroutine(t)
	campaign := os.Getenv("JAY_SIMULATION") != ""
	for _, one := range thresholds {
		if testing.Short() && !one.quick || one.long && !campaign {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			g := &grown{T: t, disk: storagetest.NewDisk(), options: one.options}
			g.options.FS, g.options.MemTableBytes = g.disk, 1<<20
			g.open()
			check := one.grow(g)
			check()
			g.verify()
			g.must(g.db.Close())
			g.open()
			check()
			g.verify()
			g.must(g.db.Close())
		})
	}
}

func (g *grown) open() {
	g.Helper()
	db, err := jay.Open(dir, &g.options)
	g.must(err)
	g.db = db
}

func (g *grown) must(err error) {
	g.Helper()
	jaytest.Must(g.T, err)
}

func (g *grown) verify() {
	g.Helper()
	jaytest.Verify(g.T, g.db)
}

func (g *grown) equal(got, want any) {
	g.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		g.Fatalf("got %v, want %v", got, want)
	}
}

// bulk writes n documents in one load.
func (g *grown) bulk(n int, id func(i int) string, body func(i int) string, opts ...jay.WriteOption) {
	g.Helper()
	load, err := g.db.BulkInsert(nil)
	g.must(err)
	for i := range n {
		g.must(second(load.Put(ctx, id(i), json.RawMessage(body(i)), opts...)))
	}
	g.must(load.Close())
}

// growLevels writes more than the base level of Pebble's tree holds, so that the tables lie on several levels, the last one among them.
func growLevels(g *grown) func() {
	const n, size = 120_000, 1000
	body := func(i int) string {
		text := make([]byte, size*3/4)
		_, _ = rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}).Read(text) // it never fails
		return fmt.Sprintf(`{"n":%d,"x":%q}`, i, base64.StdEncoding.EncodeToString(text))
	}
	id := func(i int) string { return fmt.Sprintf("users/%d", (i*7919)%n) } // each table overlaps the others
	g.bulk(n, id, body, jay.InCollection("Users"))
	return func() {
		for i := 0; i < n; i += 97 {
			d, err := g.db.Get(ctx, id(i))
			g.must(err)
			g.equal(string(d.Body()), body(i))
		}
		tables := g.levels()
		g.Logf("tables by level: %d", tables)
		if tables[6] == 0 || tables[5] == 0 {
			g.Errorf("tables by level are %d, want some on levels 5 and 6", tables)
		}
	}
}

// levels returns how many tables there are on each level, as another process would find them now.
func (g *grown) levels() (tables [7]int64) {
	g.Helper()
	found := g.disk.Crash(100, rand.New(rand.NewPCG(0, 0)))
	db, err := pebble.Open(dir, &pebble.Options{FS: found, ReadOnly: true, FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}})
	g.must(err)
	for i, level := range db.Metrics().Levels {
		tables[i] = level.TablesCount
	}
	g.must(db.Close())
	return tables
}

// quiet is a pebble.Logger.
type quiet struct{}

func (quiet) Infof(string, ...any)              {}
func (quiet) Errorf(string, ...any)             {}
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func growDocuments(g *grown) func() {
	for _, ix := range []jay.Index{{Name: "v", Fields: []string{"v"}}, {Name: "n", Fields: []string{"n"}, Unique: true}} {
		g.must(g.db.EnsureIndex(ctx, "Users", ix))
	}
	g.bulk(beyond16, func(i int) string { return fmt.Sprintf("users/%d", i) }, func(i int) string { return fmt.Sprintf(`{"v":1,"n":%d}`, i) }, jay.InCollection("Users"))
	return func() {
		n, err := g.db.Query("Users").Where(jay.Eq("v", 1)).UseIndex("v").Count(ctx)
		g.must(err)
		g.equal(n, beyond16)
		last, err := g.db.Query("Users").Where(jay.Ge("n", 1<<16-1)).UseIndex("n").OrderBy("n").All(ctx)
		g.must(err)
		g.equal(len(last), beyond16-(1<<16-1))
		g.equal(last[1].ID(), "users/65536")
		changes := 0
		for _, err := range g.db.Changes(ctx, "", jay.UntilCaughtUp()) {
			g.must(err)
			changes++
		}
		g.equal(changes, beyond16)
		var backup bytes.Buffer
		info, err := g.db.Backup(ctx, &backup)
		g.must(err)
		g.equal(info.Documents, beyond16)
	}
}

func growRevisions(g *grown) func() {
	g.must(g.db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: new(jay.RevisionRule)}))
	for i := range beyond16 {
		g.must(second(g.db.Put(ctx, "users/1", fmt.Appendf(nil, `{"n":%d}`, i))))
	}
	return func() {
		n := beyond16
		for r, err := range g.db.Revisions().List(ctx, "users/1", jay.RevisionPage{}) {
			g.must(err)
			n--
			g.equal(string(r.Body()), fmt.Sprintf(`{"n":%d}`, n))
		}
		g.equal(n, 0)
	}
}

func growIdentities(g *grown) func() {
	for i := range beyond16 {
		n, err := g.db.NextIdentity(ctx, fmt.Sprintf("i%d|", i))
		g.must(err)
		g.equal(n, 1)
	}
	for i := range int64(beyond16) {
		n, err := g.db.NextIdentity(ctx, "one|")
		g.must(err)
		if n != i+1 {
			g.Fatalf("number %d after %d", n, i)
		}
	}
	next := int64(1)
	return func() {
		c, err := g.db.Counters(ctx)
		g.must(err)
		g.equal(len(c.Identities), beyond16+1)
		g.equal(c.Identities["one|"], beyond16)
		next++
		n, err := g.db.NextIdentity(ctx, "i65536|")
		g.must(err)
		g.equal(n, next)
	}
}

func growRanges(g *grown) func() {
	seen := make(map[string]bool)
	store := func() {
		m, err := g.db.Store(ctx, "Users", json.RawMessage(`{}`))
		g.must(err)
		if seen[m.ID] {
			g.Fatalf("%s comes twice", m.ID)
		}
		seen[m.ID] = true
	}
	for range beyond16 {
		store()
	}
	return store
}

func growTags(g *grown) func() {
	for i := range beyond16 {
		g.must(second(g.db.Store(ctx, fmt.Sprintf("T%d", i), json.RawMessage(`{}`))))
	}
	return func() {
		s, err := g.db.Stats(ctx)
		g.must(err)
		g.equal(len(s.Collections), beyond16+1) // with @hilo
		g.equal(len(s.Counters.HiLo), beyond16)
		for i := range 70_000 {
			if i%7000 == 0 && i < beyond16 {
				n, err := g.db.Query(fmt.Sprintf("T%d", i)).Count(ctx)
				g.must(err)
				if n == 0 {
					g.Fatalf("collection T%d is empty", i)
				}
			}
		}
	}
}

func growValues(g *grown) func() {
	for i := range beyond16 {
		g.must(second(g.db.CompareExchange().Put(ctx, fmt.Sprintf("locks/%d", i), i, 0)))
	}
	return func() {
		n, after := 0, ""
		for {
			page, err := g.db.CompareExchange().List(ctx, "locks/", after, 1000)
			g.must(err)
			if len(page) == 0 {
				break
			}
			n, after = n+len(page), page[len(page)-1].Key
		}
		g.equal(n, beyond16)
	}
}

func growEtags(g *grown) func() {
	id := 0
	write := func() {
		id++
		g.must(second(g.db.Put(ctx, fmt.Sprintf("users/%d", id), json.RawMessage(`{}`))))
		g.must(second(g.db.Put(ctx, "log/", json.RawMessage(`{}`))))
	}
	write()
	for width := 1; width < 8; width++ {
		for _, least := range []uint64{1<<(8*width) - 3, 1<<(8*width) + 1} {
			g.must(g.db.RaiseCounters(ctx, jay.Counters{Etag: min(least, 1<<62)}))
			for range 4 {
				write()
			}
		}
	}
	if err := g.db.RaiseCounters(ctx, jay.Counters{Etag: 1<<62 + 1}); !errors.Is(err, jay.ErrUsage) {
		g.Fatalf("an etag beyond 2^62: %v", err)
	}
	g.must(g.db.RaiseCounters(ctx, jay.Counters{Etag: 1 << 62}))
	write()
	want := 2 * id
	return func() {
		n, last, previous := 0, uint64(0), ""
		for c, err := range g.db.Changes(ctx, "", jay.UntilCaughtUp()) {
			g.must(err)
			if c.Etag <= last {
				g.Fatalf("etag %d after %d", c.Etag, last)
			}
			if strings.HasPrefix(c.ID, "log/") && c.ID <= previous {
				g.Fatalf("%s after %s", c.ID, previous)
			} else if strings.HasPrefix(c.ID, "log/") {
				previous = c.ID
			}
			last = c.Etag
			n++
		}
		g.equal(n, want)
	}
}

func growBatch(g *grown) func() {
	var b jay.Batch
	for i := range beyond16 {
		b.Put(fmt.Sprintf("users/%d", i), json.RawMessage(`{}`), jay.InCollection("Users"))
	}
	all, err := g.db.Apply(ctx, &b)
	g.must(err)
	g.equal(len(all), beyond16)
	return func() {
		n, err := g.db.Query("Users").Count(ctx)
		g.must(err)
		g.equal(n, beyond16)
		_, err = g.db.Get(ctx, "users/65536")
		g.must(err)
	}
}

func growExpiry(g *grown) func() {
	var clock atomic.Int64 // seconds since 1970
	now := func() time.Time { return time.Unix(clock.Load(), 0) }
	clock.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	g.must(g.db.Close())
	g.options.Now = now
	g.open()
	g.bulk(beyond16, func(i int) string { return fmt.Sprintf("users/%d", i) }, func(int) string { return `{}` }, jay.ExpiresAt(now().Add(time.Hour)))
	g.bulk(100, func(i int) string { return fmt.Sprintf("stay/%d", i) }, func(int) string { return `{}` })
	clock.Add(int64(2 * time.Hour / time.Second))
	g.must(second(g.db.Sweep(ctx)))
	return func() {
		n := 0
		for _, err := range g.db.Documents(ctx, jay.Scan{}) {
			g.must(err)
			n++
		}
		g.equal(n, 100)
	}
}

func growContents(g *grown) func() {
	g.bulk(beyond16, func(i int) string { return fmt.Sprintf("users/%d", i) }, func(int) string { return `{}` })
	for i := range beyond16 {
		g.must(second(g.db.Attachments(fmt.Sprintf("users/%d", i)).Put(ctx, "photo", strings.NewReader("the same"))))
	}
	left := beyond16
	return func() {
		for range 10 {
			left--
			g.must(g.db.Attachments(fmt.Sprintf("users/%d", left)).Delete(ctx, "photo"))
		}
		r, err := g.db.Attachments("users/0").Get(ctx, "photo")
		g.must(err)
		all, err := io.ReadAll(r)
		g.must(errors.Join(err, r.Close()))
		g.equal(string(all), "the same")
	}
}

func growAcknowledgements(g *grown) func() {
	g.bulk(beyond16, func(i int) string { return fmt.Sprintf("users/%d", i) }, func(int) string { return `{}` })
	g.must(g.db.Subscriptions().Ensure(ctx, jay.Subscription{Name: subscription, Query: "from @all_docs"}))
	work := func() (n int) {
		g.must(g.db.Subscriptions().Work(ctx, subscription, &jay.WorkOptions{BatchDocuments: 1, UntilCaughtUp: true}, func(context.Context, *jay.SubscriptionBatch) error {
			n++
			return nil
		}))
		return n
	}
	g.equal(work(), beyond16)
	return func() { g.equal(work(), 0) }
}

func growIndexes(g *grown) func() {
	g.bulk(10, func(i int) string { return fmt.Sprintf("users/%d", i) }, func(i int) string { return fmt.Sprintf(`{"v":%d}`, i) }, jay.InCollection("Users"))
	declare := func() { g.must(g.db.EnsureIndex(ctx, "Users", jay.Index{Name: "v", Fields: []string{"v"}})) }
	for range beyond16 {
		declare()
		g.must(g.db.DropIndex(ctx, "Users", "v"))
	}
	return func() {
		declare()
		n, err := g.db.Query("Users").Where(jay.Ge("v", 5)).UseIndex("v").Count(ctx)
		g.must(err)
		g.equal(n, 5)
	}
}

// growAttachments adds as many attachments as a document may have: their bound is below 65,536.
func growAttachments(g *grown) func() {
	g.must(second(g.db.Put(ctx, "users/1", json.RawMessage(`{}`))))
	for i := range g.options.MaxAttachments {
		g.must(second(g.db.Attachments("users/1").Put(ctx, fmt.Sprintf("%05d", i), strings.NewReader(fmt.Sprint(i)))))
	}
	return func() {
		if _, err := g.db.Attachments("users/1").Put(ctx, "one more", strings.NewReader("")); !errors.Is(err, jay.ErrInvalidAttachment) {
			g.Fatalf("one more attachment: %v", err)
		}
		all, err := g.db.Attachments("users/1").List(ctx)
		g.must(err)
		g.equal(len(all), g.options.MaxAttachments)
	}
}

// Ensure that a database goes on beyond 4 GiB: of documents, through all levels of its tables, and of one content. Its files take three
// times as much space for a while, so only a campaign makes it; its memory has bounds.
func TestSimulation_FourGiB(t *testing.T) {
	if os.Getenv("JAY_SIMULATION") == "" {
		t.Skip("make simulation has it: it writes more than 8 GiB")
	}
	const size, n = 1 << 20, 4<<10 + 100
	options := jay.Options{NoLook: true}
	path := t.TempDir()
	open := func() *jay.DB {
		db, err := jay.Open(path, &options)
		jaytest.Must(t, err)
		return db
	}
	db := open()
	body := func(i int) json.RawMessage {
		var seed [32]byte
		copy(seed[:], fmt.Sprint(i))
		random := make([]byte, size*3/4)
		_, _ = rand.NewChaCha8(seed).Read(random) // it never fails
		return fmt.Appendf(nil, `{"n":%d,"x":%q}`, i, base64.StdEncoding.EncodeToString(random))
	}
	load, err := db.BulkInsert(nil)
	jaytest.Must(t, err)
	for i := range n {
		jaytest.Must(t, second(load.Put(ctx, fmt.Sprintf("users/%d", i), body(i), jay.InCollection("Users"))))
	}
	jaytest.Must(t, load.Close())
	long := func() io.Reader {
		return io.LimitReader(rand.NewChaCha8([32]byte{4}), 4<<30+1)
	}
	a, err := db.Attachments("users/0").Put(ctx, "long", long())
	jaytest.Must(t, err)
	if a.Size != 4<<30+1 {
		t.Fatalf("an attachment of %d bytes", a.Size)
	}
	want := sha256.New()
	_, err = io.Copy(want, long())
	jaytest.Must(t, err)
	for range 2 {
		s, err := db.Stats(ctx)
		jaytest.Must(t, err)
		t.Logf("%d bytes on disk, %d tables, a look-up may ask %d, %d compactions, %d stalls", s.Engine.DiskBytes, s.Engine.Tables, s.Engine.ReadDepth, s.Engine.Compactions, s.Engine.Stalls)
		if s.Engine.DiskBytes < 8<<30 {
			t.Errorf("%d bytes on disk, of more than 8 GiB that were written", s.Engine.DiskBytes)
		}
		for i := 0; i < n; i += 97 {
			d, err := db.Get(ctx, fmt.Sprintf("users/%d", i))
			jaytest.Must(t, err)
			if !bytes.Equal(d.Body(), body(i)) {
				t.Fatalf("users/%d has another body", i)
			}
		}
		r, err := db.Attachments("users/0").Get(ctx, "long")
		jaytest.Must(t, err)
		got := sha256.New()
		_, err = io.Copy(got, r)
		jaytest.Must(t, errors.Join(err, r.Close()))
		if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
			t.Fatal("the attachment has another content")
		}
		jaytest.Verify(t, db)
		jaytest.Must(t, db.Close())
		db = open()
	}
	jaytest.Must(t, db.Close())
}
