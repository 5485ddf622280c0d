package jay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/expiry"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that the figures follow every kind of write.
func TestStats(t *testing.T) {
	ctx := context.Background()
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	stats := func() jay.Stats {
		t.Helper()
		s, err := db.Stats(ctx)
		must(t, err)
		must(t, checks.Counts(db))
		return s
	}
	if s := stats(); len(s.Collections) != 0 || s.Counting || s.DiskFull || s.Engine.Failed {
		t.Errorf("an empty database: %+v", s)
	}
	size := func() int64 {
		t.Helper()
		for _, c := range stats().Collections {
			if c.Name == "Users" {
				return c.Bytes
			}
		}
		return 0
	}
	put := func(body string, opts ...jay.WriteOption) {
		t.Helper()
		must(t, errOf(db.Put(ctx, "users/1", json.RawMessage(body), append(opts, jay.InCollection("Users"))...)))
	}
	put(`{"n":1}`)
	first := size()
	if first < int64(len(`users/1{"n":1}`)) {
		t.Errorf("%d bytes", first)
	}
	put(`{"n":1000}`)
	if got := size(); got != first+3 {
		t.Errorf("three digits more: %d bytes, %d before", got, first)
	}
	must(t, errOf(db.Patch(ctx, "users/1", jay.Set("n", 1))))
	if got := size(); got != first {
		t.Errorf("as before: %d bytes, %d before", got, first)
	}

	put(`{}`, jay.WithTTL(time.Minute), jay.RefreshAt(clock.Now().Add(time.Hour)))
	if e := stats().Expiry; e.Expiring != 1 || e.Refreshing != 1 || e.Due != 0 || !e.DueSince.IsZero() {
		t.Errorf("%+v", e)
	}
	put(`{}`, jay.WithTTL(2*time.Minute))
	if e := stats().Expiry; e.Expiring != 1 || e.Refreshing != 0 {
		t.Errorf("%+v", e)
	}

	must(t, errOf(db.Attachments("users/1").Put(ctx, "a", strings.NewReader("hello"))))
	must(t, errOf(db.Attachments("users/1").Put(ctx, "b", strings.NewReader("hello"))))
	if a := stats().Attachments; a != (jay.AttachmentStats{Attachments: 2, Bytes: 10, Contents: 1, StoredBytes: 5}) {
		t.Errorf("%+v", a)
	}
	must(t, db.Delete(ctx, "users/1"))
	s := stats()
	if s.Attachments != (jay.AttachmentStats{}) || s.Expiry.Expiring != 0 || len(s.Collections) != 0 {
		t.Errorf("after the delete: %+v", s)
	}
	must(t, db.Close())
}

// Ensure that what is due is shown with the instant since when.
func TestStats_Due(t *testing.T) {
	defer checks.NoSweeper()()
	ctx := context.Background()
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	at := clock.Now().Add(time.Minute)
	must(t, errOf(db.Put(ctx, "a", json.RawMessage(`{}`), jay.ExpiresAt(at))))
	must(t, errOf(db.Put(ctx, "b", json.RawMessage(`{}`), jay.RefreshAt(at.Add(-time.Second)))))
	must(t, errOf(db.Put(ctx, "c", json.RawMessage(`{}`), jay.ExpiresAt(at.Add(time.Hour)))))
	clock.Advance(2 * time.Minute)
	s, err := db.Stats(ctx)
	must(t, err)
	if e := s.Expiry; e.Due != 2 || !e.DueSince.Equal(at.Add(-time.Second)) || e.Expiring != 2 || e.Refreshing != 1 {
		t.Errorf("%+v", e)
	}
	must(t, db.Close())
}

// Ensure that random writes, committed together and in transactions, keep all numbers
// right, and that a crash at any moment leaves those of the documents that it leaves.
func TestStats_Crash(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 53))
		disk := storagetest.NewDisk()
		db := open(t, "db", &jay.Options{FS: disk, Durability: []jay.Durability{jay.Synced, jay.Relaxed}[seed%2]})
		must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Kept": {Keep: 2}}}))
		cut := random.IntN(60)
		for n := range 60 {
			if n == cut {
				disk = disk.Crash(random.IntN(101), random)
			}
			id := fmt.Sprint("k/", random.IntN(8))
			switch random.IntN(6) {
			case 0:
				must(t, db.Delete(ctx, id))
			case 1:
				if _, err := db.Attachments(id).Put(ctx, fmt.Sprint("a", random.IntN(2)), strings.NewReader(strings.Repeat("x", random.IntN(3)*100))); err != nil && !errors.Is(err, jay.ErrNotFound) {
					t.Fatal(err)
				}
			case 2:
				if _, err := db.Patch(ctx, id, jay.Increment("n", 1), jay.WithTTL(time.Hour)); err != nil {
					t.Fatal(err)
				}
			case 3:
				must(t, db.Update(ctx, func(tx *jay.Tx) error {
					for i := range 3 {
						if _, err := tx.Put(ctx, fmt.Sprint("k/", i), json.RawMessage(`{"t":`+strings.Repeat("1", 1+random.IntN(9))+`}`), jay.InCollection("Kept")); err != nil {
							return err
						}
					}
					return nil
				}))
			default:
				must(t, errOf(db.Put(ctx, id, json.RawMessage(`{"a":"`+strings.Repeat("a", random.IntN(50))+`"}`), jay.InCollection("Kept"))))
			}
		}
		must(t, checks.Counts(db))
		must(t, db.Close())
		left := open(t, "db", &jay.Options{FS: disk})
		if err := checks.Counts(left); err != nil {
			t.Errorf("seed %d, after the crash: %v", seed, err)
		}
		must(t, left.Close())
	}
}

