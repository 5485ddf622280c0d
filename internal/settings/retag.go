package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// retag makes the copy of a database a database of its own: a new node with
// this tag and a new database ID, under which everything is written from now
// on. A tag that the database has had is ErrFixed.
//
// Leases of the original are void, and the first backup is a full one. Identities, and HiLo numbers without a node
// tag, wait for a floor, since their records belong to another node. It is one synced
// commit: a crash leaves either the copy as it was, to be retagged by the next
// Open, or the new database.
func (o *opening) retag(ctx context.Context, stored format.Settings, tag string) (format.Settings, error) {
	origins := o.env.Origins
	own, err := newOrigin(o.env.Random(), tag)
	if err != nil {
		return stored, err
	}
	highest := stored.Node
	for node, origin := range origins {
		if origin.Tag == tag {
			return stored, fmt.Errorf("%w: its node tag is %q, and CopyTag %q is one that it had before it was copied: databases that have that still make the same ids; choose a tag that no copy has had", errs.ErrFixed, origins[stored.Node].Tag, tag)
		}
		highest = max(highest, node)
	}
	stored.Node = highest + 1

	err = o.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		for _, s := range format.Spaces {
			if s.Retag != format.ChangedByRetag {
				continue
			}
			if err := retags[s.First](ctx, tx, stored, own); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return stored, fmt.Errorf("open a copy under the node tag %q: %w", tag, err)
	}
	origins[stored.Node] = own
	return stored, nil
}

// retags stage what a new tag changes in each space of format.ChangedByRetag: stored has the new
// node, and own its tag and its ID.
var retags = map[byte]func(ctx context.Context, tx storage.Tx, stored format.Settings, own format.Origin) error{
	format.SpaceHiLo: voidLeases,
	format.SpaceMeta: func(_ context.Context, tx storage.Tx, stored format.Settings, _ format.Origin) error {
		// No backup of another database can follow those of the original.
		for _, name := range []string{format.BackupsName, format.FloorPrefix + format.BackupFloor} {
			tx.Delete(format.AppendKey(nil, format.SpaceMeta, name))
		}
		return set(tx, stored)
	},
	format.SpaceNode: func(_ context.Context, tx storage.Tx, stored format.Settings, own format.Origin) error {
		return env.SetJSON(tx, format.NodeKey(stored.Node), own)
	},
}

// voidLeases removes the leases of all ranges. The marks stay.
func voidLeases(ctx context.Context, tx storage.Tx, _ format.Settings, _ format.Origin) error {
	it, err := tx.Iterate([]byte{format.SpaceHiLo}, []byte{format.SpaceHiLo + 1})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, it.Close())
		}
		marks, err := format.DecodeMarks(it.Value())
		if err != nil {
			return errors.Join(fmt.Errorf("marks %q: %w", it.Key(), err), it.Close())
		}
		marks.Leases = nil
		tx.Set(bytes.Clone(it.Key()), format.AppendMarks(nil, marks), nil)
	}
	return errors.Join(it.Error(), it.Close())
}

// newOrigin makes a database ID for a node tag.
func newOrigin(random io.Reader, tag string) (format.Origin, error) {
	if err := ids.CheckNodeTag(tag); err != nil {
		return format.Origin{}, fmt.Errorf("%w: %w", errs.ErrOption, err)
	}
	id, err := format.RandomID(random)
	if err != nil {
		return format.Origin{}, fmt.Errorf("make the database's id: %w", err)
	}
	return format.Origin{Tag: tag, ID: id}, nil
}
