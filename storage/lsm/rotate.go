package lsm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
)

// rotation is what an Engine does with its keys while it is open: it makes it a storage.Rekeyer.
// Its methods are safe for concurrent use.
type rotation struct {
	e *Engine

	turn sync.Mutex // held while a key is renewed, or a file is encrypted anew

	counting atomic.Bool             // OlderKeys is under way for Stats
	counted  atomic.Pointer[counted] // what it has found last; nil before

	mu    sync.Mutex
	known map[string]string // files of pages and frames, and the key that was seen to be all that they need. Guarded by mu.
}

// RenewKey implements storage.Rekeyer. The identity file gets the newest key before any other file,
// so that a program without the key is refused at once.
func (r *rotation) RenewKey(expected string) (id string, err error) {
	ring, err := r.ring()
	if err != nil {
		return "", err
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	key, err := ring.Next()
	if err != nil {
		return "", err
	}
	if expected != "" && key.ID != expected {
		return "", fmt.Errorf("%w: the newest key that the program has which has the database open is %q, and not %q: nothing was changed; give that program the key, or name its file of keys", storage.ErrKey, key.ID, expected)
	}
	identity, err := ring.IdentityWith(key)
	if err == nil {
		err = replaceFile(r.e.sealFS.FS, r.e.path, identityFile, identity)
	}
	if err != nil {
		return "", openError(err)
	}
	ring.Use(key)
	return key.ID, nil
}

// ring returns the ring, or an error if the engine does not encrypt, or does not write.
func (r *rotation) ring() (*sealed.Ring, error) {
	switch {
	case r.e.sealFS.ring == nil:
		return nil, errNotEncrypted
	case r.e.readOnly:
		return nil, storage.ErrReadOnly
	case r.e.failure.Load() != nil:
		return nil, r.e.failedError()
	}
	return r.e.sealFS.ring, nil
}

// OlderKeys implements storage.Rekeyer. It reads the header of each file once.
func (r *rotation) OlderKeys() (older []string, err error) {
	ring := r.e.sealFS.ring
	if ring == nil {
		return nil, errNotEncrypted
	}
	names, err := r.e.sealFS.FS.List(r.e.path)
	if err != nil {
		return nil, openError(err)
	}
	newest := ring.Newest()
	unused := r.unused(names)
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[string]string, len(names))
	for _, name := range names {
		kind, _ := parseName(name)
		if kind == otherFile && name != controlName && name != identityFile || unused[name] {
			continue
		}
		if r.known[name] == newest {
			seen[name] = newest
			continue
		}
		is, err := r.byNewest(ring, name)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue // it was removed meanwhile
		case err != nil:
			return nil, openError(err)
		case !is:
			older = append(older, name)
		case kind != otherFile:
			seen[name] = newest
		}
	}
	r.known = seen
	return older, nil
}

// unused returns the files that Pebble keeps and never reads again: logs that are to be replaced by
// new ones, and the manifest before the present one.
func (r *rotation) unused(names []string) map[string]bool {
	unused := make(map[string]bool)
	used := map[fileKind]int{manifestFile: 1, walFile: len(names)}
	if !r.e.readOnly {
		used[walFile] = int(r.e.db.Metrics().WAL.Files)
	}
	byNumber := slices.Clone(names)
	slices.SortFunc(byNumber, func(a, b string) int { // the newest first
		_, i := parseName(a)
		_, j := parseName(b)
		return cmp.Compare(j, i)
	})
	for _, name := range byNumber {
		if kind, _ := parseName(name); kind == manifestFile || kind == walFile {
			unused[name] = used[kind] <= 0
			used[kind]--
		}
	}
	return unused
}

// countPatience is how long Stats waits for a disk that does not answer.
const countPatience = 100 * time.Millisecond

// countedFor is how long Stats shows a number above 0 again while no file comes or goes. The
// control file gets a newer key without that.
const countedFor = time.Second

// counted is how many files need an older key, and what that was known of.
type counted struct {
	older uint64
	of    countedOf
	at    time.Time
}

