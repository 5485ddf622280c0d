package look

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/storage"
)

// openSnapshot opens a snapshot for the client.
func (c *client) openSnapshot() error {
	if len(c.snapshots) >= maxSnapshots {
		return c.fail(fmt.Errorf("%w: %d snapshots are open, which is the most", storage.ErrUnavailable, maxSnapshots))
	}
	snapshot, err := c.of.source.Snapshot()
	if err != nil {
		return c.fail(err)
	}
	c.last++
	number, h := c.last, &held{Snapshot: snapshot}
	h.expiry = time.AfterFunc(c.of.age, func() { c.expire(h) })
	c.snapshots[number] = h
	return c.wire.write(0, binary.AppendUvarint(nil, number))
}

// expire closes a snapshot that is too old. Its number stays taken, so that the client hears why.
func (c *client) expire(h *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.Snapshot != nil {
		_ = h.Snapshot.Close() // of a reader: nothing is lost
		h.Snapshot = nil
	}
}

// closeSnapshot closes a snapshot. Its caller holds the mutex.
func (c *client) closeSnapshot(number uint64) error {
	h := c.snapshots[number]
	if h == nil {
		return nil
	}
	delete(c.snapshots, number)
	h.expiry.Stop()
	if h.Snapshot == nil {
		return nil
	}
	snapshot := h.Snapshot
	h.Snapshot = nil
	return snapshot.Close()
}

// with calls fn with the snapshot of a number, or with one of now for 0.
func (c *client) with(number uint64, fn func(storage.Snapshot) error) error {
	if number == 0 {
		snapshot, err := c.of.source.Snapshot()
		if err != nil {
			return c.fail(err)
		}
		return errors.Join(fn(snapshot), snapshot.Close())
	}
	h := c.snapshots[number]
	switch {
	case h == nil:
		return c.fail(fmt.Errorf("%w: there is no snapshot %d", errFrame, number))
	case h.Snapshot == nil:
		return c.fail(storage.ErrSnapshotExpired)
	}
	return fn(h.Snapshot)
}

// get answers with the value of a key.
func (c *client) get(number uint64, key []byte, request *content) error {
	if request.bad {
		return c.fail(errFrame)
	}
	return c.with(number, func(s storage.Snapshot) error {
		value, closer, err := s.Get(key)
		if err != nil {
			return c.fail(err)
		}
		if err := c.take(value); err != nil {
			return errors.Join(c.fail(err), closer.Close())
		}
		return errors.Join(c.wire.write(0, value), closer.Close())
	})
}

// getMany answers with the values of the first of many keys, as many as a page has.
func (c *client) getMany(number uint64, request *content) error {
	var keys [][]byte
	for len(request.rest) > 0 && len(keys) <= pageKeys {
		keys = append(keys, request.text())
	}
	if request.bad || len(keys) == 0 || len(keys) > pageKeys {
		return c.fail(errFrame)
	}
	return c.with(number, func(s storage.Snapshot) error {
		page := c.page[:0]
		for n, key := range keys {
			value, closer, err := s.Get(key)
			switch {
			case err == storage.ErrNotFound:
				page = append(page, 0)
				continue
			case err != nil:
				return c.fail(err)
			case n > 0 && len(page)+len(value) > pageBytes:
				c.page = page
				return errors.Join(c.wire.write(0, page), closer.Close())
			case len(value) > pageBytes: // not copied: it may be large
				if err := c.take(value); err != nil {
					return errors.Join(c.fail(err), closer.Close())
				}
				page = binary.AppendUvarint(append(page, 1), uint64(len(value)))
				return errors.Join(c.wire.write(0, page, value), closer.Close())
			}
			page = appendText(append(page, 1), value)
			if err := closer.Close(); err != nil {
				return c.fail(err)
			}
		}
		c.page = page
		return c.wire.write(0, page)
	})
}

