package jay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/copier"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/files"
	"github.com/jaydb/jay/internal/recovery"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// BackupInfo describes a backup. It can be stored as JSON.
type BackupInfo struct {
	ID       string    `json:"id"`             // of this backup
	Base     string    `json:"base,omitempty"` // the ID of the backup that an incremental one follows
	Database string    `json:"database"`       // the database ID
	NodeTag  string    `json:"nodeTag"`
	Created  time.Time `json:"created"`
	Etag     uint64    `json:"etag"`            // of the newest write in it
	After    uint64    `json:"after,omitempty"` // the etag of the base: the backup has the writes after it

	// EncryptionKey is the ID of the key that encrypts the backup. It is empty for a backup that is not
	// encrypted.
	EncryptionKey string `json:"encryptionKey,omitempty"`

	// The following fields are set for a backup that was written or read to its end.

	Documents int64 `json:"documents"`           // in the backup
	Deletions int64 `json:"deletions,omitempty"` // of documents; only an incremental backup has some
	Keys      int64 `json:"keys"`                // of the storage engine
	RawBytes  int64 `json:"rawBytes"`            // before compression
	Bytes     int64 `json:"bytes"`               // of the stream
}

// BackupError is the error of an invalid backup stream: the stream is not a backup, is truncated, is damaged,
// was written by a newer Jay (then errors.Is finds ErrNewerFormat as well), or does not follow the backup
// before it. errors.Is(err, ErrBackup) is true. Its fields:
//
//	Stream   int     position of the stream among the arguments, from 0
//	Offset   int64   of the damaged block, in bytes; -1 if the error is about the whole stream
//	Problem  string  what is wrong
//	Key      string  the ID of the key of an encrypted backup that is missing or wrong
//	                 (then errors.Is finds ErrKey as well); "" for other errors
//	Cause    error   or nil
//
// For damage to an encrypted backup, errors.Is finds ErrCorrupt as well.
type BackupError backup.Error

func (e *BackupError) Error() string { return (*backup.Error)(e).Error() }

// Is makes errors.Is find ErrBackup.
func (e *BackupError) Is(target error) bool { return target == ErrBackup }

// Unwrap returns the cause.
func (e *BackupError) Unwrap() error { return e.Cause }

// BackupBaseError is the error of Backup with BackupSince when the database does not know what has changed
// since the base: records of deletions are gone, or the database has not made the base. Make a full backup
// then. errors.Is(err, ErrBackupBase) is true. Its fields:
//
//	Base     string  the ID of the requested base
//	Etag     uint64  the etag of the base; 0 if the database does not know it
//	Oldest   uint64  the least etag of a backup that can be a base
//	Problem  string  why the backup cannot be a base
type BackupBaseError backup.BaseError

func (e *BackupBaseError) Error() string { return (*backup.BaseError)(e).Error() }

// Is makes errors.Is find ErrBackupBase.
func (e *BackupBaseError) Is(target error) bool { return target == ErrBackupBase }

// BackupOption is an option of DB.Backup and DB.BackupTo.
type BackupOption func(*backupOptions)

type backupOptions struct {
	inner recovery.BackupOptions
	keys  EncryptionKeys // of BackupEncrypted
}

// BackupSince makes an incremental backup of the changes since the backup with this ID (BackupInfo.ID), its
// base. A restore needs the base, the base of the base, and so on, down to a full backup.
func BackupSince(id string) BackupOption { return func(o *backupOptions) { o.inner.Base = id } }

// BackupOnce makes a backup that cannot be the base of another. It writes nothing to the database, and the
// bases of other backups stay valid.
func BackupOnce() BackupOption { return func(o *backupOptions) { o.inner.Once = true } }

// BackupEncrypted encrypts the backup with the newest of these keys, whatever the keys of the database are,
// even if the database is not encrypted. A restore needs the key: see EncryptedBackup. BackupEncrypted cannot
// be combined with BackupPlain.
func BackupEncrypted(keys EncryptionKeys) BackupOption {
	return func(o *backupOptions) { o.keys = keys }
}

// BackupPlain makes a backup that is not encrypted, even if the database is encrypted.
//
// Danger: anyone with access to the backup can read the whole database.
func BackupPlain() BackupOption { return func(o *backupOptions) { o.inner.Plain = true } }

