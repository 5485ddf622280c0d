package session

import (
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
)

// isNew reports whether a write stores an entity that the session has not loaded.
func (w *saving) isNew() bool { return w.entity != nil && w.entity.doc == nil }

// once has the commit of writes keep what became of the new entities, which a repeated
// save has in the same order.
func onceOf(r *requests.Request, writes []*saving) *write.Once {
	once := &write.Once{Request: r, Keeps: write.KeepsResults}
	for _, w := range writes {
		if w.isNew() {
			once.Of = append(once.Of, w.op)
		}
	}
	return once
}

// repeated gives the new entities the IDs and versions that an earlier save with the same request ID has
// given them. The session forgets everything: what it holds may differ from what was saved.
func (s *Session) repeated(writes []*saving, again *requests.Repeated) error {
	var kept []requests.Written
	if err := json.Unmarshal(again.Result, &kept); err != nil {
		return fmt.Errorf("save changes: result of a request: %w: %w", errs.ErrCorrupt, err)
	}
	for _, w := range writes {
		if !w.isNew() {
			continue
		}
		if len(kept) == 0 {
			return fmt.Errorf("save changes: result of a request: %w: it lacks entities", errs.ErrCorrupt)
		}
		w.entity.m.SetRepeated(w.entity.value, kept[0].Metadata())
		kept = kept[1:]
	}
	s.Clear()
	return nil
}
