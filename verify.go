package jay

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/recovery"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// VerifyOptions are options of Verify and VerifyDir. Nil options mean the defaults.
type VerifyOptions struct {
	// Progress is called now and then, from the goroutine of the call.
	Progress func(VerifyProgress)

	// MaxDamages is the greatest number of damages, and of warnings, that the report lists. The report counts
	// all of them. The default is 1,000; the maximum is 100,000.
	MaxDamages int

	// BytesPerSecond bounds the rate of reads, to leave disk bandwidth to other work. The default, 0, means no
	// bound.
	BytesPerSecond int64

	// SkipFiles skips the check of the checksums of files, which needs an additional read of the files. The
	// records are then only compared with one another.
	SkipFiles bool
}

// VerifyProgress is the progress of Verify.
type VerifyProgress struct {
	Step    string `json:"step"`    // "files", and then the names of the comparisons
	Bytes   int64  `json:"bytes"`   // read so far, of files and of records
	Total   int64  `json:"total"`   // bytes of the files, in the step "files"; 0 in others
	Keys    int64  `json:"keys"`    // records examined so far
	Damages int64  `json:"damages"` // found so far
}

// VerifyReport is the result of Verify. Found is 0 if there is no damage.
type VerifyReport struct {
	Found    int64            `json:"found"`            // number of damages, including those that are not listed
	Damages  []Damage         `json:"damages"`          // in the order in which they were found
	Warned   int64            `json:"warned"`           // number of warnings, including those that are not listed
	Warnings []Damage         `json:"warnings"`         // possible damage, and what an application may have caused
	ByKind   map[string]int64 `json:"byKind,omitempty"` // damages and warnings, by Damage.Kind

	// NotCompared describes, as texts, data that could not be checked, such as the entries of an index that is
	// being built.
	NotCompared []string `json:"notCompared,omitempty"`

	Files           int   `json:"files"`           // files that were read
	FileBytes       int64 `json:"fileBytes"`       // of the files
	Keys            int64 `json:"keys"`            // records that were examined
	Bytes           int64 `json:"bytes"`           // of the records
	Documents       int64 `json:"documents"`       //
	Revisions       int64 `json:"revisions"`       // without the newest versions, which are the documents
	Changes         int64 `json:"changes"`         // of existing documents, and of recorded deletions
	IndexEntries    int64 `json:"indexEntries"`    //
	Attachments     int64 `json:"attachments"`     // different contents
	AttachmentBytes int64 `json:"attachmentBytes"` // of the contents
}

// Damage is stored data that has changed since it was written, or that contradicts another record. [Check and
// repair] lists the kinds.
//
// [Check and repair]: https://github.com/jaydb/jay/blob/main/docs/check-and-repair.md
type Damage struct {
	Kind    string `json:"kind"`           // such as "index-missing"; the texts of kinds are stable
	Subject string `json:"subject"`        // the affected object, such as: document "users/1"
	Problem string `json:"problem"`        // what is wrong
	Loss    string `json:"loss"`           // the data that is lost
	Remedy  string `json:"remedy"`         // what to do
	Key     []byte `json:"key,omitempty"`  // the key of the record in the storage engine; see docs/format.md
	File    string `json:"file,omitempty"` // the file that is damaged
	Offset  int64  `json:"offset"`         // in the file; -1 if the damage has no offset
}

// String returns kind, subject, problem, loss and remedy in one line.
func (d Damage) String() string { return recovery.Damage(d).String() }

// Verify checks the whole database while it is in use. It checks the checksum of each block of the files; that
// each document and each other record can be decoded and agrees with its key; that documents agree with all
// derived data (change records, index entries, collections, counts, expiry and refresh, references to
// attachments and the SHA-256 of each); that histories of revisions have no gaps; and that counters are above
// all numbers in use.
//
// Verify reads everything, in a snapshot, and changes nothing. Damage is not an error: the report contains it,
// and also contains warnings, which do not count as damage. The error is ErrClosed, the error of ctx, or the
// error of a failing disk. The memory of Verify does not depend on the size of the database (docs/limits.md).
// The space of data that is overwritten or deleted during Verify is freed afterwards.
func (db *DB) Verify(ctx context.Context, opts *VerifyOptions) (VerifyReport, error) {
	found, err := recovery.Check(ctx, &db.core, opts.inner())
	return verifyReport(found), err
}

// inner returns the options as package recovery has them.
func (o *VerifyOptions) inner() (out recovery.CheckOptions) {
	if o == nil {
		return out
	}
	out = recovery.CheckOptions{MaxDamages: o.MaxDamages, BytesPerSecond: o.BytesPerSecond, SkipFiles: o.SkipFiles}
	if o.Progress != nil {
		out.Progress = func(p recovery.Progress) { o.Progress(VerifyProgress(p)) }
	}
	return out
}

