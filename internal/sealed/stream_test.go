package sealed_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/sealed"
)

const (
	streamPage   = 64 << 10
	streamLength = streamPage - 28
	streamSlot   = 240
)

var about = []byte("a stream of the tests\n")

// writeStream writes a stream in writes of up to step bytes.
func writeStream(t testing.TB, keys sealed.Keys, b []byte, step int) []byte {
	t.Helper()
	var stream bytes.Buffer
	w, _, err := sealed.NewStream(&stream, keys, about)
	if err != nil {
		t.Fatal(err)
	}
	writeSteps(t, w, b, step)
	if err := errors.Join(w.End(), w.End()); err != nil {
		t.Fatal(err)
	}
	return stream.Bytes()
}

// readStream reads a stream whose owner's bytes are about.
func readStream(keys sealed.Keys, stream, about []byte) ([]byte, error) {
	r := bytes.NewReader(stream[min(len(about), len(stream)):])
	id, slot, err := sealed.ReadStreamKey(r, about)
	if err != nil {
		return nil, err
	}
	s, err := sealed.OpenStream(r, keys, about, id, slot)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(s)
}

// Ensure that a stream reads as what was written, at the sizes where a page ends and in between, and has no byte in the clear.
func TestStream_RoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, streamLength - 1, streamLength, streamLength + 1, 3 * streamLength, 200_000} {
		want := text(n, uint64(n))
		for _, step := range []int{1 << 20, streamLength, 1000} {
			stream := writeStream(t, keysOf("a"), want, step)
			if got, err := readStream(keysOf("b", "a"), stream, about); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes in writes of %d: got %d bytes, %v", n, step, len(got), err)
			}
			if n > 100 && bytes.Contains(stream, want[:20]) {
				t.Errorf("%d bytes: the stream has them in the clear", n)
			}
			pages := max(1, (n+streamLength-1)/streamLength)
			if want := len(about) + streamSlot + n + 28*pages; len(stream) != want {
				t.Errorf("%d bytes: the stream has %d, want %d", n, len(stream), want)
			}
		}
	}
}

