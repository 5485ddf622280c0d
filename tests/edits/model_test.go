package edits_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"pgregory.net/rapid"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/patch"
)

// errModel is any error of the model.
var errModel = errors.New("refused")

// absent is what the model has where nothing is.
type absent struct{}

// isMissing reports whether edits that write take v for missing.
func isMissing(v any) bool { return v == nil || v == any(absent{}) }

// decoded returns JSON as maps and slices, with json.Number.
func decoded(raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

// modelEdit goes down the path in decoded JSON and rebuilds it on the way up.
// Change gets the value at the end, or absent, and returns what it becomes, or
// absent.
func modelEdit(v any, p jsonpath.Path, i int, writes bool, change func(any) (any, error)) (any, error) {
	if i == p.Len() {
		return change(v)
	}
	if isMissing(v) && writes && p.At(i).Kind == jsonpath.Member {
		for j := i; j < p.Len(); j++ {
			if p.At(j).Kind == jsonpath.Every {
				return v, nil
			}
			if p.At(j).Kind == jsonpath.Index {
				return nil, errModel
			}
		}
		v = map[string]any{}
	}
	switch s := p.At(i); {
	case s.Kind == jsonpath.Member:
		object, ok := v.(map[string]any)
		if !ok {
			break
		}
		old, found := object[s.Name]
		if !found {
			if old = (absent{}); !writes {
				return v, nil
			}
		}
		value, err := modelEdit(old, p, i+1, writes, change)
		if err != nil {
			return nil, err
		}
		if object[s.Name] = value; value == (any)(absent{}) {
			delete(object, s.Name)
		}
		return object, nil
	default:
		array, ok := v.([]any)
		if !ok {
			if isMissing(v) && s.Kind == jsonpath.Every {
				return v, nil
			}
			break
		}
		if s.Kind == jsonpath.Index && s.Index >= len(array) {
			if writes {
				return nil, errModel
			}
			return v, nil
		}
		out := []any{}
		for j, e := range array {
			if s.Kind == jsonpath.Every || s.Index == j {
				var err error
				if e, err = modelEdit(e, p, i+1, writes, change); err != nil {
					return nil, err
				}
			}
			if e != (any)(absent{}) {
				out = append(out, e)
			}
		}
		return out, nil
	}
	if writes {
		return nil, errModel
	}
	return v, nil
}

// modelMerge is MergePatch of RFC 7386.
func modelMerge(target, merge any) any {
	object, ok := merge.(map[string]any)
	if !ok {
		return merge
	}
	out, ok := target.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for name, value := range object {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = modelMerge(out[name], value)
		}
	}
	return out
}

var names = []string{"a", "b", "c", "x.y"}

func drawValue(t *rapid.T, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 9
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return json.Number(strconv.Itoa(rapid.IntRange(-3, 3).Draw(t, "n")))
	case 1:
		return json.Number(rapid.SampledFrom([]string{"1.0", "0.10", "1e2", "9007199254740993", "2.5"}).Draw(t, "n"))
	case 2:
		return rapid.SampledFrom([]string{"", "A", "<&>", "\"\\\n", "日"}).Draw(t, "s")
	case 3:
		return nil
	case 4:
		return true
	case 5, 6:
		array := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			array = append(array, drawValue(t, depth-1))
		}
		return array
	}
	return drawObject(t, depth)
}

func drawObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for _, name := range names {
		if rapid.Bool().Draw(t, "has "+name) {
			object[name] = drawValue(t, depth-1)
		}
	}
	return object
}

func encode(v any) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(buf.Bytes())
}

func drawPath(t *rapid.T) string {
	text := string(jsonpath.AppendMember(nil, rapid.SampledFrom(names).Draw(t, "name")))
	for range rapid.IntRange(0, 2).Draw(t, "steps") {
		switch rapid.IntRange(0, 3).Draw(t, "step") {
		case 0:
			text += fmt.Sprintf("[%d]", rapid.IntRange(0, 2).Draw(t, "index"))
		case 1:
			text += "[]"
		default:
			text = string(jsonpath.AppendMember([]byte(text), rapid.SampledFrom(names).Draw(t, "name")))
		}
	}
	return text
}

// rational is the model of numbers.
func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		panic(n)
	}
	return r
}

