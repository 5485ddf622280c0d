package patch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay/patch"
)

// mixed returns a document and edits that go every way through it.
func mixed() (body []byte, edits []patch.Edit) {
	body = []byte(`{"deep":{"x":{"y":[1,{"z":null}]}},"s":"text"`)
	for i := range 200 {
		body = fmt.Appendf(body, `,"m%d":%d`, i, i)
	}
	body = append(body, `,"l":[`...)
	for i := range 300 {
		body = fmt.Appendf(body, `{"n":%d.5,"t":[%d,"a"]},`, i, i)
	}
	body = append(body[:len(body)-1], `]}`...)
	edits = []patch.Edit{
		patch.Increment("l[].n", 1),
		patch.Append("l[].t", 1, 2),
		patch.Set("l[].new.x", true),
		patch.Remove("l[].t", 1, 2, 3, 4, 5, 6, 7, 8, 9, "a"),
		patch.AddToSet("l[].t", 1, "b", "b"),
		patch.RemoveWhere("l[].t", longer(2)),
		patch.PopFirst("l[].t"),
		patch.Rename("m7", "seven"),
		patch.Unset("m9"),
		patch.Merge([]byte(`{"deep":{"x":{"y":null,"w":{"a":null,"b":1}}},"m8":{"a":[1]},"seven":null}`)),
		patch.JSONPatch([]byte(`[{"op":"move","from":"/l/7","path":"/l/200"},{"op":"copy","from":"/l/3","path":"/l/-"},{"op":"test","path":"/l/0/new","value":{"x":true}}]`)),
	}
	for i := range 100 {
		edits = append(edits, patch.Set(fmt.Sprintf("l[%d].m", i*3), i), patch.Increment(fmt.Sprintf("m%d", 20+i), 1))
	}
	return body, edits
}

// Ensure that a patch is refused by the work that it takes and by nothing else:
// there is one limit at which it begins to be done, whenever it is tried.
func TestApply_Work(t *testing.T) {
	body, edits := mixed()
	do := func(limit int64) ([]byte, error) {
		out, _, err := patch.Apply(body, edits, patch.Limits{MaxWork: limit})
		return out, err
	}
	want, err := do(0)
	if err != nil {
		t.Fatal(err)
	}
	lo, hi := int64(1), int64(1)<<40 // refused at lo, done at hi
	for lo+1 < hi {
		if mid := (lo + hi) / 2; must(do(mid)) == nil {
			hi = mid
		} else {
			lo = mid
		}
	}
	if bytes := int64(len(body)); hi < bytes || hi > 300*bytes {
		t.Errorf("it takes %d units of work, and the document has %d bytes", hi, bytes)
	}
	for range 20 {
		out, err := do(hi)
		if err != nil || !bytes.Equal(out, want) {
			t.Fatalf("with %d units: got %.80s, %v", hi, out, err)
		}
		for _, limit := range []int64{1, lo / 2, lo} {
			out, err := do(limit)
			var e *patch.Error
			if out != nil || !errors.Is(err, patch.ErrTooMuchWork) || !errors.Is(err, patch.ErrInvalid) || !errors.As(err, &e) {
				t.Fatalf("with %d units: got %.80s, %v", limit, out, err)
			}
			if text := err.Error(); !strings.Contains(text, fmt.Sprintf("may take %d units", limit)) || !strings.Contains(text, "it takes ") {
				t.Errorf("got %q", text)
			}
		}
	}
	if _, _, err := patch.Apply(body, []patch.Edit{patch.Increment("s", 1)}, patch.Limits{}); errors.Is(err, patch.ErrTooMuchWork) {
		t.Errorf("got %v for another mistake", err)
	}
}

func must(_ []byte, err error) error { return err }

// tiring is a context that ends when it is looked at often enough.
type tiring struct {
	context.Context
	looks int
}

