package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/patch"
)

// bomb is a patch that asks for much more than its size.
type bomb struct {
	name    string
	body    func() []byte
	edits   func() []patch.Edit
	refused bool
}

// largeBytes is the size of the documents of bombs, about.
const largeBytes = 32 << 20

// repeated returns an object whose member a is an array of n times element.
func repeated(n int, element string) func() []byte {
	return func() []byte {
		body := append(make([]byte, 0, 16+n*(len(element)+1)), `{"a":[`...)
		for i := range n {
			if i > 0 {
				body = append(body, ',')
			}
			body = append(body, element...)
		}
		return append(body, "]}"...)
	}
}

// text returns an object whose member a is a string of nearly largeBytes.
func text() []byte {
	return fmt.Appendf(nil, `{"a":"%s"}`, strings.Repeat("x", largeBytes-100))
}

// numbered returns an object whose member a is an array of n different numbers.
func numbered(n int) func() []byte {
	return func() []byte {
		body := []byte(`{"a":[0`)
		for i := 1; i < n; i++ {
			body = fmt.Appendf(body, ",%d", i)
		}
		return append(body, "]}"...)
	}
}

// wide returns an object with n members.
func wide(n int) func() []byte {
	return func() []byte {
		body := []byte(`{"0":1`)
		for i := 1; i < n; i++ {
			body = fmt.Appendf(body, `,"%d":1`, i)
		}
		return append(body, '}')
	}
}

// nested returns an object of n members a within each other around a large
// text, each with another member in front.
func nested(n int) []byte {
	return fmt.Appendf(nil, `%s"%s"%s`, strings.Repeat(`{"b":1,"a":`, n), strings.Repeat("x", largeBytes-20*n), strings.Repeat("}", n))
}

// operations returns an edit of n operations.
func operations(n int, op func(i int) string) func() []patch.Edit {
	return func() []patch.Edit {
		ops := make([]string, n)
		for i := range ops {
			ops[i] = op(i)
		}
		return []patch.Edit{patch.JSONPatch([]byte("[" + strings.Join(ops, ",") + "]"))}
	}
}

// times returns n edits.
func times(n int, edit func(i int) patch.Edit) func() []patch.Edit {
	return func() []patch.Edit {
		edits := make([]patch.Edit, n)
		for i := range edits {
			edits[i] = edit(i)
		}
		return edits
	}
}

func only(edit patch.Edit) func() []patch.Edit {
	return func() []patch.Edit { return []patch.Edit{edit} }
}

// swap moves a member there and back.
func swap(i int) string {
	from, to := "/a", "/b"
	if i%2 == 1 {
		from, to = to, from
	}
	return fmt.Sprintf(`{"op":"move","from":%q,"path":%q}`, from, to)
}

