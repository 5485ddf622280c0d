package query_test

import (
	"strings"
	"testing"

	"github.com/jaydb/jay/query"
)

// Ensure that a result of a group is an expression over functions of groups, also in conditions, and that each function is a column once.
func TestParseReduction(t *testing.T) {
	for text, want := range map[string]string{
		"if(sum(N) = 0, 0, sum(T) / sum(N))":                     "sum(N) sum(T)",
		"if(count() > 1 and max(N) in (1, 2), 'a', Key)":         "count() max(N)",
		"if(sum(if(A > 1, 1, 0)) / count() >= 0.5, true, false)": "sum(if(A > 1, 1, 0)) count()",
		"join(list(distinct if(A > 1, Name)), ', ')":             "list(distinct if(A > 1, Name))",
		"count(distinct A) + if(exists(min(A)), 1, 0)":           "count(distinct A) min(A)",
		"if(sum(A) between 1 and 2 or sum(A) < sum(B), 1)":       "sum(A) sum(B)",
	} {
		var columns []query.Column
		if _, err := query.ParseReduction(text, &columns); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var names []string
		for _, c := range columns {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got the columns %s, want %s", text, got, want)
		}
	}
	var columns []query.Column
	for _, text := range []string{"sum(sum(A))", "list()", "list(distinct)", "sum(if(sum(A) > 1, 1, 0))"} {
		if _, err := query.ParseReduction(text, &columns); err == nil {
			t.Errorf("%s is a result", text)
		}
	}
}

// Ensure that join has the texts of all values, and that if without a second value is missing.
func TestExpression_JoinAndIf(t *testing.T) {
	body := []byte(`{"Tags":["a","b",null,1.50,true],"One":"x","None":[],"Deep":[{"A":[1]},{"A":[2,3]}],"Obj":[{}],"N":5}`)
	for text, want := range map[string]string{
		"join(Tags, ', ')":               `"a, b, , 1.5, true"`,
		"join(One, '-')":                 `"x"`,
		"join(None, '-')":                `null`,
		"join(Missing, '-')":             `null`,
		"join(Deep.A, '')":               `"123"`,
		"join(Obj, '')":                  `null`,
		"join(Tags, N)":                  `null`,
		"join(upper(One), '-')":          `"X"`,
		"concat(join(Deep.A, '+'), '=')": `"1+2+3="`,
		"if(N > 1, 'y')":                 `"y"`,
		"coalesce(if(N > 9, 'y'), 'z')":  `"z"`,
	} {
		f, err := query.ParseExpression(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if again, err := query.ParseExpression(f.String()); err != nil || again.String() != f.String() {
			t.Errorf("%s is written %s: %v", text, f, err)
		}
		p, err := query.NewProjector([]query.Column{{Name: "v", Field: f}})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.Append(nil, query.Doc{Body: body})); got != `{"v":`+want+`}` {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	m, err := query.Compile(query.Exists{Field: expressionOf(t, "if(N > 9, 'y')")})
	if err != nil || m.Match(query.Doc{Body: body}) {
		t.Errorf("if without a second value is there: %v", err)
	}
	long := query.Doc{Body: []byte(`{"Tags":["` + strings.Repeat("x", 600_000) + `","` + strings.Repeat("y", 600_000) + `"]}`)}
	if m, err = query.Compile(query.Exists{Field: expressionOf(t, "join(Tags, '')")}); err != nil || m.Match(long) {
		t.Errorf("a text of 1.2 MB is joined: %v", err)
	}
}

func expressionOf(t *testing.T, text string) query.Field {
	t.Helper()
	f, err := query.ParseExpression(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Ensure that fields with names in documents are read as they are written, and that others are refused.
func TestParseCreated(t *testing.T) {
	for text, want := range map[string]string{
		"fields(Attributes, Name, Value)":       "",
		"FIELDS( A.B , concat('x', N) , V.X )":  "fields(A.B, concat('x', N), V.X)",
		"fields('First Name', field('a b'), V)": "fields('First Name', field('a b'), V)",
	} {
		c, is, err := query.ParseCreated(text)
		if want == "" {
			want = text
		}
		if !is || err != nil || c.String() != want {
			t.Errorf("%s is %s, %v, %v", text, c, is, err)
			continue
		}
		if again, is, err := query.ParseCreated(c.String()); !is || err != nil || again.String() != want {
			t.Errorf("%s again: %s, %v, %v", c, again, is, err)
		}
	}
	for _, text := range []string{"fields(A, N)", "fields(A, ('n'), V)", "fields(A, N, 5)", "fields(A, N, V) + 1", "fields(id(), N, V)", "fields(A, id(), V)", "fields(A, load(N).X, V)", "fields(load(A).B, N, V)", "fields(A, N, V"} {
		if _, is, err := query.ParseCreated(text); !is || err == nil {
			t.Errorf("%s is %v, %v", text, is, err)
		}
	}
	for _, text := range []string{"fields", "Fields.A", "A + fields(A, N, V)", "'"} {
		if _, is, err := query.ParseCreated(text); is || err != nil {
			t.Errorf("%s is %v, %v", text, is, err)
		}
	}
}
