package lsm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
)

// convertFile is there while a directory is converted. It says to what: convertedPlain or convertedEncrypted. No engine
// opens the directory until a conversion to the same has ended.
// Part of the on-disk format. Must not change.
const convertFile = "JAY.convert"

// What a conversion makes of a directory. Part of the on-disk format. Must not change.
const (
	convertedPlain     = "plain\n"
	convertedEncrypted = "encrypted\n"
)

// unlocking decides whether a directory is encrypted, and opens it with its keys.
type unlocking struct {
	fs   *sealFS
	dir  string
	keys sealed.Keys // nil for none
}

// open opens the directory with its keys, or makes a new one encrypted, and notes the features that
// the database uses. It returns what the format file says, or should say.
func (u unlocking) open(format fileFormat, uses *uses, accept func(*storage.DamageError)) (fileFormat, error) {
	bit := encryptedBit(uses.known)
	encrypted := u.keys != nil
	var err error
	if format.number == 0 {
		err = u.create(uses.known)
	} else {
		encrypted, err = u.existing(format, uses.known)
	}
	if damage := (*storage.DamageError)(nil); encrypted && errors.As(err, &damage) && damage.File == formatFileName {
		err = acceptDamage(err, accept)
		format.number = damagedFormat // is written anew
	}
	if err == nil && encrypted {
		err = u.checkTables()
	}
	if err != nil {
		return format, err
	}
	if format.number == damagedFormat {
		format.features = uses.known.All() // what it uses is not known
	}
	format.features &^= bit
	if encrypted {
		uses.files = bit
	}
	uses.features.Store(uint64(format.features))
	return format, nil
}

// existing opens a database whose format file says, or does not say, that it is encrypted. It returns whether it is.
// A database with keys that is not encrypted, and one without keys that is, are a storage.ErrKey.
func (u unlocking) existing(format fileFormat, known storage.Features) (encrypted bool, err error) {
	if target, err := readConversion(u.fs.FS, u.dir); err != nil {
		return false, err
	} else if target != "" {
		return false, fmt.Errorf("%w: its conversion to %s has begun and has not ended: call it again, and it goes on (jay encrypt, jay decrypt)", storage.ErrKey, strings.TrimSpace(target))
	}
	says := format.number != damagedFormat && format.features&encryptedBit(known) != 0
	identity, err := readIdentity(u.fs.FS, u.dir)
	found := err == nil
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return false, err
	case !found && !says && u.keys == nil:
		return false, nil
	case !found && !says:
		return false, fmt.Errorf("%w: the database is not encrypted, and keys were given", storage.ErrKey)
	case u.keys == nil:
		return true, fmt.Errorf("%w: the database is encrypted, and no keys were given", storage.ErrKey)
	case !found:
		return true, u.damage(-1, "the file is missing")
	}
	u.fs.ring, err = sealed.OpenIdentity(identity, identityFile, u.keys)
	var damage *sealed.Damage
	if errors.As(err, &damage) {
		return true, u.damage(damage.Offset, damage.Problem)
	}
	if err != nil {
		return true, err
	}
	if !says && format.number != damagedFormat {
		return true, &storage.DamageError{Dir: u.dir, File: formatFileName, Offset: 0, Problem: "it does not say that the database is encrypted", Loss: lossUntouched}
	}
	return true, nil
}

// checkTables returns storage.ErrKey if the key of a table is missing or wrong. It reads the header of each table. Pebble opens all other files at Open, but a
// table only at its first read, which may be days later. Damage to a table is left to that read.
func (u unlocking) checkTables() error {
	names, err := u.fs.FS.List(u.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if kind, _ := parseName(name); !isTable(kind) {
			continue
		}
		if err := u.checkTable(name); errors.Is(err, storage.ErrKey) {
			return err
		}
	}
	return nil
}

