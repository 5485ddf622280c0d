package standby_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/follow"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/standby"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// sum identifies a set of keys and values: the exclusive or of their checksums.
type sum [sha256.Size]byte

func (s *sum) flip(key, value []byte) {
	if string(key) == "m"+format.StandbyName+"\x00" || string(key) == "m"+format.DefinitionsName+"\x00" {
		return
	}
	one := sha256.Sum256(append(append(binary.AppendUvarint(nil, uint64(len(key))), key...), value...))
	for i := range s {
		s[i] ^= one[i]
	}
}

func sumOf(t testing.TB, r storage.Reader, each func(key, value []byte)) (s sum) {
	t.Helper()
	it, err := r.Iterate(nil, nil)
	must(t, err)
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		s.flip(it.Key(), it.Value())
		if each != nil {
			each(it.Key(), it.Value())
		}
	}
	must(t, it.Error())
	return s
}

// recorded is an engine that notes the sum of its keys after each commit. After tables were taken in it is not
// known until recall is called.
type recorded struct {
	*lsm.Engine
	forward atomic.Pointer[func(storage.Commit)]

	mu      sync.Mutex
	known   bool
	keys    map[string]string
	now     sum
	pending []noted // commits since, while it is not known
	after   uint64  // the last commit that took in tables
	sums    map[uint64]sum
}

type noted struct {
	number uint64
	writes []storage.Write
}

func (r *recorded) see(c storage.Commit) {
	r.mu.Lock()
	if c.Ingested {
		r.known, r.pending, r.after = false, nil, c.Number
	} else {
		n := noted{number: c.Number}
		for w := range c.Writes {
			n.writes = append(n.writes, storage.Write{Key: bytes.Clone(w.Key), Value: bytes.Clone(w.Value), Deleted: w.Deleted})
		}
		if r.pending = append(r.pending, n); r.known {
			r.applyPending()
		}
	}
	r.mu.Unlock()
	if f := r.forward.Load(); f != nil {
		(*f)(c)
	}
}

func (r *recorded) applyPending() {
	for _, n := range r.pending {
		for _, w := range n.writes {
			if old, found := r.keys[string(w.Key)]; found {
				r.now.flip(w.Key, []byte(old))
				delete(r.keys, string(w.Key))
			}
			if !w.Deleted {
				r.keys[string(w.Key)] = string(w.Value)
				r.now.flip(w.Key, w.Value)
			}
		}
		r.sums[n.number] = r.now
	}
	r.pending = nil
}

// recall makes the state known.
func (r *recorded) recall(t testing.TB) {
	r.mu.Lock()
	known := r.known
	r.mu.Unlock()
	if known {
		return
	}
	snapshot, number, err := r.Engine.WatchCommits(ctx, r.see)
	if err != nil {
		return // it was killed
	}
	defer snapshot.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < r.after {
		return
	}
	r.keys = make(map[string]string)
	r.now = sumOf(t, snapshot, func(key, value []byte) { r.keys[string(key)] = string(value) })
	r.sums[number], r.known = r.now, true
	for len(r.pending) > 0 && r.pending[0].number <= number {
		r.pending = r.pending[1:]
	}
	r.applyPending()
}

// WatchCommits implements storage.CommitWatcher.
func (r *recorded) WatchCommits(ctx context.Context, see func(storage.Commit)) (storage.Snapshot, uint64, error) {
	r.forward.Store(&see)
	return r.Engine.WatchCommits(ctx, r.see)
}

// recording is a driver of recorded engines.
type recording struct {
	lsm.Driver
	made *recorded
}

func (d *recording) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	e, err := d.Driver.Open(name, o)
	if err != nil {
		return nil, err
	}
	d.made = &recorded{Engine: e.(*lsm.Engine), sums: make(map[uint64]sum)}
	return d.made, nil
}

// incarnation is a source from one Open to the next.
type incarnation struct {
	db     *jay.DB
	disk   *storagetest.Disk
	engine *recorded

	mu   sync.Mutex
	acks []ack
}

// ack is what was known to be on disk at an instant.
type ack struct {
	number uint64
	at     time.Time
}

// history is a source and its standby, with which everything happens.
type history struct {
	t          *testing.T
	random     *rand.Rand
	current    atomic.Pointer[incarnation]
	epochs     sync.Map // epoch → *incarnation
	durability jay.Durability

	copyDisk *storagetest.Disk
	standby  *standby.Standby
	cut      atomic.Int64 // after how many bytes the next stream is cut; 0 for not

	checked, unknown, tags int
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, random: rand.New(rand.NewPCG(seed, 34)), copyDisk: storagetest.NewDisk()}
	if seed%2 == 1 { // most commits wait for no sync
		h.durability = jay.Relaxed
	}
	h.openSource(storagetest.NewDisk(), "")
	h.openStandby()
	return h
}

