package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

// define gives the database a definition of an index and all configurations.
func define(h *host) {
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":1,"@metadata":{"@collection":"Xs"}}`)
	h.want(201, "PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"Xs/ByN","Maps":["map('Xs', x => ({ n: x.n }))"]}]}`)
	h.want(200, "POST", "/databases/a/admin/expiration/config", `{"DeleteFrequencyInSec":60}`)
	h.want(200, "POST", "/databases/a/admin/refresh/config", `{"RefreshFrequencyInSec":70,"Disabled":true}`)
	h.want(201, "PUT", "/databases/a/admin/configuration/client", `{"MaxNumberOfRequestsPerSession":7}`)
}

// checkDefined checks what define has given.
func checkDefined(t *testing.T, h *host, name string) {
	t.Helper()
	equal(t, "index", h.want(200, "GET", "/databases/"+name+"/indexes", "").text(t, "Results", 0, "Name"), "Xs/ByN")
	equal(t, "map", h.want(200, "GET", "/databases/"+name+"/indexes?name=xs/byn", "").text(t, "Results", 0, "Maps", 0), "map('Xs', x => ({ n: x.n }))")
	equal(t, "found", h.want(200, "POST", "/databases/"+name+"/queries", `{"Query":"from index 'Xs/ByN' where n = 1"}`).text(t, "TotalResults"), 1)
	equal(t, "expiration", h.want(200, "GET", "/databases/"+name+"/expiration/config", "").body, `{"DeleteFrequencyInSec":60,"Disabled":false}`)
	equal(t, "refresh", h.want(200, "GET", "/databases/"+name+"/refresh/config", "").body, `{"Disabled":true,"RefreshFrequencyInSec":70}`)
	equal(t, "client", h.want(200, "GET", "/databases/"+name+"/configuration/client", "").text(t, "Configuration", "MaxNumberOfRequestsPerSession"), 7)
	record := h.want(200, "GET", "/admin/databases?name="+name, "")
	equal(t, "record", record.text(t, "Expiration", "DeleteFrequencyInSec")+record.text(t, "Refresh", "RefreshFrequencyInSec"), "6070")
}

// restoredCopy backs up the database in a directory, and returns the directory of one that was restored from the backup.
func restoredCopy(t *testing.T, dir string) string {
	t.Helper()
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	_, err = db.Backup(t.Context(), &stream)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if _, err := jay.Restore(t.Context(), restored, jay.RestoreOptions{CopyTag: "R"}, &stream); err != nil {
		t.Fatal(err)
	}
	return restored
}

// Ensure that a database has its definitions with it: another server that mounts its directory, or a restored backup of
// it, has them, and no client sees them among the documents.
func TestDefinitions_InDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	define(h)
	checkDefined(t, h, "a")
	equal(t, "documents", h.want(200, "GET", "/databases/a/collections/stats", "").text(t, "CountOfDocuments"), 1)
	h.stop()

	files := filepath.Join(dir, "databases", "a")
	restored := restoredCopy(t, files)
	h = start(t, func(o *server.Options) { o.Directories = map[string]string{"here": files, "there": restored} })
	checkDefined(t, h, "here")
	checkDefined(t, h, "there")
}

// formerly is the data directory of a server that has kept the definitions of its database in its own, which has another
// database without any.
func formerly(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.create("ab")
	define(h)
	h.stop()
	edit(t, filepath.Join(dir, "databases", "a"), func(ctx context.Context, db *jay.DB) error {
		return db.Definitions().Change(ctx, jay.DefinitionChange{Kind: "raven-index", Name: "Xs/ByN"}, jay.DefinitionChange{Kind: "raven-configuration", Name: "client"},
			jay.DefinitionChange{Kind: "raven-configuration", Name: "expiration"}, jay.DefinitionChange{Kind: "raven-configuration", Name: "refresh"})
	})
	leave(t, dir)
	return dir
}

// former are definitions as servers have kept them in their own database.
var former = map[string]string{
	"indexes/a/xs/byn":  `{"Name":"Xs/ByN","Collection":"Xs","Fields":["n"],"LockMode":"Unlock","Priority":"Normal","Given":{"Name":"Xs/ByN","Maps":["map('Xs', x => ({ n: x.n }))"]}}`,
	"configurations/a":  `{"MaxNumberOfRequestsPerSession":7}`,
	"due/expiration/a":  `{"DeleteFrequencyInSec":60,"Disabled":false}`,
	"due/refresh/a":     `{"Disabled":true,"RefreshFrequencyInSec":70}`,
	"configurations/zz": `{"MaxNumberOfRequestsPerSession":9}`, // of a database that is not there
}

// leave stores former in the server's own database.
func leave(t *testing.T, dir string) {
	t.Helper()
	edit(t, filepath.Join(dir, "system"), func(ctx context.Context, system *jay.DB) error {
		var b jay.Batch
		for id, text := range former {
			b.Put(id, json.RawMessage(text), jay.InCollection("Configurations"))
		}
		_, err := system.Apply(ctx, &b)
		return err
	})
}