// checkTable opens the header of a table.
func (u unlocking) checkTable(name string) error {
	f, err := openRegular(u.fs.FS, u.fs.PathJoin(u.dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	header, err := sealed.ReadHeader(f)
	if err != nil {
		return err
	}
	_, err = u.fs.ring.WrappedByNewest(header, layoutOfFile(name), name)
	return err
}

// damage is the error of an identity that is missing or damaged.
func (u unlocking) damage(offset int64, problem string) error {
	return &storage.DamageError{Dir: u.dir, File: identityFile, Offset: offset, Problem: problem, Loss: lossAll,
		Remedy: "copy " + identityFile + " from any copy of this directory: it never changes but when keys are rotated"}
}

// create makes a new database an encrypted one, if there are keys. What an earlier creation has left is replaced.
func (u unlocking) create(known storage.Features) error {
	if u.keys == nil {
		err := u.fs.FS.Remove(u.fs.PathJoin(u.dir, identityFile))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	if encryptedBit(known) == 0 {
		return &storage.FormatError{What: "database", Found: storage.FeatureEncrypted.Format, Newest: known.Newest(), Features: []string{storage.FeatureEncrypted.Name}}
	}
	ring, err := sealed.NewRing(sealed.NewDatabaseID(), u.keys)
	if err != nil {
		return err
	}
	if err := writeIdentity(u.fs.FS, u.dir, ring); err != nil {
		return err
	}
	u.fs.ring = ring
	return nil
}

// encryptedBit returns the set that has the feature of encrypted databases; nothing if it is not known.
func encryptedBit(known storage.Features) storage.FeatureSet {
	for i, f := range known {
		if f == storage.FeatureEncrypted {
			return 1 << i
		}
	}
	return 0
}

// Encryption says whether the database in a directory is encrypted.
type Encryption struct {
	Encrypted  bool   // the format file, or the identity file, says so
	Converting string // the target of an unfinished Convert, "plain" or "encrypted"; "" if there is none

	// Key is the ID of the key that Open needs. It is "" for a database that is not encrypted, and if
	// the identity file is missing or damaged.
	Key string
}

// ReadEncryption reads whether the database in dir is encrypted. It needs no key, and changes
// nothing. A nil file system means the file system of the machine. The errors are those of Open,
// ErrNoDatabase among them.
func ReadEncryption(fs FS, dir string) (found Encryption, err error) {
	if fs == nil {
		fs = vfs.Default
	}
	known := storage.Features(storage.AllFeatures[:])
	format, err := checkFormatFile(fs, dir, known)
	if err == nil && format.number == 0 {
		err = storage.ErrNoDatabase
	}
	if err != nil && format.number != damagedFormat {
		return found, openError(err)
	}
	target, err := readConversion(fs, dir)
	if err != nil {
		return found, openError(err)
	}
	found.Converting = strings.TrimSpace(target)
	found.Encrypted = format.number != damagedFormat && format.features&encryptedBit(known) != 0
	if identity, err := readIdentity(fs, dir); err == nil {
		found.Encrypted = true
		found.Key = sealed.IdentityKey(identity)
	} else if !errors.Is(err, os.ErrNotExist) {
		return found, openError(err)
	}
	return found, nil
}

// maxIdentity is how much of an identity is read: more than it has.
const maxIdentity = 4 << 10

func readIdentity(fs vfs.FS, dir string) ([]byte, error) {
	f, err := openRegular(fs, fs.PathJoin(dir, identityFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxIdentity))
}

// writeIdentity makes the identity file, or replaces it, durably.
func writeIdentity(fs vfs.FS, dir string, ring *sealed.Ring) error {
	identity, err := ring.Identity()
	if err != nil {
		return err
	}
	return replaceFile(fs, dir, identityFile, identity)
}

// readConversion returns what a directory is being converted to, or "".
func readConversion(fs vfs.FS, path string) (string, error) {
	f, err := openRegular(fs, fs.PathJoin(path, convertFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIdentity))
	if err == nil && string(text) != convertedPlain && string(text) != convertedEncrypted {
		err = &storage.DamageError{Dir: path, File: convertFile, Offset: 0, Problem: "it does not say to what the database is converted", Loss: lossAll}
	}
	return string(text), err
}