func (h *history) openSource(disk *storagetest.Disk, copyTag string) {
	d := &recording{Driver: lsm.Driver{Options: lsm.Options{FS: disk, MemTableBytes: 1 << 20}}}
	db, err := jay.Open("db", &jay.Options{Engine: d, CopyTag: copyTag, Durability: h.durability})
	must(h.t, err)
	i := &incarnation{db: db, disk: disk, engine: d.made}
	i.engine.recall(h.t)
	h.epochs.Store(parts.Of(db).Standbys.Epoch(), i)
	h.current.Store(i)
}

func (h *history) openStandby() {
	s, err := standby.Open("copy", h, standby.Options{Database: &jay.Options{FS: h.copyDisk}, Retry: 50 * time.Millisecond})
	must(h.t, err)
	h.standby = s
}

// Stream implements standby.Source: it asks the source that is open, and may be cut off.
func (h *history) Stream(ctx context.Context, request []byte) (io.ReadCloser, error) {
	in, err := standby.From(h.current.Load().db).Stream(ctx, request)
	if n := h.cut.Swap(0); n > 0 && err == nil {
		return &cutOff{in, n}, nil
	}
	return in, err
}

// cutOff is a stream that fails after n bytes.
type cutOff struct {
	io.ReadCloser
	n int64
}

func (c *cutOff) Read(p []byte) (int, error) {
	if c.n <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.n)])
	c.n -= int64(n)
	return n, err
}

// check compares the standby with what its source had at the commit that the standby names, and with the moment that it
// claims.
func (h *history) check() {
	h.t.Helper()
	reader := read(h.t, h.standby)
	moment := h.standby.Status().Moment
	var state format.Standby
	var got sum
	err := parts.Of(reader).Inside(func() error {
		snapshot := parts.Of(reader).Env.Engine.Snapshot()
		defer snapshot.Close()
		var err error
		state, _, err = follow.ReadState(snapshot)
		got = sumOf(h.t, snapshot, nil)
		return err
	})
	if errors.Is(err, jay.ErrClosed) { // the source has another identity
		return
	}
	must(h.t, err)
	of, found := h.epochs.Load(state.Epoch)
	if !found {
		h.t.Fatalf("no source has the epoch of %+v", state)
	}
	i := of.(*incarnation)
	if durable := i.engine.DurableCommit(); i == h.current.Load() && state.Commit > durable {
		h.t.Fatalf("the standby has commit %d, and only %d are on the source's disk", state.Commit, durable)
	}
	i.engine.mu.Lock()
	want, known := i.engine.sums[state.Commit]
	i.engine.mu.Unlock()
	switch h.checked++; {
	case !known:
		h.unknown++
	case got != want:
		h.t.Fatalf("at %+v the standby has something else than the source had", state)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, a := range i.acks {
		if !a.at.After(moment) && a.number > state.Commit {
			h.t.Fatalf("the standby claims the moment %v, and has commit %d: commit %d was on disk at %v", moment, state.Commit, a.number, a.at)
		}
	}
}

// write makes one call that writes.
func (h *history) write() {
	i := h.current.Load()
	db, r := i.db, h.random
	id := fmt.Sprint("users/", r.IntN(40))
	document := json.RawMessage(fmt.Sprintf(`{"name":"n%d","age":%d,"@metadata":{"@collection":%q}}`, r.IntN(9), r.IntN(99), []string{"Users", "People"}[r.IntN(2)]))
	var err error
	switch r.IntN(21) {
	case 20:
		err = ingest(parts.Of(db).Env.Engine)
	case 0:
		err = db.Delete(ctx, id)
	case 1:
		_, err = db.Store(ctx, "Users", json.RawMessage(`{"hilo":true}`))
	case 2:
		_, err = db.Put(ctx, "invoices|", json.RawMessage(`{}`))
	case 3:
		_, err = db.Put(ctx, "log/", json.RawMessage(`{}`))
	case 4:
		err = db.EnsureIndex(ctx, "Users", jay.Index{Name: fmt.Sprint("i", r.IntN(3)), Fields: []string{"name"}})
	case 5:
		err = db.DropIndex(ctx, "Users", fmt.Sprint("i", r.IntN(3)))
	case 6:
		_, err = db.Attachments(id).Put(ctx, "file", bytes.NewReader(jaytest.RandomBytes(r.Uint64(), r.IntN(200_000))))
	case 7:
		err = db.Subscriptions().Ensure(ctx, jay.Subscription{Name: fmt.Sprint("s", r.IntN(3)), Query: "from Users"})
	case 8:
		_, err = db.CompareExchange().Put(ctx, fmt.Sprint("x", r.IntN(5)), json.RawMessage(`1`), 0)
	case 9:
		err = db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{Keep: r.Uint64N(4) + 1}})
	case 10:
		_, err = db.RenameCollection(ctx, "People", fmt.Sprint("People", r.Uint64()))
	case 11:
		err = db.Compact(ctx)
	case 12:
		_, err = db.Backup(ctx, io.Discard)
	case 13:
		b := new(jay.Batch)
		for n := range 30 {
			b.Put(fmt.Sprint("batch/", n), json.RawMessage(fmt.Sprintf(`{"n":%d}`, r.IntN(5))))
		}
		_, err = db.Apply(ctx, b)
	case 14:
		err = parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
			tx.RequireFeature(storage.FeatureDefinitions)
			return nil
		})
	default:
		_, err = db.Put(ctx, id, document)
	}
	for _, allowed := range []error{nil, jay.ErrNotFound, jay.ErrCollection, jay.ErrIndexExists, jay.ErrConflict, jay.ErrSubscription, jay.ErrExists, jay.ErrNeedsFloor, jay.ErrIndex} {
		if errors.Is(err, allowed) {
			err = nil
		}
	}
	if err != nil {
		h.t.Fatal(err)
	}
	i.engine.recall(h.t)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.acks = append(i.acks, ack{i.engine.DurableCommit(), time.Now()})
}

