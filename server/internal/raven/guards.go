package raven

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// agreedKeys is how many values a request reads from the coordinator at a time, and
// agreedPasses how often it reads its documents at most.
const (
	agreedKeys   = 64
	agreedPasses = 8
)

// withGuard returns the change vector of a document with the index of its guard.
func withGuard(version string, index uint64) string {
	_, id, _ := strings.Cut(version, "-")
	return version + guardMark + strconv.FormatUint(index, 10) + "-" + id
}

// guardMark separates the version from the index of the guard, in the change vector that a
// cluster-wide session gets: "A:7-id, TRXN:12-id". The session sends it back with its
// writes.
const guardMark = ", TRXN:"

// splitVector returns the version in a change vector, and the index of the guard if it has
// one.
func splitVector(vector string) (version string, index uint64, guarded bool) {
	version, guard, found := strings.Cut(vector, guardMark)
	if !found {
		return vector, 0, false
	}
	number, _, _ := strings.Cut(guard, "-")
	index, err := strconv.ParseUint(number, 10, 63)
	return version, index, err == nil
}

// isClusterWide reports whether documents are read for a cluster-wide session.
func isClusterWide(c *serve.Call) bool {
	return strings.EqualFold(c.Params.Get("txMode"), "ClusterWide")
}

// readWith reads documents by read, in one snapshot, with what belongs to them: included
// documents, guards, and compare-exchange values. Without a cluster all are of the same
// moment.
//
// In a cluster the coordinator has the guards and values, and no snapshot in common with the
// documents. So they are read first, and the documents after them: a document is then as new
// as its guard, or newer. If it is newer, another session has saved meanwhile, and a save that
// compares this guard is refused. The other way round, a save on the older document would pass.
// The keys follow from the documents, which are therefore read again until no key is new.
//
// Where each pass meets other documents, as among the newest while others insert, the last one
// takes the guard of such a document for missing. If it is not, a save on it is refused.
func readWith(c *serve.Call, f *reading, r documentsRequest, read func(*jay.Tx) error) error {
	pass := func() error {
		return c.DB.View(c.Ctx, func(tx *jay.Tx) error {
			if err := read(tx); err != nil {
				return err
			}
			return complete(c, f, tx, r)
		})
	}
	if !isClusterWide(c) && len(r.exchanges) == 0 {
		return pass()
	}
	c.BoundMajority()
	if c.Server.Options.Cluster == nil {
		return pass()
	}
	agreed := make(map[string]*jay.CompareExchangeValue)
	before := c.Held().Held()
	for passes := 1; ; passes++ {
		*f = reading{agreed: agreed, last: passes == agreedPasses}
		if err := pass(); err != nil {
			return err
		}
		if len(f.unread) == 0 {
			return nil
		}
		c.Held().Give(c.Held().Held() - before)
		for keys := range slices.Chunk(f.unread, agreedKeys) {
			values, err := c.DB.CompareExchange().GetMany(c.Ctx, keys...)
			if err != nil {
				return err
			}
			for i, key := range keys {
				if agreed[key] = values[i]; values[i] == nil {
					continue
				}
				if err := c.Take(int64(len(values[i].Value) + len(values[i].Metadata))); err != nil {
					return err
				}
			}
		}
		before = c.Held().Held()
	}
}

// valueOf returns the compare-exchange value of a key, or nil if there is none. In a cluster it
// is the one that was read before the documents; a key that was not is noted, unless this is
// the last pass.
func (f *reading) valueOf(c *serve.Call, tx *jay.Tx, key string) (*jay.CompareExchangeValue, error) {
	if f.agreed != nil {
		v, known := f.agreed[key]
		switch {
		case known:
			return v, nil
		case !f.last:
			f.unread = append(f.unread, key)
			return nil, nil
		case strings.HasPrefix(key, jay.GuardKey("")):
			return nil, nil
		}
	}
	v, err := tx.CompareExchange().Get(c.Ctx, key)
	if serve.IsMissing(err) {
		return nil, nil
	}
	return v, err
}

// complete reads what belongs to the documents that were read.
func complete(c *serve.Call, f *reading, tx *jay.Tx, r documentsRequest) error {
	if err := readIncluded(c, f, tx, r.includes); err != nil {
		return err
	}
	if isClusterWide(c) {
		if err := readGuards(c, f, tx); err != nil {
			return err
		}
	}
	return readExchanges(c, f, tx, r.exchanges)
}

// readGuards reads the indexes of the guards of documents.
func readGuards(c *serve.Call, f *reading, tx *jay.Tx) error {
	f.guards = make(map[*jay.Document]uint64)
	for _, list := range [][]*jay.Document{f.docs, f.included} {
		for _, doc := range list {
			if doc == nil {
				continue
			}
			v, err := f.valueOf(c, tx, jay.GuardKey(doc.ID()))
			if err != nil {
				return err
			}
			if f.guards[doc] = 0; v != nil {
				f.guards[doc] = v.Index
			}
		}
	}
	return nil
}

// readExchanges reads the compare-exchange values whose keys are at the paths in the
// documents that were read.
func readExchanges(c *serve.Call, f *reading, tx *jay.Tx, paths []include) error {
	var refused error
	seen := make(map[string]bool) // missing keys included
	for _, doc := range f.docs {
		if doc == nil {
			continue
		}
		for _, path := range paths {
			path.each(doc.Body(), func(key string) bool {
				if seen[key] || key == "" {
					return true
				}
				if seen[key] = true; len(seen) > maxExchangeKeys {
					refused = serve.TooLarge("the request includes more than %d compare-exchange values", maxExchangeKeys)
					return false
				}
				var v *jay.CompareExchangeValue
				if v, refused = f.valueOf(c, tx, key); v != nil {
					refused = c.Take(2 * int64(len(v.Value)+len(v.Metadata)+len(key)))
					if f.exchanges == nil {
						f.exchanges = make(map[string]*jay.CompareExchangeValue)
					}
					f.exchanges[key] = v
				}
				return refused == nil
			})
			if refused != nil {
				return refused
			}
		}
	}
	return nil
}

// appendExchanges appends the compare-exchange values of a reply.
func (f *reading) appendExchanges(dst []byte) []byte {
	items := make(map[string]exchangeItem, len(f.exchanges))
	for key, v := range f.exchanges {
		items[key] = itemOf(v)
	}
	return append(append(dst, `,"CompareExchangeValueIncludes":`...), serve.MustJSON(items)...)
}

// spliceGuard inserts the index of a guard into the change vector in the text of a
// document.
func spliceGuard(text []byte, doc *jay.Document, index uint64) ([]byte, error) {
	found := gjson.GetBytes(text, `\@metadata.\@change-vector`)
	if found.Str != doc.ChangeVector() || found.Index == 0 {
		return nil, fmt.Errorf("server: the JSON of %q has no change vector", doc.ID())
	}
	spliced := append([]byte(nil), text[:found.Index]...)
	spliced = append(spliced, serve.MustJSON(withGuard(found.Str, index))...)
	return append(spliced, text[found.Index+len(found.Raw):]...), nil
}
