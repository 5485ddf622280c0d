package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

type event struct {
	ID    string
	At    time.Time `jay:"index"`
	Done  *time.Time
	Seen  []time.Time `jay:"index"`
	Parts []eventPart
	Extra map[string]time.Time
	Any   any
	Local localTime
	Note  string
}

type eventPart struct {
	From  time.Time
	Pages []struct{ Read time.Time } `json:",omitempty"`
}

// localTime marshals itself.
type localTime struct{ time.Time }

func (l localTime) MarshalJSON() ([]byte, error) { return json.Marshal(l.Format("15:04")) }

func (l *localTime) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	var err error
	l.Time, err = time.Parse("15:04", text)
	return err
}

// Ensure that a range from midnight finds what happened half a second later, and that
// ten o'clock UTC is not at or after eleven because it is noon elsewhere.
func TestDates_Typed_FractionsAndZones(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		db := memory(t, nil)
		events := collectionOf[event](t, db)
		if indexed {
			must(t, events.EnsureIndexes(ctx))
		}
		half := time.Date(2026, 1, 1, 0, 0, 0, 500e6, time.UTC)
		noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.FixedZone("CEST", 7200))
		for _, e := range []*event{{ID: "e/half", At: half}, {ID: "e/noon", At: noon, Seen: []time.Time{half, noon}, Local: localTime{noon}}} {
			putEvent(t, events, e)
		}
		for _, tt := range []struct {
			cond jay.Condition
			want string
		}{
			{jay.Ge("At", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), "[e/half e/noon]"},
			{jay.Ge("At", time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC)), "[]"},
			{jay.Eq("At", noon.UTC()), "[e/noon]"},
			{jay.Eq("At", "2026-01-01T10:00:00Z"), "[e/noon]"},
			{jay.And(jay.Not(jay.Or(jay.Eq("At", noon)))), "[e/half]"},
			{jay.In("At", noon, half), "[e/half e/noon]"},
			{jay.Between("At", noon, noon), "[e/noon]"},
			{jay.Eq("Seen", half), "[e/noon]"},
			{jay.Eq("Seen[]", half), "[e/noon]"},
			{jay.Eq("Seen[0]", half), "[e/noon]"},
			{jay.Eq("Done", nil), "[e/half e/noon]"},
			{jay.StartsWith("At", "2026-01-01T10"), "[e/noon]"},
			{jay.Eq("Local", "12:00"), "[e/noon]"},
		} {
			found, err := events.Query().Where(tt.cond).OrderBy("At").All(ctx)
			ids := []string{}
			for _, e := range found {
				ids = append(ids, e.ID)
			}
			if err != nil || fmt.Sprint(ids) != tt.want {
				t.Errorf("indexed %v, %s: got %v, %v, want %s", indexed, events.Query().Where(tt.cond), ids, err, tt.want)
			}
		}
		e, err := events.Query().Where(jay.Ge("At", half)).OrderBy("-At").Explain(ctx)
		must(t, err)
		if plan := strings.Join(e.Plan, "; "); indexed != strings.Contains(plan, `index "At", one range, backwards`) {
			t.Errorf("indexed %v: %s", indexed, plan)
		}
		if want := "from events where At as date >= '2026-01-01T00:00:00.5000000Z' order by At as date desc"; e.Query != want {
			t.Errorf("got %s, want %s", e.Query, want)
		}
	}
}

// Ensure that conditions on the elements of an array know which of their fields are times.
func TestDates_Typed_Elements(t *testing.T) {
	db := memory(t, nil)
	events := collectionOf[event](t, db)
	ten := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	page := struct{ Read time.Time }{ten}
	putEvent(t, events, &event{ID: "e/1", Parts: []eventPart{{From: ten, Pages: []struct{ Read time.Time }{page}}}})
	for _, tt := range []struct {
		cond jay.Condition
		want int64
	}{
		{jay.ElemMatch("Parts", jay.Ge("From", "2026-01-01T12:00:00+02:00")), 1},
		{jay.ElemMatch("Parts", jay.Gt("From", "2026-01-01T11:59:00+02:00")), 1},
		{jay.ElemMatch("Parts", jay.Gt("From", "2026-01-01T12:00:00+02:00")), 0},
		{jay.ElemMatch("Parts", jay.In[any]("From", ten, "2026-01-01T09:00:00Z")), 1},
		{jay.ElemMatch("Parts", jay.ElemMatch("Pages", jay.Eq("Read", "2026-01-01T12:00:00.0+02:00"))), 1},
		{jay.ElemMatch("Parts[]", jay.Not(jay.Between("From", "2026-01-01T01:00:00-09:00", ten))), 0},
	} {
		if n, err := events.Query().Where(tt.cond).Count(ctx); n != tt.want || err != nil {
			t.Errorf("%v: got %d, %v, want %d", tt.cond, n, err, tt.want)
		}
	}
	if _, err := events.Query().Where(jay.ElemMatch("Parts", jay.Ge("From", "2026-01-01"))).Count(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("text that is no instant: got %v", err)
	}
}

