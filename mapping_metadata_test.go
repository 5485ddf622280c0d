package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

type article struct {
	ID      string
	Version string `jay:"version"`
	Title   string
	Changed time.Time      `jay:"lastModified"`
	Where   string         `jay:"collection" json:"where"`
	Meta    map[string]any `jay:"metadata"`
}

type page struct {
	ID      string
	Title   string
	Changed time.Time `json:"-" jay:"lastModified"`
	Source  string    `jay:"metadata=Source"`
	Seen    time.Time `jay:"metadata=Seen-At"`
	Tags    []string  `jay:"metadata=tags"`
}

// Ensure that fields tagged as metadata are filled by every way of reading, that custom
// metadata is written from them, and that none of it is in the body.
func TestCollection_MetadataFields(t *testing.T) {
	clock := jaytest.NewClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	articles, err := jay.CollectionOf[article](db, jay.Named("Articles"))
	must(t, err)
	a := &article{Title: "x", Changed: time.Unix(5, 0), Where: "ignored", Meta: map[string]any{"Source": "mail", "n": 1, "at": time.Unix(0, 0)}}
	meta, err := articles.Insert(ctx, a)
	must(t, err)
	equal(t, a.Changed, meta.LastModified)
	equal(t, a.Where, "Articles")
	doc, err := db.Get(ctx, a.ID)
	must(t, err)
	equal(t, string(doc.Body()), `{"Title":"x"}`)
	equal(t, string(doc.Metadata().Custom), `{"Source":"mail","at":"1970-01-01T00:00:00.0000000Z","n":1}`)
	first := a.Changed

	check := func(what string, got *article, err error) {
		t.Helper()
		must(t, err)
		if got.Title != "x" || !got.Changed.Equal(first) || got.Where != "Articles" || got.Version != a.Version || fmt.Sprint(got.Meta) != "map[Source:mail at:1970-01-01T00:00:00.0000000Z n:1]" {
			t.Errorf("%s: got %+v", what, got)
		}
	}
	got, err := articles.Get(ctx, a.ID)
	check("Get", got, err)
	many, err := articles.GetMany(ctx, a.ID)
	check("GetMany", many[0], err)
	got, err = articles.Query().Where(jay.Eq("@metadata.Source", "mail")).First(ctx)
	check("First", got, err)
	page, err := articles.Query().Page(ctx)
	check("Page", page.Items[0], err)
	for got, err := range articles.All(ctx) {
		check("All", got, err)
	}
	got, err = jay.Load[article](ctx, db.OpenSession(jay.WithCollections(articles)), a.ID)
	check("Load", got, err)
	got, err = jay.QueryOf[article](db.OpenSession(jay.WithCollections(articles))).First(ctx)
	check("QueryOf", got, err)

	// A value without custom metadata removes it, and a write sets the time anew.
	clock.Advance(time.Minute)
	a.Meta = nil
	_, err = articles.Put(ctx, a)
	must(t, err)
	equal(t, a.Changed, first.Add(time.Minute))
	got, err = articles.Get(ctx, a.ID)
	must(t, err)
	if got.Meta != nil || !got.Changed.Equal(a.Changed) {
		t.Errorf("got %+v", got)
	}

	// In a transaction the commit sets it. An option overrides the field.
	clock.Advance(time.Minute)
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		a.Meta = map[string]any{"in": "tx"}
		_, err := articles.In(tx).Put(ctx, a)
		must(t, err)
		inside, err := articles.In(tx).Get(ctx, a.ID)
		must(t, err)
		equal(t, fmt.Sprint(inside.Meta)+inside.Where, "map[in:tx]Articles")
		return nil
	}))
	equal(t, a.Changed, first.Add(2*time.Minute))
	_, err = articles.Put(ctx, a, jay.WithMetadata([]byte(`{"by":"option"}`)))
	must(t, err)
	got, err = articles.Get(ctx, a.ID)
	must(t, err)
	equal(t, fmt.Sprint(got.Meta), "map[by:option]")

	// The bulk writer writes custom metadata as well.
	w, err := db.BulkInsert(nil)
	must(t, err)
	b := &article{Title: "bulk", Meta: map[string]any{"Source": "bulk"}}
	must(t, articles.BulkStore(ctx, w, b))
	must(t, w.Close())
	got, err = articles.Get(ctx, b.ID)
	must(t, err)
	equal(t, fmt.Sprint(got.Meta), "map[Source:bulk]")
}

