package computed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/query"
)

// Ensure that a preview of all documents has the entries and the results that the index then has, and that it makes none.
func TestPreview_IsWhatTheIndexHas(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	fill(t, db)
	jaytest.Put(t, db, "orders/hidden", `{"Who":"w","N":4,"Hidden":true,"Lines":[]}`, jay.InCollection("Orders"))
	entries := stock()
	entries.Name, entries.Reduce = "Entries", nil
	for _, declared := range []jay.Computed{stock(), ends(), tagged(), entries} {
		p, err := jay.ComputedOf(db).Preview(ctx, declared)
		jaytest.Must(t, err)
		list, err := jay.ComputedOf(db).List(ctx)
		jaytest.Must(t, err)
		jaytest.Equal(t, len(list), 0)

		jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, declared))
		list, err = jay.ComputedOf(db).List(ctx)
		jaytest.Must(t, err)
		jaytest.Equal(t, p.Algebra, list[0].Algebra)
		jaytest.Equal(t, len(p.Parts), len(list[0].Parts))
		var got, want []string
		for _, one := range p.Results {
			got = append(got, string(one))
		}
		if declared.Reduce == nil {
			for _, doc := range p.Documents {
				for _, m := range doc.Maps {
					for _, entry := range m.Entries {
						got = append(got, string(entry))
					}
				}
			}
		}
		rows, err := jay.QueryIndex[json.RawMessage](db, declared.Name).All(ctx)
		jaytest.Must(t, err)
		for _, row := range rows {
			want = append(want, string(*row))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: got %v, want %v", declared.Name, got, want)
		}
		jaytest.Must(t, jay.ComputedOf(db).Drop(ctx, declared.Name))
	}
}

// Ensure that a preview of named documents has these in their order, with what each map of their collection gives, the elements that are
// left out, and the expressions that fail, each once.
func TestPreview_Documents(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	jaytest.Put(t, db, "orders/1", `{"Lines":[{"P":"a","N":1.10,"By":0},{"P":"b","N":2,"By":0},{"P":"c","N":0,"By":1}]}`, jay.InCollection("Orders"))
	jaytest.Put(t, db, "orders/2", `{"Lines":[]}`, jay.InCollection("Orders"))
	jaytest.Put(t, db, "others/1", `{}`, jay.InCollection("Others"))
	c := jay.Computed{
		Name:   "i",
		Maps:   []index.Map{{Collection: "orders", Each: "Lines", As: "l", Where: "l.N > 0", Select: []index.Member{{Name: "P", Expression: "l.P"}, {Name: "N", Expression: "l.N"}, {Name: "Q", Expression: "l.N / l.By"}}}},
		Reduce: &index.Reduce{GroupBy: []string{"P"}, Select: []index.Member{{Name: "P"}, {Name: "N", Expression: "sum(N)"}, {Name: "Q", Expression: "sum(Q * 2)"}}},
	}
	p, err := jay.ComputedOf(db).Preview(ctx, c, "Orders/2", "orders/1", "others/1")
	jaytest.Must(t, err)
	text, err := json.Marshal(p.Documents)
	jaytest.Must(t, err)
	jaytest.Equal(t, string(text), `[{"id":"orders/2","collection":"Orders","maps":[{"map":1,"entries":[]}]},`+
		`{"id":"orders/1","collection":"Orders","maps":[{"map":1,"entries":[{"P":"a","N":1.10,"Q":null},{"P":"b","N":2,"Q":null}],`+
		`"errors":[{"id":"orders/1","field":"l.N / l.By","reason":"/: a division by zero"},{"id":"orders/1","field":"l.N / l.By * 2","reason":"/: a division by zero"}]}]},`+
		`{"id":"others/1","collection":"Others","maps":null}]`)
	jaytest.Equal(t, fmt.Sprintf("%s", p.Results), `[{"P":"a","N":1.1,"Q":0} {"P":"b","N":2,"Q":0}]`)

	for _, ids := range [][]string{{"nobody/1"}, slices.Repeat([]string{"orders/1"}, 101)} {
		want := []error{jay.ErrNotFound, jay.ErrUsage}[min(len(ids)-1, 1)]
		if _, err := jay.ComputedOf(db).Preview(ctx, c, ids...); !errors.Is(err, want) {
			t.Errorf("%d documents: got %v", len(ids), err)
		}
	}
	c.Reduce.GroupBy = []string{"Nothing"}
	if _, err := jay.ComputedOf(db).Preview(ctx, c); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("a declaration that is not valid: got %v", err)
	}
}

