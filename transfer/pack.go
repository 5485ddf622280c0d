package transfer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// MaxWindowBytes is the largest window of a zstd stream that NewUnpacked accepts. It
// bounds the memory that a stream can ask for.
const MaxWindowBytes = 32 << 20

// NewUnpacked returns a reader of r that decompresses gzip and zstd, and passes other input
// through. It recognizes the two by their first bytes, at the first Read. A zstd stream with a
// window of more than [MaxWindowBytes] is an *Error.
func NewUnpacked(r io.Reader) io.Reader {
	return &unpacked{raw: bufio.NewReaderSize(r, 64<<10)}
}

type unpacked struct {
	raw  *bufio.Reader
	r    io.Reader // set by the first Read
	name string    // of the compression
}

// Read implements io.Reader. A compressed stream that is cut off is
// io.ErrUnexpectedEOF.
func (u *unpacked) Read(p []byte) (int, error) {
	if u.r == nil {
		if err := u.begin(); err != nil {
			return 0, err
		}
	}
	n, err := u.r.Read(p)
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		err = invalid(fmt.Sprintf("a zstd stream has a window of at most %d MiB", MaxWindowBytes>>20), "this one asks for more: pack it without --long, or with --long=25")
	case err != nil && err != io.EOF && u.name != "":
		err = fmt.Errorf("%s: %w", u.name, err)
	}
	return n, err
}

func (u *unpacked) begin() error {
	u.r = u.raw
	magic, err := u.raw.Peek(4)
	if err != nil && err != io.EOF {
		return nil // the next Read returns it
	}
	switch {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		unzip, err := gzip.NewReader(u.raw)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		u.r, u.name = unzip, "gzip"
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		// One goroutine, and a window of bounded size, whatever the stream asks for.
		unzip, err := zstd.NewReader(u.raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(MaxWindowBytes))
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
		u.r, u.name = unzip, "zstd"
	}
	return nil
}

// Compressed returns the name of the compression that a file name asks for, "gzip" or
// "zstd" or "", and the name without its extension.
func Compressed(name string) (compression, rest string) {
	lower := strings.ToLower(name)
	switch {
	case strings.HasSuffix(lower, ".gz"):
		return "gzip", name[:len(name)-3]
	case strings.HasSuffix(lower, ".zst"):
		return "zstd", name[:len(name)-4]
	}
	return "", name
}

// NewPacked returns a writer that compresses to w. The compression is a name that Compressed
// returns. Close ends the compressed stream, and does not close w.
func NewPacked(w io.Writer, compression string) (io.WriteCloser, error) {
	switch compression {
	case "gzip":
		return gzip.NewWriter(w), nil
	case "zstd":
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	}
	return nopCloser{w}, nil
}

type nopCloser struct{ io.Writer }

// Close does nothing.
func (nopCloser) Close() error { return nil }
