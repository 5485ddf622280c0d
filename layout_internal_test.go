package jay

// These tests look at keys and values as they lie in storage, which nothing
// outside the package can see: docs/format.md promises them byte by byte.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/format"
)

// zeros is a source of randomness for a database whose ID is known.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

// dumpTime is when the databases of docs/format.md were written.
var dumpTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// dumped opens a new database, which has the same bytes whenever the same is written.
func dumped(t *testing.T) *DB {
	t.Helper()
	db, err := OpenMemory(&Options{Rand: zeros{}, Now: func() time.Time { return dumpTime }})
	noError(t, err)
	return db
}

// inFormat compares a dump with docs/format.md.
func inFormat(t *testing.T, dump string) {
	t.Helper()
	document, err := os.ReadFile("docs/format.md")
	noError(t, err)
	if dump == "" || !bytes.Contains(document, []byte(dump)) {
		t.Errorf("docs/format.md does not hold this dump:\n%s", dump)
	}
}

// stored returns every key and value of a small database, one per line.
func stored(t *testing.T) string {
	t.Helper()
	ctx := context.Background()
	db := dumped(t)
	defer db.Close()
	var b Batch
	b.Put("Users/Ann", []byte(`{"Name":"Ann","@metadata":{"@collection":"Users","k":1}}`))
	b.Put("bob", []byte(`{}`), InCollection("Users"))
	b.Put("users|", []byte(`{}`), InCollection("Users"))
	b.Delete("users/1")
	if _, err := db.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
	if _, err := db.NextRange(ctx, RangeRequest{Tag: "users"}); err != nil {
		t.Fatal(err)
	}

	return keysBetween(t, db, 1, 254)
}

// quote shows bytes as text where they are ASCII, and as \xNN elsewhere.
func quote(b []byte) string {
	var out strings.Builder
	for _, c := range b {
		if c <= 0x20 || c >= 0x7f {
			fmt.Fprintf(&out, `\x%02x`, c)
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}

// Ensure that the bytes are those of docs/format.md, which holds this dump.
func TestLayout_Golden(t *testing.T) { inFormat(t, stored(t)) }

// Ensure that records survive their encoding, and that damaged ones are
// refused and do not panic.
func TestLayout_Records(t *testing.T) {
	m := &format.Marks{Marks: ids.Marks{Mark: 64, Top: 1 << 40, Leases: []ids.Lease{{Low: 1, End: 32}, {Low: 33, End: 64}}}, Node: 3}
	record := format.AppendMarks(nil, m)
	got, err := format.DecodeMarks(record)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(m) {
		t.Errorf("got %v, %v; want %v", got, err, m)
	}
	for n := range record {
		if _, err := format.DecodeMarks(record[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the first %d bytes are taken for a record", n)
		}
	}
	if _, err := format.DecodeMarks(append(record, 0)); !errors.Is(err, ErrCorrupt) {
		t.Error("a record with more behind it is accepted")
	}

	identity := format.Identity{Last: 300, Node: 2, Ceiling: 1324, Session: 1<<63 + 7}
	record = identity.Append(nil)
	if got, err := format.DecodeIdentity(record); got != identity || err != nil {
		t.Errorf("got %v, %v; want %v", got, err, identity)
	}
	for n := range record {
		if _, err := format.DecodeIdentity(record[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the first %d bytes are taken for an identity", n)
		}
	}
}

// Ensure that the end of a prefix is the first key behind it.
func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "a\xff": "b", "ab": "ac", "a\x00": "a\x01", "\xff": ""} {
		if got := format.PrefixEnd([]byte(prefix)); string(got) != want {
			t.Errorf("prefixEnd(%q): got %q, want %q", prefix, got, want)
		}
	}
}
