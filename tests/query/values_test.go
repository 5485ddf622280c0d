package query_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/query"
)

// valuesDB holds documents v/00, v/01, … in Values whose V is each of values,
// and, in turn, no index, an ascending and a descending one.
func valuesDB(t *testing.T, values []string, check func(t *testing.T, db *jay.DB)) {
	for _, fields := range [][]string{nil, {"V"}, {"-V"}, {"V", "W"}} {
		t.Run(fmt.Sprint(fields), func(t *testing.T) {
			db := memory(t, nil)
			if fields != nil {
				must(t, db.EnsureIndex(ctx, "Values", jay.Index{Fields: fields}))
			}
			for i, v := range values {
				put(t, db, fmt.Sprintf("v/%02d", i), `{"V":`+v+`}`, jay.InCollection("Values"))
			}
			check(t, db)
			if err := checks.Indexes(db); err != nil {
				t.Error(err)
			}
		})
	}
}

// found returns the numbers of the documents that a condition finds.
func found(t *testing.T, q jay.Query[jay.Document]) string {
	t.Helper()
	var out []string
	for doc, err := range q.Iter(ctx) {
		must(t, err)
		out = append(out, strings.TrimPrefix(doc.ID(), "v/"))
	}
	return strings.Join(out, " ")
}

// Ensure that numbers are compared by all their digits, through an index and
// without one, and are equal however they are written.
func TestQuery_Numbers(t *testing.T) {
	values := []string{
		"9007199254740992", "9007199254740993", "9007199254740993.0", "9007199254740992.5", "9.007199254740993e15",
		"1", "1.0", "1e0", "10e-1", "0", "-0", "0.0e7", "-1", "1e400", "-1e400", "1e-400", "1e401", "10e399",
		"1e999999999999", "0.1e1000000000000", "1e-999999999999", "null", `"1"`, "true", "12345678901234567890123456789.5",
	}
	valuesDB(t, values, func(t *testing.T, db *jay.DB) {
		tests := []struct{ rql, want string }{
			{"V = 9007199254740992", "00"},
			{"V = 9007199254740993", "01 02 04"},
			{"V = 9007199254740993.000", "01 02 04"},
			{"V > 9007199254740992 and V < 9007199254740993", "03"},
			{"V >= 9007199254740992 and V <= 9007199254740993", "00 01 02 03 04"},
			{"V = 1", "05 06 07 08"},
			{"V = 1e0", "05 06 07 08"},
			{"V = 0", "09 10 11"},
			{"V = -0.0", "09 10 11"},
			{"V < 0", "12 14"},
			{"V > 0 and V < 1", "15 20"},
			{"V = 1e400", "13 17"},
			{"V > 1e400 and V < 1e402", "16"},
			{"V < -1e399", "14"},
			{"V = 1e-400", "15"},
			{"V = 1e999999999999", "18 19"},
			{"V > 1e401", "18 19"},
			{"V in (1, 1.0, 0, 2)", "05 06 07 08 09 10 11"},
			{"V = 12345678901234567890123456789.5", "24"},
			{"V > 12345678901234567890123456789 and V < 12345678901234567890123456790", "24"},
			{"V = null", "21"},
			{"V = '1'", "22"},
			{"V between false and true", "23"},
		}
		for _, test := range tests {
			if strings.Contains(test.rql, "between false") {
				continue // refused in texts, see TestQuery_Values_Builder
			}
			q, err := db.RQL("from Values where "+test.rql+" order by id()", nil)
			must(t, err)
			var got []string
			for row, err := range q.Iter(ctx) {
				must(t, err)
				got = append(got, strings.TrimPrefix(row.Document.ID(), "v/"))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%s: %v, want %s", test.rql, got, test.want)
			}
		}
		if got := found(t, db.Query("Values").Where(jay.Eq("V", int64(9007199254740993)))); len(got) != 8 {
			t.Errorf("by an int64: %s", got)
		}
		if got := found(t, db.Query("Values").Where(jay.Eq("V", float64(1<<53))).OrderBy("id()")); got != "00" {
			t.Errorf("by a float64: %s", got)
		}
		order := "21 23 14 12 09 10 11 20 15 05 06 07 08 00 03 01 02 04 24 13 17 16 18 19 22"
		if got := found(t, db.Query("Values").OrderBy("V")); got != order {
			t.Errorf("in order: %s\nwant      %s", got, order)
		}
		backwards := strings.Fields(order)
		slices.Reverse(backwards)
		if got := found(t, db.Query("Values").OrderBy("-V")); got != strings.Join(backwards, " ") {
			t.Errorf("backwards: %s", got)
		}
	})
}

