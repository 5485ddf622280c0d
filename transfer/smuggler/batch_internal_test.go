package smuggler

// Inside the package: it counts by the size of a batch.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Lines of the inputs below. The database refuses the one, the splitter the other.
const (
	repeatedLine  = `{"n":1,"n":2}`
	malformedLine = `{"n" 1}`
)

// inputOf returns so many lines, which are documents but for those of bad, from 1 on.
func inputOf(lines int, bad map[int]string) string {
	var input strings.Builder
	for i := range lines {
		line, found := bad[i+1]
		if !found {
			line = fmt.Sprintf(`{"n":%d}`, i+1)
		}
		input.WriteString(line + "\n")
	}
	return input.String()
}

// Ensure that an error of an import is that of the first bad line, wherever in its batch the
// line is, that the error says how much is stored, and that this, and nothing behind the
// line, is stored, though the next batch was read already.
func TestImporter_FirstError(t *testing.T) {
	for _, test := range []struct {
		name  string
		bad   map[int]string
		first int64 // bad line
	}{
		{"refused in the first batch", map[int]string{500: repeatedLine}, 500},
		{"refused at the end of the first batch", map[int]string{1000: repeatedLine}, 1000},
		{"refused in the second batch", map[int]string{1001: repeatedLine}, 1001},
		{"refused in two batches", map[int]string{1999: repeatedLine, 2001: repeatedLine}, 1999},
		{"malformed while a batch is stored", map[int]string{1500: malformedLine}, 1500},
		{"refused, malformed in the next batch", map[int]string{700: repeatedLine, 1001: malformedLine}, 700},
		{"refused, malformed in the same batch", map[int]string{1700: repeatedLine, 1800: malformedLine}, 1700},
		{"refused at the end of the input", map[int]string{3000: repeatedLine}, 3000},
	} {
		t.Run(test.name, func(t *testing.T) {
			im := newImporter(t, nil)
			err := load(t.Context(), im, inputOf(3000, test.bad))
			var at *ImportError
			is := errors.As(err, &at)
			if !is || !errors.Is(err, jay.ErrInvalidDocument) {
				t.Fatalf("got %v, want the error of a document", err)
			}
			if at.Line != test.first || at.Stored != test.first-1 {
				t.Errorf("got line %d with %d stored, want line %d with %d: %v", at.Line, at.Stored, test.first, test.first-1, err)
			}
			checkNumbers(t, im.db, test.first-1)
		})
	}
}

// Ensure that an import with rejects stores all other documents in their order, and keeps
// the bad ones in theirs, also where batches are stored while later lines are rejected.
func TestImporter_Rejects(t *testing.T) {
	bad := map[int]string{1: malformedLine, 400: repeatedLine, 1000: repeatedLine, 1001: malformedLine, 1002: repeatedLine, 2500: malformedLine, 2999: repeatedLine}
	var rejected keptRejects
	im := newImporter(t, &rejected)
	if err := load(t.Context(), im, inputOf(3000, bad)); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{malformedLine, repeatedLine, repeatedLine, malformedLine, repeatedLine, malformedLine, repeatedLine, ""}, "\n")
	if got := rejected.String(); got != want || rejected.reasons != len(bad) {
		t.Errorf("got %d rejects %q, want %d %q", rejected.reasons, got, len(bad), want)
	}
	if p := im.Progress(); p.Documents != 3000-int64(len(bad)) || p.Rejected != int64(len(bad)) {
		t.Errorf("got %d documents and %d rejects, want %d and %d", p.Documents, p.Rejected, 3000-len(bad), len(bad))
	}
	last := 0
	for _, number := range numbersOf(t, im.db) {
		for last++; bad[last] != ""; last++ {
		}
		if number != last {
			t.Fatalf("got document %d, want %d", number, last)
		}
	}
}

// cancelling cancels a context when so many bytes of it were read.
type cancelling struct {
	r      io.Reader
	left   int
	cancel context.CancelFunc
}

