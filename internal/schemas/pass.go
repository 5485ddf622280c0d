package schemas

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jaydb/jay/internal/background"
	"github.com/jaydb/jay/internal/definitions"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/storage"
)

// Bounds of a step of a pass. Variables for tests.
var (
	stepDocuments = 1000
	stepBytes     = 4 << 20
)

// After an error the pass waits before it begins anew: so long at first, then twice as long each time, up to the most.
const (
	firstRetry = time.Second
	mostRetry  = 5 * time.Minute
)

// validating is the work of a Pass: see package leases.
const validating = "validating"

// Look is how often a process looks whether others that have the store open have set a rule that nobody validates. A variable for tests.
var Look = time.Second

// Pass validates, in the background, the documents that were there when a rule was set. It goes over the documents of a collection by ID, in
// steps, each of a moment of its own, and rests as long as it works. What is written meanwhile is checked by its write. The report is stored when
// the last document is validated: a database that is closed before begins anew when it is opened. Of several processes that have a store open
// one validates, whoever has set the rule; if it ends, another one begins anew. It is safe for concurrent use.
type Pass struct {
	env     *env.Env
	docs    *docs.Reader
	current *Current
	worker  *background.Worker
	looks   *background.Group // of look
	retry   time.Duration     // after the next error. Of the worker.
	mine    bool              // this process has taken the work. Of the worker.

	// AwaitCommits waits for the cluster-wide commits that are under way, which were checked by the rules before; nil for none. It is set before
	// Resume.
	AwaitCommits func(ctx context.Context) error

	mu       sync.Mutex
	run      *run            // the one under way; nil for none. Guarded by mu.
	ended    chan struct{}   // closed when a run ends; a new one follows. Guarded by mu.
	reported map[uint64]bool // numbers of rules that have their reports, as far as is known. Guarded by mu.
}

// run is the validation of the documents of one rule. Its fields belong to the worker, but for report, which Pass.mu guards.
type run struct {
	rule   *Rule
	after  string // the ID that the next step begins behind; "" for the first
	report schema.Report
}

// NewPass returns the Pass of a database, for its Current. It does nothing before Resume. Stop must follow.
func NewPass(e *env.Env, reader *docs.Reader, current *Current) *Pass {
	p := &Pass{env: e, docs: reader, current: current, looks: background.NewGroup(), ended: make(chan struct{}), retry: firstRetry, reported: make(map[uint64]bool)}
	p.worker = background.NewWorker(p.step, p.failed)
	current.pass = p
	return p
}

// Wake has the pass look for rules without a report.
func (p *Pass) Wake() { p.worker.Wake() }

// Resume wakes the pass, and has it look for rules of other processes.
func (p *Pass) Resume() {
	if p.env.Engine.Shared() {
		p.looks.Every(Look, p.look)
	}
	p.Wake()
}

// look wakes the pass when there is a rule that has no report yet, as far as is known.
func (p *Pass) look() {
	if p.env.Refresh() == nil && len(p.waiting()) > 0 { // a store that is out of reach is there at a later look
		p.Wake()
	}
}

// Stop ends the pass and waits for it.
func (p *Pass) Stop() {
	p.looks.Stop()
	p.worker.Stop()
}

// failed notes an error of a step. The pass begins anew after a while, as the error may be of the moment: a store that was out of reach, or a commit
// that another process came before.
func (p *Pass) failed(err error) {
	p.env.Warn("jay: validating documents against a schema", err)
	wait := p.retry
	p.retry = min(2*wait, mostRetry)
	p.worker.Go(func() {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			p.Wake()
		case <-p.worker.Context().Done():
		}
	})
}

// step does a part of the work.
func (p *Pass) step(ctx context.Context) (more bool, err error) {
	defer func() {
		if err != nil {
			p.end() // failed begins anew
		}
	}()
	if err := p.env.Refresh(); err != nil {
		return false, err
	}
	r, err := p.next(ctx)
	if r == nil || err != nil {
		return false, err
	}
	whole, err := p.part(ctx, r)
	if err != nil || !whole {
		return true, err
	}
	if err := p.store(ctx, r); err != nil {
		return false, err
	}
	p.retry = firstRetry
	p.end()
	return true, nil
}

// next returns the run to go on with, or nil if every rule has its report, or another process is to validate.
func (p *Pass) next(ctx context.Context) (*run, error) {
	rule, err := p.first()
	if err != nil {
		return nil, err
	}
	if rule == nil {
		p.end()
		return nil, p.leave(ctx)
	}
	if p.mine, err = p.env.Does(ctx, validating); err != nil {
		return nil, err
	}
	if !p.mine {
		p.end()
		return nil, nil
	}
	p.mu.Lock()
	going := p.run
	p.mu.Unlock()
	if going != nil && going.rule == rule {
		return going, nil
	}
	if err := passWrites(ctx, p.env); err != nil {
		return nil, err
	}
	if p.AwaitCommits != nil {
		if err := p.AwaitCommits(ctx); err != nil {
			return nil, err
		}
	}
	now, err := p.env.Clock()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = &run{rule: rule, report: schema.Report{Collection: rule.Collection, Number: rule.Number, Running: true, Begun: now.UTC()}}
	return p.run, nil
}

