package jay

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// BackupInfo says what a backup is. It can be kept as JSON.
type BackupInfo struct {
	ID       string    `json:"id"`             // of this backup
	Base     string    `json:"base,omitempty"` // the ID of the backup that an incremental one follows
	Database string    `json:"database"`       // the database ID
	NodeTag  string    `json:"nodeTag"`
	Created  time.Time `json:"created"`
	Etag     uint64    `json:"etag"`            // of the newest write in it
	After    uint64    `json:"after,omitempty"` // the etag of the base: it has the writes after it

	// Of a backup that was written or read to its end:

	Documents int64 `json:"documents"`           // that it has
	Deletions int64 `json:"deletions,omitempty"` // of documents; only an incremental one has some
	Keys      int64 `json:"keys"`                // of the storage engine
	RawBytes  int64 `json:"rawBytes"`            // before compression
	Bytes     int64 `json:"bytes"`               // of the stream
}

// BackupError is what is wrong with the stream of a backup: it is none, was cut short,
// is damaged, was written by a newer Jay (then errors.Is finds ErrNewerFormat as well), or does not follow the one
// before it. errors.Is(err, ErrBackup) is true. Its fields:
//
//	Stream   int     its position among those that were given, from 0
//	Offset   int64   in bytes, of the damaged block; -1 if the whole stream is meant
//	Problem  string  what is wrong
//	Cause    error   or nil
type BackupError backup.Error

func (e *BackupError) Error() string { return (*backup.Error)(e).Error() }

// Is makes errors.Is find ErrBackup.
func (e *BackupError) Is(target error) bool { return target == ErrBackup }

// Unwrap returns the cause.
func (e *BackupError) Unwrap() error { return e.Cause }

// BackupBaseError is returned by Backup with BackupSince when it is not known what has
// changed since: records of deletions are gone, or the database has not made that
// backup. Make a full one. errors.Is(err, ErrBackupBase) is true. Its fields:
//
//	Base     string  the ID of the backup that was to be followed
//	Etag     uint64  its etag; 0 if the database does not know it
//	Oldest   uint64  the least etag of a backup that can be followed
//	Problem  string  why it cannot be followed
type BackupBaseError backup.BaseError

func (e *BackupBaseError) Error() string { return (*backup.BaseError)(e).Error() }

// Is makes errors.Is find ErrBackupBase.
func (e *BackupBaseError) Is(target error) bool { return target == ErrBackupBase }

// BackupOption changes one Backup.
type BackupOption func(*backupOptions)

type backupOptions struct {
	base     string
	once     bool
	progress func(bytes int64)
}

// BackupSince makes an incremental backup, with what has changed since the backup with this ID
// (BackupInfo.ID). To restore it, its base is needed, and the base of that, down to a
// full one.
func BackupSince(id string) BackupOption { return func(o *backupOptions) { o.base = id } }

// BackupOnce makes a backup that none is going to follow. Nothing is written to the
// database, and what others need that were made before stays as it is.
func BackupOnce() BackupOption { return func(o *backupOptions) { o.once = true } }

// BackupProgress has fn called now and then with the number of bytes so far, before
// compression.
func BackupProgress(fn func(bytes int64)) BackupOption {
	return func(o *backupOptions) { o.progress = fn }
}

