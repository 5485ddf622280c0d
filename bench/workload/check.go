package workload

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
)

// samples is about the number of documents that a check reads by their IDs.
const samples = 500

// expected is what an engine must hold. Goroutines may change the revisions of
// different documents at the same time.
type expected struct {
	revisions []uint8 // by number; 0 means that it must not be there
}

// set notes that n documents, from first on, have that revision.
func (x *expected) set(first, n int, revision uint8) {
	x.grow(first + n)
	for i := first; i < first+n; i++ {
		x.revisions[i] = revision
	}
}

// grow makes room for n documents.
func (x *expected) grow(n int) {
	if more := n - len(x.revisions); more > 0 {
		x.revisions = append(x.revisions, make([]uint8, more)...)
	}
}

// totals returns the number of documents, and the sums of two of their fields.
func (x *expected) totals() (t totals) {
	for number, revision := range x.revisions {
		if revision != 0 {
			t.add(number, int(revision))
		}
	}
	return t
}

// totals describe a set of documents.
type totals struct{ count, numbers, revisions int }

func (t *totals) add(number, revision int) {
	t.count++
	t.numbers += number
	t.revisions += revision
}

// check compares all that e holds with what it must hold: the number of
// documents, the sums of two fields, every body; then, by their IDs, a sample
// of those that must be there and of those that must not. With knownIDs, the
// IDs follow from the documents' numbers. It returns the number of documents
// that it compared.
func (x *expected) check(e engine.Engine, source *fixture.Source, knownIDs bool) (checked int, err error) {
	want := x.totals()
	step := max(1, want.count/samples)
	var found totals
	var ids []string
	var body []byte
	err = e.Scan("", func(id func() string, got []byte) error {
		number, revision, ok := fixture.Parse(got)
		if !ok || number >= len(x.revisions) {
			return fmt.Errorf("unknown document %q: %.60s", id(), got)
		}
		if wanted := x.revisions[number]; int(wanted) != revision {
			return fmt.Errorf("document %d has revision %d, want %d (0: none)", number, revision, wanted)
		}
		if body = source.Append(body[:0], number, revision); !bytes.Equal(got, body) {
			return fmt.Errorf("document %d: got %.200s, want %.200s", number, got, body)
		}
		if knownIDs && found.count%step == 0 && id() != newKey(number).Text {
			return fmt.Errorf("document %d has the ID %q", number, id())
		}
		if found.count%step == 0 {
			ids = append(ids, id())
		}
		found.add(number, revision)
		return nil
	})
	if err != nil {
		return found.count, fmt.Errorf("scan: %w", err)
	}
	if found != want {
		return found.count, fmt.Errorf("scan: got %d documents (sum of numbers %d, of revisions %d), want %d (%d, %d)",
			found.count, found.numbers, found.revisions, want.count, want.numbers, want.revisions)
	}
	if knownIDs {
		err = x.checkNumbers(e, source)
	} else {
		err = checkIDs(e, source, ids)
	}
	return found.count, err
}

// checkNumbers reads documents by the IDs that follow from their numbers.
func (x *expected) checkNumbers(e engine.Engine, source *fixture.Source) error {
	for number := 0; number < len(x.revisions); number += max(1, len(x.revisions)/samples) {
		body, err := e.Get(newKey(number))
		revision := int(x.revisions[number])
		switch {
		case revision == 0 && !errors.Is(err, engine.ErrNotFound):
			return fmt.Errorf("get of document %d, which was deleted: got error %v", number, err)
		case revision == 0:
		case err != nil:
			return fmt.Errorf("get of document %d: %w", number, err)
		case !bytes.Equal(body, source.Append(nil, number, revision)):
			return fmt.Errorf("get of document %d, revision %d: got %.200s", number, revision, body)
		}
	}
	return nil
}

// checkIDs reads documents by IDs that a scan has found.
func checkIDs(e engine.Engine, source *fixture.Source, ids []string) error {
	for _, id := range ids {
		body, err := e.Get(engine.Key{Text: id, Bytes: []byte(id)})
		if err != nil {
			return fmt.Errorf("get of %q: %w", id, err)
		}
		number, revision, ok := fixture.Parse(body)
		if !ok || !bytes.Equal(body, source.Append(nil, number, revision)) {
			return fmt.Errorf("get of %q: got %.200s", id, body)
		}
	}
	return nil
}