// Ensure that a changed bit, a cut, and pages that were exchanged, repeated, left out, added or taken from another stream are damage, and that no byte of
// such a page is returned.
func TestStream_Damage(t *testing.T) {
	want := text(3*streamLength+500, 7)
	stream := writeStream(t, keysOf("a"), want, 1<<20)
	other := writeStream(t, keysOf("a"), want, 1<<20)
	at := func(page int) int { return len(about) + streamSlot + page*streamPage }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	rows := map[string][]byte{
		"two pages are exchanged":       join(stream[:at(0)], stream[at(1):at(2)], stream[at(0):at(1)], stream[at(2):]),
		"a page is repeated":            join(stream[:at(2)], stream[at(1):]),
		"the last page is repeated":     join(stream, stream[at(3):]),
		"a page is left out":            join(stream[:at(1)], stream[at(2):]),
		"the last page is left out":     stream[:at(3)],
		"all pages are left out":        stream[:at(0)],
		"a page is of another stream":   join(stream[:at(1)], other[at(1):at(2)], stream[at(2):]),
		"the slot is of another stream": join(about, other[len(about):at(0)], stream[at(0):]),
		"a byte follows":                join(stream, []byte("x")),
		"a stream follows":              join(stream, other),
		"another owner":                 join([]byte("a stream of the tests,"), stream[len(about):]),
	}
	for name, damaged := range rows {
		got, err := readStream(keysOf("a"), damaged, damaged[:len(about)])
		if name == "another owner" {
			if !errors.Is(err, errs.ErrKey) {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		if !isDamage(err) || !bytes.HasPrefix(want, got) {
			t.Errorf("%s: got %d bytes and %v, want damage", name, len(got), err)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		damaged := bytes.Clone(stream)
		i := len(about) + random.IntN(len(stream)-len(about))
		damaged[i] ^= 1 << random.IntN(8)
		if got, err := readStream(keysOf("a"), damaged, about); !isDamage(err) || !bytes.HasPrefix(want, got) {
			t.Fatalf("byte %d was changed: got %d bytes and %v", i, len(got), err)
		}
		cut := len(about) + random.IntN(len(stream)-len(about))
		if got, err := readStream(keysOf("a"), stream[:cut], about); !isDamage(err) || !bytes.HasPrefix(want, got) {
			t.Fatalf("cut at %d: got %d bytes and %v", cut, len(got), err)
		}
	}
}

// Ensure that a missing key and another secret are an ErrKey before a page is read, and that the ID is known without a key.
func TestStream_Keys(t *testing.T) {
	stream := writeStream(t, keysOf("a"), []byte("text"), 10)
	if _, err := readStream(keysOf("b"), stream, about); !errors.Is(err, errs.ErrKey) || isDamage(err) {
		t.Errorf("a missing key: got %v", err)
	}
	wrong := func(string) (sealed.Key, error) {
		return sealed.Key{ID: "a", Secret: make([]byte, sealed.KeyBytes)}, nil
	}
	if _, err := readStream(wrong, stream, about); !errors.Is(err, errs.ErrKey) || isDamage(err) {
		t.Errorf("another secret: got %v", err)
	}
	if id, _, err := sealed.ReadStreamKey(bytes.NewReader(stream[len(about):]), about); id != "a" || err != nil {
		t.Errorf("the ID: got %q, %v", id, err)
	}
	if _, _, err := sealed.NewStream(io.Discard, func(string) (sealed.Key, error) { return sealed.Key{}, io.ErrNoProgress }, about); !errors.Is(err, errs.ErrKey) || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("no newest key: got %v", err)
	}
}

// Ensure that errors of the reader and of the writer below are no damage, and end the stream.
func TestStream_Errors(t *testing.T) {
	stream := writeStream(t, keysOf("a"), text(2*streamLength, 1), 1<<20)
	failed := errors.New("no network")
	for _, n := range []int{10, streamSlot + 10, streamSlot + streamPage, streamSlot + streamPage + 1} {
		r := io.MultiReader(bytes.NewReader(stream[len(about):len(about)+n]), iotest.ErrReader(failed))
		id, slot, err := sealed.ReadStreamKey(r, about)
		if err == nil {
			var s *sealed.StreamReader
			if s, err = sealed.OpenStream(r, keysOf("a"), about, id, slot); err == nil {
				_, err = io.ReadAll(s)
			}
		}
		if !errors.Is(err, failed) || isDamage(err) {
			t.Errorf("an error after %d bytes: got %v", n, err)
		}
	}
	var w failing
	s, _, err := sealed.NewStream(&w, keysOf("a"), about)
	if err != nil {
		t.Fatal(err)
	}
	w.err = failed
	if _, err := s.Write(make([]byte, 2*streamPage)); !errors.Is(err, failed) {
		t.Errorf("a failed write: got %v", err)
	}
	w.err, w.writes = nil, 0
	if err := s.End(); !errors.Is(err, failed) || w.writes > 0 {
		t.Errorf("after a failed write: got %v and %d writes", err, w.writes)
	}
}

// Ensure that a byte of the plaintext is where Offset says: the page there is the one that is damaged.
func TestStream_Offset(t *testing.T) {
	stream := writeStream(t, keysOf("a"), text(3*streamLength, 1), 1<<20)
	r := bytes.NewReader(stream[len(about):])
	id, slot, err := sealed.ReadStreamKey(r, about)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sealed.OpenStream(r, keysOf("a"), about, id, slot)
	if err != nil {
		t.Fatal(err)
	}
	start := int64(len(about) + streamSlot)
	for plain, want := range map[int64]int64{0: start + 12, streamLength - 1: start + 12 + streamLength - 1, streamLength: start + streamPage + 12, 2*streamLength + 5: start + 2*streamPage + 17} {
		if got := s.Offset(plain); got != want {
			t.Errorf("byte %d: got %d, want %d", plain, got, want)
		}
	}
}

// Ensure that a stream that another implementation has written, from the description of the format alone, is read: testdata/make.py has made it.
func TestStream_Vector(t *testing.T) {
	stream, err := os.ReadFile(filepath.Join("testdata", "stream"))
	if err != nil {
		t.Fatal(err)
	}
	secret := make([]byte, sealed.KeyBytes)
	for i := range secret {
		secret[i] = byte(i)
	}
	keys := func(string) (sealed.Key, error) { return sealed.Key{ID: "2026-11", Secret: secret}, nil }
	want := bytes.Repeat([]byte("0123456789"), 6600)
	if got, err := readStream(keys, stream, []byte("jay backup, format 2\n")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes and %v, want %d", len(got), err, len(want))
	}
}

// FuzzStream ensures that whatever follows the slot of a stream, reading it ends, and returns nothing that was not written.
func FuzzStream(f *testing.F) {
	want := text(streamLength+100, 1)
	stream := writeStream(f, keysOf("a"), want, 1<<20)
	f.Add(300, []byte("x"))
	f.Add(len(about)+streamSlot, stream[len(about)+streamSlot:])
	f.Fuzz(func(t *testing.T, at int, b []byte) {
		if at < len(about) || at > len(stream) {
			return
		}
		damaged := append(bytes.Clone(stream[:at]), b...)
		got, err := readStream(keysOf("a"), damaged, about)
		if !bytes.HasPrefix(want, got) || err == nil && len(got) != len(want) {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
	})
}
