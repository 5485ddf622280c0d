package catalog_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that a text is a path where it was one before there were expressions in indexes, but for what has a parenthesis and is an
// expression, and that each canonical text is a fixed point.
func TestCanonical_Fields(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		// Paths.
		{"Name", "Name"}, {"-Name", "-Name"}, {"a-b", "a-b"}, {"Price*Quantity", "Price*Quantity"}, {"Price/Quantity", "Price/Quantity"}, {"'First Name'", "'First Name'"},
		{"Price(EUR)", "Price(EUR)"}, {"(Name)", "(Name)"}, {"year()", "year()"}, {"At  as  DATE", "At as date"}, {"-At as utc", "-At as utc"}, {"field('First Name')", "'First Name'"},
		// Members that would be expressions without quotes.
		{"'year(At)'", "'year(At)'"}, {"-'round(x)'.y", "-round(x).y"}, {"-'round(x)'", "-'round(x)'"},
		// Expressions, and parts of dates.
		{"Price * Quantity", "Price * Quantity"}, {"-Price  *Quantity", "-Price * Quantity"}, {"(Price)*(Quantity)", "Price * Quantity"}, {"YEAR(At)", "year(At)"}, {"-year(At as utc)", "-year(At as utc)"},
		{"coalesce(A,B)", "coalesce(A, B)"}, {"if(A>1,'x','y')", "if(A > 1, 'x', 'y')"}, {"A - B", "A - B"}, {"dateTrunc('Month',At)", "dateTrunc('month', At)"},
	} {
		ix, err := catalog.Canonical(jay.Index{Fields: []string{test.text}}, "Things")
		if err != nil || ix.Fields[0] != test.want {
			t.Errorf("%s: got %q, %v; want %q", test.text, ix.Fields, err, test.want)
			continue
		}
		again, err := catalog.Canonical(ix, "Things")
		if err != nil || !catalog.IsSame(ix, again) {
			t.Errorf("%s again: got %+v, %v", test.want, again, err)
		}
		stored, err := json.Marshal(catalog.RecordEntry{Number: 1, Info: jay.IndexInfo{Index: ix, Errors: 7}})
		var read catalog.RecordEntry
		if err := errors.Join(err, json.Unmarshal(stored, &read)); err != nil || !catalog.IsSame(ix, read.Index) || read.Errors != 0 {
			t.Errorf("%s stored as %s: got %+v, %v", test.want, stored, read, err)
		}
	}
}

// Ensure that what cannot be a field is refused with the reason.
func TestCanonical_Fields_Refused(t *testing.T) {
	for text, why := range map[string]string{
		"First Name": "a dot, a bracket or the end", "lower(Name)": "lower() depends on tables", "concat(trim(A), B)": "trim()", "if(upper(A) = 'X', 1, B)": "upper()",
		"day(At, 'Europe/Berlin')": "time zones", "1 + 2": "refers to no field", "A * @metadata.@etag": "no field of the body", "year(@metadata.@last-modified)": "no field of the body",
		"A * B as date": "is read as date", "A *": "neither a path nor an expression", "id()": "no field of the body", "sum(A) + 1": "neither a path nor an expression", "A + 'x": "neither",
		strings.Repeat("A + ", 300) + "A": "at most 1024 bytes",
	} {
		_, err := catalog.Canonical(jay.Index{Fields: []string{text}}, "Things")
		if !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v, want %q", text, err, why)
		}
	}
}

// Ensure that the record of an older version keeps its meaning: a member whose name would be an expression today.
func TestRecordEntry_OlderMember(t *testing.T) {
	var read catalog.RecordEntry
	jaytest.Must(t, json.Unmarshal([]byte(`{"number":1,"name":"n","fields":["-year(At)","round(x)[].y as date","a-b"],"collection":"C","state":"ready"}`), &read))
	jaytest.Equal(t, strings.Join(read.Fields, " "), "-'year(At)' round(x)[].y as date a-b")
	ix, err := catalog.Open(read)
	jaytest.Must(t, err)
	jaytest.Equal(t, ix.Fields[0].Query().String(), "'year(At)'")
}
