// Package leases lets several processes that have one store open share it out: each has a node tag of its own, and
// background work is done by one of them at a time. All of it is in the store; nothing else is needed.
//
// A process leases a node tag under a session, a random text that no other process has. It renews the lease by raising a
// number in the store. The others compare that number each time that they have renewed their own lease: if it has stayed
// the same for Patience of those times, they remove the lease. So no clock is compared with that of another
// machine. A process that cannot reach the store does not count, and while nobody can commit, no lease ends.
//
// Each transaction of a process reads the record of its lease, and fails if the session there is another one (Check). So a
// process that was thought dead commits nothing once its lease was removed, however long it stood still. It then leases
// its tag again, under a new session, unless another process has it.
//
// A kind of work belongs to a session (Holder.Do). When the lease of that session is gone, any other process may take it.
package leases

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/background"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

const (
	// DefaultPeriod is how long a lease lasts that is not renewed, at least.
	DefaultPeriod = 10 * time.Second

	// Patience is how many renewals a lease may miss: a Period has so many.
	Patience = 4

	// MaxNodes is how many processes can have node tags of one store.
	MaxNodes = 1000

	// mostInterval bounds what another process may have written as its interval.
	mostInterval = 10 * time.Minute
)

// Options say how a node tag is leased.
type Options struct {
	Tag    string        // the tag that is wanted; "" for any
	First  string        // the tag that is tried first if any will do
	Period time.Duration // how long the lease lasts without being renewed

	// Refuse returns why a store must not be opened, nil if it may be. It is called in the transaction that takes the tag.
	Refuse func(env.Getter) error

	Warn func(message string, err error)
}

// Holder holds the lease of a node tag, and of the work of this process. It is safe for concurrent use.
type Holder struct {
	engine  storage.Engine
	options Options
	tag     string
	key     []byte // of the record of the lease
	session atomic.Pointer[string]
	group   *background.Group
	wake    chan struct{}

	mu    sync.Mutex
	works map[string]bool // that were taken. Guarded by mu.

	// Of the goroutine that renews.
	next   string // the session of a lease that was perhaps taken; or ""
	others map[string]observed
	warned bool
}

// observed is what was seen of the lease of another process.
type observed struct {
	session string
	renewal uint64
	same    int // how often in a row it was seen so, after the first time
}

// Take leases a node tag and renews it until Close. If another process has the tag that is wanted, Take waits until it is seen to be alive, and
// then returns errs.ErrNodeTag, or until its lease is over.
func Take(ctx context.Context, engine storage.Engine, o Options) (*Holder, error) {
	if o.Tag != "" {
		if err := ids.CheckNodeTag(o.Tag); err != nil {
			return nil, fmt.Errorf("%w: %w", errs.ErrOption, err)
		}
	}
	h := &Holder{engine: engine, options: o, group: background.NewGroup(), wake: make(chan struct{}, 1), works: make(map[string]bool), others: make(map[string]observed)}
	session := rand.Text()
	h.session.Store(&session)
	for {
		found, err := h.acquire(ctx)
		if err != nil {
			return nil, err
		}
		if h.tag != "" {
			break
		}
		if err := h.outlast(ctx, found); err != nil {
			return nil, err
		}
	}
	h.key = format.LeaseKey(format.LeaseNode, h.tag)
	h.group.Go(h.renew)
	return h, nil
}

// interval is the time between two renewals.
func (h *Holder) interval() time.Duration { return h.options.Period / Patience }

// acquire takes a tag if it is free, or else returns who has it.
func (h *Holder) acquire(ctx context.Context) (found format.LeaseHolder, err error) {
	tag := ""
	err = h.engine.Update(ctx, true, func(tx storage.Tx) error {
		if err := h.options.Refuse(tx); err != nil {
			return err
		}
		taken, err := holders(tx)
		if err != nil {
			return err
		}
		if tag, found = h.options.Tag, taken[h.options.Tag]; tag == "" {
			tag = free(h.options.First, taken)
		}
		switch {
		case found.Session == *h.session.Load(): // the outcome of the run before was not known
			found = format.LeaseHolder{}
			return nil
		case found.Session != "":
			tag = ""
			return nil
		case len(taken) >= MaxNodes:
			return fmt.Errorf("%w: %d processes have the store open, which is the most", errs.ErrNodeTag, len(taken))
		}
		return h.set(tx, tag, *h.session.Load())
	})
	if err == nil {
		h.tag = tag
	}
	return found, err
}

// set stages that this process has a tag under a session.
func (h *Holder) set(tx storage.Tx, tag, session string) error {
	tx.Set(format.LeaseKey(format.LeaseRenewal, tag), number(1), nil)
	tx.Set(format.LeaseKey(format.LeaseUsed, tag), number(1), nil)
	return env.SetJSON(tx, format.LeaseKey(format.LeaseNode, tag), format.LeaseHolder{Session: session, Tag: tag, Process: process(), Interval: int64(h.interval())})
}

