package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay/query"
)

// Ensure that parts of instants are those of a zone where a query names one, also on days on which its clocks change.
func TestZone_Parts(t *testing.T) {
	for _, test := range []struct{ at, part, want string }{
		{"2026-01-31T22:59:59Z", "day(At, 'Europe/Zurich')", "2026-01-31"},
		{"2026-01-31T23:00:00Z", "day(At, 'Europe/Zurich')", "2026-02-01"},
		{"2026-07-31T21:59:59Z", "day(At, 'Europe/Zurich')", "2026-07-31"},
		{"2026-07-31T22:00:00Z", "day(At, 'Europe/Zurich')", "2026-08-01"}, // summer time
		{"2026-07-31T22:00:00Z", `month(At, "Europe/Zurich")`, "2026-08"},
		{"2026-12-31T23:30:00Z", "year(At, 'Europe/Zurich')", "2027"},
		{"2026-12-31T23:30:00Z", "year(At, 'UTC')", "2026"},
		{"2026-12-31T23:30:00Z", "year(At)", "2026"},
		{"2026-10-25T00:30:00Z", "hour(At, 'Europe/Zurich')", "2026-10-25T02"},
		{"2026-10-25T01:30:00Z", "hour(At, 'Europe/Zurich')", "2026-10-25T02"}, // the hour comes twice
		{"2026-03-29T01:30:00Z", "hour(At, 'Europe/Zurich')", "2026-03-29T03"},
		{"2026-01-01T03:30:00Z", "day(At, 'America/New_York')", "2025-12-31"},
		{"2026-01-01T00:30:00+01:00", "day(At, 'Asia/Kathmandu')", "2026-01-01"},
		{"1900-01-01T00:00:00Z", "hour(At, 'Europe/Zurich')", "1900-01-01T01"},
	} {
		body := `{"At":"` + test.at + `"}`
		for _, text := range []string{"from X where " + test.part + " = '" + test.want + "'", "from X where not (" + test.part + " < '" + test.want + "') and " + test.part + " <= '" + test.want + "'"} {
			q, err := query.Parse(text, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := query.Compile(q.Where)
			if err != nil {
				t.Fatal(err)
			}
			if !m.Match(query.Doc{Body: []byte(body)}) {
				t.Errorf("%s: %s is not %s", test.at, test.part, test.want)
			}
			again, err := query.Parse(q.String(), nil)
			if err != nil || again.String() != q.String() {
				t.Errorf("%s is printed as %s: %v", text, q, err)
			}
		}
	}

	// Two zones of one field are two fields, and what lies outside of the years is none.
	q, err := query.Parse("from X where day(At, 'Asia/Tokyo') = '2026-02-01' and day(At, 'America/New_York') = '2026-01-31' and day(At) = '2026-02-01'", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := query.Compile(q.Where)
	if err != nil || !m.Match(query.Doc{Body: []byte(`{"At":"2026-02-01T00:30:00Z"}`)}) {
		t.Errorf("three zones of one field: %v", err)
	}
	q, err = query.Parse("from X where exists(year(At, 'Asia/Tokyo'))", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err = query.Compile(q.Where)
	if err != nil || m.Match(query.Doc{Body: []byte(`{"At":"9999-12-31T23:30:00Z"}`)}) || !m.Match(query.Doc{Body: []byte(`{"At":"9999-12-31T03:30:00Z"}`)}) {
		t.Errorf("the year 10000 in Tokyo: %v", err)
	}
}

// Ensure that the name of a zone is one, within its bound, and stands with a part of a date only.
func TestZone_Refused(t *testing.T) {
	for _, text := range []string{
		"day(At, 'Europe/Bern')", "day(At, '')", "day(At, 'Local')", "day(At, '" + strings.Repeat("x", 65) + "')", "day(At, '../etc/passwd')", "day(At, '/etc/localtime')",
		"day(At, Europe)", "day(At, 1)", "day(At,)", "day(At, 'UTC', 'UTC')", "day(id(), 'UTC')", "day(At as date, 'UTC')",
	} {
		if _, err := query.Parse("from X where "+text+" = '2026-01-01'", nil); !errors.Is(err, query.ErrSyntax) {
			t.Errorf("%s: got %v, want ErrSyntax", text, err)
		}
	}
	if _, err := query.LoadZone("Europe/Bern"); !errors.Is(err, query.ErrCondition) {
		t.Errorf("got %v, want ErrCondition", err)
	}
	zone, err := query.LoadZone("Europe/Zurich")
	if err != nil || zone.String() != "Europe/Zurich" || (*query.Zone)(nil).String() != "UTC" {
		t.Errorf("got %v %v", zone, err)
	}
	path := mustParse(t, "from X where day(At) = '2026-01-01'").Where.(query.Compare).Field.Path
	for name, f := range map[string]query.Field{
		"an instant":    {Path: path, Date: query.DateInstant, Zone: zone},
		"no date":       {Path: path, Zone: zone},
		"a zone unmade": {Path: path, Date: query.DateDay, Zone: new(query.Zone)},
	} {
		if _, err := query.Compile(query.Exists{Field: f}); !errors.Is(err, query.ErrCondition) {
			t.Errorf("%s with a zone: got %v, want ErrCondition", name, err)
		}
	}
}

// Ensure that a field without a zone has the text that hashes of older versions are made of, and that zones differ in it.
func TestField_GoString(t *testing.T) {
	texts := make(map[string]bool)
	for _, text := range []string{"day(At)", "day(At, 'UTC')", "day(At, 'Europe/Zurich')"} {
		f := mustParse(t, "from X where "+text+" = '2026-01-01'").Where.(query.Compare).Field
		got := fmt.Sprintf("%#v", f)
		texts[got] = true
		if f.Zone == nil && (!strings.HasPrefix(got, "query.Field{Meta:0x0, Path:jsonpath.Path{") || !strings.HasSuffix(got, "}, Date:0x4, Func:0x0, ends:false}")) {
			t.Errorf("%s is %s", text, got)
		}
	}
	if len(texts) != 3 {
		t.Errorf("got %v, want three texts", texts)
	}
}

func mustParse(t *testing.T, text string) *query.Query {
	t.Helper()
	q, err := query.Parse(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q
}
