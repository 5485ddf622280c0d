package jay

// This test looks at the keys of the numbers.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Ensure that docs/format.md shows all keys of numbers, as they are in storage.
func TestCounts_Layout_Golden(t *testing.T) {
	ctx := context.Background()
	db := dumped(t)
	defer db.Close()
	for _, id := range []string{"users/ann", "users/bob"} {
		_, err := db.Put(ctx, id, []byte(`{}`), InCollection("Users"), WithTTL(time.Hour))
		noError(t, err)
		_, err = db.Attachments(id).Put(ctx, "hi", strings.NewReader("hello"))
		noError(t, err)
	}
	_, err := db.Patch(ctx, "users/bob", ExpiresAt(time.Time{}))
	noError(t, err)
	inFormat(t, "```\n"+keysBetween(t, db, format.SpaceCounts, format.SpaceCounts)+"```")
}

// Ensure that a database without bytes, as a program of format 3 leaves it, gets them in
// steps, beside writers, and that the numbers of its documents are right all the time.
func TestStats_Upgrade(t *testing.T) {
	defer SetCountSteps(7)()
	ctx := context.Background()
	db, err := OpenMemory(nil)
	noError(t, err)
	const documents = 50
	for i := range documents {
		_, err := db.Put(ctx, fmt.Sprintf("users/%02d", i), []byte(`{"n":1}`), InCollection("Users"))
		noError(t, err)
	}
	noError(t, db.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		tx.Delete(format.AppendKey(nil, format.SpaceMeta, format.SizesName))
		tx.Delete(format.CountKey(nil, "users"))
		tx.Add(format.CountKey(nil, "users"), documents)
		return nil
	}))
	opened, err := counts.Open(db.env, false)
	noError(t, err)
	db.counts, db.writer.Counts = opened, opened

	left, steps := int64(documents), 0
	for all := false; !all; steps++ {
		s, err := db.Stats(ctx)
		noError(t, err)
		if !s.Counting || s.Collections[0].Documents != left {
			t.Errorf("step %d: counting %v, %+v, want %d documents", steps, s.Counting, s.Collections, left)
		}
		for _, i := range []int{steps * 6 % documents, steps * 31 % documents} { // before and behind what is counted
			_, err = db.Put(ctx, fmt.Sprintf("users/%02d", i), []byte(fmt.Sprintf(`{"n":%d}`, 1<<i)), InCollection("Users"))
			noError(t, err)
		}
		noError(t, db.Delete(ctx, fmt.Sprintf("users/%02d", steps*17%documents)))
		n, err := db.Collections(ctx)
		noError(t, err)
		left = n[0].Documents
		all, err = opened.Step(ctx)
		noError(t, err)
	}
	if steps < documents/7 {
		t.Errorf("counted in %d steps", steps)
	}
	s, err := db.Stats(ctx)
	if noError(t, err); s.Counting || s.Collections[0].Documents != left {
		t.Errorf("at the end: counting %v, %+v", s.Counting, s.Collections)
	}
	noError(t, CheckCounts(db))
	noError(t, db.Close())
}
