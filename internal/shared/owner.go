package shared

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Owner shows the store that a database has for itself as a shared one, to processes that only read it. Its
// snapshots have two records that only a shared store keeps: the version of the definitions, and the last etag, in the
// place of the reservation; and the session, with which records of identities have the number that the database sees. It is safe for concurrent use.
type Owner struct {
	engine  storage.Engine
	etag    func(storage.Reader) (uint64, error) // the last that a reader sees
	session uint64

	mu          sync.Mutex
	version     uint64                        // of definitions. Guarded by mu.
	definitions [len(format.Defining)]*[]byte // of the last snapshot, nil for one that is missing. Guarded by mu.
}

// NewOwner returns the Owner of an engine that is not shared.
func NewOwner(engine storage.Engine, etag func(storage.Reader) (uint64, error), session uint64) *Owner {
	return &Owner{engine: engine, etag: etag, session: session}
}

// Snapshot returns a snapshot for readers of a shared store.
func (o *Owner) Snapshot() (storage.Snapshot, error) {
	o.mu.Lock() // so that a later snapshot has no lower version
	defer o.mu.Unlock()
	s := o.engine.Snapshot()
	var found [len(format.Defining)]*[]byte
	for i, key := range format.Defining {
		value, closer, err := s.Get(key)
		if err == storage.ErrNotFound {
			continue
		}
		if err != nil {
			return nil, errs.First(err, s.Close())
		}
		value = bytes.Clone(value)
		found[i] = &value
		if err := closer.Close(); err != nil {
			return nil, errs.First(err, s.Close())
		}
	}
	for i, now := range found {
		old := o.definitions[i]
		if o.version == 0 || (old == nil) != (now == nil) || old != nil && !bytes.Equal(*old, *now) {
			o.version++
			o.definitions = found
			break
		}
	}
	return ownerSnapshot{s, o, o.version}, nil
}

// ownerSnapshot is a snapshot with the records of a shared store.
type ownerSnapshot struct {
	storage.Snapshot
	owner   *Owner
	version uint64
}

// Get implements storage.Reader.
func (s ownerSnapshot) Get(key []byte) ([]byte, io.Closer, error) {
	n := s.version
	switch {
	case bytes.Equal(key, etagKey):
		var err error
		if n, err = s.owner.etag(s.Snapshot); err != nil {
			return nil, nil, err
		}
	case bytes.Equal(key, sessionKey):
		n = s.owner.session
	case !bytes.Equal(key, versionKey):
		return s.Snapshot.Get(key)
	}
	return binary.BigEndian.AppendUint64(nil, n), nothing{}, nil
}

// nothing is the closer of a value that is its caller's.
type nothing struct{}

func (nothing) Close() error { return nil }