// Ensure that a time is compared with nothing but times, text of RFC 3339 and null.
func TestDates_Typed_Refused(t *testing.T) {
	db := memory(t, nil)
	events := collectionOf[event](t, db)
	for _, c := range []jay.Condition{
		jay.Ge("At", "2026-01-01"), jay.Eq("At", 5), jay.In("At", "2026-01-01T00:00:00Z", "yesterday"), jay.Between("At", time.Now(), "x"),
		jay.Eq("At", time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)), jay.Eq("id()", time.Now()), jay.Eq("id() as date", time.Now()), jay.Eq("month(At)", 1),
		jay.StartsWith("At as date", "2026"), jay.Eq("At as date", 5), jay.Eq("month(At as date)", "2026-01"), jay.Eq("month(id())", "2026-01"),
	} {
		if _, err := events.Query().Where(c).All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("got %v", err)
		}
		if _, err := db.Query("events").Where(jay.Eq("At as date", 5)).Count(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("raw: got %v", err)
		}
	}
}

// Ensure that every Go value with a time is stored with it in UTC, in seven digits or
// nine, wherever it stands, and that types with JSON of their own keep it.
func TestDates_Stored(t *testing.T) {
	db := memory(t, nil)
	events := collectionOf[event](t, db)
	at := time.Date(2026, 1, 1, 1, 30, 0, 500_000_001, time.FixedZone("", 5400))
	whole := at.Truncate(time.Second)
	e := &event{ID: "events/1", At: at, Done: &whole, Seen: []time.Time{whole}, Parts: []eventPart{{From: whole}}, Extra: map[string]time.Time{"x": whole}, Any: []any{whole}, Local: localTime{whole}}
	putEvent(t, events, e)
	const w = `"2026-01-01T00:00:00.0000000Z"`
	want := `{"At":"2026-01-01T00:00:00.500000001Z","Done":` + w + `,"Seen":[` + w + `],"Parts":[{"From":` + w + `}],"Extra":{"x":` + w + `},"Any":[` + w + `],"Local":"01:30","Note":""}`
	doc, err := db.Get(ctx, "events/1")
	must(t, err)
	if string(doc.Body()) != want {
		t.Errorf("got  %s\nwant %s", doc.Body(), want)
	}

	_, err = db.Patch(ctx, "events/1", jay.Set("At", whole), jay.Append("Seen", at), jay.Set("Any", map[string]any{"t": &whole}))
	must(t, err)
	doc, err = db.Get(ctx, "events/1")
	must(t, err)
	want = `{"At":` + w + `,"Done":` + w + `,"Seen":[` + w + `,"2026-01-01T00:00:00.500000001Z"],"Parts":[{"From":` + w + `}],"Extra":{"x":` + w + `},"Any":{"t":` + w + `},"Local":"01:30","Note":""}`
	if string(doc.Body()) != want {
		t.Errorf("patched:\ngot  %s\nwant %s", doc.Body(), want)
	}
	_, err = db.Patch(ctx, "events/2", jay.Set("A", 1), jay.OrInsert(map[string]any{"t": whole}))
	must(t, err)
	if doc, err = db.Get(ctx, "events/2"); err != nil || string(doc.Body()) != `{"t":`+w+`}` {
		t.Errorf("inserted: %s, %v", doc.Body(), err)
	}

	back, err := events.Get(ctx, "events/1")
	must(t, err)
	if !back.At.Equal(whole) || back.At.Location() != time.UTC {
		t.Errorf("read %v", back.At)
	}
	putEvent(t, events, &event{ID: "events/zero"})
	if doc, err = db.Get(ctx, "events/zero"); err != nil || !strings.HasPrefix(string(doc.Body()), `{"At":"0001-01-01T00:00:00.0000000Z","Done":null,`) {
		t.Errorf("zero: %s, %v", doc.Body(), err)
	}
	for _, year := range []int{-1, 10_000} {
		if _, err := events.Put(ctx, &event{ID: "events/bad", Done: ptr(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))}); !errors.Is(err, jay.ErrType) || !strings.Contains(err.Error(), fmt.Sprint(year)) {
			t.Errorf("year %d: %v", year, err)
		}
		if _, err := db.Patch(ctx, "events/1", jay.Set("At", time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))); !errors.Is(err, jay.ErrInvalidPatch) {
			t.Errorf("year %d: patch: %v", year, err)
		}
	}
}

