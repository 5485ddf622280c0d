package write_test

// This test takes db.write apart, to put other writes between its steps.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/write"
)

// aheadPair are two databases that are written alike, one with what was read
// before the transaction and one without.
type aheadPair struct {
	t        *testing.T
	r        *rand.Rand
	with     *jay.DB
	without  *jay.DB
	versions map[string]string
	indexes  []jay.Index
	ahead    int // batches that were read ahead
}

// batch returns the same random writes twice, as a write changes its ops. There
// is no HiLo among them: ranges are fetched in the background, each with an etag.
func (p *aheadPair) batch(n int) (a, b *jay.Batch) {
	seed := p.r.Uint64()
	return p.oneBatch(n, seed), p.oneBatch(n, seed)
}

func (p *aheadPair) oneBatch(n int, seed uint64) *jay.Batch {
	r := rand.New(rand.NewPCG(seed, 0))
	b := new(jay.Batch)
	for range n {
		id := []string{"users/", "Users/", "away/"}[r.IntN(3)] + strconv.Itoa(r.IntN(120)) + []string{"", "", "-A"}[r.IntN(3)]
		body := fmt.Appendf(nil, `{"n":%d,"l":[%d,%d],"t":"x%d"}`, r.IntN(5), r.IntN(3), r.IntN(3), r.IntN(4))
		opts := []jay.WriteOption{jay.InCollection("Users")}
		if version, found := p.versions[strings.ToLower(id)]; found && r.IntN(60) == 0 {
			opts = append(opts, jay.IfMatch(version))
		}
		switch r.IntN(14) {
		case 0, 1:
			b.Delete(id)
		case 2:
			b.Patch(id, jay.Set("n", r.IntN(5)))
		case 3:
			b.Put("", body, opts[0])
		case 4:
			b.Put("users|", body, opts[0])
		case 5:
			b.Put("users/", body, opts[0])
		default:
			b.Put(id, body, opts...)
		}
	}
	return b
}

// begin does what db.write does before the transaction, and reads ahead.
func (p *aheadPair) begin(db *jay.DB, ops []*write.Op, reads bool) (a *write.Prefetched) {
	p.t.Helper()
	err := parts.Of(db).Writer.PrepareAll(ops)
	for _, o := range ops {
		if err == nil {
			err = parts.Of(db).Writer.DrawID(context.Background(), o)
		}
	}
	if err == nil {
		_, err = parts.Of(db).Writer.SpeculatePatches(context.Background(), ops)
	}
	if reads && err == nil {
		a, err = parts.Of(db).Writer.Prefetch(context.Background(), ops)
	}
	if err != nil {
		p.t.Fatalf("before the transaction: %v", err)
	}
	if a != nil { // else too little of the batch is worth it
		p.ahead++
	}
	return a
}

// end does the rest.
func (p *aheadPair) end(db *jay.DB, ops []*write.Op, a *write.Prefetched) error {
	defer a.Close(ops)
	return parts.Of(db).Writer.ResolveAndCommit(context.Background(), ops, a, nil)
}

// changeIndexes makes an index or drops one, in both databases.
func (p *aheadPair) changeIndexes() {
	ctx := context.Background()
	if n := len(p.indexes); n > 0 && p.r.IntN(3) < n {
		for _, db := range []*jay.DB{p.with, p.without} {
			if err := db.DropIndex(ctx, "Users", p.indexes[0].Name); err != nil {
				p.t.Fatal(err)
			}
		}
		p.indexes = p.indexes[1:]
		return
	}
	fields := [][]string{{"n"}, {"l", "n"}, {"-t"}, {"n", "-l"}}[p.r.IntN(4)]
	ix := jay.Index{Name: "ix" + strconv.FormatUint(p.r.Uint64(), 36), Fields: fields}
	if p.r.IntN(3) == 0 {
		ix.Where = "n > 1"
	}
	for _, db := range []*jay.DB{p.with, p.without} {
		if err := db.EnsureIndex(ctx, "Users", ix); err != nil {
			p.t.Fatal(err)
		}
	}
	p.indexes = append(p.indexes, ix)
}

// dump returns all documents, and notes their versions.
func (p *aheadPair) dump(db *jay.DB) string {
	var text strings.Builder
	clear(p.versions)
	for doc, err := range db.Documents(context.Background(), jay.Scan{}) {
		if err != nil {
			p.t.Fatal(err)
		}
		p.versions[(*docs.Document)(doc).FoldedID()] = doc.ChangeVector()
		fmt.Fprintln(&text, doc.ID(), doc.ChangeVector(), doc.Collection(), string(doc.Body()))
	}
	return text.String()
}

// Ensure that a batch does the same with documents that were read before
// its transaction as without, whatever others write in between, whatever it
// writes itself, and if indexes come and go.
func TestApply_ReadsAhead_Model(t *testing.T) {
	seed := rand.Uint64()
	if s := os.Getenv("JAY_AHEAD_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("JAY_AHEAD_SEED=%d", seed)
	defer func(old int64, slow time.Duration) { write.MaxPrefetchBytes, write.SlowRead = old, slow }(write.MaxPrefetchBytes, write.SlowRead)

	open := func() *jay.DB {
		var key [32]byte
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		db, err := jay.OpenMemory(&jay.Options{Durability: jay.Relaxed, Rand: rand.NewChaCha8(key), Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	p := &aheadPair{t: t, r: rand.New(rand.NewPCG(seed, 1)), with: open(), without: open(), versions: make(map[string]string)}
	defer p.with.Close()
	defer p.without.Close()

	ctx := context.Background()
	committed, refused := 0, 0
	begun := time.Now()
	for round := 0; round < 25 || (committed < 4 || p.ahead < 10) && time.Since(begun) < time.Minute; round++ {
		write.MaxPrefetchBytes = []int64{0, 500, 32 << 20}[p.r.IntN(3)]
		n := write.ManyOps * 3
		write.SlowRead = 30 * time.Microsecond
		if p.r.IntN(2) == 0 { // as if all reads waited for the disk: small batches are read ahead, too
			n, write.SlowRead = 1+p.r.IntN(write.ManyOps), 0
		}
		a, b := p.batch(n)
		between, same := p.batch(1 + p.r.IntN(12))

		reads := p.begin(p.with, parts.Ops(a), true)
		p.begin(p.without, parts.Ops(b), false)
		_, errWith := p.with.Apply(ctx, between)
		_, errWithout := p.without.Apply(ctx, same)
		if fmt.Sprint(errWith) != fmt.Sprint(errWithout) {
			t.Fatalf("round %d, between: with %v, without %v", round, errWith, errWithout)
		}
		if p.r.IntN(4) == 0 {
			p.changeIndexes()
		}
		errWith, errWithout = p.end(p.with, parts.Ops(a), reads), p.end(p.without, parts.Ops(b), nil)
		if fmt.Sprint(errWith) != fmt.Sprint(errWithout) {
			t.Fatalf("round %d: with %v, without %v", round, errWith, errWithout)
		}
		if committed++; errWith != nil {
			committed--
			refused++
		}
		with, without := p.dump(p.with), p.dump(p.without)
		if with != without {
			t.Fatalf("round %d:\n%s\nwithout:\n%s", round, with, without)
		}
		if err := errors.Join(checks.Indexes(p.with), checks.Indexes(p.without)); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if checkChanges(t, p.with); t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d batches committed, %d refused; %d read ahead", committed, refused, p.ahead)
	if committed < 4 || p.ahead < 10 {
		t.Error("too few batches were committed, or read ahead, for a test of them")
	}
}