// Ensure that figures which are counted when they are asked for are bounded.
func TestStats_Due_Bound(t *testing.T) {
	defer checks.NoSweeper()()
	old := expiry.MaxDue
	expiry.MaxDue = 5
	defer func() { expiry.MaxDue = old }()
	ctx := context.Background()
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	for i := range 8 {
		must(t, errOf(db.Put(ctx, fmt.Sprint(i), json.RawMessage(`{}`), jay.WithTTL(time.Second))))
	}
	refresh := clock.Now().Add(time.Millisecond)
	must(t, errOf(db.Put(ctx, "first", json.RawMessage(`{}`), jay.RefreshAt(refresh))))
	clock.Advance(time.Minute)
	s, err := db.Stats(ctx)
	must(t, err)
	if e := s.Expiry; e.Due != 5 || e.Expiring != 8 || !e.DueSince.Equal(refresh) {
		t.Errorf("%+v", e)
	}
	must(t, db.Close())
}

// Ensure that the space of collections and indexes on disk is found, also that of
// documents with other IDs, and that it shrinks with what is deleted.
func TestDiskUsage(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	ctx := context.Background()
	db := open(t, t.TempDir(), nil)
	must(t, db.EnsureIndex(ctx, "Large", jay.Index{Name: "a", Fields: []string{"a"}}))
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) json.RawMessage { // that cannot be compressed much
		text := make([]byte, n)
		for i := range text {
			text[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[random.IntN(64)]
		}
		return json.RawMessage(fmt.Sprintf(`{"a":%q}`, text))
	}
	for i := range 200 {
		must(t, errOf(db.Put(ctx, fmt.Sprint("large/", i), noise(4000), jay.InCollection("Large"))))
		must(t, errOf(db.Put(ctx, fmt.Sprint("small/", i), noise(100), jay.InCollection("Small"))))
		must(t, errOf(db.Put(ctx, fmt.Sprint(i), noise(1000), jay.InCollection("Small"))))
	}
	for range 11 { // ten revisions
		must(t, errOf(db.Put(ctx, "small/1", noise(2000), jay.KeepRevision())))
	}
	must(t, second(db.Attachments("small/1").Put(ctx, "noise", bytes.NewReader(noise(10_000)))))
	must(t, db.Compact(ctx))
	u, err := db.DiskUsage(ctx)
	must(t, err)
	if len(u.Collections) != 2 || u.Collections[0].Name != "Large" || u.Collections[0].Bytes < 200*2000 || u.Collections[1].Bytes < 100 || u.Collections[1].Bytes > u.Collections[0].Bytes/5 {
		t.Errorf("%+v", u.Collections)
	}
	if u.OtherDocuments < 200*500 || u.OtherDocuments > 200*2000 {
		t.Errorf("other documents have %d bytes, want about 150,000", u.OtherDocuments)
	}
	if len(u.Indexes) != 1 || u.Indexes[0].Collection != "Large" || u.Indexes[0].Bytes < 200*100 {
		t.Errorf("%+v", u.Indexes)
	}
	if u.Revisions < 10*1000 || u.Revisions > 10*4000 || u.Attachments < 5000 || u.Attachments > 20_000 || u.Other == 0 {
		t.Errorf("revisions have %d bytes, want about 20,000, attachments %d, want about 10,000, and the rest %d, want some", u.Revisions, u.Attachments, u.Other)
	}
	if u.Changes < 100 || u.FreeBytes <= 0 || u.TotalBytes < u.Collections[0].Bytes+u.OtherDocuments {
		t.Errorf("%+v", u)
	}
	must(t, errOf(db.DropCollection(ctx, "Large")))
	must(t, db.Compact(ctx))
	after, err := db.DiskUsage(ctx)
	must(t, err)
	if len(after.Collections) != 1 || len(after.Indexes) != 0 {
		t.Errorf("after the drop: %+v, before %+v", after, u)
	}
	must(t, db.Close())
	if _, err := db.DiskUsage(ctx); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