// countedOf is what must be the same for a number to be the same, but for the control file.
type countedOf struct {
	changes uint64 // sealFS.changes
	newest  string // ID of the newest key
	logs    int64  // that Pebble still reads
}

// stillTrue reports whether the number is that of the present moment; a number above 0 may be countedFor old.
func (c *counted) stillTrue(of countedOf) bool {
	return c != nil && c.of == of && (c.older == 0 || time.Since(c.at) < countedFor)
}

// count returns how many files need an older key; of a disk that does not answer, how many did
// before. It looks at the directory only if files have come or gone, or if a key was changed
// lately. logs is how many logs Pebble still reads.
func (r *rotation) count(logs int64) (older uint64) {
	of := countedOf{r.e.sealFS.changes.Load(), r.e.sealFS.ring.Newest(), logs}
	last := r.counted.Load()
	if last != nil {
		older = last.older
	}
	if last.stillTrue(of) || !r.counting.CompareAndSwap(false, true) {
		return older
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.counting.Store(false)
		older, err := r.OlderKeys()
		if err != nil {
			r.e.log.Warn("jay: the keys of the files are not known", "dir", r.e.dir, "err", err)
			return
		}
		r.counted.Store(&counted{uint64(len(older)), of, time.Now()})
	}()
	select {
	case <-done:
	case <-time.After(countPatience):
	}
	if last = r.counted.Load(); last != nil {
		older = last.older
	}
	return older
}

// byNewest reports whether all that is needed to read a file is the newest key. It says so of a
// file whose header is not written yet, or is damaged.
func (r *rotation) byNewest(ring *sealed.Ring, name string) (bool, error) {
	f, err := openRegular(r.e.sealFS.FS, r.e.sealFS.PathJoin(r.e.path, name))
	if err != nil {
		return false, err
	}
	defer f.Close()
	switch name {
	case identityFile:
		identity, err := io.ReadAll(io.LimitReader(f, maxIdentity))
		return ring.IdentityByNewest(identity), err
	case controlName:
		return ring.NewSlots(f, nil, name, controlSlots, controlSlotSize).ByNewest()
	}
	header, err := sealed.ReadHeader(f)
	if err != nil {
		return false, err
	}
	is, err := ring.WrappedByNewest(header, layoutOfFile(name), name)
	if errors.Is(err, storage.ErrKey) {
		return false, nil
	}
	if errors.As(err, new(*sealed.Damage)) {
		return true, nil
	}
	return is, err
}

// rekeyTemporary is the copy of the file that is being encrypted anew. Open removes what a crash has left of it.
const rekeyTemporary = temporaryPrefix + "rekey"

// Rekey implements storage.Rekeyer. For a log, Rekey flushes its writes to tables. A manifest, and
// a log without writes, keep their key until the next Open.
func (r *rotation) Rekey(name string) (done bool, err error) {
	ring, err := r.ring()
	if err != nil {
		return false, err
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	defer r.e.sealFS.changing()()
	if is, err := r.byNewest(ring, name); is || errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, openError(err)
	}
	e := r.e
	switch kind, _ := parseName(name); {
	case name == identityFile:
		return true, openError(writeIdentity(e.sealFS.FS, e.path, ring))
	case name == controlName:
		for range controlSlots {
			if err := e.controlFS.control.update(true, func(*controlRecord) {}); err != nil {
				return false, openError(err)
			}
		}
		return true, nil
	case kind == walFile:
		before := e.db.Metrics().Flush.Count
		err := e.protect(e.db.Flush)
		return err == nil && e.db.Metrics().Flush.Count > before, openError(err)
	case kind == manifestFile || kind == otherFile:
		return false, nil
	}
	done, err = e.sealFS.rekey(e.sealFS.PathJoin(e.path, name), e.sealFS.PathJoin(e.path, rekeyTemporary))
	if runtime.GOOS == "windows" && errors.Is(err, os.ErrPermission) {
		return false, nil // it is open, and cannot be replaced
	}
	return done, openError(err)
}

// errNotEncrypted is the error of keys for a database that has none.
var errNotEncrypted = fmt.Errorf("%w: the database is not encrypted", storage.ErrKey)
