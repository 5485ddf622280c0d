package jay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/storage"
)

// Checkpoint makes a copy of the database as the directory dir, which must not exist: a
// database that Open opens, with its indexes. It has every write that was acknowledged
// before the call, and perhaps later ones. Reads and writes go on.
//
// Where the file system can, tables are linked and not copied, so that it takes little
// time and space at first: files that the database removes stay for as long as the
// checkpoint has them. It lies on the same disk then and is no protection against losing
// that. Copy it to where it is to be kept, or use Backup.
//
// The copy has the node tag of the original. To read it, also in several processes, open it with
// Options.ReadOnly; to write to it beside the original, with Options.CopyTag, and see
// there. The directory appears when it is complete. Until then it is called dir
// with ".unfinished" behind it; a process that ends meanwhile leaves that, to be
// removed. If ctx ends, Checkpoint removes it. A database in memory has no checkpoints: ErrUsage.
func (db *DB) Checkpoint(ctx context.Context, dir string) error {
	if err := checkpoint(ctx, db, dir); err != nil {
		return fmt.Errorf("checkpoint %q: %w", dir, err)
	}
	return nil
}

func checkpoint(ctx context.Context, db *DB, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	maker, is := db.env.Engine.(storage.Checkpointer)
	if !is || db.inMemory {
		return fmt.Errorf("%w: this storage makes no checkpoints; use Backup", ErrUsage)
	}
	if dir == "" {
		return fmt.Errorf("%w: no directory is named", ErrUsage)
	}
	ctx, cancel := db.horizon.Context(ctx) // Close ends it
	defer cancel()
	err := db.inside(func() error { return maker.Checkpoint(ctx, dir) })
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}
