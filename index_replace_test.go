package jay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a replacement that a loss of power cuts, at any sync, ends with the new
// index and no entry of the old one once it is asked for again, and that whatever
// is there after the crash is right.
func TestReplaceIndex_Crash_AtAnySync(t *testing.T) {
	defer jay.SetBuildChunks(7, 7)()
	text, instants := jay.Index{Name: "At", Fields: []string{"At"}}, jay.Index{Name: "At", Fields: []string{"At as date"}}
	found := map[string]int{}
	for at := 0; ; at++ {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		for i := range 30 {
			put(t, db, fmt.Sprintf("events/%02d", i), fmt.Sprintf(`{"At":%q}`, time.Date(2026, 1, 1, i, 0, 0, 0, time.FixedZone("", 3600)).Format(time.RFC3339)), jay.InCollection("Events"))
		}
		must(t, db.EnsureIndex(ctx, "Events", text))

		random := rand.New(rand.NewPCG(uint64(at), 1))
		cut := disk.CutPower(at, []int{0, 50, 100}[at%3], random)
		must(t, db.EnsureIndex(ctx, "Events", instants, jay.ReplaceIndex()))
		if err := db.EnsureIndex(ctx, "Events", text); !errors.Is(err, jay.ErrIndexExists) {
			t.Errorf("the old one, without ReplaceIndex: %v", err)
		}
		disk.OnSync(func() {})
		closeDB(t, db)
		if !cut.Happened() { // there are fewer syncs
			if at < 3 {
				t.Errorf("%d syncs: the test does not test it", at)
			}
			break
		}

		db = onDisk(t, cut.Disk(), jay.Options{})
		infos, err := db.Indexes(ctx, "Events")
		must(t, err)
		for _, info := range infos {
			found[fmt.Sprint(info.Fields, info.State)]++
		}
		q := db.Query("Events").Where(jay.Ge("At", time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)))
		if n, err := q.Count(ctx); n != 17 || err != nil {
			t.Errorf("sync %d: %d answers, %v, want 17", at, n, err)
		}
		jay.WaitIndexTasks(db)
		if err := jay.CheckIndexes(db); err != nil {
			t.Errorf("sync %d: %v", at, err)
		}
		must(t, db.EnsureIndex(ctx, "Events", instants, jay.ReplaceIndex()))
		infos, err = db.Indexes(ctx, "Events")
		if err != nil || len(infos) != 1 || infos[0].State != jay.IndexReady || infos[0].Fields[0] != "At as date" {
			t.Errorf("sync %d: %+v, %v", at, infos, err)
		}
		if err := jay.CheckIndexes(db); err != nil {
			t.Errorf("sync %d: %v", at, err)
		}
		if n, err := q.NoScan().Count(ctx); n != 17 || err != nil {
			t.Errorf("sync %d: %d answers, %v, want 17", at, n, err)
		}
		closeDB(t, db)
	}
	t.Logf("found after crashes: %v", found) // TestReplaceIndex_Crash_InTheMiddle has the states between two syncs
}

// Ensure that a tag that changes rebuilds its index under the same name, and that an
// index of times made as text by hand becomes one of instants.
func TestCollection_EnsureIndexes_ChangedTag(t *testing.T) {
	db := memory(t, nil)
	events := collectionOf[event](t, db)
	must(t, db.EnsureIndex(ctx, events.Name(), jay.Index{Fields: []string{"At"}})) // as it was declared before there were instants
	must(t, db.EnsureIndex(ctx, events.Name(), jay.Index{Name: "Seen", Fields: []string{"-Note"}, Unique: true}))
	putEvent(t, events, &event{At: time.Now(), Note: "a"})
	for range 2 {
		must(t, events.EnsureIndexes(ctx))
		infos, err := db.Indexes(ctx, events.Name())
		must(t, err)
		got := ""
		for _, info := range infos {
			got += fmt.Sprintf("%s %v %v; ", info.Name, info.Fields, info.State)
		}
		if want := "At [At as date] ready; Seen [Seen as date] ready; "; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := jay.CheckIndexes(db); err != nil {
			t.Error(err)
		}
	}
}