func verifyReport(r recovery.Report) VerifyReport {
	return VerifyReport{
		Found: r.Found, Damages: damages(r.Damages), Warned: r.Warned, Warnings: damages(r.Warnings), ByKind: r.ByKind, NotCompared: r.NotCompared,
		Files: r.Files, FileBytes: r.FileBytes, Keys: r.Keys, Bytes: r.Bytes, Documents: r.Documents, Revisions: r.Revisions,
		Changes: r.Changes, IndexEntries: r.IndexEntries, Attachments: r.Attachments, AttachmentBytes: r.AttachmentBytes,
	}
}

// damages returns nil for nil, and otherwise a list, so that it is [] in JSON.
func damages(found []recovery.Damage) []Damage {
	if found == nil {
		return nil
	}
	all := make([]Damage, len(found))
	for i, d := range found {
		all[i] = Damage(d)
	}
	return all
}

// VerifyDir verifies the database in a directory that is not in use, even a directory that Open refuses because
// of damage. It reads as much as possible, and changes nothing: it writes neither to files nor to the log. Of
// opts, it uses CacheBytes, FS and Logger; nil means the defaults.
//
// VerifyDir takes twice the size of the database's logs in memory: a few times Options.MemTableBytes of the
// program that wrote the database. It returns the errors of Open, except for damage, which is in the report.
func VerifyDir(ctx context.Context, dir string, opts *Options, how *VerifyOptions) (VerifyReport, error) {
	o, claim, err := salvageOptions(dir, opts)
	defer claim.End()
	if err != nil {
		return VerifyReport{}, err
	}
	found, err := recovery.CheckDirectory(ctx, dir, o.inner(claim), how.inner())
	return verifyReport(found), err
}

// salvageOptions returns the options with which a directory is read.
// The caller must end the claim, also after an error.
func salvageOptions(dir string, opts *Options) (Options, *budget.Claim, error) {
	o, claim, err := opts.withDefaults()
	if dir == "" && err == nil {
		err = fmt.Errorf("%w: no directory is named", ErrOption)
	}
	if err != nil {
		err = fmt.Errorf("open %q: %w", storage.Shown(o.Engine, dir), err)
	}
	return o, claim, err
}

// RepairReport is the result of Repair.
type RepairReport struct {
	Before  VerifyReport `json:"before"`  // of the damaged directory; its files only
	After   VerifyReport `json:"after"`   // of the new directory
	Lost    []LostItem   `json:"lost"`    // items that are missing in the new directory, or have changed
	Missing int64        `json:"missing"` // the number of these items, including those that are not listed

	Documents     int64    `json:"documents"`
	Revisions     int64    `json:"revisions"`
	Attachments   int64    `json:"attachments"` // different contents
	Deletions     int64    `json:"deletions"`   // recorded deletions
	Counters      int64    `json:"counters"`
	Subscriptions int64    `json:"subscriptions"`
	Indexes       int64    `json:"indexes"`          // built again
	Raised        []string `json:"raised,omitempty"` // counters that were below a number in use
}

// LostItem is an item that Repair could not save, or could not save unchanged.
type LostItem struct {
	What string `json:"what"` // "document", "attachment", "revision", "subscription", "definition", "record", "range" or "index"
	ID   string `json:"id,omitempty"`
	Why  string `json:"why"`
}

// Repair makes a new database in the directory into, which must not exist, from the readable data of the
// database in dir. Repair only reads dir, which must not be in use. It copies undamaged documents, revisions,
// attachments, compare-exchange values, counters, subscriptions and settings, and builds change records,
// collections, counts, expiry and refresh, and indexes from them. It does not copy results of calls with a
// RequestID: the database carries out such a call if it is repeated. Repair raises counters above all numbers
// that it has found, so that no ID is used twice. It verifies the new database: see RepairReport.After.
//
// The report lists the lost items, with the IDs of documents as far as they are known. If Repair returns an
// error, no new database exists, and Repair has removed the unfinished one. Until the new database is complete,
// the name of its directory is into followed by ".unfinished". A process that ends during the repair leaves
// this directory; remove it then. opts are the options of Open, and of the new database if its settings are
// lost.
func Repair(ctx context.Context, dir, into string, opts *Options, how *VerifyOptions) (RepairReport, error) {
	o, claim, err := salvageOptions(dir, opts)
	defer claim.End()
	if err == nil && o.ReadOnly {
		err = fmt.Errorf("repair %q: %w: ReadOnly is no option of the database that Repair writes", dir, ErrOption)
	}
	if err != nil {
		return RepairReport{}, err
	}
	made := o
	made.FS = nil // opts.FS is that of dir
	done, err := recovery.Repair(ctx, dir, into, o.inner(claim), made.inner(claim), how.inner())
	return repairReport(done), err
}

func repairReport(r recovery.Repaired) RepairReport {
	out := RepairReport{
		Before: verifyReport(r.Before), After: verifyReport(r.After), Missing: r.Missing, Raised: r.Raised,
		Documents: r.Documents, Revisions: r.Revisions, Attachments: r.Attachments, Deletions: r.Deletions,
		Counters: r.Counters, Subscriptions: r.Subscriptions, Indexes: r.Indexes, Lost: make([]LostItem, len(r.Lost)),
	}
	for i, l := range r.Lost {
		out.Lost[i] = LostItem(l)
	}
	return out
}

