package expiry

import (
	"context"
	"errors"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/storage"
)

// Configure switches expiration or refresh, which kind says, on or off: on disk, and then
// in this process. When Configure has returned for off, no document is deleted, or
// refreshed, any more. Once the commit has begun, the end of ctx has no effect.
//
// The entries of what is due stay as they are and are kept up to date. So switching on
// finds what became due meanwhile.
func (s *Sweeper) Configure(ctx context.Context, kind byte, disabled bool) error {
	s.toggle.Lock()
	defer s.toggle.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	flag := &s.env.ExpirationDisabled
	if kind == format.DueRefresh {
		flag = &s.env.RefreshDisabled
	}
	if s.env.Engine.Shared() { // its engine follows the settings
		err := change(ctx, s.env.Engine, kind, disabled)
		s.agenda.Wake()
		return err
	}
	was := flag.Load()
	if disabled {
		// Before the commit: transactions are staged one after another, so that those that
		// have not seen the flag are committed before the settings are.
		flag.Store(true)
	}
	err := change(ctx, s.env.Engine, kind, disabled)
	if err != nil && !errors.Is(err, storage.ErrUnknownOutcome) {
		flag.Store(was)
		s.agenda.Wake()
		return err
	}
	flag.Store(disabled) // after an unknown outcome the database refuses all writes
	if !disabled {
		s.agenda.Wake()
	}
	return err
}

// change changes the settings on disk.
func change(ctx context.Context, engine storage.Engine, kind byte, disabled bool) error {
	return settings.Change(context.WithoutCancel(ctx), engine, func(stored *format.Settings) {
		if kind == format.DueRefresh {
			stored.RefreshDisabled = disabled
		} else {
			stored.ExpirationDisabled = disabled
		}
	})
}
