package cluster_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// history is what callers on all nodes asked for and got. Its clock counts events of this
// process, through which every call goes: the clocks of nodes do not matter.
type history struct {
	events atomic.Int64
	mu     sync.Mutex
	draws  []porcupine.Operation // of identities. Guarded by mu.
	values []porcupine.Operation // of compare exchange. Guarded by mu.
}

// drawInput is a draw of the next number of an identity, or a seed.
type drawInput struct {
	name string
	seed int64 // below 0 for a draw
}

// drawModel is the numbers of each identity, one call after another: each is greater than
// all before it. Numbers can be left out: a caller that has given up may have used one. So a
// draw whose outcome is not known can be left out of the history, too.
var drawModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		return partition(history, func(op porcupine.Operation) string { return op.Input.(drawInput).name })
	},
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		last, in, n := state.(int64), input.(drawInput), output.(int64)
		if in.seed >= 0 {
			// The reply is the last used number, which later draws, unknown to the
			// history, may have raised.
			return n >= max(last, in.seed), max(last, in.seed, n)
		}
		return n > last, n
	},
}

// outcome is what is known about a change of a compare-exchange value.
type outcome int

const (
	succeeded outcome = iota
	refused           // the value had another index
	unknown           // it has happened, or will, or never does
)

// valueInput is a call of compare exchange on a key.
type valueInput struct {
	key      string
	read     bool
	remove   bool
	expected uint64
	value    string // that is put; no two puts have the same
}

// valueOutput is what the caller got.
type valueOutput struct {
	outcome outcome
	index   uint64 // of what is there: the new one after a put, that of the reply after a read or a refusal
	value   string // after a read or a refusal
}

// valueState is a key of compare exchange: its value and index, 0 and "" if there is none.
type valueState struct {
	index uint64
	value string
}

// someIndex is the index of a value whose caller never got to know it.
const someIndex = math.MaxUint64

// known returns the state if its index can be the one that was seen, or is expected.
func (s valueState) known(index uint64) (valueState, bool) {
	if s.index == someIndex && index != 0 {
		s.index = index
	}
	return s, s.index == index
}

// step returns what the state can be after a call.
func (s valueState) step(in valueInput, out valueOutput) []valueState {
	if in.read || out.outcome == refused {
		now, same := s.known(out.index)
		if !same || now.value != out.value || !in.read && now.index == in.expected {
			return nil
		}
		return []valueState{now}
	}
	next := valueState{index: out.index, value: in.value}
	if in.remove {
		next = valueState{}
	}
	before, same := s.known(in.expected)
	switch {
	case out.outcome == succeeded && (!same || !in.remove && out.index == 0):
		return nil
	case out.outcome == succeeded:
		return []valueState{next}
	case !same:
		return []valueState{s}
	}
	if !in.remove {
		next.index = someIndex
	}
	return []valueState{before, s, next}
}

// valueModel is compare exchange on one key after another: a change has happened if the
// value had the index that was expected.
var valueModel = (&porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		return partition(history, func(op porcupine.Operation) string { return op.Input.(valueInput).key })
	},
	Init: func() []any { return []any{valueState{}} },
	Step: func(state, input, output any) (next []any) {
		for _, s := range state.(valueState).step(input.(valueInput), output.(valueOutput)) {
			next = append(next, s)
		}
		return next
	},
}).ToModel()

