package query

// Internal: the bound of values is too large for a test to reach.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// groupsOf returns groups by Who, with lists of V, of documents.
func groupsOf(t *testing.T, limit int, bodies ...string) *Groups {
	t.Helper()
	who, v := mustField(t, "Who"), mustField(t, "V")
	g, err := NewGroups([]Field{who}, []Column{{Name: "Who", Field: who}, {Name: "all", Field: v, Func: FuncList}, {Name: "different", Field: v, Func: FuncListDistinct}}, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		if err := g.Add(Doc{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func mustField(t *testing.T, text string) Field {
	t.Helper()
	f, err := ParseExpression(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rowsText(g *Groups) string {
	var rows []string
	for row := range g.Rows() {
		rows = append(rows, fmt.Sprint(row[0])+string(row[1].AppendJSON(nil))+string(row[2].AppendJSON(nil)))
	}
	return strings.Join(rows, " ")
}

// Ensure that a list has the values in their order, in one spelling, each as often as it is reached, without what is missing; that groups are merged and joined with their
// lists; and that Reset empties them.
func TestGroups_Listed(t *testing.T) {
	const a, b, c, d = `{"Who":"x","V":["b",1.0]}`, `{"Who":"x","V":"b"}`, `{"Who":"x"}`, `{"Who":"y","V":[null,1,"\u0062"]}`
	const want = `"x"[1,"b","b"][1,"b"] "y"[null,1,"b"][null,1,"b"]`
	g := groupsOf(t, 0, a, b, c, d)
	if got := rowsText(g); got != want {
		t.Errorf("got %s", got)
	}
	merged := groupsOf(t, 0, a, d)
	if err := merged.Merge(groupsOf(t, 0, c, b)); err != nil || rowsText(merged) != want {
		t.Errorf("merged: %s, %v", rowsText(merged), err)
	}
	joined := groupsOf(t, 0, `{"Who":"x"}`, `{"Who":"y"}`)
	if !joined.Join(groupsOf(t, 0, a, b, d), []int{0, 1, 2}) || rowsText(joined) != want {
		t.Errorf("joined: %s", rowsText(joined))
	}
	if g.Reset(); g.listed != 0 || g.used != 0 || g.Len() != 0 {
		t.Errorf("after Reset %d values, %d bytes, %d groups", g.listed, g.used, g.Len())
	}
}

// Ensure that the values of lists are bounded, in number and in bytes, of all groups together, and that the error names the group.
func TestGroups_Listed_Bound(t *testing.T) {
	g := groupsOf(t, 0, `{"Who":"x","V":1}`)
	g.listed = MaxListed - 1
	for _, body := range []string{`{"Who":"y","V":2}`, `{"Who":"y","V":2}`} {
		err := g.Add(Doc{Body: []byte(body)})
		var large *ListError
		if !errors.As(err, &large) || *large != (ListError{Column: "list(distinct V)", Group: `["y"]`, What: "values", Limit: MaxListed}) && large.Column != "list(V)" || !errors.Is(err, ErrLimit) {
			t.Errorf("got %v", err)
		}
	}
	g = groupsOf(t, 5000)
	err := error(nil)
	for i := 0; err == nil && i < 100; i++ {
		err = g.Add(Doc{Body: fmt.Appendf(nil, `{"Who":%d,"V":"%0100d"}`, i, i)})
	}
	if large := (*ListError)(nil); !errors.As(err, &large) || large.What != "bytes" || large.Limit != 5000 {
		t.Errorf("got %v", err)
	}
	other := groupsOf(t, 0, `{"Who":"x","V":[1,2,3]}`)
	g = groupsOf(t, 0, `{"Who":"z"}`)
	g.listed = MaxListed
	if err := g.Merge(other); !errors.Is(err, ErrLimit) {
		t.Errorf("merged: %v", err)
	}
}
