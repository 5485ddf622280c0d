package lsm

// These tests need the chunks of a log and the slots of the control file.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jaydb/jay/internal/sample"
)

// testLog is a log as Pebble writes it, and where each record ended.
type testLog struct {
	fs     *vfs.MemFS
	ends   []int64
	synced int64 // everything before it is on disk
}

const testLogNumber = 7

// writeLog writes records of these sizes, and syncs after those that are negative. The
// log is left as a crash leaves it, without a trailer.
func writeLog(t *testing.T, sizes []int) *testLog {
	t.Helper()
	l := &testLog{fs: vfs.NewMem()}
	f, err := l.fs.Create("log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	w := record.NewLogWriter(f, testLogNumber, record.LogWriterConfig{
		WALFsyncLatency:     prometheus.NewHistogram(prometheus.HistogramOpts{}),
		WriteWALSyncOffsets: func() bool { return true },
	})
	for i, size := range sizes {
		text := []byte(strings.Repeat(string(rune('a'+i%26)), max(size, -size)))
		if size >= 0 {
			end, err := w.WriteRecord(text)
			if err != nil {
				t.Fatal(err)
			}
			l.ends = append(l.ends, end)
			continue
		}
		var done sync.WaitGroup
		var syncErr error
		done.Add(1)
		end, err := w.SyncRecord(text, &done, &syncErr)
		if err != nil {
			t.Fatal(err)
		}
		done.Wait()
		if syncErr != nil {
			t.Fatal(syncErr)
		}
		l.ends, l.synced = append(l.ends, end), end
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return l
}

// open returns the log without its trailer, and with this byte flipped, if it is not negative.
func (l *testLog) open(t *testing.T, flip int64) *recordFile {
	t.Helper()
	c, err := openRecordFile(l.fs, "log", testLogNumber)
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, l.ends[len(l.ends)-1])
	if _, err := c.f.ReadAt(text, 0); err != nil {
		t.Fatal(err)
	}
	if flip >= 0 {
		text[flip] ^= 4
	}
	return &recordFile{f: vfs.NewMemFile(text), size: int64(len(text)), log: true, number: testLogNumber, start: -1}
}

// Ensure that a log is read as it was written, whatever the sizes of records, and that
// damage is found in the record in which it is.
func TestRecordFile_Scan(t *testing.T) {
	today := sample.Of(t, 5)
	for round := range 30 {
		if !today.Has(round) {
			continue
		}
		random := rand.New(rand.NewPCG(1, uint64(round)))
		var sizes []int
		for range 1 + random.IntN(12) {
			size := random.IntN(300)
			if random.IntN(3) == 0 {
				size = blockSize - logHeader - 40 + random.IntN(80)
			}
			if random.IntN(6) == 0 {
				size = random.IntN(4 * blockSize)
			}
			sizes = append(sizes, -size-1)
		}
		l := writeLog(t, sizes)
		var ends []int64
		c := l.open(t, -1)
		stop, what, whole, err := c.scan(func(_ int64, text []byte) error {
			if len(text) != -sizes[len(ends)] {
				t.Errorf("record %d of %v has %d bytes", len(ends), sizes, len(text))
			}
			ends = append(ends, 0)
			return nil
		})
		last := l.ends[len(l.ends)-1]
		if err != nil || what != foundEnd || stop != last && stop-last > logHeader || whole > stop || len(ends) != len(sizes) {
			t.Errorf("%v: scan stopped at %d, %v, whole %d, %v; %d records", sizes, stop, what, whole, err, len(ends))
		}
		for range 50 {
			flip := random.Int64N(last)
			stop, what, _, err := l.open(t, flip).scan(nil)
			if err != nil {
				t.Fatal(err)
			}
			// The padding at the end of a block is not looked at, or looks like a damaged chunk.
			if (what != foundDamage || stop > flip) && blockSize-flip%blockSize > logHeader {
				t.Errorf("%v: byte %d is flipped, and scan stopped at %d, %v", sizes, flip, stop, what)
			}
		}
	}
}

