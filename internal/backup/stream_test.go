package backup

// These tests make streams that the writer does not.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/sample"
)

var header = Header{ID: "id", Database: "db", NodeTag: "A", Format: 4}

// streamOf returns a stream with these operations, as they are.
func streamOf(t testing.TB, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, header, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.raw = raw
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read reads a stream to its end, and returns how many operations it has.
func read(stream []byte) (n int, err error) {
	r, err := NewReader(bytes.NewReader(stream), 0)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for ; ; n++ {
		if _, err := r.Next(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}

// Ensure that operations come back as they were written, whatever their sizes are beside
// those of blocks.
func TestStream_RoundTrip(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, header, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var want []Op
	add := func(op Op) {
		want = append(want, op)
		switch op.Kind {
		case opSet:
			w.Set(op.Key, op.Value)
		case opDelete:
			w.Delete(op.Key)
		case opClear:
			w.Clear(op.Key, op.Value)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for i, size := range []int{0, 1, 127, 128, BlockBytes - 30, BlockBytes, 3*BlockBytes + 5, 2} {
		add(Op{opSet, []byte(fmt.Sprint("d", i, "\x00")), bytes.Repeat([]byte{byte(i)}, size)})
		add(Op{opDelete, []byte(fmt.Sprint("d", i+100, "\x00")), nil})
		add(Op{opClear, []byte{'a'}, []byte{'b'}})
		add(Op{opClear, nil, nil})
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(&out, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, op := range want {
		got, err := r.Next()
		if err != nil || got.Kind != op.Kind || !bytes.Equal(got.Key, op.Key) || !bytes.Equal(got.Value, op.Value) {
			t.Fatalf("operation %d: %v", i, err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	if r.Trailer != w.Trailer || r.Trailer.Documents != 8 || r.Trailer.Deletions != 8 || !reflect.DeepEqual(r.Header, header) || r.Bytes != w.Bytes() {
		t.Errorf("%+v, %+v", r.Trailer, r.Header)
	}
}

// Ensure that a stream whose checksums are right and whose contents are not is refused,
// and that a length which it claims takes no memory.
func TestReader_Hostile(t *testing.T) {
	sample.OneGoroutine(t)
	set := func(keyBytes, valueBytes uint64) []byte {
		b := binary.AppendUvarint([]byte{opSet}, keyBytes)
		b = append(b, "k"...)
		return binary.AppendUvarint(b, valueBytes)
	}
	long := append(binary.AppendUvarint([]byte{opSet}, MaxKey+1), bytes.Repeat([]byte{'k'}, MaxKey+1)...)
	for name, raw := range map[string][]byte{
		"an operation that is not known": {9},
		"no operation":                   {0},
		"a key without an end":           {opSet, 5, 'a'},
		"a value without an end":         set(1, 100),
		"a value of 65 MiB and 1 byte":   set(1, MaxValue+1),
		"a value of 2^63 bytes":          set(1, math.MaxUint64),
		"a key that is too long":         long,
		"a length of eleven bytes":       append([]byte{opSet}, bytes.Repeat([]byte{0x80}, 11)...),
		"a length that is cut":           {opSet, 0x80},
		"an empty key":                   {opSet, 0, 0},
		"the deletion of an empty key":   {opDelete, 0},
		"a range without an end":         {opClear, 1, 'a'},
	} {
		if _, err := read(streamOf(t, raw)); !errors.Is(err, errs.ErrBackup) || strings.Contains(err.Error(), "trailer says") {
			t.Errorf("%s: %v", name, err)
		}
	}

	// Blocks that the writer does not make.
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind byte, number, size uint32, raw []byte) []byte {
		b := encoder.EncodeAll(raw, make([]byte, blockHeader))
		b[4] = kind
		binary.BigEndian.PutUint32(b[5:], number)
		binary.BigEndian.PutUint32(b[9:], uint32(len(b)-blockHeader))
		binary.BigEndian.PutUint32(b[13:], size)
		binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
		return b
	}
	text := []byte(`{"id":"id","database":"db","databaseFormat":4}`)
	head := append([]byte(firstLine(plainFormat)), block(kindHeader, 0, uint32(len(text)), text)...)
	bomb := bytes.Repeat([]byte{0}, 64<<20)
	for name, stream := range map[string][]byte{
		"a bomb":                   append(bytes.Clone(head), block(kindData, 1, BlockBytes, bomb)...),
		"a size that is too small": append(bytes.Clone(head), block(kindData, 1, 3, []byte("four"))...),
		"a kind that is not known": append(bytes.Clone(head), block(7, 1, 1, []byte("x"))...),
		"two headers":              append(bytes.Clone(head), block(kindHeader, 1, uint32(len(text)), text)...),
		"a trailer that is none":   append(bytes.Clone(head), block(kindTrailer, 1, 1, []byte("x"))...),
		"a trailer of another":     append(bytes.Clone(head), block(kindTrailer, 1, 2, []byte("{}"))...),
		"a header that is none":    append([]byte(firstLine(plainFormat)), block(kindHeader, 0, 2, []byte("{}"))...),
		"data first":               append([]byte(firstLine(plainFormat)), block(kindData, 0, 2, []byte("{}"))...),
		"no zstd":                  append([]byte(firstLine(plainFormat)), append(block(kindHeader, 0, 2, []byte("{}"))[:blockHeader], bytes.Repeat([]byte("x"), 15)...)...),
	} {
		if _, err := read(stream); !errors.Is(err, errs.ErrBackup) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewReader(io.MultiReader(strings.NewReader(firstLine(plainFormat)), failing{}), 0); !errors.Is(err, errFailing) {
		t.Errorf("an error of the reader: %v", err)
	}
}

// Ensure that a document can be longer than other values, and that a value which is too long
// is refused before its bytes are read.
func TestReader_LongValues(t *testing.T) {
	for _, c := range []struct {
		key     string
		length  uint64
		refused bool
	}{
		{"z later", MaxValue, false}, {"z later", MaxValue + 1, true},
		{"mindexes", MaxValue + 1, true}, {"bchunk", MaxValue + 1, true},
		{"document", MaxValue + 1, false}, {"document", MaxDocument, false}, {"document", MaxDocument + 1, true},
		{"revision", MaxDocument, false}, {"revision", MaxDocument + 1, true},
	} {
		raw := binary.AppendUvarint(append([]byte{opSet, byte(len(c.key))}, c.key...), c.length)
		_, err := read(streamOf(t, raw))
		if refused := err != nil && strings.Contains(err.Error(), "are possible"); !errors.Is(err, errs.ErrBackup) || refused != c.refused {
			t.Errorf("%q with %d bytes: %v", c.key, c.length, err)
		}
	}
}

var errFailing = errors.New("the disk fails")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errFailing }

// FuzzReader checks that no stream makes the reader panic, and that one which it finds whole
// is one that the writer makes of the same operations.
func FuzzReader(f *testing.F) {
	f.Add([]byte("jay backup, format 1\n"), false)
	f.Add([]byte{opSet, 1, 'd', 1, 'v', opDelete, 1, 'd', opClear, 0, 0}, true)
	f.Fuzz(func(t *testing.T, text []byte, operations bool) {
		stream := text
		if operations {
			stream = streamOf(t, text)
		}
		n, err := read(stream)
		if err != nil && !errors.Is(err, errs.ErrBackup) {
			t.Fatalf("%d operations, then %v", n, err)
		}
	})
}
