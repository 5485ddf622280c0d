package sealed

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/jaydb/jay/internal/errs"
)

// Slots are for a few records that are written again and again where they are. Each slot has a header of its own, so
// that damage to one is none to another, and an open file has one key for all that it writes, until its ring has another encryption key:
//
//	offset size
//	     0  512  header
//	   512    4  length of the record, big-endian
//	   516    n  nonce (12), encrypted record, tag (16)
//
// The number of the slot, from 0 on, and the length are authenticated with the record, both as 8 bytes, big-endian. A record
// is written by one write of the file. A slot that was not written whole, or is not authentic, reads as zeros.
//
// Part of the on-disk format. Must not change.
const (
	recordLength = headerBytes
	recordStart  = headerBytes + 4
)

// SlotFile reads and writes slots. Its methods are called one at a time, but for ReadAt, which may be called at any time.
type SlotFile struct {
	ring   *Ring
	f      io.ReaderAt
	w      io.WriterAt // nil of a file that is only read
	name   string
	slots  int
	size   int // of a slot, in the file and in the plaintext
	header []byte
	keyID  string      // of the key of the header
	aead   cipher.AEAD // of the header
	writes uint64
	out    []byte
}

// NewSlots returns the slots of a file that is there, or is empty. Without w they can only be read. It reads and writes nothing yet.
func (r *Ring) NewSlots(f io.ReaderAt, w io.WriterAt, name string, slots, size int) *SlotFile {
	return &SlotFile{ring: r, f: f, w: w, name: name, slots: slots, size: size}
}

// MaxRecord returns how many bytes a record has at most.
func (s *SlotFile) MaxRecord() int { return s.size - recordStart - sealBytes }

// start makes the file key of what is written from now on.
func (s *SlotFile) start() error {
	header, aead, err := s.ring.newHeader(Slots, s.name)
	if err != nil {
		return err
	}
	id, _, _ := parseSlot(header[slotStart : slotStart+slotBytes])
	s.header, s.keyID, s.aead, s.writes = header, id, aead, 0
	return nil
}

// WriteAt implements io.WriterAt. It writes one record to the slot that begins at offset, or zeros to several slots.
func (s *SlotFile) WriteAt(b []byte, offset int64) (int, error) {
	i := int(offset / int64(s.size))
	switch {
	case s.w == nil:
		return 0, errors.New("the file is open to be read only")
	case offset < 0 || offset%int64(s.size) != 0 || i >= s.slots:
		return 0, fmt.Errorf("%s: no slot of %d bytes begins at byte %d", s.name, s.size, offset)
	case allZero(b) && i*s.size+len(b) <= s.slots*s.size:
		return s.w.WriteAt(b, offset)
	case len(b) > s.MaxRecord():
		return 0, fmt.Errorf("%s: a record has %d bytes; a slot takes %d", s.name, len(b), s.MaxRecord())
	}
	if s.header == nil || s.writes == MaxSeals || s.keyID != s.ring.current().ID {
		if err := s.start(); err != nil {
			return 0, err
		}
	}
	s.writes++
	var place place
	s.out = append(s.out[:0], s.header...)
	s.out = binary.BigEndian.AppendUint32(s.out, uint32(len(b)))
	s.out = s.aead.Seal(s.out, nil, b, place.set(uint64(i), uint64(len(b))))
	if _, err := s.w.WriteAt(s.out, offset); err != nil {
		return 0, err
	}
	return len(b), nil
}

// ReadAt implements io.ReaderAt. If the key of a slot is not to be had, the error is an errs.ErrKey.
func (s *SlotFile) ReadAt(b []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, errNegative
	}
	all, err := s.read()
	if err != nil {
		return 0, err
	}
	n = copy(b, all[min(offset, int64(len(all))):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// read returns all slots, as far as the file goes.
func (s *SlotFile) read() ([]byte, error) {
	physical := make([]byte, s.slots*s.size)
	n, err := s.f.ReadAt(physical, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	all := make([]byte, n)
	for i := range s.slots {
		from, to := min(n, i*s.size), min(n, (i+1)*s.size)
		record, err := s.open(i, physical[from:to])
		if err != nil {
			return nil, err
		}
		copy(all[from:to], record)
	}
	return all, nil
}

// ByNewest reports whether all slots that are whole have the newest key.
func (s *SlotFile) ByNewest() (bool, error) {
	physical := make([]byte, s.slots*s.size)
	n, err := s.f.ReadAt(physical, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	for i := 0; i+1 <= s.slots && i*s.size+headerBytes <= n; i++ {
		header := physical[i*s.size:][:headerBytes]
		if newest, err := s.ring.WrappedByNewest(header, Slots, s.name); err == nil && !newest || errors.Is(err, errs.ErrKey) {
			return false, nil
		}
	}
	return true, nil
}

// open returns the record in a slot, or nil.
func (s *SlotFile) open(i int, slot []byte) ([]byte, error) {
	if len(slot) < recordStart+sealBytes {
		return nil, nil
	}
	aead, err := s.ring.openHeader(slot[:headerBytes], Slots, s.name)
	if errors.As(err, new(*Damage)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(slot[recordLength:])
	if length > uint32(len(slot)-recordStart-sealBytes) {
		return nil, nil
	}
	var place place
	record, err := aead.Open(nil, nil, slot[recordStart:recordStart+length+sealBytes], place.set(uint64(i), uint64(length)))
	if err != nil {
		return nil, nil
	}
	return record, nil
}
