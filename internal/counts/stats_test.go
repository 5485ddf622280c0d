package counts_test

// This test looks at the keys of the numbers.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

// Ensure that docs/format.md shows all keys of numbers, as they are in storage.
func TestCounts_Layout_Golden(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	for _, id := range []string{"users/ann", "users/bob"} {
		_, err := db.Put(ctx, id, []byte(`{}`), jay.InCollection("Users"), jay.WithTTL(time.Hour))
		jaytest.Must(t, err)
		_, err = db.Attachments(id).Put(ctx, "hi", strings.NewReader("hello"))
		jaytest.Must(t, err)
	}
	_, err := db.Patch(ctx, "users/bob", jay.ExpiresAt(time.Time{}))
	jaytest.Must(t, err)
	jaytest.InFormat(t, "```\n"+jaytest.KeysBetween(t, db, format.SpaceCounts, format.SpaceCounts)+"```")
}

// Ensure that a database without bytes, as a program of format 3 leaves it, gets them in
// steps, beside writers, and that the numbers of its documents are right all the time.
func TestStats_Upgrade(t *testing.T) {
	defer checks.SetCountSteps(7)()
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	jaytest.Must(t, err)
	const documents = 50
	for i := range documents {
		_, err := db.Put(ctx, fmt.Sprintf("users/%02d", i), []byte(`{"n":1}`), jay.InCollection("Users"))
		jaytest.Must(t, err)
	}
	jaytest.Must(t, parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		tx.Delete(format.AppendKey(nil, format.SpaceMeta, format.SizesName))
		tx.Delete(format.CountKey(nil, "users"))
		tx.Add(format.CountKey(nil, "users"), documents)
		return nil
	}))
	opened, err := counts.Open(parts.Of(db).Env, false)
	jaytest.Must(t, err)
	parts.Of(db).Counts, parts.Of(db).Writer.Counts = opened, opened

	left, steps := int64(documents), 0
	for all := false; !all; steps++ {
		s, err := db.Stats(ctx)
		jaytest.Must(t, err)
		if !s.Counting || s.Collections[0].Documents != left {
			t.Errorf("step %d: counting %v, %+v, want %d documents", steps, s.Counting, s.Collections, left)
		}
		for _, i := range []int{steps * 6 % documents, steps * 31 % documents} { // before and behind what is counted
			_, err = db.Put(ctx, fmt.Sprintf("users/%02d", i), []byte(fmt.Sprintf(`{"n":%d}`, 1<<i)), jay.InCollection("Users"))
			jaytest.Must(t, err)
		}
		jaytest.Must(t, db.Delete(ctx, fmt.Sprintf("users/%02d", steps*17%documents)))
		n, err := db.Collections(ctx)
		jaytest.Must(t, err)
		left = n[0].Documents
		all, err = opened.Step(ctx)
		jaytest.Must(t, err)
	}
	if steps < documents/7 {
		t.Errorf("counted in %d steps", steps)
	}
	s, err := db.Stats(ctx)
	if jaytest.Must(t, err); s.Counting || s.Collections[0].Documents != left {
		t.Errorf("at the end: counting %v, %+v", s.Counting, s.Collections)
	}
	jaytest.Must(t, checks.Counts(db))
	jaytest.Must(t, db.Close())
}
