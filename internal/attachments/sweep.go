package attachments

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Bounds of a batch. docs/limits.md has them. Variables for tests.
var (
	batchStreams = 64   // streams that a batch visits
	batchChunks  = 1024 // chunks that a batch removes
)

// Resume starts the worker if an earlier process has left streams to be removed. The
// caller must call Stop.
func (s *Store) Resume() error {
	for _, prefix := range [][]byte{format.UploadPrefix(), format.GarbagePrefix()} {
		it, err := s.env.Engine.Iterate(prefix, format.PrefixEnd(prefix))
		if err != nil {
			return err
		}
		found := it.First()
		if err := errs.First(it.Error(), it.Close()); err != nil {
			return err
		}
		if found {
			s.Wake()
			return nil
		}
	}
	return nil
}

// Wake makes the worker look for streams to be removed. After an error the worker tries
// again at the next Wake or Open.
//
// On a shared store it does nothing: the readers and the uploads of other processes are not
// known. What is to be removed stays marked.
func (s *Store) Wake() {
	if !s.env.Engine.Shared() {
		s.worker.Wake()
	}
}

// abandon makes the worker remove the chunks of an upload to which no transaction refers.
// If a transaction in doubt may refer to it, the record of the upload decides.
func (s *Store) abandon(stream uint64) {
	s.mu.Lock()
	s.abandoned[stream] = true
	s.mu.Unlock()
	s.Wake()
}

// Pin keeps the chunks of a stream from now on, provided that the record of its content
// still exists. Unpin must follow.
func (s *Store) Pin(stream uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins[stream]++
}

// Unpin ends a Pin.
func (s *Store) Unpin(stream uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[stream]--; s.pins[stream] > 0 {
		return
	}
	delete(s.pins, stream)
	if s.passed[stream] {
		delete(s.passed, stream)
		s.Wake()
	}
}

// Stop ends the worker and waits for it. None is started afterwards.
func (s *Store) Stop() { s.worker.Stop() }

// Wait waits until the worker has nothing left to do. For tests.
func (s *Store) Wait() { s.worker.Wait() }

// RemoveSome removes a batch of chunks, and reports whether there may be more. Under
// synced durability their removal is on disk when it returns.
func (s *Store) RemoveSome(ctx context.Context) (more bool, err error) {
	s.batch.Lock()
	defer s.batch.Unlock()
	claimed, err := s.claim(ctx)
	if err != nil {
		return false, err
	}
	if s.env.Synced {
		// The snapshot must show all commits, and a stream that it shows as marked must be
		// so for every later reader: see OpenContent.
		if err := s.env.Engine.Sync(ctx); err != nil {
			return false, err
		}
	}
	found, all, err := s.find()
	if err != nil || len(found) == 0 {
		return claimed, err
	}
	err = s.env.Engine.Update(ctx, s.env.Synced, func(tx storage.Tx) error { return removeChunks(tx, found) })
	return err == nil && (claimed || !all), err
}

// claim marks uploads without a writer for removal, and reports whether there may be more.
func (s *Store) claim(ctx context.Context) (more bool, err error) {
	streams, err := s.orphans()
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	for stream := range s.abandoned {
		if len(streams) >= batchStreams {
			more = true
			break
		}
		streams = append(streams, stream)
	}
	s.mu.Unlock()
	if len(streams) == 0 {
		return false, nil
	}
	more = more || len(streams) >= batchStreams
	err = s.env.Engine.Update(ctx, s.env.Synced, func(tx storage.Tx) error {
		for _, stream := range streams {
			if err := claimOne(tx, stream); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range streams {
		delete(s.abandoned, stream)
	}
	return more, nil
}

// claimOne stages the mark that an upload is to be removed. If the record of the upload is
// gone, a transaction that was in doubt refers to it, and nothing is staged.
func claimOne(tx storage.Tx, stream uint64) error {
	key := format.UploadKey(stream)
	record, closer, err := tx.Get(key)
	if err == storage.ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	tx.Set(format.GarbageKey(stream), record, nil)
	tx.Delete(key)
	return closer.Close()
}

// orphans returns uploads of earlier processes.
func (s *Store) orphans() (streams []uint64, err error) {
	it, err := s.env.Engine.Iterate(format.UploadPrefix(), format.UploadKey(s.earlier))
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok && len(streams) < batchStreams; ok = it.Next() {
		stream, err := format.StreamOf(it.Key())
		if err != nil {
			return nil, err
		}
		streams = append(streams, stream)
	}
	return streams, it.Error()
}

// removal is a set of chunks of one stream.
type removal struct {
	stream   uint64
	from, to uint32 // [from, to); the stream has no chunk at to or after
}

// find returns chunks to remove, except those of streams that are read. all reports
// whether they are all.
func (s *Store) find() (found []removal, all bool, err error) {
	snapshot := s.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	prefix := format.GarbagePrefix()
	it, err := snapshot.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	left := uint32(batchChunks)
	for ok := it.First(); ok; ok = it.Next() {
		stream, err := format.StreamOf(it.Key())
		if err != nil {
			return nil, false, err
		}
		chunks, err := format.DecodeChunks(it.Value())
		if err != nil {
			return nil, false, err
		}
		if s.isRead(stream) {
			continue
		}
		if left == 0 || len(found) == batchStreams {
			return found, false, nil
		}
		n := min(left, chunks)
		found = append(found, removal{stream, chunks - n, chunks})
		if left -= n; n < chunks {
			return found, false, nil
		}
	}
	return found, true, it.Error()
}

// isRead reports whether a stream is pinned. If so, Unpin wakes the worker for it.
func (s *Store) isRead(stream uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[stream] > 0 {
		s.passed[stream] = true
		return true
	}
	return false
}

// removeChunks stages the removal of chunks.
func removeChunks(tx storage.Tx, all []removal) error {
	for _, r := range all {
		key := format.GarbageKey(r.stream)
		value, closer, err := tx.Get(key)
		if err != nil {
			return fmt.Errorf("the record of stream %d: %w", r.stream, err)
		}
		chunks, err := format.DecodeChunks(value)
		if err = errs.First(err, closer.Close()); err != nil {
			return err
		}
		if chunks != r.to {
			continue // removed already
		}
		for i := r.from; i < r.to; i++ {
			tx.Delete(format.ChunkKey(r.stream, i))
		}
		if r.from == 0 {
			tx.Delete(key)
		} else {
			tx.Set(key, format.AppendChunks(nil, r.from), nil)
		}
	}
	return nil
}
