package subs

import (
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Figures are totals over all subscriptions.
type Figures struct {
	Subscriptions, Disabled int64
	Working                 int64  // those with a worker in this process
	Behind                  uint64 // the greatest lag of those that are not disabled, in etags
}

// Measure returns the totals of a snapshot. It reads two records of each subscription, but
// not those of its failed documents.
func (s *Store) Measure(r storage.Reader) (f Figures, err error) {
	newest, _, err := s.feeds.NewestIn(r)
	if err != nil {
		return f, err
	}
	prefix := []byte{format.SpaceSubscription}
	it, err := r.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return f, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; {
		key := it.Key()
		if !format.IsSubscriptionDefinition(key) {
			ok = it.Next()
			continue
		}
		name := string(key[1 : len(key)-2])
		_, p, err := load(r, name)
		if err != nil {
			return f, err
		}
		if f.Subscriptions++; p.Disabled {
			f.Disabled++
		} else {
			f.Behind = max(f.Behind, newest-min(newest, p.Position))
		}
		ok = it.SeekGE(format.PrefixEnd(format.AppendKey(nil, format.SpaceSubscription, name)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.slots {
		if at.worker != nil {
			f.Working++
		}
	}
	return f, it.Error()
}
