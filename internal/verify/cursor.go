package verify

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

// cursor walks over a range of keys, over several uses of the reader. It passes over
// what cannot be read, and notes it.
type cursor struct {
	v    *verifier
	from []byte // the first key that was not passed yet
	hi   []byte
	done bool

	r  storage.Reader
	it storage.Iterator
	ok bool // it stands on a key
}

func (v *verifier) newCursor(lo, hi []byte) *cursor { return &cursor{v: v, from: lo, hi: hi} }

// open goes on in a use of the reader. close must follow.
func (k *cursor) open(r storage.Reader) error {
	k.r = r
	if k.done {
		k.ok = false
		return nil
	}
	var err error
	if k.it, err = r.Iterate(k.from, k.hi); err != nil {
		k.it = nil
		if !IsDamage(err) {
			return err
		}
		return k.skip(k.from, err)
	}
	k.ok = k.it.First()
	return k.settle()
}

// next moves on to the next key.
func (k *cursor) next() error {
	k.from = append(append(k.from[:0:0], k.it.Key()...), 0)
	k.v.report.Keys++
	k.v.report.Bytes += int64(len(k.it.Key()) + len(k.it.Value()))
	k.ok = k.it.Next()
	return k.settle()
}

// settle looks why the cursor has stopped.
func (k *cursor) settle() error {
	if k.ok {
		return nil
	}
	err := k.it.Error()
	if err == nil {
		k.done = true
		return nil
	}
	if !IsDamage(err) {
		return err
	}
	return k.skip(k.from, err)
}

// close ends a use of the reader.
func (k *cursor) close() error {
	if k.ok {
		k.from = append(k.from[:0:0], k.it.Key()...)
	}
	k.ok = false
	if k.it == nil {
		return nil
	}
	err := k.it.Close()
	k.it = nil
	if IsDamage(err) { // it was noted
		err = nil
	}
	return err
}

// IsDamage reports whether a reader failed because of what it has read.
func IsDamage(err error) bool {
	return errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrUnreadable)
}

// gap is a range of keys that cannot be read. hi is nil for the end.
type gap struct{ lo, hi []byte }

// gapAt returns the gap that a key lies in.
func (v *verifier) gapAt(key []byte) (g gap, found bool) {
	if len(v.gaps) == 0 {
		return g, false
	}
	i := sort.Search(len(v.gaps), func(i int) bool { return bytes.Compare(v.gaps[i].lo, key) > 0 }) - 1
	if i < 0 || v.gaps[i].hi != nil && bytes.Compare(key, v.gaps[i].hi) >= 0 {
		return g, false
	}
	return v.gaps[i], true
}

// gaps are gaps in the order of their beginnings.
type gaps []gap

// add notes a gap. To read what is in it again would take long: Pebble looks for the
// bit that has flipped.
func (all *gaps) add(g gap) {
	if len(*all) >= maxGroups {
		return
	}
	i := sort.Search(len(*all), func(i int) bool { return bytes.Compare((*all)[i].lo, g.lo) > 0 })
	*all = slices.Insert(*all, i, g)
}

// skip passes over what cannot be read, from a key on.
func (k *cursor) skip(from []byte, cause error) error {
	if k.it != nil {
		if err := k.it.Close(); err != nil && !IsDamage(err) {
			return err
		}
		k.it = nil
	}
	from = slices.Clone(from)
	g, known := k.v.gapAt(from)
	if !known {
		to, found, err := NextReadable(k.r, from, k.hi)
		if err != nil {
			return err
		}
		g = gap{from, k.hi}
		until := "the end of the key space"
		if found {
			g.hi, until = to, k.v.describe(to)
		}
		k.v.gaps.add(g)
		k.v.report.Unread++
		k.v.about(Unreadable, from, fmt.Sprintf("the keys from %s up to %s", k.v.describe(from), until), "%s", firstLine(cause))
	}
	if g.hi == nil || k.hi != nil && bytes.Compare(g.hi, k.hi) >= 0 {
		k.done, k.ok = true, false
		return nil
	}
	k.from = g.hi
	var err error
	if k.it, err = k.r.Iterate(k.from, k.hi); err != nil {
		return err
	}
	if k.ok = k.it.First(); k.ok {
		return nil
	}
	k.done = true // it was readable a moment ago, and is no more: a disk that fails
	if err := k.it.Error(); err != nil && !IsDamage(err) {
		return err
	}
	return nil
}

