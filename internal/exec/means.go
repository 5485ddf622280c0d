package exec

import (
	"fmt"
	"io"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// means are what the candidates of an index are found with: see catalog.Means. What is read counts
// as work of the run, so that it ends with its context, however long no candidate is found.
type means struct {
	r    *Run
	held int // bytes
	most int // of them, at a time so far: those are paid for
}

// Get implements storage.Reader.
func (m *means) Get(key []byte) (value []byte, closer io.Closer, err error) {
	if !m.r.pace.Spend(workPerKey) {
		return nil, nil, m.r.pace.Err()
	}
	value, closer, err = m.r.snapshot.Get(key)
	m.r.pace.Spend(len(value))
	return value, closer, err
}

// Iterate implements storage.Reader.
func (m *means) Iterate(lo, hi []byte) (storage.Iterator, error) {
	it, err := m.r.snapshot.Iterate(lo, hi)
	if err != nil {
		return nil, err
	}
	return &pacedIterator{it, &m.r.pace}, nil
}

// Spend implements catalog.Means.
func (m *means) Spend(work int) { m.r.pace.Spend(work) }

// Hold implements catalog.Means.
func (m *means) Hold(bytes int) error {
	m.held += bytes
	more := m.held - m.most
	if more <= 0 {
		return nil
	}
	if limit := m.r.env.MaxQueryBytes; m.held > limit {
		return fmt.Errorf("%w: %w (Options.MaxQueryBytes): look for rarer words, or for fewer", errs.ErrQuery, &query.LimitError{What: "bytes of what an index finds", Limit: limit, Actual: m.held})
	}
	m.most = m.held
	return m.r.payer.Pay(more)
}

// workPerKey is what a step to a key counts, in units of a byte that is looked at.
const workPerKey = 64

// pacedIterator is an iterator whose steps and values are work. It ends with the error of a run that must.
type pacedIterator struct {
	storage.Iterator
	pace *query.Pace
}

func (it *pacedIterator) First() bool { return it.Iterator.First() && it.pace.Spend(workPerKey) }
func (it *pacedIterator) Last() bool  { return it.Iterator.Last() && it.pace.Spend(workPerKey) }
func (it *pacedIterator) Next() bool  { return it.Iterator.Next() && it.pace.Spend(workPerKey) }
func (it *pacedIterator) Prev() bool  { return it.Iterator.Prev() && it.pace.Spend(workPerKey) }
func (it *pacedIterator) SeekGE(key []byte) bool {
	return it.Iterator.SeekGE(key) && it.pace.Spend(workPerKey)
}
func (it *pacedIterator) SeekLT(key []byte) bool {
	return it.Iterator.SeekLT(key) && it.pace.Spend(workPerKey)
}

func (it *pacedIterator) Value() []byte {
	value := it.Iterator.Value()
	it.pace.Spend(len(value))
	return value
}

func (it *pacedIterator) Error() error { return errs.First(it.pace.Err(), it.Iterator.Error()) }
