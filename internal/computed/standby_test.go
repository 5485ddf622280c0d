package computed_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/standby"
)

// promote closes a standby and its source, and opens the database that the standby becomes.
func promote(t *testing.T, s *standby.Standby, source *jay.DB, dir string) *jay.DB {
	t.Helper()
	jaytest.Must(t, s.Close())
	jaytest.Close(t, source)
	_, err := jay.Promote(t.Context(), dir, jay.PromoteOptions{CopyTag: "B"})
	jaytest.Must(t, err)
	return jaytest.Open(t, dir, nil)
}

// waitFor waits until queries of a standby answer want, each by an index.
func waitFor(t *testing.T, s *standby.Standby, want string, queries ...string) {
	t.Helper()
	got := ""
	for more := jaytest.Patience(); more(got == want); {
		db, err := s.DB(t.Context())
		jaytest.Must(t, err)
		got = ""
		for _, text := range queries {
			q, err := db.RQL(text, nil)
			if err != nil {
				continue // the index is not there yet
			}
			rows, _ := q.NoScan().All(t.Context()) // or is built, or there is another database
			for _, row := range rows {
				got += string(row.JSON)
			}
		}
	}
	jaytest.Equal(t, got, want)
}

// Ensure that a standby has the computed indexes of its source and their answers, without a scan, though the source raises its format by the
// first while the standby follows; and that the database it becomes goes on with them.
func TestComputed_Standby(t *testing.T) {
	ctx := t.Context()
	source, copied := jaytest.Memory(t, nil), filepath.Join(t.TempDir(), "copy")
	jaytest.Put(t, source, "orders/1", `{"Who":"ann","N":1,"At":1,"S":"a"}`, jay.InCollection("Orders"))
	s, err := standby.Open(copied, standby.From(source), standby.Options{Database: &jay.Options{NoLook: true}, Retry: 100 * time.Millisecond})
	jaytest.Must(t, err)
	jaytest.Must(t, jay.ComputedOf(source).Ensure(ctx, ends()))
	jaytest.Put(t, source, "orders/2", `{"Who":"ann","N":5,"At":2,"S":"b"}`, jay.InCollection("Orders"))
	jaytest.Put(t, source, "returns/1", `{"Who":"ann","N":2,"At":0,"S":"c"}`, jay.InCollection("Returns"))
	jaytest.Must(t, source.Delete(ctx, "orders/1"))
	const want = `{"Who":"ann","Count":2,"Sum":3,"Span":7,"First":"c","Last":"b"}`
	answers := func(db *jay.DB) (string, error) {
		rows, err := jay.QueryIndex[json.RawMessage](db, "Ends").NoScan().All(ctx)
		var texts []string
		for _, row := range rows {
			texts = append(texts, string(*row))
		}
		return strings.Join(texts, " "), err
	}
	got := ""
	for more := jaytest.Patience(); more(got == want); {
		db, err := s.DB(ctx)
		jaytest.Must(t, err)
		got, _ = answers(db) // the index is not there yet, or there is another database
	}
	jaytest.Equal(t, got, want)
	db, err := s.DB(ctx)
	jaytest.Must(t, err)
	jaytest.Verify(t, db)

	promoted := promote(t, s, source, copied)
	defer jaytest.Close(t, promoted)
	jaytest.Put(t, promoted, "orders/3", `{"Who":"ann","N":9,"At":9,"S":"z"}`, jay.InCollection("Orders"))
	got, err = answers(promoted)
	jaytest.Must(t, err)
	jaytest.Equal(t, got, `{"Who":"ann","Count":3,"Sum":12,"Span":11,"First":"c","Last":"z"}`)
	jaytest.Must(t, jay.ComputedOf(promoted).Ensure(ctx, stock()))
	jaytest.Must(t, jay.ComputedOf(promoted).Drop(ctx, "Ends"))
	checks.WaitIndexTasks(promoted)
	if _, err := answers(promoted); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("dropped: got %v", err)
	}
	jaytest.Verify(t, promoted)
	jaytest.Must(t, checks.Indexes(promoted))
}
