package metadata_test

import (
	"strings"
	"testing"

	"github.com/jaydb/jay/metadata"
)

// Ensure that a bad number is refused at the byte that cannot stand there.
func TestScan_BadNumber(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":-}`:     `'}' where a digit is expected (byte 6)`,
		`{"a":--1}`:   `'-' where a digit is expected (byte 6)`,
		`{"a":1.}`:    `'}' where a digit is expected (byte 7)`,
		`{"a":1.-2}`:  `'-' where a digit is expected (byte 7)`,
		`{"a":1e}`:    `'}' where a digit is expected (byte 7)`,
		`{"a":1e+}`:   `'}' where a digit is expected (byte 8)`,
		`{"a":1e--1}`: `'-' where a digit is expected (byte 8)`,
		`{"a":01}`:    `'1' where a comma or the end of the object is expected (byte 6)`,
		`{"a":-`:      `it ends where a digit is expected (byte 6)`,
		`{"a":1e`:     `it ends where a digit is expected (byte 7)`,
	} {
		_, err := metadata.Scan([]byte(text), metadata.Limits{MaxBytes: 100, MaxDepth: 5})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
