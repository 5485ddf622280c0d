package server

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/jaydb/jay/server/internal/own"
	"github.com/jaydb/jay/server/internal/raven"
	"github.com/jaydb/jay/server/internal/serve"
)

// OpenDatabases returns how many databases are open, for tests.
func (s *Server) OpenDatabases() int { return s.inner.Databases.Opened() }

// Sweep does all that is due for the documents of a database, for tests.
func (s *Server) Sweep(ctx context.Context, database string) error {
	d, err := s.inner.Databases.Acquire(ctx, database)
	if err != nil {
		return err
	}
	defer s.inner.Databases.Release(d)
	_, err = d.DB.Sweep(ctx)
	return err
}

// CloseIdle does what happens now and then, for tests.
func (s *Server) CloseIdle() { s.inner.Databases.CloseIdle() }

// ExpireRejects does what happens now and then, for tests.
func (s *Server) ExpireRejects() { s.inner.Rejects.Expire(s.inner.Options.Now()) }

// EndStreams does what happens now and then, for tests.
func (s *Server) EndStreams() { s.inner.Auth.EndStreams() }

// CheckLoad takes and gives no place: it reports what is taken, for tests.
func (s *Server) CheckLoad() (requests int, bytes int64) {
	bytes, _ = s.inner.Memory.Load()
	return s.inner.Gate.Load() + s.inner.Streams.Load() + s.inner.Sockets.Load(), bytes
}

// BoundRequests makes the memory of requests another one than a quarter of MaxMemory, for tests. One sender has half of it, or share if that is not 0.
func (s *Server) BoundRequests(most, share int64) { s.inner.Memory.Bound(most, cmp.Or(share, most/2)) }

// HoldPlace takes a place of a request until leave is called, for tests.
func (s *Server) HoldPlace(sender string) (leave func()) {
	if err := s.inner.Gate.Enter(context.Background(), sender); err != nil {
		panic(err)
	}
	return func() { s.inner.Gate.Leave(sender) }
}

// Route describes an endpoint, for tests.
type Route struct {
	Method, Path, Refused string
	Body                  bool     // it is read as a whole
	Upload                bool     // the route reads it itself
	Takes                 []string // its parameters
}

// routes are those of all lists.
func routes() []*serve.Route { return slices.Concat(serve.Routes, raven.Routes, own.Routes) }

// Routes returns the endpoints, for tests.
func Routes() []Route {
	var all []Route
	for _, r := range routes() {
		all = append(all, Route{r.Method, r.Path, r.Refused, r.Body, r.Upload, strings.Fields(strings.ReplaceAll(r.Takes, "*", ""))})
	}
	return all
}

// PeakMemory returns the most bytes that the budget has paid for at a time since the last
// call, for tests.
func (s *Server) PeakMemory() int64 { return s.inner.Memory.PeakSince() }

// FinishDeletions tries deletions again that have failed.
func (s *Server) FinishDeletions() { s.inner.Databases.FinishDeletions(s.inner.Ctx) }

// RefuseRemovals makes the removal of files fail until the result is called. Tests that use
// it must not run in parallel.
func RefuseRemovals() (allow func()) {
	serve.RemoveAll = func(path string) error { return &fs.PathError{Op: "unlinkat", Path: path, Err: syscall.EBUSY} }
	return func() { serve.RemoveAll = os.RemoveAll }
}

// ReopenFull looks after databases whose disk is full.
func (s *Server) ReopenFull() { s.inner.Databases.ReopenFull(s.inner.Ctx) }

// UsersOf returns how many requests use a database.
func (s *Server) UsersOf(key string) int { return s.inner.Databases.UsersOf(key) }

// SetDiskSpace replaces what is asked for the space of a disk, for tests, and returns what a
// database in dir keeps free then.
func (s *Server) SetDiskSpace(fn func(dir string) (free, total uint64, known bool), dir string) int64 {
	return s.inner.Databases.SetSpace(fn, dir)
}
