package sqlkv_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

// refuseCommits makes the server refuse so many commits of a store with a code, when the row of the commit is inserted, or at the COMMIT itself.
func refuseCommits(t *testing.T, name, code, when string, times int) {
	t.Helper()
	s := schemaOf(name)
	deferred := ""
	if when == "commit" {
		deferred = "deferrable initially deferred"
	}
	for _, sql := range []string{
		"create sequence " + s + ".tries",
		"create function " + s + ".refuse() returns trigger language plpgsql as $$ begin if nextval('" + s + ".tries') <= " + itoa(times) +
			" then raise exception using errcode = '" + code + "', message = 'refused by the test'; end if; return null; end $$",
		"create constraint trigger refuse after insert on " + s + ".commits " + deferred + " for each row execute function " + s + ".refuse()",
	} {
		execute(t, sql)
	}
}

// Ensure that a transaction that the server refuses as it could not be serialized runs again, whenever that happens, and is done once; and that the
// call fails when it happens again and again.
func TestUpdate_NotSerialized(t *testing.T) {
	for _, code := range []string{"40001", "40P01"} {
		for _, when := range []string{"statement", "commit"} {
			for times, want := range map[int]error{1: nil, 5: nil, 1000: storage.ErrConflict} {
				name := newName(t)
				e := open(t, new(sqlkv.Driver), name)
				must(t, put(e, "k", "1"))
				refuseCommits(t, name, code, when, times)
				runs := 0
				err := e.Update(ctx, true, func(tx storage.Tx) error {
					runs++
					n, err := tx.Sequence()
					tx.Add([]byte("n"), int64(n))
					return err
				})
				if want == nil {
					must(t, err)
					equal(t, runs, times+1)
					equal(t, number(t, e, "n"), int64(1))
				} else if !errors.Is(err, want) || number(t, e, "n") != 0 {
					t.Errorf("%s at the %s: got %v, want %v", code, when, err, want)
				}
				execute(t, "drop trigger refuse on "+schemaOf(name)+".commits")
				must(t, put(e, "k", "2"))
				must(t, e.Close())
			}
		}
	}
}

// Ensure that what the server refuses for another reason is an error of its kind, that nothing was changed, and that the engine goes on
// afterwards.
func TestUpdate_Refused(t *testing.T) {
	for code, test := range map[string]struct {
		want error
		says string
	}{
		"53100": {storage.ErrDiskFull, "free space"},
		"42501": {storage.ErrNotWritable, "grant"},
		"25006": {storage.ErrNotWritable, "read only"},
		"XX000": {storage.ErrUnavailable, "SQLSTATE XX000"},
	} {
		for _, when := range []string{"statement", "commit"} {
			name := newName(t)
			e := open(t, new(sqlkv.Driver), name)
			refuseCommits(t, name, code, when, 1)
			err := put(e, "k", "1")
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), schemaOf(name)) {
				t.Errorf("%s at the %s: got %v, want %v", code, when, err, test.want)
			}
			equal(t, get(t, e, "k"), "absent")
			must(t, put(e, "k", "2"))
			equal(t, get(t, e, "k"), "2")
			must(t, e.Close())
		}
	}
}

// Ensure that rows of old commits go, that the newest stays, and that a transaction that has begun before what is left runs again.
func TestPrune(t *testing.T) {
	name := newName(t)
	e := open(t, &sqlkv.Driver{Retention: 200 * time.Millisecond}, name)
	defer e.Close()
	other := open(t, new(sqlkv.Driver), name)
	defer other.Close()
	runs := 0
	must(t, e.Update(ctx, true, func(tx storage.Tx) error {
		if _, _, err := tx.Get([]byte("k")); !errors.Is(err, storage.ErrNotFound) && runs == 0 {
			t.Errorf("k: %v", err)
		}
		if runs++; runs == 1 {
			for range 20 {
				must(t, put(other, "another", "v"))
			}
			eventually(t, func() bool { return count(t, "select count(*) from "+schemaOf(name)+".commits") == 1 })
		}
		tx.Set([]byte("k"), nil, nil)
		return nil
	}))
	equal(t, runs, 2)
	must(t, put(e, "k", "v"))
	equal(t, count(t, "select max(n) from "+schemaOf(name)+".commits"), 22)
}