// probes bounds how often one search of NextReadable looks, and finer how many bytes of a key beyond those of
// the first it tells apart.
const (
	probes = 300
	finer  = 3
)

// NextReadable returns the first key from one on, below hi, that can be read, or false if there is
// none. The key at which it begins cannot be read. It halves the range of keys until
// nothing is between what cannot be read and what can. Where several blocks are damaged,
// whole ones between them may be passed over.
func NextReadable(r storage.Reader, from, hi []byte) (key []byte, found bool, err error) {
	// probe returns the first key from at on, if it can be read.
	probe := func(at []byte) (key []byte, found, ok bool, err error) {
		it, err := r.Iterate(at, hi)
		if err != nil {
			if IsDamage(err) {
				return nil, false, false, nil
			}
			return nil, false, false, err
		}
		found = it.First()
		if found {
			key = bytes.Clone(it.Key())
		}
		failure := it.Error()
		if closed := it.Close(); failure == nil {
			failure = closed
		}
		if failure != nil && !IsDamage(failure) {
			return nil, false, false, failure
		}
		return key, found, failure == nil, nil
	}

	end := hi
	if end == nil {
		end = bytes.Repeat([]byte{0xff}, 64)
	}
	// bisect finds a place between a key that cannot be read and end.
	bisect := func(bad, good []byte) (key []byte, found bool, err error) {
		for range probes {
			mid := middle(bad, good)
			mid = mid[:min(len(mid), len(from)+finer)]
			if bytes.Compare(mid, bad) <= 0 || bytes.Compare(mid, good) >= 0 {
				return key, found, nil
			}
			k, some, ok, err := probe(mid)
			if err != nil {
				return nil, false, err
			}
			if !ok {
				bad = mid
				continue
			}
			good = mid
			if some {
				key, found = k, true
			}
		}
		return key, found, nil
	}
	return bisect(from, end)
}

// middle returns a key about halfway between two keys, as fractions to the base of 256.
func middle(a, b []byte) []byte {
	n := max(len(a), len(b)) + 1
	sum := make([]byte, n)
	carry := 0
	for i := n - 1; i >= 0; i-- {
		s := carry
		if i < len(a) {
			s += int(a[i])
		}
		if i < len(b) {
			s += int(b[i])
		}
		sum[i], carry = byte(s), s>>8
	}
	// Halve the sum, whose highest bit is the carry.
	for i := range sum {
		low := int(sum[i]) & 1
		sum[i] = byte(carry<<7) | sum[i]>>1
		carry = low
	}
	sum = bytes.TrimRight(sum, "\x00")
	if bytes.Compare(sum, a) < 0 { // a ends in zeros
		return bytes.Clone(a)
	}
	return sum
}

func firstLine(err error) string {
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte{'\n'})
	if len(line) > 300 {
		line = append(bytes.ToValidUTF8(line[:300:300], nil), "…"...)
	}
	return string(line)
}

// walk calls fn with each key from lo up to hi and its value, which are valid until fn
// returns, and the reader.
func (v *verifier) walk(lo, hi []byte, fn func(r storage.Reader, key, value []byte) error) error {
	k := v.newCursor(lo, hi)
	for !k.done {
		err := v.use(func(r storage.Reader) (err error) {
			if err := k.open(r); err != nil {
				return errs.First(err, k.close())
			}
			defer func() { err = errs.First(err, k.close()) }()
			before := v.report.Bytes
			for n := 0; k.ok && n < stepKeys && v.report.Bytes-before < stepBytes; n++ {
				if err := fn(r, k.it.Key(), k.it.Value()); err != nil {
					return err
				}
				if err := k.next(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := v.pause(); err != nil {
			return err
		}
	}
	return nil
}

// readAll is walk over a key space.
func (v *verifier) readAll(space byte, fn func(r storage.Reader, key, value []byte) error) error {
	return v.walk([]byte{space}, []byte{space + 1}, fn)
}
