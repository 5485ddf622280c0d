package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/jaytest"
)

// history is what concurrent callers asked for and got. Its clock counts
// events, so that no two of them are at once.
type history struct {
	events atomic.Int64
	mu     sync.Mutex
	ops    []porcupine.Operation // Guarded by mu.
}

// call runs fn, which returns the output, and records it.
func (h *history) call(client int, input any, fn func() any) any {
	op := porcupine.Operation{ClientId: client, Input: input, Call: h.events.Add(1)}
	op.Output = fn()
	op.Return = h.events.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
	return op.Output
}

// check ends the test unless the history could have been one call after
// another.
func (h *history) check(t *testing.T, model porcupine.Model) {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(model, h.ops, time.Minute)
	if result == porcupine.Ok {
		return
	}
	for _, op := range h.ops[:min(len(h.ops), 40)] {
		t.Logf("[%d, %d] %+v → %+v", op.Call, op.Return, op.Input, op.Output)
	}
	t.Fatalf("the history of %d calls is not linearizable: %s", len(h.ops), result)
}

// counterInput is a call on a counter: the next count numbers or, if seed is
// not negative, a seed.
type counterInput struct {
	counter string
	count   int64
	seed    int64
}

// counterModel is a counter, one call after another: numbers follow each
// other without a hole. The output is the last number of the call.
var counterModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byCounter := make(map[string]int)
		for _, op := range history {
			counter := op.Input.(counterInput).counter
			i, found := byCounter[counter]
			if !found {
				i = len(parts)
				byCounter[counter] = i
				parts = append(parts, nil)
			}
			parts[i] = append(parts[i], op)
		}
		return parts
	},
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		last, in := state.(int64), input.(counterInput)
		if in.seed >= 0 {
			last = max(last, in.seed)
		} else {
			last += in.count
		}
		return output.(int64) == last, last
	},
}

// Ensure that identities are linearizable: Put, batches, NextIdentity and
// SeedIdentity of 16 goroutines, under any casing, are as if one came after
// the other, and refused batches as if they had never been.
func TestLinear_Identities(t *testing.T) {
	for _, test := range []struct {
		name       string
		durability jay.Durability
	}{
		{"synced", jay.Synced},
		{"relaxed", jay.Relaxed},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, &jay.Options{Durability: test.durability})
			var h history
			concurrently(t, func(g int, random *rand.Rand) {
				for range 60 {
					identityCall(t, db, &h, g, random)
				}
			})
			h.check(t, counterModel)
		})
	}
}

func identityCall(t *testing.T, db *jay.DB, h *history, g int, random *rand.Rand) {
	spelled := []string{"users", "Users", "orders"}[random.IntN(3)]
	in := counterInput{counter: ids.Fold(spelled), count: 1, seed: -1}
	switch random.IntN(8) {
	case 0: // a refused batch, which must leave no hole
		var b jay.Batch
		b.Put(spelled+"|", []byte(`{}`))
		b.Replace("no/such", []byte(`{}`))
		if _, err := db.Apply(ctx, &b); err == nil {
			t.Error("a batch that replaces nothing is accepted")
		}
	case 1:
		in.seed = random.Int64N(200)
		h.call(g, in, func() any {
			last, err := db.SeedIdentity(ctx, spelled, in.seed, false)
			return outcome(t, last, err)
		})
	case 2, 3:
		h.call(g, in, func() any {
			n, err := db.NextIdentity(ctx, spelled)
			return outcome(t, n, err)
		})
	case 4:
		in.count = 1 + random.Int64N(3)
		h.call(g, in, func() any { return putIdentities(t, db, spelled, in.count) })
	default:
		h.call(g, in, func() any {
			m, err := db.Put(ctx, spelled+"|", []byte(`{}`))
			return outcome(t, afterPrefix(m.ID, spelled+"/"), err)
		})
	}
}

// putIdentities puts a batch and returns the last of its numbers, which must
// follow each other.
func putIdentities(t *testing.T, db *jay.DB, spelled string, count int64) int64 {
	var b jay.Batch
	for range count {
		b.Put(spelled+"|", []byte(`{}`))
	}
	metas, err := db.Apply(ctx, &b)
	if err != nil {
		return outcome(t, 0, err)
	}
	first := afterPrefix(metas[0].ID, spelled+"/")
	for i, m := range metas {
		if n := afterPrefix(m.ID, spelled+"/"); n != first+int64(i) {
			t.Errorf("number %d of a batch is %d, the first is %d", i, n, first)
		}
	}
	return first + count - 1
}

// outcome returns n, or a number that no model expects if err is not nil.
func outcome(t *testing.T, n int64, err error) int64 {
	if err != nil {
		t.Error(err)
		return math.MinInt64
	}
	return n
}

