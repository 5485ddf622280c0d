package server_test

import (
	"fmt"
	"sync"
	"testing"
)

// Ensure that a command that is sent again with its ID, as the server was killed before
// it was answered, is carried out once: each ID has one number, and no number is without
// an ID.
func TestResults_Kills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	answered := make(map[string]string) // numbers by ID. Guarded by mu.
	const workers, rounds = 20, 3
	next := make([]int, workers) // the command that a worker sends
	unanswered := 0
	for round := range rounds {
		child, send := serveChild(t, dir)
		if round == 0 {
			if a, err := send("PUT", "/admin/databases?name=a", "{}"); err != nil || a.status != 201 {
				t.Fatalf("%v %v", a, err)
			}
		}
		enough, last := make(chan struct{}), round == rounds-1
		var once sync.Once
		var all sync.WaitGroup
		for worker := range workers {
			all.Go(func() {
				for begun := next[worker]; ; {
					id := fmt.Sprintf("%d-%d", worker, next[worker])
					a, err := send("POST", "/databases/a/identity/next?name=users&raft-request-id="+id, "")
					if err != nil { // the server is gone: the next round sends it again
						mu.Lock()
						unanswered++
						mu.Unlock()
						return
					}
					if a.status != 200 {
						t.Errorf("%s: %d %s", id, a.status, a.body)
						return
					}
					mu.Lock()
					answered[id] = a.text(t, "NewIdentityValue")
					mu.Unlock()
					if next[worker]++; next[worker]-begun == 5 {
						once.Do(func() { close(enough) })
						if last {
							return
						}
					}
				}
			})
		}
		go func() { // also if all workers have failed
			all.Wait()
			once.Do(func() { close(enough) })
		}()
		if last {
			all.Wait()
			a, err := send("GET", "/databases/a/debug/identities", "")
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "numbers drawn", a.text(t, "users|"), len(answered))
		} else {
			<-enough
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		_ = child.Wait() // it was killed
	}
	numbers := make(map[string]string)
	for id, n := range answered {
		if other := numbers[n]; other != "" {
			t.Errorf("%s and %s have the number %s", id, other, n)
		}
		numbers[n] = id
	}
	if unanswered == 0 {
		t.Error("every command was answered: the test does not test it")
	}
}
