package sqlkv_test

import (
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/enginetest"
	"github.com/jaydb/jay/storage/sqlkv"
)

// Ensure that the engine keeps the contract of package storage: alone, as one of two on a store, and when its snapshots grow old.
func TestEngine_Contract(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		t.Parallel() // they wait for the disk
		enginetest.Run(t, func(t *testing.T) storage.Engine { return open(t, new(sqlkv.Driver), newName(t)) })
	})
	t.Run("two", func(t *testing.T) {
		t.Parallel()
		enginetest.RunShared(t, func(t *testing.T) (a, b storage.Engine) {
			name := newName(t)
			return open(t, new(sqlkv.Driver), name), open(t, new(sqlkv.Driver), name)
		})
	})
	// The other profiles have never met their servers: what is tested is that the engine keeps the contract within their restrictions.
	for _, p := range []sqlkv.Profile{sqlkv.Yugabyte, sqlkv.Cockroach} {
		d := &sqlkv.Driver{Profile: sqlkv.RestrictedTo(p)}
		if testing.Short() {
			break
		}
		t.Run(p.String()+" one", func(t *testing.T) {
			t.Parallel()
			enginetest.Run(t, func(t *testing.T) storage.Engine { return open(t, d, newName(t)) })
		})
		t.Run(p.String()+" two", func(t *testing.T) {
			t.Parallel()
			enginetest.RunShared(t, func(t *testing.T) (a, b storage.Engine) {
				name := newName(t)
				return open(t, d, name), open(t, d, name)
			})
		})
	}
	t.Run("short snapshots", func(t *testing.T) {
		t.Parallel()
		enginetest.RunShortSnapshots(t, func(t *testing.T) (storage.Engine, func(time.Duration)) {
			return open(t, &sqlkv.Driver{SnapshotAge: 2 * time.Second}, newName(t)), time.Sleep
		})
	})
}
