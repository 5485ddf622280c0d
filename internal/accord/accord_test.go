package accord_test

// This test damages a record that no public call writes.

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that an Open which fails behind the join leaves no heartbeat for which the next
// one would wait.
func TestCluster_OpenFails(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	open := func() (*jay.DB, error) {
		return jay.Open("db", &jay.Options{FS: disk, Cluster: m.Connect()})
	}
	db, err := open()
	if err != nil {
		t.Fatal(err)
	}
	err = parts.Of(db).Env.Engine.Update(t.Context(), true, func(tx storage.Tx) error {
		tx.Set(format.IntentKey(1), []byte("damaged"), nil)
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if db, err = open(); !errors.Is(err, jay.ErrCorrupt) {
		t.Fatalf("got %v, %v, want %v", db, err, jay.ErrCorrupt)
	}
	var last cluster.Beat
	if err := json.Unmarshal(m.Records(cluster.BeatPrefix)[0].Value, &last); err != nil {
		t.Fatal(err)
	}
	if !last.Closed {
		t.Error("a run that has not come into being counts as alive")
	}
}