// passWrites waits for the transactions that have begun with the rules before the current ones. What they write is not checked against a rule
// that is new, so whoever validates what is there must look after them. A transaction on a shared engine has read its rules, and conflicts with
// their change.
func passWrites(ctx context.Context, e *env.Env) error {
	if e.Engine.Shared() {
		return nil
	}
	return e.Engine.Update(ctx, false, func(storage.Tx) error { return nil })
}

// leave gives the work back, as only another process may be able to compile the schema of the next rule.
func (p *Pass) leave(ctx context.Context) error {
	if !p.mine || p.env.Works == nil {
		return nil
	}
	if err := p.env.Works.Leave(ctx, validating); err != nil {
		return err
	}
	p.mine = false
	return nil
}

// first returns the rule to validate: that of the run under way, if it is still in force, or the oldest one without a report, or nil.
func (p *Pass) first() (*Rule, error) {
	p.mu.Lock()
	current := p.run
	p.mu.Unlock()
	if current != nil && p.current.Load().Of(current.rule.folded) == current.rule {
		return current.rule, nil
	}
	for _, rule := range p.waiting() {
		there, err := reportOf(p.env.Engine, rule.Collection, rule.Number)
		if there == nil || err != nil {
			return rule, err
		}
		p.mu.Lock()
		p.reported[rule.Number] = true
		p.mu.Unlock()
	}
	return nil, nil
}

// waiting returns the rules that have no report, as far as is known, the oldest first.
func (p *Pass) waiting() (all []*Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reported := make(map[uint64]bool)
	p.current.Load().All(func(r *Rule) {
		if r.validator == nil {
			return
		}
		if p.reported[r.Number] {
			reported[r.Number] = true
		} else {
			all = append(all, r)
		}
	})
	p.reported = reported // those of rules that are gone are forgotten
	slices.SortFunc(all, func(a, b *Rule) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// end notes that a run has ended, or was given up.
func (p *Pass) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = nil
	close(p.ended)
	p.ended = make(chan struct{})
}

// part validates the next documents of a run, and reports whether they were the last. Those that are not on disk yet are among them: of
// those that were not checked, all were committed before the run began (passWrites), and its report is stored after they are on disk.
func (p *Pass) part(ctx context.Context, r *run) (whole bool, err error) {
	return walk(ctx, p.docs, p.env.Engine.Latest, docs.Range{Collection: r.rule.Collection, After: r.after}, stepDocuments, stepBytes, func(doc *docs.Document) {
		found := r.rule.Check(doc.JSON())
		p.mu.Lock()
		defer p.mu.Unlock()
		r.after = doc.ID()
		r.report.Add(doc.ID(), found)
	})
}

// walk calls fn with documents of a range, in one moment, until some documents or bytes were read, and reports whether there are no more.
func walk(ctx context.Context, reader *docs.Reader, take func() storage.Snapshot, over docs.Range, documents, bytes int, fn func(*docs.Document)) (whole bool, err error) {
	cursor, err := reader.Scan(over, take)
	if err != nil {
		return false, err
	}
	defer cursor.Close()
	for read, size := 0, 0; read < documents && size < bytes; read++ {
		doc, err := cursor.Next(ctx)
		if err != nil {
			return false, err
		}
		if doc == nil {
			return true, nil
		}
		fn(doc)
		size += len(doc.JSON())
	}
	return false, nil
}

// store stores the report of a run, unless its rule was changed meanwhile.
func (p *Pass) store(ctx context.Context, r *run) error {
	now, err := p.env.Clock()
	if err != nil {
		return err
	}
	p.mu.Lock()
	report := r.report // the one of the run is running until this one can be read
	p.mu.Unlock()
	report.Running, report.Ended = false, now.UTC()
	value, err := json.Marshal(&report)
	if err != nil {
		return err
	}
	return p.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		d, err := definitions.Schemas.Get(tx, r.rule.Collection)
		if err != nil || d == nil || d.Number != r.rule.Number {
			return err
		}
		return definitions.Stage(tx, []definitions.Change{definitions.SchemaReports.Change(r.rule.Collection, value)})
	})
}

// reportOf returns the stored report of a rule, or nil.
func reportOf(r docs.Getter, collection string, number uint64) (*schema.Report, error) {
	d, err := definitions.SchemaReports.Get(r, collection)
	if err != nil || d == nil {
		return nil, err
	}
	report := new(schema.Report)
	if err := json.Unmarshal(d.Value, report); err != nil {
		return nil, fmt.Errorf("the report on the schema of %q: %w: %w", d.Name, errs.ErrCorrupt, err)
	}
	if report.Number != number {
		return nil, nil
	}
	return report, nil
}