// BackupProgress makes the backup call fn now and then with the number of bytes so far, before compression.
func BackupProgress(fn func(bytes int64)) BackupOption {
	return func(o *backupOptions) { o.inner.Progress = fn }
}

// BackupStored makes the backup call fn when the stream is complete, so that fn can make it durable: sync a
// file and rename it, or complete an upload. The database records the backup as a possible base only after fn
// has returned nil. If fn returns an error, Backup returns it: the lost backup does not become a base, and
// earlier bases stay valid.
func BackupStored(fn func() error) BackupOption {
	return func(o *backupOptions) { o.inner.Written = fn }
}

// Backup writes a snapshot of the database to w as one stream, from which Restore makes a database: all
// documents, with attachments and revisions, compare-exchange values, counters, configuration, subscriptions,
// results of calls with a request ID, and the declarations of indexes. Reads and writes continue during a
// backup. The stream is compressed, and has a checksum for each block and an end mark, so readers detect damage
// and truncation. It does not contain the entries of indexes: Restore builds them.
//
// With BackupSince the stream has the changes since another backup. It does not contain unchanged documents,
// and Backup does not read them. For this, the database remembers its last 100 backups, and keeps records of
// deletions for the next one: the deletions after the newest full backup, or after the base of the newest
// incremental backup, but not for more than 10,000,000 writes. A program that makes no backups for longer must
// make a full backup next, which a *BackupBaseError reports. The last step of a backup records it in the
// database: if this step fails, the stream may be complete, but cannot be a base.
//
// The backup of an encrypted database is encrypted with the newest of Options.EncryptionKeys. Backup calls
// Newest; if that fails, Backup returns ErrKey, and has written nothing. BackupPlain and BackupEncrypted
// override this default. Backup returns ErrKey without one of the two for an encrypted database that was opened
// without its keys, by Look or as a standby. The keys of a backup and of its base may differ.
//
// The calling goroutine writes to w, in pieces of up to 1 MiB. A slow w delays only the backup; but the space
// of documents that are deleted or overwritten during the backup is not freed until its end. If ctx ends, w
// returns an error, or the database is closed, Backup returns that error, and the written part is not a backup:
// VerifyBackup and Restore refuse it. To store a backup in a file, use BackupTo; elsewhere, use BackupStored.
func (db *DB) Backup(ctx context.Context, w io.Writer, opts ...BackupOption) (BackupInfo, error) {
	o, err := backupOptionsOf(opts, &db.opts)
	var done backup.Summary
	if err == nil {
		done, err = recovery.Backup(ctx, &db.core, w, o)
	}
	if err != nil {
		err = fmt.Errorf("backup: %w", publicBackupError(err))
	}
	return backupInfo(done), err
}

// BackupTo makes a backup, as Backup does, in the file name. The directory of the file must exist. BackupTo
// replaces a regular file of that name; it replaces a symbolic link itself, not its target; and it returns
// ErrUsage for anything else. Give each backup its own name: an incremental backup that replaces its base could
// not be restored.
//
// The file appears in one step, when it is complete and on disk. Until then it has another name, which begins
// with name and ends with ".unfinished". BackupTo removes the unfinished file after an error. A process that
// ends during the backup leaves it; remove it then. The database records the backup as a possible base after
// the file has its name: if this step or the last sync of the directory fails, the complete file exists.
//
// The file is on Options.FS, if that is set, and otherwise on the disk of the machine, also for a database in
// memory. Options.GroupReadable determines its mode.
func (db *DB) BackupTo(ctx context.Context, name string, opts ...BackupOption) (BackupInfo, error) {
	o, err := backupOptionsOf(opts, &db.opts)
	var done backup.Summary
	var out *files.File
	if err == nil {
		out, err = files.Create(db.opts.files(), name)
	}
	if err == nil {
		o.Written = then(out.Commit, o.Written)
		done, err = recovery.Backup(ctx, &db.core, out, o)
		err = errors.Join(err, out.Abandon())
	}
	if err != nil {
		err = fmt.Errorf("backup to %q: %w", name, publicBackupError(err))
	}
	return backupInfo(done), err
}

