package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
)

// Server answers requests about the databases of a data directory. Its methods are safe
// for concurrent use.
type Server struct {
	Options   Options
	Table     *Table // of the endpoints
	Databases *Databases
	results   *results
	Gate      *Gate // of requests
	Streams   *Gate // of streams
	Sockets   *Gate // of changes sockets
	Memory    *Budget

	Began         time.Time
	Operations    *Operations
	Rejects       RejectStore // the records that imports have rejected
	Hubs          *Hubs
	Vectors       *Vectors
	Defining      sync.Mutex // held while an index definition changes
	Auth          *Authentication
	Authenticates atomic.Bool // every request needs credentials
	certificates  *certificates
	metrics       *metrics
	Nodes         *Nodes
	studio        http.Handler // of its files
	open          *Mount       // of a server of mounted databases without credentials: it reads

	mu      sync.RWMutex
	closing bool           // no more requests are accepted. Guarded by mu.
	running sync.WaitGroup // requests under way

	Ctx     context.Context // context of streams and of the server's own work
	cancel  context.CancelFunc
	janitor sync.WaitGroup
	closed  sync.Once
	err     error // result of Close
}

// Hold returns a database for the program itself: see server.Database.
func (s *Server) Hold(ctx context.Context, name string) (db *jay.DB, release func(), err error) {
	if err := s.begin(); err != nil {
		return nil, nil, fmt.Errorf("server: %w", jay.ErrClosed)
	}
	defer s.running.Done()
	db, release, err = s.Databases.Hold(ctx, name)
	switch p := (*Problem)(nil); {
	case errors.As(err, &p) && p.Kind == TypeDatabaseMissing:
		err = fmt.Errorf("server: database %q: %w", name, jay.ErrNoDatabase)
	case errors.As(err, &p) && p.Status == http.StatusBadRequest:
		err = fmt.Errorf("server: %w: %w", jay.ErrUsage, err)
	case err != nil:
		err = fmt.Errorf("server: database %q: %w", name, err)
	}
	return db, release, err
}

// refuse makes every later request fail.
func (s *Server) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
}

// begin counts a request, unless the server is closing. After success the caller must call
// s.running.Done.
func (s *Server) begin() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closing {
		return ErrShutdown
	}
	s.running.Add(1)
	return nil
}

// patience is how long a client may take for n bytes.
func (s *Server) patience(n int64) time.Duration {
	return s.Options.GraceTimeout + time.Duration(n/s.Options.MinBytesPerSecond)*time.Second
}

// Tag returns the node tag of the server in a database, or without a name that of the server.
func (s *Server) Tag(database string) string { return s.Databases.Tags.Of(database) }

// MemoryStats returns how the memory is divided, and what is used of it.
func (s *Server) MemoryStats() MemoryStats {
	return memoryStats(s.Options.MaxMemory, s.Memory, s.Databases.opts.Database.Memory)
}
