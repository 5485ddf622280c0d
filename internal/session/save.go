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

// inDoubtSave is a save whose outcome is not known.
type inDoubtSave struct {
	writes    []*saving
	exchanges []*write.Op    // changes of compare-exchange values
	db        *core.Database // on which it was made, and which cannot resolve it
	ceiling   uint64         // the highest etag that db could assign
}

// saving is one write of a SaveChanges: of an entity or a deletion.
type saving struct {
	op       *write.Op
	entity   *entity
	deletion *deletion
	kept     bool // the body stays as it is, only the metadata changes
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
	if err != nil || !changed && !e.force && e.attached == nil {
		return saving{}, err
	}
	if !changed && e.attached != nil {
		return s.savingOfAttachments(e), nil
	}
	if !changed {
		return s.savingOfRevision(e), nil
	}
	kept := e.doc != nil && &body.Body[0] == &e.doc.JSON()[0]
	o := write.TakeOp()
	o.Verb, o.RequestID, o.Body = write.Put, e.id, body.Body
	if !kept {
		o.SetBody(e.m, body)
	}
	o.Collection, o.Prefix = e.m.Collection, e.m.Prefix
	o.Drawn, o.Loaded = e.made, e.doc != nil
	o.Custom, o.KeepRevision = custom, e.force
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
	e.force = false
	if o.Verb.KeepsVersion() {
		savedRevision(e, o)
		return
	}
	known := e.id == o.ID && e.foldedID == o.FoldedID // to the session and to the value
	e.id, e.foldedID = o.ID, o.FoldedID
	body := o.JSON
	if o.Verb.KeepsBody() {
		body = e.doc.JSON() // with which the struct is compared: another writer may have changed the stored one
	}
	*doc = docs.Make(s.db.Env.Origins, o.FoldedID, o.Header, body)
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

// isInDoubt reports whether a save in doubt may have written an entity.
func (s *Session) isInDoubt(e *entity) bool {
	if s.inDoubt == nil {
		return false
	}
	for _, w := range s.inDoubt.writes {
		if w.entity == e {
			return true
		}
	}
	return false
}

// errInDoubt is returned on a handle that cannot resolve a save in doubt.
var errInDoubt = fmt.Errorf("%w: what became of the last save shows when the database is opened again: see Session.Reattach", storage.ErrFailed)

// resolveElsewhere resolves a save in doubt if the session has moved to a handle that can.
func (s *Session) resolveElsewhere(ctx context.Context) error {
	if s.inDoubt == nil || s.inDoubt.db == s.db {
		return nil
	}
	return s.resolveInDoubt(ctx)
}

// resolveInDoubt resolves a save in doubt. The handle that failed cannot: it shows the
// documents of the save whether or not they are on disk.
func (s *Session) resolveInDoubt(ctx context.Context) error {
	a := s.inDoubt
	if a == nil {
		return nil
	}
	if a.db == s.db {
		if err := s.db.Env.Enter(); err != nil {
			return err
		}
		s.db.Env.Exit()
		return errInDoubt
	}
	done, survived, err := s.committedOf(ctx, a)
	if err != nil {
		return fmt.Errorf("find out whether the last save survived: %w", err)
	}
	if err := s.clusterResolved(ctx, a, survived); err != nil {
		return fmt.Errorf("find out whether the last save survived: %w", err)
	}
	for _, w := range done {
		if w.deletion != nil {
			s.dropDeletion(w.deletion)
		} else {
			s.saved(w, new(docs.Document))
		}
	}
	s.inDoubt = nil
	s.finishDeletions()
	return nil
}

// committedOf returns the writes of a save in doubt that need no repetition: all of
// them or none. Of a save that had only deletions and is not known to have
// survived, it returns those whose document is missing.
func (s *Session) committedOf(ctx context.Context, a *inDoubtSave) (done []*saving, survived bool, err error) {
	switch survived, err = s.survived(ctx, a); {
	case err != nil:
		return nil, false, err
	case survived:
		return a.writes, true, nil
	case slices.ContainsFunc(a.writes, func(w *saving) bool { return w.entity != nil }):
		return nil, false, nil
	}
	for _, w := range a.writes {
		found, err := s.db.Exists(ctx, w.deletion.id)
		if err != nil {
			return nil, false, err
		}
		if !found {
			done = append(done, w)
		}
	}
	return done, false, nil
}

// survived reports whether a save in doubt was written. Its documents would have
// change vectors that no other write can have, and one of them is proof for all, as
// the write was atomic. If all of them were overwritten since, or all writes were
// deletions, which have etags too, the newest etag that the reopened database found
// decides.
func (s *Session) survived(ctx context.Context, a *inDoubtSave) (bool, error) {
	if survived, err := s.exchangesSurvived(ctx, a); survived || err != nil {
		return survived, err
	}
	first := uint64(0)
	for _, w := range a.writes {
		etag := w.op.Header.Etag
		if w.op.Outcome == write.Unstaged || w.entity != nil && etag == 0 {
			return false, nil // it failed before all was staged
		}
		if first == 0 {
			first = etag
		}
		if w.entity == nil {
			continue
		}
		doc, err := s.db.Get(ctx, w.op.ID)
		if err == nil && doc.ChangeVector() == a.db.Env.ChangeVector(w.op.Header.Node, etag) {
			return true, nil
		}
		if err != nil && !errors.Is(err, errs.ErrNotFound) {
			return false, err
		}
	}
	if s.db.Env.Engine.Shared() {
		// Others write between first and the ceiling, too.
		return false, fmt.Errorf("%w: nothing that the save has written is there, and others may have overwritten it", storage.ErrUnknownOutcome)
	}
	// Only the failed handle can have written etags between first and the ceiling.
	return first > 0 && s.db.Reserved.Newest() >= first && s.db.Reserved.Newest() <= a.ceiling, nil
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
		ops[0].Once = s.once(r, writes)
	}
	if err := s.db.Write(ctx, ops); err != nil {
		if again := requests.Repetition(err); again != nil {
			return s.repeated(writes, again)
		}
		if errors.Is(err, storage.ErrUnknownOutcome) {
			s.doubt(writes, exchanges)
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
