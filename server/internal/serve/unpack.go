package serve

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow is the largest window of a zstd stream that a request may have, which is what
// RFC 8878 recommends. The memory of it is taken.
const maxZstdWindow = 8 << 20

// CheckEncoding refuses a body, or a part of one, with a content encoding other than gzip and zstd.
func CheckEncoding(h interface{ Get(name string) string }) error {
	switch packing(h.Get("Content-Encoding")) {
	case "", "gzip", "zstd":
		return nil
	}
	return &Problem{Status: http.StatusUnsupportedMediaType, Kind: TypeContent, Message: "the body and its parts must be as they are, or packed with gzip or zstd"}
}

// packing returns a content encoding in lower case, "" for none.
func packing(encoding string) string {
	if encoding = strings.ToLower(strings.TrimSpace(encoding)); encoding == "identity" {
		return ""
	}
	return encoding
}

// Unpacked returns a reader of what r has before it was packed by a content encoding. The caller
// has checked the encoding. The memory of unpacking is taken.
func Unpacked(r io.Reader, encoding string, held *Holding) (io.Reader, error) {
	switch packing(encoding) {
	case "gzip":
		return gzip.NewReader(r)
	case "zstd":
		return unpackedZstd(r, held)
	}
	return r, nil
}

// UnpackedPart returns what a part of the body had before it was packed: most bytes at most. The caller has
// checked the encoding.
func UnpackedPart(part []byte, encoding string, held *Holding, most int64) ([]byte, error) {
	if packing(encoding) == "" {
		return part, nil
	}
	r, err := Unpacked(bytes.NewReader(part), encoding, held)
	if err != nil {
		return nil, readProblem(err, most)
	}
	unpacked, err := readAll(io.LimitReader(r, most+1), -1, held)
	if err != nil {
		return nil, readProblem(err, most)
	}
	if int64(len(unpacked)) > most {
		return nil, TooLarge("a part of the body has more than %d bytes when it is unpacked, which is the most", most)
	}
	return unpacked, nil
}

// errZstd is wrapped by the errors for what is no zstd stream, or a damaged one.
var errZstd = errors.New("the body is not what zstd makes")

// zstdReader unpacks a zstd stream.
type zstdReader struct {
	source *sourceReader
	r      *zstd.Decoder
}

// sourceReader keeps the error of a reader.
type sourceReader struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *sourceReader) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// unpackedZstd returns a reader that unpacks zstd. The header of the first frame says which memory
// it takes; later frames must not take more.
func unpackedZstd(r io.Reader, held *Holding) (io.Reader, error) {
	source := &sourceReader{r: r}
	head := bufio.NewReader(source)
	var header zstd.Header
	for n := 5; ; n++ { // not more than is needed, as the sender may wait
		first, err := head.Peek(n)
		if problem := header.Decode(first); problem == nil {
			break
		} else if problem != io.ErrUnexpectedEOF || n == zstd.HeaderMaxSize {
			return nil, errZstd
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	window := max(header.WindowSize, zstd.MinWindowSize)
	if window > maxZstdWindow {
		return nil, TooLarge("the zstd stream has a window of more than %d bytes, which is the most", maxZstdWindow)
	}
	if err := held.Take(2*int64(window) + 256<<10); err != nil {
		return nil, err
	}
	unpacked, err := zstd.NewReader(head, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, err
	}
	return &zstdReader{source, unpacked}, nil
}

// Read implements io.Reader. It returns the error of the body, if there is one.
func (z *zstdReader) Read(b []byte) (int, error) {
	n, err := z.r.Read(b)
	switch {
	case err == nil, err == io.EOF:
	case z.source.err != nil:
		err = z.source.err
	case errors.Is(err, io.ErrUnexpectedEOF):
	default:
		err = fmt.Errorf("%w: %w", errZstd, err)
	}
	return n, err
}
