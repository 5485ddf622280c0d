package jsonschema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/schema/jsonschema"
)

type money struct {
	Cents    int64  `json:"cents"`
	Currency string `json:"currency"`
}

type node struct {
	Name     string
	Children []node
	Parent   *node `json:",omitempty"`
}

type stamped struct {
	Created time.Time
	Note    string
}

type pointed struct{ Via string }

type mark string

func (m mark) MarshalText() ([]byte, error) { return []byte("<" + string(m) + ">"), nil }

// everything is a type with each thing that a document can be made of.
type everything struct {
	ID      string
	Version string    `json:"version" jay:"version"`
	Changed time.Time `jay:"lastModified"`
	Source  string    `jay:"metadata=Source"`
	Hidden  int       `json:"-"`
	Dash    int       `json:"-,"` //lint:ignore SA5008 its name is a dash
	private int

	stamped
	*pointed
	Named stamped `json:"named"`
	Note  string  `json:"note,omitempty"`

	Flag    bool
	Tiny    int8
	Byte    byte
	Wide    uint64
	Float   float32
	Exact   json.Number
	Raw     json.RawMessage
	Any     any
	Bytes   []byte
	Pair    [2]int
	List    []string
	Few     []string `json:",omitempty"`
	Prices  map[string]money
	Keys    map[int]*money
	Price   money
	Maybe   *money
	Left    *money `json:",omitempty"`
	Gone    *int   `json:",omitzero"`
	Number  int    `json:",string"`
	Nothing *int64 `json:",string"`
	Tree    node
	Big     *big.Int
	Mark    mark
	Took    time.Duration
	When    *time.Time
}