func bombs() []bomb {
	var values []any
	for i := range 5000 {
		values = append(values, -1-i)
	}
	members := wide(2_800_000)
	path := strings.Repeat("a.", 60) + "a"
	pointer := strings.Repeat("/a", 200)
	return []bomb{
		{"remove 5,000 values from a million", numbered(1_000_000), only(patch.Remove("a", values...)), false},
		{"200 moves of a large member", text, operations(200, swap), false},
		{"10,000 moves of a large member", text, operations(10_000, swap), false},
		{"200 elements in front of 15 million", repeated(15_000_000, "1"), operations(200, func(int) string { return `{"op":"add","path":"/a/0","value":2}` }), false},
		{"10,000 elements in front of 15 million", repeated(15_000_000, "1"), operations(10_000, func(int) string { return `{"op":"add","path":"/a/0","value":2}` }), false},
		{"increment in a million elements", repeated(1_000_000, `{"b":{"c":1},"d":"xxxxxxxx"}`), only(patch.Increment("a[].b.c", 1)), false},
		{"remove a value from 15 million", repeated(15_000_000, "1"), only(patch.Remove("a", 1)), false},
		{"remove arrays from arrays", repeated(5_000_000, "[1,2]"), only(patch.Remove("a", append(values, []int{1})...)), false},
		{"10,000 moves of a large array that is open", repeated(15_000_000, "1"), func() []patch.Edit {
			return append(operations(1, func(int) string { return `{"op":"replace","path":"/a/7","value":2}` })(), operations(10_000, swap)()...)
		}, true},
		{"10,000 elements all over 15 million", repeated(15_000_000, "1"), operations(10_000, func(i int) string {
			return fmt.Sprintf(`{"op":"replace","path":"/a/%d","value":2}`, i*7919*1009%15_000_000)
		}), false},
		{"100,000 edits of as many elements", repeated(200_000, `{"n":1}`), times(100_000, func(i int) patch.Edit { return patch.Set(fmt.Sprintf("a[%d].n", i*7919%200_000), i) }), false},
		{"increment 15 million", repeated(15_000_000, "1"), only(patch.Increment("a[]", 1)), false},
		{"increment two million decimals", repeated(2_000_000, "10.25"), only(patch.Increment("a[]", 0.5)), false},
		{"add 5,000 values to a million", numbered(1_000_000), only(patch.AddToSet("a", values...)), false},
		{"add 5,000 values to a million arrays", repeated(1_000_000, "[]"), only(patch.AddToSet("a[]", values...)), false},
		{"10,000 additions to a million", numbered(1_000_000), times(10_000, func(i int) patch.Edit { return patch.AddToSet("a", -i) }), true},
		{"10,000 pops of a million", numbered(1_000_000), times(10_000, func(int) patch.Edit { return patch.PopFirst("a") }), false},
		{"increment by long decimals", repeated(4_000_000, "1e308"), only(patch.Increment("a[]", 1e-300)), true},
		{"increment a million ten times", repeated(1_000_000, `{"b":{"c":1},"d":"xxxxxxxx"}`), times(10, func(int) patch.Edit { return patch.Increment("a[].b.c", 1) }), true},
		{"set a new member of a million elements", repeated(1_000_000, `{"b":{"c":1},"d":"x"}`), only(patch.Set("a[].e", 1)), true},
		{"set a new member of 300,000 elements", repeated(300_000, `{"b":{"c":1},"d":"x"}`), only(patch.Set("a[].e", 1)), false},
		{"append to every element", repeated(1_000_000, `{"b":[1]}`), only(patch.Append("a[].b", strings.Repeat("x", 1000))), false},
		{"append to 15 million", repeated(15_000_000, "1"), only(patch.Append("a", 1, 2)), false},
		{"10,000 members of an object of millions", members, operations(10_000, func(i int) string { return fmt.Sprintf(`{"op":"add","path":"/%d","value":2}`, i*277) }), false},
		{"a new member in an object of millions", members, only(patch.Set("x", 1)), false},
		{"merge millions of members", members, func() []patch.Edit { return []patch.Edit{patch.Merge(members())} }, true},
		{"merge millions of new members", func() []byte { return []byte(`{}`) }, func() []patch.Edit {
			return []patch.Edit{patch.Merge(fmt.Appendf(nil, `{"b":{"c":%s}}`, members()))}
		}, false},
		{"test what is there in another order", wide(1_000_000), func() []patch.Edit {
			other := bytes.Replace(wide(1_000_000)(), []byte(`{"0":1,`), []byte(`{`), 1)
			return []patch.Edit{patch.Set("x", 1), patch.JSONPatch([]byte(`[{"op":"test","path":"","value":` + string(other[:len(other)-1]) + `,"0":1,"x":1}}]`))}
		}, false},
		{"set deep in a large document", func() []byte { return nested(60) }, only(patch.Set(path, 1)), true},
		{"patch deep in a large document", func() []byte { return nested(200) }, operations(1, func(int) string { return `{"op":"remove","path":"` + pointer + `"}` }), true},
		{"10,000 tests of a large document", text, operations(10_000, func(i int) string { return `{"op":"test","path":"","value":{"b":1}}` }), false},
		{"copies of a large document", text, operations(5, func(i int) string { return `{"op":"copy","from":"","path":"/b"},{"op":"remove","path":"/b"}` }), false},
		{"500 sets of a large text", text, times(500, func(i int) patch.Edit { return patch.Merge([]byte(fmt.Sprintf(`{"b":%d,"c":[1]}`, i))) }), false},
		{"unset in every element", repeated(15_000_000, "1"), only(patch.Unset("a[].x")), false},
		{"unset in every element ten times", repeated(15_000_000, "1"), times(10, func(int) patch.Edit { return patch.Unset("a[].x") }), true},
	}
}

// Ensure that a patch that asks for much is done or refused, always with the
// same answer, and takes neither much memory nor long.
func TestApply_Bombs(t *testing.T) {
	today := sample.Of(t, 14)
	for i, b := range bombs() {
		if !today.Has(i) {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			body, edits := b.body(), b.edits()
			for i := range edits {
				if err := edits[i].Err(); err != nil {
					t.Fatal(err)
				}
			}
			begun := time.Now()
			var out []byte
			var err error
			used := peak(func() { out, _, err = patch.Apply(body, edits, patch.Limits{}) })
			t.Logf("%d MB, %v: %d bytes, %v", used>>20, time.Since(begun), len(out), err)

			if refused := errors.Is(err, patch.ErrTooMuchWork); refused != b.refused {
				t.Errorf("got %v; want it to be refused: %v", err, b.refused)
			}
			if used > 200<<20 {
				t.Errorf("it took %d MB", used>>20)
			}
			if took := time.Since(begun); took > time.Minute { // a hang, even on a slow machine
				t.Errorf("it took %v", took)
			}
		})
	}
}

// peak returns the most bytes of the heap that fn adds.
func peak(fn func()) uint64 {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	// What is garbage does not count: make the collector take it in time.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(before.HeapAlloc+before.StackSys) + 140<<20))
	defer debug.SetMemoryLimit(math.MaxInt64)

	var highest atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for ticker := time.NewTicker(time.Millisecond); ; {
			metrics.Read(sample)
			highest.Store(max(highest.Load(), sample[0].Value.Uint64()))
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	}()
	fn()
	close(stop)
	<-done
	return highest.Load() - min(highest.Load(), before.HeapAlloc)
}
