package lsm_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Ensure that the short cuts between the look-ups of one transaction, which
// depend on their order and on what lies between them, change no answer.
func TestEngine_Update_ManyGets(t *testing.T) {
	e, err := lsm.Open("db", lsm.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	there := make(map[string]string)
	for round := range 200 {
		first, step := random.IntN(3000), 1+random.IntN(3)
		order := make([]string, 0, 60)
		for i := range 60 {
			order = append(order, fmt.Sprintf("orders/%d-a", first+i*step))
		}
		switch round % 3 {
		case 0:
			slices.Sort(order)
		case 1:
			random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}

		err := e.Update(ctx, false, func(tx storage.Tx) error {
			for i, key := range order {
				value, closer, err := tx.Get([]byte(key))
				got := ""
				if err == nil {
					got = string(value)
					err = closer.Close()
				}
				if err != nil && !errors.Is(err, storage.ErrNotFound) {
					return err
				}
				if got != there[key] {
					return fmt.Errorf("round %d, look-up %d: %s is %q, want %q", round, i, key, got, there[key])
				}
			}
			for range 6 {
				key, value := order[random.IntN(len(order))], fmt.Sprint("v", round)
				tx.Set([]byte(key), []byte("v"), []byte(value[1:]))
				there[key] = value
			}
			key := order[random.IntN(len(order))]
			tx.Delete([]byte(key))
			delete(there, key)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that a value read back inside its transaction is the reader's own: a
// change to it must not reach the commit.
func TestEngine_Update_OwnValueIsACopy(t *testing.T) {
	e, err := lsm.Open("db", lsm.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()

	tail := []byte("tail")
	err = e.Update(ctx, false, func(tx storage.Tx) error {
		tx.Set([]byte("k"), []byte("head "), tail)
		value, closer, err := tx.Get([]byte("k"))
		if err != nil {
			return err
		}
		clear(value)
		return closer.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	value, closer, err := e.Get([]byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	if string(value) != "head tail" || string(tail) != "tail" {
		t.Errorf("got %q and %q, want %q and %q", value, tail, "head tail", "tail")
	}
}
