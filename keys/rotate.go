package keys

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

// Progress says how far a Rotate is.
type Progress struct {
	Key  string // the ID of the newest key, which new files have
	Done int    // files that this call has encrypted anew

	// Left are the names of the files that need another key. An older key may be destroyed when there are none, no copy of the directory needs it,
	// and no backup.
	Left []string
}

// Renew makes an open database encrypt its new files with the newest of its keys, for which it asks anew, and returns the ID of that key. The other files keep theirs until compactions
// replace them, or Rotate does; Stats.Engine.OlderKeys says how many there are. From then on the database needs the new key to be opened.
//
// If the key cannot be had, or has another secret than the one that had its ID before, the error is jay.ErrKey and nothing is changed. So is the error for a
// database that is not encrypted, or whose files another program has open; jay.ErrReadOnly and jay.ErrClosed are returned, too.
func Renew(db *jay.DB) (id string, err error) {
	err = inside(db, func(e storage.Rekeyer) (err error) {
		id, err = e.RenewKey()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("renew the key of %q: %w", db.Dir(), err)
	}
	return id, nil
}

// passes is how often Rotate looks for files. Compactions that had begun before write files with an older key until they end.
const passes = 10

// Rotate gives an open database the newest of its keys, as Renew does, and encrypts its older files anew, one after the other, while it is used. It takes breaks as long as
// its work. The disk needs room for the largest file twice. progress, if not nil, is called after each file.
//
// When it returns, Left has at most the manifest and the log: they get the key at the next start of the program at the latest. On Windows tables that are in use are
// left, too, until compactions replace them. If ctx ends, or the process, the files are as they are, and another Rotate goes on. Errors are those of Renew, and of the disk.
func Rotate(ctx context.Context, db *jay.DB, progress func(Progress)) (p Progress, err error) {
	if p.Key, err = Renew(db); err != nil {
		return p, err
	}
	if progress == nil {
		progress = func(Progress) {}
	}
	for range passes {
		done := p.Done
		if err := p.pass(ctx, db, progress); err != nil {
			return p, fmt.Errorf("rotate the keys of %q: %w", db.Dir(), err)
		}
		if p.Done == done {
			break
		}
	}
	return p, nil
}

// pass encrypts the files anew that have an older key.
func (p *Progress) pass(ctx context.Context, db *jay.DB, progress func(Progress)) error {
	if err := p.look(db); err != nil {
		return err
	}
	for _, name := range slices.Clone(p.Left) {
		if err := ctx.Err(); err != nil {
			return err
		}
		begun := time.Now()
		var done bool
		err := inside(db, func(e storage.Rekeyer) (err error) {
			done, err = e.Rekey(name)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !done {
			continue
		}
		p.Done++
		if i := slices.Index(p.Left, name); i >= 0 {
			p.Left = slices.Delete(slices.Clone(p.Left), i, i+1)
		}
		progress(*p)
		select {
		case <-time.After(time.Since(begun)):
		case <-ctx.Done():
		}
	}
	return p.look(db)
}

// look sets Left.
func (p *Progress) look(db *jay.DB) error {
	return inside(db, func(e storage.Rekeyer) (err error) {
		p.Left, err = e.OlderKeys()
		return err
	})
}

// inside calls fn with the engine of a database that stays open meanwhile.
func inside(db *jay.DB, fn func(storage.Rekeyer) error) error {
	core := parts.Of(db)
	return core.Inside(func() error {
		e, is := core.Env.Engine.(storage.Rekeyer)
		if !is {
			return fmt.Errorf("%w: the files of the database are not encrypted by this program", jay.ErrKey)
		}
		return fn(e)
	})
}