// Ensure that the entries of a preview are bounded.
func TestPreview_Bounds(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	c := jay.Computed{Name: "i", Maps: []index.Map{{Collection: "A", Each: "L", As: "l", Select: []index.Member{{Name: "V", Expression: "l"}}}}}
	for elements, refused := range map[int]bool{1000: false, 1001: true} {
		jaytest.Put(t, db, "a/1", `{"L":[`+strings.TrimSuffix(strings.Repeat("1,", elements), ",")+`]}`, jay.InCollection("A"))
		_, err := jay.ComputedOf(db).Preview(ctx, c)
		if large := (*query.LimitError)(nil); errors.Is(err, jay.ErrQuery) != refused || errors.As(err, &large) != refused {
			t.Errorf("%d elements: got %v", elements, err)
		}
	}
	jaytest.Put(t, db, "a/1", `{"L":["`+strings.Repeat("x", 5<<20)+`"]}`, jay.InCollection("A"))
	if _, err := jay.ComputedOf(db).Preview(ctx, c); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("5 MiB: got %v", err)
	}
}

// Ensure that errors of documents are those of all parts, each once, and are counted at the parts, until the documents are mended.
func TestComputed_Errors(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	c := jay.Computed{
		Name: "Means",
		Maps: []index.Map{
			{Collection: "A", Select: []index.Member{{Name: "K"}, {Name: "V", Expression: "N / By"}}},
			{Collection: "B", Select: []index.Member{{Name: "K"}, {Name: "V", Expression: "N * 2"}}},
		},
		Reduce: &index.Reduce{GroupBy: []string{"K"}, Select: []index.Member{{Name: "K"}, {Name: "S", Expression: "sum(V)"}, {Name: "M", Expression: "max(V)"}}},
	}
	jaytest.Put(t, db, "a/1", `{"K":1,"N":1,"By":0}`, jay.InCollection("A"))
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, c))
	jaytest.Put(t, db, "b/1", `{"K":1,"N":"x"}`, jay.InCollection("B"))
	jaytest.Put(t, db, "a/2", `{"K":1,"N":6,"By":2}`, jay.InCollection("A"))
	text := func() string {
		list, err := jay.ComputedOf(db).Errors(ctx, "means", 0)
		jaytest.Must(t, err)
		out, err := json.Marshal(list)
		jaytest.Must(t, err)
		return string(out)
	}
	b := `{"collection":"B","id":"b/1","field":"N * 2","reason":"*: a number is wanted, not the text \"x\""}`
	jaytest.Equal(t, text(), `[{"collection":"A","id":"a/1","field":"N / By","reason":"/: a division by zero"},`+b+`]`)
	list, err := jay.ComputedOf(db).List(ctx)
	jaytest.Must(t, err)
	for _, part := range list[0].Parts {
		jaytest.Equal(t, part.Errors, int64(1))
	}
	jaytest.Put(t, db, "a/1", `{"K":1,"N":1,"By":1}`, jay.InCollection("A"))
	jaytest.Equal(t, text(), `[`+b+`]`)
	jaytest.Must(t, db.Delete(ctx, "b/1"))
	jaytest.Equal(t, text(), `[]`)
	if _, err := jay.ComputedOf(db).Errors(ctx, "none", 0); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("got %v", err)
	}
	if _, err := jay.ComputedOf(db).Errors(ctx, "means", 10_001); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("got %v", err)
	}
	jaytest.Must(t, db.Close())
	if _, err := jay.ComputedOf(db).Errors(ctx, "means", 0); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("closed: got %v", err)
	}
	if _, err := jay.ComputedOf(db).Preview(ctx, c); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("closed: got %v", err)
	}
}