// backupOptionsOf returns the options of a backup. A database that is open for reading remembers none.
func backupOptionsOf(opts []BackupOption, opened *Options) (recovery.BackupOptions, error) {
	var o backupOptions
	for _, option := range opts {
		if option != nil {
			option(&o)
		}
	}
	o.inner.Once = o.inner.Once || opened.ReadOnly
	switch {
	case o.keys != nil && o.inner.Plain:
		return o.inner, fmt.Errorf("%w: BackupEncrypted and BackupPlain exclude each other", ErrOption)
	case o.keys != nil:
		o.inner.Keys = sealed.From(o.keys)
	case !o.inner.Plain:
		o.inner.Keys = sealed.From(opened.EncryptionKeys)
	}
	return o.inner, nil
}

// then returns a function that calls both, the second after success of the first, and may be nil.
func then(first, second func() error) func() error {
	return func() error {
		if err := first(); err != nil || second == nil {
			return err
		}
		return second()
	}
}

// EncryptedBackup returns a reader of r that carries the keys for decryption to ReadBackup, VerifyBackup and
// Restore. These functions ask keys for the key of r when they read an encrypted backup. They read a backup
// that is not encrypted without asking. Read of the returned reader returns the bytes of r, not decrypted.
func EncryptedBackup(r io.Reader, keys EncryptionKeys) io.Reader {
	return &backup.Keyed{Reader: r, Keys: sealed.From(keys)}
}

// ReadBackup reads the header of a backup, which identifies the backup and its base. It reads no more than the
// header, or up to 64 KiB more of an encrypted backup, and does not check the rest of the stream: VerifyBackup
// does. An encrypted backup needs its key: see EncryptedBackup. Without the key ReadBackup returns an ErrKey,
// and a BackupInfo with only EncryptionKey.
func ReadBackup(r io.Reader) (BackupInfo, error) {
	in, err := backup.NewReader(r, 0)
	if err != nil {
		var info BackupInfo
		if refused := (*backup.Error)(nil); errors.As(err, &refused) {
			info.EncryptionKey = refused.Key
		}
		return info, fmt.Errorf("read backup: %w", publicBackupError(err))
	}
	defer in.Close()
	return backupInfo(backup.Summary{Header: in.Header, KeyID: in.KeyID}), nil
}

// VerifyBackup reads backups to their end, and checks that each is complete and follows the backup before it.
// The first may be an incremental backup. VerifyBackup returns the BackupInfo of each backup that it has found
// complete. Restore can restore complete backups; but VerifyBackup does not check the documents in them.
// Restore does, and refuses the backup of a database that was damaged before the backup, unless
// RestoreOptions.Damage accepts the damage. Encrypted backups need their keys: see EncryptedBackup. The longest
// document bounds the memory. VerifyBackup calls progress, if not nil, now and then with the number of bytes
// read so far.
func VerifyBackup(ctx context.Context, progress func(bytes int64), backups ...io.Reader) ([]BackupInfo, error) {
	if progress == nil {
		progress = func(int64) {}
	}
	found, err := backup.Verify(ctx, progress, backups)
	if err != nil {
		err = fmt.Errorf("verify backup: %w", publicBackupError(err))
	}
	return backupInfos(found), err
}

func backupInfo(s backup.Summary) BackupInfo {
	h, t := s.Header, s.Trailer
	return BackupInfo{
		ID: h.ID, Base: h.Base, Database: h.Database, NodeTag: h.NodeTag, Created: h.Created, Etag: h.Etag, After: h.After,
		Documents: t.Documents, Deletions: t.Deletions, Keys: t.Keys, RawBytes: t.RawBytes, Bytes: s.Bytes,
		EncryptionKey: s.KeyID,
	}
}

