package schemas

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/schema"
)

// logInterval is the shortest time between two messages about one collection.
const logInterval = time.Second

// tallies count the documents that were written though they violate a schema. The zero value is ready.
type tallies struct {
	mu       sync.Mutex
	byFolded map[string]*tally // at most schema.MaxRules that have rules, and those whose rules are gone. Guarded by mu.
}

type tally struct {
	name   string
	count  int64
	quiet  int64     // of count, since the last message
	logged time.Time // of the machine's clock
}

// maxTallies bounds the collections that are counted: rules come and go.
const maxTallies = 2 * schema.MaxRules

// Warned is how many documents of a collection were written since Open though they violate its schema.
type Warned struct {
	Collection string
	Documents  int64
}

// Warn counts a document that was written though it violates a schema, and logs it, at most once a second for each collection.
func (c *Current) Warn(e *env.Env, found *schema.Error, folded, id string) {
	c.warned.mu.Lock()
	if c.warned.byFolded == nil {
		c.warned.byFolded = make(map[string]*tally)
	}
	t := c.warned.byFolded[folded]
	if t == nil {
		if len(c.warned.byFolded) >= maxTallies {
			c.warned.mu.Unlock()
			return
		}
		t = &tally{name: found.Collection}
		c.warned.byFolded[folded] = t
	}
	t.count++
	t.quiet++
	now, documents := time.Now(), int64(0)
	if e.Logger != nil && (t.logged.IsZero() || now.Sub(t.logged) >= logInterval) {
		documents, t.quiet, t.logged = t.quiet, 0, now
	}
	c.warned.mu.Unlock()
	if documents > 0 {
		e.Logger.Warn("jay: a document violates the schema of its collection", "collection", found.Collection, "id", errs.Shorten(id), "violations", found.Count, "first", errs.Shorten(found.Violations[0].String()), "documents", documents)
	}
}

// Warned returns how many documents of each collection were warned of since Open, by the name of the collection.
func (c *Current) Warned() (all []Warned) {
	c.warned.mu.Lock()
	defer c.warned.mu.Unlock()
	for _, t := range c.warned.byFolded {
		all = append(all, Warned{t.name, t.count})
	}
	slices.SortFunc(all, func(a, b Warned) int { return cmp.Compare(a.Collection, b.Collection) })
	return all
}