// Backup writes the database to w as one stream, which Restore makes a database of: all
// documents, with attachments and revisions, compare-exchange values, counters, configuration, subscriptions,
// results of calls with a request ID, and the declarations of indexes, as they are at one moment. Reads and writes go on meanwhile. The stream is
// compressed, has a checksum for each block, and an end, so that damage and truncation
// are noticed. The entries of indexes are not in it: Restore builds them.
//
// With BackupSince the stream has what has changed since another backup. Documents
// that have not changed are neither in it nor read. The database remembers its last 100
// backups for that, and keeps records of deletions for the next: those after the
// newest full backup, or after the base of the newest incremental one, but not for more than 10,000,000 writes. So a
// program that stops to make backups loses nothing but the possibility to follow the last one,
// and a *BackupBaseError says so. A database remembers a backup when it is complete, as the last
// step: with an error of that, the stream may be whole, and cannot be followed.
//
// w is written to by the calling goroutine, in pieces of up to 1 MiB, and slows the
// backup down but nothing else; space of what is deleted and overwritten meanwhile is
// kept until the end. If ctx ends, w returns an error, or the database is closed,
// Backup ends with that error, and what was written is no backup: VerifyBackup and
// Restore refuse it. To store it in a file, write to a temporary one, sync it and rename
// it, as the command jay backup does.
func (db *DB) Backup(ctx context.Context, w io.Writer, opts ...BackupOption) (BackupInfo, error) {
	var o backupOptions
	for _, option := range opts {
		if option != nil {
			option(&o)
		}
	}
	info, err := runBackup(ctx, db, w, o)
	if err != nil {
		return info, fmt.Errorf("backup: %w", publicBackupError(err))
	}
	return info, nil
}

// ReadBackup returns what the beginning of a backup says: which it is, and which one
// it follows. It reads no more than that, and does not see whether the rest is whole:
// VerifyBackup does.
func ReadBackup(r io.Reader) (BackupInfo, error) {
	in, err := backup.NewReader(r, 0)
	if err != nil {
		return BackupInfo{}, fmt.Errorf("read backup: %w", publicBackupError(err))
	}
	defer in.Close()
	return backupInfo(in.Header, backup.Trailer{}, 0), nil
}

// VerifyBackup reads backups to their end, and checks that each is whole and follows the
// one before it. The first may be an incremental one. It returns what those say
// that it has found whole. Memory is bounded by the longest document. progress, if not
// nil, is called now and then with the number of bytes read so far.
func VerifyBackup(ctx context.Context, progress func(bytes int64), backups ...io.Reader) ([]BackupInfo, error) {
	var whole []BackupInfo
	var before []backup.Header
	read := int64(0)
	for i, r := range backups {
		in, err := verifyBackup(ctx, r, i, before, func(n int64) {
			if progress != nil {
				progress(read + n)
			}
		})
		if err != nil {
			return whole, fmt.Errorf("verify backup: %w", publicBackupError(err))
		}
		before, read = append(before, in.Header), read+in.Bytes
		whole = append(whole, backupInfo(in.Header, in.Trailer, in.Bytes))
	}
	return whole, nil
}

func verifyBackup(ctx context.Context, r io.Reader, i int, before []backup.Header, progress func(int64)) (*backup.Reader, error) {
	in, err := backup.NewReader(r, i)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if i > 0 {
		if err := backup.CheckChain(before, in.Header); err != nil {
			return nil, err
		}
	}
	for n := 1; ; n++ {
		if n%8192 == 0 {
			progress(in.Bytes)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		if _, err := in.Next(); err == io.EOF {
			progress(in.Bytes)
			return in, nil
		} else if err != nil {
			return nil, err
		}
	}
}

func backupInfo(h backup.Header, t backup.Trailer, bytes int64) BackupInfo {
	return BackupInfo{
		ID: h.ID, Base: h.Base, Database: h.Database, NodeTag: h.NodeTag, Created: h.Created, Etag: h.Etag, After: h.After,
		Documents: t.Documents, Deletions: t.Deletions, Keys: t.Keys, RawBytes: t.RawBytes, Bytes: bytes,
	}
}

// publicBackupError returns err with the types of this package in the place of those of
// package backup.
func publicBackupError(err error) error {
	var damage *backup.Error
	if errors.As(err, &damage) {
		return (*BackupError)(damage)
	}
	var base *backup.BaseError
	if errors.As(err, &base) {
		return (*BackupBaseError)(base)
	}
	return err
}

// backupRun is a Backup under way. The snapshot is read inside the gate, a block at a
// time; w is the user's, and is called outside.
type backupRun struct {
	db   *DB
	hold *horizon.Hold

	mu       sync.Mutex // against Close
	snapshot storage.Snapshot
	source   *backup.Source
	ended    error // why it is over; nil while it runs
}

func runBackup(ctx context.Context, db *DB, w io.Writer, o backupOptions) (BackupInfo, error) {
	if err := ctx.Err(); err != nil {
		return BackupInfo{}, err
	}
	var id [16]byte
	if _, err := io.ReadFull(db.env.Random(), id[:]); err != nil {
		return BackupInfo{}, fmt.Errorf("make its ID: %w", err)
	}
	now := db.env.Now().UTC()
	r := &backupRun{db: db}
	if err := r.start(ctx, o.base); err != nil {
		return BackupInfo{}, err
	}
	defer r.end()

	own := db.env.Origins[db.env.Node]
	h := backup.Header{
		ID: base64.RawStdEncoding.EncodeToString(id[:]), Base: o.base, Database: own.ID, NodeTag: own.Tag,
		Format: lsm.Format, Created: now, Etag: r.source.Etag, After: r.source.Base(),
	}
	out, err := backup.NewWriter(w, h)
	if err != nil {
		return BackupInfo{}, err
	}
	defer out.Close() // all that it writes it has written
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return BackupInfo{}, err
		}
		if done, err = r.step(ctx, out); err == nil {
			err = out.Flush()
		}
		if err != nil {
			return BackupInfo{}, err
		}
		if o.progress != nil {
			o.progress(out.Trailer.RawBytes)
		}
	}
	if err := out.Finish(); err != nil {
		return BackupInfo{}, err
	}
	info := backupInfo(h, out.Trailer, out.Bytes)
	if o.once || db.opts.ReadOnly {
		return info, nil
	}
	return info, r.remember(ctx, h)
}

