// Package keys has encryption keys for jay.Options.EncryptionKeys that come from a file or an environment variable, or are given by the
// program. To ask a key management service, implement jay.EncryptionKeys yourself, which takes two methods.
//
// Keys are written as text, one key per line: its ID, a space, and 32 random bytes in base64. The last line is the newest key. Lines
// that are empty or begin with # say nothing.
//
//	# the keys of shop.db
//	2026-01 pAEFdf3UQ8yvp1wbGGBpCeKZ2MUHznTW4cvvYiDLQWA=
//	2026-07 b0J7nSjyzLVpnEuYVAYBSYrTxO6WFxHkaTKLVVBBjLg=
//
// To change the key, append a line, and call Rotate while the database is open, or jay.RotateDir while it is not. Keep the older lines until no file needs them
// (Stats.Engine.OlderKeys), and for as long as a copy of the directory or a backup does.
//
// All values of this package are safe for concurrent use.
package keys

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jaydb/jay"
)

// SecretBytes is the length of the secret of a key.
const SecretBytes = 32

// Bounds of what is read: see docs/limits.md.
const (
	maxIDBytes = 64
	maxBytes   = 64 << 10 // of a file or a variable
)

// Error says what is wrong with keys, and what to do. errors.Is(err, jay.ErrKey) is true.
type Error struct {
	Source  string // path of the file, or name of the variable
	Line    int    // from 1; 0 if all of it is meant
	Problem string // what is wrong; it never has a secret in it
	Remedy  string // what to do
	Cause   error  // or nil
}

// Error names the source, the line, the problem and what to do.
func (e *Error) Error() string {
	text := e.Source
	if e.Line > 0 {
		text += fmt.Sprintf(", line %d", e.Line)
	}
	text += ": " + e.Problem
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	if e.Remedy != "" {
		text += ": " + e.Remedy
	}
	return text
}

// Is makes errors.Is find jay.ErrKey.
func (e *Error) Is(target error) bool { return target == jay.ErrKey }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// New returns a new key with a random secret. The ID has 1 to 64 printable ASCII characters without spaces, and does not begin with #.
func New(id string) (jay.EncryptionKey, error) {
	if problem := idProblem(id); problem != "" {
		return jay.EncryptionKey{}, &Error{Source: fmt.Sprintf("%q", id), Problem: problem}
	}
	secret := make([]byte, SecretBytes)
	_, _ = rand.Read(secret) // which never fails: it ends the program instead
	return jay.EncryptionKey{ID: id, Secret: secret}, nil
}

// Line returns a key as a line of a file, which ends with a line break. Danger: it has the secret.
func Line(k jay.EncryptionKey) string {
	return k.ID + " " + base64.StdEncoding.EncodeToString(k.Secret) + "\n"
}

// idProblem says what is wrong with the ID of a key, or returns "".
func idProblem(id string) string {
	if id == "" || len(id) > maxIDBytes {
		return fmt.Sprintf("the ID of a key has 1 to %d characters, and this one has %d", maxIDBytes, len(id))
	}
	if id[0] == '#' {
		return "the ID of a key does not begin with #"
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return "the ID of a key has printable ASCII characters only, and no spaces"
		}
	}
	return ""
}

// Of returns the given keys, the newest one first. They must not be changed afterwards.
func Of(newest jay.EncryptionKey, older ...jay.EncryptionKey) jay.EncryptionKeys {
	return source{"the program's keys", func() ([]jay.EncryptionKey, error) {
		all := make([]jay.EncryptionKey, 0, 1+len(older))
		for i := len(older) - 1; i >= 0; i-- {
			all = append(all, older[i])
		}
		return append(all, newest), nil
	}}
}

// File returns the keys in a file. It is read when a key is asked for, and not before: a missing file is an error of jay.Open. So a line
// that was appended counts from the next Open on.
//
// The file must be a regular one of at most 64 KiB, which other users of the machine can neither read nor change, and its group can at most read: mode 0640
// or less. Otherwise the error is an *Error, which says what to do. Windows has access lists of its own: the mode is not looked at there.
func File(path string) jay.EncryptionKeys {
	return source{path, func() ([]jay.EncryptionKey, error) { return readFile(path) }}
}

// Env returns the keys in an environment variable, in the form of a file. Between keys, a semicolon can stand in place of a line break.
//
// Danger: on many systems, other processes of the same user can read the environment.
func Env(name string) jay.EncryptionKeys {
	variable := "$" + name
	return source{variable, func() ([]jay.EncryptionKey, error) {
		text, found := os.LookupEnv(name)
		if !found {
			return nil, &Error{Source: variable, Problem: "the variable is not set", Remedy: "set it to an ID, a space and 32 bytes in base64"}
		}
		return parse(variable, []byte(strings.ReplaceAll(text, ";", "\n")))
	}}
}

