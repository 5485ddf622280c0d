package standby_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/standbytest"
	"github.com/jaydb/jay/standby"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a standby whose disk is full says so and can be read, does not give its readers up while there is no room, and goes on by
// itself when there is.
func TestStandby_FullDisk(t *testing.T) {
	db := jaytest.Memory(t, nil)
	put(t, db, "users/1", `{}`)
	disk := storagetest.NewDisk()
	s := copyOf(t, disk, standby.From(db))
	await(t, s, db)
	reader := read(t, s)

	disk.SetFreeBytes(1 << 20)
	disk.Fill()
	put(t, db, "users/2", `{}`)
	full := func(s standby.Status) bool {
		return errors.Is(s.Err, jay.ErrDiskFull) && errors.Is(s.Err, jay.ErrFailed) && !s.Connected && s.Readable
	}
	awaitStatus(t, s, "the disk is full", full)
	disk.Heal() // it would take writes, and says that there is little room
	time.Sleep(150 * time.Millisecond)
	if status := s.Status(); !full(status) || read(t, s) != reader {
		t.Errorf("with little room: %+v", status)
	}
	jaytest.Equal(t, jaytest.Body(t, reader, "users/1"), `{}`)
	wait, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := s.Wait(wait); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("following has ended: %v", err)
	}

	disk.SetFreeBytes(1 << 30)
	await(t, s, db)
	put(t, db, "users/3", `{}`)
	await(t, s, db)
	if status := s.Status(); status.Copies != 1 {
		t.Errorf("it has compared its keys, and could go on: %+v", status)
	}
	jaytest.Verify(t, read(t, s))
	must(t, s.Close())
}

// Ensure that a disk that is full while the first copy is taken in leaves no half copy, and that the copy is made when there is room.
func TestStandby_FullDisk_FirstCopy(t *testing.T) {
	db := jaytest.Memory(t, nil)
	for n := range 20 {
		put(t, db, fmt.Sprint("large/", n), fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 100_000)))
	}
	disk, source := storagetest.NewDisk(), new(standbytest.Switch)
	s := copyOf(t, disk, source)
	disk.Fill()
	source.Set(standby.From(db))
	awaitStatus(t, s, "the disk is full", func(s standby.Status) bool {
		return s.Err != nil && strings.Contains(s.Error, "no space left") && !s.Readable
	})
	disk.Heal()
	await(t, s, db)
	must(t, s.Close())
}

// Ensure that a standby follows a source that was restored from a backup, by itself, under a tag of its own and under that of the
// original, and loses what the source has lost.
func TestStandby_SourceRestored(t *testing.T) {
	for _, name := range []string{"CopyTag", "SameTag"} {
		t.Run(name, func(t *testing.T) {
			db := jaytest.Memory(t, nil)
			put(t, db, "users/1", `{"n":1}`)
			put(t, db, "users/2", `{"n":1}`)
			_, stream := jaytest.BackUp(t, db)
			source := new(standbytest.Switch)
			source.Set(standby.From(db))
			s := copyOf(t, storagetest.NewDisk(), source)
			put(t, db, "users/1", `{"n":2}`)
			must(t, db.Delete(ctx, "users/2"))
			put(t, db, "users/3", `{"n":1}`)
			await(t, s, db)

			disk := storagetest.NewDisk()
			o := jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{FS: disk}}
			if name == "SameTag" {
				last, err := db.Counters(ctx)
				must(t, err)
				o.CopyTag, o.SameTag = "", true
				o.Floors = jay.Counters{Etag: last.Etag + 1<<20, HiLo: last.HiLo, Identities: last.Identities}
			}
			_, err := jay.Restore(ctx, "db", o, bytes.NewReader(stream))
			must(t, err)
			restored := jaytest.OnDisk(t, disk, jay.Options{})
			put(t, restored, "users/4", `{}`)
			source.Set(standby.From(restored))
			await(t, s, restored)
			jaytest.Equal(t, jaytest.Body(t, read(t, s), "users/1"), `{"n":1}`)
			if _, err := read(t, s).Get(ctx, "users/3"); !errors.Is(err, jay.ErrNotFound) {
				t.Errorf("what the source has lost: %v", err)
			}
			jaytest.Equal(t, s.Status().Copies, 2)
			put(t, restored, "users/5", `{}`)
			await(t, s, restored)
			must(t, s.Close())
			jaytest.Close(t, restored)
		})
	}
}

// Ensure that a standby follows a source whose directory was moved, and was compacted there.
func TestStandby_SourceMoved(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	db := jaytest.Open(t, at("shop"), nil)
	put(t, db, "users/1", `{}`)
	s := follower(t, at("copy"), at("shop"), &jay.Options{NoLook: true})
	await(t, s, db)
	must(t, s.Close())
	put(t, db, "users/2", `{}`)
	jaytest.Close(t, db)
	must(t, os.Rename(at("shop"), at("store")))
	db = jaytest.Open(t, at("store"), nil)
	must(t, db.Delete(ctx, "users/1"))
	s = follower(t, at("copy"), at("store"), &jay.Options{NoLook: true})
	await(t, s, db)
	must(t, db.Compact(ctx))
	put(t, db, "users/3", `{}`)
	await(t, s, db)
	jaytest.Verify(t, read(t, s))
	must(t, s.Close())
	jaytest.Close(t, db)
}