// Ensure that single keys have fields of their own: zero ones are no keys, and what a
// session loads keeps the keys that the type lacks.
func TestCollection_MetadataKeys(t *testing.T) {
	db := memory(t, nil)
	pages, err := jay.CollectionOf[page](db)
	must(t, err)
	p := &page{Title: "x", Source: "mail", Seen: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))}
	_, err = pages.Insert(ctx, p)
	must(t, err)
	if p.Changed.IsZero() {
		t.Error("Insert leaves the time of the write zero")
	}
	custom := func() string {
		t.Helper()
		doc, err := db.Get(ctx, p.ID)
		must(t, err)
		equal(t, string(doc.Body()), `{"Title":"`+p.Title+`"}`)
		return string(doc.Metadata().Custom)
	}
	equal(t, custom(), `{"Source":"mail","Seen-At":"2026-01-02T02:04:05.0000000Z"}`)
	got, err := pages.Get(ctx, p.ID)
	must(t, err)
	if got.Source != "mail" || !got.Seen.Equal(p.Seen) || got.Tags != nil {
		t.Errorf("got %+v", got)
	}

	// Another program spells the instant otherwise, and has keys of its own.
	_, err = db.Put(ctx, p.ID, json.RawMessage(`{"Title":"x"}`), jay.InCollection("Pages"), jay.WithMetadata([]byte(`{"Seen-At":"2026-01-02T03:04:05+01:00","other":[1.50],"Source":"mail"}`)))
	must(t, err)
	s := db.OpenSession()
	e, err := jay.Load[page](ctx, s, p.ID)
	must(t, err)
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)
	e.Tags, e.Source = []string{"new"}, ""
	changed, err = s.HasChanges()
	must(t, err)
	equal(t, changed, true)
	m, err := s.Metadata(e)
	must(t, err)
	const want = `{"other":[1.50],"Seen-At":"2026-01-02T02:04:05.0000000Z","tags":["new"]}`
	equal(t, string(m.Custom), want)
	before := e.Changed
	must(t, s.SaveChanges(ctx))
	equal(t, custom(), want)
	if e.Changed.Before(before) {
		t.Errorf("saved at %v, after %v", e.Changed, before)
	}
	changed, err = s.HasChanges()
	must(t, err)
	equal(t, changed, false)

	// A change of the body alone leaves the metadata as it is; SetMetadata sets the fields.
	e.Title, p.Title = "y", "y"
	must(t, s.SaveChanges(ctx))
	equal(t, custom(), want)
	must(t, s.SetMetadata(e, []byte(`{"Source":"set","other":2}`)))
	equal(t, e.Source, "set")
	if e.Tags != nil {
		t.Errorf("got tags %v, want none", e.Tags)
	}
	e.Tags = []string{"t"}
	must(t, s.SaveChanges(ctx))
	equal(t, custom(), `{"other":2,"Source":"set","tags":["t"]}`)
	must(t, s.SetMetadata(e, []byte(`{}`)))
	must(t, s.SaveChanges(ctx))
	equal(t, custom(), ``)
	if err := s.SetMetadata(e, []byte(`{"Source":5}`)); err == nil || !errors.As(err, new(*jay.DecodeError)) {
		t.Errorf("got %v, want a *DecodeError", err)
	}

	// A new entity of a session.
	p = &page{Title: "z", Source: "session"}
	must(t, s.Store(ctx, p))
	must(t, s.SaveChanges(ctx))
	equal(t, custom(), `{"Source":"session"}`)
	if p.Changed.IsZero() {
		t.Error("SaveChanges leaves the time of the write zero")
	}
}

// Ensure that custom metadata which does not fit its field is the error of one document,
// and ends nothing else.
func TestCollection_MetadataFields_Undecodable(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "pages/1", `{"Title":"x"}`, jay.InCollection("Pages"), jay.WithMetadata([]byte(`{"Source":[1]}`)))
	put(t, db, "pages/2", `{"Title":"x"}`, jay.InCollection("Pages"))
	pages, err := jay.CollectionOf[page](db)
	must(t, err)
	var decode *jay.DecodeError
	if _, err := pages.Get(ctx, "pages/1"); !errors.As(err, &decode) || decode.ID != "pages/1" || !strings.Contains(err.Error(), "@metadata.Source") {
		t.Errorf("got %v, want a *DecodeError", err)
	}
	found, err := pages.Query().All(ctx)
	if !errors.As(err, &decode) || len(found) != 1 {
		t.Errorf("got %d answers and %v, want 1 and a *DecodeError", len(found), err)
	}
}

// Ensure that a type whose tags make no sense is refused, and that a query of a member
// that holds metadata is, with the path to ask for.
func TestCollection_MetadataFields_Refused(t *testing.T) {
	db := memory(t, nil)
	for name, err := range map[string]error{
		"text for a time": kept(jay.CollectionOf[struct {
			ID string
			T  string `jay:"lastModified"`
		}](db, jay.Named("X"))),
		"two times": kept(jay.CollectionOf[struct {
			ID   string
			T, U time.Time `jay:"lastModified"`
		}](db, jay.Named("X"))),
		"number for a collection": kept(jay.CollectionOf[struct {
			ID string
			C  int `jay:"collection"`
		}](db, jay.Named("X"))),
		"list for an object": kept(jay.CollectionOf[struct {
			ID string
			M  []string `jay:"metadata"`
		}](db, jay.Named("X"))),
		"both": kept(jay.CollectionOf[struct {
			ID string
			M  map[string]string `jay:"metadata"`
			K  string            `jay:"metadata=K"`
		}](db, jay.Named("X"))),
		"the same key twice": kept(jay.CollectionOf[struct {
			ID   string
			K, L string `jay:"metadata=K"`
		}](db, jay.Named("X"))),
		"a key of Jay's": kept(jay.CollectionOf[struct {
			ID string
			K  string `jay:"metadata=@change-vector"`
		}](db, jay.Named("X"))),
		"no key": kept(jay.CollectionOf[struct {
			ID string
			K  string `jay:"metadata="`
		}](db, jay.Named("X"))),
	} {
		if !errors.Is(err, jay.ErrType) {
			t.Errorf("%s: got %v, want ErrType", name, err)
		}
	}
	articles, err := jay.CollectionOf[article](db, jay.Named("Articles"))
	must(t, err)
	for field, want := range map[string]string{"Changed": "@metadata.@last-modified", "where": "@metadata.@collection", "Meta": "@metadata.KEY", "Meta.Source": "@metadata.KEY", "Version": "@metadata.@change-vector"} {
		if _, err := articles.Query().Where(jay.Eq(field, "x")).All(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ErrQuery with %s", field, err, want)
		}
	}
	declared, err := articles.DeclaredIndexes()
	must(t, err)
	equal(t, len(declared), 0)
}

func kept[T any](_ *jay.Collection[T], err error) error { return err }
