package follow

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Source is the side of a database that standbys follow. It is safe for concurrent use.
type Source struct {
	engine storage.Engine
	memory memory
	epoch  string
	moment func() time.Time
}

// NewSource returns the Source of an engine, or nil if the engine does not show its commits. epoch is different each time the engine is opened.
// bound is how many bytes of commits are remembered.
func NewSource(engine storage.Engine, epoch string, bound int) *Source {
	watcher, is := engine.(storage.CommitWatcher)
	if !is {
		return nil
	}
	s := &Source{engine: engine, epoch: epoch, moment: time.Now}
	s.memory = memory{engine: watcher, bound: bound, clock: func() time.Time { return s.moment() }}
	return s
}

// SetMoment replaces the clock of commits, before the first stream: that of a standby is the moment that it
// has come to.
func (s *Source) SetMoment(moment func() time.Time) { s.moment = moment }

// Epoch returns the epoch of the numbers of commits.
func (s *Source) Epoch() string { return s.epoch }

// Request is what a standby asks with.
type Request struct {
	Standby  format.Standby `json:"standby"`
	Compares bool           `json:"compares,omitempty"` // checksums of its keys follow
	Empty    bool           `json:"empty,omitempty"`    // it has none

	spans []span
}

// ReadRequest reads a request.
func ReadRequest(in io.Reader) (*Request, error) {
	r, q := newReader(in), new(Request)
	if err := r.begin(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	size := 0
	for first := true; ; first = false {
		kind, payload, err := r.next()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFrame, err)
		}
		if size += len(payload); size > maxSums {
			return nil, fmt.Errorf("%w: a request of more than %d bytes", ErrFrame, maxSums)
		}
		switch {
		case first && kind == kindRequest:
			err = json.Unmarshal(payload, q)
		case !first && kind == kindSums && q.Compares:
			q.spans, err = cutSpans(q.spans, payload)
		case !first && kind == kindEnd:
			if n := len(q.spans); q.Compares && (n == 0 || q.spans[n-1].end != nil) {
				return nil, fmt.Errorf("%w: checksums without an end", ErrFrame)
			}
			return q, nil
		default:
			err = fmt.Errorf("a frame of kind %q is out of place", kind)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFrame, err)
		}
	}
}

// hello is what a source says first.
type hello struct {
	Database string               `json:"database"` // its ID
	Identity string               `json:"identity"` // see identity
	Origins  env.Origins          `json:"origins"`
	Format   *storage.StoreFormat `json:"format"` // the last that was sent
	Epoch    string               `json:"epoch"`
	Commit   uint64               `json:"commit"`         // the state that a copy makes, or that the standby has
	Moment   time.Time            `json:"moment"`         // of that state
	Copy     bool                 `json:"copy,omitempty"` // ranges follow
}

// Stream is what one standby reads. Its methods are called one at a time, those but Wait while the engine is open.
type Stream struct {
	source  *Source
	request *Request
	hello   hello

	started  bool
	position uint64    // of the last commit that was sent, or that the copy has
	told     time.Time // when the last moment was sent
	unsynced time.Time // when the next commit was first found not to be on disk; zero if it is, or there is none
	wake     <-chan struct{}

	snapshot storage.Snapshot // of the copy; nil for none
	it       storage.Iterator
	spans    []span // that are left
	lo       []byte // of the first of them
	sums     *summer
	sending  bool // the first span differs
	seeking  bool // it stands before that span
}

// NewStream begins to answer a request. settings and origins are those of the database.
func (s *Source) NewStream(q *Request, settings format.Settings, origins env.Origins) (*Stream, error) {
	text, err := identity(settings, origins)
	if err != nil {
		return nil, err
	}
	s.memory.join()
	return &Stream{source: s, request: q, sums: newSummer(), hello: hello{
		Database: origins[settings.Node].ID, Identity: text, Origins: origins, Epoch: s.epoch,
	}}, nil
}

// Close releases what the stream holds.
func (s *Stream) Close() error {
	s.source.memory.leave()
	return s.closeCopy()
}

func (s *Stream) closeCopy() (err error) {
	if s.it != nil {
		err = s.it.Close()
	}
	if s.snapshot != nil {
		err = errs.First(err, s.snapshot.Close())
	}
	s.it, s.snapshot = nil, nil
	return err
}

// ErrEnd is returned by Next when the stream is at its end: the standby has to ask again.
var ErrEnd = errors.New("the stream is at its end")

// Next appends what can be sent now, about a block. If it appends nothing and the stream is Idle, Wait is to be called. With ErrEnd, out is still to be sent.
func (s *Stream) Next(ctx context.Context, dst []byte) (out []byte, err error) {
	if !s.started {
		return s.begin(ctx, dst)
	}
	memory := &s.source.memory
	if s.wake, err = s.source.engine.NextCommit(); err != nil {
		return dst, err
	}
	asOf := s.source.moment() // before: what was committed until then and is not on disk is among those of last
	newest, durable := memory.last(), memory.engine.DurableCommit()
	if dst, err = s.appendFormat(dst); err != nil { // after durable: it covers what those commits need
		return dst, err
	}
	size := len(dst)
	out, position, known := memory.appendCommits(dst, s.position, durable)
	if !known {
		return appendFrame(out, kindCompare), ErrEnd
	}
	s.position = position
	switch {
	case s.it != nil:
		return s.copy(out)
	case len(out) > size:
		s.unsynced = time.Time{}
	case position < newest:
		return out, s.awaitDisk(ctx)
	case time.Since(s.told) >= heartbeat:
		s.told = time.Now()
		out = appendFrame(out, kindMoment, appendMoment(nil, position, asOf))
	}
	return out, nil
}

