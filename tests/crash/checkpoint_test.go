package crash_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a loss of power at any sync while checkpoints are made leaves whole ones
// or none under their names, and the database as it was; and that what is left of one
// under another name does no harm.
func TestCheckpoint_Crash_AtAnySync(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	defer closeDB(t, db)
	var mu sync.Mutex // guards what follows
	acked := 0
	var crashed []*storagetest.Disk
	var atLeast []int
	random := rand.New(rand.NewPCG(1, 50))
	disk.OnEverySync(func() {
		mu.Lock()
		defer mu.Unlock()
		crashed = append(crashed, disk.Crash(50, random))
		atLeast = append(atLeast, acked)
	})
	for round := range 3 {
		for i := range 5 {
			put(t, db, fmt.Sprint("docs/", i+5*round), `{}`)
			mu.Lock()
			acked++
			mu.Unlock()
		}
		if err := db.Checkpoint(ctx, fmt.Sprint("copy", round)); err != nil {
			t.Fatal(err)
		}
	}
	disk.OnEverySync(nil)
	whole := 0
	today := sample.Of(t, 5)
	for i, d := range crashed {
		if !today.Has(i) {
			continue
		}
		names, err := d.List("/")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".unfinished") {
				continue
			}
			got := jay.Options{FS: d, MustExist: true}
			one, err := jay.Open(name, &got)
			if err != nil {
				t.Fatalf("crash %d: %s: %v", i, name, err)
			}
			n, want := len(documentsOf(t, one)), atLeast[i]
			if _, err := fmt.Sscanf(name, "copy%d", &want); err == nil {
				want = 5 * (want + 1)
				whole++
			}
			if n < want {
				t.Errorf("crash %d: %s has %d documents, want %d", i, name, n, want)
			}
			closeDB(t, one)
		}
	}
	if len(crashed) < 20 || whole == 0 {
		t.Errorf("%d crashes, %d whole checkpoints", len(crashed), whole)
	}
}