// Ensure that a standby names the feature of its source that it does not know, and keeps what it has.
func TestStandby_NewerSource(t *testing.T) {
	birds := storage.Feature{Format: storage.Format + 1, Name: "birds"}
	disk := storagetest.NewDisk()
	open := func(features storage.Features) *jay.DB {
		db, err := jay.Open("db", &jay.Options{Engine: lsm.Driver{Options: lsm.Options{FS: disk, Features: features}}})
		must(t, err)
		return db
	}
	db := open(nil)
	put(t, db, "users/1", `{}`)
	source, copyDisk := new(standbytest.Switch), storagetest.NewDisk()
	source.Set(standby.From(db))
	s := copyOf(t, copyDisk, source)
	await(t, s, db)
	must(t, db.Close())

	db = open(append(storage.Features(storage.AllFeatures[:]), birds)) // the source is upgraded
	put(t, db, "users/2", `{}`)
	source.Set(standby.From(db))
	await(t, s, db) // it does not use what is new
	must(t, parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		tx.RequireFeature(birds)
		tx.Set([]byte("zbird"), nil, nil)
		return nil
	}))
	err := s.Wait(ctx)
	var newer *jay.FormatError
	if !errors.Is(err, jay.ErrNewerFormat) || !errors.As(err, &newer) || newer.Found != birds.Format || !strings.Contains(err.Error(), "birds") {
		t.Errorf("following has ended with %v", err)
	}
	jaytest.Equal(t, jaytest.Body(t, read(t, s), "users/2"), `{}`)
	must(t, s.Close())
	s = copyOf(t, copyDisk, source)
	if err := s.Wait(ctx); !errors.Is(err, jay.ErrNewerFormat) {
		t.Errorf("opened again: %v", err)
	}
	must(t, s.Close())
	must(t, db.Close())
}

// Ensure that a member of a cluster and a database on a shared store are not followed, that a member is no standby, and that each is said.
func TestStandby_NotFollowed(t *testing.T) {
	shared := &memory.Driver{Shared: true}
	onShared, err := jay.Open("db", &jay.Options{Engine: shared})
	must(t, err)
	defer onShared.Close()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	member := jaytest.OnDisk(t, disk, jay.Options{Cluster: m.Connect(), NodeTag: "A"})
	for says, db := range map[string]*jay.DB{"does not show its commits": onShared, "member of a cluster": member} {
		s := copyOf(t, storagetest.NewDisk(), standby.From(db))
		if err := s.Wait(ctx); !errors.Is(err, jay.ErrStandby) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
		if _, err := s.DB(ctx); !errors.Is(err, jay.ErrStandby) {
			t.Errorf("%s: its database: %v", says, err)
		}
		must(t, s.Close())
	}
	jaytest.Close(t, member)
	source := standby.From(jaytest.Memory(t, nil))
	if _, err := standby.Open("db", source, standby.Options{Database: &jay.Options{FS: disk}}); !errors.Is(err, jay.ErrStandby) {
		t.Errorf("the directory of a member: %v", err)
	}
	if _, err := standby.Open("copy", source, standby.Options{Database: &jay.Options{Cluster: m.Connect()}}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("with Options.Cluster: %v", err)
	}

	// Nor does a standby that was promoted become the standby of its source again.
	disk = standbyOf(t, jaytest.Memory(t, nil))
	_, err = jay.Promote(ctx, "copy", jay.PromoteOptions{CopyTag: "B", Options: &jay.Options{FS: disk}})
	must(t, err)
	if _, err := standby.Open("copy", source, standby.Options{Database: &jay.Options{FS: disk}}); !errors.Is(err, jay.ErrStandby) {
		t.Errorf("a promoted one: %v", err)
	}
}

// Ensure that damage on the disk of a standby ends it where it is met, with the error that names the file, and that a new directory has a whole
// copy.
func TestStandby_Damaged(t *testing.T) {
	dir := t.TempDir()
	db := jaytest.Memory(t, nil)
	for n := range 50 {
		put(t, db, fmt.Sprint("large/", n), fmt.Sprintf(`{"text":"%x"}`, jaytest.RandomBytes(uint64(n), 2000)))
	}
	source := new(standbytest.Switch)
	source.Set(standby.From(db))
	open := func(name string) *standby.Standby {
		s, err := standby.Open(filepath.Join(dir, name), source, standby.Options{Database: &jay.Options{NoLook: true}, Retry: 100 * time.Millisecond})
		must(t, err)
		return s
	}
	s := open("copy")
	await(t, s, db)
	must(t, s.Close())
	damaged := ""
	tables, err := filepath.Glob(filepath.Join(dir, "copy", "*.sst"))
	must(t, err)
	size := int64(0)
	for _, name := range tables {
		if info, err := os.Stat(name); err == nil && info.Size() > size {
			damaged, size = name, info.Size()
		}
	}
	text, err := os.ReadFile(damaged)
	must(t, err)
	text[len(text)/2] ^= 1
	must(t, os.WriteFile(damaged, text, 0o600))

	// Another source that descends from the first makes the standby read all of its keys.
	_, stream := jaytest.BackUp(t, db)
	disk := storagetest.NewDisk()
	_, err = jay.Restore(ctx, "db", jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{FS: disk}}, bytes.NewReader(stream))
	must(t, err)
	restored := jaytest.OnDisk(t, disk, jay.Options{})
	source.Set(standby.From(restored))
	s = open("copy")
	if err := s.Wait(ctx); !errors.Is(err, jay.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(damaged)) {
		t.Errorf("following has ended with %v; %s is damaged", err, damaged)
	}
	must(t, s.Close())
	s = open("new")
	await(t, s, restored)
	must(t, s.Close())
	jaytest.Close(t, restored)
}
