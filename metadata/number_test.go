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

// Ensure that a number is refused if its first digit is more than 10^15 places
// from the point, however it is written.
func TestScan_ExponentBeyond(t *testing.T) {
	zeros := strings.Repeat("0", 1000)
	for number, refused := range map[string]bool{
		"1e999999999999999": false, "1e1000000000000000": true, "1E+1000000000000000": true, "0.1e1000000000000000": false, "0.1e1000000000000001": true,
		"-10e999999999999999": true, "-10e999999999999998": false, "0." + zeros + "1e1000000000001000": false, "0." + zeros + "1e1000000000001001": true,
		"1" + zeros + "e999999999998999": false, "1" + zeros + "e999999999999000": true,
		"1e-1000000000000001": false, "1e-1000000000000002": true, "1e99999999999999999999999999": true, "1e-99999999999999999999999999": true,
		"0e99999999999999999999999999": false, "-0.0E-99999999999999999999999999": false, "1e00000000000000000000000000000001": false,
	} {
		_, err := metadata.Scan([]byte(`{"a":[`+number+`]}`), metadata.Limits{MaxBytes: 10_000, MaxDepth: 5})
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "10^15") {
			t.Errorf("%.40s: %v", number, err)
		}
	}
}
