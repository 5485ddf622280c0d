package definitions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/definitions"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

var ctx = context.Background()

func change(kind, name, value string) jay.DefinitionChange {
	c := jay.DefinitionChange{Kind: kind, Name: name}
	if value != "" {
		c.Value = json.RawMessage(value)
	}
	return c
}

// text returns the definitions of a kind.
func text(t *testing.T, db *jay.DB, kind string) string {
	t.Helper()
	list, err := db.Definitions().List(ctx, kind)
	jaytest.Must(t, err)
	var out []string
	for _, d := range list {
		out = append(out, fmt.Sprintf("%s %d %s", d.Name, d.Number, d.Value))
	}
	return strings.Join(out, "\n")
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Ensure that definitions have these keys and values.
func TestDefinitions_Layout_Golden(t *testing.T) {
	db := jaytest.Dumped(t)
	defer db.Close()
	jaytest.Must(t, db.Definitions().Change(ctx, change("raven-index", "Users/ByName", `{"Name":"Users/ByName", "later":[1]}`), change("raven-index", "gone", `{}`)))
	jaytest.Must(t, db.Definitions().Change(ctx, change("raven-index", "GONE", ""), change("raven-configuration", "client", `{"a":1}`)))
	jaytest.InFormat(t, jaytest.KeysBetween(t, db, format.SpaceDefinitions, format.SpaceDefinitions))
}

// Ensure that definitions are stored, replaced and removed whatever the case of their names, in commits of
// their own numbers, as they were given, and that they are no documents.
func TestDefinitions(t *testing.T) {
	db := jaytest.Open(t, t.TempDir(), nil)
	defer db.Close()
	d := db.Definitions()
	last := func(want uint64) {
		t.Helper()
		if n, err := d.Last(ctx); n != want || err != nil {
			t.Errorf("the last change is %d, %v, want %d", n, err, want)
		}
	}
	last(0)
	want(t, text(t, db, "a"), "")
	if _, err := d.Get(ctx, "a", "x"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	number := func() int { return parts.Of(db).Env.Engine.Format().Number }
	if n := number(); n != storage.BaseFormat {
		t.Errorf("without a definition, the format is %d", n)
	}
	jaytest.Must(t, d.Change(ctx, change("a", "X", ` { "n" : 1.10 } `), change("ab", "y", `{}`), change("a", "b", `{"@metadata":1}`)))
	if n := number(); n != storage.FeatureDefinitions.Format {
		t.Errorf("with definitions, the format is %d", n)
	}
	want(t, text(t, db, "a"), "b 1 {\"@metadata\":1}\nx 1  { \"n\" : 1.10 } ")
	want(t, text(t, db, "ab"), "y 1 {}")
	one, err := d.Get(ctx, "a", "x")
	jaytest.Must(t, err)
	var decoded struct{ N json.Number }
	if jaytest.Must(t, one.Decode(&decoded)); decoded.N != "1.10" {
		t.Errorf("got %v", decoded)
	}

	jaytest.Must(t, d.Change(ctx, change("a", "b", `{"n":2}`)))
	kept := change("a", "X", `{"n":3}`)
	kept.IfMissing = true
	jaytest.Must(t, d.Change(ctx, kept, change("a", "none", "")))
	last(2) // nothing has changed
	fresh := change("a", "Z", `{}`)
	fresh.IfMissing = true
	jaytest.Must(t, d.Change(ctx, kept, fresh, change("a", "B", "")))
	want(t, text(t, db, "a"), "x 1  { \"n\" : 1.10 } \nz 3 {}")
	jaytest.Must(t, d.Change(ctx, change("a", "x", ""), change("a", "z", ""), change("ab", "y", "")))
	last(4) // also when none is left
	want(t, text(t, db, "a")+text(t, db, "ab"), "")
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		t.Errorf("a document %v, %v", doc, err)
	}
}

// Ensure that a change that is not valid is refused with all others of its call.
func TestDefinitions_Refused(t *testing.T) {
	db := jaytest.Open(t, t.TempDir(), nil)
	d := db.Definitions()
	for _, bad := range []jay.DefinitionChange{
		change("", "x", `{}`), change("A", "x", `{}`), change("a b", "x", `{}`), change("a\x00", "x", `{}`), change(strings.Repeat("a", definitions.MaxKindBytes+1), "x", `{}`),
		change("a", "", `{}`), change("a", "x\x00", `{}`), change("a", "x\xff", `{}`), change("a", strings.Repeat("x", definitions.MaxNameBytes+1), `{}`), change("a", "", ""),
		change("a", "x", `[]`), change("a", "x", `{}1`), change("a", "x", ` `), change("a", "x", `{"a"}`), change("a", "x", `null`), {Kind: "a", Name: "x", Value: json.RawMessage{}},
		change("a", "x", `{"a":"`+strings.Repeat("x", definitions.MaxValueBytes)+`"}`),
	} {
		if err := d.Change(ctx, change("a", "good", `{}`), bad); !errors.Is(err, jay.ErrUsage) && !errors.Is(err, jay.ErrInvalidID) {
			t.Errorf("%.40q %.40q %.40q: got %v, want ErrUsage or an IDError", bad.Kind, bad.Name, bad.Value, err)
		}
	}
	if err := d.Change(ctx, make([]jay.DefinitionChange, definitions.MaxChanges+1)...); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("too many: %v", err)
	}
	if n, err := d.Last(ctx); n != 0 || err != nil {
		t.Errorf("%d changes were made, %v", n, err)
	}
	at := change(strings.Repeat("a", definitions.MaxKindBytes), strings.Repeat("x", definitions.MaxNameBytes), `{"a":"`+strings.Repeat("x", definitions.MaxValueBytes-8)+`"}`)
	jaytest.Must(t, d.Change(ctx, at))
	report, err := db.Verify(ctx, nil)
	jaytest.Must(t, err)
	if report.Found+report.Warned > 0 {
		t.Errorf("at the limits, it is damage: %+v", report)
	}

	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := d.Change(ended, change("a", "x", `{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	jaytest.Must(t, db.Close())
	_, err = d.List(ctx, "a")
	for _, err := range []error{err, d.Change(ctx, change("a", "x", `{}`))} {
		if !errors.Is(err, jay.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
}
