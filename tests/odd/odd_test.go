// Package odd_test looks for faults of the server and of queries with documents of odd shapes: members that are
// missing, null, of all kinds, in arrays of arrays, under names with points and quotes.
//
// One server has a database with indexes of every kind, and one with the same documents and none. Each random query
// is sent to both, and must have the same answers. A third database gets random requests to every endpoint, also
// malformed ones: the server must never fail at one, nor cut a connection without a reason in its log.
//
//	JAY_SEED=7 go test ./tests/odd            # the round of a seed
//	JAY_ODD=10m go test -timeout 0 ./tests/odd # rounds for so long, from seeds that rise
package odd_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/knobs"
)

// TestMain has scans of few documents looked at by several goroutines.
func TestMain(m *testing.M) {
	knobs.ScanAlone, knobs.ScanPartBytes = 3, 300
	m.Run()
}

// The cases of a round.
const (
	documentsOfRound = 90
	changesOfPart    = 25
	queriesOfPart    = 200
	readsOfPart      = 25
	requestsOfRound  = 500

	largeEach        = 7
	documentsOfLarge = 1500
	parts            = 3
)

// Ensure that no query has other answers with indexes, and that no request makes the server fail.
func TestOdd(t *testing.T) {
	first := seed(t)
	long := time.Duration(0)
	if text := os.Getenv("JAY_ODD"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatalf("JAY_ODD is %q, want a duration such as 10m", text)
		}
	}
	began := time.Now()
	for n := uint64(0); n == 0 || time.Since(began) < long; n++ {
		t.Run(fmt.Sprint("JAY_SEED=", first+n), func(t *testing.T) { round(t, first+n) })
	}
}

// seed returns the seed of the first round: JAY_SEED, or one of the day, whose round is not large.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("JAY_SEED")
	if text == "" {
		return largeEach*uint64(time.Now().UTC().Unix()/(24*60*60)) + 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("JAY_SEED is %q, want a number", text)
	}
	return n
}

// round makes the cases of a seed.
func round(t *testing.T, seed uint64) {
	o := newOdds(seed)
	documents, queries := documentsOfRound, queriesOfPart
	if seed%largeEach == 0 { // so many that plans use indexes, and that these have blocks
		documents, queries, o.numbers = documentsOfLarge, queriesOfPart/8, documentsOfLarge
	}
	dir := filepath.Join(t.TempDir(), "data")
	h := start(t, dir)
	running := true
	defer func() {
		if running {
			h.stop(t)
		}
	}()
	for _, name := range []string{indexed, plain, wild} {
		h.must(t, request{method: http.MethodPut, path: "/admin/databases?name=" + name, body: `{"DatabaseName":"` + name + `"}`})
	}
	for _, name := range []string{indexed, wild} {
		h.must(t, request{method: http.MethodPost, path: "/databases/" + name + "/admin/revisions/config", body: `{"Default":null,"Collections":{"Odd":{"MinimumRevisionsToKeep":3}}}`})
	}

	w := &twins{host: h, t: t, o: o}
	for range documents {
		w.put(o.id(), o.document())
	}
	h.copyTo(t, wild)
	h.declare(t, o, wild, 0, 1)
	var asked []*rql
	for part := range parts {
		named, made := h.declare(t, o, indexed, part, parts)
		w.named, w.made = append(w.named, named...), append(w.made, made...)
		for range changesOfPart {
			w.change()
		}
		w.checkDocuments()
		for range queries {
			asked = append(asked, w.query())
		}
		w.queriesOfIndexes()
		w.reads(readsOfPart)
	}
	w.roundTrips()
	w.requests(requestsOfRound)

	h.stop(t)
	running = false
	for _, name := range []string{indexed, plain} {
		h.verify(t, name)
	}
	w.host = start(t, dir)
	defer w.host.stop(t)
	w.checkDocuments()
	for i, q := range asked {
		if i%4 == 0 {
			w.check(q, 0)
		}
	}
	w.queriesOfIndexes()
}

// must sends a request that succeeds.
func (h *host) must(t *testing.T, r request) {
	t.Helper()
	if a, fault := h.send(r, 0); fault != "" || a.status >= http.StatusMultipleChoices {
		t.Fatalf("%s: %s %d %s", r, fault, a.status, a.body)
	}
}
