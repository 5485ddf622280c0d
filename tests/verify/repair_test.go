package verify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
)

// savedBodies returns the bodies of all documents but those of HiLo.
func savedBodies(t *testing.T, db *jay.DB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for doc, err := range db.Documents(context.Background(), jay.Scan{}) {
		must(t, err)
		if !strings.HasPrefix(doc.ID(), "Raven/") {
			all[doc.ID()] = string(doc.Body())
		}
	}
	return all
}

// Ensure that a repair has its new directory from its beginning on, under another name: a
// second one into the same is refused, and takes nothing away from the first.
func TestRepair_Claims(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	im := huntImage(t, false)
	dir, other := copyOf(t, im.files), copyOf(t, im.files)
	into := filepath.Join(t.TempDir(), "new")
	asked := false
	r, err := jay.Repair(ctx, dir, into, nil, &jay.VerifyOptions{Progress: func(p jay.VerifyProgress) {
		if asked || p.Step != "files" {
			return
		}
		asked = true
		if _, err := os.Stat(into); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("before it is whole: %v", err)
		}
		if _, err := jay.Repair(ctx, other, into, nil, nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a second repair: %v, want fs.ErrExist", err)
		}
		if _, err := os.Stat(into + ".unfinished"); err != nil {
			t.Error(err)
		}
	}})
	must(t, err)
	if !asked || r.Documents != int64(len(im.documents)) || r.After.Found > 0 {
		t.Errorf("asked %v, %+v", asked, r)
	}
	if _, err := os.Stat(into + ".unfinished"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the other name is left: %v", err)
	}
	closeDB(t, open(t, into, nil))
}

// Ensure that a repair of a database without damage has all that is in it, with the same
// change vectors, and makes no ID twice.
func TestRepair_Whole(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	im := huntImage(t, false)
	dir := copyOf(t, im.files)
	into := filepath.Join(t.TempDir(), "new")
	r, err := jay.Repair(ctx, dir, into, nil, nil)
	must(t, err)
	if r.Before.Found+r.After.Found+r.After.Warned+r.Missing > 0 || r.Documents != int64(len(im.documents)) || r.Attachments != 6 || r.Indexes != 1 || r.Revisions == 0 {
		t.Errorf("%+v", r)
	}
	if !maps.EqualFunc(im.files, contentsOf(t, dir), bytes.Equal) {
		t.Error("the directory has changed")
	}
	old := open(t, dir, nil)
	defer closeDB(t, old)
	db := open(t, into, nil)
	defer closeDB(t, db)
	if !maps.Equal(savedBodies(t, old), savedBodies(t, db)) {
		t.Error("the documents differ")
	}
	for id := range im.documents {
		a, err := old.Get(ctx, id)
		must(t, err)
		b, err := db.Get(ctx, id)
		must(t, err)
		if a.ChangeVector() != b.ChangeVector() || a.Metadata().Collection != b.Metadata().Collection {
			t.Errorf("%s: %+v, was %+v", id, b.Metadata(), a.Metadata())
		}
	}
	count := func(db *jay.DB) (n int) {
		for _, err := range db.Revisions().List(ctx, "notes/3", jay.RevisionPage{}) {
			must(t, err)
			n++
		}
		return n
	}
	if a, b := count(old), count(db); a != b || a < 5 {
		t.Errorf("%d revisions, were %d", b, a)
	}
	reader, err := db.Attachments("users/050").Get(ctx, "file")
	must(t, err)
	text, err := io.ReadAll(reader)
	must(t, errors.Join(err, reader.Close()))
	if string(text) != strings.Repeat("1", 5000) {
		t.Error("an attachment differs")
	}
	if _, err := jay.Repair(ctx, dir, into, nil, nil); !errors.Is(err, os.ErrExist) && !errors.Is(err, jay.ErrLocked) {
		t.Errorf("into a directory that is there: %v", err)
	}
}

