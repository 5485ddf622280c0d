package jay_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

// peak is the most memory that was in use at any of its samples.
func peak(fn func()) (bytes uint64) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			bytes = max(bytes, m.HeapInuse)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	fn()
	close(done)
	<-ended
	return bytes
}

// TestBackup_Speed prints how fast a backup of JAY_BACKUP_DOCUMENTS documents, an
// incremental one with a hundredth of them, their restore and a checkpoint are. The
// table is that of docs/backup.md.
func TestBackup_Speed(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("JAY_BACKUP_DOCUMENTS"))
	if err != nil {
		t.Skip("make backup")
	}
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "db"), nil)
	defer db.Close()
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Customer", "-Total"}}))
	document := func(i, version int) []byte {
		return fmt.Appendf(nil, `{"Customer":"customers/%d-A","Total":%d.%02d,"Version":%d,"Ordered":"2026-%02d-%02dT10:00:00.0000000Z","ShipTo":{"City":"City %d","Street":"%d Main Street","Zip":"%05d"},"Lines":[{"Product":"products/%d-A","Price":%d.5,"Quantity":%d},{"Product":"products/%d-A","Price":%d.25,"Quantity":%d}],"Note":"%x"}`,
			i*7919%5000, i%1000, i%100, version, 1+i%12, 1+i%28, i*31%900, i%500, i*13%99999, i%77, i%99, i%9, i*3%77, i%55, i%5, uint64(i)*0x9E3779B97F4A7C15)
	}
	bodies := int64(0)
	for from := 0; from < n; from += 1000 {
		var b jay.Batch
		for i := from; i < min(from+1000, n); i++ {
			body := document(i, 0)
			bodies += int64(len(body))
			b.Put(fmt.Sprintf("orders/%d-A", i), body, jay.InCollection("Orders"))
		}
		_, err := db.Apply(ctx, &b)
		must(t, err)
	}
	must(t, db.Compact(ctx))
	report := func(what string, begun time.Time, bytes int64, memory uint64) {
		took := time.Since(begun).Seconds()
		t.Logf("%-28s %6.2f s  %7.0f documents/s  %6.1f MB/s of bodies, %6.1f MB written or read, %4d MB of heap", what, took, float64(n)/took, float64(bodies)/1e6/took, float64(bytes)/1e6, memory>>20)
	}
	t.Logf("%d documents, %.1f MB of bodies", n, float64(bodies)/1e6)
	var info jay.BackupInfo
	var full, more bytes.Buffer
	begun := time.Now()
	memory := peak(func() { info, err = db.Backup(ctx, io.Discard, jay.BackupOnce()) })
	must(t, err)
	report("backup", begun, info.Bytes, memory)
	info, err = db.Backup(ctx, &full)
	must(t, err)
	for i := 0; i < n; i += 100 {
		put(t, db, fmt.Sprintf("orders/%d-A", i), string(document(i, 1)), jay.InCollection("Orders"))
	}
	begun = time.Now()
	info, err = db.Backup(ctx, &more, jay.BackupSince(info.ID))
	must(t, err)
	report("incremental, 1 %", begun, info.Bytes, 0)
	begun = time.Now()
	_, err = jay.VerifyBackup(ctx, nil, bytes.NewReader(full.Bytes()))
	must(t, err)
	report("verify", begun, int64(full.Len()), 0)
	begun = time.Now()
	memory = peak(func() {
		_, err = jay.Restore(ctx, filepath.Join(dir, "restored"), jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(full.Bytes()), bytes.NewReader(more.Bytes()))
	})
	must(t, err)
	report("restore of both, one index", begun, int64(full.Len()+more.Len()), memory)
	begun = time.Now()
	must(t, db.Checkpoint(ctx, filepath.Join(dir, "copy")))
	report("checkpoint", begun, 0, 0)
}
