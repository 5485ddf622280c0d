package serve

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// Right is that of package server.
type Right uint8

const (
	NoRight    Right = iota
	ReadRight        // read documents, queries, streams, statistics
	WriteRight       // change documents, draw numbers
	AdminRight       // create and delete the database, its configuration and indexes
)

// rightNames are the names of rights in the file and on command lines.
var rightNames = []string{"none", "read", "write", "admin"}

// String returns the name of the right.
func (r Right) String() string { return rightNames[min(r, AdminRight)] }

// MarshalText implements encoding.TextMarshaler.
func (r Right) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Right) UnmarshalText(text []byte) error {
	i := slices.Index(rightNames, string(text))
	if i < 1 {
		return fmt.Errorf("server: %w: a right is read, write or admin, not %.40q", jay.ErrUsage, text)
	}
	*r = Right(i)
	return nil
}

// Rights are those of package server. "*" stands for every database.
type Rights map[string]Right

// in returns the right in the database with a key; "" stands for the server.
func (r Rights) in(key string) Right {
	right := r[everyDatabase]
	if key != "" {
		right = max(right, r[key])
	}
	return right
}

const everyDatabase = "*"

// Grant is that of package server, as the file has it.
type Grant struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero for never
	Rights  Rights    `json:"rights"`

	// Token is the SHA-256 of the token, in hexadecimal digits. The token itself is not
	// stored.
	Token string `json:"token,omitempty"`

	// Thumbprint is the SHA-256 of a client certificate, in hexadecimal digits. Subject is
	// the common name of certificates that Options.ClientCAs has signed.
	Thumbprint string `json:"thumbprint,omitempty"`
	Subject    string `json:"subject,omitempty"`
}

// Access is the file of package server.Access.
type Access struct{ data string }

// Bounds of the file.
const (
	maxGrants      = 10_000
	maxAccessBytes = 16 << 20
	maxGrantName   = 128
)

// AccessOf returns the access file of a data directory.
func AccessOf(data string) Access { return Access{data} }

func (a Access) file() string { return filepath.Join(a.data, "access.json") }

// accessFile is the content of the file.
type accessFile struct {
	Version int     `json:"version"`
	Grants  []Grant `json:"grants"`
}

// List returns all grants in the order of their creation. Without a file there are none.
func (a Access) List() ([]Grant, error) {
	if a.data == "" {
		return nil, nil // of a server without a data directory, which gives none
	}
	f, err := os.Open(a.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if info.Size() > maxAccessBytes {
		return nil, fmt.Errorf("server: %w: %s has %d bytes, and %d are the most", jay.ErrCorrupt, a.file(), info.Size(), maxAccessBytes)
	}
	var content accessFile
	decoder := json.NewDecoder(f)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&content); err != nil {
		return nil, fmt.Errorf("server: %w: %s: %w", jay.ErrCorrupt, a.file(), err)
	}
	if content.Version != 1 {
		return nil, fmt.Errorf("server: %w: %s has version %d", jay.ErrNewerFormat, a.file(), content.Version)
	}
	return content.Grants, nil
}

// CreateToken makes a token and stores its hash.
func (a Access) CreateToken(name string, rights Rights, expires time.Time) (token string, err error) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	return token, a.add(Grant{Name: name, Rights: rights, Expires: expires, Token: hashOf(token)})
}

// tokenPrefix begins every token, so that scanners for leaked secrets recognise it.
const tokenPrefix = "jay_"

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// AllowCertificate gives rights to a client certificate.
func (a Access) AllowCertificate(name string, certificate *x509.Certificate, rights Rights) error {
	return a.add(Grant{Name: name, Rights: rights, Expires: certificate.NotAfter.UTC(), Thumbprint: thumbprint(certificate)})
}

// AllowSubject gives rights to the client certificates with this common name that
// Options.ClientCAs has signed.
func (a Access) AllowSubject(name, commonName string, rights Rights) error {
	if commonName == "" {
		return fmt.Errorf("server: %w: the common name of a certificate must not be empty", jay.ErrUsage)
	}
	return a.add(Grant{Name: name, Rights: rights, Subject: commonName})
}

func thumbprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// add adds a grant.
func (a Access) add(g Grant) error {
	if g.Name == "" || len(g.Name) > maxGrantName || !isToken(g.Name) {
		return fmt.Errorf("server: %w: a name has 1 to %d ASCII letters, digits, '_', '-' and '.', not %.140q", jay.ErrUsage, maxGrantName, g.Name)
	}
	rights := make(Rights)
	for name, right := range g.Rights {
		if right < ReadRight || right > AdminRight {
			return fmt.Errorf("server: %w: a right is read, write or admin", jay.ErrUsage)
		}
		key := name
		if name != everyDatabase {
			var err error
			if key, err = CheckName(name); err != nil {
				return fmt.Errorf("server: %w: %w", jay.ErrUsage, err)
			}
		}
		rights[key] = max(rights[key], right)
	}
	if len(rights) == 0 {
		return fmt.Errorf("server: %w: %q has no rights", jay.ErrUsage, g.Name)
	}
	g.Rights, g.Created = rights, time.Now().UTC().Truncate(time.Second)
	return a.change(func(all []Grant) ([]Grant, error) {
		if slices.ContainsFunc(all, func(other Grant) bool { return strings.EqualFold(other.Name, g.Name) }) {
			return nil, fmt.Errorf("server: %w: there is a token or a certificate of the name %q", jay.ErrExists, g.Name)
		}
		if len(all) >= maxGrants {
			return nil, fmt.Errorf("server: %w: there are %d tokens and certificates, which is the most", jay.ErrTooLarge, len(all))
		}
		return append(all, g), nil
	})
}

// Withdraw ends the rights of a token or a certificate. It returns jay.ErrNotFound if there
// is none of the name.
func (a Access) Withdraw(name string) error {
	return a.change(func(all []Grant) ([]Grant, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(g Grant) bool { return strings.EqualFold(g.Name, name) })
		if len(left) == len(all) {
			return nil, fmt.Errorf("server: no token or certificate of the name %.140q: %w", name, jay.ErrNotFound)
		}
		return left, nil
	})
}

// change replaces the grants in the file with what fn returns for them, atomically.
func (a Access) change(fn func([]Grant) ([]Grant, error)) (err error) {
	if err := os.MkdirAll(a.data, 0o700); err != nil {
		return fmt.Errorf("server: %w: %w", jay.ErrNotWritable, err)
	}
	// The temporary file is a lock: only one process can create it.
	temporary := a.file() + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("server: %w: another process changes the access file; if there is none, remove %s", jay.ErrLocked, temporary)
	}
	if err != nil {
		return fmt.Errorf("server: %w: %w", jay.ErrNotWritable, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary))
		}
	}()
	all, err := a.List()
	if err == nil {
		all, err = fn(all)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "\t")
	err = encoder.Encode(accessFile{Version: 1, Grants: all})
	if err == nil {
		_, err = f.Write(text.Bytes())
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("server: %w: %w", jay.ErrNotWritable, err)
	}
	if err := os.Rename(temporary, a.file()); err != nil {
		return fmt.Errorf("server: %w: %w", jay.ErrNotWritable, err)
	}
	return syncDir(a.data)
}