// Ensure that the draws of one HiLo client that 16 goroutines share are those
// of a counter: no number twice, none left out, none before its turn.
func TestLinear_Client(t *testing.T) {
	for _, prefetch := range []bool{false, true} {
		db := memory(t, nil)
		client := ids.NewClient(db, prefetch)
		var h history
		concurrently(t, func(g int, _ *rand.Rand) {
			for range 400 {
				h.call(g, counterInput{counter: "users", count: 1, seed: -1}, func() any {
					id, err := client.Next(ctx, "users")
					return outcome(t, afterPrefix(strings.TrimSuffix(id, "-A"), "users/"), err)
				})
			}
		})
		h.check(t, counterModel)
		if err := client.Close(ctx); err != nil {
			t.Error(err)
		}
		jaytest.Equal(t, body(t, db, "Raven/HiLo/users"), fmt.Sprintf(`{"Max":%d}`, jaytest.Goroutines*400))
	}
}

// rangeInput is a call of NextRange or, if give is set, of ReturnRange.
type rangeInput struct {
	size, lastMax int64
	give          bool
	last, end     int64
}

// rangeOutput is the answer.
type rangeOutput struct {
	low, high int64
	accepted  bool
}

// rangeState is a HiLo tag as A9 and A10 of the rules have it. Open leases are
// the text "low-end low-end …", oldest first, so that states compare.
type rangeState struct {
	mark, top int64
	leases    string
}

// rangeModel grants ranges one after the other.
var rangeModel = porcupine.Model{
	Init: func() any { return rangeState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in := state.(rangeState), input.(rangeInput)
		next, want := s.grant(in)
		if in.give {
			next, want = s.give(in)
		}
		return output.(rangeOutput) == want, next
	},
}

func (s rangeState) grant(in rangeInput) (rangeState, rangeOutput) {
	low := max(s.mark, in.lastMax) + 1
	high := max(low+in.size-1, s.top+1) // no end comes twice
	return rangeState{high, high, strings.TrimSpace(fmt.Sprintf("%s %d-%d", s.leases, low, high))}, rangeOutput{low: low, high: high}
}

func (s rangeState) give(in rangeInput) (rangeState, rangeOutput) {
	var low, end int64
	i := strings.LastIndexByte(s.leases, ' ')
	if _, err := fmt.Sscanf(s.leases[i+1:], "%d-%d", &low, &end); err != nil {
		return s, rangeOutput{}
	}
	if s.mark != in.end || end != in.end || in.last < low-1 || in.last > end {
		return s, rangeOutput{}
	}
	beneath := s.leases[:max(i, 0)]
	if in.last >= low {
		beneath = "" // their numbers lie below one that is used
	}
	return rangeState{in.last, s.top, beneath}, rangeOutput{accepted: true}
}

// Ensure that grants and returns of ranges are linearizable: 16 clients that
// ask, give back right, wrongly and twice, are as if they came one after the
// other.
func TestLinear_Ranges(t *testing.T) {
	var accepted atomic.Int64
	more := jaytest.Patience()
	for round := 0; round < 4 || more(accepted.Load() > 0); round++ {
		db := memory(t, nil)
		var h history
		concurrently(t, func(g int, random *rand.Rand) {
			tag := []string{"users", "USERS", "Users"}[g%3]
			var held []rangeOutput
			for range 30 {
				if len(held) == 0 || random.IntN(2+round%4) == 0 {
					held = append(held, fetchRange(t, db, &h, g, tag, random, held))
					continue
				}
				r := held[len(held)-1]
				in := rangeInput{give: true, end: r.high, last: r.low - 3 + random.Int64N(r.high-r.low+5)}
				out := h.call(g, in, func() any {
					ok, err := db.ReturnRange(ctx, tag, in.last, in.end)
					outcome(t, 0, err)
					return rangeOutput{accepted: ok}
				}).(rangeOutput)
				if out.accepted {
					accepted.Add(1)
				}
				if random.IntN(3) > 0 {
					held = held[:len(held)-1] // else it did not hear the reply
				}
			}
		})
		h.check(t, rangeModel)
	}
	if accepted.Load() == 0 {
		t.Error("no return was accepted: the test does not test returns")
	}
}

func fetchRange(t *testing.T, db *jay.DB, h *history, g int, tag string, random *rand.Rand, held []rangeOutput) rangeOutput {
	req := jay.RangeRequest{Tag: tag, LastSize: 32 << random.IntN(3)}
	if len(held) > 0 && random.IntN(2) == 0 {
		req.LastMax = held[len(held)-1].high + random.Int64N(3)
	}
	return h.call(g, rangeInput{size: req.LastSize, lastMax: req.LastMax}, func() any {
		r, err := db.NextRange(ctx, req)
		outcome(t, 0, err)
		return rangeOutput{low: r.Low, high: r.High}
	}).(rangeOutput)
}
