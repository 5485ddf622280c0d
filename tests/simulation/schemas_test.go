package simulation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/schema"
)

// forms is the collection that has a rule. Only the verbs of this file write into it, so that no other one has to know what a rule refuses.
const forms = "Forms"

// atMost is a schema.Compiler of schemas {"most":3}: a document violates them if its member a is above that.
type atMost struct {
	Most *int `json:"most"`
}

// Compile implements schema.Compiler.
func (atMost) Compile(text []byte) (schema.Validator, error) {
	var s atMost
	if err := json.Unmarshal(text, &s); err != nil || s.Most == nil {
		return nil, &schema.RuleError{Rule: "only most is known"}
	}
	return s, nil
}

// Validate implements schema.Validator.
func (s atMost) Validate(body []byte, _ int) ([]schema.Violation, int) {
	var d struct{ A int }
	if err := json.Unmarshal(body, &d); err != nil {
		panic(err)
	}
	if d.A <= *s.Most {
		return nil, 0
	}
	return []schema.Violation{{Path: "/a", Keyword: "most", Message: "it is too large"}}, 1
}

// ruled is the rule of forms, and the report on the documents that were there when it was set.
type ruled struct {
	mode                 schema.Mode // "" for none
	most                 int
	documents, violating int64
}

// rule returns a rule as it is given to a database.
func (r ruled) rule() schema.Rule {
	return schema.Rule{Collection: forms, Mode: r.mode, Schema: fmt.Appendf(nil, `{"most":%d}`, r.most)}
}

// runs reports whether documents are validated.
func (r ruled) runs() bool { return r.mode == schema.Warn || r.mode == schema.Refuse }

// violates reports whether a document violates the rule.
func (r ruled) violates(d *doc) bool { return r.runs() && d.a > r.most }

// reported returns the rule with the report on the documents that are there now.
func (r ruled) reported(m *model) ruled {
	r.documents, r.violating = 0, 0
	if !r.runs() {
		return r
	}
	for _, key := range m.documents(forms) {
		if r.documents++; r.violates(m.state[key]) {
			r.violating++
		}
	}
	return r
}

func setRule(w *world) {
	next := ruled{mode: []schema.Mode{schema.Refuse, schema.Refuse, schema.Warn, schema.Off}[w.intn(4)], most: w.intn(7)}
	fmt.Fprintf(w.log, "%s, at most %d. ", next.mode, next.most)
	w.changeRule(next, nil, func() error { return w.db.Definitions().Schemas().Set(ctx, next.rule()) })
}

func removeRule(w *world) {
	var want error
	if w.model.rule.mode == "" {
		want = jay.ErrNotFound
	}
	w.changeRule(ruled{}, want, func() error { return w.db.Definitions().Schemas().Remove(ctx, forms) })
}

// changeRule makes a call that changes the rule. One whose outcome is not known, and one that a loss of power may take, leaves several that there may
// be.
func (w *world) changeRule(next ruled, want error, change func() error) {
	next = next.reported(w.model)
	m := w.model
	done := w.call(new(entry), want, func() (func(), error) { return nil, change() })
	switch {
	case want != nil:
	case !done:
		m.rules = append(m.rules, next)
	case w.settings.relaxed || w.cut != nil || w.failed:
		m.rule, m.rules = next, append(m.rules, next)
	default:
		m.rule, m.rules = next, []ruled{next}
	}
	if done && want == nil {
		w.checkReport()
	}
}

// checkReport compares the report of the background with the model's, unless the machine fails in this step.
func (w *world) checkReport() {
	if w.cut == nil && !w.failed && w.model.rule.runs() {
		w.compareReport()
	}
}

// compareReport compares the report of the background with the model's, or with others that there may be.
func (w *world) compareReport(may ...ruled) {
	report, err := w.db.Definitions().Schemas().Wait(ctx, forms)
	w.must(err)
	got := w.model.rule
	got.documents, got.violating = report.Documents, report.Violating
	if got != w.model.rule && !slices.Contains(may, got) || report.Running || len(report.First) != int(report.Violating) {
		w.fail("the report of the rule at most %d on %d documents: %d violate it, %d are listed; want one of %+v %+v", got.most, got.documents, got.violating, len(report.First), w.model.rule, may)
	}
	w.model.rule = got
}

// reportRule compares the report with the model's, and that of a check by another schema.
func reportRule(w *world) {
	w.checkReport()
	if w.cut != nil || w.failed {
		return
	}
	other := ruled{mode: schema.Refuse, most: w.intn(7)}.reported(w.model)
	report, err := w.db.Definitions().Schemas().Check(ctx, other.rule(), nil)
	w.must(err)
	if report.Documents != other.documents || report.Violating != other.violating {
		w.fail("a check by at most %d finds %d of %d documents, want %d of %d", other.most, report.Violating, report.Documents, other.violating, other.documents)
	}
	fmt.Fprintf(w.log, "%d of %d above %d. ", other.violating, other.documents, other.most)
}

