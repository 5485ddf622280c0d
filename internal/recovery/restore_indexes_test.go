package recovery_test

// These tests stop the build of an index in its middle, and plant declarations, which
// no call of the public API does.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// declareOnly declares indexes that nothing builds, as a process leaves them that ends in a build.
func declareOnly(t testing.TB, db *jay.DB, collection string, indexes ...jay.Index) {
	t.Helper()
	for _, ix := range indexes {
		ix, err := catalog.Canonical(ix, collection)
		if err != nil {
			t.Fatal(err)
		}
		task := &indexer.Task{Key: indexer.KeyOf(collection, ix.Name), Info: jay.IndexInfo{Index: ix, Collection: collection}}
		if old := parts.Of(db).Indexes.Load().Find(collection, ix.Name); old != nil {
			task.Replaces = old.Number
		}
		if err := parts.Of(db).Indexer.Declare(task); err != nil {
			t.Fatal(err)
		}
	}
}

// doomed is a database with documents, an index, and a unique one in the middle of its build that
// two documents refuse.
func doomed(t testing.TB, disk *storagetest.Disk) *jay.DB {
	t.Helper()
	ctx := context.Background()
	db, err := jay.Open("doomed", &jay.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for i, mail := range []string{"a", "b", "a"} {
		if _, err := db.Put(ctx, fmt.Sprint("users/", i), fmt.Appendf(nil, `{"Mail":%q}`, mail), jay.InCollection("Users")); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Mail"}}); err != nil {
		t.Fatal(err)
	}
	declareOnly(t, db, "Users", jay.Index{Name: "one", Fields: []string{"Mail"}, Unique: true})
	return db
}

// restoreVerified verifies backups, restores them, and opens the result.
func restoreVerified(t testing.TB, opts jay.RestoreOptions, streams ...[]byte) (*jay.DB, jay.RestoreInfo) {
	t.Helper()
	ctx := context.Background()
	chain := make([]*backedUp, len(streams))
	for i, stream := range streams {
		chain[i] = &backedUp{stream: stream}
	}
	if _, err := jay.VerifyBackup(ctx, nil, readersOfChain(chain)...); err != nil {
		t.Fatal(err)
	}
	opts.CopyTag, opts.Options = "B", &jay.Options{FS: storagetest.NewDisk()}
	info, err := jay.Restore(ctx, "restored", opts, readersOfChain(chain)...)
	if err != nil {
		t.Fatal(err)
	}
	db, err := jay.Open("restored", opts.Options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, info
}

// backUpOf returns a backup of a database.
func backUpOf(t testing.TB, db *jay.DB, opts ...jay.BackupOption) (jay.BackupInfo, []byte) {
	t.Helper()
	var stream bytes.Buffer
	info, err := db.Backup(context.Background(), &stream, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return info, stream.Bytes()
}

// namesOf returns the indexes of a database and their states.
func namesOf(t testing.TB, db *jay.DB) (names []string) {
	t.Helper()
	infos, err := db.Indexes(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		names = append(names, fmt.Sprint(info.Name, " ", info.State))
	}
	return names
}

// Ensure that a backup from the middle of the build of an index that the documents refuse is restored
// without the index, which is named with the two documents: from the database that builds it, from what its
// process left, opened to read only too, and as the second of a chain.
func TestRestore_IndexThatCannotBeBuilt(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	db := doomed(t, disk)
	_, building := backUpOf(t, db, jay.BackupOnce())

	reader, err := jay.Open("doomed", &jay.Options{FS: disk.Crash(0, rand.New(rand.NewPCG(1, 1))), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	_, left := backUpOf(t, reader)
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}

	chained, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer chained.Close()
	put := func(id, mail string) {
		if _, err := chained.Put(ctx, id, fmt.Appendf(nil, `{"Mail":%q}`, mail), jay.InCollection("Users")); err != nil {
			t.Fatal(err)
		}
	}
	put("users/0", "a")
	if err := chained.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Mail"}}); err != nil {
		t.Fatal(err)
	}
	info, base := backUpOf(t, chained)
	put("users/1", "b")
	put("users/2", "a")
	declareOnly(t, chained, "Users", jay.Index{Name: "one", Fields: []string{"Mail"}, Unique: true})
	_, since := backUpOf(t, chained, jay.BackupSince(info.ID))

	for name, streams := range map[string][][]byte{"building": {building}, "left by a process": {left}, "chain": {base, since}} {
		restored, info := restoreVerified(t, jay.RestoreOptions{}, streams...)
		if info.Documents != 3 || info.Indexes != 1 || len(info.LeftOut) != 1 {
			t.Fatalf("%s: %+v", name, info)
		}
		out := info.LeftOut[0]
		slices.Sort(out.Documents)
		if out.Index.Name != "one" || out.Index.Collection != "Users" || out.Index.State != jay.IndexBuilding || !slices.Equal(out.Documents, []string{"users/0", "users/2"}) {
			t.Errorf("%s: %+v", name, out)
		}
		if !errors.Is(out.Err, jay.ErrUnique) || !strings.Contains(out.String(), `index "one" of Users is left out: `) || !strings.Contains(out.Reason, `["a"]`) {
			t.Errorf("%s: %v", name, out)
		}
		if got := namesOf(t, restored); !slices.Equal(got, []string{"Mail ready"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Ensure that a repair lists an index that cannot be built, however fast it fails.
func TestRepair_IndexThatCannotBeBuilt(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	doomed(t, disk)
	left := disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
	into := filepath.Join(t.TempDir(), "repaired")
	report, err := jay.Repair(ctx, "doomed", into, &jay.Options{FS: left}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Lost) != 1 || report.Lost[0].What != "index" || report.Lost[0].ID != "one" || report.Indexes != 1 || report.Documents != 3 || report.After.Found != 0 {
		t.Errorf("%+v", report)
	}
}

// Ensure that an index which was ready is ready in a restored and in a repaired database, also where one that is
// left out would take its place within the bounds of a document.
func TestRestore_ReadyIndexesFirst(t *testing.T) {
	ctx := context.Background()
	defer func(n int) { catalog.MaxEntryBytes = n }(catalog.MaxEntryBytes)
	catalog.MaxEntryBytes = 12_000
	disk := storagetest.NewDisk()
	db, err := jay.Open("doomed", &jay.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	body := fmt.Sprintf(`{"Tags":["%s"]}`, strings.Repeat(`abcdefghijklmno","`, 100))
	for i := range 100 {
		body = strings.Replace(body, "abcdefghijklmno", fmt.Sprintf("%015d", i), 1)
	}
	if _, err := db.Put(ctx, "a", []byte(body), jay.InCollection("A")); err != nil {
		t.Fatal(err)
	}
	if err := db.EnsureIndex(ctx, "A", jay.Index{Name: "ready", Fields: []string{"Tags"}}); err != nil {
		t.Fatal(err)
	}
	declareOnly(t, db, "A", jay.Index{Name: "another", Fields: []string{"-Tags"}})
	_, stream := backUpOf(t, db, jay.BackupOnce())
	restored, info := restoreVerified(t, jay.RestoreOptions{}, stream)
	if got := namesOf(t, restored); !slices.Equal(got, []string{"ready ready"}) || len(info.LeftOut) != 1 || info.LeftOut[0].Index.Name != "another" {
		t.Errorf("restored: %q, %v", got, info.LeftOut)
	}
	left := disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
	report, err := jay.Repair(ctx, "doomed", filepath.Join(t.TempDir(), "repaired"), &jay.Options{FS: left}, nil)
	if err != nil || report.Indexes != 1 || len(report.Lost) != 1 || report.Lost[0].ID != "another" {
		t.Errorf("repaired: %+v, %v", report, err)
	}
}

// Ensure that indexes which were being built, and those that were to replace another one, are ready in a restored database, and
// that declarations which this version cannot read are left out and named.
func TestRestore_UnfinishedIndexes(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(ctx, "a", []byte(`{"At":"2026-01-01T00:00:00Z","N":1}`), jay.InCollection("A")); err != nil {
		t.Fatal(err)
	}
	if err := db.EnsureIndex(ctx, "A", jay.Index{Name: "At", Fields: []string{"At"}}); err != nil {
		t.Fatal(err)
	}
	declareOnly(t, db, "A", jay.Index{Name: "At", Fields: []string{"At as date"}}, jay.Index{Name: "N", Fields: []string{"N"}})
	record := parts.Of(db).Indexes.Load().Record
	record.Indexes = append(slices.Clone(record.Indexes),
		catalog.RecordEntry{Number: 90, Info: jay.IndexInfo{Index: jay.Index{Name: "later", Fields: []string{"N as sound"}}, Collection: "A", State: jay.IndexReady}},
		catalog.RecordEntry{Number: 91, Info: jay.IndexInfo{Index: jay.Index{Name: "odd", Fields: []string{"N"}}, Collection: "A", State: "frozen"}},
		catalog.RecordEntry{Number: 92, Info: jay.IndexInfo{Index: jay.Index{Name: "auto", Fields: []string{"N", "At"}}, Collection: "A", State: jay.IndexBuilding, Automatic: true}})
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		tx.Set(format.AppendKey(nil, format.SpaceMeta, format.IndexesName), text, nil)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_, stream := backUpOf(t, db, jay.BackupOnce())
	restored, info := restoreVerified(t, jay.RestoreOptions{}, stream)
	if got := namesOf(t, restored); !slices.Equal(got, []string{"At ready", "auto ready", "N ready"}) || info.Indexes != 3 {
		t.Errorf("%q, %+v", got, info)
	}
	if at := parts.Of(restored).Indexes.Load().Find("A", "At"); !slices.Equal(at.Info.Fields, []string{"At as date"}) {
		t.Errorf("the replacement: %+v", at.Info)
	}
	if len(info.LeftOut) != 2 || info.LeftOut[0].Index.Name != "later" || info.LeftOut[1].Index.Name != "odd" || !strings.Contains(info.LeftOut[1].Reason, `"frozen"`) {
		t.Errorf("left out: %v", info.LeftOut)
	}
}

// Ensure that the backup of a database with a document that cannot be decoded is restored if damage is accepted, also
// beside an index and as the base of an incremental one.
func TestRestore_AcceptsDamagedDocuments(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	put := func(id string) {
		if _, err := db.Put(ctx, id, []byte(`{"N":1}`), jay.InCollection("A")); err != nil {
			t.Fatal(err)
		}
	}
	damage := func(id string) {
		if err := parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
			tx.Set(format.NewDocumentKey(id), []byte{0xff}, nil)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	put("b")
	put("c")
	if err := db.EnsureIndex(ctx, "A", jay.Index{Fields: []string{"N"}}); err != nil {
		t.Fatal(err)
	}
	damage("b")
	base, full := backUpOf(t, db)
	put("d")
	damage("d")
	_, since := backUpOf(t, db, jay.BackupSince(base.ID))
	for _, streams := range [][][]byte{{full}, {full, since}} {
		var found []string
		restored, info := restoreVerified(t, jay.RestoreOptions{Damage: func(d jay.Damage) { found = append(found, d.Kind) }}, streams...)
		if d, err := restored.Get(ctx, "a"); err != nil || string(d.Body()) != `{"N":1}` {
			t.Errorf("%v, %v", d, err)
		}
		if !slices.Contains(found, "document-record") || len(info.LeftOut) != 1 {
			t.Errorf("damage %q, left out %v", found, info.LeftOut)
		}
	}
}
