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

// Drill restores the newest chain of the Keeper's directory, as the function Drill does. Backups
// wait until it has returned. It returns ErrNoBackup if there is no chain.
func (k *Keeper) Drill(ctx context.Context, dir string) (jay.RestoreInfo, error) {
	k.making.Lock() // no link is removed meanwhile
	defer k.making.Unlock()
	if _, err := k.scan(ctx); err != nil { // from now on the keys are known
		return jay.RestoreInfo{}, fmt.Errorf("backups of %q: %w", k.o.Dir, err)
	}
	f := Files{k.o.FS, k.keys}
	links, err := f.Chain(k.o.Dir)
	if err != nil {
		return jay.RestoreInfo{}, err
	}
	return f.Drill(ctx, dir, paths(links)...)
}

// Drill restores a chain of backups into a new directory dir, as after a loss, and then removes the
// directory. It builds the indexes and checks everything in the restored database. It needs the
// disk space, the time and the memory of a restore. The restored database is never opened for
// anything else. Its node tag, which begins with ZZZ, is not used up.
//
// With keys, Drill encrypts the restored database with the newest key, so that no data is on the
// disk in the clear.
//
// Drill returns fs.ErrExist if dir exists, and the errors of jay.RestoreFrom if the backups cannot
// be restored.
func (f Files) Drill(ctx context.Context, dir string, backups ...string) (info jay.RestoreInfo, err error) {
	disk := f.FS
	if disk == nil {
		disk = lsm.OS(false)
	}
	for _, tag := range drillTags {
		info, err = jay.RestoreFrom(ctx, dir, jay.RestoreOptions{CopyTag: tag, Options: &jay.Options{FS: disk, EncryptionKeys: f.EncryptionKeys}}, backups...)
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

// Drill is Files.Drill without keys. A nil file system means the operating system's files.
func Drill(ctx context.Context, disk lsm.FS, dir string, backups ...string) (jay.RestoreInfo, error) {
	return Files{FS: disk}.Drill(ctx, dir, backups...)
}
