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

// BackupInfo says what a backup is. It can be kept as JSON.
type BackupInfo struct {
	ID       string    `json:"id"`             // of this backup
	Base     string    `json:"base,omitempty"` // the ID of the backup that an incremental one follows
	Database string    `json:"database"`       // the database ID
	NodeTag  string    `json:"nodeTag"`
	Created  time.Time `json:"created"`
	Etag     uint64    `json:"etag"`            // of the newest write in it
	After    uint64    `json:"after,omitempty"` // the etag of the base: it has the writes after it

	// EncryptionKey is the ID of the key with which the backup is encrypted. It is empty for one that is not encrypted.
	EncryptionKey string `json:"encryptionKey,omitempty"`

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
//	Key      string  the ID of the key of an encrypted backup that is missing or wrong (then errors.Is finds ErrKey as well); "" if the error is about anything else
//	Cause    error   or nil
//
// Damage to an encrypted backup is ErrCorrupt as well.
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
	inner recovery.BackupOptions
	keys  EncryptionKeys // of BackupEncrypted
}

// BackupSince makes an incremental backup, with what has changed since the backup with this ID
// (BackupInfo.ID). To restore it, its base is needed, and the base of that, down to a
// full one.
func BackupSince(id string) BackupOption { return func(o *backupOptions) { o.inner.Base = id } }

// BackupOnce makes a backup that none is going to follow. Nothing is written to the
// database, and what others need that were made before stays as it is.
func BackupOnce() BackupOption { return func(o *backupOptions) { o.inner.Once = true } }

// BackupEncrypted encrypts the backup with the newest of these keys, whatever the keys of the database are, also that of a database that is not encrypted.
// To restore it, the key is needed: see EncryptedBackup. It goes without BackupPlain.
func BackupEncrypted(keys EncryptionKeys) BackupOption {
	return func(o *backupOptions) { o.keys = keys }
}

// BackupPlain makes a backup that is not encrypted, though the database may be.
//
// Danger: whoever has the backup reads all of the database.
func BackupPlain() BackupOption { return func(o *backupOptions) { o.inner.Plain = true } }

// BackupProgress has fn called now and then with the number of bytes so far, before
// compression.
func BackupProgress(fn func(bytes int64)) BackupOption {
	return func(o *backupOptions) { o.inner.Progress = fn }
}

