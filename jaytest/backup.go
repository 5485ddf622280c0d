package jaytest

import (
	"bytes"
	"io"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// backupTag is the node tag of databases that CheckBackup makes.
const backupTag = "ZZZZ"

// CheckBackup fails the test if a chain of backups, a full one and the incremental ones that follow
// it, is not whole or cannot be restored. It restores the chain on a disk in memory, checks each
// document and each index entry there, opens the restored database, and returns what the database
// has. The database of the backups must not have the node tag ZZZZ.
func CheckBackup(t T, chain ...[]byte) jay.RestoreInfo {
	t.Helper()
	readers := func() (all []io.Reader) {
		for _, stream := range chain {
			all = append(all, bytes.NewReader(stream))
		}
		return all
	}
	if _, err := jay.VerifyBackup(background, nil, readers()...); err != nil {
		t.Errorf("jaytest: check backup: %v", err)
		return jay.RestoreInfo{}
	}
	disk := storagetest.NewDisk()
	info, err := jay.Restore(background, dir, jay.RestoreOptions{CopyTag: backupTag, Options: &jay.Options{FS: disk}}, readers()...)
	if err != nil {
		t.Errorf("jaytest: check backup: it is whole, and cannot be restored: %v", err)
		return info
	}
	db, err := jay.Open(dir, &jay.Options{FS: disk, MustExist: true})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Errorf("jaytest: check backup: what was restored: %v", err)
	}
	return info
}
