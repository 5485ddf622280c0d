package backups

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/lsm"
)

// Options configure Open. Dir must be set.
type Options struct {
	// Dir is the directory of the backups. Open makes it, and the directories above it, if they do not
	// exist. It should not be on the disk of the database.
	Dir string

	// Every is the time from one backup to the next. If there is no backup, the first is due at once.
	// After a failure the next attempt is due after a minute, then two, four and so on, up to Every.
	//
	// The default is an hour. Less than a second is invalid.
	Every time.Duration

	// Full is the greatest age of the full backup at the beginning of a chain, by its date. When it is
	// older, the next backup is a full one again. A full backup takes as long as a copy of the whole
	// database. A chain has at most 1,000 links.
	//
	// The default is 24 hours.
	Full time.Duration

	// Keep is how many of the newest backups stay. Backups are removed in whole chains, so up to a
	// chain more stay. The default is 48, or 0 with KeepFor.
	Keep int

	// KeepFor is how long a backup stays after it was made. If Keep is set, too, a chain is removed
	// only when neither of the two keeps one of its backups, so that the newest Keep backups stay even
	// if the clock is set forward. The default is 0: age does not count.
	KeepFor time.Duration

	// LateAfter is the greatest age of the last good backup. When it is older, Status says that it is
	// late, and each failure is logged at level Error. The default is three times Every.
	LateAfter time.Duration

	// Each, if not nil, copies a backup to another place. The Keeper calls it with each new backup,
	// after the file was read to its end and is on disk. The path is below Dir. If Each returns an
	// error for a file, the Keeper calls it for this file again after the next backup, and the next
	// Keeper does so, too. The files of a chain come in their order: when Each fails for one, later
	// files wait.
	Each func(ctx context.Context, b Backup) error

	// EncryptionKeys encrypt and read the backups. The Keeper encrypts new backups with the newest
	// key, and reads existing ones with older keys, too. The default is the keys with which the
	// database was opened. Without keys, backups are not encrypted.
	EncryptionKeys jay.EncryptionKeys

	// Plain makes backups that are not encrypted, even of an encrypted database. The Keeper still
	// reads existing backups with the keys of the database. Plain and EncryptionKeys cannot both be
	// set.
	//
	// Danger: anyone who has the backups can read all of the database.
	Plain bool

	// Logger receives a record for each backup at level Info, and for each failure at Warn. The default is no logging.
	Logger *slog.Logger

	// FS replaces the operating system's files: see jay.Options.FS. The default is the operating
	// system's files, readable by their owner only.
	FS lsm.FS

	// Now replaces the clock that ages are measured by. The default is time.Now.
	Now func() time.Time

	// After replaces time.After, with which Run waits.
	After func(d time.Duration) <-chan time.Time
}

// Bounds of a directory and of a chain.
const (
	maxFiles = 100_000
	maxChain = 1000
)

// withDefaults returns the options with their defaults, or an error that names the invalid one.
func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, fmt.Errorf("%w: Options.Dir names no directory", jay.ErrOption)
	}
	o.Every = cmp.Or(o.Every, time.Hour)
	o.Full = cmp.Or(o.Full, 24*time.Hour)
	if o.KeepFor == 0 {
		o.Keep = cmp.Or(o.Keep, 48)
	}
	if o.Every < time.Second {
		return o, fmt.Errorf("%w: Options.Every must be at least a second, got %s", jay.ErrOption, o.Every)
	}
	o.LateAfter = cmp.Or(o.LateAfter, 3*o.Every)
	for _, one := range []struct {
		name  string
		value int64
	}{{"Full", int64(o.Full)}, {"Keep", int64(o.Keep)}, {"KeepFor", int64(o.KeepFor)}, {"LateAfter", int64(o.LateAfter)}} {
		if one.value < 0 {
			return o, fmt.Errorf("%w: Options.%s must not be negative, got %d", jay.ErrOption, one.name, one.value)
		}
	}
	if o.Plain && o.EncryptionKeys != nil {
		return o, fmt.Errorf("%w: Options.Plain and Options.EncryptionKeys exclude each other", jay.ErrOption)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = lsm.OS(false)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	return o, nil
}
