package inspect

import (
	"context"
	"errors"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// readLost counts, for each identity, the numbers that were reserved in the cluster and
// that no document has, those included that wait for the next write.
func (in *inspection) readLost(ctx context.Context, snapshot storage.Reader) error {
	lo, hi := format.LostBounds()
	it, err := snapshot.Iterate(lo, hi)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		name, err := format.LostName(it.Key())
		if err == nil {
			err = ctx.Err()
		}
		var lost format.Lost
		if err == nil {
			lost, err = format.DecodeLost(it.Value())
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if i := in.identities[strings.TrimSuffix(name, ids.IdentityMark)+in.db.Env.FoldedSeparator]; i != nil {
			i.Lost = lost.Count()
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil || in.db.Writer.Cluster == nil {
		return err
	}
	for name, free := range in.db.Writer.Cluster.Free() {
		if i := in.identities[strings.TrimSuffix(name, ids.IdentityMark)+in.db.Env.FoldedSeparator]; i != nil {
			i.Lost += free
		}
	}
	return nil
}
