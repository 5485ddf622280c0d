package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/jaydb/jay"
)

// RaftParam is the parameter with the ID of a command. If the reply is lost, the client
// sends the command again with the same ID, and it is not carried out again.
const RaftParam = "raft-request-id"

// results keeps the replies to commands by their IDs, in the server's own database. Only
// the newest are kept. After a crash between a command and the storing of its reply, a
// repeated command is carried out again.
type results struct {
	system *jay.DB

	mu      sync.Mutex
	done    map[string]result        // Guarded by mu.
	order   shares[string]           // keys of done, by sender. Guarded by mu.
	running map[string]chan struct{} // commands that are being carried out. Guarded by mu.
}

// result is a stored reply.
type result struct {
	Status int             //
	Body   json.RawMessage `json:",omitempty"` // the body as it was sent
	Sender string          `json:",omitempty"` // in whose share it is kept; one of an older version has none
	Given  string          `json:",omitempty"` // a hash of the request's body; one of an older version has none
}

const (
	resultPrefix   = "results/"
	maxResultBytes = 8 << 10 // of a reply; commands with an ID have smaller replies
)

func openResults(ctx context.Context, system *jay.DB, most int) (*results, error) {
	rs := &results{system: system, order: shares[string]{most: most}, done: make(map[string]result), running: make(map[string]chan struct{})}
	found, err := system.RQL("from Results order by @metadata.@etag", nil)
	if err != nil {
		return nil, err
	}
	for row, err := range found.Iter(ctx) {
		if err != nil {
			return nil, err
		}
		var r result
		if err := row.Document.Decode(&r); err != nil {
			return nil, err
		}
		key := strings.TrimPrefix(row.Document.ID(), resultPrefix)
		rs.done[key] = r
		if dropped, full := rs.order.add(r.Sender, key); full {
			delete(rs.done, dropped)
		}
	}
	return rs, nil
}

// resultKey returns the key of a command. The same ID with another command gives another
// key.
func resultKey(method, path, query, id string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{method, path, query, id}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// once calls fn, unless a command with this key has succeeded: then it returns the stored
// reply, or an error if that command had another body. Of concurrent calls with one key, one
// calls fn and the others wait for it.
func (rs *results) once(ctx context.Context, key, given string, fn func() (result, error)) (result, error) {
	for {
		rs.mu.Lock()
		if r, found := rs.done[key]; found {
			rs.mu.Unlock()
			if r.Given != "" && r.Given != given {
				return result{}, &Problem{Status: http.StatusUnprocessableEntity, Kind: TypeBadRequest, Message: "the " + RaftParam + " is that of a command with another body, which was carried out"}
			}
			return r, nil
		}
		wait := rs.running[key]
		if wait == nil {
			rs.running[key] = make(chan struct{})
			rs.mu.Unlock()
			return rs.first(ctx, key, fn)
		}
		rs.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return result{}, ctx.Err()
		}
	}
}

// first calls fn, and stores its result if it has succeeded.
func (rs *results) first(ctx context.Context, key string, fn func() (result, error)) (r result, err error) {
	defer func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		close(rs.running[key])
		delete(rs.running, key)
	}()
	r, err = fn()
	if err != nil || len(r.Body) > maxResultBytes {
		return r, err
	}
	return r, rs.keep(context.WithoutCancel(ctx), key, r)
}

// keep stores a result, and removes another one if there are too many: see shares.
func (rs *results) keep(ctx context.Context, key string, r result) error {
	rs.mu.Lock()
	drop, full := rs.order.add(r.Sender, key)
	rs.done[key] = r
	if full {
		delete(rs.done, drop)
	}
	rs.mu.Unlock()

	var b jay.Batch
	if full {
		b.Delete(resultPrefix + drop)
	}
	b.Put(resultPrefix+key, MustJSON(r), jay.InCollection("Results"))
	_, err := rs.system.Apply(ctx, &b)
	return err
}
