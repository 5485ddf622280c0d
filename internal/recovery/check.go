// Package recovery carries out the calls that look at a database as a whole: Backup and
// Restore, Verify and Repair.
//
// Packages below it know one part of each: backup the bytes of a stream, verify what must
// agree, salvage what is copied of a damaged directory. Package recovery opens and closes
// the databases and directories that such a call needs, enters the gate for pieces of the
// work, so that Close does not wait for all of it, and makes one report of what was found.
// Package jay has the types of these reports that users see, with their documentation.
package recovery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/verify"
	"github.com/jaydb/jay/storage"
)

// CheckOptions are VerifyOptions of package jay.
type CheckOptions struct {
	Progress       func(Progress) // nil for none
	MaxDamages     int
	BytesPerSecond int64
	SkipFiles      bool
}

// Progress is VerifyProgress of package jay.
type Progress struct {
	Step    string
	Bytes   int64
	Total   int64
	Keys    int64
	Damages int64
}

// Report is VerifyReport of package jay.
type Report struct {
	Found    int64
	Damages  []Damage
	Warned   int64
	Warnings []Damage
	ByKind   map[string]int64

	NotCompared []string

	Files           int
	FileBytes       int64
	Keys            int64
	Bytes           int64
	Documents       int64
	Revisions       int64
	Changes         int64
	IndexEntries    int64
	Attachments     int64
	AttachmentBytes int64
}

// Damage is Damage of package jay, with the same fields in the same order.
type Damage struct {
	Kind    string
	Subject string
	Problem string
	Loss    string
	Remedy  string
	Key     []byte
	File    string
	Offset  int64
}

// String returns kind, subject, problem, loss and remedy in one line.
func (d Damage) String() string {
	return fmt.Sprintf("%s: %s: %s; lost: %s; %s", d.Kind, d.Subject, d.Problem, d.Loss, d.Remedy)
}

// Check checks the whole of an open database: see DB.Verify. The report is as far as it
// came if there is an error.
func Check(ctx context.Context, db *core.Database, o CheckOptions) (Report, error) {
	c, err := newChecking(ctx, o)
	if err != nil {
		return Report{}, err
	}
	ctx, cancel := db.Horizon.Context(ctx)
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
	opts   CheckOptions
	report Report
	ledger *verify.Report // nil before it has begun
	total  int64
	broken []string // tables of a directory that are damaged
	pace   pace
}

func newChecking(ctx context.Context, o CheckOptions) (*checking, error) {
	c := &checking{ctx: ctx, opts: o}
	switch o := &c.opts; {
	case o.MaxDamages < 0 || o.MaxDamages > verify.MaxDamages:
		return nil, fmt.Errorf("%w: MaxDamages is from 0 to %d, not %d", errs.ErrOption, verify.MaxDamages, o.MaxDamages)
	case o.BytesPerSecond < 0 || o.BytesPerSecond > 0 && o.BytesPerSecond < leastBytesPerSecond:
		return nil, fmt.Errorf("%w: BytesPerSecond is 0 or at least %d, not %d", errs.ErrOption, leastBytesPerSecond, o.BytesPerSecond)
	case o.MaxDamages == 0:
		o.MaxDamages = verify.DefaultDamages
	}
	c.pace = pace{ctx: ctx, rate: c.opts.BytesPerSecond}
	return c, ctx.Err()
}

// run checks the files and then the records of an open database.
func (c *checking) run(db *core.Database) error {
	c.pace.ctx = c.ctx
	if engine, can := db.OnDisk().(storage.FileChecker); can && !c.opts.SkipFiles {
		if err := c.files(db, engine); err != nil {
			return err
		}
	}
	s, err := db.OpenState()
	if err != nil {
		return err
	}
	defer s.Release(nil)
	return c.records(s.Use)
}

// files checks the files, one at a time inside the gate.
func (c *checking) files(db *core.Database, engine storage.FileChecker) error {
	var files []storage.File
	if err := db.Inside(func() (err error) { files, err = engine.Files(); return err }); err != nil {
		return err
	}
	for _, f := range files {
		c.total += f.Bytes
	}
	for _, f := range files {
		c.progress("files", 0, 0)
		err := db.Inside(func() error { return c.file(engine, f) })
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
	c.add(Damage{Kind: string(kind), Subject: "file " + d.File, Problem: d.Problem, Loss: d.Loss, Remedy: cmp.Or(d.Remedy, kind.Meaning().Remedy), File: d.File, Offset: d.Offset})
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

func (r *Report) count(kind string, n int64) {
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
	p := Progress{Step: step, Bytes: c.report.FileBytes + bytes, Keys: keys, Damages: c.report.Found}
	if step == "files" {
		p.Total = c.total
	}
	c.opts.Progress(p)
}

// result returns the report, as far as it is.
func (c *checking) result() Report {
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
