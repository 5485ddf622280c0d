package lsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// controlName is the file that says what must be in the directory: which
// manifest, which logs, and how much of them is known to be on disk. Without it,
// a lost log or an older copy of a file looks like a store that never had more.
// Part of the on-disk format. Must not change.
const controlName = "JAY.control"

// The control file has three slots. A record is written, and overwritten, in a slot
// that is neither the last one synced nor one being synced. So whatever a power
// loss does to a page that is being written, a whole record is left. The whole
// record with the highest sequence counts.
//
// Part of the on-disk format. Must not change.
const (
	controlSlots    = 3
	controlSlotSize = 4096
	controlVersion  = 1
)

// syncedPrefix is the part of a file that is known to be on disk.
type syncedPrefix struct {
	length int64
	crc    uint32 // CRC-32C of the prefix; of manifests only
}

// controlRecord is what a slot holds. All numbers are big-endian:
//
//	offset size
//	     0    4  CRC-32C of the rest
//	     4    2  size of the record, with these 6 bytes
//	     6    1  version of the record: 1
//	     7    1  flags: 1 the creation was finished, 2 the store was closed
//	     8    8  sequence
//	    16    8  number of the manifest that marker.manifest names; 0 if none is known to
//	    24    2  how many manifests follow
//	    26    2  how many logs follow those
//	    28   20  manifest: number (8), length (8), CRC-32C of so many bytes (4)
//	         16  log: number (8), length (8)
//
// Part of the on-disk format. Must not change.
type controlRecord struct {
	created   bool // FinishCreation was called
	closed    bool // the store was closed: the record is exact. Otherwise a file may have more.
	sequence  uint64
	current   uint64
	manifests map[uint64]syncedPrefix
	logs      map[uint64]syncedPrefix
}

const (
	controlHeader   = 28
	controlManifest = 20
	controlLog      = 16

	// maxControlLogs is how many logs a record names, the newest ones. Pebble
	// keeps about ten.
	maxControlLogs = 200
)

// Flags of a record. Part of the on-disk format. Must not change.
const (
	flagCreated = 1
	flagClosed  = 2
)

func newControlRecord() controlRecord {
	return controlRecord{manifests: make(map[uint64]syncedPrefix), logs: make(map[uint64]syncedPrefix)}
}

// encode appends the record to b.
func (r *controlRecord) encode(b []byte) []byte {
	logs := slices.Sorted(maps.Keys(r.logs))
	if n := len(logs) - maxControlLogs; n > 0 {
		logs = logs[n:]
	}
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(controlHeader+controlManifest*len(r.manifests)+controlLog*len(logs)))
	flags := byte(0)
	if r.created {
		flags |= flagCreated
	}
	if r.closed {
		flags |= flagClosed
	}
	b = append(b, controlVersion, flags)
	b = binary.BigEndian.AppendUint64(b, r.sequence)
	b = binary.BigEndian.AppendUint64(b, r.current)
	b = binary.BigEndian.AppendUint16(b, uint16(len(r.manifests)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(logs)))
	for _, number := range slices.Sorted(maps.Keys(r.manifests)) {
		b = binary.BigEndian.AppendUint64(b, number)
		b = binary.BigEndian.AppendUint64(b, uint64(r.manifests[number].length))
		b = binary.BigEndian.AppendUint32(b, r.manifests[number].crc)
	}
	for _, number := range logs {
		b = binary.BigEndian.AppendUint64(b, number)
		b = binary.BigEndian.AppendUint64(b, uint64(r.logs[number].length))
	}
	binary.BigEndian.PutUint32(b[at:], crc32.Checksum(b[at+4:], castagnoli))
	return b
}

// decodeControl decodes a slot. It returns false if the slot has no whole record.
func decodeControl(b []byte) (controlRecord, bool) {
	r := newControlRecord()
	if len(b) < controlHeader {
		return r, false
	}
	size := int(binary.BigEndian.Uint16(b[4:]))
	if size < controlHeader || size > len(b) || binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:size], castagnoli) {
		return r, false
	}
	r.created, r.closed = b[7]&flagCreated != 0, b[7]&flagClosed != 0
	r.sequence = binary.BigEndian.Uint64(b[8:])
	r.current = binary.BigEndian.Uint64(b[16:])
	manifests, logs := int(binary.BigEndian.Uint16(b[24:])), int(binary.BigEndian.Uint16(b[26:]))
	if b[6] != controlVersion || b[7] > flagCreated|flagClosed || size != controlHeader+controlManifest*manifests+controlLog*logs {
		return r, false
	}
	b = b[controlHeader:size]
	for range manifests {
		r.manifests[binary.BigEndian.Uint64(b)] = syncedPrefix{int64(binary.BigEndian.Uint64(b[8:])), binary.BigEndian.Uint32(b[16:])}
		b = b[controlManifest:]
	}
	for range logs {
		r.logs[binary.BigEndian.Uint64(b)] = syncedPrefix{length: int64(binary.BigEndian.Uint64(b[8:]))}
		b = b[controlLog:]
	}
	return r, true
}

