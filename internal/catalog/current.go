package catalog

import (
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/storage"
)

// Current is the catalog of an open database, which changes as indexes come and go.
type Current struct {
	catalog atomic.Pointer[Catalog]

	// view is held for reading while a query takes its catalog and its snapshot, so
	// that they agree, and for writing while the catalog is replaced.
	view sync.RWMutex
}

// Load returns the catalog as it is now.
func (c *Current) Load() *Catalog { return c.catalog.Load() }

// Replace makes next, which is committed, the current catalog.
func (c *Current) Replace(next *Catalog) {
	c.view.Lock()
	defer c.view.Unlock()
	c.catalog.Store(next)
}

// View returns the catalog and a snapshot from take that agree: the indexes are in the
// snapshot as the catalog has them.
func (c *Current) View(take func() storage.Snapshot) (*Catalog, storage.Snapshot) {
	c.view.RLock()
	defer c.view.RUnlock()
	return c.Load(), take()
}