// checkRule compares the rule of a database that was opened with those that there may be, and goes on with it.
func (w *world) checkRule() {
	all, err := w.db.Definitions().Schemas().List(ctx)
	w.must(err)
	var got ruled
	for _, one := range all {
		var s atMost
		w.must(json.Unmarshal(one.Schema, &s))
		got = ruled{mode: one.Mode, most: *s.Most}
	}
	may := append(slices.Clone(w.model.rules), w.model.rule)
	now := got.reported(w.model)
	if w.model.anyRule {
		may = append(may, now)
	}
	may = slices.DeleteFunc(may, func(one ruled) bool { return one.mode != got.mode || got.mode != "" && one.most != got.most })
	if len(may) == 0 {
		w.fail("the rule is %+v, want %+v or one of %+v", got, w.model.rule, w.model.rules)
	}
	unknown := w.model.anyRule
	w.model.rule, w.model.rules, w.model.anyRule = may[0], may[:1], false
	switch {
	case !got.runs():
	case unknown: // it is of a moment that is not known
		report, err := w.db.Definitions().Schemas().Wait(ctx, forms)
		w.must(err)
		w.model.rule.documents, w.model.rule.violating = report.Documents, report.Violating
	default:
		w.compareReport(append(may, now)...)
	}
}

// form returns the document that a write puts under an ID of forms.
func (w *world) form(id string) (key string, to *doc) {
	key = ids.Fold(id)
	to = w.fresh(id, forms, w.model.state[key])
	to.u = -1
	return key, to
}

// writeForm writes into forms in one of several ways, and is refused if a document violates a rule that refuses.
func writeForm(w *world) {
	id := func() string { return fmt.Sprintf("forms/%d", w.intn(12)) }
	var changes []change
	add := func(key string, to *doc) { changes = append(changes, change{key, to}) }
	var run func() error
	each := false
	switch one := id(); w.intn(7) {
	case 0, 1:
		key, to := w.form(one)
		add(key, to)
		run = func() error { return second(w.db.Put(ctx, one, to.body(), jay.InCollection(forms))) }
	case 2:
		old := w.there(ids.Fold(one))
		if old == nil {
			return
		}
		w.model.serial++
		d := *old
		d.n, d.a, d.version = w.model.serial, w.intn(7), ""
		add(ids.Fold(one), w.after(old, &d))
		run = func() error { return second(w.db.Patch(ctx, one, jay.Set("n", d.n), jay.Set("a", d.a))) }
	case 3:
		old := w.model.state[ids.Fold(one)]
		if w.there(ids.Fold(one)) == nil {
			return
		}
		w.call(&entry{changes: []change{{ids.Fold(one), w.deletion(old)}}}, nil, func() (func(), error) { return nil, w.db.Delete(ctx, one) })
		return
	case 4, 5:
		other := one + "b"
		key, to := w.form(one)
		add(key, to)
		key, next := w.form(other)
		add(key, next)
		if w.intn(2) == 0 {
			run = func() error {
				var b jay.Batch
				b.Put(one, to.body(), jay.InCollection(forms))
				b.Put(other, next.body(), jay.InCollection(forms))
				return second(w.db.Apply(ctx, &b))
			}
			break
		}
		run = func() error {
			return w.db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := tx.Put(ctx, one, to.body(), jay.InCollection(forms)); err != nil {
					return err
				}
				return second(tx.Put(ctx, other, next.body(), jay.InCollection(forms)))
			})
		}
	case 6:
		each = true
		from, to := w.intn(7), w.intn(7)
		for _, key := range w.withA(forms, from) {
			old := w.model.state[key]
			d := *old
			d.a, d.version = to, ""
			add(key, w.after(old, &d))
		}
		if from == to || len(changes) == 0 {
			return
		}
		run = func() error { return second(w.db.Query(forms).Where(jay.Eq("a", from)).Patch(ctx, jay.Set("a", to))) }
	}
	e := &entry{changes: changes, each: each}
	var want error
	if w.model.rule.mode == schema.Refuse && slices.ContainsFunc(changes, func(c change) bool { return w.model.rule.violates(c.to) }) {
		e, want = new(entry), jay.ErrSchema
	}
	fmt.Fprintf(w.log, "%v. ", changes)
	w.call(e, want, func() (func(), error) {
		err := run()
		if refused := (*jay.SchemaError)(nil); errors.As(err, &refused) && (refused.Collection != forms || refused.Count != 1 || refused.Violations[0].Path != "/a") {
			w.fail("refused by %+v", refused)
		}
		return nil, err
	})
}
