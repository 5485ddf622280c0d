package sqlkv_test

import (
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/enginetest"
	"github.com/jaydb/jay/storage/sqlkv"
)

// These tests mostly wait for the disk, so they run at once.

// Ensure that the engine keeps the contract of package storage.
func TestEngine_One(t *testing.T) {
	t.Parallel()
	contract(t, new(sqlkv.Driver))
}

// Ensure that it keeps what the contract says of two engines on one store.
func TestEngine_Two(t *testing.T) {
	t.Parallel()
	contractOfTwo(t, new(sqlkv.Driver))
}

// Ensure that snapshots that grow old do as the contract says.
func TestEngine_ShortSnapshots(t *testing.T) {
	t.Parallel()
	enginetest.RunShortSnapshots(t, func(t *testing.T) (storage.Engine, func(time.Duration)) {
		return open(t, &sqlkv.Driver{SnapshotAge: 2 * time.Second}, newName(t)), time.Sleep
	})
}

// Ensure that the engine keeps the contract within the restrictions of the other profiles. They have never met their servers.
func TestEngine_OtherProfiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as the others together")
	}
	for _, p := range []sqlkv.Profile{sqlkv.Yugabyte, sqlkv.Cockroach} {
		d := &sqlkv.Driver{Profile: sqlkv.RestrictedTo(p)}
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			t.Run("one", func(t *testing.T) { contract(t, d) })
			t.Run("two", func(t *testing.T) { contractOfTwo(t, d) })
		})
	}
}

func contract(t *testing.T, d *sqlkv.Driver) {
	enginetest.Run(t, func(t *testing.T) storage.Engine { return open(t, d, newName(t)) })
}

func contractOfTwo(t *testing.T, d *sqlkv.Driver) {
	enginetest.RunShared(t, func(t *testing.T) (a, b storage.Engine) {
		name := newName(t)
		return open(t, d, name), open(t, d, name)
	})
}