func putEvent(t *testing.T, events *jay.Collection[event], e *event) {
	t.Helper()
	_, err := events.Put(ctx, e)
	must(t, err)
}

func ptr[T any](v T) *T { return &v }

// Ensure that a session takes a time for changed only if it is another instant, and
// leaves a document as another program has written it.
func TestSession_EqualInstant(t *testing.T) {
	db := memory(t, nil)
	const stored = `{"At":"2026-01-01T12:00:00.5+02:00","Note":"theirs"}`
	_, err := db.Put(ctx, "events/1", json.RawMessage(stored), jay.InCollection("events"))
	must(t, err)
	s := db.OpenSession()
	var e *event
	e, err = jay.Load[event](ctx, s, "events/1")
	must(t, err)
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("", -3600), e.At.Location()} {
		e.At = e.At.In(zone)
		if changed, err := s.HasChanges(); changed || err != nil {
			t.Errorf("in %v: %v, %v", zone, changed, err)
		}
	}
	must(t, s.SaveChanges(ctx))
	if doc, err := db.Get(ctx, "events/1"); err != nil || string(doc.Body()) != stored {
		t.Errorf("got %s, %v", doc.Body(), err)
	}
	e.At = e.At.Add(time.Nanosecond)
	changes, err := s.WhatChanged()
	must(t, err)
	if len(changes) != 1 || len(changes[0].Fields) != 1 || changes[0].Fields[0].Path != "At" {
		t.Errorf("got %+v", changes)
	}
}

// Ensure that answers from entries of instants have the spelling of the documents:
// entries of another spelling than Jay's are not covering.
func TestDates_Covering_Spelling(t *testing.T) {
	db := memory(t, nil)
	for i, text := range []string{`"2026-01-01T00:00:00.0000000Z"`, `"2026-01-01T01:00:00+01:00"`, `"2026-01-01T00:00:00Z"`, `null`, `"none"`} {
		_, err := db.Put(ctx, fmt.Sprint("events/", i), json.RawMessage(`{"At":`+text+`}`), jay.InCollection("Events"))
		must(t, err)
	}
	must(t, db.EnsureIndex(ctx, "Events", jay.Index{Fields: []string{"At as date"}}))
	q, err := db.RQL("from Events order by At as date select At, month(At) as M", nil)
	must(t, err)
	rows, err := q.All(ctx)
	must(t, err)
	var got []string
	for _, row := range rows {
		got = append(got, string(row.JSON))
	}
	want := []string{`{"At":"none","M":null}`, `{"At":null,"M":null}`, `{"At":"2026-01-01T00:00:00.0000000Z","M":"2026-01"}`, `{"At":"2026-01-01T01:00:00+01:00","M":"2026-01"}`, `{"At":"2026-01-01T00:00:00Z","M":"2026-01"}`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e, err := q.Explain(ctx)
	must(t, err)
	if plan := strings.Join(e.Plan, "; "); e.Documents != 3 || !strings.Contains(plan, `index "At as date", all of it; answer from entries`) {
		t.Errorf("%d documents: %s", e.Documents, plan)
	}
}

// Ensure that the metadata's last modification is compared as an instant with a time.
func TestDates_LastModified(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	db := memory(t, &jay.Options{Now: func() time.Time { return now }})
	_, err := db.Put(ctx, "a/1", json.RawMessage(`{}`))
	must(t, err)
	for _, tt := range []struct {
		cond jay.Condition
		want int64
	}{
		{jay.Eq("@metadata.@last-modified", now.In(time.FixedZone("", 3600))), 1},
		{jay.Gt("@metadata.@last-modified", now), 0},
		{jay.Eq("month(@metadata.@last-modified)", "2026-03"), 1},
	} {
		if n, err := db.Query("").Where(tt.cond).Count(ctx); n != tt.want || err != nil {
			t.Errorf("got %d, %v, want %d", n, err, tt.want)
		}
	}
}
