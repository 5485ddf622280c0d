package jaytest

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parts"
)

// ascending is a source of randomness for a database whose ID is known: 0, 1, 2 and so on.
type ascending struct{}

func (ascending) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

// DumpTime is when the databases of docs/format.md were written.
var DumpTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Dumped opens a new database, which has the same bytes whenever the same is written.
func Dumped(t testing.TB) *jay.DB {
	t.Helper()
	db, err := jay.OpenMemory(&jay.Options{Rand: ascending{}, Now: func() time.Time { return DumpTime }})
	Must(t, err)
	return db
}

// InFormat compares a dump with docs/format.md, for a test of a package below internal.
func InFormat(t testing.TB, dump string) {
	t.Helper()
	document, err := os.ReadFile("../../docs/format.md")
	Must(t, err)
	if dump == "" || !bytes.Contains(document, []byte(dump)) {
		t.Errorf("docs/format.md does not hold this dump:\n%s", dump)
	}
}

// Quote shows bytes as text where they are ASCII, and as \xNN elsewhere.
func Quote(b []byte) string {
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

// KeysBetween returns the keys that begin with a byte from lo to hi, and their values, one
// per line.
func KeysBetween(t testing.TB, db *jay.DB, lo, hi byte) string {
	t.Helper()
	return Keys(t, db, []byte{lo}, []byte{hi + 1})
}

// Keys returns the keys from lo up to hi, without it, and their values, one per line.
func Keys(t testing.TB, db *jay.DB, lo, hi []byte) string {
	t.Helper()
	it, err := parts.Of(db).Env.Engine.Iterate(lo, hi)
	Must(t, err)
	defer it.Close()
	var out strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		fmt.Fprintf(&out, "%s → %s\n", Quote(it.Key()), Quote(it.Value()))
	}
	return out.String()
}

// RequestKeys returns how many keys the results of requests have.
func RequestKeys(t testing.TB, db *jay.DB) int {
	return strings.Count(KeysBetween(t, db, format.SpaceRequests, format.SpaceRequests), "\n")
}
