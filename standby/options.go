package standby

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage/lsm"
)

// Options configure Open. The zero value is a good default.
type Options struct {
	// Database are the options with which the standby opens its database: FS, CacheBytes, Logger,
	// Observer, MaxQueryBytes and the like. EncryptionKeys encrypt the files of the standby, with keys
	// of its own, whether or not the files of the source are encrypted. Engine, ReadOnly and all
	// options that say how IDs are made must not be set. Nil means the defaults.
	Database *jay.Options

	// Retry is the longest pause of the back-off after an error of the source. The first pause is a
	// hundredth of it, and each pause is twice as long as the one before. The default is 10 s.
	Retry time.Duration
}

// withDefaults returns the options with their defaults, or an error that names the invalid one.
func (o Options) withDefaults() (Options, error) {
	database := jay.Options{}
	if o.Database != nil {
		database = *o.Database
	}
	switch {
	case database.Engine != nil || database.ReadOnly || database.AcceptLoss != nil || database.Cluster != nil:
		return o, fmt.Errorf("%w: Options.Database of a standby goes without Engine, ReadOnly, AcceptLoss and Cluster", jay.ErrOption)
	case database.CopyTag != "" || database.NodeTag != "" || database.Separator != "" || database.CaseSensitive:
		return o, fmt.Errorf("%w: Options.Database of a standby goes without CopyTag, NodeTag, Separator and CaseSensitive, which are those of its source", jay.ErrOption)
	case o.Retry < 0:
		return o, fmt.Errorf("%w: Options.Retry must not be negative, got %s", jay.ErrOption, o.Retry)
	}
	if database.Logger == nil {
		database.Logger = slog.New(slog.DiscardHandler)
	}
	o.Retry = cmp.Or(o.Retry, 10*time.Second)
	o.Database = &database
	return o, nil
}

// engine takes the options of the engine out of those of the database, with its shares of the
// memory. The caller must end the claim.
func (o *Options) engine() (lsm.Options, *budget.Claim, error) {
	d := o.Database
	asked := budget.Asked{Bound: d.MaxMemory, Blocks: d.CacheBytes, MemTable: d.MemTableBytes, Documents: d.DocumentCacheBytes, Query: int64(d.MaxQueryBytes)}
	given := (*budget.Common)(d.Memory)
	var claim *budget.Claim
	var err error
	switch {
	case d.MaxMemory != 0 && d.Memory != nil:
		err = fmt.Errorf("%w: MaxMemory (%d) goes without Memory", budget.ErrBound, d.MaxMemory)
	case d.MaxMemory != 0:
		claim, err = budget.Own(asked)
	default:
		shared := cmp.Or(given, budget.Process())
		var part *budget.Common
		claim, part, err = shared.Part(asked)
		d.Memory = (*jay.Memory)(part)
	}
	if errors.Is(err, budget.ErrBound) {
		err = fmt.Errorf("%w: Options.Database: %w", jay.ErrOption, err)
	}
	if err != nil {
		return lsm.Options{}, nil, err
	}
	if d.Loads == nil && given != nil {
		d.Loads = (*jay.Loads)(given.Shared(func() any { return lsm.NewLoads(claim.Loads(int64(cmp.Or(d.MaxDocumentBytes, 32<<20)))) }).(*lsm.Loads))
	}
	if d.MaxMemory > 0 {
		d.MaxMemory = max(budget.Least, 2*(max(0, claim.Documents)+claim.Heads+claim.Work)) // what the engine leaves
	}
	e := lsm.Options{FS: d.FS, CacheBytes: claim.Blocks, MemTableBytes: claim.MemTable, Loads: (*lsm.Loads)(d.Loads), GroupReadable: d.GroupReadable,
		EncryptionKeys: sealed.From(d.EncryptionKeys)}
	d.FS, d.CacheBytes, d.MemTableBytes, d.Loads, d.GroupReadable, d.EncryptionKeys = nil, 0, 0, nil, false, nil
	return e, claim, nil
}