// modelSame compares decoded values, numbers by value.
func modelSame(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		n, ok := b.(json.Number)
		return ok && rational(a).Cmp(rational(n)) == 0
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, modelSame)
	case map[string]any:
		other, ok := b.(map[string]any)
		if !ok || len(a) != len(other) {
			return false
		}
		for name, value := range a {
			if v, found := other[name]; !found || !modelSame(value, v) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// isNumber is the condition that an element is a number.
type isNumber struct{}

func (isNumber) Err() error { return nil }

func (isNumber) Begin(spend func(n int) error) func(element []byte) (bool, error) {
	return func(element []byte) (bool, error) {
		return element[0] == '-' || '0' <= element[0] && element[0] <= '9', spend(1)
	}
}

// onArray is the model of an edit that takes elements out of an array.
func onArray(change func([]any) []any) func(any) (any, error) {
	return func(old any) (any, error) {
		if old == nil {
			return nil, nil
		}
		array, ok := old.([]any)
		if !ok {
			return nil, errModel
		}
		return change(array), nil
	}
}

// drawEdit returns an edit and the model of it.
func drawEdit(t *rapid.T) (patch.Edit, func(doc any) (any, error)) {
	text := drawPath(t)
	p := jsonpath.MustParse(text)
	value := drawValue(t, 2)
	model := func(writes bool, change func(any) (any, error)) func(any) (any, error) {
		return func(doc any) (any, error) { return modelEdit(doc, p, 0, writes, change) }
	}
	switch rapid.IntRange(0, 10).Draw(t, "edit") {
	case 0:
		return patch.Set(text, value), model(true, func(any) (any, error) { return decoded(encode(value)), nil })
	case 1:
		return patch.Unset(text), model(false, func(any) (any, error) { return absent{}, nil })
	case 2:
		by := json.Number(rapid.SampledFrom([]string{"1", "-7", "0", "0.1", "1e1"}).Draw(t, "by"))
		return patch.Increment(text, by), model(true, func(old any) (any, error) {
			if isMissing(old) {
				old = json.Number("0")
			}
			n, ok := old.(json.Number)
			if !ok {
				return nil, errModel
			}
			return json.Number(new(big.Rat).Add(rational(n), rational(by)).FloatString(3)), nil
		})
	case 3:
		return patch.Append(text, value, 1), model(true, func(old any) (any, error) {
			if isMissing(old) {
				old = []any{}
			}
			array, ok := old.([]any)
			if !ok {
				return nil, errModel
			}
			return append(slices.Clone(array), decoded(encode(value)), json.Number("1")), nil
		})
	case 4:
		values := []any{value, json.Number("1")}
		for range rapid.IntRange(0, 12).Draw(t, "more values") {
			values = append(values, drawValue(t, 1))
		}
		return patch.Remove(text, values...), model(false, func(old any) (any, error) {
			array, ok := old.([]any)
			if old == nil {
				return nil, nil
			}
			if !ok {
				return nil, errModel
			}
			return slices.DeleteFunc(slices.Clone(array), func(e any) bool {
				return slices.ContainsFunc(values, func(v any) bool { return modelSame(e, v) })
			}), nil
		})
	case 6:
		values := []any{value, json.Number("1")}
		for range rapid.IntRange(0, 12).Draw(t, "more values") {
			values = append(values, drawValue(t, 1))
		}
		return patch.AddToSet(text, values...), model(true, func(old any) (any, error) {
			if isMissing(old) {
				old = []any{}
			}
			array, ok := old.([]any)
			if !ok {
				return nil, errModel
			}
			for _, v := range values {
				v = decoded(encode(v))
				if !slices.ContainsFunc(array, func(e any) bool { return modelSame(e, v) }) {
					array = append(slices.Clip(array), v)
				}
			}
			return array, nil
		})
	case 7, 8:
		pop, last := patch.PopFirst(text), rapid.Bool().Draw(t, "last")
		if last {
			pop = patch.PopLast(text)
		}
		return pop, model(false, onArray(func(array []any) []any {
			switch {
			case len(array) == 0:
				return array
			case last:
				return array[:len(array)-1]
			}
			return array[1:]
		}))
	case 9:
		return patch.RemoveWhere(text, isNumber{}), model(false, onArray(func(array []any) []any {
			return slices.DeleteFunc(slices.Clone(array), func(e any) bool {
				_, is := e.(json.Number)
				return is
			})
		}))
	case 5:
		p = jsonpath.MustParse(text + ".a")
		parent := p.Prefix(p.Len() - 1)
		return patch.Rename(p.String(), "b"), func(doc any) (any, error) {
			return modelEdit(doc, parent, 0, false, func(old any) (any, error) {
				object, ok := old.(map[string]any)
				if !ok {
					return old, nil
				}
				v, found := object["a"]
				if !found {
					return old, nil
				}
				if _, taken := object["b"]; taken {
					return nil, errModel
				}
				object["b"] = v
				delete(object, "a")
				return object, nil
			})
		}
	}
	merge := drawObject(t, 3)
	return patch.Merge(encode(merge)), func(doc any) (any, error) { return modelMerge(doc, decoded(encode(merge))), nil }
}

// Ensure that any edits of any document do what a naive implementation on
// decoded maps does, and refuse what it refuses.
func TestApply_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := drawObject(t, 4)
		body := encode(object)
		want := decoded(body)
		var edits []patch.Edit
		var wantErr error
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			edit, model := drawEdit(t)
			if edits = append(edits, edit); wantErr == nil {
				want, wantErr = model(want)
			}
		}
		out, changed, err := patch.Apply(body, edits, patch.Limits{})
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("%s %v: got %s, %v; want %v, %v", body, edits, out, err, want, wantErr)
		}
		if err != nil {
			return
		}
		if got := decoded(out); !modelSame(got, want) {
			t.Fatalf("%s %v: got %s, want %s", body, edits, out, encode(want))
		}
		if changed != !bytes.Equal(out, body) {
			t.Fatalf("%s became %s, changed is %v", body, out, changed)
		}
		if differs := len(patch.Diff(body, out)) > 0; differs != !modelSame(decoded(body), want) {
			t.Fatalf("%s became %s, Diff finds a difference: %v", body, out, differs)
		}
	})
}