// Ensure that text too long for its key, text with zeros in it, and text that
// differs in case only are found, ordered and kept unique all the same.
func TestQuery_LongText(t *testing.T) {
	long := strings.Repeat("x", 511)
	values := []string{
		`"` + long + `"`, `"` + long + `x"`, `"` + long + `xa"`, `"` + long + `xA"`, `"` + long + `xb"`, `"` + long + `xa` + strings.Repeat("y", 5000) + `"`,
		`"` + strings.ToUpper(long) + `XA"`, `""`, `"a"`, `"a\u0000"`, `"a\u0000b"`, `"a\u0001"`, `"A\u0000B"`, `"ab"`, `"` + strings.Repeat("ä", 300) + `"`, `"` + strings.Repeat("Ä", 300) + `"`,
	}
	valuesDB(t, values, func(t *testing.T, db *jay.DB) {
		q := db.Query("Values").OrderBy("id()")
		tests := []struct {
			name string
			c    jay.Condition
			want string
		}{
			{"equal", jay.Eq("V", long+"xa"), "02"},
			{"equal, any case", jay.IgnoreCase(jay.Eq("V", long+"xa")), "02 03 06"},
			{"in", jay.In("V", long, long+"xb", "a\x00"), "00 04 09"},
			{"in, any case", jay.IgnoreCase(jay.In("V", long+"XA", "A\x00B")), "02 03 06 10 12"},
			{"above", jay.Gt("V", long+"x"), "02 03 04 05 06 14 15"},
			{"from", jay.Ge("V", long+"xa"), "02 04 05 14 15"},
			{"below", jay.Lt("V", long+"xa"), "00 01 03 06 07 08 09 10 11 12 13"},
			{"between", jay.Between("V", long+"xA", long+"xa"), "02 03"},
			{"begins", jay.StartsWith("V", long+"xa"), "02 05"},
			{"begins, any case", jay.IgnoreCase(jay.StartsWith("V", long+"xa")), "02 03 05 06"},
			{"begins with 512", jay.StartsWith("V", long+"x"), "01 02 03 04 05"},
			{"begins with zero", jay.StartsWith("V", "a\x00"), "09 10"},
			{"zero", jay.Eq("V", "a\x00"), "09"},
			{"zero, any case", jay.IgnoreCase(jay.Eq("V", "a\x00b")), "10 12"},
			{"below zero", jay.Lt("V", "a\x00"), "07 08"},
			{"empty", jay.Eq("V", ""), "07"},
			{"umlauts", jay.IgnoreCase(jay.Eq("V", strings.Repeat("Ä", 300))), "14 15"},
		}
		for _, test := range tests {
			if got := found(t, q.Where(test.c)); got != test.want {
				t.Errorf("%s: %s, want %s", test.name, got, test.want)
			}
		}
		order := "07 08 09 12 10 11 13 00 01 06 03 02 05 04 15 14"
		if got := found(t, db.Query("Values").OrderBy("V")); got != order {
			t.Errorf("in order: %s\nwant      %s", got, order)
		}
		if got := found(t, db.Query("Values").OrderBy("V").Limit(3).Skip(9)); got != "06 03 02" {
			t.Errorf("a window of the order: %s", got)
		}
	})

	db := memory(t, nil)
	must(t, db.EnsureIndex(ctx, "Values", jay.Index{Fields: []string{"V"}, Unique: true}))
	for i, v := range values {
		put(t, db, fmt.Sprintf("v/%02d", i), `{"V":`+v+`}`, jay.InCollection("Values"))
	}
	for i, v := range values {
		_, err := db.Put(ctx, fmt.Sprint("v/again", i), []byte(`{"V":`+v+`}`), jay.InCollection("Values"))
		var unique *jay.UniqueError
		if !errors.As(err, &unique) || unique.Other != fmt.Sprintf("v/%02d", i) || len(err.Error()) > 1000 {
			t.Errorf("%.40s again: %.200v", v, err)
		}
	}
	for _, v := range []string{"null", "1", "[]", `["b","c"]`} {
		put(t, db, "n"+v, `{"V":`+v+`}`, jay.InCollection("Values"))
	}
	for v, taken := range map[string]bool{"null": false, "1.0": true, "[]": false, `["d","c"]`: true, `["e"]`: false, `"\u0061"`: true} {
		if _, err := db.Put(ctx, fmt.Sprint("m", len(v)), []byte(`{"V":`+v+`}`), jay.InCollection("Values")); errors.Is(err, jay.ErrUnique) != taken {
			t.Errorf("%s: %v, want it taken: %v", v, err, taken)
		}
	}
}

