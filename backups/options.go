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
	// Dir is the directory of the backups, which Open makes if it is missing, also those above it. It should not be on the disk of the
	// database.
	Dir string

	// Every is the time from one backup to the next. Without any, the first is made at once. After a failure it
	// is tried again after a minute, then two, four and so on, up to Every.
	//
	// The default is an hour; less than a second is invalid.
	Every time.Duration

	// Full is how old the full backup at the beginning of a chain may become, by its date, before the next one is
	// a full one again. It takes as long as the whole database; a chain has at most 1,000 links.
	//
	// The default is 24 hours.
	Full time.Duration

	// Keep is how many of the newest backups stay. As backups are removed by whole chains, there are up to a chain more. The
	// default is 48, or 0 with KeepFor.
	Keep int

	// KeepFor is how long a backup stays after it was made. With Keep, too, a chain is removed only when neither keeps one of its
	// backups: a clock that is set forward leaves the newest Keep. The default is 0: age does not count.
	KeepFor time.Duration

	// LateAfter is how old the last good backup may become before Status says that it is late, and each failure is logged at
	// level Error. The default is three times Every.
	LateAfter time.Duration

	// Each, if not nil, is called with each new backup, whose file was read to its end and is on disk, to copy it
	// elsewhere. Until it has returned nil for a file, it is called for it again after the next backup and by the next Keeper. The
	// path is below Dir. The files of a chain come in their order; when one fails, later ones wait.
	Each func(ctx context.Context, b Backup) error

	// EncryptionKeys encrypt the backups, with the newest one, and read those that are there, also with older ones. The default are the keys with which
	// the database was opened; without any, backups are not encrypted.
	EncryptionKeys jay.EncryptionKeys

	// Plain makes backups that are not encrypted, though the database may be. Those that are there are read with the keys all the same. It goes without
	// EncryptionKeys.
	//
	// Danger: whoever has the backups reads all of the database.
	Plain bool

	// Logger receives a record for each backup at level Info, and for each failure at Warn. The default is no logging.
	Logger *slog.Logger

	// FS replaces the operating system's files: see jay.Options.FS. The default is those, for their owner only.
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
