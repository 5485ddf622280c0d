// Package revisions keeps older versions of documents.
//
// A revision is a version of a document. The newest version is the document's own record,
// which has the revision's number if it is one. The write that replaces the document moves
// that version to the revisions, in the same commit. So an insert costs only a few bytes,
// and no version is stored twice. A deletion moves the last version and adds a revision
// for itself.
//
// The revisions of a document are numbered without gaps and removed from the oldest on, so
// the newest part of a history is what is kept. The numbers allow keeping N revisions
// without a walk over them, which would cost a transaction its place in a write group. See
// docs/format.md and docs/decisions/0033-revisions.md.
package revisions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Bounds of the configuration. docs/limits.md has them.
const (
	MaxKeep        = 1 << 40
	MaxCollections = 1000
)

// Rule says which revisions of a document are kept. The zero value keeps all of them.
type Rule struct {
	Keep     uint64        `json:"keep,omitempty"`      // versions, the newest included; 0 for all
	KeepFor  time.Duration `json:"keepForNs,omitempty"` // counted from the replacement of a version; 0 for ever
	Disabled bool          `json:"disabled,omitempty"`
}

// keepsAll reports whether the rule never removes a revision.
func (r *Rule) keepsAll() bool { return r == nil || r.Keep == 0 && r.KeepFor == 0 }

// Config has the rules by which revisions are kept.
type Config struct {
	Default     *Rule           `json:"default,omitempty"`
	Collections map[string]Rule `json:"collections,omitempty"`
}

// Rules is a Config prepared for look-ups. A nil *Rules has no rule.
type Rules struct {
	config   Config
	byFolded map[string]*Rule // a nil rule if the collection's is disabled
	fallback *Rule            // or nil
	shortest time.Duration    // the shortest KeepFor of a rule that is not disabled; 0 for none
}

// Of returns the rule of a collection, or nil if its documents get no revisions.
func (r *Rules) Of(foldedCollection string) *Rule {
	if r == nil || foldedCollection == format.HiLoCollection {
		return nil
	}
	if rule, found := r.byFolded[foldedCollection]; found {
		return rule
	}
	return r.fallback
}

// newRules checks a configuration. The result is nil for one without a rule.
func newRules(c Config) (*Rules, error) {
	if len(c.Collections) > MaxCollections {
		return nil, fmt.Errorf("%w: revisions are configured of at most %d collections, not %d", ids.ErrUsage, MaxCollections, len(c.Collections))
	}
	if c.Default == nil && len(c.Collections) == 0 {
		return nil, nil
	}
	r := &Rules{config: Config{Collections: make(map[string]Rule, len(c.Collections))}, byFolded: make(map[string]*Rule, len(c.Collections))}
	if c.Default != nil {
		rule := *c.Default
		r.config.Default = &rule
		if err := rule.check("the default"); err != nil {
			return nil, err
		}
		if !rule.Disabled {
			r.fallback = &rule
			r.note(&rule)
		}
	}
	for name, rule := range c.Collections {
		folded := format.CollectionKey(name)
		switch _, twice := r.byFolded[folded]; {
		case name == "":
			return nil, fmt.Errorf("%w: revisions are configured of a collection without a name; that of documents without a collection is %q", ids.ErrUsage, metadata.Empty)
		case folded == format.HiLoCollection:
			return nil, fmt.Errorf("%w: there are no revisions of %q", ids.ErrUsage, name)
		case twice:
			return nil, fmt.Errorf("%w: revisions of collection %.100q are configured twice", ids.ErrUsage, folded)
		}
		if err := metadata.CheckCollection(name); err != nil {
			return nil, err
		}
		if err := rule.check(fmt.Sprintf("collection %.100q", name)); err != nil {
			return nil, err
		}
		r.config.Collections[name] = rule
		r.byFolded[folded] = nil
		if !rule.Disabled {
			r.byFolded[folded] = &rule
			r.note(&rule)
		}
	}
	return r, nil
}

// note takes the KeepFor of a rule into account in shortest.
func (r *Rules) note(rule *Rule) {
	if rule.KeepFor > 0 && (r.shortest == 0 || rule.KeepFor < r.shortest) {
		r.shortest = rule.KeepFor
	}
}

func (r *Rule) check(of string) error {
	switch {
	case r.Keep > MaxKeep:
		return fmt.Errorf("%w: revisions of %s: Keep is between 0 and %d, not %d", ids.ErrUsage, of, uint64(MaxKeep), r.Keep)
	case r.KeepFor < 0:
		return fmt.Errorf("%w: revisions of %s: KeepFor is not negative, not %v", ids.ErrUsage, of, r.KeepFor)
	}
	return nil
}

// Current is the configuration of an open database. It is safe for concurrent use.
type Current struct {
	rules atomic.Pointer[Rules] // nil for none
	mu    sync.Mutex            // held while the configuration changes
}

// Load returns the rules, nil for none. A transaction that writes documents loads them
// once per run.
func (c *Current) Load() *Rules { return c.rules.Load() }

// Config returns the configuration. The caller must not change it.
func (c *Current) Config() Config {
	if r := c.Load(); r != nil {
		return r.config
	}
	return Config{}
}

func configKey() []byte { return format.AppendKey(nil, format.SpaceMeta, format.RevisionsName) }

// Open reads the configuration.
func (c *Current) Open(e *env.Env) error {
	rules, err := Read(e.Engine)
	if err == nil {
		c.Replace(rules)
	}
	return err
}

// Replace makes rules, which are stored, the current ones.
func (c *Current) Replace(rules *Rules) { c.rules.Store(rules) }

// Read returns the rules that r shows, nil for none.
func Read(r docs.Getter) (*Rules, error) {
	value, closer, err := r.Get(configKey())
	if err == storage.ErrNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var stored Config
	err = json.Unmarshal(value, &stored)
	if err := errs.First(err, closer.Close()); err != nil {
		return nil, fmt.Errorf("record of the revisions: %w: %w", errs.ErrCorrupt, err)
	}
	rules, err := newRules(stored)
	if err != nil {
		return nil, fmt.Errorf("record of the revisions: %w: %w", errs.ErrCorrupt, err)
	}
	return rules, nil
}

// Configure stores the configuration on disk and then applies it: transactions that run
// after its return follow it. Once the commit has begun, the end of ctx has no effect, so
// that memory and disk stay the same.
func (c *Current) Configure(ctx context.Context, e *env.Env, config Config) error {
	rules, err := newRules(config)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	err = e.Engine.Update(context.WithoutCancel(ctx), true, func(tx storage.Tx) error {
		if rules == nil {
			tx.Delete(configKey())
			return nil
		}
		return env.SetJSON(tx, configKey(), rules.config)
	})
	if err != nil && !errors.Is(err, storage.ErrUnknownOutcome) || e.Engine.Shared() { // a shared engine follows them
		return err
	}
	c.rules.Store(rules) // after an unknown outcome the database refuses all writes
	return err
}
