package transfer_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/jaydb/jay/transfer"
)

// Ensure that an input that is no text is refused by its kind, also when it is packed, and
// that texts which only look a little like one are not.
func TestInput_NoText(t *testing.T) {
	var packed bytes.Buffer
	w, err := transfer.NewPacked(&packed, "gzip")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "SQLite format 3\x00"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var twice bytes.Buffer
	if w, err = transfer.NewPacked(&twice, "zstd"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(packed.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, input, want string }{
		{"SQLite", "SQLite format 3\x00\x10\x00", "a SQLite database: jay import --format sqlite"},
		{"SQLite, packed", packed.String(), "a SQLite database"},
		{"gzip in zstd", twice.String(), "packed twice, with gzip inside"},
		{"ZIP", "PK\x03\x04\x14\x00\x06\x00", "a ZIP archive"},
		{"Parquet", "PAR1\x15\x04\x15", "a Parquet file"},
		{"xz", "\xfd7zXZ\x00\x00", "packed with xz"},
		{"BSON", "\x16\x00\x00\x00\x02hello\x00\x06\x00\x00\x00world\x00\x00", "this is BSON"},
		{"UTF-16 with a mark", "\xff\xfe{\x00", "UTF-16"},
		{"UTF-16, little end first", "{\x00\"\x00", "UTF-16"},
		{"UTF-16, big end first", "\x00{\x00\"", "UTF-16"},
		{"a window of 2 GiB", "\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", "a window of at most 32 MiB"},
		{"nothing", "", ""},
		{"JSON", `{"a":1}`, ""},
		{"names that look alike", "PAR1,PAR2,BZh9\n1,2,3\n", ""},
		{"a mark of UTF-8", "\ufeffa,b\n", ""},
	} {
		text, err := io.ReadAll(transfer.NewInput(iotest.OneByteReader(strings.NewReader(c.input))))
		if c.want == "" {
			if err != nil || string(text) != c.input {
				t.Errorf("%s: got %q, %v", c.name, text, err)
			}
			continue
		}
		if !errors.Is(err, transfer.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}
