// Package rekey gives an open database another encryption key: in this program, or in the program that has the database open, if this one looks into it.
//
// All of the package is safe for concurrent use.
package rekey

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/storage"
)

// Arguments are those of ask.RenewKey, whose result is the ID of the key, and of ask.RotateKeys, whose progress and result are a Progress.
type Arguments struct {
	// Expected is the ID that the newest key must have, or nothing is changed. "" expects none.
	Expected string `json:"expected,omitempty"`
}

// Progress says how far a Rotate is: see keys.Progress.
type Progress struct {
	Key  string   `json:"key"`
	Done int      `json:"done"`
	Left []string `json:"left,omitempty"`
}

// Renew gives the newest key to the files that are made from now on, and returns its ID: see keys.Renew.
func Renew(ctx context.Context, db *core.Database, a Arguments) (id string, err error) {
	if db.Owner != nil {
		err := core.Ask[string, any](ctx, db, ask.RenewKey, a, &id, nil)
		return id, err
	}
	err = inside(db, func(e storage.Rekeyer) (err error) {
		id, err = e.RenewKey(a.Expected)
		return err
	})
	return id, err
}

// passes is how often Rotate looks for files. Compactions that had begun before write files with an older key until they end.
const passes = 10

// Rotate is Renew, and then encrypts the older files anew: see keys.Rotate. progress is called after each file, or now and then if another program does the work.
func Rotate(ctx context.Context, db *core.Database, a Arguments, progress func(Progress)) (p Progress, err error) {
	if db.Owner != nil {
		err := core.Ask(ctx, db, ask.RotateKeys, a, &p, progress)
		return p, err
	}
	if p.Key, err = Renew(ctx, db, a); err != nil {
		return p, err
	}
	for range passes {
		done := p.Done
		if err := p.pass(ctx, db, progress); err != nil {
			return p, err
		}
		if p.Done == done {
			break
		}
	}
	return p, nil
}

// pass encrypts the files anew that have an older key.
func (p *Progress) pass(ctx context.Context, db *core.Database, progress func(Progress)) error {
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
func (p *Progress) look(db *core.Database) error {
	return inside(db, func(e storage.Rekeyer) (err error) {
		p.Left, err = e.OlderKeys()
		return err
	})
}

// inside calls fn with the engine of a database that stays open meanwhile.
func inside(db *core.Database, fn func(storage.Rekeyer) error) error {
	return db.Inside(func() error {
		e, is := db.Env.Engine.(storage.Rekeyer)
		if !is {
			return fmt.Errorf("%w: the files of the database are not encrypted by this program", storage.ErrKey)
		}
		return fn(e)
	})
}
