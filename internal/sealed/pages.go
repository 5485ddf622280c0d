package sealed

import (
	"crypto/cipher"
	"errors"
	"io"
	"sync"
)

// Pages are for files that are written from their beginning to their end, once. Behind the header the
// file is a sequence of pages of 4096 bytes, of which the last may be shorter:
//
//	nonce (12) | encrypted bytes (4068, of the last page 0 to 4068) | tag (16)
//
// With each page its number, which counts from 0, and 1 for the last page or 0 for any other are
// authenticated, both as 8 bytes, big-endian. So a file that was cut where a page ends, and one that was extended, is
// found out when its new last page, or its former one, is read. A page is never written a second time.
//
// Part of the on-disk format. Must not change.
const (
	pageBytes  = 4096
	pageLength = pageBytes - sealBytes // plaintext of a page
)

// batchPages is how many pages are read or written at once.
const batchPages = 32

// PageWriter writes pages. Its methods are called one at a time.
type PageWriter struct {
	w      io.Writer
	aead   cipher.AEAD
	broken broken
	place  place

	pages uint64 // sealed
	size  int64  // of the plaintext written
	ended bool
	rest  []byte // of the plaintext: at most one page, as it may be the last one
	out   []byte // sealed pages
}

// NewPages begins a new file, and writes its header.
func (r *Ring) NewPages(w io.Writer, name string) (*PageWriter, error) {
	header, aead, err := r.newHeader(Pages, name)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, err
	}
	return &PageWriter{w: w, aead: aead, rest: make([]byte, 0, pageLength)}, nil
}

// Write implements io.Writer. It writes the pages that are known not to be the last.
func (p *PageWriter) Write(b []byte) (int, error) {
	if err := p.broken.check(); err != nil {
		return 0, err
	}
	if p.ended && len(b) > 0 {
		return 0, errEnded
	}
	n := len(b)
	for len(b) > 0 {
		switch {
		case len(p.rest) == pageLength:
			if err := p.seal(p.rest, 0); err != nil {
				return 0, err
			}
			p.rest = p.rest[:0]
		case len(p.rest) == 0 && len(b) > pageLength:
			if err := p.seal(b[:pageLength], 0); err != nil {
				return 0, err
			}
			b = b[pageLength:]
		default:
			k := copy(p.rest[len(p.rest):pageLength], b)
			p.rest, b = p.rest[:len(p.rest)+k], b[k:]
		}
	}
	if err := p.flush(); err != nil {
		return 0, err
	}
	p.size += int64(n)
	return n, nil
}

// seal appends a page to out.
func (p *PageWriter) seal(b []byte, last uint64) error {
	if p.pages == MaxSeals {
		return errTooMany
	}
	p.out = p.aead.Seal(p.out, nil, b, p.place.set(p.pages, last))
	p.pages++
	if len(p.out) >= batchPages*pageBytes {
		return p.flush()
	}
	return nil
}

func (p *PageWriter) flush() error {
	if len(p.out) == 0 {
		return nil
	}
	if _, err := p.w.Write(p.out); err != nil {
		p.broken.err = err
		return err
	}
	p.out = p.out[:0]
	return nil
}

// End writes the last page. After it nothing can be written. Later calls do nothing.
func (p *PageWriter) End() error {
	if err := p.broken.check(); err != nil {
		return err
	}
	if p.ended {
		return nil
	}
	p.ended = true
	if err := p.seal(p.rest, 1); err != nil {
		p.broken.err = err
		return err
	}
	return p.flush()
}

// Size returns how many bytes were written.
func (p *PageWriter) Size() int64 { return p.size }

// Physical returns how many bytes of the file they take so far.
func (p *PageWriter) Physical() int64 {
	if p.ended {
		return PhysicalPages(p.size)
	}
	return headerBytes + int64(p.pages)*pageBytes
}

// PhysicalPages returns the size of a file with so many bytes in pages.
func PhysicalPages(size int64) int64 {
	n := max(1, (size+pageLength-1)/pageLength)
	return headerBytes + n*sealBytes + size
}

// PageSize returns how many bytes a file has in its pages. For a file that ends within its header it
// is 0, for one that ends within the tag of its last page the size without that page.
func PageSize(physical int64) int64 {
	n, last := countPages(physical)
	if n == 0 {
		return 0
	}
	return (n-1)*pageLength + max(0, last-sealBytes)
}