// Ensure that a transaction that keeps meeting others runs under the lock of the store, and so commits.
func TestUpdate_MeetsOthers(t *testing.T) {
	name := newName(t)
	e, other := open(t, new(sqlkv.Driver), name), open(t, new(sqlkv.Driver), name)
	defer e.Close()
	defer other.Close()
	meet := func(run int) error {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		return other.Update(short, true, func(tx storage.Tx) error {
			tx.Set([]byte([]string{"k", "l1"}[run%2]), []byte(itoa(run)), nil)
			return nil
		})
	}
	runs := 0
	must(t, e.Update(ctx, true, func(tx storage.Tx) error {
		if _, _, err := tx.Get([]byte("k")); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		it, err := tx.Iterate([]byte("l"), []byte("m"))
		if err != nil {
			return err
		}
		it.First()
		runs++
		// It does not wait: while the lock is held, the other cannot commit, and does so afterwards.
		if err := meet(runs); runs < 3 {
			must(t, err)
		} else if !errors.Is(err, storage.ErrUnknownOutcome) {
			t.Errorf("run %d: got %v, want ErrUnknownOutcome", runs, err)
		}
		tx.Set([]byte("done"), nil, nil)
		return it.Close()
	}))
	equal(t, runs, 3)
	equal(t, get(t, other, "done"), "")
	eventually(t, func() bool { return get(t, e, "l1") == "3" })
}

// Ensure that a commit waits for the disk when its call asks for that, or when reads are to show only what is on it, and not otherwise.
func TestUpdate_WaitsForTheDisk(t *testing.T) {
	for _, durable := range []bool{false, true} {
		name := newName(t)
		e, err := new(sqlkv.Driver).Open(name, storage.OpenOptions{DurableReads: durable})
		must(t, err)
		s := schemaOf(name)
		for _, sql := range []string{
			"create table public.waits_" + s + " (how text)",
			"create function " + s + ".note() returns trigger language plpgsql as $$ begin insert into public.waits_" + s + " values (current_setting('synchronous_commit')); return null; end $$",
			"create constraint trigger note after insert on " + s + ".commits deferrable initially deferred for each row execute function " + s + ".note()",
		} {
			execute(t, sql)
		}
		defer execute(t, "drop table public.waits_"+s)
		set := func(tx storage.Tx) error { tx.Set([]byte("k"), nil, nil); return nil }
		relaxed := func(want bool) {
			t.Helper()
			equal(t, count(t, "select count(*) from public.waits_"+s+" where how = 'off'") == 1, want)
			equal(t, count(t, "select count(*) from public.waits_"+s), 1)
			execute(t, "delete from public.waits_"+s)
		}
		must(t, e.Update(ctx, true, set))
		relaxed(false)
		must(t, e.Update(ctx, false, set))
		relaxed(!durable)
		must(t, e.Update(ctx, false, func(tx storage.Tx) error { tx.RequireSync(); return set(tx) }))
		relaxed(false)
		must(t, e.Update(ctx, false, set))
		relaxed(!durable)
		latest := e.Latest()
		must(t, latest.WaitDurable(ctx)) // by a commit that waits
		equal(t, count(t, "select count(*) from public.waits_"+s), map[bool]int{false: 1, true: 0}[durable])
		must(t, latest.WaitDurable(ctx))
		must(t, latest.Close())
		must(t, e.Close())
	}
}

// Ensure that a snapshot that is too old shows nothing, and has freed its connection.
func TestSnapshot_Expires(t *testing.T) {
	e := open(t, &sqlkv.Driver{Connections: 3, SnapshotAge: 100 * time.Millisecond}, newName(t))
	defer e.Close()
	for range 3 {
		s := e.Snapshot()
		eventually(t, func() bool {
			_, _, err := s.Get([]byte("k"))
			return errors.Is(err, storage.ErrSnapshotExpired)
		})
		defer s.Close()
	}
	must(t, put(e, "k", "v"))
	equal(t, get(t, e, "k"), "v")
}

// Ensure that a commit of so many keys that its row does not hold them is in conflict with what was read meanwhile, and only with that.
func TestUpdate_ManyKeys(t *testing.T) {
	name := newName(t)
	e, other := open(t, new(sqlkv.Driver), name), open(t, new(sqlkv.Driver), name)
	defer e.Close()
	defer other.Close()
	many := func() {
		must(t, other.Update(ctx, true, func(tx storage.Tx) error {
			for i := range 3000 {
				tx.Set([]byte(strings.Repeat("k", 400)+itoa(i)), nil, nil)
			}
			return nil
		}))
	}
	for _, reads := range []bool{false, true} {
		runs := 0
		must(t, e.Update(ctx, true, func(tx storage.Tx) error {
			if reads {
				tx.Get([]byte("another"))
			}
			if runs++; runs == 1 {
				many()
			}
			tx.Add([]byte("n"), 1)
			return nil
		}))
		equal(t, runs == 2, reads)
	}
	equal(t, number(t, e, "n"), int64(2))
}
