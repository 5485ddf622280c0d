package backup

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/sealed"
)

func testKeys(id string) (sealed.Key, error) {
	if id != "" && id != "a" {
		return sealed.Key{}, fmt.Errorf("there is no key %q", id)
	}
	return sealed.Key{ID: "a", Secret: make([]byte, sealed.KeyBytes)}, nil
}

// writeSome writes a stream of n documents, and returns how many bytes the writer says it has.
func writeSome(t testing.TB, w io.Writer, keys sealed.Keys, n int) int64 {
	t.Helper()
	out, err := NewWriter(w, header, keys)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		out.Set(fmt.Appendf(nil, "d%08d", i), fmt.Appendf(nil, `{"Name":"%x","Text":"%x"}`, i, random.Perm(60)))
		if out.Full() {
			if err := out.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := out.Finish(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Ensure that an encrypted stream has the operations and the sizes of what was written, and that the stream in it is one of format 1.
func TestEncrypted_RoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 20_000} {
		var plain, stream bytes.Buffer
		writeSome(t, &plain, nil, n)
		if size := writeSome(t, &stream, testKeys, n); size != int64(stream.Len()) {
			t.Errorf("%d documents: the writer says %d bytes, and the stream has %d", n, size, stream.Len())
		}
		if !bytes.HasPrefix(stream.Bytes(), []byte("jay backup, format 2\n")) || bytes.Contains(stream.Bytes(), []byte("databaseFormat")) {
			t.Errorf("%d documents: it begins with %q", n, stream.Bytes()[:30])
		}
		found, err := Verify(context.Background(), func(int64) {}, []io.Reader{&Keyed{bytes.NewReader(stream.Bytes()), testKeys}})
		if err != nil || found[0].Bytes != int64(stream.Len()) || found[0].KeyID != "a" || found[0].Keys != int64(n) {
			t.Errorf("%d documents: got %+v, %v", n, found, err)
		}
		rest := bytes.NewReader(stream.Bytes()[len("jay backup, format 2\n"):])
		id, slot, err := sealed.ReadStreamKey(rest, []byte("jay backup, format 2\n"))
		if err != nil {
			t.Fatal(err)
		}
		inner, err := sealed.OpenStream(rest, testKeys, []byte("jay backup, format 2\n"), id, slot)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(inner); err != nil || !bytes.Equal(text, plain.Bytes()) {
			t.Errorf("%d documents: what is encrypted has %d bytes and is not what is written in the clear (%d bytes), %v", n, len(text), plain.Len(), err)
		}
	}
}

// Ensure that the key of a stream is checked without reading it, where its beginning can be seen, and that damage is left to the reader.
func TestCheckPeeked(t *testing.T) {
	var stream bytes.Buffer
	writeSome(t, &stream, testKeys, 10)
	for name, row := range map[string]struct {
		r    io.Reader
		want error
	}{
		"no keys":           {bufio.NewReader(bytes.NewReader(stream.Bytes())), errs.ErrKey},
		"keys":              {&Keyed{bufio.NewReader(bytes.NewReader(stream.Bytes())), testKeys}, nil},
		"it cannot be seen": {bytes.NewReader(stream.Bytes()), nil},
		"damage":            {bufio.NewReader(bytes.NewReader(stream.Bytes()[:100])), nil},
	} {
		if err := CheckPeeked(row.r, 0); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v", name, err)
		}
		from := row.r
		if keyed, is := row.r.(*Keyed); is {
			from = keyed.Reader
		}
		if rest, err := io.ReadAll(from); err != nil || !bytes.HasPrefix(stream.Bytes(), rest) || len(rest) < 100 {
			t.Errorf("%s: %d bytes are left to be read, %v", name, len(rest), err)
		}
	}
}

// Ensure that an encrypted stream in an encrypted stream is none.
func TestEncrypted_Twice(t *testing.T) {
	var inner, stream bytes.Buffer
	writeSome(t, &inner, testKeys, 10)
	w, _, err := sealed.NewStream(&stream, testKeys, []byte("jay backup, format 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(inner.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	if _, err := NewReader(&Keyed{&stream, testKeys}, 0); !errors.Is(err, errs.ErrBackup) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkEncrypted measures what encryption adds to a stream that is written, and to one that is read.
func BenchmarkEncrypted(b *testing.B) {
	for _, row := range []struct {
		name string
		keys sealed.Keys
	}{{"plain", nil}, {"encrypted", testKeys}} {
		var stream bytes.Buffer
		writeSome(b, &stream, row.keys, 50_000)
		b.Run("write/"+row.name, func(b *testing.B) {
			for range b.N {
				writeSome(b, io.Discard, row.keys, 50_000)
			}
		})
		b.Run("read/"+row.name, func(b *testing.B) {
			b.SetBytes(int64(stream.Len()))
			for range b.N {
				if _, err := Verify(context.Background(), func(int64) {}, []io.Reader{&Keyed{bytes.NewReader(stream.Bytes()), row.keys}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
