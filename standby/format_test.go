package standby_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/standby"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Ensure that a standby takes the format that its source raises while it follows, and the deletion that has raised it.
func TestStandby_FormatRises(t *testing.T) {
	source := jaytest.Memory(t, nil)
	put(t, source, "notes/1-A", `{}`)
	dir := filepath.Join(t.TempDir(), "copy")
	s, err := standby.Open(dir, standby.From(source), standby.Options{Database: &jay.Options{NoLook: true}, Retry: 100 * time.Millisecond})
	must(t, err)
	defer s.Close()
	await(t, s, source)
	risen := func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "JAY"))
		must(t, err)
		return strings.Contains(string(text), "\nfeature 8: deleted ids\n")
	}
	if risen() {
		t.Error("the format has risen too early")
	}
	must(t, source.Delete(ctx, "notes/1-a"))
	await(t, s, source)
	if !risen() {
		t.Error("the format has not risen")
	}
	if got := jaytest.ChangesText(jaytest.Changes(t, read(t, s), "")); got != "-notes/1-A@2" {
		t.Errorf("changes: %s", got)
	}
	if n := s.Status().Copies; n != 1 {
		t.Errorf("keys were compared %d times, and the first copy is the only one", n)
	}
}

// Ensure that the standby of format 7 (internal/fixture) is refused by a program that knows no standbys, by that name, can
// be read, and can be promoted.
func TestFormat7(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(dir, os.DirFS("../testdata/format7/standby")))

	older := storage.Features{storage.FeatureDefinitions, storage.FeatureUTC}
	_, err := jay.Open(dir, &jay.Options{ReadOnly: true, Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 7 || !slices.Equal(newer.Features, []string{"standby"}) {
		t.Errorf("an older program: got %v", err)
	}
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrStandby) {
		t.Errorf("to write: got %v", err)
	}

	names := func(db *jay.DB) (all string) {
		t.Helper()
		found, err := db.Query("Users").OrderBy("Name").UseIndex("Name").All(ctx)
		must(t, err)
		for _, d := range found {
			all += d.ID() + " "
		}
		return all
	}
	db, err := jay.Open(dir, &jay.Options{ReadOnly: true})
	must(t, err)
	if got := names(db); got != "users/ann users/1 " {
		t.Errorf("to read: got %q", got)
	}
	must(t, db.Close())

	_, err = jay.Promote(ctx, dir, jay.PromoteOptions{CopyTag: "G"})
	must(t, err)
	db, err = jay.Open(dir, nil)
	must(t, err)
	m, err := db.Store(ctx, "Users", []byte(`{"Name":"Cay"}`))
	must(t, err)
	if got := names(db); m.ID != "users/1-G" || got != "users/ann users/1 users/1-G " {
		t.Errorf("promoted: got %s, %q", m.ID, got)
	}
	jaytest.Verify(t, db)
	must(t, db.Close())

	// A new one has the number, too.
	dir = filepath.Join(t.TempDir(), "new")
	s, err := standby.Open(dir, standby.From(jaytest.Memory(t, nil)), standby.Options{})
	must(t, err)
	must(t, s.Close())
	text, err := os.ReadFile(filepath.Join(dir, "JAY"))
	must(t, err)
	if !strings.Contains(string(text), "\nfeature 7: standby\n") {
		t.Errorf("a new standby: %s", text)
	}
}
