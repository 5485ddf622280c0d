package write

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// patchTurns serializes patches that lost against other writers: one at a time
// patches a document, in the order of arrival. So each of many patches of a large
// document is computed about once, and none starves. The zero value is ready.
type patchTurns struct {
	waiting atomic.Int64 // turns taken and waited for

	mu   sync.Mutex
	byID map[string]*patchTurn // Guarded by mu.
}

// patchTurn is the turn of one document.
type patchTurn struct {
	taken chan struct{} // full while the turn is taken; senders are served in order
	users int           // that have it or wait for it. Guarded by patchTurns.mu.
}

// awaited reports whether a patch of the document has a turn, or waits for one.
func (p *patchTurns) awaited(id string) bool {
	if p.waiting.Load() == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byID[id] != nil
}

// take waits for the turns of documents. A caller that has some must leave them
// first. It returns what ends the turns, or the error of ctx.
func (p *patchTurns) take(ctx context.Context, ids []string) (leave func(), err error) {
	ids = slices.Clone(ids)
	slices.Sort(ids) // all wait in the same order
	ids = slices.Compact(ids)

	var taken []string
	leave = func() {
		for _, id := range taken {
			<-p.of(id, 0).taken
			p.of(id, -1)
		}
	}
	for _, id := range ids {
		turn := p.of(id, 1)
		select {
		case turn.taken <- struct{}{}:
			taken = append(taken, id)
		case <-ctx.Done():
			p.of(id, -1)
			leave()
			return nil, ctx.Err()
		}
	}
	return leave, nil
}

// of returns the turn of a document, with so many users more.
func (p *patchTurns) of(id string, users int) *patchTurn {
	p.waiting.Add(int64(users))
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := p.byID[id]
	if turn == nil {
		turn = &patchTurn{taken: make(chan struct{}, 1)}
		if p.byID == nil {
			p.byID = make(map[string]*patchTurn)
		}
		p.byID[id] = turn
	}
	if turn.users += users; turn.users == 0 {
		delete(p.byID, id)
	}
	return turn
}
