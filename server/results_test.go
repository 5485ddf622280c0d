package server_test

import (
	"fmt"
	"net/url"
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

// Ensure that the ID of a command that a database has carried out is refused with another
// body: the reply said that it was carried out, with the value or the documents of the second
// one. And that a repeated deletion says so after another value was put under the key.
func TestResults_OtherBodyOfWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	batch := func(mode, n string) string {
		return `{"Commands":[{"Type":"PUT","Id":"c/` + mode + `","ChangeVector":null,"Document":{"n":` + n + `}}]` + mode + `}`
	}
	commands := []struct{ method, path, body, other string }{
		{"PUT", "/databases/a/cmpxchg?key=k&index=0&raft-request-id=1", `{"Object":1}`, `{"Object":2}`},
		{"POST", "/databases/a/bulk_docs?raft-request-id=2", batch("", "1"), batch("", "2")},
		{"POST", "/databases/a/bulk_docs?raft-request-id=3", `{"Commands":[{"Type":"PUT","Id":"c/1","Document":{}}]}`, `{"Commands":[{"Type":"DELETE","Id":"c/1"}]}`},
		{"POST", "/databases/a/bulk_docs?raft-request-id=4", `{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":"w/1","Document":{"n":1}}]}`,
			`{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":"w/1","Document":{"n":2}}]}`},
		{"POST", "/databases/a/bulk_docs?raft-request-id=5", `{"TransactionMode":"ClusterWide","Commands":[{"Type":"CompareExchangePUT","Id":"x","Index":0,"Document":{"Object":1}}]}`,
			`{"TransactionMode":"ClusterWide","Commands":[{"Type":"CompareExchangePUT","Id":"x","Index":0,"Document":{"Object":2}}]}`},
	}
	first := make([]string, len(commands))
	for i, c := range commands {
		a := h.do(c.method, c.path, c.body)
		if a.status/100 != 2 {
			t.Fatalf("%s %s: %d %s", c.path, c.body, a.status, a.body)
		}
		first[i] = a.body
	}
	for range 2 { // once more after a restart
		for i, c := range commands {
			h.checkProblem(h.do(c.method, c.path, c.other), 422, "BadRequestException")
			equal(t, "again: "+c.path, h.do(c.method, c.path, c.body).body, first[i])
		}
		h.stop()
		h = startIn(t, dir)
	}
	equal(t, "value", h.want(200, "GET", "/databases/a/cmpxchg?key=k", "").text(t, "Results", 0, "Value", "Object"), 1)
	equal(t, "document", h.want(200, "GET", "/databases/a/docs?id=w/1", "").text(t, "Results", 0, "n"), 1)
	h.want(200, "GET", "/databases/a/docs?id=c/1", "")

	remove := "/databases/a/cmpxchg?key=k&index=" + url.QueryEscape(h.want(200, "GET", "/databases/a/cmpxchg?key=k", "").text(t, "Results", 0, "Index")) + "&raft-request-id=6"
	equal(t, "deleted", h.want(200, "DELETE", remove, "").text(t, "Successful"), true)
	h.want(200, "PUT", "/databases/a/cmpxchg?key=k&index=0", `{"Object":3}`)
	equal(t, "deleted again", h.want(200, "DELETE", remove, "").text(t, "Successful"), true)
	equal(t, "another deletion", h.want(200, "DELETE", remove+"x", "").text(t, "Successful"), false)
	equal(t, "value", h.want(200, "GET", "/databases/a/cmpxchg?key=k", "").text(t, "Results", 0, "Value", "Object"), 3)
}