// ConvertProgress is the progress of EncryptDir, DecryptDir or RotateDir.
type ConvertProgress struct {
	Files  int   `json:"files"`  // files that have been converted
	Copied int   `json:"copied"` // of these, by this call; the others were converted before
	Bytes  int64 `json:"bytes"`  // of these files, before conversion
	Total  int64 `json:"total"`  // bytes of all files of the directory
}

// EncryptDir encrypts the database in directory dir, which must not be in use, with the newest of
// opts.EncryptionKeys. Afterwards open the database with these keys. opts are the options for opening the
// database; FS may be set, Engine must not.
//
// EncryptDir copies each file and replaces the file by the copy. So the disk needs room for the largest file,
// and a checkpoint that shares files with the database does not change. If the call returns an error or its
// process ends, Open returns ErrKey for the directory until the same call has succeeded; a repeated call
// continues. The plaintext of the old files is removed, not erased: a disk and a file system may keep it.
// EncryptDir returns ErrUsage if the database is already encrypted. It calls progress, if not nil, after each
// file, from the goroutine of the call.
func EncryptDir(ctx context.Context, dir string, opts *Options, progress func(ConvertProgress)) (ConvertProgress, error) {
	return convertDir(ctx, "encrypt", dir, opts, progress, func(found lsm.Encryption, keys sealed.Keys) (from, to sealed.Keys, err error) {
		if found.Encrypted && found.Converting == "" {
			return nil, nil, fmt.Errorf("%w: the database is encrypted already: RotateDir (jay encrypt --rotate) encrypts it anew with the newest key", ErrUsage)
		}
		return nil, keys, nil
	})
}

// DecryptDir decrypts the database in directory dir, which must not be in use. opts.EncryptionKeys are the keys
// with which it was opened so far; afterwards open it without keys. DecryptDir returns ErrUsage if the database
// is not encrypted. In all other ways it works like EncryptDir.
func DecryptDir(ctx context.Context, dir string, opts *Options, progress func(ConvertProgress)) (ConvertProgress, error) {
	return convertDir(ctx, "decrypt", dir, opts, progress, func(found lsm.Encryption, keys sealed.Keys) (from, to sealed.Keys, err error) {
		if !found.Encrypted && found.Converting == "" {
			return nil, nil, fmt.Errorf("%w: the database is not encrypted", ErrUsage)
		}
		return keys, nil, nil
	})
}

// RotateDir re-encrypts every file of an encrypted database that is not encrypted with the newest of
// opts.EncryptionKeys. Afterwards no file needs an older key. While a database is in use, it encrypts each new
// table with the key that was the newest when it was opened. RotateDir returns ErrUsage if the database is not
// encrypted. In all other ways it works like EncryptDir.
func RotateDir(ctx context.Context, dir string, opts *Options, progress func(ConvertProgress)) (ConvertProgress, error) {
	return convertDir(ctx, "rotate the key of", dir, opts, progress, func(found lsm.Encryption, keys sealed.Keys) (from, to sealed.Keys, err error) {
		if !found.Encrypted && found.Converting == "" {
			return nil, nil, fmt.Errorf("%w: the database is not encrypted: EncryptDir (jay encrypt) encrypts it", ErrUsage)
		}
		return keys, keys, nil
	})
}

// convertDir converts a directory from and to the keys that choose returns.
func convertDir(ctx context.Context, verb, dir string, opts *Options, progress func(ConvertProgress), choose func(lsm.Encryption, sealed.Keys) (from, to sealed.Keys, err error)) (done ConvertProgress, err error) {
	o, claim, err := salvageOptions(dir, opts)
	defer claim.End()
	if err != nil {
		return done, err
	}
	wrap := func(err error) error { return fmt.Errorf("%s %q: %w", verb, storage.Shown(o.Engine, dir), err) }
	switch {
	case o.Engine != nil:
		return done, wrap(fmt.Errorf("%w: another Engine keeps its files as it does", ErrOption))
	case o.EncryptionKeys == nil:
		return done, wrap(fmt.Errorf("%w: set Options.EncryptionKeys", ErrKey))
	case o.ReadOnly || o.AcceptLoss != nil:
		return done, wrap(fmt.Errorf("%w: goes without ReadOnly and AcceptLoss", ErrOption))
	}
	engine := o.engine()
	found, err := lsm.ReadEncryption(o.files(), dir)
	if err != nil {
		return done, wrap(err)
	}
	from, to, err := choose(found, engine.EncryptionKeys)
	if err != nil {
		return done, wrap(err)
	}
	engine.EncryptionKeys, engine.Logger = from, o.Logger
	err = lsm.Convert(ctx, dir, engine, to, func(p lsm.ConvertProgress) {
		done = ConvertProgress(p)
		if progress != nil {
			progress(done)
		}
	})
	if err != nil {
		return done, wrap(err)
	}
	return done, nil
}
