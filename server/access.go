package server

import (
	"crypto/x509"
	"time"

	"github.com/jaydb/jay/server/internal/serve"
)

// Right is what a token or a certificate may do in a database. Each right includes the rights
// before it.
type Right uint8

const (
	NoRight    Right = iota
	ReadRight        // read documents, queries, streams, statistics
	WriteRight       // change documents, draw numbers
	AdminRight       // create and delete the database, its configuration and indexes
)

// String returns the name of the right.
func (r Right) String() string { return serve.Right(r).String() }

// MarshalText implements encoding.TextMarshaler.
func (r Right) MarshalText() ([]byte, error) { return serve.Right(r).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Right) UnmarshalText(text []byte) error { return (*serve.Right)(r).UnmarshalText(text) }

// Rights maps names of databases to rights; "*" stands for all databases, future ones included.
// Names are compared without regard to case. If the name and "*" both apply, the greater right
// counts. AdminRight for "*" is the right to administer the server.
type Rights map[string]Right

// inner returns the rights as package serve has them.
func (r Rights) inner() serve.Rights {
	out := make(serve.Rights, len(r))
	for name, right := range r {
		out[name] = serve.Right(right)
	}
	return out
}

// Grant gives rights to a token or a client certificate. List shows grants by name, and Withdraw
// takes the name.
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

// Access is the file access.json of a data directory. It lists the tokens and certificates that
// have rights there. A running server notices changes of the file within a second. Within seconds
// it ends streams and sockets whose senders have lost their rights. Several processes may call the
// methods at the same time: changes are made one at a time.
type Access struct{ inner serve.Access }

// AccessOf returns the access file of a data directory.
func AccessOf(data string) Access { return Access{serve.AccessOf(data)} }

// List returns all grants in the order of their creation. It returns none if there is no file.
func (a Access) List() ([]Grant, error) {
	all, err := a.inner.List()
	var out []Grant
	for _, g := range all {
		rights := make(Rights, len(g.Rights))
		for name, right := range g.Rights {
			rights[name] = Right(right)
		}
		out = append(out, Grant{Name: g.Name, Created: g.Created, Expires: g.Expires, Rights: rights, Token: g.Token, Thumbprint: g.Thumbprint, Subject: g.Subject})
	}
	return out, err
}

// CreateToken creates a token with these rights and returns it. Only the hash of the token is
// stored, so the token cannot be shown again. A token with a zero time does not expire.
func (a Access) CreateToken(name string, rights Rights, expires time.Time) (token string, err error) {
	return a.inner.CreateToken(name, rights.inner(), expires)
}

// AllowCertificate gives rights to a client certificate.
func (a Access) AllowCertificate(name string, certificate *x509.Certificate, rights Rights) error {
	return a.inner.AllowCertificate(name, certificate, rights.inner())
}

// AllowSubject gives rights to client certificates that have this common name and are signed by one
// of Options.ClientCAs.
func (a Access) AllowSubject(name, commonName string, rights Rights) error {
	return a.inner.AllowSubject(name, commonName, rights.inner())
}

// Withdraw ends the rights of a token or a certificate. It returns jay.ErrNotFound if no grant has
// the name.
func (a Access) Withdraw(name string) error { return a.inner.Withdraw(name) }