// errNoControl is the error of a control file without a whole record.
var errNoControl = errors.New("no slot holds a whole record")

// readControl returns the record that counts, and its slot.
func readControl(fs vfs.FS, dir string) (r controlRecord, slot int, err error) {
	f, err := openRegular(fs, fs.PathJoin(dir, controlName))
	if errors.Is(err, errNotRegular) {
		return r, 0, errNoControl
	}
	if err != nil {
		return r, 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, controlSlots*controlSlotSize))
	if err != nil {
		return r, 0, err
	}
	found := false
	for i := range controlSlots {
		if len(text) <= i*controlSlotSize {
			break
		}
		one, whole := decodeControl(text[i*controlSlotSize : min(len(text), (i+1)*controlSlotSize)])
		if whole && (!found || one.sequence > r.sequence) {
			r, slot, found = one, i, true
		}
	}
	if !found {
		return r, 0, errNoControl
	}
	return r, slot, nil
}

// syncDelay is how long a record may stay in the page cache. A killed process
// leaves it there. A power loss may lose it, and then damage to what was written in
// the last syncDelay goes unnoticed; nothing else is lost.
const syncDelay = time.Second

// controlFile keeps the control file up to date while the store is open. A record
// never claims more than what is synced. controlFS calls it.
//
// Only the call after the sync of a new manifest, before the marker names that,
// waits for the disk. All others write to the page cache, which is synced within
// syncDelay.
type controlFile struct {
	fail func(error)

	mu      sync.Mutex
	file    vfs.File      // nil before start and after release. Guarded by mu.
	ended   bool          // release was called. Guarded by mu.
	record  controlRecord // Guarded by mu.
	slot    int           // that write writes. Guarded by mu.
	buffer  []byte        // the record as it was written. Guarded by mu.
	stale   bool          // the record has changed since. Guarded by mu.
	pending bool          // a sync is going to follow. Guarded by mu.
	written uint64        // the last sequence that was written. Guarded by mu.
	timer   *time.Timer   // Guarded by mu.
	syncing bool          // Guarded by mu.

	syncMu sync.Mutex // held while the file is synced; before mu
	synced uint64     // the last sequence that is on disk. Guarded by syncMu.
}

