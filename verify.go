package jay

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/verify"
	"github.com/jaydb/jay/storage"
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
func (d Damage) String() string {
	return fmt.Sprintf("%s: %s: %s; lost: %s; %s", d.Kind, d.Subject, d.Problem, d.Loss, d.Remedy)
}

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
	c, err := newChecking(ctx, opts)
	if err != nil {
		return VerifyReport{}, err
	}
	ctx, cancel := db.horizon.Context(ctx)
	defer cancel()
	c.ctx = ctx
	err = c.run(db)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return c.result(), fmt.Errorf("verify: %w", err)
	}
	return c.result(), nil
}

// leastBytesPerSecond is the least that BytesPerSecond may ask for.
const leastBytesPerSecond = 64 << 10

// checking is a Verify under way.
type checking struct {
	ctx    context.Context
	opts   VerifyOptions
	report VerifyReport
	ledger *verify.Report // nil before it has begun
	total  int64
	broken []string // tables of a directory that are damaged
	pace   pace
}

func newChecking(ctx context.Context, opts *VerifyOptions) (*checking, error) {
	c := &checking{ctx: ctx}
	if opts != nil {
		c.opts = *opts
	}
	switch o := &c.opts; {
	case o.MaxDamages < 0 || o.MaxDamages > verify.MaxDamages:
		return nil, fmt.Errorf("%w: MaxDamages is from 0 to %d, not %d", ErrOption, verify.MaxDamages, o.MaxDamages)
	case o.BytesPerSecond < 0 || o.BytesPerSecond > 0 && o.BytesPerSecond < leastBytesPerSecond:
		return nil, fmt.Errorf("%w: BytesPerSecond is 0 or at least %d, not %d", ErrOption, leastBytesPerSecond, o.BytesPerSecond)
	case o.MaxDamages == 0:
		o.MaxDamages = verify.DefaultDamages
	}
	c.pace = pace{ctx: ctx, rate: c.opts.BytesPerSecond}
	return c, ctx.Err()
}

// run checks the files and then the records of an open database.
func (c *checking) run(db *DB) error {
	c.pace.ctx = c.ctx
	if engine, can := db.env.Engine.(storage.FileChecker); can && !c.opts.SkipFiles {
		if err := c.files(db, engine); err != nil {
			return err
		}
	}
	s, err := openState(db)
	if err != nil {
		return err
	}
	defer s.Release(nil)
	return c.records(s.use)
}

// files checks the files, one at a time inside the gate.
func (c *checking) files(db *DB, engine storage.FileChecker) error {
	var files []storage.File
	if err := db.inside(func() (err error) { files, err = engine.Files(); return err }); err != nil {
		return err
	}
	for _, f := range files {
		c.total += f.Bytes
	}
	for _, f := range files {
		c.progress("files", 0, 0)
		err := db.inside(func() error { return c.file(engine, f) })
		if err != nil {
			return err
		}
	}
	c.progress("files", 0, 0)
	return nil
}

// fileChecker checks files: an engine, or a directory that is not open.
type fileChecker interface {
	CheckFile(ctx context.Context, f storage.File, pace func(bytes int) error) ([]*storage.DamageError, error)
}

// file checks one file.
func (c *checking) file(engine fileChecker, f storage.File) error {
	damage, err := engine.CheckFile(c.ctx, f, func(n int) error {
		c.report.FileBytes += int64(n)
		return c.pace.take(n)
	})
	if err != nil {
		return err
	}
	c.report.Files++
	for _, d := range damage {
		c.damagedFile(d)
	}
	return nil
}

// damagedFile enters damage to a file into the report.
func (c *checking) damagedFile(d *storage.DamageError) {
	kind := verify.FileDamaged
	if strings.HasPrefix(d.Problem, "the file is missing") {
		kind = verify.FileMissing
	}
	c.add(Damage{Kind: string(kind), Subject: "file " + d.File, Problem: d.Problem, Loss: d.Loss, Remedy: kind.Meaning().Remedy, File: d.File, Offset: d.Offset})
}

func (c *checking) add(d Damage) {
	if d.Loss == "" {
		d.Loss = "nothing that was stored is known to be lost"
	}
	c.report.Found++
	c.report.count(d.Kind, 1)
	if len(c.report.Damages) < c.opts.MaxDamages {
		c.report.Damages = append(c.report.Damages, d)
	}
}

