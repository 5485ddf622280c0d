package main

import (
	"errors"
	"fmt"

	"github.com/jaydb/jay/bench/fixture"
)

// idKind says how the IDs of new documents are made.
type idKind uint8

const (
	hilo   idKind = iota // orders/1-A, orders/2-A, …
	guidV4               // random
	guidV7               // random, but begins with the time
)

// settings are how a workload wants its engine.
type settings struct {
	ids        idKind
	synced     bool
	cacheBytes int64
	capacity   int // the most documents that will be inserted
}

// engine is one of the two sides. Documents are counted from 0 in the order
// of the numbers given to insert; an engine remembers which ID it gave to
// which. Only insertOne is safe for concurrent use.
type engine interface {
	// insert writes new documents in one atomic batch.
	insert(first int, bodies [][]byte) error
	// insertOne writes a new document by itself.
	insertOne(i int, body []byte) error
	// update writes documents that are there in one atomic batch.
	update(numbers []int, bodies [][]byte) error
	// remove deletes documents in one atomic batch.
	remove(numbers []int) error
	// get returns a copy of a document's body, or errGone.
	get(i int) ([]byte, error)
	// scan calls fn with a copy of every body and returns their number.
	scan(fn func(body []byte)) (int, error)
	// restCompacted closes the engine, compacts its tables into one level and
	// opens it again.
	restCompacted() error
	close() error
}

// errGone is what get returns for a document that is not there.
var errGone = errors.New("document not found")

// touch reads a body, so that nothing can be left out.
func touch(body []byte) int {
	return int(body[0]) + int(body[len(body)/2]) + int(body[len(body)-1])
}

// check reads everything back: the number of documents, their total size, and
// a sample of bodies. want returns the body of document i, nil if it must be
// gone.
func check(e engine, n int, want func(i int) []byte) error {
	expected := 0
	for i := range n {
		if want(i) != nil {
			expected++
		}
	}
	bytes := 0
	found, err := e.scan(func(body []byte) { bytes += len(body) })
	if err != nil {
		return err
	}
	if found != expected || bytes != expected*fixture.BodyBytes {
		return fmt.Errorf("check: %d documents of %d bytes, want %d of %d", found, bytes, expected, expected*fixture.BodyBytes)
	}

	for i := 0; i < n; i += max(1, n/500) {
		body, err := e.get(i)
		switch {
		case want(i) == nil && !errors.Is(err, errGone):
			return fmt.Errorf("check: document %d was deleted: got error %v", i, err)
		case want(i) == nil:
		case err != nil:
			return fmt.Errorf("check: document %d: %w", i, err)
		case string(body) != string(want(i)):
			return fmt.Errorf("check: document %d: got %.80s, want %.80s", i, body, want(i))
		}
	}
	return nil
}
