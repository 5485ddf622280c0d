package requests_test

// These tests look at the results of requests as they lie in storage, which the public
// API does not show.

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

// Ensure that docs/format.md holds the bytes that results of requests have.
func TestRequestID_Layout_Golden(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	if _, err := db.NextIdentity(ctx, "users", jay.RequestID("6e1f")); err != nil {
		t.Fatal(err)
	}
	jaytest.InFormat(t, jaytest.KeysBetween(t, db, format.SpaceRequests, format.SpaceRequests))
}

// Ensure that the hash of a batch stays the same: the results that are stored have it.
func TestRequestID_Given_Golden(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	var b jay.Batch
	b.Put("users/1", []byte(`{"l":[1]}`), jay.InCollection("Users"), jay.IfMatch(""), jay.ExpiresAt(jaytest.DumpTime.AddDate(1, 0, 0)), jay.WithMetadata([]byte(`{"k":1}`)))
	b.Patch("users/1", jay.Set("n", 1), jay.Increment("n", 2), jay.RemoveWhere("l", jay.Eq("@value", 1)), jay.JSONPatch([]byte(`[{"op":"add","path":"/a","value":1}]`)))
	b.PutCompareExchange("k", 1, 0)
	if _, err := db.Apply(ctx, &b, jay.RequestID("batch")); err != nil {
		t.Fatal(err)
	}
	const want = `{"call":"apply\x20of\x203","given":"0682e65ce44078b912eb7001128905cf","result":`
	if dump := jaytest.KeysBetween(t, db, format.SpaceRequests, format.SpaceRequests); !strings.Contains(dump, want) {
		t.Errorf("got\n%s\nwant %s", dump, want)
	}
}

// Ensure that a result as older versions stored it, without a hash of the writes, answers
// every batch of as many writes as it did, is whole, and is backed up and restored beside one
// with a hash.
func TestRequestID_WithoutGiven(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	one, other := new(jay.Batch), new(jay.Batch)
	one.Put("docs/1", []byte(`{"n":1}`))
	other.Put("docs/1", []byte(`{"n":2}`))
	for _, id := range []string{"new", "old"} {
		if _, err := db.Apply(ctx, one, jay.RequestID(id)); err != nil {
			t.Fatal(err)
		}
	}
	jaytest.Must(t, parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		value, closer, err := tx.Get(format.RequestKey("old"))
		if err != nil {
			return err
		}
		record := bytes.Clone(value)
		if err := closer.Close(); err != nil {
			return err
		}
		from := bytes.Index(record, []byte(`"given"`))
		to := bytes.Index(record, []byte(`"result"`))
		if from < 0 || to < from {
			t.Fatalf("the result is %s", record)
		}
		tx.Set(format.RequestKey("old"), append(record[:from], record[to:]...), nil)
		return nil
	}))
	check := func(db *jay.DB) {
		t.Helper()
		if r, err := db.Verify(ctx, nil); err != nil || len(r.Damages) > 0 {
			t.Errorf("%v %v", r.Damages, err)
		}
		if _, err := db.Apply(ctx, other, jay.RequestID("new")); !errors.Is(err, jay.ErrRequestID) {
			t.Errorf("other writes with the id of a result with a hash: %v", err)
		}
		for _, b := range []*jay.Batch{one, other} {
			if again, err := db.Apply(ctx, b, jay.RequestID("old")); err != nil || again[0].Etag != 2 {
				t.Errorf("the id of a result without a hash: %v %v", again, err)
			}
		}
		if _, err := db.Apply(ctx, one, jay.RequestID("new")); err != nil {
			t.Errorf("the same writes: %v", err)
		}
		doc, err := db.Get(ctx, "docs/1")
		if err != nil || string(doc.Body()) != `{"n":1}` {
			t.Errorf("%v %v", doc, err)
		}
	}
	check(db)
	var stream bytes.Buffer
	_, err := db.Backup(ctx, &stream)
	jaytest.Must(t, err)
	dir := t.TempDir() + "/restored"
	_, err = jay.Restore(ctx, dir, jay.RestoreOptions{CopyTag: "B"}, &stream)
	jaytest.Must(t, err)
	restored, err := jay.Open(dir, nil)
	jaytest.Must(t, err)
	defer restored.Close()
	check(restored)
}
