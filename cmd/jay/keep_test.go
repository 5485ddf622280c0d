package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
	"github.com/jaydb/jay/server"
)

// lockedBuffer is a buffer that several goroutines write to.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// Ensure that a server keeps backups of the databases that it has and of those that are created later, more than may be open at a
// time, that one with the backups of another is complained about and no other suffers, and that deleted ones end.
func TestServe_Backups(t *testing.T) {
	t.Parallel()
	newDatabases = 20 * time.Millisecond // no other test in this process looks
	dir := t.TempDir()
	s, err := server.Open(server.Options{Data: filepath.Join(dir, "data"), MaxOpenDatabases: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ask := func(method, path, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body)))
		if w.Code >= 300 {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	}
	create := func(name string) {
		t.Helper()
		ask(http.MethodPut, "/admin/databases?name="+name, `{}`)
		ask(http.MethodPut, "/databases/"+name+"/docs?id=x", `{}`)
	}
	log := new(lockedBuffer)
	await := func(what string, holds func() bool) {
		t.Helper()
		for range 3000 {
			if holds() {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%s: not within 30 seconds; the log: %s", what, log)
	}
	there := func(name string, n int) func() bool {
		return func() bool {
			links, err := backups.Chain(nil, filepath.Join(dir, "kept", name))
			return err == nil && len(links) >= n
		}
	}

	foreign, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	if err := os.MkdirAll(filepath.Join(dir, "kept", "strange"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := foreign.BackupTo(t.Context(), filepath.Join(dir, "kept", "strange", "00000001-full.jaybackup")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Shop", "b", "c", "strange"} {
		create(name)
	}
	f := &serveBackups{BackupDir: filepath.Join(dir, "kept"), BackupEvery: time.Second, BackupFull: time.Hour, BackupKeep: 3}
	stop := f.startBackups(t.Context(), s, slog.New(slog.NewTextHandler(log, nil)))
	for _, name := range []string{"shop", "b", "c"} {
		await(name, there(name, 2))
	}
	await("the figures", func() bool {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
		text := w.Body.String()
		return strings.Contains(text, "\njay_backup_failing 1\n") && strings.Contains(text, "\njay_backup_late 0\n") && !strings.Contains(text, "\njay_backups 0\n") && strings.Contains(text, "\njay_backup_bytes ") && !strings.Contains(text, "shop")
	})
	await("the complaint", func() bool {
		return strings.Contains(log.String(), "level=ERROR") && strings.Contains(log.String(), "is of another database")
	})
	create("later")
	await("later", there("later", 1))
	ask(http.MethodDelete, "/admin/databases", `{"DatabaseNames":["b"],"HardDelete":true}`)
	await("a backup after the deletion of another database", there("c", 3))
	stop()
	restored, err := jay.RestoreFrom(t.Context(), filepath.Join(dir, "new"), jay.RestoreOptions{CopyTag: "B"}, filepath.Join(dir, "kept", "shop", "00000001-full.jaybackup"))
	if err != nil || restored.Documents != 1 {
		t.Errorf("%+v, %v", restored, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
