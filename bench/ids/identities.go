package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/fixture"
)

// writers is the number of goroutines that write documents.
const writers = 32

// identityLine is the outcome: documents per second, by round.
type identityLine struct {
	Semantic []float64 `json:"semanticPerSecond"`
	Identity []float64 `json:"identityPerSecond"`
	Failures []string  `json:"failures,omitempty"`
}

// measureIdentities writes documents one by one, durably, each round in a new
// directory, and by turns first with their own IDs or first by identity.
func measureIdentities(docs, rounds int) (*identityLine, error) {
	documents := fixture.NewDocuments(docs / writers * writers)
	l := &identityLine{}
	for round := range rounds {
		order := []bool{false, true}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, identity := range order {
			if err := l.round(identity, documents); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

func (l *identityLine) round(identity bool, docs *fixture.Documents) error {
	return withDir(func(dir string) (err error) {
		db, err := jay.Open(dir, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()

		ids := make([]string, docs.Len())
		runtime.GC()
		start := time.Now()
		err = parallel(writers, func(w int) error { return put(db, identity, docs, ids, w) })
		rate := float64(docs.Len()) / time.Since(start).Seconds()
		if err != nil {
			return err
		}
		if identity {
			l.Identity = append(l.Identity, rate)
		} else {
			l.Semantic = append(l.Semantic, rate)
		}
		if err := check(db, identity, docs, ids); err != nil {
			l.Failures = append(l.Failures, err.Error())
		}
		return nil
	})
}

// put writes the share of one goroutine.
func put(db *jay.DB, identity bool, docs *fixture.Documents, ids []string, w int) error {
	share := docs.Len() / writers
	for i := w * share; i < (w+1)*share; i++ {
		request := "users|"
		if !identity {
			request = "users/" + strconv.Itoa(i+1)
		}
		written, err := db.Put(context.Background(), request, docs.Body(i))
		if err != nil {
			return err
		}
		ids[i] = written.ID
	}
	return nil
}

// check reads every document back. Identities must be 1 to n without a hole.
func check(db *jay.DB, identity bool, docs *fixture.Documents, ids []string) error {
	seen := make([]bool, len(ids)+1)
	for i, id := range ids {
		n, err := strconv.Atoi(strings.TrimPrefix(id, "users/"))
		if err != nil || n < 1 || n > len(ids) || seen[n] {
			return fmt.Errorf("identity %t: id %q is none of the first %d, or repeated", identity, id, len(ids))
		}
		seen[n] = true
		doc, err := db.Get(context.Background(), id)
		if err != nil {
			return fmt.Errorf("identity %t: %w", identity, err)
		}
		if string(doc.Body()) != string(docs.Body(i)) {
			return fmt.Errorf("identity %t: %q has another body than was written", identity, id)
		}
	}
	return nil
}
