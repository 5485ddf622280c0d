package jay_test

import (
	"errors"
	"testing"

	"github.com/jaydb/jay"
)

type versionedBike struct {
	ID      string
	Serial  string
	Version string `jay:"version"`
}

// Ensure that a session takes the version field of a loaded entity for the version
// that is expected, so that a form with an older version does not overwrite a newer
// document.
func TestSession_ChangedVersionField(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]jay.SessionOption{nil, {jay.OptimisticConcurrency()}} {
		db := memory(t, nil)
		bikes, err := jay.CollectionOf[versionedBike](db)
		must(t, err)
		bike := &versionedBike{Serial: "a"}
		_, err = bikes.Insert(ctx, bike)
		must(t, err)
		form := bike.Version
		bike.Serial = "b"
		_, err = bikes.Put(ctx, bike)
		must(t, err)
		current := bike.Version

		wantConflict := func(what string, err error) {
			t.Helper()
			var conflict *jay.ConflictError
			if !errors.As(err, &conflict) || conflict.Expected != form || conflict.Actual != current || conflict.ID != bike.ID {
				t.Errorf("%s: got %v, want a conflict of %s", what, err, form)
			}
			if doc, err := bikes.Get(ctx, bike.ID); err != nil || doc.Serial != "b" || doc.Version != current {
				t.Fatalf("%s: the document is %+v (%v), want it unchanged", what, doc, err)
			}
		}
		load := func() (*jay.Session, *versionedBike) {
			s := db.OpenSession(opts...)
			v, err := jay.Load[versionedBike](ctx, s, bike.ID)
			must(t, err)
			return s, v
		}

		s, v := load()
		v.Version, v.Serial = form, "lost"
		wantConflict("changed", s.SaveChanges(ctx))
		wantConflict("called again", s.SaveChanges(ctx))
		must(t, s.Refresh(ctx, v))
		must(t, s.SaveChanges(ctx))

		s, v = load()
		v.Version = form
		wantConflict("no other field changed", s.SaveChanges(ctx))

		s, v = load()
		v.Version = form
		must(t, s.Delete(v))
		wantConflict("deleted", s.SaveChanges(ctx))

		// A session that is older than the form would write old fields beside the new ones.
		s, v = load()
		bike.Serial = "b"
		_, err = bikes.Put(ctx, bike)
		must(t, err)
		form, v.Version, v.Serial = bike.Version, bike.Version, "lost"
		err = s.SaveChanges(ctx)
		current, form = form, current
		if !errors.Is(err, jay.ErrConflict) {
			t.Errorf("stale session: got %v, want a conflict", err)
		}

		for _, version := range []string{current, ""} {
			s, v = load()
			v.Version, v.Serial = version, v.Serial+"c"
			must(t, s.SaveChanges(ctx))
			if current == v.Version {
				t.Errorf("version %q: the field still holds %s after the save", version, v.Version)
			}
			current = v.Version
			v.Serial += "d" // saved again, with the new version
			must(t, s.SaveChanges(ctx))
			current = v.Version
		}
		s, v = load()
		v.Version = current
		must(t, s.Delete(v))
		v.Version = "reused"
		must(t, s.SaveChanges(ctx))
		if found, err := bikes.Exists(ctx, bike.ID); found || err != nil {
			t.Errorf("after Delete: found %v, %v", found, err)
		}
	}
}