// partition splits a history by a name.
func partition(history []porcupine.Operation, name func(porcupine.Operation) string) (parts [][]porcupine.Operation) {
	byName := make(map[string]int)
	for _, op := range history {
		i, found := byName[name(op)]
		if !found {
			i = len(parts)
			byName[name(op)] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

// begin returns the time at which a call begins.
func (h *history) begin() int64 { return h.events.Add(1) }

// drew notes a draw or a seed that has succeeded.
func (h *history) drew(client int, call int64, in drawInput, n int64) {
	end := h.events.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draws = append(h.draws, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: n, Return: end})
}

// exchanged notes a call of compare exchange. One whose outcome is unknown may happen at
// any time after its call.
func (h *history) exchanged(client int, call int64, in valueInput, out valueOutput) {
	end := h.events.Add(1)
	if out.outcome == unknown {
		end = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.values = append(h.values, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
}

// violations returns what the history shows that cannot be: numbers that came twice, and
// calls that cannot have happened one after the other.
func (h *history) violations() (found []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	numbers := make(map[string]int)
	for _, op := range h.draws {
		in := op.Input.(drawInput)
		if in.seed >= 0 {
			continue
		}
		id := fmt.Sprint(in.name, op.Output)
		if other, twice := numbers[id]; twice {
			found = append(found, fmt.Sprintf("clients %d and %d both got %s", other, op.ClientId, id))
		}
		numbers[id] = op.ClientId
	}
	if result := porcupine.CheckOperationsTimeout(drawModel, h.draws, time.Minute); result != porcupine.Ok {
		found = append(found, fmt.Sprintf("the history of %d calls of identities is not linearizable: %s", len(h.draws), result))
	}
	values := decided(h.values)
	if result := porcupine.CheckOperationsTimeout(valueModel, values, time.Minute); result != porcupine.Ok {
		found = append(found, fmt.Sprintf("the history of %d calls of compare exchange is not linearizable: %s", len(values), result))
	}
	return found
}

// decided leaves out the puts whose outcome is unknown and whose value no reply ever showed.
// If one of them has happened, then nothing after it: a later change would have had to name
// its index, and a later reply would have had its value.
func decided(history []porcupine.Operation) []porcupine.Operation {
	shown := make(map[string]bool)
	for _, op := range history {
		shown[op.Output.(valueOutput).value] = true
	}
	return slices.DeleteFunc(slices.Clone(history), func(op porcupine.Operation) bool {
		in, out := op.Input.(valueInput), op.Output.(valueOutput)
		return out.outcome == unknown && !in.remove && !shown[in.value]
	})
}

// check ends the test if the history shows a violation.
func (h *history) check(t *testing.T) {
	t.Helper()
	found := h.violations()
	if len(found) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.values, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, op := range h.values[:min(len(h.values), 200)] {
		t.Logf("client %d [%d, %d] %+v → %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
	}
	for _, text := range found {
		t.Error(text)
	}
	t.FailNow()
}

// Ensure that the check of histories finds violations, and takes what can be. A model that
// takes everything would let every test below pass.
func TestHistory_FindsViolations(t *testing.T) {
	draw := func(call, end, n int64) porcupine.Operation {
		return porcupine.Operation{Input: drawInput{"users|", -1}, Call: call, Return: end, Output: n}
	}
	seed := func(call, end, n, last int64) porcupine.Operation {
		return porcupine.Operation{Input: drawInput{"users|", n}, Call: call, Return: end, Output: last}
	}
	value := func(call, end int64, in valueInput, out valueOutput) porcupine.Operation {
		in.key = "leader"
		return porcupine.Operation{Input: in, Call: call, Return: end, Output: out}
	}
	const ever = math.MaxInt64
	for _, test := range []struct {
		name   string
		draws  []porcupine.Operation
		values []porcupine.Operation
		bad    bool
	}{
		{name: "numbers one after the other", draws: []porcupine.Operation{draw(1, 2, 1), draw(3, 4, 2), draw(5, 6, 7)}},
		{name: "two at once, in any order", draws: []porcupine.Operation{draw(1, 3, 2), draw(2, 4, 1)}},
		{name: "a number twice", draws: []porcupine.Operation{draw(1, 2, 1), draw(3, 4, 1)}, bad: true},
		{name: "a number twice at once", draws: []porcupine.Operation{draw(1, 4, 1), draw(2, 3, 1)}, bad: true},
		{name: "a number that is less than an earlier one", draws: []porcupine.Operation{draw(1, 2, 2), draw(3, 4, 1)}, bad: true},
		{name: "a seed", draws: []porcupine.Operation{draw(1, 2, 1), seed(3, 4, 10, 10), draw(5, 6, 11)}},
		{name: "a number below a seed", draws: []porcupine.Operation{seed(3, 4, 10, 10), draw(5, 6, 10)}, bad: true},
		{name: "a change, a read", values: []porcupine.Operation{
			value(1, 2, valueInput{value: "a"}, valueOutput{index: 5}), value(3, 4, valueInput{read: true}, valueOutput{index: 5, value: "a"})}},
		{name: "two changes of one index", values: []porcupine.Operation{
			value(1, 4, valueInput{value: "a"}, valueOutput{index: 5}), value(2, 3, valueInput{value: "b"}, valueOutput{index: 6})}, bad: true},
		{name: "a read of what was replaced", values: []porcupine.Operation{
			value(1, 2, valueInput{value: "a"}, valueOutput{index: 5}), value(3, 4, valueInput{value: "b", expected: 5}, valueOutput{index: 6}),
			value(5, 6, valueInput{read: true}, valueOutput{index: 5, value: "a"})}, bad: true},
		{name: "a refusal without a reason", values: []porcupine.Operation{
			value(1, 2, valueInput{value: "a"}, valueOutput{index: 5}), value(3, 4, valueInput{value: "b", expected: 5}, valueOutput{outcome: refused, index: 5, value: "a"})}, bad: true},
		{name: "an unknown change that has happened", values: []porcupine.Operation{
			value(1, ever, valueInput{value: "a"}, valueOutput{outcome: unknown}), value(3, 4, valueInput{read: true}, valueOutput{index: 5, value: "a"})}},
		{name: "an unknown change that happens later", values: []porcupine.Operation{
			value(1, ever, valueInput{value: "a"}, valueOutput{outcome: unknown}), value(3, 4, valueInput{read: true}, valueOutput{}),
			value(5, 6, valueInput{read: true}, valueOutput{index: 5, value: "a"})}},
		{name: "an unknown change that has happened, and then has not", values: []porcupine.Operation{
			value(1, ever, valueInput{value: "a"}, valueOutput{outcome: unknown}), value(3, 4, valueInput{read: true}, valueOutput{index: 5, value: "a"}),
			value(5, 6, valueInput{read: true}, valueOutput{})}, bad: true},
		{name: "an unknown change that overwrites another", values: []porcupine.Operation{
			value(1, ever, valueInput{value: "a"}, valueOutput{outcome: unknown}), value(2, 3, valueInput{value: "b"}, valueOutput{index: 4}),
			value(5, 6, valueInput{read: true}, valueOutput{index: 6, value: "a"})}, bad: true},
		{name: "a deletion, and a new value", values: []porcupine.Operation{
			value(1, 2, valueInput{value: "a"}, valueOutput{index: 5}), value(3, 4, valueInput{remove: true, expected: 5}, valueOutput{}),
			value(5, 6, valueInput{value: "b"}, valueOutput{index: 9})}},
		{name: "a value after its deletion", values: []porcupine.Operation{
			value(1, 2, valueInput{value: "a"}, valueOutput{index: 5}), value(3, 4, valueInput{remove: true, expected: 5}, valueOutput{}),
			value(5, 6, valueInput{read: true}, valueOutput{index: 5, value: "a"})}, bad: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := history{draws: test.draws, values: test.values}
			if found := h.violations(); (len(found) > 0) != test.bad {
				t.Errorf("got violations %q, want some: %t", found, test.bad)
			}
		})
	}
}
