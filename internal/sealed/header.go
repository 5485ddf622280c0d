package sealed

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/jaydb/jay/internal/errs"
)

// A file begins with a header. It has two slots, since a file may be about to get another name: see
// Ring.Rename. All numbers are big-endian:
//
//	offset size
//	     0    8  magic "JAYSEAL" and version 1
//	     8    1  layout: 1 pages, 2 frames, 3 slots
//	     9    3  zeros
//	    12   16  ID of the database
//	    28    4  CRC-32C of these 28 bytes
//	    32  240  slot
//	   272  240  slot, or zeros
//
// A slot has the file key, wrapped for one name of the file:
//
//	  0    1  length of the key ID
//	  1   64  ID of the encryption key, and zeros
//	 65    1  length of the name
//	 66   64  name of the file, without its directory, and zeros
//	130   92  file key, wrapped: salt (32), nonce (12), encrypted key (32), tag (16)
//	222   14  zeros
//	236    4  CRC-32C of these 236 bytes
//
// The wrapping key is HKDF-SHA256 of the encryption key, with the salt and wrapInfo. The first 28 bytes of the file
// and the first 130 of the slot are authenticated with the wrapped key. So a file with the name of another,
// one of another database and one with another layout are found out. The
// checksums tell damage from a key that is missing.
//
// Part of the on-disk format. Must not change.
const (
	headerMagic = "JAYSEAL\x01"
	headerFixed = 28
	headerBytes = 512

	slotStart = 32
	slotBytes = 240
	slotAbout = 130
	slotZeros = slotAbout + wrappedBytes
	slotSum   = slotBytes - 4
)

// MaxNameBytes is the longest name of a file, in bytes.
// Part of the on-disk format. Must not change.
const MaxNameBytes = 64

// Layout says what follows the header of a file.
type Layout byte

// The layouts. Part of the on-disk format. Must not change.
const (
	Pages  Layout = 1
	Frames Layout = 2
	Slots  Layout = 3
)

// makeSlot returns a slot with a wrapped file key. about are the bytes of the file that are authenticated with it.
func makeSlot(k Key, fileKey, about []byte, name string) ([]byte, error) {
	if name == "" || len(name) > MaxNameBytes {
		return nil, fmt.Errorf("the name %q of an encrypted file has %d bytes; it must have 1 to %d", name, len(name), MaxNameBytes)
	}
	slot := make([]byte, slotBytes)
	slot[0] = byte(len(k.ID))
	copy(slot[1:], k.ID)
	slot[1+MaxIDBytes] = byte(len(name))
	copy(slot[2+MaxIDBytes:], name)
	wrapped, err := wrap(k, fileKey, slotContext(about, slot))
	if err != nil {
		return nil, err
	}
	copy(slot[slotAbout:], wrapped)
	binary.BigEndian.PutUint32(slot[slotSum:], crc32.Checksum(slot[:slotSum], castagnoli))
	return slot, nil
}

// slotContext returns what is authenticated with the key in a slot.
func slotContext(about, slot []byte) []byte {
	return append(append([]byte(nil), about...), slot[:slotAbout]...)
}

// parseSlot returns what a slot says in clear. It returns false if the slot is not whole.
func parseSlot(slot []byte) (id, name string, ok bool) {
	n, m := int(slot[0]), int(slot[1+MaxIDBytes])
	if n == 0 || n > MaxIDBytes || m == 0 || m > MaxNameBytes || binary.BigEndian.Uint32(slot[slotSum:]) != crc32.Checksum(slot[:slotSum], castagnoli) {
		return "", "", false
	}
	return string(slot[1 : 1+n]), string(slot[2+MaxIDBytes : 2+MaxIDBytes+m]), true
}

// openSlot returns the file key in a slot, or false if the key does not open it.
func openSlot(k Key, slot, about []byte) (fileKey []byte, ok bool, err error) {
	return unwrap(k, slot[slotAbout:slotZeros], slotContext(about, slot))
}

// fixedHeader returns the first bytes of a header.
func (r *Ring) fixedHeader(l Layout) []byte {
	b := append(make([]byte, 0, headerBytes), headerMagic...)
	b = append(b, byte(l), 0, 0, 0)
	return append(b, r.database[:]...)
}