// Ensure that damage is proven by six syncs behind it, though Pebble's sync offsets
// lag far behind where records fill blocks. Two more than the proof needs: the
// flusher stores an offset only after it has woken who waited for the sync, so that
// a value may come one sync late, and a group that ends where a block does adds
// nothing to it.
func TestRecordFile_ProvenSynced(t *testing.T) {
	var sizes []int
	for range 40 {
		sizes = append(sizes, 9000, 9000, -20_000) // a group of 38 KB and a sync
	}
	l := writeLog(t, sizes)
	for i := range len(sizes) - 3*6 {
		c := l.open(t, l.ends[i]+100)
		stop, what, _, err := c.scan(nil)
		if err != nil || what != foundDamage {
			t.Fatalf("scan: %v, %v", what, err)
		}
		if proven, err := provenSynced(c, stop); !proven || err != nil {
			t.Errorf("record %d of %d is damaged, and six syncs behind it prove nothing (%v)", i+1, len(sizes), err)
		}
	}
}

// Ensure that what was not synced may be there in any part, as a disk leaves it
// that writes in any order, and is never taken for damage.
func TestRecordFile_UnsyncedIsNoDamage(t *testing.T) {
	today := sample.Of(t, 5)
	for round := range 40 {
		if !today.Has(round) {
			continue
		}
		random := rand.New(rand.NewPCG(3, uint64(round)))
		var sizes []int
		for range 1 + random.IntN(10) {
			sizes = append(sizes, -1-random.IntN(3*blockSize))
		}
		for range 2 + random.IntN(30) {
			sizes = append(sizes, random.IntN(2*blockSize))
		}
		l := writeLog(t, sizes)
		last := l.ends[len(l.ends)-1]
		for range 20 {
			flip := l.synced + random.Int64N(last-l.synced)
			c := l.open(t, flip)
			stop, what, _, err := c.scan(nil)
			if err != nil {
				t.Fatal(err)
			}
			if what != foundDamage {
				continue
			}
			if proven, err := provenSynced(c, stop); proven || err != nil {
				t.Errorf("%v: byte %d of %d, of which %d were synced, is taken for damage (%v)", sizes, flip, last, l.synced, err)
			}
		}
	}
}

// Ensure that a record of the control file comes back as it was written, and
// that no flipped bit of it is taken for one.
func TestControlFile_Record(t *testing.T) {
	r := newControlRecord()
	r.created, r.closed, r.sequence, r.current = true, true, 9, 12
	r.manifests[12] = syncedPrefix{4711, 0xdeadbeef}
	for i := range maxControlLogs + 5 {
		r.logs[uint64(20+i)] = syncedPrefix{length: int64(i)}
	}
	text := r.encode(nil)
	if len(text) > controlSlotSize {
		t.Fatalf("a record of %d bytes does not fit into a slot", len(text))
	}
	got, whole := decodeControl(text)
	for i := range 5 { // the oldest are left out
		delete(r.logs, uint64(20+i))
	}
	if !whole || fmt.Sprint(got) != fmt.Sprint(r) {
		t.Errorf("got %v, want %v", got, r)
	}
	for at := range text {
		damaged := slices.Clone(text)
		damaged[at] ^= 1 << (at % 8)
		if _, whole := decodeControl(damaged); whole {
			t.Errorf("byte %d is flipped, and the record counts", at)
		}
	}
}

// Ensure that the slot that was synced last is never written before another was synced,
// so that a power loss leaves one that is whole.
func TestControlFile_Slots(t *testing.T) {
	mem := vfs.NewCrashableMem()
	if err := mem.MkdirAll("db", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syncDir(mem, "/"); err != nil {
		t.Fatal(err)
	}
	c := &controlFile{fail: func(err error) { t.Error(err) }}
	if err := c.start(mem, "db", newControlRecord(), 0, true); err != nil {
		t.Fatal(err)
	}
	defer c.release()
	random := rand.New(rand.NewPCG(5, 6))
	durable := uint64(0)
	for i := range 300 {
		wait := random.IntN(5) == 0
		if err := c.update(wait, func(r *controlRecord) { r.logs[1] = syncedPrefix{length: int64(i)} }); err != nil {
			t.Fatal(err)
		}
		if wait {
			durable = c.written
		}
		crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: random})
		// A page that is being written may be torn, but for what was synced.
		f, err := crashed.OpenReadWrite("db/"+controlName, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("torn"), int64(c.slot)*controlSlotSize); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		r, _, err := readControl(crashed, "db")
		if err != nil || r.sequence < durable {
			t.Fatalf("after %d writes: sequence %d, %v; %d was synced", i, r.sequence, err, durable)
		}
	}
	if c.timer == nil || syncDelay > time.Second {
		t.Error("what is not synced at once is not synced within a second")
	}
}
