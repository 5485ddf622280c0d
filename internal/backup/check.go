package backup

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/storage"
)

// ErrInconsistent means that a restored database contradicts itself.
var ErrInconsistent = fmt.Errorf("%w: what was restored contradicts itself", errs.ErrBackup)

// keySum is a sum over a set of keys and values, in which their order does not matter.
type keySum struct{ n, sum uint64 }

func (s *keySum) add(seed maphash.Seed, key, value []byte) {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(key)
	h.WriteByte(0xff)
	h.Write(value)
	s.n++
	s.sum += h.Sum64()
}

// Check reads everything that follows from documents, and compares it with them: the
// records of changes, memberships, what is due, and the numbers of the collections. Its memory does
// not depend on the number of documents. It returns an ErrInconsistent if they differ.
func Check(ctx context.Context, r storage.Reader) error {
	stored, err := settings.Load(r)
	if err != nil {
		return err
	}
	rules := ids.Rules{Separator: stored.Separator, CaseSensitive: stored.CaseSensitive}
	folded := rules.Fold(stored.Separator)
	seed := maphash.MakeSeed()
	var wanted, found [3]keySum // changes, memberships, what is due
	collections := make(map[string]int64)
	var scratch []byte

	err = each(ctx, r, format.SpaceDocument, func(key, value []byte) error {
		id := string(format.DocumentID(key))
		h, err := derived(value, id, folded, func(key, value []byte) {
			if key[0] == format.SpaceTimes {
				wanted[2].add(seed, key, value)
			} else {
				wanted[1].add(seed, key, value)
			}
		})
		if err != nil {
			return err
		}
		scratch = format.ChangeKey(scratch[:0], h.Node, h.Etag)
		wanted[0].add(seed, scratch, []byte(id))
		collections[format.CollectionKey(string(h.Collection))]++
		return nil
	})
	if err != nil {
		return err
	}
	err = each(ctx, r, format.SpaceChanges, func(key, value []byte) error {
		kind, _, id, err := format.SplitChange(value)
		if err == nil && kind == format.ChangePut {
			found[0].add(seed, key, id)
		}
		return err
	})
	for i, space := range []byte{format.SpaceMembers, format.SpaceTimes} {
		if err == nil {
			err = each(ctx, r, space, func(key, value []byte) error {
				found[i+1].add(seed, key, value)
				return nil
			})
		}
	}
	if err != nil {
		return err
	}
	for i, what := range []string{"records of changes", "memberships", "instants at which something is due"} {
		if wanted[i] != found[i] {
			return fmt.Errorf("%w: there are %d %s, and documents have %d, or others", ErrInconsistent, found[i].n, what, wanted[i].n)
		}
	}
	return checkCounts(r, collections)
}

// checkCounts compares the numbers of documents, if all are counted.
func checkCounts(r storage.Reader, found map[string]int64) error {
	kept, err := counts.All(r)
	if errors.Is(err, counts.ErrNotReady) {
		return nil
	}
	if err != nil {
		return err
	}
	for name, n := range found {
		if kept[name] != n {
			return fmt.Errorf("%w: collection %.100q has %d documents, and its number is %d", ErrInconsistent, name, n, kept[name])
		}
	}
	if len(kept) != len(found) {
		return fmt.Errorf("%w: there are %d collections, and %d numbers", ErrInconsistent, len(found), len(kept))
	}
	return nil
}

// each calls fn with the keys of a space and their values.
func each(ctx context.Context, r storage.Reader, space byte, fn func(key, value []byte) error) (err error) {
	it, err := r.Iterate([]byte{space}, []byte{space + 1})
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := fn(it.Key(), it.Value()); err != nil {
			return fmt.Errorf("key %q: %w", it.Key(), err)
		}
	}
	return it.Error()
}
