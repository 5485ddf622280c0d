package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jaydb/jay/schema"
)

// Ensure that a report counts all documents, lists the first without gaps, within its bounds, and cuts long texts at the end of a character.
func TestReport_Bounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", schema.MaxReportedText)
	found := &schema.Error{Count: 9}
	for range 9 {
		found.Violations = append(found.Violations, schema.Violation{Path: "/" + long, Keyword: "type", Message: long})
	}
	var r schema.Report
	for i := range 1000 {
		if r.Add(fmt.Sprint("orders/", i), nil); i%2 == 0 {
			r.Add(fmt.Sprint("bad/", i), found)
		}
	}
	if r.Documents != 1500 || r.Violating != 500 || len(r.First) == 0 || len(r.First) > schema.MaxReported {
		t.Errorf("got %d, %d, %d", r.Documents, r.Violating, len(r.First))
	}
	for i, d := range r.First {
		if d.ID != fmt.Sprint("bad/", 2*i) || d.Count != 9 || len(d.Violations) != schema.MaxReportedViolations {
			t.Errorf("%d: got %s, %d, %d", i, d.ID, d.Count, len(d.Violations))
		}
		for _, v := range d.Violations {
			if len(v.Path) > schema.MaxReportedText+3 || len(v.Message) > schema.MaxReportedText+3 || !utf8.ValidString(v.Path) {
				t.Errorf("a text of %d bytes", len(v.Path))
			}
		}
	}
	if text, _ := json.Marshal(r); len(text) > 2*schema.MaxReportedBytes {
		t.Errorf("the report has %d bytes", len(text))
	}
	var ids schema.Report
	for range 1000 {
		ids.Add(strings.Repeat("x", 2000), &schema.Error{Count: 1, Violations: []schema.Violation{{Path: "/a"}}})
	}
	if n := len(ids.First); n == 0 || n*2000 > schema.MaxReportedBytes {
		t.Errorf("%d long IDs are listed", n)
	}
}

// Ensure that the text of an Error names at most three violations, and how many more there are.
func TestError_Text(t *testing.T) {
	t.Parallel()
	e := &schema.Error{ID: "orders/1", Collection: "Orders", Count: 7}
	for i := range 5 {
		e.Violations = append(e.Violations, schema.Violation{Path: fmt.Sprint("/", i), Message: "wrong"})
	}
	if got, want := e.Error(), `document "orders/1" violates the schema of the collection "Orders": /0: wrong; /1: wrong; /2: wrong; and 4 more`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e.ID, e.Count, e.Violations = "", 1, []schema.Violation{{Message: "missing"}}
	if got, want := e.Error(), `the document violates the schema of the collection "Orders": the document: missing`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func ExampleMode_Check() {
	err := schema.Mode("strict").Check()
	var wrong *schema.RuleError
	fmt.Println(errors.As(err, &wrong), wrong.Value)
	// Output: true strict
}

func ExampleReport_Add() {
	r := schema.Report{Collection: "Orders"}
	r.Add("orders/1", nil)
	r.Add("orders/2", &schema.Error{Count: 1, Violations: []schema.Violation{{Path: "/total", Keyword: "type", Message: "got string, want number"}}})
	fmt.Println(r.Documents, r.Violating, r.First[0].ID, r.First[0].Violations[0])
	// Output: 2 1 orders/2 /total: got string, want number
}
