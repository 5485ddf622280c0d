package sqlkv_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/pgtest"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/sqlkv"
)

// keysOf returns all keys and values of a store.
func keysOf(t *testing.T, d storage.Driver, name string) map[string]string {
	t.Helper()
	e, err := d.Open(name, storage.OpenOptions{ReadOnly: true, MustExist: true})
	must(t, err)
	defer e.Close()
	it, err := e.Iterate(nil, nil)
	must(t, err)
	all := make(map[string]string)
	for ok := it.First(); ok; ok = it.Next() {
		all[string(it.Key())] = string(it.Value())
	}
	must(t, errors.Join(it.Error(), it.Close()))
	return all
}

func sameKeys(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if other, there := got[key]; !there || other != value {
			t.Errorf("%s: %q is %.80q (%v), want %.80q", what, key, other, there, value)
		}
	}
	equal(t, len(got), len(want))
}

// features makes a database with something of every feature in a directory.
func features(t *testing.T, dir string) {
	t.Helper()
	db, err := jay.Open(dir, nil)
	must(t, err)
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Users": {}}}))
	for _, index := range []jay.Index{
		{Fields: []string{"Name", "-N"}},
		{Name: "Mail", Fields: []string{"Mail"}, Unique: true},
		{Name: "Words", Kind: "text", Fields: []string{"Text"}},
		{Name: "Sums", Kind: "groups", Fields: []string{"Name"}, Options: map[string]string{"sums": "N"}},
		{Name: "Places", Kind: "places", Fields: []string{"spatial.point(Lat, Lng)"}},
		{Name: "Vectors", Kind: "vectors", Fields: []string{"V"}, Options: map[string]string{"dimensions": "3"}},
	} {
		must(t, db.EnsureIndex(ctx, "Users", index))
	}
	must(t, db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "mail", Query: "from Users"}))
	for i := range 60 {
		body := fmt.Sprintf(`{"Name":"n%d","N":%d,"Mail":"m%d","Text":"the oak %d and the ash","Lat":%d,"Lng":7,"V":[%d,1,2]}`, i%7, i, i, i, i%80, i)
		m, err := db.Store(ctx, "Users", json.RawMessage(body))
		must(t, err)
		if i%9 == 0 {
			_, err = db.Attachments(m.ID).Put(ctx, "file", strings.NewReader(strings.Repeat("x", 1000*i)))
			must(t, err)
		}
		if i%8 == 0 {
			_, err = db.Put(ctx, m.ID, json.RawMessage(body), jay.WithTTL(100*time.Hour))
			must(t, err)
		}
		if i%13 == 0 {
			must(t, db.Delete(ctx, m.ID))
		}
	}
	for range 3 {
		_, err = db.NextIdentity(ctx, "calls", jay.RequestID(fmt.Sprint("once", time.Now().UnixNano())))
		must(t, err)
		_, err = db.Put(ctx, "logs/", json.RawMessage(`{}`))
		must(t, err)
	}
	_, err = db.CompareExchange().Put(ctx, "lock", 1, 0)
	must(t, err)
	must(t, db.Definitions().Change(ctx, jay.DefinitionChange{Kind: "raven-index", Name: "Users/ByTags", Value: []byte(`{"Maps":[]}`)}))
	must(t, db.Close())
}

// Ensure that a database with every feature moves to PostgreSQL and back, and is the same then, key by key; that its counters go on, and
// that it is whole there.
func TestCopy_ThereAndBack(t *testing.T) {
	dir := t.TempDir()
	features(t, dir+"/from")
	want := keysOf(t, lsm.Driver{}, dir+"/from")
	name, d := newName(t), new(sqlkv.Driver)
	here, there := new(jay.Options), &jay.Options{Engine: d}
	_, err := jay.Copy(ctx, dir+"/from", name, jay.CopyOptions{SameTag: true, From: here, To: there})
	must(t, err)
	sameKeys(t, "there", keysOf(t, d, name), want)
	_, err = jay.Copy(ctx, name, dir+"/back", jay.CopyOptions{SameTag: true, From: there, To: here})
	must(t, err)
	sameKeys(t, "back", keysOf(t, lsm.Driver{}, dir+"/back"), want)

	db := database(t, name)
	defer db.Close()
	report, err := db.Verify(ctx, nil)
	must(t, err)
	if report.Found > 0 {
		t.Errorf("on PostgreSQL: %v", report.Damages)
	}
	n, err := db.NextIdentity(ctx, "calls")
	must(t, err)
	equal(t, n, 4)
	_, err = db.Store(ctx, "Users", json.RawMessage(`{"Mail":"m1"}`))
	equal(t, errors.Is(err, jay.ErrUnique), true)
	_, err = jay.Copy(ctx, dir+"/from", name, jay.CopyOptions{SameTag: true, To: there})
	var refused *jay.CopyError
	equal(t, errors.As(err, &refused) && refused.Rule == "empty target", true)
}

// Ensure that a source on a server that another process writes to is refused, also if it does so when all is copied.
func TestCopy_WrittenTo(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []string{"copy", "compare"} {
		name, there := newName(t), &jay.Options{Engine: new(sqlkv.Driver)}
		db := database(t, name)
		_, err := db.Put(ctx, "users/1", json.RawMessage(`{}`))
		must(t, err)
		written := false
		_, err = jay.Copy(ctx, name, dir+"/"+step, jay.CopyOptions{SameTag: true, From: there, Progress: func(p jay.CopyProgress) {
			if p.Step == step && !written {
				written = true
				_, err := db.Put(ctx, "users/2", json.RawMessage(`{}`))
				must(t, err)
			}
		}})
		var refused *jay.CopyError
		if !errors.As(err, &refused) || refused.Rule != "unwritten source" || !written {
			t.Errorf("written to in step %s: %v", step, err)
		}
		if _, err := jay.Open(dir+"/"+step, nil); !errors.Is(err, jay.ErrRestoring) {
			t.Errorf("the target of a copy that was refused opens: %v", err)
		}
		must(t, db.Close())
	}
}

// Ensure that a copy that is killed again and again goes on, and is exact in the end.
func TestCopy_Kill(t *testing.T) {
	dir := t.TempDir()
	features(t, dir+"/from")
	name := newName(t)
	kills := 0
	for {
		p := child.Start(t, "TestCopy_Process", pgtest.URL+"="+server.URL(), "JAY_COPY_FROM="+dir+"/from", "JAY_COPY_TO="+name)
		lines, done := 0, false
		enough := 3 + 4*kills
		if kills == 4 {
			enough = 1 << 30
		}
		if kills < 4 {
			p.KillAt(func(line string) bool { lines++; return lines == enough })
			kills++
			continue
		}
		for !done {
			done = p.Line() == "done"
		}
		break
	}
	sameKeys(t, "after kills", keysOf(t, new(sqlkv.Driver), name), keysOf(t, lsm.Driver{}, dir+"/from"))
}

func TestCopy_Process(t *testing.T) {
	from := os.Getenv("JAY_COPY_FROM")
	if from == "" {
		t.Skip("only in a process of TestCopy_Kill")
	}
	knobs.CopyKeys = 10
	info, err := jay.Copy(ctx, from, os.Getenv("JAY_COPY_TO"), jay.CopyOptions{SameTag: true, To: &jay.Options{Engine: new(sqlkv.Driver)}, Progress: func(p jay.CopyProgress) {
		fmt.Println(p.Step, p.Keys)
	}})
	must(t, err)
	if !info.Resumed {
		t.Error("it has begun anew")
	}
	fmt.Println("done")
}