// Ensure that JSON Patches do what evanphx/json-patch does with them, as long
// as they keep off what it does wrong.
func TestJSONPatch_Model(t *testing.T) {
	options := jsonpatch.NewApplyOptions()
	options.EscapeHTML, options.SupportNegativeIndices = false, false
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		body := encode(drawObject(t, 4))
		pointer := func() string {
			text := "/" + rapid.SampledFrom(names).Draw(t, "name")
			for range rapid.IntRange(0, 2).Draw(t, "steps") {
				text += "/" + rapid.SampledFrom([]string{"a", "b", "0", "1", "-"}).Draw(t, "token")
			}
			return text
		}
		var ops []map[string]any
		for range rapid.IntRange(1, 4).Draw(t, "operations") {
			op := map[string]any{"op": rapid.SampledFrom([]string{"add", "remove", "replace", "move", "copy"}).Draw(t, "op"), "path": pointer(), "from": pointer()}
			op["value"] = drawValue(t, 2)
			ops = append(ops, op)
		}
		doc := encode(ops)
		out, _, err := patch.Apply(body, []patch.Edit{patch.JSONPatch(doc)}, patch.Limits{})

		theirs, theirErr := func() (out []byte, err error) {
			defer func() {
				if r := recover(); r != nil {
					t.Skipf("the library panics: %v", r)
				}
			}()
			decoded, err := jsonpatch.DecodePatch(doc)
			if err != nil {
				return nil, err
			}
			return decoded.ApplyWithOptions(body, options)
		}()
		if (err != nil) != (theirErr != nil) || err == nil && !modelSame(decoded(out), decoded(theirs)) {
			t.Fatalf("%s %s: got %s, %v; want %s, %v", body, doc, out, err, theirs, theirErr)
		}
		if err == nil {
			compared++
		}
	})
	if compared == 0 && !testing.Short() { // a short run may have no patch that fits
		t.Error("nothing was compared")
	}
}

// Ensure that sums of decimals are exact, however far apart they are.
func TestIncrement_Exact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(label string) string {
			text := strconv.Itoa(rapid.IntRange(-1e9, 1e9).Draw(t, label))
			if decimals := rapid.StringMatching(`[0-9]{0,20}`).Draw(t, label+" decimals"); decimals != "" {
				text += "." + decimals
			}
			if rapid.Bool().Draw(t, label+" has no exponent") {
				return text
			}
			return text + "e" + strconv.Itoa(rapid.IntRange(-30, 30).Draw(t, label+" exponent"))
		}
		a, b := number("a"), number("b")
		out, _, err := patch.Apply([]byte(`{"n":`+a+`}`), []patch.Edit{patch.Increment("n", json.Number(b))}, patch.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.TrimSuffix(strings.TrimPrefix(string(out), `{"n":`), "}")
		want := new(big.Rat).Add(rational(json.Number(a)), rational(json.Number(b)))
		if rational(json.Number(got)).Cmp(want) != 0 {
			t.Fatalf("%s + %s: got %s, want %s", a, b, got, want.FloatString(60))
		}
	})
}