// Read implements io.Reader, for one byte.
func (c *cancelling) Read(p []byte) (int, error) {
	if c.left--; c.left == 0 {
		c.cancel()
	}
	return c.r.Read(p[:1])
}

// Ensure that an import that is interrupted while a batch is stored waits for the batch,
// stores nothing else, and says how much is stored.
func TestImporter_Interrupted(t *testing.T) {
	for _, line := range []int{1, 999, 1000, 1001, 1500, 2000, 2001} {
		im := newImporter(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		input := inputOf(3000, nil)
		end := len(inputOf(line, nil))
		// Without reading ahead, so that the interruption comes where it is to come.
		err := im.Load(ctx, NDJSON, Input{Name: "input", Reader: &cancelling{bytes.NewReader([]byte(input)), end, cancel}})
		var at *ImportError
		is := errors.As(err, &at)
		if !is || !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted in line %d: got %v, want the interruption", line, err)
		}
		if at.Stored%batchDocuments != 0 || at.Stored > int64(line) {
			t.Errorf("interrupted in line %d: got %d documents, want whole batches before it", line, at.Stored)
		}
		checkNumbers(t, im.db, at.Stored)
		cancel()
	}
}

// keptRejects keeps rejects in memory.
type keptRejects struct {
	strings.Builder
	reasons int
}

// Reject implements Rejects.
func (k *keptRejects) Reject(*ImportError) { k.reasons++ }

// load imports lines.
func load(ctx context.Context, im *Importer, input string) error {
	return im.Load(ctx, NDJSON, Input{Name: "input", Reader: strings.NewReader(input)})
}

// newImporter returns an importer into an empty database.
func newImporter(t *testing.T, rejected Rejects) *Importer {
	t.Helper()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return NewImporter(db, ImportOptions{Collection: "Things", MaxBytes: 1 << 20, MaxDepth: 100, Rejects: rejected, Ahead: true})
}

// checkNumbers checks that a database has the documents {"n":1} to {"n":n}, written in this
// order, and no others.
func checkNumbers(t *testing.T, db *jay.DB, n int64) {
	t.Helper()
	numbers := numbersOf(t, db)
	for i, number := range numbers {
		if number != i+1 {
			t.Fatalf("got document %d, want %d", number, i+1)
		}
	}
	if int64(len(numbers)) != n {
		t.Errorf("got %d documents, want %d", len(numbers), n)
	}
}

// numbersOf returns the numbers of all documents, in the order in which they were written.
func numbersOf(t *testing.T, db *jay.DB) (numbers []int) {
	t.Helper()
	byEtag := make(map[uint64]int)
	for doc, err := range db.Documents(t.Context(), jay.Scan{Collection: "Things"}) {
		if err != nil {
			t.Fatal(err)
		}
		var body struct{ N int }
		if err := json.Unmarshal(doc.Body(), &body); err != nil {
			t.Fatal(err)
		}
		byEtag[doc.Metadata().Etag] = body.N
	}
	for _, etag := range slices.Sorted(maps.Keys(byEtag)) {
		numbers = append(numbers, byEtag[etag])
	}
	return numbers
}

// Ensure that kinds of records that are left out are bounded, however many an input has.
func TestImporter_LeftOut(t *testing.T) {
	im := newImporter(t, nil)
	var dump strings.Builder
	dump.WriteString(`{"BuildVersion":1`)
	for i := range maxLeftOut + 8 {
		fmt.Fprintf(&dump, `,"Section%d":[{},{}]`, i)
	}
	dump.WriteString("}")
	if err := im.Load(t.Context(), RavenDBDump, Input{Reader: strings.NewReader(dump.String())}); err != nil {
		t.Fatal(err)
	}
	left := im.Progress().LeftOut
	if len(left) != maxLeftOut+1 || left["Section0"] != 2 || left["others"] != 16 {
		t.Errorf("got %v, want %d kinds, and 16 others", left, maxLeftOut)
	}
}
