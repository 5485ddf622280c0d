package backups

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/lsm"
)

// drillTags are node tags for databases that exist only during a drill. One of them is free.
var drillTags = []string{"ZZZZ", "ZZZY", "ZZZX", "ZZZW"}

// Drill restores the newest chain of the Keeper's directory, as the function Drill does. Backups wait for it. Without a
// chain it returns ErrNoBackup.
func (k *Keeper) Drill(ctx context.Context, dir string) (jay.RestoreInfo, error) {
	k.making.Lock() // no link is removed meanwhile
	defer k.making.Unlock()
	links, err := Chain(k.o.FS, k.o.Dir)
	if err != nil {
		return jay.RestoreInfo{}, err
	}
	return Drill(ctx, k.o.FS, dir, paths(links)...)
}

// Drill restores backups, a full one and those that follow it, into a new directory dir, as it would be restored after a loss, with its indexes and
// a check of all that is in it, and removes the directory. It needs the room, the time and the memory of a restore. The
// restored database is never opened for anything else, and its node tag, which begins with ZZZ, is not used up. A nil
// file system is that of the machine.
//
// dir must not exist: fs.ErrExist otherwise. It returns the errors of jay.RestoreFrom: a backup that cannot be restored.
func Drill(ctx context.Context, disk lsm.FS, dir string, backups ...string) (info jay.RestoreInfo, err error) {
	if disk == nil {
		disk = lsm.OS(false)
	}
	for _, tag := range drillTags {
		info, err = jay.RestoreFrom(ctx, dir, jay.RestoreOptions{CopyTag: tag, Options: &jay.Options{FS: disk}}, backups...)
		if !errors.Is(err, jay.ErrFixed) {
			break
		}
	}
	if err != nil {
		return info, fmt.Errorf("drill: %w", err)
	}
	if err := disk.RemoveAll(dir); err != nil {
		return info, fmt.Errorf("drill: what was restored is left: %w", err)
	}
	return info, nil
}
