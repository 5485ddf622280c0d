package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// saving is one write of a SaveChanges: of an entity or a deletion.
type saving struct {
	op       *write.Op
	entity   *entity
	deletion *deletion
	kept     bool   // the body stays as it is, only the metadata changes
	carried  *asked // of the entity, if the save is in doubt; else nil
}

// collect returns what is to be written.
func (s *Session) collect() ([]*saving, error) {
	s.order = slices.DeleteFunc(s.order, func(e *entity) bool { return e.evicted })
	savings, err := s.savings(s.order)
	if err != nil {
		return nil, err
	}
	var requests []*saving
	writes := make([]*saving, 0, len(s.deletes)+len(savings))
	for _, d := range s.deletes {
		w, err := s.savingOfDeletion(d)
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	for i, e := range s.order {
		switch w := &savings[i]; {
		case w.op == nil:
		case e.foldedID == "":
			requests = append(requests, w)
		default:
			writes = append(writes, w)
		}
	}
	return append(writes, requests...), nil
}

// savings returns the write of each of entities, without an op for one that
// needs none.
func (s *Session) savings(entities []*entity) ([]saving, error) {
	part := 1
	for _, e := range entities {
		part = max(part, e.m.ChunkSize(len(entities)))
	}
	out := make([]saving, len(entities))
	err := parallel.Do(len(entities), part, func(lo, hi int) error {
		c := codec.NewEncoder(hi - lo)
		defer c.Release()
		for i := lo; i < hi; i++ {
			var err error
			if out[i], err = s.savingOf(c, entities[i]); err != nil {
				return fmt.Errorf("%s: %w", entities[i], err)
			}
		}
		return nil
	})
	return out, err
}

// savingOfDeletion returns the write of a deletion.
func (s *Session) savingOfDeletion(d *deletion) (*saving, error) {
	if d.entity != nil {
		if err := d.entity.checkVersion(d.version); err != nil {
			return nil, fmt.Errorf("delete %s: %w", d.entity, err)
		}
	}
	o := &write.Op{Request: write.Request{Verb: write.Delete, RequestID: d.id}}
	if e := d.entity; e != nil {
		o.Collection, o.InCollection = e.m.Collection, format.FoldName(e.m.Collection)
		if e.doc != nil && (s.optimistic || e.m.Version != nil) {
			version := e.doc.ChangeVector()
			o.Expected = &version
		}
	}
	return &saving{op: o, deletion: d}, nil
}

// checkVersion returns a *ConflictError if the version field of an entity, which holds
// version, was changed to another version than the loaded one: that of a form, say,
// which was filled in when the document had that version. It could not be
// passed on as the expected version of the write: if the document has it meanwhile, the
// other fields of the entity may still be those of the loaded one. An empty field
// means the loaded version.
func (e *entity) checkVersion(version string) error {
	if e.m.Version == nil || e.doc == nil || version == "" {
		return nil
	}
	if loaded := e.doc.ChangeVector(); loaded != version {
		return &metadata.ConflictError{ID: e.id, Expected: version, Actual: loaded}
	}
	return nil
}

// String names an entity, for errors.
func (e *entity) String() string { return fmt.Sprintf("%s %q", e.m.Type, errs.Shorten(e.id)) }

// savingOf returns the write of an entity, or none if it needs none.
func (s *Session) savingOf(c *codec.Encoder, e *entity) (saving, error) {
	if id := e.m.GetID(e.value); id != e.id {
		return saving{}, fmt.Errorf("%w: its id field was changed to %q; an id that a session has given or loaded stays", ids.ErrUsage, errs.Shorten(id))
	}
	if err := e.checkVersion(e.m.GetVersion(e.value)); err != nil {
		return saving{}, err
	}
	custom, err := e.customNow()
	if err != nil {
		return saving{}, err
	}
	body, changed, err := s.changed(c, e, custom)
	if err != nil || !changed && e.forced == 0 && e.attached == nil {
		return saving{}, err
	}
	switch {
	case !changed && e.attached != nil:
		return saving{op: s.attachmentsOf(e), entity: e, kept: true}, nil
	case !changed:
		return saving{op: s.revisionOf(e), entity: e, kept: true}, nil
	}
	kept := e.doc != nil && &body.Body[0] == &e.doc.JSON()[0]
	o := write.TakeOp()
	o.Verb, o.RequestID, o.Body = write.Put, e.id, body.Body
	if !kept {
		o.SetBody(e.m, body)
	}
	o.Collection, o.Prefix = e.m.Collection, e.m.Prefix
	o.Drawn, o.Loaded = e.made, e.doc != nil
	o.Custom, o.KeepRevision = custom, e.forced > 0
	if o.Custom == nil && e.doc != nil {
		h := e.doc.Header()
		o.Kept, o.KeptTimed = h.Custom, h.Timed
	}
	if e.doc == nil && e.custom == nil { // it may replace a document that the session has not loaded
		o.KeepExpires, o.KeepRefresh = e.m.KeepsDue()
	}
	switch {
	case e.doc == nil && (e.made || e.foldedID == ""):
		o.Verb = write.Insert
	case s.optimistic || e.m.Version != nil:
		version := e.version
		if e.doc != nil {
			version = e.doc.ChangeVector()
		}
		o.Expected = &version
	}
	return saving{op: o, entity: e, kept: kept}, nil
}

// changed returns the JSON of an entity and reports whether it must be written. If
// only its metadata must be, the JSON is that of the document, with the members
// that the struct has no field for.
func (s *Session) changed(c *codec.Encoder, e *entity, custom []byte) (body codec.Encoded, changed bool, err error) {
	if body, err = c.Encode(e.m, e.value, s.db.Env.Limits); err != nil || e.doc == nil {
		return body, true, err
	}
	now, err := s.strip(e.m, body)
	if err != nil {
		return codec.Encoded{}, false, err
	}
	if !bytes.Equal(now, e.doc.JSON()) {
		// Another program may have written the document with other members or in
		// another order: compare what the struct makes of it.
		if e.loaded == nil {
			if e.loaded, err = s.reencode(e); err != nil {
				return codec.Encoded{}, false, err
			}
		}
		if !bytes.Equal(now, e.loaded) {
			return body, true, nil
		}
	}
	return codec.Encoded{Body: e.doc.JSON(), Stored: true}, custom != nil && !bytes.Equal(docs.OrObject(e.doc.Header().Custom), custom), nil
}

// customNow returns the custom metadata that SaveChanges has to give the document of an
// entity, nil for what it has. Fields that hold metadata count if they were changed;
// keys that the type has no field for stay.
func (e *entity) customNow() ([]byte, error) {
	if !e.m.Meta.WritesCustom() {
		return e.custom, nil
	}
	base := e.custom
	if base == nil && e.doc != nil {
		base = e.doc.Header().Custom
	}
	if same, err := e.m.SameCustom(e.value, base); same || err != nil {
		return e.custom, err
	}
	return e.m.Custom(e.value, base)
}

// strip returns the part of a struct's JSON that is stored.
func (s *Session) strip(m *codec.Mapping, e codec.Encoded) ([]byte, error) {
	if e.Stored {
		return e.Body, nil
	}
	scanned, err := metadata.Scan(e.Body, s.db.Env.Limits, m.Drop...)
	return scanned.Body, err
}

// reencode returns what would be stored of an entity as it was loaded.
func (s *Session) reencode(e *entity) ([]byte, error) {
	fresh := reflect.New(e.m.Type).Interface()
	if err := core.DecodeDocument(e.m, e.doc, fresh); err != nil {
		return nil, err
	}
	c := codec.NewEncoder(1)
	defer c.Release()
	body, err := c.Encode(e.m, fresh, s.db.Env.Limits)
	if err != nil {
		return nil, err
	}
	return s.strip(e.m, body)
}

// saved records that a write is done, in doc.
func (s *Session) saved(w *saving, doc *docs.Document) {
	if w.entity == nil {
		return
	}
	e, o := w.entity, w.op
	e.forced = 0
	if o.Verb.KeepsVersion() {
		savedRevision(e, o)
		return
	}
	known := e.id == o.ID && e.foldedID == o.FoldedID // to the session and to the value
	e.id, e.foldedID = o.ID, o.FoldedID
	body, header := o.JSON, o.Header
	if o.Verb.KeepsBody() { // with these the struct is compared: another writer may have changed the stored ones
		body, header.Custom, header.Timed = e.doc.JSON(), e.doc.Header().Custom, e.doc.Header().Timed
	}
	*doc = docs.Make(s.db.Env.Origins, o.FoldedID, header, body)
	e.doc = doc
	e.made, e.custom, e.loaded, e.attached = false, nil, nil, nil
	if e.evicted || known && e.m.Version == nil && e.m.Meta == nil {
		return
	}
	if other := s.byID[e.foldedID]; other != e {
		if other != nil {
			s.forget(other) // another writer has deleted its document: the ID now belongs to another one
		}
		s.byID[e.foldedID] = e
	}
	version := ""
	if e.m.Version != nil {
		version = doc.ChangeVector()
	}
	e.m.SetIdentity(e.value, e.id, version)
	_ = e.m.SetMeta(e.value, metadata.Time(o.Header.Modified), doc.Collection(), nil, false) // only decoding can fail
}

func (s *Session) dropDeletion(done *deletion) {
	s.deletes = slices.DeleteFunc(s.deletes, func(d *deletion) bool { return d == done })
}

// finishDeletions gives deletions of entities the IDs that were made for them, and
// drops those of entities that were never saved.
func (s *Session) finishDeletions() {
	s.deletes = slices.DeleteFunc(s.deletes, func(d *deletion) bool { return d.entity != nil && d.entity.doc == nil })
	for _, d := range s.deletes {
		if d.entity != nil {
			d.id, d.foldedID = d.entity.id, d.entity.foldedID
		}
	}
}

// SaveChanges is the method of a session of package jay. r makes it happen once; nil is no request.
func (s *Session) SaveChanges(ctx context.Context, r *requests.Request) error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := s.resolveInDoubt(ctx); err != nil {
		return fmt.Errorf("save changes: %w", err)
	}
	writes, err := s.collect()
	if err != nil {
		return fmt.Errorf("save changes: %w", err)
	}
	if s.db.Owner != nil && (len(writes) > 0 || s.cluster.changesValues()) {
		// The owner's answers lack what the session would go on from. The engine says why it does not write.
		err := s.db.Env.Engine.Update(ctx, false, func(storage.Tx) error { return nil })
		return fmt.Errorf("save changes: %w", errs.First(err, storage.ErrReadOnly))
	}
	ops := make([]*write.Op, len(writes))
	for i, w := range writes {
		ops[i] = w.op
	}
	whole := false
	defer func() { s.endUploads(writes, whole) }() // streams may panic
	if err := s.upload(ctx, writes); err != nil {
		return fmt.Errorf("save changes: %w", err)
	}
	exchanges := s.clusterOps(writes)
	if ops = append(ops, exchanges...); r != nil && len(ops) > 0 {
		ops[0].Once = onceOf(r, writes)
	}
	if err := s.db.Write(ctx, ops); err != nil {
		if again := requests.Repetition(err); again != nil {
			return s.repeated(writes, again)
		}
		if errors.Is(err, storage.ErrUnknownOutcome) {
			s.doubt(writes, exchanges, write.UndecidedOf(err))
		}
		return fmt.Errorf("save changes: %w", err)
	}
	whole = true
	s.endUploads(writes, whole)
	s.clusterSaved(writes)
	docs := make([]docs.Document, len(writes))
	for i, w := range writes {
		s.saved(w, &docs[i])
		w.op.Release()
	}
	s.deletes = nil
	return nil
}
