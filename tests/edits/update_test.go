package edits_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"pgregory.net/rapid"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/query"
)

// updateParams are the values of $n, $t, $o and $l.
var updateParams = map[string]any{"n": 2, "t": "it's", "o": map[string]any{"x": map[string]any{"y": 1}}, "l": []any{map[string]any{"x": 1}, 2}}

// updateValue draws a value as JavaScript writes it. Sums of its numbers are exact there.
func updateValue(t *rapid.T, depth int) string {
	kinds := []string{"number", "text", "word", "parameter", "object", "array"}
	if depth == 0 {
		kinds = kinds[:4]
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "number":
		return rapid.SampledFrom([]string{"0", "1", "-3", "2.5", "1e2", "1_0"}).Draw(t, "number")
	case "text":
		return rapid.SampledFrom([]string{`''`, `'a'`, `"it's"`, `'\u00e9\n\\'`}).Draw(t, "text")
	case "word":
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
	case "parameter":
		return "$" + rapid.SampledFrom([]string{"n", "t", "o", "l"}).Draw(t, "parameter")
	case "object":
		return fmt.Sprintf("{x: %s, 'y': %s}", updateValue(t, depth-1), updateValue(t, depth-1))
	}
	return fmt.Sprintf("[%s, %s]", updateValue(t, depth-1), updateValue(t, depth-1))
}

func updatePath(t *rapid.T) string {
	text := "this." + rapid.SampledFrom([]string{"A", "B", "C", "N", "L"}).Draw(t, "member")
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2}).Draw(t, "steps") {
		text += rapid.SampledFrom([]string{".x", ".y", "['x']", "[0]", "[1]", "['0']"}).Draw(t, "step")
	}
	return text
}

func updateStatement(t *rapid.T) string {
	path := updatePath(t)
	switch rapid.SampledFrom([]string{"set", "set", "copy", "copy", "add", "step", "push", "push", "pop", "delete"}).Draw(t, "statement") {
	case "set":
		return path + " = " + updateValue(t, 2)
	case "copy":
		return path + " = " + updatePath(t)
	case "add":
		return path + rapid.SampledFrom([]string{" += ", " -= "}).Draw(t, "sign") + rapid.SampledFrom([]string{"1", "-2", "0.5", "$n"}).Draw(t, "amount")
	case "step":
		return rapid.SampledFrom([]string{"++" + path, path + "--", path + "++"}).Draw(t, "step")
	case "push":
		return path + ".push(" + strings.Join([]string{updateValue(t, 1), updateValue(t, 1)}[:rapid.IntRange(0, 2).Draw(t, "values")], ", ") + ")"
	case "pop":
		return path + rapid.SampledFrom([]string{".pop()", ".shift()"}).Draw(t, "end")
	}
	return "delete " + path
}

// inJavaScript runs statements on a document, and returns it as JSON.
func inJavaScript(body, statements string) (string, error) {
	vm := goja.New()
	for name, value := range updateParams {
		text, err := json.Marshal(value)
		if err != nil {
			return "", err
		}
		if err := vm.Set("$"+name, string(text)); err != nil {
			return "", err
		}
		if _, err := vm.RunString(fmt.Sprintf("$%s = JSON.parse($%[1]s)", name)); err != nil {
			return "", err
		}
	}
	if err := vm.Set("body", body); err != nil {
		return "", err
	}
	v, err := vm.RunString("(function() { 'use strict'; const run = function() {\n" + statements + "\n}; const doc = JSON.parse(body); run.call(doc); return JSON.stringify(doc) })()")
	if err != nil {
		return "", err
	}
	return v.String(), nil
}

// Ensure that an update which Jay carries out comes to what a JavaScript engine makes of
// the same statements.
func TestUpdate_LikeJavaScript(t *testing.T) {
	ctx := context.Background()
	tried, refused, failed, changed := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		db, err := jaytest.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { jaytest.Verify(t, db); _ = db.Close() }()
		body := rapid.SampledFrom([]string{
			`{"A":{"x":1,"y":[1,2]},"B":{"x":{"y":1}},"N":3,"L":[1,{"x":2},[3]]}`,
			`{"A":[{"x":1},{"x":2}],"B":null,"C":"a","N":2.5,"L":[]}`,
			`{"A":{"0":1,"x":{}},"C":[[],[1]],"L":[null,true]}`,
		}).Draw(t, "body")
		for range 20 {
			statements := make([]string, rapid.IntRange(1, 5).Draw(t, "statements"))
			for i := range statements {
				statements[i] = updateStatement(t)
			}
			text := strings.Join(statements, rapid.SampledFrom([]string{"; ", "\n", ";\n"}).Draw(t, "between"))
			tried++
			params := make(map[string]any)
			for name, value := range updateParams {
				if strings.Contains(text, "$"+name) {
					params[name] = value
				}
			}
			q, edits, err := db.UpdateRQL("from Docs update { "+text+" }", params)
			if errors.Is(err, query.ErrSyntax) || errors.Is(err, patch.ErrInvalid) {
				refused++
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if _, err := db.Put(ctx, "a", []byte(body), jay.InCollection("Docs")); err != nil {
				t.Fatal(err)
			}
			if _, err := q.Patch(ctx, edits...); err != nil {
				if !errors.Is(err, patch.ErrInvalid) {
					t.Fatalf("%s: %v", text, err)
				}
				failed++
				continue
			}
			changed++
			doc, err := db.Get(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			want, err := inJavaScript(body, text)
			if err != nil {
				t.Fatalf("%s\nof %s gives %s, and in JavaScript %v", text, body, doc.Body(), err)
			}
			var a, b any
			if json.Unmarshal(doc.Body(), &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !reflect.DeepEqual(a, b) {
				t.Fatalf("%s\nof %s gives\n%s, in JavaScript\n%s", text, body, doc.Body(), want)
			}
		}
	})
	t.Logf("%d updates: %d refused, %d failed, %d as in JavaScript", tried, refused, failed, changed)
	if changed < tried/20 {
		t.Errorf("only %d of %d updates could be compared", changed, tried)
	}
}