func (c *tiring) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// Ensure that a long patch ends when its context does, whatever it is at, and
// that the context makes no other difference.
func TestApplyContext_Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := patch.ApplyContext(ctx, []byte(`{"a":1}`), []patch.Edit{patch.Set("a", 2)}, patch.Limits{}); err != context.Canceled {
		t.Errorf("got %v", err)
	}

	size := 10
	if testing.Short() {
		size = 1
	}
	elements := repeated(100_000*size, `{"n":1}`)
	members := wide(30_000 * size)
	var many []any
	for i := range 20 {
		many = append(many, i)
	}
	for _, test := range []struct {
		name  string
		body  []byte
		edits []patch.Edit
	}{
		{"increment", elements(), []patch.Edit{patch.Increment("a[].n", 1)}},
		{"set", elements(), []patch.Edit{patch.Set("a[].m", 1)}},
		{"unset", elements(), []patch.Edit{patch.Unset("a[].n")}},
		{"rename", elements(), []patch.Edit{patch.Rename("a[].n", "m")}},
		{"append", elements(), []patch.Edit{patch.Append("a[].m", 1)}},
		{"add to set", elements(), []patch.Edit{patch.AddToSet("a[].s", 1), patch.AddToSet("a", many...)}},
		{"pop", elements(), []patch.Edit{patch.PopFirst("a")}},
		{"remove where", elements(), []patch.Edit{patch.RemoveWhere("a", longer(20))}},
		{"remove", elements(), []patch.Edit{patch.Remove("a", many...)}},
		{"remove few", elements(), []patch.Edit{patch.Remove("a", json.RawMessage(`{"n":2}`))}},
		{"merge", []byte(`{}`), []patch.Edit{patch.Merge([]byte(`{"x":1,"y":{}}`)), patch.Merge(members())}},
		{"merge what is there", members(), []patch.Edit{patch.Merge(members())}},
		{"moves", []byte(`{"a":1}`), operations(10_000, swap)()},
		{"equality", members(), []patch.Edit{patch.JSONPatch(fmt.Appendf(nil, `[{"op":"test","path":"","value":{"x":1,%s}]`, members()[1:]))}},
	} {
		t.Run(test.name, func(t *testing.T) {
			looks := &tiring{t.Context(), 1 << 40}
			want, _, wantErr := patch.ApplyContext(looks, test.body, test.edits, patch.Limits{})
			if errors.Is(wantErr, context.Canceled) {
				t.Fatal(wantErr)
			}
			used := 1<<40 - looks.looks
			if used < 2 {
				t.Fatalf("%d looks at the context: %v", used, wantErr)
			}
			for _, n := range []int{0, 1, used - 1} {
				if _, _, err := patch.ApplyContext(&tiring{t.Context(), n}, test.body, test.edits, patch.Limits{}); err != context.Canceled {
					t.Errorf("a context that ends at look %d of %d: got %v", n+1, used, err)
				}
			}
			got, _, err := patch.ApplyContext(&tiring{t.Context(), used}, test.body, test.edits, patch.Limits{})
			if !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("a context that ends behind the patch: got %v, want %v", err, wantErr)
			}
		})
	}
}

// Ensure that many edits of one document do what they do one after the other,
// each on the document that the one before has left: in wide objects and in
// arrays that fall into many parts.
func TestApply_OneByOne(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5 {
		body := []byte(`{"a":[0`)
		for i := range 1 + r.IntN(2000) {
			body = fmt.Appendf(body, `,%d`, i)
		}
		body = append(body, `],"o":{"k0":0`...)
		for i := range 1 + r.IntN(100) {
			body = fmt.Appendf(body, `,"k%d":%d`, i+1, i)
		}
		body = append(body, `}}`...)

		key := func() string { return fmt.Sprintf("k%d", r.IntN(150)) }
		var edits []patch.Edit
		want := body
		for i := range 1500 {
			place := r.IntN(1200) * r.IntN(1200) / 1200
			edit := []func() patch.Edit{
				func() patch.Edit { return patch.Set("o."+key(), i) },
				func() patch.Edit { return patch.Unset("o." + key()) },
				func() patch.Edit { return patch.Rename("o."+key(), key()) },
				func() patch.Edit { return patch.Set(fmt.Sprintf("a[%d]", place), i) },
				func() patch.Edit { return patch.Unset(fmt.Sprintf("a[%d]", place)) },
				func() patch.Edit { return patch.Append("a", i, "x") },
				func() patch.Edit {
					return patch.JSONPatch(fmt.Appendf(nil, `[{"op":"add","path":"/a/%d","value":{"i":%d}}]`, place, i))
				},
				func() patch.Edit {
					return patch.JSONPatch(fmt.Appendf(nil, `[{"op":"move","from":"/a/%d","path":"/a/%d"}]`, place, r.IntN(1000)))
				},
				func() patch.Edit {
					return patch.JSONPatch(fmt.Appendf(nil, `[{"op":"remove","path":"/a/%d"}]`, place))
				},
			}[r.IntN(9)]()
			out, _, err := patch.Apply(want, []patch.Edit{edit}, patch.Limits{})
			if err != nil {
				continue
			}
			edits, want = append(edits, edit), out
		}
		got, changed, err := patch.Apply(body, edits, patch.Limits{})
		if err != nil || !changed || !bytes.Equal(got, want) {
			t.Fatalf("%d edits of %s: got %s, %v; want %s", len(edits), body, got, err, want)
		}
	}
}
