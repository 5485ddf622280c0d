package lsm

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// uses are the features that a store uses. Only the leader of the commits raises them.
type uses struct {
	known    storage.Features
	older    int // the number of a store that is only read, if it is below BaseFormat; else 0
	features atomic.Uint64
	files    storage.FeatureSet // of the files, and not of what is in them: see storage.FeatureEncrypted
}

// ofFiles returns the format that the format file names.
func (u *uses) ofFiles() storage.StoreFormat {
	return u.known.Format(storage.FeatureSet(u.features.Load()) | u.files)
}

// Format implements storage.Engine.
func (u *uses) Format() storage.StoreFormat {
	if u.older > 0 {
		return storage.StoreFormat{Number: u.older}
	}
	return u.known.Format(storage.FeatureSet(u.features.Load()))
}

// raise writes the format file of dir anew if features are needed that the store does not use yet. No commit
// that needs them has been given to Pebble.
func (u *uses) raise(needs storage.FeatureSet, fs vfs.FS, dir string, log *slog.Logger) error {
	before := storage.FeatureSet(u.features.Load())
	needs &^= encryptedBit(u.known)
	if needs&^before == 0 {
		return nil
	}
	format := u.known.Format(before | needs | u.files)
	if err := writeFormatFile(fs, dir, format); err != nil {
		return fmt.Errorf("the number of the format cannot be raised to %d, and nothing was committed: %w", format.Number, openError(err))
	}
	u.features.Store(uint64(before | needs))
	log.Info("jay: the format of the database has risen", "dir", dir, "to", format.Number, "uses", u.known.Format(needs&^before).Features)
	return nil
}