// start takes the snapshot, and waits until all that it shows is on disk: a crash must
// not undo what a backup has, as the next one would not know that it is gone.
func (r *backupRun) start(ctx context.Context, base string) error {
	return r.db.inside(func() (err error) {
		// Before the snapshot: records of deletions that it shows are then kept until the
		// floor is set.
		r.hold = r.db.horizon.Hold()
		r.snapshot = r.db.env.Engine.Snapshot()
		if err = r.snapshot.WaitDurable(ctx); err == nil {
			r.source, err = backup.NewSource(r.db.env, r.snapshot, base)
		}
		if err != nil {
			r.hold.Release()
			return errs.First(err, r.snapshot.Close())
		}
		r.db.env.Register(r)
		return nil
	})
}

// step gathers the next operations.
func (r *backupRun) step(ctx context.Context, w *backup.Writer) (done bool, err error) {
	err = r.db.inside(func() (err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ended != nil {
			return r.ended
		}
		done, err = r.source.Next(ctx, w)
		return err
	})
	return done, err
}

// errBackupEnded ends a run that is over.
var errBackupEnded = errors.New("the backup has ended")

// end closes what is open.
func (r *backupRun) end() {
	r.db.env.Unregister(r)
	_ = r.Release(errBackupEnded) // an error of reading was returned by then
	r.hold.Release()
}

// Release implements env.Handle.
func (r *backupRun) Release(cause error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return nil
	}
	r.ended = cause
	return errs.First(r.source.Close(), r.snapshot.Close())
}

// remember records the backup, and keeps the records of deletions that the next one
// needs. If it follows this one or its base, both are possible.
func (r *backupRun) remember(ctx context.Context, h backup.Header) error {
	made := r.source.Made
	made.ID = h.ID
	floor := made.Etag
	if h.Base != "" {
		floor = h.After
	}
	err := r.db.inside(func() error {
		return r.db.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
			err := horizon.SetFloor(tx, format.BackupFloor, floor)
			if errors.Is(err, horizon.ErrPassed) {
				err = horizon.SetFloor(tx, format.BackupFloor, made.Etag)
			}
			if err != nil {
				return err
			}
			return backup.Remember(tx, made)
		})
	})
	if err != nil {
		return fmt.Errorf("it is written, but cannot be followed: %w", err)
	}
	return nil
}

// forgetBackups has the next backup be a full one: what was lost by accepted damage is
// not among the changes.
func forgetBackups(e *env.Env) error {
	return e.Engine.Update(context.Background(), true, func(tx storage.Tx) error {
		backup.Forget(tx)
		horizon.ForgetFloor(tx, format.BackupFloor)
		return nil
	})
}
