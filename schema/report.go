package schema

import "time"

// Bounds of a Report. docs/limits.md has them.
const (
	MaxReported           = 100      // documents in Report.First
	MaxReportedViolations = 3        // of each of them
	MaxReportedText       = 200      // bytes of a path and of a message; longer ones are cut
	MaxReportedBytes      = 64 << 10 // of all of First: beyond it no documents are listed, even if there are fewer than MaxReported
)

// Report says which documents of a collection violate a schema.
type Report struct {
	Collection string `json:"collection"`
	Number     uint64 `json:"number,omitempty"` // Rule.Number; 0 for a schema that is not a rule

	// Running is true while documents are being validated. Then the figures count the documents that
	// were validated so far.
	Running   bool  `json:"running,omitempty"`
	Documents int64 `json:"documents"` // that were validated
	Violating int64 `json:"violating"` // of these

	Begun time.Time `json:"begun"`
	Ended time.Time `json:"ended,omitzero"`

	// First are the first documents that violate the schema, in the order of their IDs, within
	// MaxReported and the other bounds.
	First []Reported `json:"first,omitempty"`
}

// Reported is a document in a Report.
type Reported struct {
	ID         string      `json:"id"`
	Count      int         `json:"count"` // of all violations
	Violations []Violation `json:"violations"`
}

// Add counts a document that was validated, and lists it if it violates the schema and there is
// room. found is nil for a document without violations. The Report keeps nothing of found.
func (r *Report) Add(id string, found *Error) {
	r.Documents++
	if found == nil {
		return
	}
	r.Violating++
	if len(r.First) >= MaxReported || int64(len(r.First)) < r.Violating-1 { // the list has no gaps
		return
	}
	one := Reported{ID: id, Count: found.Count}
	for _, v := range found.Violations[:min(len(found.Violations), MaxReportedViolations)] {
		one.Violations = append(one.Violations, Violation{cut(v.Path), v.Keyword, cut(v.Message)})
	}
	if r.size()+one.size() <= MaxReportedBytes {
		r.First = append(r.First, one)
	}
}

func (r *Report) size() (n int) {
	for i := range r.First {
		n += r.First[i].size()
	}
	return n
}

func (d *Reported) size() int {
	n := len(d.ID)
	for _, v := range d.Violations {
		n += len(v.Path) + len(v.Keyword) + len(v.Message)
	}
	return n
}

// cut returns text, or as many of its characters as the bound allows.
func cut(text string) string {
	if len(text) <= MaxReportedText {
		return text
	}
	end := MaxReportedText
	for end > 0 && text[end]&0xc0 == 0x80 { // in the middle of a character
		end--
	}
	return text[:end] + "…"
}