// stored returns what a collection stores of a value.
func stored[T any](t *testing.T, v *T) []byte {
	t.Helper()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := jay.CollectionOf[T](db)
	if err != nil {
		t.Fatal(err)
	}
	m, err := all.Insert(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := db.Get(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	return doc.Body()
}

// Ensure that values fit the schema of their type as they are stored, empty ones and full ones, and that each member that is missing, or has another
// type, violates it.
func TestFor(t *testing.T) {
	t.Parallel()
	text, err := jsonschema.For[everything]()
	if err != nil {
		t.Fatal(err)
	}
	v := compiled(t, string(text))
	n, n64, when := 7, int64(8), time.Now()
	full := everything{
		Version: "", Source: "mail", Dash: 2, private: 1, stamped: stamped{when, "inner"}, pointed: &pointed{"v"}, Named: stamped{Created: when}, Note: "outer", Flag: true, Tiny: -128, Byte: 255,
		Wide: 1 << 63, Float: 1.5, Exact: "19.99", Raw: json.RawMessage(`[1]`), Any: map[string]any{"a": 1}, Bytes: []byte("b"), Pair: [2]int{1, 2}, List: []string{"l"}, Few: []string{"f"},
		Prices: map[string]money{"a": {1, "EUR"}}, Keys: map[int]*money{1: nil, 2: {2, "EUR"}}, Maybe: &money{}, Left: &money{}, Gone: &n, Number: 3, Nothing: &n64,
		Tree: node{Children: []node{{Name: "c", Parent: &node{}}}}, Big: big.NewInt(5), Mark: "m", Took: time.Second, When: &when,
	}
	body := stored(t, &full)
	for what, body := range map[string][]byte{"a full value": body, "an empty value": stored(t, &everything{})} {
		if all, count := v.Validate(body, 9); count > 0 {
			t.Errorf("%s violates it: %v\n%s\n%s", what, all, body, text)
		}
	}
	for _, name := range []string{`"ID"`, `"version"`, `"Changed"`, `"Source"`, `"Hidden"`, `"private"`} {
		if strings.Contains(string(text), name) {
			t.Errorf("the schema has %s", name)
		}
	}

	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	with := func(name, value string) []byte {
		other := make(map[string]json.RawMessage)
		for member, text := range members {
			other[member] = text
		}
		if delete(other, name); value != "" {
			other[name] = json.RawMessage(value)
		}
		changed, _ := json.Marshal(other)
		return changed
	}
	may := map[string]bool{"note": true, "Few": true, "Left": true, "Gone": true, "Via": true}
	anything := map[string]bool{"Raw": true, "Any": true, "Big": true}
	null := map[string]bool{"Bytes": true, "List": true, "Prices": true, "Keys": true, "Maybe": true, "Nothing": true, "When": true}
	for name := range members {
		if _, count := v.Validate(with(name, ""), 9); (count == 0) != may[name] {
			t.Errorf("without %s: %d violations", name, count)
		}
		wrong := `12.5e400x`[:4]
		if members[name][0] >= '0' && members[name][0] <= '9' || members[name][0] == '-' {
			wrong = `"x"`
		}
		if _, count := v.Validate(with(name, wrong), 9); (count == 0) != anything[name] {
			t.Errorf("%s as %s: %d violations", name, wrong, count)
		}
		if _, count := v.Validate(with(name, "null"), 9); (count == 0) != (null[name] || anything[name]) {
			t.Errorf("%s as null: %d violations", name, count)
		}
	}
	for name, value := range map[string]string{"Tiny": "128", "Byte": "-1", "Wide": "-1", "Pair": "[1]", "Created": `"yesterday"`, "Tree": `{"Name":"a","Children":[{"Name":1,"Children":[]}]}`, "Prices": `{"a":{"cents":1}}`, "Number": "3"} {
		if _, count := v.Validate(with(name, value), 9); count == 0 {
			t.Errorf("%s as %s is accepted", name, value)
		}
	}
	if _, count := v.Validate(with("More", "1"), 9); count > 0 {
		t.Error("a member that the type lacks is refused")
	}
}

// Ensure that of several embedded fields with a name the one counts that encoding/json takes.
func TestFor_Embedded(t *testing.T) {
	t.Parallel()
	type A struct {
		Both, Tagged int
		Deep         bool
	}
	type B struct {
		Both string
		T    string `json:"Tagged"`
	}
	type C struct{ A }
	type document struct {
		ID string
		A
		B
		*C
	}
	text, err := jsonschema.For[document]()
	if err != nil {
		t.Fatal(err)
	}
	body := stored(t, &document{})
	if _, count := compiled(t, string(text)).Validate(body, 9); count > 0 {
		t.Errorf("%s violates\n%s", body, text)
	}
	var s struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Properties, s.Required); got != "map[Deep:{boolean} Tagged:{string}] [Deep Tagged]" {
		t.Errorf("got %s", got)
	}
}

// Ensure that types are refused that have no schema.
func TestFor_Refused(t *testing.T) {
	t.Parallel()
	type loop []loop
	type wide struct {
		ID     string
		Fields [1]struct{ A func() }
	}
	for name, make := range map[string]func() ([]byte, error){
		"no struct": jsonschema.For[int],
		"a time":    jsonschema.For[time.Time],
		"no ID":     jsonschema.For[struct{ A int }],
		"a channel": jsonschema.For[struct {
			ID string
			C  chan int
		}],
		"a function below": jsonschema.For[wide],
		"without an end": jsonschema.For[struct {
			ID string
			L  loop
		}],
		"keys of a map": jsonschema.For[struct {
			ID string
			M  map[float64]int
		}],
		"two ID fields": jsonschema.For[struct {
			A string `jay:"id"`
			B string `jay:"id"`
		}],
		"a tag that is none": jsonschema.For[struct {
			ID string
			A  struct {
				V string `jay:"version"`
			}
		}],
	} {
		if text, err := make(); !errors.Is(err, jay.ErrType) {
			t.Errorf("%s: got %s, %v", name, text, err)
		}
	}
}

// A schema is made of the type whose values a collection stores. The rule refuses a document that another program would write without the total.
func ExampleFor() {
	type Line struct {
		Product string `json:"product"`
		Pieces  uint8  `json:"pieces"`
	}
	type Order struct {
		ID     string    `json:"id"`
		Total  float64   `json:"total"`
		Placed time.Time `json:"placed"`
		Lines  []Line    `json:"lines,omitempty"`
	}
	text, err := jsonschema.For[Order]()
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := jsonschema.New().Compile(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	all, _ := v.Validate([]byte(`{"placed": "2026-01-01T00:00:00.0000000Z", "lines": [{"product": "tea", "pieces": -1}]}`), schema.MaxViolations)
	for _, violation := range all {
		fmt.Println(violation)
	}
	// Output:
	// the document: missing property "total"
	// /lines/0/pieces: minimum: got -1, want 0
}