// appendFormat appends the format of the source, if that has risen since it was sent.
func (s *Stream) appendFormat(dst []byte) ([]byte, error) {
	f := s.source.engine.Format()
	if f.Number == s.hello.Format.Number && slices.Equal(f.Features, s.hello.Format.Features) {
		return dst, nil
	}
	s.hello.Format = &f
	text, err := json.Marshal(f)
	return appendFrame(dst, kindFormat, text), err
}

const (
	heartbeat = time.Second            // between two moments that a source without commits sends
	pause     = 2 * time.Millisecond   // between two looks at commits that are not on disk yet
	patience  = 100 * time.Millisecond // how long they may not be, before the stream asks for a sync
)

// awaitDisk is called when the next commit is not on disk. Mostly its caller waits for a sync.
func (s *Stream) awaitDisk(ctx context.Context) error {
	if s.unsynced.IsZero() {
		s.unsynced = time.Now()
	}
	if time.Since(s.unsynced) < patience {
		return nil
	}
	return s.source.engine.Sync(ctx)
}

// Wait returns when there may be more to send.
func (s *Stream) Wait(ctx context.Context) error {
	wake, wait := s.wake, heartbeat
	if !s.unsynced.IsZero() {
		wake, wait = nil, pause
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wake:
	case <-timer.C:
	}
	return nil
}

func appendMoment(dst []byte, number uint64, moment time.Time) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, number), uint64(moment.UnixNano()))
}

// cutMoment returns the number and the instant at the beginning of a payload.
func cutMoment(b []byte) (number uint64, moment time.Time, rest []byte, err error) {
	if len(b) < momentBytes {
		return 0, moment, nil, fmt.Errorf("%w: a commit without a number", ErrFrame)
	}
	return binary.BigEndian.Uint64(b), time.Unix(0, int64(binary.BigEndian.Uint64(b[8:]))).UTC(), b[momentBytes:], nil
}

// identity says what a database remembers of its settings for as long as it is open. It changes only between two times.
func identity(s format.Settings, origins env.Origins) (string, error) {
	s.ExpirationDisabled, s.RefreshDisabled = false, false
	text, err := json.Marshal(struct {
		Settings format.Settings
		Origins  env.Origins
	}{s, origins})
	return string(text), err
}

// begin sends hello.
func (s *Stream) begin(ctx context.Context, dst []byte) ([]byte, error) {
	dst = append(dst, Magic...)
	q := s.request
	s.hello.Moment = s.source.moment()
	if q.Standby.Epoch == s.hello.Epoch && s.source.memory.has(q.Standby.Commit) {
		s.hello.Commit, s.hello.Moment = q.Standby.Commit, q.Standby.Moment
	} else if !q.Compares {
		return appendFrame(dst, kindCompare), ErrEnd
	} else {
		var err error
		if s.snapshot, s.hello.Commit, err = s.source.memory.begin(ctx); err != nil {
			return nil, err
		}
		if s.it, err = s.snapshot.Iterate(nil, nil); err != nil {
			return nil, err
		}
		s.hello.Copy, s.spans, s.sending, s.seeking = true, q.spans, q.Empty, true
		q.spans = nil
	}
	f := s.source.engine.Format() // after the snapshot: it covers what that shows
	s.hello.Format = &f
	s.started, s.position = true, s.hello.Commit
	text, err := json.Marshal(s.hello)
	dst = appendFrame(dst, kindHello, text)
	if s.sending {
		dst = appendFrame(dst, kindRange, appendString(appendString(nil, nil), nil))
	}
	return dst, err
}

// copy goes on with the comparison: it reads a block, and sends what differs.
func (s *Stream) copy(out []byte) ([]byte, error) {
	if len(s.spans) == 0 {
		return appendFrame(out, kindEnd), s.closeCopy()
	}
	end := s.spans[0].end
	within := s.it.Valid()
	if s.seeking {
		within, s.seeking = seek(s.it, s.lo), false
	}
	var keys []byte
	read := 0
	for ; within && read < 4*blockBytes && len(keys) < blockBytes; within = s.it.Next() {
		key, value := s.it.Key(), s.it.Value()
		if end != nil && bytes.Compare(key, end) >= 0 {
			within = false
			break
		}
		read += len(key) + len(value)
		switch {
		case !s.sending:
			s.sums.add(key, value)
		case !isLocal(key):
			keys = appendWrite(keys, storage.Write{Key: key, Value: value})
		}
	}
	if err := s.it.Error(); err != nil {
		return out, err
	}
	if len(keys) > 0 {
		out = appendFrame(out, kindKeys, keys)
	}
	if within {
		return out, nil
	}
	if !s.sending && s.sums.sum() != s.spans[0].sum {
		s.sending, s.seeking = true, true
		return appendFrame(out, kindRange, appendString(appendString(nil, s.lo), end)), nil
	}
	s.sending, s.lo, s.spans = false, end, s.spans[1:]
	s.seeking = true
	return out, nil
}

// Idle reports whether Wait is to be called after a Next that has appended nothing: a comparison goes on at once.
func (s *Stream) Idle() bool { return s.it == nil }
