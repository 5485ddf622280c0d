package jay_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// onlyReader hides that a reader can seek.
type onlyReader struct{ io.Reader }

type pictured struct {
	ID, Name string
}

// Ensure that attachments of entities, new, changed and unchanged, are saved in one
// write with them, and that the session goes on from what was saved.
func TestSession_Attachments(t *testing.T) {
	db := memory(t, nil)
	s := db.OpenSession(jay.OptimisticConcurrency())
	ann, bob := &pictured{Name: "Ann"}, &pictured{Name: "Bob"}
	must(t, s.Store(ctx, ann))
	must(t, s.Store(ctx, bob))
	must(t, s.Attachments(ann).Store("photo", strings.NewReader("first"), "text/plain"))
	must(t, s.Attachments(ann).Store("Photo", strings.NewReader("photo"), "text/plain"))
	must(t, s.Attachments(ann).Store("note", onlyReader{strings.NewReader("note")}, ""))
	must(t, s.SaveChanges(ctx))
	list, err := s.Attachments(ann).List()
	must(t, err)
	equal(t, len(list), 2)
	equal(t, list[1].Name, "Photo")
	got, err := attached(t, db.Attachments(ann.ID), "photo")
	must(t, err)
	equal(t, string(got), "photo")
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)

	// An entity of which nothing else changes.
	must(t, s.Attachments(bob).Store("cv", strings.NewReader("cv"), ""))
	must(t, s.Attachments(ann).Delete("note"))
	changes, err := s.WhatChanged()
	must(t, err)
	equal(t, len(changes), 2)
	must(t, s.SaveChanges(ctx))
	m, err := s.Metadata(bob)
	must(t, err)
	doc, err := db.Get(ctx, bob.ID)
	must(t, err)
	equal(t, m.ChangeVector, doc.ChangeVector())
	equal(t, len(m.Attachments), 1)
	bob.Name = "Bobby"
	must(t, s.SaveChanges(ctx)) // with the version of the write before
	r, err := s.Attachments(bob).Get(ctx, "cv")
	must(t, err)
	must(t, r.Close())

	// A save that fails stores nothing, and can be repeated where streams can be.
	put(t, db, ann.ID, `{"Name":"overtaken"}`)
	must(t, s.Attachments(ann).Store("again", strings.NewReader("again"), ""))
	must(t, s.Attachments(bob).Store("once", onlyReader{strings.NewReader("once")}, ""))
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) {
		t.Fatalf("a stale save: %v", err)
	}
	equal(t, jaytest.AttachmentCounts(t, db).Attachments, 2)
	must(t, s.Refresh(ctx, ann))
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUsage) {
		t.Fatalf("a stream that was read: %v", err)
	}
	must(t, s.Attachments(bob).Store("once", strings.NewReader("once"), ""))
	must(t, s.SaveChanges(ctx))
	equal(t, jaytest.AttachmentCounts(t, db).Attachments, 4)

	must(t, s.Delete(ann))
	must(t, s.SaveChanges(ctx))
	jaytest.CheckContents(t, db)
	if err := s.Attachments(ann).Delete("x"); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("an entity that the session does not hold: %v", err)
	}
	if err := s.Attachments(bob).Store("", strings.NewReader(""), ""); !errors.Is(err, jay.ErrInvalidAttachment) {
		t.Errorf("an empty name: %v", err)
	}
	if err := s.Attachments(bob).Store("x", nil, ""); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("no reader: %v", err)
	}
}

// Ensure that a save of an attachment does not make the session overwrite what another
// writer has put into the document.
func TestSession_Attachments_OtherWriter(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "pictureds/1", `{"Name":"Ann"}`, jay.InCollection("Pictureds"))
	s := db.OpenSession()
	ann, err := jay.Load[pictured](ctx, s, "pictureds/1")
	must(t, err)
	put(t, db, "pictureds/1", `{"Name":"Anna"}`)
	must(t, s.Attachments(ann).Store("x", strings.NewReader("x"), ""))
	must(t, s.SaveChanges(ctx))
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)
	doc, err := db.Get(ctx, "pictureds/1")
	must(t, err)
	equal(t, string(doc.Body()), `{"Name":"Anna"}`)
	equal(t, len(doc.Metadata().Attachments), 1)
}