// process says which process this is, to people.
func process() string {
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	return fmt.Sprintf("process %d on %.100s", os.Getpid(), host)
}

// free returns the first tag that nobody has.
func free(first string, taken map[string]format.LeaseHolder) string {
	if _, held := taken[first]; first != "" && !held {
		return first
	}
	for n := 1; ; n++ {
		var letters []byte
		for rest := n; rest > 0; rest = (rest - 1) / 26 {
			letters = append(letters, byte('A'+(rest-1)%26))
		}
		slices.Reverse(letters)
		tag := string(letters)
		if _, held := taken[tag]; !held && ids.CheckNodeTag(tag) == nil {
			return tag
		}
	}
}

// holders reads the leases of node tags, by tag.
func holders(r env.Walker) (map[string]format.LeaseHolder, error) {
	all := make(map[string]format.LeaseHolder)
	prefix := []byte{format.SpaceLeases, format.LeaseNode}
	err := env.Each(r, prefix, format.PrefixEnd(prefix), func(key, value []byte) error {
		_, tag, _ := format.SplitLeaseKey(key)
		holder, err := format.DecodeLeaseHolder(value)
		all[tag] = holder
		return err
	})
	return all, err
}

// holderAt reads the record of a lease. Without one it is zero.
func holderAt(r env.Getter, key []byte) (holder format.LeaseHolder, err error) {
	value, closer, err := r.Get(key)
	if err == storage.ErrNotFound {
		return holder, nil
	}
	if err != nil {
		return holder, err
	}
	holder, err = format.DecodeLeaseHolder(value)
	return holder, errs.First(err, closer.Close())
}

// missed returns how often a lease must be seen unchanged, after the first time, before it is over: in the intervals of this process.
func (h *Holder) missed(holder format.LeaseHolder) int {
	its := min(max(time.Duration(holder.Interval), 0), mostInterval)
	return Patience * int(max((its+h.interval()-1)/h.interval(), 1))
}

// outlast waits until the lease of a tag that another process has is over, and removes it. It returns errs.ErrNodeTag if that process renews it.
func (h *Holder) outlast(ctx context.Context, found format.LeaseHolder) error {
	inUse := fmt.Errorf("%w %q: %s; name another one, or none for any that is free", errs.ErrNodeTag, found.Tag, found.Process)
	before, err := h.renewal(found.Tag)
	if err != nil {
		return err
	}
	tick := time.NewTicker(h.interval())
	defer tick.Stop()
	for range h.missed(found) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		// The other one could commit, too.
		if err := h.engine.Update(ctx, true, func(tx storage.Tx) error {
			tx.Set(format.LeaseKey(format.LeaseOpening, ""), number(1), nil)
			return nil
		}); err != nil {
			return err
		}
		now, err := h.renewal(found.Tag)
		if err != nil {
			return err
		}
		if now != before {
			return inUse
		}
	}
	removed, err := h.remove(ctx, found.Tag, found.Session, before)
	if err == nil && !removed {
		err = inUse
	}
	return err
}

func (h *Holder) renewal(tag string) (uint64, error) {
	n, _, err := env.NumberAt(h.engine, format.LeaseKey(format.LeaseRenewal, tag))
	return n, err
}

// remove removes a lease if it is still as it was seen.
func (h *Holder) remove(ctx context.Context, tag, session string, renewal uint64) (removed bool, err error) {
	key := format.LeaseKey(format.LeaseNode, tag)
	err = h.engine.Update(ctx, true, func(tx storage.Tx) error {
		removed = false
		holder, err := holderAt(tx, key)
		if err != nil {
			return err
		}
		n, _, err := env.NumberAt(tx, format.LeaseKey(format.LeaseRenewal, tag))
		if err != nil || holder.Session != session || n != renewal {
			return err
		}
		tx.Delete(key)
		tx.Delete(format.LeaseKey(format.LeaseRenewal, tag))
		removed = true
		return nil
	})
	return removed, err
}

// Tag returns the node tag.
func (h *Holder) Tag() string { return h.tag }

// Period returns how long the lease lasts if it is not renewed.
func (h *Holder) Period() time.Duration { return h.options.Period }

// Check returns errs.ErrLeaseLost unless the transaction is of a process that has its lease. A transaction for which it returns nil
// conflicts with the removal of the lease.
func (h *Holder) Check(tx storage.Tx) error {
	holder, err := holderAt(tx, h.key)
	if err != nil || holder.Session == *h.session.Load() {
		return err
	}
	select {
	case h.wake <- struct{}{}: // to lease it again, if it is free
	default:
	}
	if holder.Session == "" {
		return fmt.Errorf("%w %q, as it did not renew it in time; it is about to lease it again, and nothing was changed: call again", errs.ErrLeaseLost, h.tag)
	}
	return fmt.Errorf("%w %q, which is that of another one now (%s), and nothing was changed: open the database again", errs.ErrLeaseLost, h.tag, holder.Process)
}