// errNoRule is the error for a collection without a rule.
var errNoRule = fmt.Errorf("%w: the collection has no schema", errs.ErrNotFound)

// Report returns what the validation of a collection has found, so far if it is still running. A rule that is off, or that nobody has validated
// yet, has a report without documents that has not begun. It is ErrNotFound if the collection has no rule.
func (c *Current) Report(e *env.Env, collection string) (schema.Report, error) {
	rule, err := Get(e.Engine, collection)
	if err == nil && rule == nil {
		err = errNoRule
	}
	if err != nil {
		return schema.Report{}, err
	}
	there, err := reportOf(e.Engine, collection, rule.Number)
	if err != nil {
		return schema.Report{}, err
	}
	if there != nil {
		return *there, nil
	}
	if running := c.pass.running(format.CollectionKey(collection), rule.Number); running != nil {
		return *running, nil
	}
	return schema.Report{Collection: rule.Collection, Number: rule.Number}, nil
}

// running returns a copy of the report of the run under way, or nil if it is of another rule.
func (p *Pass) running(folded string, number uint64) *schema.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || p.run.rule.folded != folded || p.run.rule.Number != number {
		return nil
	}
	own := p.run.report
	own.First = slices.Clone(own.First)
	return &own
}

// waitInterval is the time between two looks at what another process may have stored.
const waitInterval = 200 * time.Millisecond

// Wait returns the report of a collection when the validation has ended, and sees to it that there is one. It enters the gate for each look.
func (c *Current) Wait(ctx context.Context, e *env.Env, collection string) (schema.Report, error) {
	for {
		c.pass.mu.Lock()
		ended := c.pass.ended
		c.pass.mu.Unlock()
		report, err := c.look(e, collection)
		if err != nil || !report.Ended.IsZero() {
			return report, err
		}
		timer := time.NewTimer(waitInterval)
		select {
		case <-ended:
			timer.Stop()
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return report, ctx.Err()
		}
	}
}

// look is one look of Wait, inside the gate.
func (c *Current) look(e *env.Env, collection string) (schema.Report, error) {
	if err := e.Enter(); err != nil {
		return schema.Report{}, err
	}
	defer e.Exit()
	report, err := c.Report(e, collection)
	if err != nil || !report.Ended.IsZero() {
		return report, err
	}
	switch rule := c.Load().Of(format.CollectionKey(collection)); {
	case rule == nil:
		return report, &schema.RuleError{Collection: collection, Rule: "the schema is off, and no documents are validated"}
	case rule.missing != nil:
		return report, rule.missing
	}
	return report, nil
}

// Validate returns what a body violates in the rule of a collection, in any mode but off; nil for nothing, or without a rule.
func (c *Current) Validate(collection string, body []byte) error {
	rule := c.Load().Of(format.CollectionKey(collection))
	if rule == nil {
		return nil
	}
	if rule.missing != nil {
		return rule.missing
	}
	if found := rule.Check(body); found != nil {
		return found
	}
	return nil
}

// Try validates all documents of a collection against a schema, which need not be a rule. It stores nothing. Documents that are written
// meanwhile may be among them or not. progress is called about once for each 1,000 documents, outside of the gate; nil for none.
func (c *Current) Try(ctx context.Context, e *env.Env, reader *docs.Reader, asked schema.Rule, progress func(documents int64)) (schema.Report, error) {
	report := schema.Report{Collection: asked.Collection}
	asked.Mode = schema.Refuse
	if err := checkRule(&asked); err != nil {
		return report, err
	}
	if err := c.checkCompiles(e, &asked); err != nil {
		return report, err
	}
	rule := &Rule{Rule: asked, folded: format.CollectionKey(asked.Collection)}
	if rule.validator, rule.missing = c.compile(&asked); rule.missing != nil {
		return report, rule.missing
	}
	var err error
	if report.Begun, err = e.Clock(); err != nil {
		return report, err
	}
	report.Begun = report.Begun.UTC()
	for after, whole := "", false; !whole; {
		step := func() error {
			if err := e.Enter(); err != nil {
				return err
			}
			defer e.Exit()
			whole, err = walk(ctx, reader, e.Engine.Snapshot, docs.Range{Collection: asked.Collection, After: after}, stepDocuments, stepBytes, func(doc *docs.Document) {
				after = doc.ID()
				report.Add(doc.ID(), rule.Check(doc.JSON()))
			})
			return err
		}
		if err := step(); err != nil {
			return report, err
		}
		if progress != nil {
			progress(report.Documents)
		}
	}
	if report.Ended, err = e.Clock(); err == nil {
		report.Ended = report.Ended.UTC()
	}
	return report, err
}