func (r *VerifyReport) count(kind string, n int64) {
	if r.ByKind == nil {
		r.ByKind = make(map[string]int64)
	}
	r.ByKind[kind] += n
}

// records checks the records that use reads.
func (c *checking) records(use func(func(storage.Reader) error) error) error {
	before := int64(0)
	r, err := verify.Run(c.ctx, verify.Config{
		Use:     use,
		Damages: c.opts.MaxDamages,
		Pause: func(p verify.Progress) error {
			c.progress(p.Step, p.Bytes, p.Keys)
			n := p.Bytes - before
			before = p.Bytes
			return c.pace.take(int(n))
		},
	})
	c.ledger = r
	return err
}

// progress calls the user.
func (c *checking) progress(step string, bytes, keys int64) {
	if c.opts.Progress == nil {
		return
	}
	p := VerifyProgress{Step: step, Bytes: c.report.FileBytes + bytes, Keys: keys, Damages: c.report.Found}
	if step == "files" {
		p.Total = c.total
	}
	c.opts.Progress(p)
}

// result returns the report, as far as it is.
func (c *checking) result() VerifyReport {
	r := c.report
	r.ByKind = maps.Clone(r.ByKind)
	if v := c.ledger; v != nil {
		for _, d := range v.Damages {
			if len(r.Damages) < c.opts.MaxDamages {
				r.Damages = append(r.Damages, damageOf(d))
			}
		}
		for _, d := range v.Warnings {
			r.Warnings = append(r.Warnings, damageOf(d))
		}
		r.Found, r.Warned = r.Found+v.Found, v.Warned
		for kind, n := range v.ByKind {
			r.count(string(kind), n)
		}
		r.NotCompared = append(r.NotCompared, v.NotCompared...)
		r.Keys, r.Bytes, r.Documents, r.Revisions = v.Keys, v.Bytes, v.Documents, v.Revisions
		r.Changes, r.IndexEntries, r.Attachments, r.AttachmentBytes = v.Changes, v.IndexEntries, v.Contents, v.ContentBytes
	}
	if r.Damages == nil {
		r.Damages = []Damage{}
	}
	if r.Warnings == nil {
		r.Warnings = []Damage{}
	}
	return r
}

func damageOf(d verify.Damage) Damage {
	m := d.Kind.Meaning()
	return Damage{Kind: string(d.Kind), Subject: d.Subject, Problem: d.Problem, Loss: m.Loss, Remedy: m.Remedy, Key: d.Key, Offset: -1}
}

// state is the snapshot that Verify reads, which Close releases.
type state struct {
	db *DB

	mu       sync.Mutex
	snapshot storage.Snapshot // nil when it is released. Guarded by mu.
	ended    error            // why. Guarded by mu.
}

// openState takes a snapshot. Release must follow.
func openState(db *DB) (*state, error) {
	s := &state{db: db}
	return s, db.inside(func() error {
		s.snapshot = db.env.Engine.Snapshot()
		db.env.Register(s)
		return nil
	})
}

// use calls fn with the snapshot, inside the gate.
func (s *state) use(fn func(storage.Reader) error) error {
	return s.db.inside(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.snapshot == nil {
			return errs.First(s.ended, ErrClosed)
		}
		return fn(s.snapshot)
	})
}

// Release implements env.Handle.
func (s *state) Release(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot == nil {
		return nil
	}
	err := s.snapshot.Close()
	s.snapshot, s.ended = nil, cause
	s.db.env.Unregister(s)
	return err
}

// pace bounds how much is read in a second.
type pace struct {
	ctx   context.Context
	rate  int64 // bytes; 0 for no bound
	begun time.Time
	taken int64
}

// take notes n bytes that are read now, and waits until so many may be.
func (p *pace) take(n int) error {
	if p.rate == 0 || n == 0 {
		return p.ctx.Err()
	}
	if p.begun.IsZero() {
		p.begun = time.Now()
	}
	p.taken += int64(n)
	ahead := time.Duration(float64(p.taken)/float64(p.rate)*float64(time.Second)) - time.Since(p.begun)
	if ahead <= 0 {
		return p.ctx.Err()
	}
	select {
	case <-time.After(ahead):
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}
