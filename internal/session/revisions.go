package session

import (
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
)

// revisionOf returns the write that keeps a revision of an entity without changes.
func (s *Session) revisionOf(e *entity) *write.Op {
	o := write.TakeOp()
	o.Verb, o.RequestID, o.Loaded = write.Keep, e.id, true
	o.Collection, o.InCollection = e.m.Collection, format.FoldName(e.m.Collection)
	if s.optimistic || e.m.Version != nil {
		version := e.doc.ChangeVector()
		o.Expected = &version
	}
	return o
}

// savedRevision records that the document of an entity is a revision. If it has another
// version than the one that was loaded, the session goes on from that.
func savedRevision(e *entity, o *write.Op) {
	if h := e.doc.Header(); h.Etag == o.Header.Etag && h.Node == o.Header.Node {
		doc := *e.doc // others may share it
		doc.SetRevision(o.Header.Revision)
		e.doc = &doc
	}
}

// ForceRevision is the method of a session of package jay.
func (s *Session) ForceRevision(v any) error {
	e, err := s.find(v)
	if err != nil {
		return err
	}
	e.forced++
	return nil
}
