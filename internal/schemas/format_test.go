package schemas_test

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Ensure that the database of format 17 with rules (internal/fixture) opens, follows its rules, and goes on; and that a program which does not know
// them refuses it by that name.
func TestFormat17_Schemas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jaytest.Must(t, os.CopyFS(dir, os.DirFS("../../testdata/format17/schemas")))
	older := storage.Features(storage.AllFeatures[:storage.FeatureSchemas.Format-storage.BaseFormat-1])
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 17 || newer.Newest != 16 || !slices.Equal(newer.Features, []string{"schemas"}) {
		t.Errorf("an older program: got %v", err)
	}

	db := jaytest.Open(t, dir, &jay.Options{MustExist: true, Schemas: new(required)})
	defer func() { _ = db.Close() }()
	all, err := db.Definitions().Schemas().List(ctx)
	if err != nil || len(all) != 3 || all[0].Mode != schema.Off || all[1].Mode != schema.Warn || all[2].Mode != schema.Refuse || string(all[2].Schema) != `{ "required": ["Total"] }` {
		t.Errorf("got %v, %v", all, err)
	}
	_, err = db.Store(ctx, "Orders", []byte(`{}`))
	wantRefused(t, "an insert", err, 1)
	report, err := db.Definitions().Schemas().Report(ctx, "orders")
	if err != nil || report.Documents != 1 || report.Ended.IsZero() {
		t.Errorf("got %+v, %v", report, err)
	}
	set(t, db, rule(schema.Off, "Note"))
	put(t, db, "orders/2", `{}`)
	jaytest.Verify(t, db)
}

// Ensure that a rule has these keys and values.
func TestRule_Layout_Golden(t *testing.T) {
	db := open(t, &jay.Options{Schemas: new(required), Now: func() time.Time { return jaytest.DumpTime }})
	put(t, db, "orders/1", `{}`)
	r := rule(schema.Warn)
	r.Schema = []byte(`{ "required": ["Total"] }`)
	set(t, db, r)
	if _, err := db.Definitions().Schemas().Wait(ctx, "Orders"); err != nil {
		t.Fatal(err)
	}
	jaytest.InFormat(t, jaytest.KeysBetween(t, db, format.SpaceDefinitions, format.SpaceDefinitions))
}
