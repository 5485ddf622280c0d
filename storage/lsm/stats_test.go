package lsm_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

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
			if err := e.Compact(t.Context(), nil, nil); err != nil {
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
		// The engine deletes logs and tables that it has no use for a moment later, so that the files and
		// the figures may differ for a while.
		for begun := time.Now(); ; runtime.Gosched() {
			wrong := statsDiffer(t, e, dir, last)
			if wrong == "" {
				break
			}
			if time.Since(begun) > time.Minute {
				t.Fatalf("round %d: %s", round, wrong)
			}
		}
	}
}

// statsDiffer compares LogBytes, and DiskBytes if disk is set, with the files, and says how they differ.
func statsDiffer(t *testing.T, e *lsm.Engine, dir string, disk bool) string {
	t.Helper()
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
	const slack = 64 << 10 // a log is filled with whole blocks
	if d := int64(s.LogBytes) - logs; d > slack || d < -slack {
		return fmt.Sprintf("LogBytes is %d, and the files have %d", s.LogBytes, logs)
	}
	if disk && int64(s.DiskBytes) < all-slack {
		return fmt.Sprintf("DiskBytes is %d, and the files have %d", s.DiskBytes, all)
	}
	return ""
}
