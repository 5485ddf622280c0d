package sealed_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jaydb/jay/internal/sealed"
)

// Ensure that files which another implementation has written, from the description of the format alone, are read:
// testdata/make.py is the program that made them.
func TestVectors(t *testing.T) {
	file := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	secret := make([]byte, sealed.KeyBytes)
	for i := range secret {
		secret[i] = byte(i)
	}
	r, err := sealed.OpenIdentity(file("JAY.keys"), "JAY.keys", func(id string) (sealed.Key, error) {
		return sealed.Key{ID: "2026-11", Secret: secret}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if got, err := readPages(r, file("000001.sst"), "000001.sst"); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("pages: got %d bytes and %v, want %d", len(got), err, want.Len())
	}
	if got, damage := readFrames(t, r, file("000002.log"), "000002.log"); damage != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("frames: got %d bytes and %v, want %d", len(got), damage, want.Len())
	}
	slots := make([]byte, 3*4096)
	if _, err := r.NewSlots(bytes.NewReader(file("JAY.control")), nil, "JAY.control", 3, 4096).ReadAt(slots, 0); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if got := string(bytes.TrimRight(slots[i*4096:(i+1)*4096], "\x00")); got != fmt.Sprintf("record %d", i) {
			t.Errorf("slot %d: got %q", i, got)
		}
	}
}
