package feed

import (
	"errors"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// merge reads the change records of several nodes in the order of their etags. A copied
// database has records of the nodes that it was earlier, which get no new ones.
type merge struct {
	heads []head
	moved int // index of the head with the record that next returned last; -1 for none
}

// head is the iterator over the records of one node.
type head struct {
	node uint64
	it   storage.Iterator
	ok   bool
	etag uint64 // etag of the present record, if ok
}

// merge returns a merge of the records after f's position.
func (f *Feed) merge(r storage.Reader) (_ *merge, err error) {
	m := &merge{heads: make([]head, 0, len(f.nodes)), moved: -1}
	for _, node := range f.nodes {
		it, err := r.Iterate(format.ChangeKey(nil, node, f.position+1), format.ChangeKey(nil, node+1, 0))
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.heads = append(m.heads, head{node: node, it: it, ok: it.First()})
		if err := m.heads[len(m.heads)-1].read(); err != nil {
			return nil, errors.Join(err, m.close())
		}
	}
	return m, nil
}

func (h *head) read() (err error) {
	if !h.ok {
		return h.it.Error()
	}
	h.etag, err = format.EtagOf(h.it.Key())
	return err
}

// next returns the next record, or nil at the end. It is valid until the next call.
func (m *merge) next() (node, etag uint64, record []byte, err error) {
	if m.moved >= 0 {
		h := &m.heads[m.moved]
		h.ok = h.it.Next()
		if err := h.read(); err != nil {
			return 0, 0, nil, err
		}
	}
	m.moved = -1
	for i := range m.heads {
		if h := &m.heads[i]; h.ok && (m.moved < 0 || h.etag < m.heads[m.moved].etag) {
			m.moved = i
		}
	}
	if m.moved < 0 {
		return 0, 0, nil, nil
	}
	h := &m.heads[m.moved]
	return h.node, h.etag, h.it.Value(), nil
}

func (m *merge) close() error {
	var err error
	for _, h := range m.heads {
		err = errors.Join(err, h.it.Close())
	}
	return err
}
