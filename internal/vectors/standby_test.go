package vectors_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/vectors"
	"github.com/jaydb/jay/standby"
)

// Ensure that a standby, which settles nothing, has the answers of its source without a scan, while that raises its format, moves vectors into partitions and splits
// these; and that the database it becomes goes on to settle.
func TestVectors_Standby(t *testing.T) {
	defer vectors.Quickly()()
	defer checks.NoSettler()()
	source, copied := jaytest.Memory(t, nil), filepath.Join(t.TempDir(), "copy")
	all := cloud(5, 240, 40, 6, 0.5)
	put := func(db *jay.DB, from, to int) {
		for i := from; i < to; i++ {
			body, err := json.Marshal(struct{ At jay.Vector }{all[i]})
			jaytest.Must(t, err)
			jaytest.Put(t, db, fmt.Sprint("notes/", i), string(body), jay.InCollection("Notes"))
		}
	}
	put(source, 0, 20)
	s, err := standby.Open(copied, standby.From(source), standby.Options{Database: &jay.Options{NoLook: true}, Retry: 100 * time.Millisecond})
	jaytest.Must(t, err)
	jaytest.Must(t, source.EnsureIndex(ctx, "Notes", jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"At"}, Options: map[string]string{"dimensions": "40"}}))
	put(source, 20, 100)
	jaytest.Must(t, checks.Settle(source))
	put(source, 100, 140) // in the tail
	for i := range 30 {
		jaytest.Must(t, source.Delete(ctx, fmt.Sprint("notes/", 2*i)))
	}
	nearest := func(db *jay.DB) jay.Query[jay.Document] {
		return db.Query("Notes").OrderBy(jay.Nearest("At", all[200])).Limit(50)
	}
	want, _ := ids(t, nearest(source).NoIndex())
	var got []string
	for more := jaytest.Patience(); more(slices.Equal(got, want)); {
		db, err := s.DB(ctx)
		jaytest.Must(t, err)
		got = nil
		for doc, err := range nearest(db).NoScan().Iter(ctx) {
			if err != nil { // the index is not there yet, or there is another database
				break
			}
			got = append(got, doc.ID())
		}
	}
	if len(want) != 50 || !slices.Equal(got, want) {
		t.Fatalf("the standby has %q, and its source %q", got, want)
	}
	db, err := s.DB(ctx)
	jaytest.Must(t, err)
	jaytest.Verify(t, db)

	jaytest.Must(t, s.Close())
	jaytest.Close(t, source)
	_, err = jay.Promote(ctx, copied, jay.PromoteOptions{CopyTag: "B"})
	jaytest.Must(t, err)
	promoted := jaytest.Open(t, copied, nil)
	defer jaytest.Close(t, promoted)
	put(promoted, 140, 200)
	jaytest.Must(t, checks.Settle(promoted))
	jaytest.Must(t, promoted.Flush(ctx))
	jaytest.Verify(t, promoted)
	want, _ = ids(t, nearest(promoted).NoIndex())
	if got, _ = ids(t, nearest(promoted).NoScan()); !slices.Equal(got, want) {
		t.Errorf("promoted: %q, want %q", got, want)
	}
}