// countPages returns the number of pages, and the bytes of the last one, physical.
func countPages(physical int64) (n, last int64) {
	body := physical - headerBytes
	if body <= 0 {
		return 0, 0
	}
	n = (body + pageBytes - 1) / pageBytes
	return n, body - (n-1)*pageBytes
}

// PageReader reads pages.
type PageReader struct {
	f        io.ReaderAt
	aead     cipher.AEAD
	name     string
	physical int64
	size     int64
	pages    int64
}

// OpenPages opens a file with this many physical bytes. A header that is not whole, or that belongs to another
// file, is a *Damage. If the key is not to be had, the error is an errs.ErrKey.
func (r *Ring) OpenPages(f io.ReaderAt, physical int64, name string) (*PageReader, error) {
	header, err := ReadHeader(f)
	if err != nil {
		return nil, err
	}
	aead, err := r.openHeader(header, Pages, name)
	if err != nil {
		return nil, err
	}
	pages, _ := countPages(physical)
	return &PageReader{f, aead, name, physical, PageSize(physical), pages}, nil
}

// ReadHeader reads the header of a file. It is shorter if the file is.
func ReadHeader(f io.ReaderAt) ([]byte, error) {
	header := make([]byte, headerBytes)
	n, err := f.ReadAt(header, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return header[:n], nil
}

// Size returns how many bytes can be read.
func (p *PageReader) Size() int64 { return p.size }

// scratch is the memory of one read.
type scratch struct {
	buf   []byte // as it is in the file
	text  [pageLength]byte
	place place
}

var scratches = sync.Pool{New: func() any { return &scratch{buf: make([]byte, batchPages*pageBytes)} }}

// ReadAt implements io.ReaderAt. A page that is not what was written is a *Damage.
func (p *PageReader) ReadAt(b []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, errNegative
	}
	if len(b) == 0 {
		return 0, nil
	}
	if p.pages == 0 || p.physical < headerBytes+sealBytes {
		return 0, &Damage{p.name, p.physical, "the file has no last page"}
	}
	short := offset+int64(len(b)) > p.size
	if short {
		b = b[:max(0, p.size-offset)]
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for n < len(b) {
		k, err := p.readSome(s, b[n:], offset+int64(n))
		n += k
		if err != nil {
			return n, err
		}
	}
	if short {
		return n, p.end(s)
	}
	return n, nil
}

var errNegative = errors.New("negative offset")

// end returns io.EOF once it has seen that the last page is the one that was written last.
func (p *PageReader) end(s *scratch) error {
	last := p.pages - 1
	at := headerBytes + last*pageBytes
	buf := s.buf[:p.physical-at]
	if n, err := p.f.ReadAt(buf, at); n < len(buf) {
		return readError(err)
	}
	if _, err := p.open(s, s.text[:0], buf, last); err != nil {
		return err
	}
	return io.EOF
}

// readSome reads the pages from offset on that go into b, or some of them.
func (p *PageReader) readSome(s *scratch, b []byte, offset int64) (n int, err error) {
	first, skip := offset/pageLength, int(offset%pageLength)
	pages := min((skip+len(b)+pageLength-1)/pageLength, batchPages)
	at := headerBytes + first*pageBytes
	buf := s.buf[:min(int64(pages*pageBytes), p.physical-at)]
	if k, err := p.f.ReadAt(buf, at); k < len(buf) {
		return 0, readError(err)
	}
	for page := first; n < len(b) && len(buf) > 0; page++ {
		one := buf[:min(pageBytes, len(buf))]
		buf = buf[len(one):]
		if skip == 0 && len(b)-n >= len(one)-sealBytes { // all of the page goes into b
			text, err := p.open(s, b[n:n:len(b)], one, page)
			if err != nil {
				return n, err
			}
			n += len(text)
			continue
		}
		text, err := p.open(s, s.text[:0], one, page)
		if err != nil {
			return n, err
		}
		n += copy(b[n:], text[min(skip, len(text)):])
		skip = 0
	}
	return n, nil
}

// open decrypts a page into dst.
func (p *PageReader) open(s *scratch, dst, page []byte, number int64) ([]byte, error) {
	last := uint64(0)
	if number == p.pages-1 {
		last = 1
	}
	about := s.place.set(uint64(number), last)
	text, err := p.aead.Open(dst, nil, page, about)
	if err != nil {
		return nil, &Damage{p.name, headerBytes + number*pageBytes, "a page of the encrypted file is not authentic"}
	}
	return text, nil
}

// readError is the error of a read that returned too few bytes: a file that has become shorter than it was.
func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
