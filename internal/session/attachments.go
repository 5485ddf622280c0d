package session

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// entityAttachments are the changes of an entity's attachments that are not saved yet.
type entityAttachments struct {
	changes []*pendingAttachment
	uploads []*attachments.Upload // of the save in progress
}

// pendingAttachment is one change.
type pendingAttachment struct {
	remove      string // the name of the attachment that goes; else
	name        string
	contentType string
	r           io.Reader
	start       int64 // where r began, if it is an io.Seeker
	read        bool  // r was read, and cannot be again
}

// addAttachment adds a change, in the place of one of the same attachment.
func (s *Session) addAttachment(e *entity, p *pendingAttachment) {
	if e.attached == nil {
		e.attached = new(entityAttachments)
	}
	fold := s.db.Env.Rules.Fold
	name := fold(p.name + p.remove)
	e.attached.changes = slices.DeleteFunc(e.attached.changes, func(other *pendingAttachment) bool {
		return fold(other.name+other.remove) == name
	})
	e.attached.changes = append(e.attached.changes, p)
}

// attachmentsOf returns the write of an entity of which only attachments change.
func (s *Session) attachmentsOf(e *entity) *write.Op {
	o := write.TakeOp()
	o.Verb, o.RequestID = write.Attach, e.id
	o.Attached()
	o.KeepRevision, o.Loaded = e.forced > 0, true
	o.Collection, o.InCollection = e.m.Collection, format.FoldName(e.m.Collection)
	if s.optimistic || e.m.Version != nil {
		version := e.doc.ChangeVector()
		o.Expected = &version
	}
	return o
}

// upload writes the contents that a save refers to. endUploads must follow.
func (s *Session) upload(ctx context.Context, writes []*saving) error {
	for _, w := range writes {
		if w.entity == nil || w.entity.attached == nil {
			continue
		}
		if err := s.uploadOf(ctx, w.op, w.entity.attached); err != nil {
			return fmt.Errorf("%s: %w", w.entity, err)
		}
	}
	return nil
}

func (s *Session) uploadOf(ctx context.Context, o *write.Op, all *entityAttachments) error {
	for _, p := range all.changes {
		change := write.AttachmentChange{Remove: p.remove}
		if p.r != nil {
			if p.read {
				return attachments.Named(p.name, fmt.Errorf("%w: an earlier SaveChanges has read its stream, which cannot be read again: store it anew", ids.ErrUsage))
			}
			p.read = true
			u, err := s.db.Upload(ctx, p.r)
			if err != nil {
				return attachments.Named(p.name, attachments.WithNames(err, o.RequestID, p.name))
			}
			u.Shrink()
			all.uploads = append(all.uploads, u)
			change.Upload = u
			change.Entry = format.Attachment{Name: p.name, ContentType: p.contentType, Size: u.Size(), Hash: u.Hash()}
		}
		o.Attached().Changes = append(o.Attached().Changes, change)
	}
	return nil
}

// endUploads ends the uploads of a save. If it was not saved, streams that can go back to where they
// were do.
func (s *Session) endUploads(writes []*saving, saved bool) {
	for _, w := range writes {
		if w.entity == nil || w.entity.attached == nil {
			continue
		}
		all := w.entity.attached
		for _, u := range all.uploads {
			u.Close(saved)
		}
		all.uploads = nil
		for _, p := range all.changes {
			if seeker, ok := p.r.(io.Seeker); ok && p.read && !saved {
				_, err := seeker.Seek(p.start, io.SeekStart)
				p.read = err != nil
			}
		}
	}
}

// StoreAttachment has SaveChanges put an attachment of an entity.
func (s *Session) StoreAttachment(v any, name string, r io.Reader, contentType string) error {
	e, err := s.find(v)
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("%w: Store without a reader", ids.ErrUsage)
	}
	if err := metadata.CheckAttachment(e.id, name, contentType); err != nil {
		return err
	}
	p := &pendingAttachment{name: name, contentType: contentType, r: r}
	if seeker, ok := r.(io.Seeker); ok {
		if p.start, err = seeker.Seek(0, io.SeekCurrent); err != nil {
			return attachments.Named(name, err)
		}
	}
	s.addAttachment(e, p)
	return nil
}

// DeleteAttachment has SaveChanges remove an attachment of an entity.
func (s *Session) DeleteAttachment(v any, name string) error {
	e, err := s.find(v)
	if err != nil {
		return err
	}
	if err := metadata.CheckAttachment(e.id, name, ""); err != nil {
		return err
	}
	s.addAttachment(e, &pendingAttachment{remove: name})
	return nil
}

// Attachments describes the attachments that the document of an entity had when it was loaded or
// saved last.
func (s *Session) Attachments(v any) ([]metadata.Attachment, error) {
	e, err := s.find(v)
	if err != nil || e.doc == nil {
		return nil, err
	}
	return format.DescribeAttachments(e.doc.Header().Attachments), nil
}
