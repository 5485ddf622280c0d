package query_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that each kind of read asks for room before it copies a long document, and ends
// with the refusal, and that short documents need none.
func TestWithReading(t *testing.T) {
	t.Parallel()
	db, err := jay.Open(t.TempDir(), &jay.Options{DocumentCacheBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Revisions().Configure(t.Context(), jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}); err != nil {
		t.Fatal(err)
	}
	const size = 100 << 10
	for id, n := range map[string]int{"s/1": 10, "s/2": size, "s/3": size} {
		for range 2 { // so that there is a revision
			if _, err := db.Put(t.Context(), id, fmt.Appendf(nil, `{"n":%d,"s":"%s","@metadata":{"@collection":"S"}}`, n, strings.Repeat("x", n))); err != nil {
				t.Fatal(err)
			}
		}
	}
	q := db.Query("S")
	each := func(documents iter.Seq2[*jay.Document, error]) error {
		for _, err := range documents {
			if err != nil {
				return err
			}
		}
		return nil
	}
	inView := func(ctx context.Context, fn func(tx *jay.Tx) error) error { return db.View(ctx, fn) }
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		read func(ctx context.Context) error
		long bool
	}{
		"get":       {func(ctx context.Context) error { _, err := db.Get(ctx, "s/2"); return err }, true},
		"get short": {func(ctx context.Context) error { _, err := db.Get(ctx, "s/1"); return err }, false},
		"get many":  {func(ctx context.Context) error { _, err := db.GetMany(ctx, "s/1", "s/2"); return err }, true},
		"scan":      {func(ctx context.Context) error { return each(db.Documents(ctx, jay.Scan{})) }, true},
		"query":     {func(ctx context.Context) error { _, err := q.All(ctx); return err }, true},
		"sort":      {func(ctx context.Context) error { _, err := q.OrderBy("-n").All(ctx); return err }, true},
		"get in a transaction": {func(ctx context.Context) error {
			return inView(ctx, func(tx *jay.Tx) error { _, err := tx.Get(ctx, "s/2"); return err })
		}, true},
		"scan in a transaction": {func(ctx context.Context) error {
			return inView(ctx, func(tx *jay.Tx) error { return each(tx.Documents(ctx, jay.Scan{})) })
		}, true},
		"query in a transaction": {func(ctx context.Context) error {
			return inView(ctx, func(tx *jay.Tx) error { _, err := tx.Query("S").All(ctx); return err })
		}, true},
		"revisions": {func(ctx context.Context) error {
			for _, err := range db.Revisions().List(ctx, "s/2", jay.RevisionPage{}) {
				if err != nil {
					return err
				}
			}
			return nil
		}, true},
	} {
		most := int64(0)
		if err := test.read(jay.WithReading(t.Context(), func(n int64) error { most = max(most, n); return nil })); err != nil || (most > size) != test.long {
			t.Errorf("%s: %v, and room for %d bytes", name, err, most)
		}
		err := test.read(jay.WithReading(t.Context(), func(int64) error { return refused }))
		if errors.Is(err, refused) != test.long {
			t.Errorf("%s: %v, want the refusal: %t", name, err, test.long)
		}
	}
}

// Ensure that queries pay for what they hold before they hold it, and end with the error
// of whoever pays.
func TestWithMemory(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db, err := jay.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := range 50 {
		if _, err := db.Put(t.Context(), fmt.Sprintf("s/%02d", i), fmt.Appendf(nil, `{"s":"%02d%s","@metadata":{"@collection":"S"}}`, i, strings.Repeat("x", 10<<10))); err != nil {
			t.Fatal(err)
		}
	}
	refused := errors.New("refused")
	for _, text := range []string{"from S order by s", "from S group by s select s, count()", "from S select distinct s"} {
		q, err := db.RQL(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		paid := int64(0)
		if all, err := q.All(jay.WithMemory(t.Context(), func(n int64) error { paid += n; return nil })); err != nil || len(all) != 50 || paid < 500<<10 || paid > 3<<20 {
			t.Errorf("%s: %d rows, %d bytes, %v", text, len(all), paid, err)
		}
		left := int64(200 << 10)
		_, err = q.All(jay.WithMemory(t.Context(), func(n int64) error {
			if left -= n; left < 0 {
				return refused
			}
			return nil
		}))
		if !errors.Is(err, refused) {
			t.Errorf("%s: %v, want the refusal", text, err)
		}
	}
	paid := int64(0)
	if p, err := db.Query("S").Limit(10).Page(jay.WithMemory(t.Context(), func(n int64) error { paid += n; return nil })); err != nil || len(p.Items) != 10 || paid < 100<<10 {
		t.Errorf("a page: %d bytes, %v", paid, err)
	}
}
