package jaytest

import (
	"context"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

// BreakDocument makes the record of a document unreadable, and returns what repairs it.
func BreakDocument(t testing.TB, db *jay.DB, folded string) (repair func()) {
	t.Helper()
	key := format.DocumentKey(nil, folded)
	value, closer, err := parts.Of(db).Env.Engine.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	record := append([]byte(nil), value...)
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	set := func(record []byte) {
		err := parts.Of(db).Env.Engine.Update(context.Background(), true, func(tx storage.Tx) error {
			tx.Set(key, record, nil)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	set([]byte{99})
	return func() { set(record) }
}
