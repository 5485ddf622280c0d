package jay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

func TestFormat4(t *testing.T) { testFormat(t, "format4") }

// zeroReader makes the ID of a database that of the fixture.
type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Ensure that the database of format 4 with revisions, attachments, documents that expire,
// subscriptions and records of deletions (internal/fixture) opens, says what it said
// then, and goes on.
func TestFormat4_Time(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format4", "time"), dir)
	db := open(t, dir, &jay.Options{MustExist: true, Rand: zeroReader{}, Now: func() time.Time { return now }})
	defer closeDB(t, db)

	rules, err := json.Marshal(db.Revisions().Configuration())
	must(t, err)
	equal(t, string(rules), `{"default":{"keep":3},"collections":{"Logs":{"disabled":true},"Orders":{"keepForNs":3600000000000}}}`)
	equal(t, jaytest.RevisionBodies(t, db, "users/ann", jay.RevisionPage{}), `{"n":3} {"n":3} {"n":3}`)
	equal(t, jaytest.RevisionBodies(t, db, "users/bob", jay.RevisionPage{}), `- {"n":1}`)
	equal(t, jaytest.RevisionBodies(t, db, "logs/1", jay.RevisionPage{}), "")
	for rev, err := range db.Revisions().Deleted(ctx, "") {
		must(t, err)
		equal(t, rev.ID(), "users/bob")
	}
	must(t, checks.Revisions(db))

	large := []byte(strings.Repeat("0123456789abcdef", 20_000))
	for _, a := range []struct {
		id, name string
		content  []byte
	}{{"users/ann", "small", []byte("hello")}, {"users/ann", "large", large}, {"leases/1", "../copy", large}} {
		got, err := attached(t, db.Attachments(a.id), a.name)
		must(t, err)
		equal(t, bytes.Equal(got, a.content), true)
	}
	equal(t, jaytest.AttachmentCounts(t, db), jay.AttachmentStats{Attachments: 3, Bytes: 640_005, Contents: 2, StoredBytes: 320_005})
	jaytest.CheckContents(t, db)

	equal(t, custom(t, db, "leases/1"), `{"@expires":"2926-11-21T12:00:00.0000000Z","@refresh":"2826-11-21T12:00:00.0000000Z"}`)
	must(t, jay.CheckTimes(db))

	equal(t, jaytest.ChangesText(changed(t, db, "F:4-AAAAAAAAAAAAAAAAAAAAAA")), "-users/bob@5 -logs/1@7 +users/ann@10 +leases/1@11 +users/cyd@12")
	all, err := db.Subscriptions().List(ctx)
	must(t, err)
	text, err := json.Marshal(all)
	must(t, err)
	equal(t, string(text), `[`+
		`{"name":"deletions","query":"from Users","deletions":true,"maxFailures":5,"retryDelayNs":1000000000,"created":"2026-11-21T12:00:00Z","position":0,"behind":12,"acknowledged":0},`+
		`{"name":"mail","query":"from Users where n \u003e 2 select n","maxFailures":7,"retryDelayNs":1000000000,"created":"2026-11-21T12:00:00Z","position":11,"behind":1,"acknowledged":0,"lastBatch":"2026-11-21T12:00:00Z","failing":1},`+
		`{"name":"off","query":"from @all_docs","maxFailures":5,"retryDelayNs":1000000000,"created":"2026-11-21T12:00:00Z","disabled":true,"position":0,"behind":12,"acknowledged":0}]`)
	failures, err := db.Subscriptions().Failures(ctx, "mail")
	must(t, err)
	equal(t, fmt.Sprintf("%+v", failures), "[{ID:users/ann Etag:10 Failures:1 Dead:false Error:no such address Due:2026-11-21 12:00:01 +0000 UTC Deleted:false}]")

	// It goes on.
	equal(t, sent(t, db, "deletions", jay.WorkOptions{}), "-users/bob users/ann users/cyd")
	put(t, db, "users/ann", `{"n":4}`, jay.InCollection("Users"))
	equal(t, sent(t, db, "mail", jay.WorkOptions{}), "users/cyd users/ann")
	must(t, db.Delete(ctx, "users/ann"))
	must(t, db.Delete(ctx, "leases/1"))
	jaytest.CheckContents(t, db)
	equal(t, jaytest.AttachmentCounts(t, db).Contents, int64(0))
	must(t, checks.Revisions(db))
	must(t, jay.CheckTimes(db))
}
