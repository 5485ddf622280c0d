package leases

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func workKey(work string) []byte { return format.LeaseKey(format.LeaseWork, checkWork(work)) }

// Do reports whether this process does a work, which it takes if no live process has it. It keeps the work until Leave, Close or the loss of its
// lease. While it keeps it, Do costs one look-up.
func (h *Holder) Do(ctx context.Context, work string) (bool, error) { return h.take(ctx, work, false) }

// Seize is Do, and takes the work from a process that has it.
func (h *Holder) Seize(ctx context.Context, work string) error {
	mine, err := h.take(ctx, work, true)
	if err == nil && !mine {
		err = fmt.Errorf("%w %q: call again", errs.ErrLeaseLost, h.tag)
	}
	return err
}

// Does reports whether this process has a work, without taking it.
func (h *Holder) Does(work string) (bool, error) { return h.has(h.engine, work) }

// DoesIn is Does for a transaction, which commits only if that stays so.
func (h *Holder) DoesIn(tx storage.Tx, work string) (bool, error) { return h.has(tx, work) }

func (h *Holder) has(r env.Getter, work string) (bool, error) {
	holder, err := holderAt(r, workKey(work))
	return err == nil && holder.Session == *h.session.Load(), err
}

func (h *Holder) take(ctx context.Context, work string, seize bool) (mine bool, err error) {
	key := workKey(work)
	holder, err := holderAt(h.engine, key)
	if err != nil || holder.Session == *h.session.Load() {
		return err == nil, err
	}
	if !seize {
		if live, err := isLive(h.engine, holder); live || err != nil {
			return false, err
		}
	}
	h.mu.Lock()
	h.works[work] = true // before the commit, whose outcome may not be known
	h.mu.Unlock()
	session := *h.session.Load()
	err = h.engine.Update(ctx, true, func(tx storage.Tx) error {
		mine = false
		holder, err := holderAt(tx, key)
		if err != nil || holder.Session == session {
			mine = err == nil
			return err
		}
		if !seize {
			if live, err := isLive(tx, holder); live || err != nil {
				return err
			}
		}
		own, err := holderAt(tx, h.key)
		if err != nil || own.Session != session { // the lease was lost
			return err
		}
		mine = true
		return env.SetJSON(tx, key, format.LeaseHolder{Session: session, Tag: h.tag, Process: process()})
	})
	return mine && err == nil, err
}

// isLive reports whether the lease of a holder of a work is there.
func isLive(r env.Getter, holder format.LeaseHolder) (bool, error) {
	if holder.Session == "" {
		return false, nil
	}
	node, err := holderAt(r, format.LeaseKey(format.LeaseNode, holder.Tag))
	return err == nil && node.Session == holder.Session, err
}

// Leave gives back a work, if this process has it.
func (h *Holder) Leave(ctx context.Context, work string) error {
	err := h.engine.Update(ctx, false, func(tx storage.Tx) error { return h.leave(tx, work) })
	if err == nil {
		h.mu.Lock()
		delete(h.works, work)
		h.mu.Unlock()
	}
	return err
}

// leave stages that a work is given back.
func (h *Holder) leave(tx storage.Tx, work string) error {
	key := workKey(work)
	holder, err := holderAt(tx, key)
	if err == nil && holder.Session == *h.session.Load() {
		tx.Delete(key)
	}
	return err
}

// Dismiss stages that whoever has a work has it no longer.
func Dismiss(tx storage.Tx, work string) { tx.Delete(workKey(work)) }

// forgetWorks forgets the works of a session that is gone.
func (h *Holder) forgetWorks() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.works)
}
