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

	// MaxDamages is how many damages, and how many warnings, the report lists. All are
	// counted. The default is 1,000; at most 100,000.
	MaxDamages int

	// BytesPerSecond bounds how much is read, so that the disk has time for others. The
	// default, 0, is no bound.
	BytesPerSecond int64

	// SkipFiles leaves out the checksums of files, which are read in addition to the
	// records: the records are then compared with one another only.
	SkipFiles bool
}

// VerifyProgress is how far Verify is.
type VerifyProgress struct {
	Step    string `json:"step"`    // "files", and then what is compared
	Bytes   int64  `json:"bytes"`   // read so far, of files and of records
	Total   int64  `json:"total"`   // bytes of the files, in the step "files"; 0 in others
	Keys    int64  `json:"keys"`    // records looked at so far
	Damages int64  `json:"damages"` // found so far
}

// VerifyReport is what Verify has found. There is no damage if Found is 0.
type VerifyReport struct {
	Found    int64            `json:"found"`            // damages, also those that are not listed
	Damages  []Damage         `json:"damages"`          // in the order in which they were found
	Warned   int64            `json:"warned"`           // warnings, also those that are not listed
	Warnings []Damage         `json:"warnings"`         // what may be wrong, and what an application may have made
	ByKind   map[string]int64 `json:"byKind,omitempty"` // damages and warnings, by Damage.Kind

	// NotCompared is what could not be looked at, in words: the entries of an index that
	// is being built, for example.
	NotCompared []string `json:"notCompared,omitempty"`

	Files           int   `json:"files"`           // that were read
	FileBytes       int64 `json:"fileBytes"`       // of them
	Keys            int64 `json:"keys"`            // records that were looked at
	Bytes           int64 `json:"bytes"`           // of them
	Documents       int64 `json:"documents"`       //
	Revisions       int64 `json:"revisions"`       // beside the documents
	Changes         int64 `json:"changes"`         // of documents that are there, and of deletions that are remembered
	IndexEntries    int64 `json:"indexEntries"`    //
	Attachments     int64 `json:"attachments"`     // different contents
	AttachmentBytes int64 `json:"attachmentBytes"` // of them
}

// Damage is something that is not as it was stored, or that does not agree with another
// record. [Check and repair] lists the kinds.
//
// [Check and repair]: https://github.com/jaydb/jay/blob/main/docs/check-and-repair.md
type Damage struct {
	Kind    string `json:"kind"`           // such as "index-missing"; texts of kinds do not change
	Subject string `json:"subject"`        // what it is about, such as: document "users/1"
	Problem string `json:"problem"`        // what is wrong
	Loss    string `json:"loss"`           // what is lost by it
	Remedy  string `json:"remedy"`         // what to do
	Key     []byte `json:"key,omitempty"`  // of the record in the storage engine; see docs/format.md
	File    string `json:"file,omitempty"` // the file that is damaged
	Offset  int64  `json:"offset"`         // in the file; -1 if it has none
}

// String returns kind, subject, problem, loss and remedy in one line.
func (d Damage) String() string { return recovery.Damage(d).String() }

// Verify checks the whole database while it is in use: the checksum of each block of its
// files; that each document and each other record can be decoded and is what its key says;
// that documents and all that is derived from them agree (the order of changes, index entries,
// collections, counts, what is due, references to attachments and the SHA-256 of each); that
// histories of revisions have no gaps; and that counters are above all numbers in use.
//
// It reads everything, in a snapshot, and changes nothing. Damage is no error: it is in
// the report, and so are warnings, which are not counted as damage. The error is ErrClosed, that of ctx, or
// that of a disk which fails. Memory does not depend on the size of the database
// (docs/limits.md). Space of what is overwritten or deleted meanwhile is freed afterwards.
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

// VerifyDir is Verify of the database in a directory that is not in use, be it one that
// Open refuses because it is damaged. It reads as much as can be read, and changes nothing: it writes
// neither to files nor to the log. Of the options, nil for the defaults, it uses CacheBytes, FS and Logger.
//
// It takes memory for the logs of the database, twice: a few times Options.MemTableBytes
// of the program that wrote it. The errors are those of Open, but for damage, which is in the report.
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

