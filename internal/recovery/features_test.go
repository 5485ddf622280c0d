package recovery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// spots is a feature of the next version.
var spots = storage.Feature{Format: storage.Format + 1, Name: "spots"}

// nextVersion and thisVersion are the engines of two versions on one disk.
func nextVersion(disk *storagetest.Disk) *jay.Options {
	return &jay.Options{Engine: lsm.Driver{Options: lsm.Options{FS: disk, Features: append(slices.Clone(storage.AllFeatures[:]), spots)}}}
}

func thisVersion(disk *storagetest.Disk) *jay.Options {
	return &jay.Options{Engine: lsm.Driver{Options: lsm.Options{FS: disk}}}
}

// useSpots writes something that only the next version knows.
func useSpots(t *testing.T, db *jay.DB) {
	t.Helper()
	jaytest.Must(t, parts.Of(db).Env.Engine.Update(context.Background(), true, func(tx storage.Tx) error {
		tx.RequireFeature(spots)
		return nil
	}))
}

// wantSpots checks that this version refuses a database, and names what it does not know.
func wantSpots(t *testing.T, what string, err error) {
	t.Helper()
	var f *jay.FormatError
	if !errors.As(err, &f) || !errors.Is(err, jay.ErrNewerFormat) || f.Found != spots.Format || f.Newest != storage.Format || !slices.Equal(f.Features, []string{"spots"}) || !strings.Contains(err.Error(), `"spots"`) {
		t.Errorf("%s: got %v, want a FormatError that names spots", what, err)
	}
}

// wantFormat checks the text of a format file.
func wantFormat(t *testing.T, disk *storagetest.Disk, dir, want string) {
	t.Helper()
	f, err := disk.Open(dir + "/JAY")
	jaytest.Must(t, err)
	text, err := io.ReadAll(f)
	jaytest.Must(t, errors.Join(err, f.Close()))
	if string(text) != want {
		t.Errorf("%s/JAY is %q, want %q", dir, text, want)
	}
}

// Ensure that backups, restored databases, checkpoints, repaired ones and copies under another tag have
// the format of their original and no higher one, and that a version that knows less refuses each and
// names the feature.
func TestFeatures_Kept(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	db, err := jay.Open("db", nextVersion(disk))
	jaytest.Must(t, err)
	jaytest.Put(t, db, "ann", `{}`)
	var full, next bytes.Buffer
	first, err := db.Backup(ctx, &full)
	jaytest.Must(t, err)

	// Before the first use, both versions can do everything.
	lowest := fmt.Sprintf("jay database, format %d\n", storage.BaseFormat)
	restore := func(dir string, o *jay.Options, streams ...[]byte) error {
		readers := make([]io.Reader, len(streams))
		for i, stream := range streams {
			readers[i] = bytes.NewReader(stream)
		}
		_, err := jay.Restore(ctx, dir, jay.RestoreOptions{CopyTag: "R", Options: o}, readers...)
		return err
	}
	jaytest.Must(t, restore("restored-before", thisVersion(disk), full.Bytes()))
	wantFormat(t, disk, "restored-before", lowest)
	wantFormat(t, disk, "db", lowest)

	useSpots(t, db)
	jaytest.Put(t, db, "bob", `{}`)
	_, err = db.Backup(ctx, &next, jay.BackupSince(first.ID))
	jaytest.Must(t, err)
	jaytest.Must(t, db.Checkpoint(ctx, "checkpoint"))
	jaytest.Must(t, db.Close())

	jaytest.Must(t, restore("restored", nextVersion(disk), full.Bytes(), next.Bytes()))
	_, err = jay.Repair(ctx, "db", "repaired", nextVersion(disk), nil)
	jaytest.Must(t, err)
	retagged := nextVersion(disk)
	retagged.CopyTag = "C"
	copied, err := jay.Open("checkpoint", retagged)
	jaytest.Must(t, err)
	jaytest.Must(t, copied.Close())

	raised := fmt.Sprintf("jay database, format %d\nfeature %d: spots\n", spots.Format, spots.Format)
	for _, dir := range []string{"db", "restored", "repaired", "checkpoint"} {
		wantFormat(t, disk, dir, raised)
		_, err = jay.Open(dir, thisVersion(disk))
		wantSpots(t, dir, err)
		readOnly := thisVersion(disk)
		readOnly.ReadOnly = true
		_, err = jay.Open(dir, readOnly)
		wantSpots(t, dir+" to read", err)
		_, err = jay.VerifyDir(ctx, dir, thisVersion(disk), nil)
		wantSpots(t, dir+" to verify", err)
		db, err := jay.Open(dir, nextVersion(disk))
		jaytest.Must(t, err)
		if _, err := db.Get(ctx, "bob"); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		jaytest.Must(t, db.Close())
	}
	err = restore("refused", thisVersion(disk), full.Bytes(), next.Bytes())
	wantSpots(t, "restore", err)
	if !errors.Is(err, jay.ErrBackup) {
		t.Errorf("restore: got %v, want ErrBackup as well", err)
	}
	if _, err := disk.Stat("refused"); err == nil {
		t.Error("a refused restore has left a directory")
	}
	_, err = jay.Repair(ctx, "db", "refused", thisVersion(disk), nil)
	wantSpots(t, "repair", err)
}
