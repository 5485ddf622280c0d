package settings_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that accepting the loss of the settings switches expiration and refresh off, since
// they may have been off, and that the damage says so. Only the engine can lose a record.
func TestOpen_SettingsLostSwitchExpirationOff(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	db, err := jay.Open("db", &jay.Options{FS: disk})
	jaytest.Must(t, err)
	jaytest.Must(t, parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		tx.Delete(format.AppendKey(nil, format.SpaceMeta, format.SettingsName))
		return nil
	}))
	jaytest.Must(t, parts.Of(db).Env.Engine.Close())
	loss := ""
	db, err = jay.Open("db", &jay.Options{FS: disk, AcceptLoss: func(d *jay.DamageError) { loss += d.Loss }})
	jaytest.Must(t, err)
	defer db.Close()
	if !strings.Contains(loss, "expiration and refresh are switched off") {
		t.Errorf("the loss is %q", loss)
	}
	if !db.ExpirationConfiguration().Disabled || !db.RefreshConfiguration().Disabled {
		t.Error("expiration or refresh is on")
	}
}
