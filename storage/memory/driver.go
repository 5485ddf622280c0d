// Package memory is a storage engine in memory. Several databases can have one of its stores open
// at the same time, like a store on a server: it is for tests of code for such stores. It
// implements the contract of package storage in the plainest form. It writes nothing to a disk, and
// nothing is left when the process ends. For tests of a program, jay.OpenMemory is faster.
//
// A transaction reads the state that was committed when it began. It commits only if everything
// that it has read is unchanged. Otherwise it runs again. A key keeps old versions for as long as a
// snapshot shows them.
package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/jaydb/jay/storage"
)

// Driver opens stores in memory, by name. A store exists for as long as its Driver. The zero value
// has no store. A Driver is safe for concurrent use and must not be copied.
type Driver struct {
	// Shared lets several engines have a store open at the same time. If it is not set, the second
	// Open returns ErrLocked. It must not change once a store was opened.
	Shared bool

	// Limits are the limits of each engine. They must not change once a store was opened.
	Limits storage.Limits

	// Now is the clock that measures the age of snapshots, for Limits.SnapshotAge. Nil means time.Now.
	// It must not change once a store was opened.
	Now func() time.Time

	// Features are the features that later opened engines know, so that tests can open one store with
	// an older and a newer version. Nil means storage.AllFeatures.
	Features storage.Features

	mu     sync.Mutex
	stores map[string]*store // Guarded by mu.
}

// Open implements storage.Driver. Every commit is durable at once, so DurableReads always holds.
// Nothing is ever damaged, so AcceptLoss is never called.
func (d *Driver) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stores[name]
	if s == nil {
		if o.MustExist || o.ReadOnly {
			return nil, fmt.Errorf("open %q: %w", name, storage.ErrNoDatabase)
		}
		s = newStore()
		if d.stores == nil {
			d.stores = make(map[string]*store)
		}
		d.stores[name] = s
	}
	if s.engines > 0 && !d.Shared {
		return nil, fmt.Errorf("open %q: %w", name, storage.ErrLocked)
	}
	known := d.Features
	if known == nil {
		known = storage.AllFeatures[:]
	}
	if err := s.checkFormat(known); err != nil {
		return nil, fmt.Errorf("open %q: %w", name, err)
	}
	s.engines++
	return newEngine(d, s, known, o.ReadOnly), nil
}

// StoreLimits implements storage.Limiter.
func (d *Driver) StoreLimits() storage.Limits { return d.Limits }

// closed notes that an engine has left its store.
func (d *Driver) closed(s *store) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.engines--
}

// unfinished is behind the name of a store that is being made.
const unfinished = ".unfinished"

// Prepare implements storage.Driver.
func (d *Driver) Prepare(name string) (storage.NewStore, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, there := range []string{name, name + unfinished} {
		if d.stores[there] != nil {
			return nil, &fs.PathError{Op: "make", Path: there, Err: fs.ErrExist}
		}
	}
	return &newStoreName{driver: d, name: name}, nil
}

// newStoreName is a store that is being made under another name.
type newStoreName struct {
	driver *Driver
	name   string
}

// Name implements storage.NewStore.
func (n *newStoreName) Name() string { return n.name + unfinished }

// Commit implements storage.NewStore.
func (n *newStoreName) Commit() error {
	d := n.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	made := d.stores[n.Name()]
	switch {
	case made == nil:
		return &fs.PathError{Op: "rename", Path: n.Name(), Err: fs.ErrNotExist}
	case d.stores[n.name] != nil:
		delete(d.stores, n.Name())
		return &fs.PathError{Op: "rename", Path: n.name, Err: fs.ErrExist}
	case made.engines > 0:
		return errors.New("the store is open")
	}
	delete(d.stores, n.Name())
	d.stores[n.name] = made
	return nil
}

// Abandon implements storage.NewStore.
func (n *newStoreName) Abandon() error {
	n.driver.mu.Lock()
	defer n.driver.mu.Unlock()
	delete(n.driver.stores, n.Name())
	return nil
}

// age tells how old a snapshot is. The zero value is one that does not grow old.
type age struct {
	driver *Driver
	taken  time.Time
}

// newborn returns the age of a snapshot that is taken now.
func (d *Driver) newborn() age {
	if d.Limits.SnapshotAge == 0 {
		return age{}
	}
	return age{d, d.now()}
}

func (d *Driver) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

// expired returns storage.ErrSnapshotExpired if the snapshot is too old.
func (a age) expired() error {
	if a.driver == nil || a.driver.now().Sub(a.taken) <= a.driver.Limits.SnapshotAge {
		return nil
	}
	return storage.ErrSnapshotExpired
}
