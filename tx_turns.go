package jay

import (
	"context"
	"errors"

	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/internal/write"
)

// errGaveWay is the cause of a LostError of a transaction that would have interfered
// with others in line, and so did not commit. Update never returns it.
var errGaveWay = errors.New("the transaction gave way to others in line")

// commitInTurn commits what was staged. If caller has a turn, the commit ends it. If
// not, the transaction gives way to those in line. wrote reports whether anything was
// to be written.
func (t *Tx) commitInTurn(ctx context.Context, caller *turns.Caller, mayRunAgain bool) (wrote bool, err error) {
	if !caller.Held() && t.db.writer.Lines.Len() > 0 {
		if err := t.giveWay(ctx, caller, mayRunAgain); err != nil {
			return true, err
		}
	}
	wrote, err = t.commit(ctx, caller)
	if lost, ok := err.(write.LostError); ok && mayRunAgain {
		lost.Writes = t.writes()
		err = lost
	}
	return wrote, err
}

// giveWay returns a LostError if the transaction may run again and would interfere
// with others in line. If it may not, it only waits for exclusive turns.
func (t *Tx) giveWay(ctx context.Context, caller *turns.Caller, mayRunAgain bool) error {
	t.mu.Lock()
	ops := t.ops
	t.mu.Unlock()
	if !mayRunAgain {
		return t.db.writer.Yield(ctx, ops)
	}
	for d := range write.DocsOf(ops) {
		if key, met := caller.Meets(d); met {
			return write.LostError{Cause: errGaveWay, Over: key, Writes: t.writes()}
		}
	}
	return nil
}

// writes returns keys of documents that the transaction would have written. Its next
// run is likely to write them again, and stands in line for them, too.
func (t *Tx) writes() []turns.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	var keys []turns.Key
	for d := range write.DocsOf(t.ops) {
		if len(keys) == turns.MaxKeys {
			break
		}
		keys = append(keys, turns.Document(d.ID))
	}
	return keys
}
