package server

import (
	"net/http"
	"slices"
	"sync"
)

// rejectStore holds the rejects of the last imports.
type rejectStore struct {
	memory *budget

	mu  sync.Mutex
	all []*rejects // oldest first. Guarded by mu.
}

// forget drops the rejects of a deleted database.
func (k *rejectStore) forget(database string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.all[:0]
	for _, r := range k.all {
		if r.of.database != database {
			kept = append(kept, r)
			continue
		}
		k.memory.give(r.taken)
		r.taken = 0
	}
	clear(k.all[len(kept):])
	k.all = kept
}

// rejects holds the records that an import has rejected, one per line.
type rejects struct {
	of    operationID
	most  int
	n     int
	text  []byte
	taken int64 // bytes of the server's budget
}

// open adds an empty list of rejects for an import, in place of the oldest if there are
// too many.
func (k *rejectStore) open(of operationID, most int) *rejects {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := &rejects{of: of, most: most}
	k.all = append(k.all, r)
	if len(k.all) > maxRejectLists {
		k.memory.give(k.all[0].taken)
		k.all[0].taken = 0
		k.all = slices.Delete(k.all, 0, 1)
	}
	return r
}

// add keeps a record. It fails if there are more than the client allows, or too many
// bytes.
func (k *rejectStore) add(r *rejects, text []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case r.n >= r.most:
		return tooLarge("%d records were rejected already, which is the most that was asked for", r.n)
	case len(r.text)+len(text) > maxRejectBytes:
		return tooLarge("the rejected records have more than %d bytes, which is the most that is kept", maxRejectBytes)
	}
	if grown := int64(len(r.text) + len(text) + 1); grown > r.taken && slices.Contains(k.all, r) {
		more := min(max(2*grown, 64<<10), maxRejectBytes+1) - r.taken
		if more > 0 {
			if err := k.memory.take(more); err != nil {
				return err
			}
			r.taken += more
		}
	}
	for _, b := range text { // in valid JSON a line break is white space
		if b == '\n' || b == '\r' {
			b = ' '
		}
		r.text = append(r.text, b)
	}
	r.text = append(r.text, '\n')
	r.n++
	return nil
}

// ownRejects replies with the records that an import has rejected, one per line.
func (c *call) ownRejects() error {
	id, err := c.params.number("operation", 0)
	if err != nil {
		return err
	}
	k := &c.s.rejects
	k.mu.Lock()
	i := slices.IndexFunc(k.all, func(r *rejects) bool { return r.of == operationID{c.database.key, id} })
	var text []byte
	if i >= 0 {
		text = k.all[i].text // bytes that are appended later are beyond its end
	}
	k.mu.Unlock()
	if i < 0 {
		return &problem{status: http.StatusNotFound, kind: typeBadRequest, message: "there are no rejects of this import: those of the last imports are kept"}
	}
	c.reply.Set("Content-Disposition", `attachment; filename="rejects.ndjson"`)
	c.contentType = "application/x-ndjson; charset=utf-8"
	return c.text(http.StatusOK, text)
}
