package lsm_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Ensure that DiskBytes and LogBytes count the log that is being written, also one whose
// file is used again.
func TestStats_LogBeingWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	e, err := lsm.Open(dir, lsm.Options{MemTableBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	value := make([]byte, 1000)
	for round := range 12 {
		last := round == 11
		if last { // no table is written meanwhile
			if err := e.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 50 {
			_, _ = rand.Read(value)
			err := e.Update(t.Context(), i == 49, func(tx storage.Tx) error {
				tx.Set(fmt.Appendf(nil, "k%d/%d", round, i), value, nil)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		s := e.Stats()
		var all, logs int64
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if err != nil {
				continue // deleted meanwhile
			}
			all += info.Size()
			if strings.HasSuffix(entry.Name(), ".log") {
				logs += info.Size()
			}
		}
		// A log is filled with whole blocks, and is rotated now and then between the two.
		const slack = 64 << 10
		if d := int64(s.LogBytes) - logs; d > slack || d < -slack {
			t.Errorf("round %d: LogBytes is %d, and the files have %d", round, s.LogBytes, logs)
		}
		if last && int64(s.DiskBytes) < all-slack {
			t.Errorf("round %d: DiskBytes is %d, and the files have %d", round, s.DiskBytes, all)
		}
	}
}