// pageRequest asks for keys of a range, from one of its ends.
type pageRequest struct {
	snapshot uint64
	flags    byte
	keys     uint64
	lo, hi   []byte
}

func (r pageRequest) append(to []byte) []byte {
	to = binary.AppendUvarint(to, r.snapshot)
	to = binary.AppendUvarint(append(to, r.flags), r.keys)
	return appendText(appendText(to, r.lo), r.hi)
}

func readPageRequest(from *content) pageRequest {
	r := pageRequest{snapshot: from.number(), flags: from.flag(), keys: from.number(), lo: from.text(), hi: from.text()}
	if r.flags&unbounded != 0 {
		r.hi = nil
	}
	return r
}

// sendPage answers with the first keys of a range, or with the last ones, descending. Before them is a byte: 1 if there are more.
func (c *client) sendPage(r pageRequest, request *content) error {
	if request.bad {
		return c.fail(errFrame)
	}
	return c.with(r.snapshot, func(s storage.Snapshot) error {
		it, err := s.Iterate(r.lo, r.hi)
		if err != nil {
			return c.fail(err)
		}
		large, err := c.readPage(it, r)
		if err != nil {
			err = c.fail(err)
		} else {
			err = c.wire.write(0, c.page, large)
		}
		if it.Error() != nil {
			_ = it.Close() // it returns the same error, which the client has got or will get
			return err
		}
		return errors.Join(err, it.Close())
	})
}

// readPage leaves the first keys of an iterator that stands before them in c.page. A value that is too large for a page is not copied: it comes
// after c.page, and is valid until the iterator moves. A page ends before what cannot be read, and the next one is the error: so the client has
// all that can be.
func (c *client) readPage(it storage.Iterator, r pageRequest) (large []byte, err error) {
	move, next := it.First, it.Next
	if r.flags&backward != 0 {
		move, next = it.Last, it.Prev
	}
	page, most := append(c.page[:0], 0), min(max(r.keys, 1), pageKeys)
	defer func() { c.page = page }()
	n := uint64(0)
	for ; move(); n++ {
		key, value := it.Key(), it.Value()
		if n == most || n > 0 && len(page)+len(key)+len(value) > pageBytes {
			page[0] = 1
			break
		}
		page = appendText(page, key)
		page = binary.AppendUvarint(page, uint64(len(value)))
		if n == 0 && len(value) > pageBytes {
			page[0] = 1
			return value, c.take(value)
		}
		page, move = append(page, value...), next
	}
	err = it.Error()
	if err != nil && n > 0 {
		page[0], err = 1, nil
	}
	return nil, err
}

// statsReply is the answer to askStats.
type statsReply struct {
	Stats  storage.Stats
	Format storage.StoreFormat
	Limits storage.Limits
	Free   *uint64 // bytes on the disk, if the engine knows
	Spaces bool    // the engine knows how much space keys take
	Files  bool    // the engine can check its files
}

func statsOf(e storage.Engine) statsReply {
	r := statsReply{Stats: e.Stats(), Format: e.Format(), Limits: e.Limits()}
	if spacer, is := e.(storage.FreeSpacer); is {
		if free, err := spacer.FreeBytes(); err == nil {
			r.Free = &free
		}
	}
	_, r.Spaces = e.(storage.SpaceMeasurer)
	_, r.Files = e.(storage.FileChecker)
	return r
}

// space answers with the space of a range on disk.
func (c *client) space(request *content) error {
	flags, lo, hi := request.flag(), request.text(), request.text()
	if flags&unbounded != 0 {
		hi = nil
	}
	measurer, is := c.of.source.Engine.(storage.SpaceMeasurer)
	if request.bad || !is {
		return c.fail(errFrame)
	}
	n, err := measurer.DiskBytes(lo, hi)
	if err != nil {
		return c.fail(err)
	}
	return c.wire.write(0, binary.AppendUvarint(nil, n))
}
