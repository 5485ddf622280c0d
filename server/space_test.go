package server_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a database whose disk was full says so, and takes writes again when there is
// room, without a restart and without the loss of a write.
func TestDiskFull_DatabaseIsOpenedAgain(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	dir := t.TempDir()
	if err := disk.MkdirAll(filepath.Join(dir, "databases"), 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	h := startIn(t, dir, func(o *server.Options) {
		o.Database.FS = disk
		o.Now = func() time.Time { return now }
	})
	h.create("a")
	h.create("b")
	h.want(201, "PUT", "/databases/b/docs?id=x", `{}`)
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":1}`)
	h.want(204, "GET", "/databases/a/healthcheck", "")
	equal(t, "readyz", h.want(200, "GET", "/readyz", "").text(t, "Status"), "ready")

	disk.SetFreeBytes(0)
	disk.Fill()
	h.want(500, "PUT", "/databases/a/docs?id=y", `{}`) // its outcome is unknown
	a := h.do("PUT", "/databases/a/docs?id=z", `{}`)
	h.checkProblem(a, 507, "InternalServerErrorException")
	if !strings.Contains(a.body, "when there is room") {
		t.Error(a.body)
	}
	h.want(200, "GET", "/databases/a/docs?id=x", "")
	h.s.ReopenFull()
	equal(t, "readyz", h.want(200, "GET", "/readyz", "").text(t, "Status"), "degraded")
	h.want(503, "GET", "/databases/a/healthcheck", "")
	h.want(204, "GET", "/databases/b/healthcheck", "")
	h.checkProblem(h.do("PUT", "/databases/a/docs?id=z", `{}`), 507, "InternalServerErrorException")

	disk.Heal()
	h.s.ReopenFull()
	h.want(507, "PUT", "/databases/a/docs?id=z", `{}`) // the disk still says that it has no room
	disk.SetFreeBytes(1 << 30)
	h.s.ReopenFull()
	h.want(201, "PUT", "/databases/a/docs?id=z", `{}`)
	h.want(200, "GET", "/databases/a/docs?id=x", "")
	h.want(204, "GET", "/databases/a/healthcheck", "")
	equal(t, "readyz", h.want(200, "GET", "/readyz", "").text(t, "Status"), "ready")
}

// Ensure that a disk that is almost full takes deletions and refuses what grows, with 507:
// documents, bulk inserts, attachments and imports; and that the database says so.
func TestDiskFull_Refused(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	dir := t.TempDir()
	if err := disk.MkdirAll(filepath.Join(dir, "databases"), 0o700); err != nil {
		t.Fatal(err)
	}
	disk.SetFreeBytes(1 << 30)
	h := startIn(t, dir, func(o *server.Options) {
		o.Database.FS, o.Database.MinFreeBytes = disk, 1<<20
	})
	h.create("a")
	for i := range 3 {
		h.want(201, "PUT", fmt.Sprint("/databases/a/docs?id=x/", i), `{"n":1}`)
	}
	disk.SetFreeBytes(1<<20 - 1)
	await(t, "the next look at the disk", func() bool { return h.do("PUT", "/databases/a/docs?id=y", `{}`).status != 201 })
	h.checkProblem(h.do("PUT", "/databases/a/docs?id=y", `{}`), 507, "InternalServerErrorException")
	h.checkProblem(h.do("PUT", "/databases/a/attachments?id=x/1&name=n", strings.Repeat("x", 1<<20)), 507, "InternalServerErrorException")
	const attached = `{"Commands":[{"Type":"AttachmentPUT","Id":"x/1","Name":"n","ContentType":"text/plain"}]}`
	form, kind := parts(attached, strings.Repeat("x", 1<<20))
	h.checkProblem(h.do("POST", "/databases/a/bulk_docs", form, "Content-Type", kind), 507, "InternalServerErrorException")
	h.checkProblem(h.do("POST", "/databases/a/bulk_insert?id="+h.operationID(), `[{"Id":"z","Document":{},"Type":"PUT"}]`), 507, "InternalServerErrorException")
	h.checkProblem(h.do("POST", "/jay/v1/databases/a/import", `{"@metadata":{"@id":"z"}}`+"\n"), 507, "InternalServerErrorException")
	h.want(404, "GET", "/databases/a/docs?id=z", "")
	h.want(200, "GET", "/databases/a/docs?id=x/1", "")
	a := h.want(200, "GET", "/databases/a/healthcheck", "")
	equal(t, "healthcheck", a.text(t, "Status"), "degraded")
	h.s.ReopenFull()
	equal(t, "readyz", h.want(200, "GET", "/readyz", "").text(t, "Status"), "degraded")
	h.want(204, "DELETE", "/databases/a/docs?id=x/1", "")
	h.want(200, "GET", "/databases/a/docs?id=x/2", "")
}

// Ensure that jay.ErrFailed of a full disk is jay.ErrDiskFull, too, and that of another
// failure is not.
func TestDiskFull_CauseOfFailure(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*storagetest.Disk){"full": (*storagetest.Disk).Fill, "broken": (*storagetest.Disk).Fail} {
		disk := storagetest.NewDisk()
		db, err := jay.Open("db", &jay.Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		damage(disk)
		_, _ = db.Put(t.Context(), "x", []byte(`{}`))
		_, err = db.Put(t.Context(), "y", []byte(`{}`))
		failed, full := errors.Is(err, jay.ErrFailed), errors.Is(err, jay.ErrDiskFull)
		if !failed || full != (name == "full") {
			t.Errorf("%s: %v: ErrFailed %v, ErrDiskFull %v", name, err, failed, full)
		}
		_ = db.Close()
	}
}

// Ensure that the room that is kept by default follows from the disk of each database, and
// not from that of the data directory: a database on a small volume of its own takes writes.
func TestDiskFull_SmallVolume(t *testing.T) {
	t.Parallel()
	h := start(t)
	asked := map[string]bool{}
	small := filepath.Join(h.dir, "databases", "small")
	space := func(dir string) (free, total uint64, known bool) {
		asked[dir] = true
		switch dir {
		case small:
			return 40 << 20, 50 << 20, true
		case h.dir:
			return 1 << 40, 1 << 40, true
		}
		return 0, 0, false // not there yet
	}
	equal(t, "small", h.s.SetDiskSpace(space, small), int64(5<<20))
	equal(t, "new", h.s.SetDiskSpace(space, small+"er"), int64(256<<20))
	clear(asked)
	h.create("small")
	h.want(201, "PUT", "/databases/small/docs?id=x", `{}`)
	equal(t, "asked for the disk of the database", asked[small], true)
}
