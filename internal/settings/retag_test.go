package settings_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a copy accepts no range that the original has granted: its client may go on to
// use it there. The original accepts it after a reopen.
func TestRetag_LeasesVoid(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	db, err := jay.Open("db", &jay.Options{FS: disk})
	jaytest.Must(t, err)
	ends := make(map[string]int64)
	for _, tag := range []string{"users", "orders"} {
		r, err := db.NextRange(ctx, jay.RangeRequest{Tag: tag})
		jaytest.Must(t, err)
		ends[tag] = r.High
	}
	jaytest.Must(t, db.Close())

	for _, opened := range []struct {
		copyTag, tag string
		accepted     bool
	}{
		{"", "users", true},
		{"B", "orders", false},
	} {
		db, err := jay.Open("db", &jay.Options{FS: disk, CopyTag: opened.copyTag})
		jaytest.Must(t, err)
		accepted, err := db.ReturnRange(ctx, opened.tag, 0, ends[opened.tag])
		if err != nil || accepted != opened.accepted {
			t.Errorf("under the tag %q, the range of %s: accepted %v (%v), want %v", opened.copyTag, opened.tag, accepted, err, opened.accepted)
		}
		jaytest.Must(t, db.Close())
	}
}

// Ensure that a copy does not follow a backup of the original: what it would write could not be restored. After a full
// one of its own it does.
func TestRetag_BackupsForgotten(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	put := func(db *jay.DB, id string) {
		t.Helper()
		_, err := db.Put(ctx, id, []byte(`{}`))
		jaytest.Must(t, err)
	}
	db := jaytest.Open(t, "db", &jay.Options{FS: disk})
	put(db, "users/ann")
	original, _ := jaytest.BackUp(t, db)
	put(db, "users/bob")
	jaytest.Must(t, db.Checkpoint(ctx, "copy"))
	jaytest.BackUp(t, db, jay.BackupSince(original.ID)) // the original goes on
	jaytest.Must(t, db.Close())

	db = jaytest.Open(t, "copy", &jay.Options{FS: disk, CopyTag: "B"})
	put(db, "users/cid")
	jaytest.Must(t, db.Delete(ctx, "users/ann"))
	if _, err := db.Backup(ctx, io.Discard, jay.BackupSince(original.ID)); !errors.Is(err, jay.ErrBackupBase) {
		t.Errorf("a backup of the copy that follows one of the original: %v, want ErrBackupBase", err)
	}
	full, first := jaytest.BackUp(t, db)
	jaytest.Must(t, db.Delete(ctx, "users/bob"))
	_, second := jaytest.BackUp(t, db, jay.BackupSince(full.ID))
	jaytest.Must(t, db.Close())
	_, err := jay.Restore(ctx, "restored", jay.RestoreOptions{CopyTag: "C", Options: &jay.Options{FS: disk}}, bytes.NewReader(first), bytes.NewReader(second))
	jaytest.Must(t, err)
	db = jaytest.Open(t, "restored", &jay.Options{FS: disk})
	defer jaytest.Close(t, db)
	for id, want := range map[string]error{"users/ann": jay.ErrNotFound, "users/bob": jay.ErrNotFound, "users/cid": nil} {
		if _, err := db.Get(ctx, id); !errors.Is(err, want) {
			t.Errorf("%s after the restore: %v, want %v", id, err, want)
		}
	}
}

// repeating is a source of randomness that repeats some bytes.
type repeating string

func (r repeating) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r[i%len(r)]
	}
	return len(p), nil
}

// Ensure that change vectors, tokens and IDs of backups go through a URL as they are, whatever the ID of the database was made of:
// a plus became a blank there. That of a copy does, too.
func TestNewOrigin_PlainInURL(t *testing.T) {
	ctx := context.Background()
	for _, source := range []repeating{"\xff", "\xfb\xef\xbe", "\x00\x10\x83"} {
		disk := storagetest.NewDisk()
		for _, copyTag := range []string{"", "B"} {
			db, err := jay.Open("db", &jay.Options{FS: disk, Rand: source, CopyTag: copyTag})
			jaytest.Must(t, err)
			m, err := db.Put(ctx, "a", []byte(`{}`))
			jaytest.Must(t, err)
			if got, err := url.QueryUnescape(m.ChangeVector); got != m.ChangeVector || err != nil {
				t.Errorf("%q in a parameter: %q %v", m.ChangeVector, got, err)
			}
			if got := url.PathEscape(m.ChangeVector); got != m.ChangeVector {
				t.Errorf("%q in a path: %q", m.ChangeVector, got)
			}
			for c, err := range db.Changes(ctx, "", jay.UntilCaughtUp()) {
				jaytest.Must(t, err)
				if got, err := url.QueryUnescape(c.Token()); got != c.Token() || err != nil {
					t.Errorf("the token %q in a parameter: %q %v", c.Token(), got, err)
				}
			}
			b, err := db.Backup(ctx, io.Discard)
			jaytest.Must(t, err)
			if got, err := url.QueryUnescape(b.ID); got != b.ID || err != nil {
				t.Errorf("the ID %q of a backup in a parameter: %q %v", b.ID, got, err)
			}
			jaytest.Must(t, db.Close())
		}
	}
}
