package storage_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay/storage"
)

// Ensure that the numbers of the features follow one another, that their names fit on a line of the format
// file, and that docs/format.md has a row for each.
func TestFeatures(t *testing.T) {
	page, err := os.ReadFile("../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), fmt.Sprintf("# The file format, number %d\n", storage.Format)) {
		t.Errorf("docs/format.md is not that of number %d", storage.Format)
	}
	if len(storage.AllFeatures) > 64 {
		t.Errorf("%d features do not fit into a FeatureSet", len(storage.AllFeatures))
	}
	names := make(map[string]bool)
	for i, f := range storage.AllFeatures {
		if f.Format != storage.BaseFormat+1+i {
			t.Errorf("%v is not number %d", f, storage.BaseFormat+1+i)
		}
		if f.Name == "" || len(f.Name) > 40 || strings.ContainsAny(f.Name, "\n:") || strings.ToLower(f.Name) != f.Name || names[f.Name] {
			t.Errorf("the name of %v", f)
		}
		names[f.Name] = true
		if row := fmt.Sprintf("| %d | %s |", f.Format, f.Name); !strings.Contains(string(page), row) {
			t.Errorf("docs/format.md lacks the row %q", row)
		}
	}
}

// Ensure that needs are the features that are known, and that all others are named with the highest number.
func TestNeeds(t *testing.T) {
	first, second := storage.Feature{Format: storage.BaseFormat + 1, Name: "first"}, storage.Feature{Format: storage.BaseFormat + 2, Name: "second"}
	known := storage.Features{first, second}
	for _, test := range []struct {
		add      []storage.Feature
		want     storage.FeatureSet
		found    int
		unknown  []string
		features string
	}{
		{nil, 0, 0, nil, ""},
		{[]storage.Feature{second, second}, 2, 0, nil, "second"},
		{[]storage.Feature{{Format: first.Format}, second}, 3, 0, nil, "first second"},
		{[]storage.Feature{{Format: 9, Name: "nine"}, first, {Format: 8, Name: "eight"}}, 1, 9, []string{"nine", "eight"}, "first"},
		{[]storage.Feature{{Format: first.Format, Name: "other"}}, 0, first.Format, []string{"other"}, ""},
		{[]storage.Feature{{Format: 12}}, 0, 12, nil, ""},
		{[]storage.Feature{{Format: storage.BaseFormat, Name: "old"}}, 0, storage.BaseFormat, []string{"old"}, ""},
		{[]storage.Feature{{Format: -1 << 62, Name: "low"}}, 0, 0, []string{"low"}, ""},
	} {
		var needs storage.Needs
		for _, f := range test.add {
			needs.Add(known, f)
		}
		if needs.Features != test.want {
			t.Errorf("%v: got the set %b, want %b", test.add, needs.Features, test.want)
		}
		var names []string
		for _, f := range known.Format(needs.Features).Features {
			names = append(names, f.Name)
		}
		if strings.Join(names, " ") != test.features {
			t.Errorf("%v: got %q, want %q", test.add, names, test.features)
		}
		if (needs.Err() != nil) != (test.found > 0 || test.unknown != nil) {
			t.Errorf("%v: got the error %v", test.add, needs.Err())
		}
		if u := needs.Unknown; u != nil && (u.Found != test.found || u.Newest != second.Format || !slices.Equal(u.Features, test.unknown)) {
			t.Errorf("%v: got %+v", test.add, u)
		}
	}
}

// Ensure that the error names few features, each in quotes, whatever a file says.
func TestFormatError_Names(t *testing.T) {
	e := &storage.FormatError{What: "database", Found: 40, Newest: 4}
	if text := e.Error(); strings.Contains(text, "uses") {
		t.Errorf("without names: %s", text)
	}
	for i := range 30 {
		e.Features = append(e.Features, fmt.Sprint("f", i, "\n", strings.Repeat("x", 10_000)))
	}
	text := e.Error()
	if len(text) > 1500 || strings.Contains(text, "\n") || !strings.Contains(text, `"f7\n`) || strings.Contains(text, `"f8`) || !strings.Contains(text, "and others") {
		t.Errorf("got %d bytes: %.2000s", len(text), text)
	}
}
