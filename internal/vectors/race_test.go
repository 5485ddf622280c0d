package vectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/vectors"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/memory"
)

// Ensure that 16 writers, queries and a worker that moves, splits and joins all the time leave each vector once, where its record says; and that each query has as many answers as there
// are documents, each of them once.
func TestVectors_Races(t *testing.T) {
	defer vectors.Quickly()()
	defer vectors.SetReadAll(2)()
	defer vectors.SetCandidates(10)()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"At"}, Options: map[string]string{"dimensions": "4"}}))
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	vector := func(r *rand.Rand) query.Numbers {
		return query.Numbers{float32(r.NormFloat64()), float32(r.NormFloat64()), float32(r.NormFloat64()), 1}
	}
	for w := range 16 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(9, uint64(w)))
			for range 60 {
				id := fmt.Sprint("notes/", r.IntN(100))
				if r.IntN(4) == 0 {
					if err := db.Delete(ctx, id); err != nil {
						t.Error(err)
					}
					continue
				}
				at := any(vector(r))
				if r.IntN(5) == 0 {
					at = []query.Numbers{vector(r), vector(r)}
				}
				body, err := json.Marshal(map[string]any{"At": at})
				if err == nil {
					_, err = db.Put(ctx, id, body, jay.InCollection("Notes"))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(10, 0))
			for {
				select {
				case <-done:
					return
				default:
				}
				err := db.View(ctx, func(tx *jay.Tx) error { return wholeAnswer(tx, vector(r)) })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	checks.WaitSettled(db)
	jaytest.Verify(t, db)
	jaytest.Must(t, checks.Indexes(db))
}

// wholeAnswer compares an order with the number of documents.
func wholeAnswer(tx *jay.Tx, to []float32) error {
	n, err := tx.Query("Notes").NoIndex().Count(ctx)
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	for doc, err := range tx.Query("Notes").OrderBy(jay.Nearest("At", to)).Limit(200).NoScan().Iter(ctx) {
		if err != nil {
			return err
		}
		if seen[doc.ID()] {
			return fmt.Errorf("%s comes twice", doc.ID())
		}
		seen[doc.ID()] = true
	}
	if len(seen) != int(n) {
		return fmt.Errorf("%d answers of %d documents", len(seen), n)
	}
	return nil
}

// Ensure that what is moved into a partition while another process prepares its split stays found: the split is prepared anew.
func TestVectors_Races_Shared(t *testing.T) {
	defer checks.NoSettler()()
	defer vectors.Quickly()()
	defer vectors.SetReadAll(2)() // else the vectors of a partition without a center are found, too
	defer vectors.SetCandidates(10)()
	driver := &memory.Driver{Shared: true}
	a, b := jaytest.Open(t, "db", &jay.Options{Engine: driver}), jaytest.Open(t, "db", &jay.Options{Engine: driver})
	defer jaytest.Close(t, a)
	defer jaytest.Close(t, b)
	jaytest.Must(t, a.EnsureIndex(ctx, "Notes", jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"At"}, Options: map[string]string{"dimensions": "2"}}))
	put := func(db *jay.DB, i int) {
		jaytest.Put(t, db, fmt.Sprint("notes/", i), fmt.Sprintf(`{"At":[%v,%v]}`, math.Cos(float64(i)), math.Sin(float64(i))), jay.InCollection("Notes"))
	}
	moved := 0
	for i := range 120 {
		put(a, i)
		_, err := checks.SettleSome(a) // moves it
		jaytest.Must(t, err)
		inside := false
		restore := checks.OnSettle(func(context.Context) { // a has prepared to split or join a partition
			if inside {
				return
			}
			inside = true
			for n := range vectors.PartDocuments { // as many as are moved before a partition is split
				put(b, 1000+10*i+n) // so that b knows the index, too
			}
			found, err := checks.SettleSome(b)
			jaytest.Must(t, err)
			if found {
				moved++
			}
		})
		_, err = checks.SettleSome(a)
		restore()
		jaytest.Must(t, err)
		jaytest.Must(t, checks.Settle(a))
	}
	if moved == 0 {
		t.Error("nothing was prepared while others have moved vectors")
	}
	jaytest.Must(t, checks.Settle(a))
	jaytest.Verify(t, a)
	found, _ := ids(t, b.Query("Notes").OrderBy(jay.Nearest("At", []float32{1, 1})).Limit(500).NoScan())
	if n, err := b.Query("Notes").Count(ctx); int(n) != len(found) || err != nil {
		t.Errorf("%d of %d documents, %v", len(found), n, err)
	}
}

// Ensure that the first index raises the format, such that a program which does not know it refuses it by its name.
func TestVectors_Format(t *testing.T) {
	dir := t.TempDir() + "/db"
	db, err := jay.Open(dir, nil)
	jaytest.Must(t, err)
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"At"}, Options: map[string]string{"dimensions": "2"}}))
	jaytest.Must(t, db.Close())
	older := storage.Features(storage.AllFeatures[:storage.FeatureVectors.Format-storage.BaseFormat-1])
	_, err = jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != storage.FeatureVectors.Format || !slices.Equal(newer.Features, []string{"vectors"}) {
		t.Errorf("got %v", err)
	}
}