// Ensure that a repair of a directory that a restore has not filled does not count as one without
// loss: what the restore had not come to is in no list.
func TestRepair_UnfinishedRestore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, into := filepath.Join(t.TempDir(), "db.unfinished"), filepath.Join(t.TempDir(), "new")
	db := open(t, dir, nil)
	put(t, db, "ann", `{}`)
	must(t, checks.Engine(db).Update(ctx, true, func(tx storage.Tx) error {
		tx.Set(meta(format.RestoringName), []byte("{}"), nil)
		return nil
	}))
	must(t, db.Close()) // without a check, which would find it
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrRestoring) {
		t.Fatalf("open: %v", err)
	}
	r, err := jay.Repair(ctx, dir, into, nil, nil)
	must(t, err)
	if r.Missing != 1 || len(r.Lost) != 1 || r.Lost[0].ID != format.RestoringName || r.Documents != 1 || r.After.Found > 0 {
		t.Errorf("%+v", r)
	}
	closeDB(t, open(t, into, nil))
}

// Ensure that what a repair makes of a damaged database has no damage, has no document that
// was not there, and lists each document that it lacks.
func TestRepair_Damaged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	im := huntImage(t, false)
	damages := map[string]func(files map[string][]byte){
		"a block of a table": func(files map[string][]byte) { files[largest(files)][700] ^= 4 },
		"a table is missing": func(files map[string][]byte) { delete(files, largest(files)) },
		"a table is cut off": func(files map[string][]byte) {
			name := largest(files)
			files[name] = files[name][:len(files[name])/2]
		},
		"the manifest": func(files map[string][]byte) {
			for name, text := range files {
				if strings.HasPrefix(name, "MANIFEST") {
					text[len(text)*3/4] ^= 4
				}
			}
		},
		"the marker": func(files map[string][]byte) {
			maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasPrefix(name, "marker.manifest") })
		},
	}
	for name, text := range im.files {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		damages["missing: "+name] = func(files map[string][]byte) { delete(files, name) }
		damages["flipped: "+name] = func(files map[string][]byte) { files[name][len(text)/5] ^= 4 }
	}
	today := sample.Of(t, 7)
	for i, name := range slices.Sorted(maps.Keys(damages)) {
		if !today.Has(i) {
			continue
		}
		files := make(map[string][]byte)
		for file, text := range im.files {
			files[file] = bytes.Clone(text)
		}
		damages[name](files)
		into := filepath.Join(t.TempDir(), "new")
		r, err := jay.Repair(ctx, copyOf(t, files), into, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Before.Found == 0 || r.After.Found > 0 {
			t.Errorf("%s: before %v, after %v", name, r.Before.Damages, r.After.Damages)
		}
		lost := make(map[string]bool)
		for _, l := range r.Lost {
			lost[l.ID] = true
		}
		db := open(t, into, nil)
		has := savedBodies(t, db)
		unlisted, ranges := 0, 0
		for _, l := range r.Lost {
			if l.What == "range" {
				ranges++
			}
		}
		for id, body := range im.documents {
			if strings.HasPrefix(id, "Raven/") {
				continue
			}
			if got, there := has[id]; there && got != body && !lost[strings.ToLower(id)] && name != "the manifest" { // which tables there were is lost with it
				t.Errorf("%s: %s is an older version, and not listed", name, id)
			} else if !there && !lost[strings.ToLower(id)] {
				unlisted++
			}
			delete(has, id)
		}
		for id := range has {
			if !lost[strings.ToLower(id)] && name != "the manifest" {
				t.Errorf("%s: %s was not there, and is not listed", name, id)
			}
		}
		t.Logf("%s: %d of %d documents, %d lost items, %d documents not listed, %d ranges", name, r.Documents, len(im.documents), r.Missing, unlisted, ranges)
		id, err := db.Store(ctx, "Users", []byte(fmt.Sprintf(`{"City":%q}`, "new")))
		must(t, err)
		if _, was := im.documents[id.ID]; was {
			t.Errorf("%s: %s comes again", name, id.ID)
		}
		closeDB(t, db)
	}
}
