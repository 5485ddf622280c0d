package verify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/invariants"
)

// image is a database as files, and what is in it.
type image struct {
	name      string
	files     map[string][]byte
	documents map[string]string // bodies, by ID
}

// huntImage makes a database with indexes, revisions and attachments in several tables,
// closed or as a kill leaves it.
func huntImage(t *testing.T, killed bool) image {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	im := image{name: "closed", documents: make(map[string]string)}
	opts := &jay.Options{MemTableBytes: 64 << 10}
	db, err := jay.Open(dir, opts)
	must(t, err)
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"City"}}))
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Notes": {}}}))
	for round := range 6 {
		var b jay.Batch
		for i := range 60 {
			body := fmt.Sprintf(`{"City":"c%d","Text":%q}`, i%7, strings.Repeat(string(rune('a'+round)), 150))
			b.Put(fmt.Sprintf("users/%03d", round*50+i), json.RawMessage(body), jay.InCollection("Users"))
			b.Put(fmt.Sprintf("notes/%d", i%20), json.RawMessage(body), jay.InCollection("Notes"))
		}
		_, err := db.Apply(ctx, &b)
		must(t, err)
		_, err = db.Attachments(fmt.Sprintf("users/%03d", round*50)).Put(ctx, "file", strings.NewReader(strings.Repeat(strconv.Itoa(round), 5000)))
		must(t, err)
		must(t, db.Delete(ctx, fmt.Sprintf("users/%03d", round*50+7)))
		if round == 3 { // some of it in tables of its own
			must(t, db.Close())
			db, err = jay.Open(dir, opts)
			must(t, err)
		}
	}
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		im.documents[doc.ID()] = string(doc.Body())
	}
	if killed {
		im.name = "killed"
		im.files = imageInUse(t, dir)
	}
	must(t, db.Close())
	if !killed {
		im.files = contentsOf(t, dir)
	}
	return im
}

// imageInUse is contentsOf for a directory that is in use, in which compactions come and go:
// an image of one moment.
func imageInUse(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	read := func() map[string][]byte {
		entries, err := os.ReadDir(dir)
		must(t, err)
		all := make(map[string][]byte)
		for _, e := range entries {
			if !e.Type().IsRegular() {
				continue // the socket of those who look into it
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			must(t, err)
			all[e.Name()] = text
		}
		return all
	}
	for before := read(); ; {
		time.Sleep(20 * time.Millisecond)
		now := read()
		if now != nil && maps.EqualFunc(before, now, bytes.Equal) {
			return now
		}
		before = now
	}
}

// readAgain opens a damaged directory and reads all documents, and looks for those of an
// index. It returns what went wrong without an error: a wrong answer.
func (im *image) readAgain(dir string) (wrong string, failed bool) {
	ctx := context.Background()
	db, err := jay.Open(dir, &jay.Options{MustExist: true})
	if err != nil {
		return "", true
	}
	defer db.Close()
	for id, want := range im.documents {
		doc, err := db.Get(ctx, id)
		switch {
		case errors.Is(err, jay.ErrNotFound):
			return id + " is gone", failed
		case err != nil:
			failed = true
		case !strings.HasPrefix(id, "Raven/") && string(doc.Body()) != want:
			return id + " is another one", failed
		}
	}
	found := 0
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			return "", true
		}
		if _, known := im.documents[doc.ID()]; !known && !strings.HasPrefix(doc.ID(), "Raven/") {
			return doc.ID() + " was not there", failed
		}
		found++
	}
	return "", failed || found < len(im.documents)
}

// Ensure that a flipped bit anywhere in a database is found, or is harmless: no document
// is another one, or gone, unless Verify says that there is damage. Nothing hangs or
// panics.
//
// JAY_HUNT is the number of flips, 50 by default; JAY_HUNT_SEED repeats a run.
func TestVerify_Hunt(t *testing.T) {
	t.Parallel()
	if invariants.Enabled {
		t.Skip("a build with invariants stops where it meets damage")
	}
	flips := 50
	if n, err := strconv.Atoi(os.Getenv("JAY_HUNT")); err == nil {
		flips = n
	} else if testing.Short() {
		flips = 16
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("JAY_HUNT_SEED"), 10, 64); err == nil {
		seed = n
	}
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	images := []image{huntImage(t, false), huntImage(t, true)}
	type row struct{ flips, found, harmless, refused int }
	rows := make(map[string]*row)
	for i := range flips {
		im := &images[i%2]
		names := slices.Sorted(maps.Keys(im.files))
		name := names[random.IntN(len(names))]
		for len(im.files[name]) == 0 {
			name = names[random.IntN(len(names))]
		}
		text := bytes.Clone(im.files[name])
		at, bit := random.IntN(len(text)), random.IntN(8)
		text[at] ^= 1 << bit

		dir := copyOf(t, im.files)
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
		kind := im.name + " " + strings.TrimRight(strings.Split(name, "-")[0], "0123456789")
		if at := strings.LastIndexByte(name, '.'); at > 0 && !strings.HasPrefix(name, "marker") {
			kind = im.name + " " + name[at:]
		}
		if rows[kind] == nil {
			rows[kind] = new(row)
		}
		rows[kind].flips++

		type outcome struct {
			report jay.VerifyReport
			err    error
			wrong  string
			failed bool
		}
		answer := make(chan outcome, 1)
		go func() {
			var o outcome
			o.report, o.err = jay.VerifyDir(context.Background(), dir, nil, nil)
			o.wrong, o.failed = im.readAgain(dir)
			answer <- o
		}()
		var o outcome
		select {
		case o = <-answer:
		case <-time.After(5 * time.Minute):
			t.Fatalf("flip %d: %s, %s, bit %d at %d: it hangs", i, im.name, name, bit, at)
		}
		noted := o.err != nil || o.report.Found > 0
		switch {
		case noted:
			rows[kind].found++
		case o.wrong != "" || o.failed:
			t.Errorf("flip %d: %s, %s, bit %d at %d of %d: Verify finds nothing, and reads fail: %v, %s", i, im.name, name, bit, at, len(text), o.failed, o.wrong)
		default:
			rows[kind].harmless++
		}
		if o.failed {
			rows[kind].refused++
		}
		if noted && o.wrong != "" {
			t.Errorf("flip %d: %s, %s, bit %d at %d of %d: a wrong answer: %s", i, im.name, name, bit, at, len(text), o.wrong)
		}
		must(t, os.RemoveAll(dir))
	}
	for _, kind := range slices.Sorted(maps.Keys(rows)) {
		r := rows[kind]
		t.Logf("%-24s %4d flips: %4d found, %4d harmless; %4d with reads that failed", kind, r.flips, r.found, r.harmless, r.refused)
	}
}
