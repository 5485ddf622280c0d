package query_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that paths through the same array are taken element by element in a group by, and
// not in all combinations, with and without an index that has them.
func TestGroupBy_PathsOfOneArray(t *testing.T) {
	t.Parallel()
	db, err := openMemory(nil)
	must(t, err)
	defer db.Close()
	put := func(id, body string) {
		t.Helper()
		_, err := db.Put(ctx, id, json.RawMessage(body), jay.InCollection("Orders"))
		must(t, err)
	}
	put("o/1", `{"lines":[{"p":"p1","q":1},{"p":"p2","q":2}],"tags":["x","y"],"who":{"n":1,"m":2},"boxes":[{"b":1,"in":[{"c":1,"d":1},{"c":2,"d":2}]},{"b":2,"in":[{"c":3}]},{"b":3}]}`)
	put("o/2", `{"lines":[{"p":"p2","q":3},{"p":"p3"},{}],"tags":[],"who":{"n":1,"m":2},"pairs":[[1,2],[3]],"at":[{"d":"2026-01-31T10:00:00Z","n":1},{"d":"2026-02-01T10:00:00Z","n":2}]}`)
	put("o/3", `{"lines":{"p":"p1","q":1}}`)
	tests := []struct{ by, want string }{
		{"lines[].p, lines[].q", "<nil>,<nil> p1,1 p2,2 p2,3 p3,<nil>"},
		{"lines.p, lines.q", "p1,1 p2,2 p2,3 p3,<nil>"},
		{"lines[].p, lines[].q, tags", "<nil>,<nil>,<nil> p1,1,x p1,1,y p2,2,x p2,2,y p2,3,<nil> p3,<nil>,<nil>"},
		{"lines[].p, tags", "<nil>,<nil> p1,x p1,y p2,<nil> p2,x p2,y p3,<nil>"},
		{"lines[0].p, lines[1].q", "<nil>,<nil> p1,2 p2,<nil>"},
		{"lines[0].p, lines[].q", "<nil>,<nil> p1,1 p1,2 p2,3"},
		{"who.n, who.m", "1,2 <nil>,<nil>"},
		{"boxes[].b, boxes[].in[].c, boxes[].in[].d", "1,1,1 1,2,2 2,3,<nil> 3,<nil>,<nil> <nil>,<nil>,<nil>"},
		{"tags, tags[]", "<nil>,<nil> x,x y,y"},
		{"pairs, pairs[]", "<nil>,<nil> [1,2],1 [1,2],2 [3],3"},
		{"month(at[].d), at[].n", "2026-01,1 2026-02,2 <nil>,<nil>"},
	}
	for round := range 2 {
		for _, test := range tests {
			columns, select_ := strings.Split(test.by, ", "), []string{}
			for i, c := range columns {
				select_ = append(select_, fmt.Sprintf("%s as c%d", c, i))
			}
			q, err := db.RQL("from Orders group by "+test.by+" select "+strings.Join(select_, ", "), nil)
			must(t, err)
			rows, err := q.All(ctx)
			must(t, err)
			var got []string
			for _, row := range rows {
				var cells map[string]any
				must(t, json.Unmarshal(row.JSON, &cells))
				var texts []string
				for i := range columns {
					texts = append(texts, strings.NewReplacer(" ", ",").Replace(fmt.Sprint(cells[fmt.Sprint("c", i)])))
				}
				got = append(got, strings.Join(texts, ","))
			}
			want := strings.Fields(test.want)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("round %d, group by %s: got %v, want %v", round, test.by, got, want)
			}
		}
		must(t, db.EnsureIndexes(ctx, "Orders", []jay.Index{{Fields: []string{"lines[].p", "lines[].q"}}, {Fields: []string{"who.n", "who.m"}}}))
	}
}

// Ensure that a document is refused whose elements are more groups than one may be in.
func TestGroupBy_PathsOfOneArrayBound(t *testing.T) {
	t.Parallel()
	db, err := openMemory(nil)
	must(t, err)
	defer db.Close()
	body := func(n int) json.RawMessage {
		return json.RawMessage(`{"lines":[` + strings.TrimSuffix(strings.Repeat(`{"p":1,"q":[1,2]},`, n), ",") + `]}`)
	}
	q, err := db.RQL("from Orders group by lines[].p, lines[].q select lines[].p as p, lines[].q as q, count()", nil)
	must(t, err)
	_, err = db.Put(ctx, "o/1", body(5000), jay.InCollection("Orders"))
	must(t, err)
	rows, err := q.All(ctx)
	must(t, err)
	if len(rows) != 2 {
		t.Errorf("%d groups", len(rows))
	}
	_, err = db.Put(ctx, "o/1", body(5001), jay.InCollection("Orders"))
	must(t, err)
	if _, err = q.All(ctx); err == nil || !strings.Contains(err.Error(), "groups of one document") {
		t.Errorf("got %v", err)
	}
}