// edit changes a database.
func edit(t *testing.T, dir string, fn func(context.Context, *jay.DB) error) {
	t.Helper()
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fn(t.Context(), db), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// left returns the IDs of former that are in the server's own database.
func left(t *testing.T, dir string) string {
	t.Helper()
	var ids []string
	edit(t, filepath.Join(dir, "system"), func(ctx context.Context, system *jay.DB) error {
		for doc, err := range system.Documents(ctx, jay.Scan{}) {
			if err != nil {
				return err
			}
			if former[doc.ID()] != "" {
				ids = append(ids, doc.ID())
			}
		}
		return nil
	})
	return strings.Join(ids, " ")
}

// Ensure that the start of a server moves the definitions that an older one has kept, also if nobody uses their database,
// and leaves none behind but those of databases that it does not have.
func TestDefinitions_Moved(t *testing.T) {
	t.Parallel()
	dir := formerly(t)
	startIn(t, dir).stop()
	equal(t, "left", left(t, dir), "configurations/zz")
	edit(t, filepath.Join(dir, "databases", "a"), func(ctx context.Context, db *jay.DB) error {
		if n, err := db.Definitions().Last(ctx); n == 0 || err != nil {
			t.Errorf("%d changes, %v", n, err)
		}
		return nil
	})
	h := startIn(t, dir)
	checkDefined(t, h, "a")
	equal(t, "another", h.want(200, "GET", "/databases/ab/indexes", "").text(t, "Results"), "[]")
	h.want(204, "DELETE", "/databases/a/indexes?name=Xs/ByN", "")
	h.stop()
	h = startIn(t, dir)
	equal(t, "deleted", h.want(200, "GET", "/databases/a/indexes", "").text(t, "Results"), "[]")
}

// Ensure that a move that a crash has cut short is finished: the definitions are in the database and still in the
// server's own, and what the database has by then stays.
func TestDefinitions_MoveCutShort(t *testing.T) {
	t.Parallel()
	dir := formerly(t)
	startIn(t, dir).stop()
	leave(t, dir) // the crash came before they were deleted there
	h := startIn(t, dir)
	checkDefined(t, h, "a")
	h.stop()
	equal(t, "left", left(t, dir), "configurations/zz")

	// The database was used elsewhere meanwhile.
	leave(t, dir)
	edit(t, filepath.Join(dir, "databases", "a"), func(ctx context.Context, db *jay.DB) error {
		return db.Definitions().Change(ctx, jay.DefinitionChange{Kind: "raven-configuration", Name: "client", Value: json.RawMessage(`{"MaxNumberOfRequestsPerSession":8}`)})
	})
	h = startIn(t, dir)
	equal(t, "client", h.want(200, "GET", "/databases/a/configuration/client", "").text(t, "Configuration", "MaxNumberOfRequestsPerSession"), 8)
	h.stop()
	equal(t, "left", left(t, dir), "configurations/zz")
}

// Ensure that the definitions of a database that cannot be opened stay where they are until it can, and go with it when
// it is deleted.
func TestDefinitions_NotMovedYet(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	dir := formerly(t)
	files := filepath.Join(dir, "databases", "a")
	if err := os.Rename(files, files+"-away"); err != nil {
		t.Fatal(err)
	}
	all := "configurations/a configurations/zz due/expiration/a due/refresh/a indexes/a/xs/byn"
	startIn(t, dir).stop()
	equal(t, "left", left(t, dir), all)
	if err := os.Rename(files+"-away", files); err != nil {
		t.Fatal(err)
	}
	h := startIn(t, dir)
	checkDefined(t, h, "a")
	h.stop()

	dir = formerly(t)
	if err := os.RemoveAll(filepath.Join(dir, "databases", "a")); err != nil {
		t.Fatal(err)
	}
	h = startIn(t, dir)
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`)
	h.stop()
	equal(t, "left", left(t, dir), "configurations/zz")
}

// Ensure that members of a record that this version does not know stay when it changes others, until the client gives
// another definition.
func TestDefinitions_UnknownMembers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	define(h)
	h.stop()
	files := filepath.Join(dir, "databases", "a")
	stored := func(change string) (text string) {
		edit(t, files, func(ctx context.Context, db *jay.DB) error {
			d, err := db.Definitions().Get(ctx, "raven-index", "Xs/ByN")
			if err != nil {
				return err
			}
			text = string(d.Value)
			if change == "" {
				return nil
			}
			return db.Definitions().Change(ctx, jay.DefinitionChange{Kind: "raven-index", Name: "Xs/ByN", Value: json.RawMessage(strings.Replace(text, "{", "{"+change, 1))})
		})
		return text
	}
	stored(`"Later":{"a":1.10},`)
	h = startIn(t, dir)
	h.want(204, "POST", "/databases/a/indexes/set-lock", `{"IndexNames":["Xs/ByN"],"Mode":"LockedIgnore"}`)
	h.want(204, "POST", "/databases/a/indexes/set-priority", `{"IndexNames":["Xs/ByN"],"Priority":"High"}`)
	h.stop()
	if text := stored(""); !strings.Contains(text, `"Later":{"a":1.10}`) || !strings.Contains(text, `"LockedIgnore"`) || !strings.Contains(text, `"Priority":"High"`) {
		t.Errorf("the record is %s", text)
	}
	h = startIn(t, dir)
	h.want(204, "POST", "/databases/a/indexes/set-lock", `{"IndexNames":["Xs/ByN"],"Mode":"Unlock"}`)
	h.want(201, "PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"Xs/ByN","Maps":["map('Xs', x => ({ m: x.m }))"]}]}`)
	h.stop()
	if text := stored(""); strings.Contains(text, "Later") || !strings.Contains(text, `"m"`) {
		t.Errorf("the record is %s", text)
	}
}
