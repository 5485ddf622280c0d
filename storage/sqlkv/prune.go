package sqlkv

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// prune deletes rows of commits that are older than Driver.Retention, until the engine is closed.
// Each process that has the store open does so; the last row stays.
func (e *Engine) prune() {
	tick := time.NewTicker(max(e.retention/10, time.Millisecond))
	defer tick.Stop()
	pruned := int64(-1) // rows up to this number are gone
	for {
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
		for more := true; more && e.ctx.Err() == nil; {
			last, count, err := e.pruneAfter(pruned)
			if err != nil {
				e.log.Warn("jay: old rows of commits could not be deleted; it is tried again", "store", e.address.String(), "error", err)
				break
			}
			pruned = last
			more = count == prunedAtOnce
		}
	}
}

// prunedAtOnce is how many rows one statement deletes at most.
const prunedAtOnce = 10_000

// pruneAfter deletes rows with higher numbers. It returns the highest number of a row that it has
// deleted, or number, and how many they were.
func (e *Engine) pruneAfter(number int64) (last int64, count int, err error) {
	last = number
	ctx, cancel := e.bounded()
	defer cancel()
	err = e.retried(ctx, func(c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, e.sql.prune, number, prunedAtOnce, e.retention)
		if err != nil {
			return err
		}
		numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		count = len(numbers)
		for _, n := range numbers {
			last = max(last, n)
		}
		return err
	})
	return last, count, e.address.explain(err)
}