// RepairReport is what Repair has done.
type RepairReport struct {
	Before  VerifyReport `json:"before"`  // of the damaged directory: its files only
	After   VerifyReport `json:"after"`   // of the new one
	Lost    []LostItem   `json:"lost"`    // what is not in the new directory, or not as it was
	Missing int64        `json:"missing"` // how many those are, also those that are not listed

	Documents     int64    `json:"documents"`
	Revisions     int64    `json:"revisions"`
	Attachments   int64    `json:"attachments"` // different contents
	Deletions     int64    `json:"deletions"`   // that are remembered
	Counters      int64    `json:"counters"`
	Subscriptions int64    `json:"subscriptions"`
	Indexes       int64    `json:"indexes"`          // built again
	Raised        []string `json:"raised,omitempty"` // counters that were below a number in use
}

// LostItem is something that Repair could not save, or not as it was.
type LostItem struct {
	What string `json:"what"` // "document", "attachment", "revision", "subscription", "definition", "record", "range" or "index"
	ID   string `json:"id,omitempty"`
	Why  string `json:"why"`
}

// Repair makes a new database in the directory into, which must not exist, of what can be
// read of the one in dir, which is only read and must not be in use. Documents, revisions,
// attachments, compare-exchange values, counters, subscriptions and settings are copied if they are whole. The order of changes, collections,
// counts, what is due and indexes are made anew from them. Results of calls with a RequestID are left behind: such
// a call is carried out when it is made again. Counters are raised above all numbers
// that were found, so that no ID comes twice. The new database is checked: see
// RepairReport.After.
//
// What was lost is listed, with the IDs of documents as far as they are known. An error means that there
// is no new database; what was made of it is removed. Until it is whole it is called into with
// ".unfinished" behind it; a process that ends meanwhile leaves that, to be removed. opts are those of Open, and of the new
// database if its settings are lost.
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

// ConvertProgress is how far EncryptDir, DecryptDir or RotateDir is.
type ConvertProgress struct {
	Files  int   `json:"files"`  // that are as they are to be
	Copied int   `json:"copied"` // of them, by this call; the others were so already
	Bytes  int64 `json:"bytes"`  // of the files so far, as they were
	Total  int64 `json:"total"`  // bytes of all files of the directory
}

// EncryptDir encrypts the database in directory dir, which must not be in use, with the newest of opts.EncryptionKeys. From then on it is opened with those keys.
// opts are those that the database is opened under; FS may be set, Engine must not.
//
// Each file is copied, and the copy takes its place. So the disk needs room for the largest file, and a checkpoint that shares
// files with the database stays as it is. If the call returns an error or its process ends, Open refuses the directory with ErrKey until
// the same call has ended well; it goes on where it was. The plaintext of the old files is removed, not erased: a disk and a file system may keep it.
// A database that is encrypted already is ErrUsage. progress, if not nil, is called after each file, from the goroutine of the call.
func EncryptDir(ctx context.Context, dir string, opts *Options, progress func(ConvertProgress)) (ConvertProgress, error) {
	return convertDir(ctx, "encrypt", dir, opts, progress, func(found lsm.Encryption, keys sealed.Keys) (from, to sealed.Keys, err error) {
		if found.Encrypted && found.Converting == "" {
			return nil, nil, fmt.Errorf("%w: the database is encrypted already: RotateDir (jay encrypt --rotate) encrypts it anew with the newest key", ErrUsage)
		}
		return nil, keys, nil
	})
}

// DecryptDir decrypts the database in directory dir, which must not be in use. opts.EncryptionKeys are those that it was opened with; from then on it is
// opened without. All else is as with EncryptDir. A database that is not encrypted is ErrUsage.
func DecryptDir(ctx context.Context, dir string, opts *Options, progress func(ConvertProgress)) (ConvertProgress, error) {
	return convertDir(ctx, "decrypt", dir, opts, progress, func(found lsm.Encryption, keys sealed.Keys) (from, to sealed.Keys, err error) {
		if !found.Encrypted && found.Converting == "" {
			return nil, nil, fmt.Errorf("%w: the database is not encrypted", ErrUsage)
		}
		return keys, nil, nil
	})
}

// RotateDir encrypts every file of an encrypted database anew that is not encrypted with the newest of opts.EncryptionKeys. Afterwards no file needs
// an older key. All else is as with EncryptDir. While a database is in use, each table that it writes has the key that was the newest when it was opened. A database that is not encrypted is ErrUsage.
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