// Ensure that a collection has at most 64 indexes, and that declarations that
// make no sense are refused.
func TestIndex_Bounds(t *testing.T) {
	db := memory(t, nil)
	for i := range 64 {
		must(t, db.EnsureIndex(ctx, "Many", jay.Index{Fields: []string{fmt.Sprint("f", i)}}))
	}
	if err := db.EnsureIndex(ctx, "many", jay.Index{Fields: []string{"more"}}); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("the 65th: %v", err)
	}
	must(t, db.EnsureIndex(ctx, "Others", jay.Index{Fields: []string{"f"}}))
	put(t, db, "many/1", `{"f7":1,"f63":2}`, jay.InCollection("Many"))
	must(t, db.DropIndex(ctx, "Many", "f0"))
	must(t, db.EnsureIndex(ctx, "many", jay.Index{Fields: []string{"more"}}))
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
	for _, ix := range []jay.Index{
		{}, {Fields: []string{""}}, {Fields: []string{"a", "-a"}}, {Fields: []string{"a..b"}}, {Fields: []string{"id()"}}, {Fields: strings.Split("a b c d e f g h i", " ")},
		{Fields: []string{"a"}, Where: "a ="}, {Fields: []string{"a"}, Where: "id() = 'x'"}, {Fields: []string{"a"}, Where: "@metadata.@collection = 'x'"}, {Fields: []string{"a"}, Where: "a = $p"},
		{Fields: []string{"a"}, Where: "lower(a) = 'x'"}, {Fields: []string{"a"}, Where: "a < upper(b)"}, {Fields: []string{"a"}, Where: "not elemMatch(l, elemMatch(m, upper(a) = 'X'))"},
		{Fields: []string{"a"}, Name: strings.Repeat("n", 201)}, {Fields: []string{"a"}, Name: "a\nb"}, {Fields: []string{strings.Repeat("a.", 600) + "b"}}, {Fields: []string{"@metadata.@id"}},
	} {
		if err := db.EnsureIndex(ctx, "Others", ix); err == nil {
			t.Errorf("accepted: %+v", ix)
			_ = db.DropIndex(ctx, "Others", strings.Join(ix.Fields, ","))
		} else if !errors.Is(err, jay.ErrIndex) && !errors.Is(err, query.ErrSyntax) {
			t.Errorf("%+v: %v is neither ErrIndex nor ErrSyntax", ix, err)
		}
	}
	for _, collection := range []string{"", "a\x00b", strings.Repeat("c", 5000)} {
		if err := db.EnsureIndex(ctx, collection, jay.Index{Fields: []string{"a"}}); err == nil {
			t.Errorf("accepted for collection %.20q", collection)
		}
	}
}