// renew renews the lease until Close, and removes those of processes that do not.
func (h *Holder) renew() {
	ctx := h.group.Context()
	tick := time.NewTicker(h.interval())
	defer tick.Stop()
	wake := h.wake
	for {
		looks := false
		select {
		case <-tick.C:
			looks, wake = true, h.wake
		case <-wake:
			wake = nil // until the next tick
		case <-ctx.Done():
			return
		}
		err := h.again(ctx)
		if err == nil && looks {
			err = h.look(ctx)
		}
		if err != nil {
			clear(h.others) // they may have been cut off, too
		}
		if err != nil && ctx.Err() == nil && !h.warned {
			h.options.Warn("jay: renewing the lease of the node tag "+h.tag, err)
		}
		h.warned = err != nil
	}
}

// again renews the lease. One that was lost it takes again under another session, if nobody has it.
func (h *Holder) again(ctx context.Context) error {
	session := *h.session.Load()
	if h.next == "" {
		h.next = rand.Text()
	}
	taken := false
	err := h.engine.Update(ctx, false, func(tx storage.Tx) error {
		taken = false
		holder, err := holderAt(tx, h.key)
		if err != nil {
			return err
		}
		switch holder.Session {
		case session:
			n, _, err := env.NumberAt(tx, format.LeaseKey(format.LeaseRenewal, h.tag))
			tx.Set(format.LeaseKey(format.LeaseRenewal, h.tag), number(n+1), nil)
			return err
		case h.next: // the outcome of the last time was not known
			taken = true
			return nil
		case "":
			taken = true
			tx.RequireSync()
			return h.set(tx, h.tag, h.next)
		}
		return fmt.Errorf("%w %q: it is that of another one now (%s)", errs.ErrLeaseLost, h.tag, holder.Process)
	})
	if err != nil || !taken {
		return err
	}
	h.options.Warn("jay: the lease of the node tag "+h.tag+" was lost, and taken again", errs.ErrLeaseLost)
	next := h.next
	h.next = ""
	h.forgetWorks()
	h.session.Store(&next)
	return nil
}

// look looks at the leases of the other processes, and removes those that were not renewed.
func (h *Holder) look(ctx context.Context) error {
	all, renewals, err := h.all()
	if err != nil {
		return err
	}
	for tag := range h.others {
		if _, there := all[tag]; !there {
			delete(h.others, tag)
		}
	}
	for tag, holder := range all {
		if tag == h.tag {
			continue
		}
		o := h.others[tag]
		if o.session != holder.Session || o.renewal != renewals[tag] {
			h.others[tag] = observed{session: holder.Session, renewal: renewals[tag]}
			continue
		}
		if o.same++; o.same < h.missed(holder) {
			h.others[tag] = o
			continue
		}
		removed, err := h.remove(ctx, tag, o.session, o.renewal)
		if err != nil {
			return err
		}
		delete(h.others, tag)
		if removed {
			h.options.Warn("jay: the lease of the node tag "+tag+" is over: "+holder.Process+" did not renew it", errs.ErrLeaseLost)
		}
	}
	return nil
}

// all reads all leases of node tags, and how often each was renewed. It takes no snapshot: an engine has few of them, and
// who waits for one cannot renew the lease. Who removes a lease looks in its transaction whether it is still as it was read.
func (h *Holder) all() (all map[string]format.LeaseHolder, renewals map[string]uint64, err error) {
	if all, err = holders(h.engine); err != nil {
		return nil, nil, err
	}
	renewals = make(map[string]uint64)
	for tag := range all {
		if renewals[tag], _, err = env.NumberAt(h.engine, format.LeaseKey(format.LeaseRenewal, tag)); err != nil {
			return nil, nil, err
		}
	}
	return all, renewals, nil
}

// Stop ends the renewals. The lease stays for as long as it lasts.
func (h *Holder) Stop() { h.group.Stop() }

// Close gives back the tag and the work of this process. It stops first.
func (h *Holder) Close(ctx context.Context) error {
	h.Stop()
	h.mu.Lock()
	works := make([]string, 0, len(h.works))
	for work := range h.works {
		works = append(works, work)
	}
	h.mu.Unlock()
	return h.engine.Update(ctx, true, func(tx storage.Tx) error {
		for _, work := range works {
			if err := h.leave(tx, work); err != nil {
				return err
			}
		}
		holder, err := holderAt(tx, h.key)
		if err != nil || holder.Session != *h.session.Load() {
			return err // it is no longer that of this process
		}
		tx.Delete(h.key)
		tx.Delete(format.LeaseKey(format.LeaseRenewal, h.tag))
		return nil
	})
}

// checkWork panics for a name of a work that no key can have: it is the program's own.
func checkWork(work string) string {
	if work == "" || strings.ContainsRune(work, 0) {
		panic(fmt.Sprintf("jay: a work has a name without 00, not %q", work))
	}
	return work
}