// ingest takes in a table that changes nothing, as the build of a large index takes in some that do.
func ingest(engine storage.Engine) error {
	it, err := engine.Iterate([]byte{format.SpaceMeta}, []byte{format.SpaceMeta + 1})
	if err != nil {
		return err
	}
	in := engine.(storage.Ingester)
	w, err := in.NewTable(false)
	if err == nil {
		it.First()
		err = w.Set(it.Key(), it.Value())
	}
	if err = errors.Join(err, it.Close()); err != nil {
		return err
	}
	table, err := w.Finish()
	if err != nil {
		return err
	}
	return in.Ingest(ctx, []storage.Table{table}, nil)
}

// kill cuts the power of the source, which opens again with what was on disk, and some more.
func (h *history) kill(copyTag string) {
	old := h.current.Load()
	disk := old.disk.Crash(h.random.IntN(101), h.random)
	h.openSource(disk, copyTag)
	_ = old.db.Close() // on a disk that is no more
}

func (h *history) killStandby() {
	old := h.standby
	h.copyDisk = h.copyDisk.Crash(h.random.IntN(101), h.random)
	h.openStandby()
	_ = old.Close()
}

// step does something.
func (h *history) step() {
	switch n := h.random.IntN(100); {
	case n < 80:
		h.write()
	case n < 90:
		h.check()
	case n < 92:
		h.kill("")
	case n < 94:
		h.killStandby()
	case n < 95:
		h.tags++
		h.kill(string([]byte{'B' + byte(h.tags/26%24), 'A' + byte(h.tags%26)}))
	case n < 96:
		must(h.t, h.standby.Close())
		for range h.random.IntN(5) {
			h.write()
		}
		h.openStandby()
	default: // the connection is cut, and so may be the next one
		h.cut.Store(1 + h.random.Int64N([]int64{100, 2000, 200_000}[h.random.IntN(3)]))
		h.killStandby()
	}
}

func (h *history) end() {
	source := h.current.Load().db
	h.cut.Store(0)
	await(h.t, h.standby, source)
	h.check()
	reader := read(h.t, h.standby)
	jaytest.Verify(h.t, reader)
	// A reader knows of numbers only up to where they are reserved.
	counters := regexp.MustCompile(`(?m)^\{"etag":.*$`)
	if got, want := counters.ReplaceAllString(jaytest.Dump(h.t, reader), ""), counters.ReplaceAllString(jaytest.Dump(h.t, source), ""); got != want {
		h.t.Error(firstDifference(got, want))
	}
	must(h.t, h.standby.Close())
	jaytest.Close(h.t, source)
	if h.unknown > h.checked/2 {
		h.t.Errorf("of %d checks, the state of the source was not known in %d", h.checked, h.unknown)
	}
}

// Ensure that a standby has at every moment exactly what its source had after the commit that it names, and all that was on the source's disk at the
// moment that it claims, whatever is killed, cut off or changed.
func TestStandby_History(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 3
	}
	if text := os.Getenv("JAY_STANDBY_HISTORIES"); text != "" {
		var err error
		seeds, err = strconv.Atoi(text)
		must(t, err)
	}
	first := sample.Of(t, 14).Seed()
	for n := range seeds {
		seed := first*1000 + uint64(n)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			knobs.FollowedBytes, knobs.StandbyTableBytes = []int{0, 3000, 300_000}[seed%3], []uint64{0, 1}[seed/3%2]
			defer func() { knobs.FollowedBytes, knobs.StandbyTableBytes = 0, 0 }()
			h := newHistory(t, seed)
			for range 150 {
				h.step()
			}
			h.end()
			t.Logf("%d checks, %d of states that are not known", h.checked, h.unknown)
		})
	}
}