// source are keys that are read when one is asked for.
type source struct {
	name string
	read func() ([]jay.EncryptionKey, error) // the newest last; at least one
}

// Newest implements jay.EncryptionKeys.
func (s source) Newest() (jay.EncryptionKey, error) {
	all, err := s.read()
	if err != nil {
		return jay.EncryptionKey{}, err
	}
	return all[len(all)-1], nil
}

// Key implements jay.EncryptionKeys.
func (s source) Key(id string) (jay.EncryptionKey, error) {
	all, err := s.read()
	if err != nil {
		return jay.EncryptionKey{}, err
	}
	for _, k := range all {
		if k.ID == id {
			return k, nil
		}
	}
	return jay.EncryptionKey{}, &Error{Source: s.name, Problem: fmt.Sprintf("it has no key %q", id), Remedy: "add the line of that key again: older keys are needed until no file has them"}
}

func readFile(path string) ([]jay.EncryptionKey, error) {
	text, err := secretFile{path, "the file of keys"}.read(maxBytes + 1)
	if err != nil {
		return nil, err
	}
	return parse(path, text)
}

// ReadSecret reads a file with a secret of another form than a file of keys, such as a passphrase. The file must be a regular one of at most so many bytes, with the
// mode that File asks for. The error is an *Error, which names the path and never has anything of the file in it.
func ReadSecret(path string, most int) ([]byte, error) {
	text, err := secretFile{path, "the file"}.read(most + 1)
	if err == nil && len(text) > most {
		return nil, &Error{Source: path, Problem: fmt.Sprintf("it has more than %d bytes", most)}
	}
	return text, err
}

// secretFile is a file that only its owner may read.
type secretFile struct {
	path string
	what string // as messages call it
}

// read reads at most so many bytes.
func (s secretFile) read(most int) ([]byte, error) {
	unreadable := func(err error) error { return &Error{Source: s.path, Problem: s.what + " cannot be read", Cause: err} }
	info, err := os.Stat(s.path) // before it is opened: a pipe would wait
	if err != nil {
		return nil, unreadable(err)
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return nil, &Error{Source: s.path, Problem: "it is no regular file"}
	case modes && mode.Perm()&0o027 != 0:
		return nil, &Error{Source: s.path, Problem: fmt.Sprintf("others can read or change %s: its mode is %04o", s.what, mode.Perm()), Remedy: "chmod 600 " + info.Name()}
	}
	f, err := os.Open(s.path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(most)))
	if err != nil {
		return nil, unreadable(err)
	}
	return text, nil
}

// parse reads keys. Messages never show what may be a secret.
func parse(source string, text []byte) (all []jay.EncryptionKey, err error) {
	if len(text) > maxBytes {
		return nil, &Error{Source: source, Problem: fmt.Sprintf("it has more than %d bytes", maxBytes), Remedy: "a line for each key is enough"}
	}
	seen := make(map[string]bool)
	number := 0
	for line := range bytes.Lines(text) {
		number++
		fields := bytes.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		wrong := func(problem, remedy string) error {
			return &Error{Source: source, Line: number, Problem: problem, Remedy: remedy}
		}
		if len(fields) != 2 {
			return nil, wrong(fmt.Sprintf("a key is an ID, a space and a secret, and this line has %d words", len(fields)), "make a key with jay key new")
		}
		id := string(fields[0])
		if problem := idProblem(id); problem != "" {
			return nil, wrong(problem, "give it another one, unless a file has it already")
		}
		secret, err := base64.StdEncoding.Strict().DecodeString(string(fields[1]))
		if err != nil {
			return nil, wrong(fmt.Sprintf("the secret of the key %q is not base64", id), "it is 44 characters long, the last one =; make a key with jay key new")
		}
		if len(secret) != SecretBytes {
			return nil, wrong(fmt.Sprintf("the secret of the key %q has %d bytes, and must have %d", id, len(secret), SecretBytes), "make a key with jay key new")
		}
		if seen[id] {
			return nil, wrong(fmt.Sprintf("the key %q is there twice", id), "give each key an ID of its own")
		}
		seen[id] = true
		all = append(all, jay.EncryptionKey{ID: id, Secret: secret})
	}
	if len(all) == 0 {
		return nil, &Error{Source: source, Problem: "it has no key", Remedy: "make one with jay key new"}
	}
	return all, nil
}
