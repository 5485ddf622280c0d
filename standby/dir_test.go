package standby_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/standby"
)

// follower opens a standby of a directory, in another one.
func follower(t *testing.T, dir, from string, opts *jay.Options) *standby.Standby {
	t.Helper()
	s, err := standby.Open(dir, standby.Dir(from), standby.Options{Database: opts, Retry: 100 * time.Millisecond})
	must(t, err)
	return s
}

// awaitStatus waits until the status of a standby is as it should be.
func awaitStatus(t *testing.T, s *standby.Standby, what string, is func(standby.Status) bool) {
	t.Helper()
	for more := jaytest.Patience(); more(is(s.Status())); {
	}
	if status := s.Status(); !is(status) {
		t.Fatalf("%s: %+v", what, status)
	}
}

// Ensure that a directory that a program has open is followed through its socket, that others look into the standby and
// follow it in the same way, and that it goes on when the program has opened the database again.
func TestDir(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	db := jaytest.Open(t, at("shop"), nil)
	put(t, db, "users/1", `{}`)
	first := follower(t, at("copy"), at("shop"), nil)
	second := follower(t, at("copy of copy"), at("copy"), nil)
	await(t, first, db)
	await(t, second, db)
	put(t, db, "users/2", `{"Name":"Bob"}`)
	await(t, second, db)

	seen, err := jay.Look(at("copy"), nil)
	must(t, err)
	doc, err := seen.Get(ctx, "users/2")
	must(t, err)
	if !strings.Contains(string(doc.Body()), "Bob") {
		t.Errorf("who looks into the standby sees %s", doc.Body())
	}
	put(t, db, "users/3", `{}`)
	await(t, first, db)
	_, err = seen.Get(ctx, "users/3")
	must(t, err)
	if _, err := seen.Put(ctx, "users/4", []byte(`{}`)); !errors.Is(err, jay.ErrReadOnly) {
		t.Errorf("a write through the standby: %v", err)
	}
	must(t, seen.Close())

	jaytest.Close(t, db)
	awaitStatus(t, first, "the source is closed", func(s standby.Status) bool { return !s.Connected && errors.Is(s.Err, jay.ErrUnavailable) })
	db = jaytest.Open(t, at("shop"), nil)
	put(t, db, "users/5", `{}`)
	await(t, second, db)
	must(t, second.Close())
	must(t, first.Close())
	jaytest.Close(t, db)
}

// Ensure that a standby says why a directory is not followed, and that one with NoLook is not looked into.
func TestDir_Refused(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	s := follower(t, at("copy"), at("nothing"), nil)
	awaitStatus(t, s, "there is no database", func(s standby.Status) bool { return errors.Is(s.Err, fs.ErrNotExist) })
	must(t, s.Close())

	quiet := jaytest.Open(t, at("quiet"), &jay.Options{NoLook: true})
	s = follower(t, at("copy"), at("quiet"), nil)
	awaitStatus(t, s, "the program lets none look", func(s standby.Status) bool { return errors.Is(s.Err, jay.ErrUnavailable) })
	must(t, s.Close())
	jaytest.Close(t, quiet)

	db := jaytest.Open(t, at("shop"), nil)
	s = follower(t, at("copy"), at("shop"), &jay.Options{NoLook: true})
	await(t, s, db)
	if _, err := jay.Look(at("copy"), nil); !errors.Is(err, jay.ErrUnavailable) {
		t.Errorf("looking into a standby with NoLook: %v", err)
	}
	other := jaytest.Open(t, at("other"), nil)
	must(t, s.Close())
	s = follower(t, at("copy"), at("other"), nil)
	awaitStatus(t, s, "another database", func(s standby.Status) bool { return errors.Is(s.Err, jay.ErrStandby) })
	must(t, s.Close())
	jaytest.Close(t, other)
	jaytest.Close(t, db)
}
