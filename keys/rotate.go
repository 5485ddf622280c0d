package keys

import (
	"context"
	"fmt"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/rekey"
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
// Of a database that another program has open (jay.Look), that program does it, with its keys and without Options.LookWrites.
//
// If the key cannot be had, or has another secret than the one that had its ID before, the error is jay.ErrKey and nothing is changed. So is the error for a
// database that is not encrypted; jay.ErrReadOnly and jay.ErrClosed are returned, too.
func Renew(db *jay.DB) (id string, err error) {
	id, err = rekey.Renew(context.Background(), parts.Of(db), rekey.Arguments{})
	if err != nil {
		return "", fmt.Errorf("renew the key of %q: %w", db.Dir(), err)
	}
	return id, nil
}

// Rotate gives an open database the newest of its keys, as Renew does, and encrypts its older files anew, one after the other, while it is used. It takes breaks as long as
// its work. The disk needs room for the largest file twice. progress, if not nil, is called after each file; of a database that another program has open, now and then, by other goroutines.
//
// When it returns, Left has at most the manifest and the log: they get the key at the next start of the program at the latest. On Windows tables that are in use are
// left, too, until compactions replace them. If ctx ends, or the process, the files are as they are, and another Rotate goes on. Errors are those of Renew, and of the disk.
// If the program that has the database open ends meanwhile, the error is jay.ErrUnknownOutcome.
func Rotate(ctx context.Context, db *jay.DB, progress func(Progress)) (Progress, error) {
	return RotateTo(ctx, db, "", progress)
}

// RotateTo is Rotate to the key with this ID. If the newest key of the database is another one, the error is jay.ErrKey, which names that key, and nothing is changed: so who
// has added a key to a file learns whether the program that has the database open reads the same file. "" is any key.
func RotateTo(ctx context.Context, db *jay.DB, id string, progress func(Progress)) (Progress, error) {
	report := func(rekey.Progress) {}
	if progress != nil {
		report = func(p rekey.Progress) { progress(Progress(p)) }
	}
	p, err := rekey.Rotate(ctx, parts.Of(db), rekey.Arguments{Expected: id}, report)
	if err != nil {
		err = fmt.Errorf("rotate the keys of %q: %w", db.Dir(), err)
	}
	return Progress(p), err
}
