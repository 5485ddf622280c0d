package patch_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay/patch"
)

func Example() {
	body := []byte(`{"Name":"Acorns","Price":1.10,"Stock":{"Count":5}}`)
	out, changed, err := patch.Apply(body, []patch.Edit{
		patch.Increment("Stock.Count", -2),
		patch.Increment("Price", 0.1),
		patch.Append("Tags", "autumn", "nuts"),
		patch.Rename("Name", "Title"),
	}, patch.Limits{})
	fmt.Printf("%s %v %v\n", out, changed, err)
	// Output: {"Title":"Acorns","Price":1.20,"Stock":{"Count":3},"Tags":["autumn","nuts"]} true <nil>
}

func ExampleError() {
	_, _, err := patch.Apply([]byte(`{"Count":"five"}`), []patch.Edit{patch.Increment("Count", 1)}, patch.Limits{})
	var e *patch.Error
	fmt.Println(errors.As(err, &e), errors.Is(err, patch.ErrInvalid), e.Path)
	fmt.Println(err)
	// Output:
	// true true Count
	// invalid patch: edit 0: "Count": only a number can be incremented: it is "five"
}

func ExampleAddToSet() {
	out, _, err := patch.Apply([]byte(`{"Tags":["autumn"]}`), []patch.Edit{
		patch.AddToSet("Tags", "nuts", "autumn"),
		patch.PopFirst("Tags"),
	}, patch.Limits{})
	fmt.Printf("%s %v\n", out, err)
	// Output: {"Tags":["nuts"]} <nil>
}

// without is the condition that an object has no member of this name.
type without string

func (without) Err() error { return nil }

func (name without) Begin(spend func(n int) error) func(element []byte) (bool, error) {
	return func(element []byte) (bool, error) {
		if err := spend(len(element)); err != nil {
			return false, err
		}
		var object map[string]json.RawMessage
		err := json.Unmarshal(element, &object)
		return err == nil && object[string(name)] == nil, nil
	}
}

func ExampleCondition() {
	out, _, err := patch.Apply([]byte(`{"Lines":[{"Qty":1},{"Note":"as a gift"}]}`), []patch.Edit{
		patch.RemoveWhere("Lines", without("Qty")),
	}, patch.Limits{})
	fmt.Printf("%s %v\n", out, err)
	// Output: {"Lines":[{"Qty":1}]} <nil>
}

func ExampleMerge() {
	out, _, err := patch.Apply([]byte(`{"a":1,"b":{"c":2,"d":3}}`), []patch.Edit{patch.Merge([]byte(`{"a":null,"b":{"c":"new"}}`))}, patch.Limits{})
	fmt.Printf("%s %v\n", out, err)
	// Output: {"b":{"c":"new","d":3}} <nil>
}

func ExampleJSONPatch() {
	edit := patch.JSONPatch([]byte(`[{"op":"test","path":"/Version","value":7},{"op":"replace","path":"/Version","value":8}]`))
	out, _, err := patch.Apply([]byte(`{"Version":7}`), []patch.Edit{edit}, patch.Limits{})
	fmt.Printf("%s %v\n", out, err)
	_, _, err = patch.Apply(out, []patch.Edit{edit}, patch.Limits{})
	fmt.Println(errors.Is(err, patch.ErrTestFailed))
	// Output:
	// {"Version":8} <nil>
	// true
}

func ExampleDiff() {
	before := []byte(`{"Name":"Ann","Phones":["1"],"Age":40}`)
	after := []byte(`{"Name":"Anna","Phones":["1","2"]}`)
	for _, c := range patch.Diff(before, after) {
		fmt.Printf("%s %v %s -> %s\n", c.Path, c.Kind, c.Old, c.New)
	}
	// Output:
	// Name changed "Ann" -> "Anna"
	// Phones[1] added  -> "2"
	// Age removed 40 ->
}