// newHeader returns the header of a new file, and the cipher of its key.
func (r *Ring) newHeader(l Layout, name string) ([]byte, cipher.AEAD, error) {
	fileKey := newFileKey()
	aead, err := newAEAD(fileKey)
	if err != nil {
		return nil, nil, err
	}
	b := r.fixedHeader(l)
	slot, err := makeSlot(r.current(), fileKey, b, name)
	if err != nil {
		return nil, nil, err
	}
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	b = append(b, slot...)
	return b[:headerBytes], aead, nil
}

// openHeader returns the cipher of a file's key. A header that is not whole, or that belongs to another file, is a
// *Damage. If the key cannot be had, or is another one, the error is an errs.ErrKey.
func (r *Ring) openHeader(header []byte, l Layout, name string) (cipher.AEAD, error) {
	fileKey, _, err := r.readHeader(header, l, name)
	if err != nil {
		return nil, err
	}
	return newAEAD(fileKey)
}

// readHeader is openHeader. It also returns which slot has the name.
func (r *Ring) readHeader(header []byte, l Layout, name string) (fileKey []byte, slot int, err error) {
	damage := func(offset int, format string, args ...any) error {
		return &Damage{name, int64(offset), fmt.Sprintf(format, args...)}
	}
	if len(header) < headerBytes {
		return nil, 0, damage(len(header), "the file ends within its header")
	}
	fixed := header[:headerFixed]
	switch {
	case string(fixed[:len(headerMagic)]) != headerMagic:
		return nil, 0, damage(0, "the file does not begin as an encrypted file does")
	case crc32.Checksum(fixed, castagnoli) != binary.BigEndian.Uint32(header[headerFixed:]):
		return nil, 0, damage(0, "the header does not have its checksum")
	case DatabaseID(fixed[12:]) != r.database:
		return nil, 0, damage(12, "the file belongs to another database")
	case fixed[8] != byte(l) || fixed[9]|fixed[10]|fixed[11] != 0:
		return nil, 0, damage(8, "the file has the layout %d, and not %d", fixed[8], l)
	}

	found, names, ids := -1, [2]string{}, [2]string{}
	for i := range names {
		at := slotStart + i*slotBytes
		s := header[at : at+slotBytes]
		if i > 0 && allZero(s) {
			break
		}
		var ok bool
		if ids[i], names[i], ok = parseSlot(s); !ok {
			return nil, 0, damage(at, "the wrapped key does not have its checksum")
		}
		if names[i] == name {
			found = i
		}
	}
	if found < 0 {
		return nil, 0, damage(slotStart, "the file was written as %s", names[0])
	}
	key, err := r.key(ids[found])
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	at := slotStart + found*slotBytes
	fileKey, ok, err := openSlot(key, header[at:at+slotBytes], fixed)
	if err == nil && !ok { // whatever damage may do was found above, by a checksum, the name or the database
		err = fmt.Errorf("%w: %s: the key %q is not the one that the file was encrypted with", errs.ErrKey, name, ids[found])
	}
	return fileKey, found, err
}

// Rename returns what must be written into a file, and where, before it gets another name, as a hard link or by a
// rename. Under its old name the file stays readable. The bytes are nil if the two names are the same.
//
// The key is wrapped with the newest encryption key.
func (r *Ring) Rename(header []byte, l Layout, name, newName string) (offset int64, slot []byte, err error) {
	fileKey, i, err := r.readHeader(header, l, name)
	if err != nil || name == newName {
		return 0, nil, err
	}
	if slot, err = makeSlot(r.current(), fileKey, header[:headerFixed], newName); err != nil {
		return 0, nil, err
	}
	return int64(slotStart + (1-i)*slotBytes), slot, nil
}

// WrappedByNewest reports whether a file's key is wrapped by the newest encryption key only.
func (r *Ring) WrappedByNewest(header []byte, l Layout, name string) (bool, error) {
	if _, _, err := r.readHeader(header, l, name); err != nil {
		return false, err
	}
	newest := r.current().ID
	for i := range 2 {
		at := slotStart + i*slotBytes
		if id, _, ok := parseSlot(header[at : at+slotBytes]); ok && id != newest {
			return false, nil
		}
	}
	return true, nil
}

// IsHeader reports whether a file begins as encrypted files do.
func IsHeader(header []byte) bool { return strings.HasPrefix(string(header), headerMagic) }

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
