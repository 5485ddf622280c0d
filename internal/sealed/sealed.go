// Package sealed encrypts the files of a database, and authenticates what it reads
// of them. It knows byte streams and offsets; storage/lsm makes a file system of it.
//
// A [Ring] has the user's encryption keys and the ID of one database. Each file has a
// random key of its own, the file key, which the file's header has in encrypted form:
// see header.go. What follows the header has one of three layouts:
//
//   - pages, for files that are written once and read anywhere, such as tables: pages.go;
//   - frames, for files that grow and are synced in between, such as logs: frames.go;
//   - slots, for the few records that are overwritten where they are: slots.go.
//
// A stream, such as a backup, belongs to no directory: stream.go.
//
// All encryption is AES-256-GCM with a random nonce of 96 bits, by
// [cipher.NewGCMWithRandomNonce]. A file key encrypts at most [MaxSeals] parts of one
// file. What is authenticated with a part says where in its file it belongs. So bytes that
// were changed, and parts that were moved within a file or to another one, are never
// returned as data: pages and headers become a [Damage], frames and slots read as zeros, as if they had
// never been written.
//
// Offsets and sizes are those of the plaintext unless a name says "physical". Ring is safe
// for concurrent use, and so are ReadAt and Size of the readers.
package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/jaydb/jay/internal/errs"
)

// KeyBytes is the length of an encryption key, and of a file key.
// Part of the on-disk format. Must not change.
const KeyBytes = 32

// sealBytes is by how much sealed bytes are longer: a nonce of 12 bytes in front, and a tag of 16.
// Part of the on-disk format. Must not change.
const sealBytes = nonceBytes + 16

// nonceBytes is the length of a nonce.
// Part of the on-disk format. Must not change.
const nonceBytes = 12

// MaxSeals is how many parts one file key encrypts at most. With so many random nonces, two of them
// are the same with a probability of less than 2^-32.
const MaxSeals = 1 << 32

// errTooMany is the error of a file that would have more parts.
var errTooMany = fmt.Errorf("the file has %d encrypted parts, and its key must not encrypt more", uint64(MaxSeals))

// Damage is a place in a file that does not hold what was written there.
type Damage struct {
	Name    string // of the file, without its directory
	Offset  int64  // in the file, physical
	Problem string
}

// Error names the file, the place and the problem.
func (d *Damage) Error() string {
	return fmt.Sprintf("%s at byte %d: %s", d.Name, d.Offset, d.Problem)
}

// Unwrap returns errs.ErrCorrupt.
func (d *Damage) Unwrap() error { return errs.ErrCorrupt }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newFileKey returns a random file key.
func newFileKey() []byte {
	key := make([]byte, KeyBytes)
	_, _ = rand.Read(key) // which never fails: it ends the program instead
	return key
}

// newAEAD returns the cipher of a key.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// place is what is authenticated with a part of a file: two numbers that say where it belongs.
type place [16]byte

func (p *place) set(a, b uint64) []byte {
	binary.BigEndian.PutUint64(p[:], a)
	binary.BigEndian.PutUint64(p[8:], b)
	return p[:]
}

// broken is a writer's first error. Nothing is written after it: what the failed write has left in the file
// is not known.
type broken struct{ err error }

func (b *broken) check() error {
	if b.err != nil {
		return fmt.Errorf("an earlier write to the file has failed: %w", b.err)
	}
	return nil
}

// errEnded is the error of a write to pages that have been ended.
var errEnded = errors.New("the last page of the encrypted file was written already, and pages are written once")