// backupInfos returns nil for none.
func backupInfos(found []backup.Summary) (all []BackupInfo) {
	for _, s := range found {
		all = append(all, backupInfo(s))
	}
	return all
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

// RestoreOptions configure Restore. One of CopyTag and SameTag must be set: the original may have used IDs
// after the backup, and the restored database does not know these IDs.
type RestoreOptions struct {
	// CopyTag gives the restored database a new node tag, as Options.CopyTag does: a tag that neither the
	// original nor any other copy has, or has had. The HiLo and server-side IDs of the restored database then
	// never collide with those of the original. Identities and the HiLo of older generations have no tag: they
	// return ErrNeedsFloor until Floors, SeedIdentity or RaiseCounters sets a minimum for their numbers.
	//
	// The indexes of compare-exchange values have no tag either, and continue after the indexes of the backup.
	// If clients hold indexes that the original has made since the backup, set Floors.Etag to a number that the
	// original has not passed.
	CopyTag string

	// SameTag keeps the node tag and the database ID of the original: the restored database replaces the
	// original. Floors must then name the etag and every counter in the backup, each with a number that the
	// original has not passed. Otherwise Restore returns an ErrNeedsFloor that names the missing ones.
	//
	// Danger: two databases under one tag, such as two restores of one backup, or a restore and its original,
	// cannot be distinguished. Both make the same IDs and the same change vectors. Restore does not know
	// counters that the original has begun after the backup: name them in Floors too, or they begin with 1.
	SameTag bool

	// Floors are numbers that the original has not passed. Counters continue above them,
	// and etags, with the indexes of compare-exchange values, above Floors.Etag.
	Floors Counters

	// Options are the options for opening the restored database: FS, Logger, Now, Rand, HiLoMode, MemTableBytes
	// and others. CopyTag, NodeTag, ReadOnly and AcceptLoss must not be set. Nil means the defaults.
	Options *Options

	// BackupKeys decrypt encrypted backups that have no keys of their own from EncryptedBackup. The default is
	// Options.EncryptionKeys. Backups that are not encrypted are restored with or without keys: RestoreInfo
	// shows for each backup whether it was encrypted. Only Options.EncryptionKeys determine whether the
	// restored database is encrypted.
	BackupKeys EncryptionKeys

	// Progress, if not nil, is called now and then with the number of bytes of the backups
	// read so far.
	Progress func(bytes int64)

	// Damage, if not nil, is called with the damage that Verify finds in the restored database, up to 1,000
	// times, and Restore continues. If Damage is nil, Restore returns an error and makes no database: the
	// original was damaged before the backup. Use Damage for the only backup that exists.
	Damage func(Damage)
}

// RestoreInfo describes the database that Restore has made.
type RestoreInfo struct {
	Backups   []BackupInfo `json:"backups"`
	NodeTag   string       `json:"nodeTag"`
	Etag      uint64       `json:"etag"`      // of the newest write in the backups
	Documents int64        `json:"documents"` // in the database
	Indexes   int          `json:"indexes"`   // that were built

	// LeftOut are indexes that Restore could not build because of the documents.
	LeftOut []LeftOutIndex `json:"leftOut,omitempty"`
}

// LeftOutIndex is an index that is declared in a backup, and that Restore could not build. Usually EnsureIndex
// was building the index during the backup, and failed in the original, too. To get the index, change the
// documents that prevent it, and call EnsureIndex.
type LeftOutIndex struct {
	Index     IndexInfo `json:"index"`               // with its state in the backup
	Reason    string    `json:"reason"`              // the text of Err
	Documents []string  `json:"documents,omitempty"` // the IDs of two documents with the same values in a unique index

	// Err is what EnsureIndex would return: a *UniqueError if documents have the same
	// values, a *DocumentError if one has more entries than an index can hold.
	Err error `json:"-"`
}

// String names the index, its collection and the reason.
func (l LeftOutIndex) String() string {
	return fmt.Sprintf("index %q of %s is left out: %s", l.Index.Name, l.Index.Collection, l.Reason)
}

// Restore makes a database in dir, which must not exist, from a full backup and the incremental backups that
// follow it, in their order. Restore returns when it has built the indexes, and Verify has read the database
// and found no damage.
//
// Restore leaves out an index that it cannot build, because documents have the same values in a unique index,
// as Open does. RestoreInfo.LeftOut names the index. All documents are restored.
//
// The directory appears under its name when the restore is complete. Until then its name is dir followed by
// ".unfinished", and Open returns ErrRestoring for it. Restore removes this directory before it returns an
// error. A process that ends during the restore leaves it; remove it then.
//
// Restore returns a *BackupError for a stream that is incomplete, or does not follow the one before it. It also
// returns a *BackupError, which is ErrKey as well, for an encrypted backup whose key is missing or wrong; for
// the first backup, and for any file of RestoreFrom, before it makes anything. A database that is restored from
// an older backup does not know the IDs that its original has made since: see RestoreOptions. The restored
// database cannot use backups of the original as a base: its next backup is a full one.
func Restore(ctx context.Context, dir string, opts RestoreOptions, backups ...io.Reader) (RestoreInfo, error) {
	o, claim, err := opts.inner()
	defer claim.End()
	var done recovery.Restored
	if err == nil {
		done, err = recovery.Restore(ctx, dir, o, backups)
	}
	if err != nil {
		err = fmt.Errorf("restore %q: %w", dir, publicBackupError(err))
	}
	return restoreInfo(done), err
}

// RestoreFrom makes a database, as Restore does, from files: a full backup and the incremental backups that
// follow it, in their order. One file is open at a time. An error about a file names the file. The files are on
// RestoreOptions.Options.FS, if that is set, and otherwise on the disk of the machine. RestoreFrom makes
// nothing unless all files exist.
func RestoreFrom(ctx context.Context, dir string, opts RestoreOptions, names ...string) (RestoreInfo, error) {
	from := new(Options)
	if opts.Options != nil {
		from = opts.Options
	}
	var readers []io.Reader
	for _, name := range names {
		r, err := files.NewReader(from.files(), name)
		if err != nil {
			return RestoreInfo{}, fmt.Errorf("restore %q: %w", dir, err)
		}
		defer r.Close()
		readers = append(readers, r)
	}
	for i, name := range names { // a missing key of the last one is known before the first is restored
		if err := checkBackupKey(from.files(), name, i, opts.backupKeys()); err != nil {
			return RestoreInfo{}, fmt.Errorf("%s: restore %q: %w", name, dir, publicBackupError(err))
		}
	}
	info, err := Restore(ctx, dir, opts, readers...)
	if damage := (*BackupError)(nil); errors.As(err, &damage) {
		err = fmt.Errorf("%s: %w", names[damage.Stream], err)
	}
	return info, err
}

// checkBackupKey returns an error if a file is an encrypted backup whose key is missing or wrong.
func checkBackupKey(fs lsm.FS, name string, stream int, keys sealed.Keys) error {
	r, err := files.NewReader(fs, name)
	if err != nil {
		return err
	}
	return errors.Join(backup.CheckKey(&backup.Keyed{Reader: r, Keys: keys}, stream), r.Close())
}

// backupKeys returns the keys of the backups; nil for none.
func (o *RestoreOptions) backupKeys() sealed.Keys {
	if o.BackupKeys == nil && o.Options != nil {
		return sealed.From(o.Options.EncryptionKeys)
	}
	return sealed.From(o.BackupKeys)
}

// PromoteOptions configure Promote. One of CopyTag and SameTag must be set: the source may have used IDs that
// the standby does not know, and may still be in use.
type PromoteOptions struct {
	// CopyTag gives the database a new node tag, as RestoreOptions.CopyTag does: the source may continue.
	CopyTag string

	// SameTag makes the database replace its source, as RestoreOptions.SameTag does: Floors must name the etag
	// and every counter.
	//
	// Danger: a source that still writes makes the same IDs and the same change vectors. Make sure first that
	// it cannot.
	SameTag bool

	// Floors are numbers that the source has not passed.
	Floors Counters

	// Options are the options for opening the database. CopyTag, NodeTag, ReadOnly and AcceptLoss must not be
	// set. Nil means the defaults.
	Options *Options
}

// Promote turns the standby in directory dir, which must not be in use, into an independent database, which
// Open opens. The database has the state of the standby: see standby.Status.Moment. The numbers of its source
// continue as after Restore, so CopyTag, SameTag, ErrNeedsFloor and ErrFixed mean the same. The RestoreInfo has
// no backups and no indexes.
//
// If Promote returns an error or the process ends, the directory is still a standby: call Promote again with
// the same CopyTag, or follow the source again. Promote returns ErrStandby for a directory that is not a
// standby, or whose first copy is incomplete.
func Promote(ctx context.Context, dir string, opts PromoteOptions) (RestoreInfo, error) {
	o, claim, err := (&RestoreOptions{CopyTag: opts.CopyTag, SameTag: opts.SameTag, Floors: opts.Floors, Options: opts.Options}).inner()
	defer claim.End()
	var done recovery.Restored
	if err == nil {
		done, err = recovery.Promote(ctx, dir, o)
	}
	if err != nil {
		err = fmt.Errorf("promote %q: %w", dir, err)
	}
	return restoreInfo(done), err
}

func restoreInfo(r recovery.Restored) RestoreInfo {
	info := RestoreInfo{Backups: backupInfos(r.Backups), NodeTag: r.NodeTag, Etag: r.Etag, Documents: r.Documents, Indexes: r.Indexes}
	for _, refused := range r.LeftOut {
		left := LeftOutIndex{Index: refused.Info, Reason: refused.Err.Error(), Err: refused.Err}
		if twice := (*UniqueError)(nil); errors.As(refused.Err, &twice) {
			left.Documents = []string{twice.ID, twice.Other}
		}
		info.LeftOut = append(info.LeftOut, left)
	}
	return info
}

// checkTags checks that a database that is made of another one has either a node tag of its own or that of the original. choose says what to
// do about neither.
func checkTags(copyTag string, sameTag bool, choose string) error {
	switch {
	case copyTag == "" && !sameTag:
		return fmt.Errorf("%w: %s", ErrOption, choose)
	case copyTag != "" && sameTag:
		return fmt.Errorf("%w: CopyTag and SameTag exclude each other", ErrOption)
	case copyTag != "":
		if err := ids.CheckNodeTag(copyTag); err != nil {
			return fmt.Errorf("%w: %w", ErrOption, err)
		}
	}
	return nil
}

// inner returns the options as package recovery has them, after checking them.
// The caller must end the claim, also after an error.
func (o *RestoreOptions) inner() (out recovery.RestoreOptions, claim *budget.Claim, err error) {
	var given Options
	if o.Options != nil {
		given = *o.Options
	}
	if err := checkTags(o.CopyTag, o.SameTag, "choose a CopyTag, or SameTag with Floors: the original may have made IDs since the backup"); err != nil {
		return out, nil, err
	}
	if given.CopyTag != "" || given.NodeTag != "" || given.ReadOnly || given.AcceptLoss != nil {
		return out, nil, fmt.Errorf("%w: Options of a restore go without CopyTag, NodeTag, ReadOnly and AcceptLoss", ErrOption)
	}
	given.CopyTag = o.CopyTag
	given, claim, err = given.withDefaults()
	if err != nil {
		return out, nil, err
	}
	out = recovery.RestoreOptions{Open: *given.inner(claim), SameTag: o.SameTag, Floors: core.Counters(o.Floors), Progress: o.Progress, BackupKeys: o.backupKeys()}
	if o.Damage != nil {
		out.Damage = func(d recovery.Damage) { o.Damage(Damage(d)) }
	}
	return out, claim, nil
}

// Checkpoint copies the database to the directory dir, which must not exist. The copy is a database that Open
// opens, with its indexes. It has every write that was acknowledged before the call, and perhaps later ones.
// Reads and writes continue during the call.
//
// Where the file system allows it, Checkpoint links tables instead of copying them, so it takes little time,
// and little space at first: files that the database removes stay as long as the checkpoint has them. The
// checkpoint is then on the same disk, and does not protect against the loss of this disk. Copy it to another
// place, or use Backup.
//
// The copy has the node tag of the original. To read it, also in several processes, open it with
// Options.ReadOnly. To write to it while the original is in use, open it with Options.CopyTag, and see there.
// The directory appears under its name when it is complete. Until then its name is dir followed by
// ".unfinished". If ctx ends, Checkpoint removes it. A process that ends during the call leaves it; remove it
// then. Checkpoint returns ErrUsage for a database in memory.
func (db *DB) Checkpoint(ctx context.Context, dir string) error {
	if err := checkpoint(ctx, db, dir); err != nil {
		return fmt.Errorf("checkpoint %q: %w", dir, err)
	}
	return nil
}

func checkpoint(ctx context.Context, db *DB, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	maker, is := db.core.Env.Engine.(storage.Checkpointer)
	if !is || db.core.InMemory {
		return fmt.Errorf("%w: this storage makes no checkpoints; use Backup", ErrUsage)
	}
	if dir == "" {
		return fmt.Errorf("%w: no directory is named", ErrUsage)
	}
	ctx, cancel := db.core.Horizon.Context(ctx) // Close ends it
	defer cancel()
	err := db.core.Inside(func() error { return maker.Checkpoint(ctx, dir) })
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// CopyOptions configure Copy. One of CopyTag and SameTag must be set.
type CopyOptions struct {
	// CopyTag gives the copy a new node tag, as RestoreOptions.CopyTag does: the source may continue.
	// Identities, and the HiLo of older generations, have no tag: in the copy they return ErrNeedsFloor until
	// Floors, SeedIdentity or RaiseCounters sets a minimum for their numbers.
	CopyTag string

	// SameTag keeps the node tag and the database ID: the database moves, and the copy replaces the source. All
	// counters continue from their present values, so no number is used twice.
	//
	// Danger: do not write to the source afterwards. Two databases under one tag cannot be distinguished. Both
	// make the same IDs and the same change vectors.
	SameTag bool

	// Floors are numbers that the source will not pass, for a copy with a CopyTag. They cannot be combined with
	// SameTag.
	Floors Counters

	// From and To are the options under which the source and the target are opened: Engine, FS and Logger, and
	// To for the numbers of Floors. CopyTag, NodeTag, ReadOnly, Cluster and AcceptLoss must not be set. Nil
	// means the defaults: the database is in a directory.
	From, To *Options

	// Progress, if not nil, is called now and then.
	Progress func(CopyProgress)
}

// CopyProgress is the progress of a step of Copy.
type CopyProgress struct {
	Step string // "measure", "copy" or "compare"

	Keys, Bytes, Documents int64 // processed so far; a resumed copy begins with those that the target has

	// TotalKeys, TotalBytes and TotalDocuments are the totals of the step. They are 0 if the totals are not
	// known: Copy reads the source in advance only if the target has limits.
	TotalKeys, TotalBytes, TotalDocuments int64
}

// CopyInfo describes the copy that Copy has made.
type CopyInfo struct {
	NodeTag   string `json:"nodeTag"`   // of the copy
	Documents int64  `json:"documents"` // that were compared
	Keys      int64  `json:"keys"`      // of all that is stored
	Bytes     int64  `json:"bytes"`     // of keys and values
	Resumed   bool   `json:"resumed"`   // Copy continued an interrupted copy
}

// CopyError is the error of a copy that cannot be made. errors.Is(err, ErrCopy) is true. Its fields:
//
//	Rule     string  the rule that is violated
//	Store    string  the name of the store that violates it
//	Problem  string  what is wrong
//	Do       string  what to do
//
// The rules:
//
//	"unwritten source"  nothing writes to the source from the beginning of a copy to its end
//	"whole source"      the source is a complete database: no standby, no member of a cluster, no unfinished restore
//	"empty target"      the target is empty, or an unfinished copy
//	"same copy"         an unfinished copy continues from the same source, and with the same CopyTag
//	"one copier"        one process at a time makes a copy
//	"equal target"      in the end the target equals the source
type CopyError copier.Error

// Error implements error.
func (e *CopyError) Error() string { return (*copier.Error)(e).Error() }

// Is makes errors.Is find ErrCopy.
func (e *CopyError) Is(target error) bool { return target == ErrCopy }

// CopyLimitError is the error of a copy whose source has records that the target cannot store. Nothing was written.
// errors.Is(err, ErrTooLarge) is true. Its fields:
//
//	Store    string    the name of the target
//	Found    int64     the number of such records, including those that are not listed
//	Records  []string  the first 1,000 of them, each with the part that is too long, and the limit
type CopyLimitError copier.LimitError

// Error names the first records.
func (e *CopyLimitError) Error() string { return (*copier.LimitError)(e).Error() }

// Unwrap returns ErrTooLarge.
func (e *CopyLimitError) Unwrap() error { return ErrTooLarge }

// Copy copies a database from one store to another. Each store can be a directory, or a store of
// Options.Engine; the engines may differ. Copy changes nothing in the data: documents with their versions,
// revisions and attachments, changes, counters, compare-exchange values, subscriptions with their positions,
// definitions, and indexes with their entries. It leaves out only attachments that are being written, or that
// are no longer referenced. In the end Copy reads both stores again and compares them, key by key.
//
// The target must be empty or missing. Until it is complete, Open returns ErrRestoring for it. To continue an
// interrupted Copy, even after the end of the process, call Copy again with the same source, target and tag.
//
// Nothing may write to the source during Copy. Copy locks a directory, and returns ErrLocked if it is in use.
// If others have written to a store on a server, Copy returns a *CopyError, at the end at the latest. Copy
// writes nothing to the source. If records are too long for the target, Copy returns a *CopyLimitError that
// lists them before it writes anything.
func Copy(ctx context.Context, from, to string, opts CopyOptions) (CopyInfo, error) {
	inner, claims, err := opts.inner()
	defer func() {
		for _, claim := range claims {
			claim.End()
		}
	}()
	var done recovery.Copied
	if err == nil {
		done, err = recovery.Copy(ctx, from, to, inner)
	}
	if err != nil {
		err = fmt.Errorf("copy %q to %q: %w", storage.Shown(opts.From.engineOrNil(), from), storage.Shown(opts.To.engineOrNil(), to), publicCopyError(err))
	}
	return CopyInfo{NodeTag: done.NodeTag, Documents: done.Size.Documents, Keys: done.Size.Keys, Bytes: done.Size.Bytes, Resumed: done.Resumed}, err
}

// engineOrNil returns the Engine of options that may be nil.
func (o *Options) engineOrNil() storage.Driver {
	if o == nil {
		return nil
	}
	return o.Engine
}

// publicCopyError returns err with the types of this package in the place of those of package copier.
func publicCopyError(err error) error {
	var refused *copier.Error
	if errors.As(err, &refused) {
		return (*CopyError)(refused)
	}
	var long *copier.LimitError
	if errors.As(err, &long) {
		return (*CopyLimitError)(long)
	}
	return err
}

// inner returns the options as package recovery has them, after checking them.
// The caller must end the claims, also after an error.
func (o *CopyOptions) inner() (out recovery.CopyOptions, claims [2]*budget.Claim, err error) {
	if err := checkTags(o.CopyTag, o.SameTag, "choose a CopyTag if the source goes on, or SameTag if the copy takes its place"); err != nil {
		return out, claims, err
	}
	if hasFloors := o.Floors.Etag > 0 || len(o.Floors.Identities) > 0 || len(o.Floors.HiLo) > 0; o.SameTag && hasFloors {
		return out, claims, fmt.Errorf("%w: Floors go with CopyTag: with SameTag the counters are known", ErrOption)
	}
	if out.From, claims[0], err = copySide("From", o.From, ""); err != nil {
		return out, claims, err
	}
	if out.To, claims[1], err = copySide("To", o.To, o.CopyTag); err != nil {
		return out, claims, err
	}
	out.Floors = core.Counters(o.Floors)
	if o.Progress != nil {
		out.Progress = func(p copier.Progress) {
			o.Progress(CopyProgress{p.Step, p.Done.Keys, p.Done.Bytes, p.Done.Documents, p.Total.Keys, p.Total.Bytes, p.Total.Documents})
		}
	}
	return out, claims, nil
}

// copySide returns the options of one of the stores.
func copySide(name string, given *Options, copyTag string) (core.Options, *budget.Claim, error) {
	var o Options
	if given != nil {
		o = *given
	}
	if o.CopyTag != "" || o.NodeTag != "" || o.ReadOnly || o.Cluster != nil || o.AcceptLoss != nil {
		return core.Options{}, nil, fmt.Errorf("%w: %s of a copy goes without CopyTag, NodeTag, ReadOnly, Cluster and AcceptLoss", ErrOption, name)
	}
	o.CopyTag = copyTag
	o, claim, err := o.withDefaults()
	if err != nil {
		return core.Options{}, nil, fmt.Errorf("%s: %w", name, err)
	}
	return *o.inner(claim), claim, nil
}