// start opens the control file, or makes a new one, and makes r durable. slot is
// where the record was found that r is based on.
func (c *controlFile) start(fs vfs.FS, dir string, r controlRecord, slot int, isNew bool) error {
	f, err := fs.OpenReadWrite(fs.PathJoin(dir, controlName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if !isNew {
		// After a kill, the record may be in the page cache only. It must be on
		// disk before another slot is written.
		if err := f.SyncData(); err != nil {
			return errors.Join(err, f.Close())
		}
	} else {
		if _, err := f.WriteAt(make([]byte, controlSlots*controlSlotSize), 0); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	c.mu.Lock()
	c.file, c.record, c.slot = f, r, (slot+1)%controlSlots
	err = c.write()
	c.mu.Unlock()
	if err == nil {
		err = c.sync()
	}
	if err == nil && isNew {
		err = errors.Join(f.Sync(), syncDir(fs, dir))
	}
	if err != nil {
		c.release()
	}
	return err
}

// write writes the record to the current slot, without waiting for the disk.
// c.mu is held.
func (c *controlFile) write() error {
	c.record.sequence++
	c.buffer, c.stale = c.record.encode(c.buffer[:0]), false
	return c.writeBuffer()
}

// writeBuffer writes the encoded record. c.mu is held.
func (c *controlFile) writeBuffer() error {
	if _, err := c.file.WriteAt(c.buffer, int64(c.slot)*controlSlotSize); err != nil {
		return fmt.Errorf("write %s: %w", controlName, err)
	}
	c.written = c.record.sequence
	return nil
}

// sync makes what was written durable.
func (c *controlFile) sync() error {
	c.syncMu.Lock()
	defer c.syncMu.Unlock()
	c.mu.Lock()
	file, written := c.file, c.written
	c.pending = false
	if file == nil || written == c.synced {
		c.mu.Unlock()
		return nil
	}
	c.slot = (c.slot + 1) % controlSlots // no write into the slot that is being synced
	c.syncing = true
	c.mu.Unlock()

	err := file.SyncData()
	c.mu.Lock()
	c.syncing = false
	if c.file == nil { // released meanwhile
		_ = file.Close()
	}
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("sync %s: %w", controlName, err)
	}
	c.synced = written
	return nil
}

// syncSoon makes a sync happen within syncDelay. c.mu is held.
func (c *controlFile) syncSoon() {
	if !c.pending {
		c.pending = true
		c.syncIn(syncDelay)
	}
}

// syncIn syncs after a delay. c.mu is held.
func (c *controlFile) syncIn(delay time.Duration) {
	if c.timer != nil {
		c.timer.Reset(delay)
		return
	}
	c.timer = time.AfterFunc(delay, func() {
		if err := c.sync(); err != nil {
			c.fail(err)
		}
	})
}

// syncNow syncs what was written without waiting for it.
func (c *controlFile) syncNow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil {
		c.syncIn(0)
	}
}

// errControlClosed is the error of a manifest that is made after release.
var errControlClosed = errors.New("the control file is closed")

// update changes the record and writes it. With wait, it is on disk when update
// returns. Before start it does nothing.
func (c *controlFile) update(wait bool, change func(r *controlRecord)) error {
	c.mu.Lock()
	if c.file == nil {
		defer c.mu.Unlock()
		if c.ended {
			return errControlClosed
		}
		return nil
	}
	change(&c.record)
	err := c.write()
	if err == nil && !wait {
		c.syncSoon()
	}
	c.mu.Unlock()
	if err == nil && wait {
		err = c.sync()
	}
	return err
}

// logSynced notes how much of a log is on disk. It is called after every sync of
// the log: for the newest log, which is last in the record, it encodes only the
// bytes that change.
func (c *controlFile) logSynced(number uint64, length int64) error {
	c.mu.Lock()
	n := len(c.buffer)
	if c.file == nil || c.stale || n < controlHeader+controlLog || binary.BigEndian.Uint64(c.buffer[n-controlLog:]) != number {
		c.mu.Unlock()
		return c.update(false, func(r *controlRecord) { r.logs[number] = syncedPrefix{length: length} })
	}
	defer c.mu.Unlock()
	c.record.logs[number] = syncedPrefix{length: length}
	c.record.sequence++
	binary.BigEndian.PutUint64(c.buffer[8:], c.record.sequence)
	binary.BigEndian.PutUint64(c.buffer[n-8:], uint64(length))
	binary.BigEndian.PutUint32(c.buffer, crc32.Checksum(c.buffer[4:], castagnoli))
	if err := c.writeBuffer(); err != nil {
		return err
	}
	c.syncSoon()
	return nil
}

// created reports whether the record says that the creation was finished.
func (c *controlFile) created() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record.created
}

// prefix returns how much of a log or a manifest is known to be on disk.
func (c *controlFile) prefix(number uint64, isLog bool) (syncedPrefix, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if isLog {
		p, found := c.record.logs[number]
		return p, found
	}
	p, found := c.record.manifests[number]
	return p, found
}

// close writes that the store was closed and consists of what r says, to every
// slot, so that later damage to one of them does no harm.
func (c *controlFile) close(r controlRecord) error {
	err := c.update(true, func(old *controlRecord) {
		r.sequence = old.sequence
		*old = r
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	for range controlSlots - 1 {
		if err = c.write(); err != nil {
			break
		}
		c.slot = (c.slot + 1) % controlSlots
	}
	c.mu.Unlock()
	return errors.Join(err, c.sync())
}

// release ends the use of the file. It does not wait for a sync under way.
func (c *controlFile) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.file != nil && !c.syncing {
		_ = c.file.Close() // it was synced, or need not be
	}
	c.file, c.ended = nil, true
}

// sortedKeys returns the keys of m in ascending order.
func sortedKeys[K interface{ ~uint64 | ~string }, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