// BackupStored has fn called when the stream is complete, to make it last: to sync a file and rename it, or to complete an
// upload. The database remembers the backup, to be followed, only after fn has returned nil. With an error of
// fn, Backup ends with it: a backup that was lost on its way is not followed, and what an earlier one needs stays.
func BackupStored(fn func() error) BackupOption {
	return func(o *backupOptions) { o.inner.Written = fn }
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
// The backup of an encrypted database is encrypted with the newest of Options.EncryptionKeys, which are asked for it: an error of theirs is ErrKey, and nothing was
// written. BackupPlain and BackupEncrypted choose otherwise. A database that is encrypted and was opened without its keys, by Look or as that of a standby, needs one of
// the two: ErrKey. The keys of a backup and of its base need not be the same.
//
// w is written to by the calling goroutine, in pieces of up to 1 MiB, and slows the
// backup down but nothing else; space of what is deleted and overwritten meanwhile is
// kept until the end. If ctx ends, w returns an error, or the database is closed,
// Backup ends with that error, and what was written is no backup: VerifyBackup and
// Restore refuse it. To store it in a file, use BackupTo; elsewhere, BackupStored.
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

// BackupTo makes a backup, as Backup does, in the file name, whose directory must be there. A regular file
// of that name is replaced, and a symbolic link is, not what it leads to; anything else is ErrUsage. Give each backup a
// name of its own: an incremental one in the place of its base could not be restored.
//
// The file appears in one step, when it is complete and on disk. Until then it has another name, which begins with
// name and ends with ".unfinished". After an error that is removed; a process that ends meanwhile leaves it, to be
// removed. The database remembers the backup, to be followed, after the file has its name: with an error of that,
// or of the last sync of the directory, the whole file is there.
//
// The file is on Options.FS, if that is set, and otherwise on the disk of the machine, also for a database in memory,
// with the mode that Options.GroupReadable says.
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

// EncryptedBackup returns a reader of r for ReadBackup, VerifyBackup and Restore, to which the keys belong that r may be encrypted with. They are asked for the key
// of r when it is read; a backup that is not encrypted is read without asking. What Read returns is what r returns.
func EncryptedBackup(r io.Reader, keys EncryptionKeys) io.Reader {
	return &backup.Keyed{Reader: r, Keys: sealed.From(keys)}
}

// ReadBackup returns what the beginning of a backup says: which it is, and which one
// it follows. It reads no more than that, or 64 KiB more of an encrypted one, and does not see whether the rest is whole:
// VerifyBackup does. An encrypted backup needs its key: see EncryptedBackup. Without it ReadBackup returns an error that is ErrKey, and of the info EncryptionKey.
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

// VerifyBackup reads backups to their end, and checks that each is whole and follows the
// one before it. The first may be an incremental one. Restore restores what is whole. VerifyBackup does not look into
// the documents: Restore does, and refuses those of a database that was damaged when it was backed up, unless
// RestoreOptions.Damage accepts that. It returns what those say
// that it has found whole. Encrypted ones need their keys: see EncryptedBackup. Memory is bounded by the longest document. progress, if not
// nil, is called now and then with the number of bytes read so far.
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

// RestoreOptions say how Restore makes a database of backups. One of CopyTag and SameTag
// must be set: the original may have used IDs after the backup, which the restored
// database does not know of.
type RestoreOptions struct {
	// CopyTag gives the restored database a node tag of its own, as Options.CopyTag does:
	// one that neither the original nor any other copy of it has, or has had. Its HiLo and
	// server-side IDs are then never those of the original. Identities and the HiLo of older
	// generations have no tag: they are ErrNeedsFloor until Floors, SeedIdentity or
	// RaiseCounters gives their numbers a minimum.
	//
	// The indexes of compare-exchange values have no tag either, and go on behind those of the
	// backup. If clients of the original hold some that it has made since, set Floors.Etag to a
	// number that it has not passed.
	CopyTag string

	// SameTag restores under the node tag and the database ID of the original, in whose
	// place the restored database is. Floors must then name the etag and every counter
	// in the backup, each with a number that the original has not passed: Restore
	// returns ErrNeedsFloor, and says which are missing.
	//
	// Danger: two databases under one tag, such as two restores of one backup or a restore
	// beside its original, cannot be told apart. Both make the same IDs and the same
	// change vectors. A counter that the original has begun after the backup is not
	// known to Restore: name it in Floors too, or it begins with 1.
	SameTag bool

	// Floors are numbers that the original has not passed. Counters continue above them,
	// and etags, with the indexes of compare-exchange values, above Floors.Etag.
	Floors Counters

	// Options are those that a database is opened under: FS, Logger, Now, Rand, HiLoMode,
	// MemTableBytes and the like. CopyTag, NodeTag, ReadOnly and AcceptLoss must not
	// be set. Nil means the defaults.
	Options *Options

	// BackupKeys decrypt the backups that are encrypted and have no keys of their own by EncryptedBackup. The default are Options.EncryptionKeys. Backups that
	// are not encrypted are restored with and without keys: RestoreInfo says what each was. Whether the restored database is encrypted,
	// Options.EncryptionKeys say and nothing else.
	BackupKeys EncryptionKeys

	// Progress, if not nil, is called now and then with the number of bytes of the backups
	// read so far.
	Progress func(bytes int64)

	// Damage, if not nil, is called with what Verify finds in the restored database, up to
	// 1,000 times, and Restore goes on. Without it, Restore returns an error and makes no database: the
	// original was damaged when it was backed up. It is for the only backup that there is.
	Damage func(Damage)
}

// RestoreInfo says what Restore has made.
type RestoreInfo struct {
	Backups   []BackupInfo `json:"backups"`
	NodeTag   string       `json:"nodeTag"`
	Etag      uint64       `json:"etag"`      // of the newest write in the backups
	Documents int64        `json:"documents"` // in the database
	Indexes   int          `json:"indexes"`   // that were built

	// LeftOut are the indexes that the database has not, as its documents refuse them.
	LeftOut []LeftOutIndex `json:"leftOut,omitempty"`
}

// LeftOutIndex is an index that is declared in a backup, and that Restore could not build. Usually the
// backup was made while EnsureIndex was building it, and the original did not get it either. To have it,
// change what stands in its way, and call EnsureIndex.
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

// Restore makes a database in dir, which must not exist, of a full backup and the
// incremental ones that follow it, in their order. It ends when the indexes are built, and when the
// database was read and Verify found no damage in it.
//
// An index that cannot be built, since documents have the same values in a unique one, is left
// out, as Open leaves it out, and RestoreInfo.LeftOut names it. All documents are restored.
//
// The directory appears when all of that is done. Until then it is called dir with
// ".unfinished" behind it, and Open refuses it with ErrRestoring. If Restore returns an
// error, it removes it; a process that ends meanwhile leaves it, to be removed.
//
// A stream that is not whole, or not the next one, is a *BackupError. So is an encrypted one whose key is missing or wrong, which is ErrKey as well: of
// the first backup, and of any file of RestoreFrom, before anything is made. Restored from yesterday's
// backup, a database does not know which IDs its original has made since: see
// RestoreOptions. Nothing follows a backup of the original any more: the next backup of the restored
// database is a full one.
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

// RestoreFrom makes a database, as Restore does, of files: a full backup and the incremental ones that follow
// it, in their order. One of them is open at a time. An error that is about one of them names it. They are on
// RestoreOptions.Options.FS, if that is set, and otherwise on the disk of the machine. All must be there before
// anything is made.
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

// PromoteOptions say how Promote makes a database of a standby. One of CopyTag and SameTag must be set: the source may have used
// IDs that the standby does not know of, and may still be in use.
type PromoteOptions struct {
	// CopyTag gives the database a node tag of its own, as RestoreOptions.CopyTag does: the source may go on.
	CopyTag string

	// SameTag puts the database in the place of its source, as RestoreOptions.SameTag does: Floors must name the etag and every counter.
	//
	// Danger: a source that still writes makes the same IDs and the same change vectors. See that it cannot before.
	SameTag bool

	// Floors are numbers that the source has not passed.
	Floors Counters

	// Options are those that the database is opened under. CopyTag, NodeTag, ReadOnly and AcceptLoss must not
	// be set. Nil means the defaults.
	Options *Options
}

// Promote makes the standby in directory dir, which must not be in use, a database of its own, which Open opens. It has what the
// standby had: see standby.Status.Moment. The numbers of its source continue as those of a backup do that Restore restores, so
// CopyTag and SameTag, ErrNeedsFloor and ErrFixed mean the same. RestoreInfo has no backups and no indexes.
//
// If it returns an error or the process ends, the directory is still that of a standby: call Promote again with the same CopyTag, or follow
// the source again. A directory that is no standby's, or whose first copy is not whole, is ErrStandby.
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

// Checkpoint makes a copy of the database as the directory dir, which must not exist: a
// database that Open opens, with its indexes. It has every write that was acknowledged
// before the call, and perhaps later ones. Reads and writes go on.
//
// Where the file system can, tables are linked and not copied, so that it takes little
// time and space at first: files that the database removes stay for as long as the
// checkpoint has them. It lies on the same disk then and is no protection against losing
// that. Copy it to where it is to be kept, or use Backup.
//
// The copy has the node tag of the original. To read it, also in several processes, open it with
// Options.ReadOnly; to write to it beside the original, with Options.CopyTag, and see
// there. The directory appears when it is complete. Until then it is called dir
// with ".unfinished" behind it; a process that ends meanwhile leaves that, to be
// removed. If ctx ends, Checkpoint removes it. A database in memory has no checkpoints: ErrUsage.
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

// CopyOptions say how Copy copies a database. One of CopyTag and SameTag must be set.
type CopyOptions struct {
	// CopyTag gives the copy a node tag of its own, as RestoreOptions.CopyTag does: the source may go on. Identities, and the HiLo of older
	// generations, have no tag: in the copy they are ErrNeedsFloor until Floors, SeedIdentity or RaiseCounters gives their numbers a minimum.
	CopyTag string

	// SameTag keeps the node tag and the database ID: the database moves, and the copy takes the place of the source. All counters go on where
	// they are, so that no number comes twice.
	//
	// Danger: do not write to the source afterwards. Two databases under one tag cannot be told apart. Both make the same IDs and
	// the same change vectors.
	SameTag bool

	// Floors are numbers that the source will not pass, for a copy with a CopyTag. They go without SameTag.
	Floors Counters

	// From and To are the options under which the source and the target are opened: Engine, FS and Logger, and To for the numbers of
	// Floors. CopyTag, NodeTag, ReadOnly, Cluster and AcceptLoss must not be set. Nil means the defaults, which are those of directories.
	From, To *Options

	// Progress, if not nil, is called now and then.
	Progress func(CopyProgress)
}

// CopyProgress is how far a step of Copy is.
type CopyProgress struct {
	Step string // "measure", "copy" or "compare"

	Keys, Bytes, Documents int64 // that the step has come to; a copy that goes on begins with those that are there

	// TotalKeys, TotalBytes and TotalDocuments are those of the whole step. They are 0 if that is not known: only a target with limits makes Copy read the source
	// before.
	TotalKeys, TotalBytes, TotalDocuments int64
}

// CopyInfo says what Copy has made.
type CopyInfo struct {
	NodeTag   string `json:"nodeTag"`   // of the copy
	Documents int64  `json:"documents"` // that were compared
	Keys      int64  `json:"keys"`      // of all that is stored
	Bytes     int64  `json:"bytes"`     // of keys and values
	Resumed   bool   `json:"resumed"`   // a copy that had been interrupted went on
}

// CopyError is the error of a copy that cannot be made. errors.Is(err, ErrCopy) is true. Its fields:
//
//	Rule     string  the condition that is not kept
//	Store    string  the name of the store that does not keep it
//	Problem  string  what is wrong
//	Do       string  what to do
//
// The rules:
//
//	"unwritten source"  nothing writes to the source from the beginning of a copy to its end
//	"whole source"      the source is a whole database of its own: no standby, no member of a cluster, no unfinished restore
//	"empty target"      the target is empty, or an unfinished copy
//	"same copy"         an unfinished copy goes on from the same source, and with the same CopyTag
//	"one copier"        one process makes a copy at a time
//	"equal target"      in the end the target has what the source has
type CopyError copier.Error

// Error implements error.
func (e *CopyError) Error() string { return (*copier.Error)(e).Error() }

// Is makes errors.Is find ErrCopy.
func (e *CopyError) Is(target error) bool { return target == ErrCopy }

// CopyLimitError is the error of a copy whose source has records that the target cannot store. Nothing was written.
// errors.Is(err, ErrTooLarge) is true. Its fields:
//
//	Store    string    the name of the target
//	Found    int64     records, also those that are not listed
//	Records  []string  the first 1,000 of them, each with what of it is too long, and the limit
type CopyLimitError copier.LimitError

// Error names the first records.
func (e *CopyLimitError) Error() string { return (*copier.LimitError)(e).Error() }

// Unwrap returns ErrTooLarge.
func (e *CopyLimitError) Unwrap() error { return ErrTooLarge }

// Copy copies a database from one store to another, of whatever engines: a directory, or what Options.Engine opens. All is copied as it is: documents
// with their versions, revisions and attachments, changes, counters, compare-exchange values, subscriptions with their positions, definitions, and indexes with their
// entries. Only attachments that are being written, or that nothing refers to any more, are left out. In the end both stores are
// read again and compared, key by key.
//
// The target must be empty or missing. Until it is whole, Open refuses it with ErrRestoring. A Copy that was interrupted, also by the end of the process,
// goes on when it is called again with the same source, target and tag.
//
// Nothing may write to the source meanwhile: a directory is locked (ErrLocked if it is in use), and if others have written to a store on a server, Copy
// returns a *CopyError, at the end at the latest. Nothing is written to the source. What is longer than the target can store is listed by a
// *CopyLimitError before anything is written.
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
