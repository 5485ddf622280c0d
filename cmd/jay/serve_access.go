package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// serveCommands runs the server, or manages the tokens and certificates of a data
// directory.
type serveCommands struct {
	Run         serveCommand       `cmd:"" default:"withargs" help:"Serve; what jay serve does without a subcommand."`
	Token       tokenCommand       `cmd:"" help:"Create, list and withdraw tokens."`
	Certificate certificateCommand `cmd:"" help:"Give rights to client certificates."`
}

// Help is shown by jay serve --help.
func (*serveCommands) Help() string {
	return `jay serve is jay serve run, whose flags are shown by jay serve run --help.

Examples:

    jay serve --data ./data
    jay serve token create ann --data ./data --right '*=admin'
    jay serve --data ./data --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem`
}

// tokenCommand manages the tokens of a data directory.
type tokenCommand struct {
	Create   tokenCreateCommand   `cmd:"" help:"Create a token and print it, once."`
	List     tokenListCommand     `cmd:"" help:"List tokens and certificates with their rights."`
	Withdraw tokenWithdrawCommand `cmd:"" help:"Withdraw a token or a certificate."`
}

// accessFlags select the data directory.
type accessFlags struct {
	Data string `placeholder:"DIR" default:"./jay-data" help:"Directory of the databases. The default is ./jay-data."`
}

// open returns the access file, to be changed or only to be read.
func (f *accessFlags) open(a *app, change bool) (server.Access, error) {
	if a.dirGiven {
		return server.Access{}, usageError{text: "it takes --data, a directory of databases, and not --db", command: a.command}
	}
	a.dir = f.Data // for messages
	if change && a.options.ReadOnly {
		return server.Access{}, usageError{text: "it changes the access file, and goes without --read-only", command: a.command}
	}
	if err := directories(a.command, f.Data); err != nil {
		return server.Access{}, err
	}
	return server.AccessOf(f.Data), nil
}

// rightFlags are rights on the command line.
type rightFlags struct {
	Right []string `required:"" sep:"none" placeholder:"DATABASE=RIGHT" help:"read, write or admin of a database, * for all. Can be given several times."`
}

// rights reads them.
func (f *rightFlags) rights(a *app) (server.Rights, error) {
	rights := make(server.Rights)
	for _, text := range f.Right {
		name, right, _ := strings.Cut(text, "=")
		var r server.Right
		if err := r.UnmarshalText([]byte(right)); err != nil || name == "" {
			return nil, usageError{text: fmt.Sprintf("a right is DATABASE=read, DATABASE=write or DATABASE=admin, not %.100q", text), command: a.command}
		}
		rights[name] = r
	}
	return rights, nil
}

// tokenCreateCommand creates a token.
type tokenCreateCommand struct {
	accessFlags
	rightFlags
	Name    string        `arg:"" help:"A name, by which the token is listed and withdrawn."`
	Expires time.Duration `placeholder:"D" help:"How long it is valid, such as 720h; for good without it."`
}

// Help is shown by jay serve token create --help.
func (*tokenCreateCommand) Help() string {
	return `The token is printed, and kept nowhere: the data directory has its hash. A server that is running takes it within a second.

Examples:

    jay serve token create ci --data ./data --right acorns=write --expires 2160h
    jay serve token create ann --data ./data --right '*=admin'`
}

// Run creates the token.
func (c *tokenCreateCommand) Run(_ context.Context, a *app) error {
	access, err := c.open(a, true)
	if err != nil {
		return err
	}
	rights, err := c.rights(a)
	if err != nil {
		return err
	}
	if c.Expires < 0 {
		return usageError{text: "--expires must not be negative", command: a.command}
	}
	var expires time.Time
	if c.Expires > 0 {
		expires = time.Now().Add(c.Expires).UTC().Truncate(time.Second)
	}
	token, err := access.CreateToken(c.Name, rights, expires)
	if err != nil {
		return accessError(err, a)
	}
	if a.json {
		return a.printLine(map[string]string{"name": c.Name, "token": token})
	}
	return a.print(token + "\n")
}

// accessError turns errors for invalid names and rights into errors of usage.
func accessError(err error, a *app) error {
	if errors.Is(err, jay.ErrUsage) {
		return usageError{text: err.Error(), command: a.command}
	}
	return err
}

// tokenListCommand lists grants.
type tokenListCommand struct{ accessFlags }

// Run prints the grants, without hashes.
func (c *tokenListCommand) Run(_ context.Context, a *app) error {
	access, err := c.open(a, false)
	if err != nil {
		return err
	}
	grants, err := access.List()
	if err != nil {
		return err
	}
	table := newFigures("Name", "Kind", "Rights", "Created", "Expires")
	for _, g := range grants {
		kind := "token"
		switch {
		case g.Thumbprint != "":
			kind = "certificate " + g.Thumbprint
		case g.Subject != "":
			kind = "certificates of " + g.Subject
		}
		if a.json {
			g.Token = ""
			if err := a.printLine(g); err != nil {
				return err
			}
			continue
		}
		var rights []string
		for name, right := range g.Rights {
			rights = append(rights, name+"="+right.String())
		}
		slices.Sort(rights)
		expires := "never"
		if !g.Expires.IsZero() {
			expires = g.Expires.Format(time.RFC3339)
		}
		table.add(g.Name, kind, strings.Join(rights, " "), g.Created.Format(time.RFC3339), expires)
	}
	if a.json {
		return nil
	}
	return a.print(table.render(a.width) + "\n")
}

// tokenWithdrawCommand withdraws a grant.
type tokenWithdrawCommand struct {
	accessFlags
	Name string `arg:"" help:"Name of the token or certificate."`
}

// Run withdraws the grant.
func (c *tokenWithdrawCommand) Run(_ context.Context, a *app) error {
	access, err := c.open(a, true)
	if err != nil {
		return err
	}
	return access.Withdraw(c.Name)
}

// certificateCommand gives rights to client certificates.
type certificateCommand struct {
	Allow certificateAllowCommand `cmd:"" help:"Give rights to a certificate, or to those of a common name."`
}

// certificateAllowCommand gives rights.
type certificateAllowCommand struct {
	accessFlags
	rightFlags
	Name    string `arg:"" help:"A name, by which the certificate is listed and withdrawn."`
	File    string `placeholder:"FILE" help:"The client's certificate, in PEM."`
	Subject string `placeholder:"NAME" help:"The common name of certificates that an authority of --tls-client-ca has signed."`
}

// Run gives the rights.
func (c *certificateAllowCommand) Run(_ context.Context, a *app) error {
	access, err := c.open(a, true)
	if err != nil {
		return err
	}
	rights, err := c.rights(a)
	if err != nil {
		return err
	}
	if (c.File == "") == (c.Subject == "") {
		return usageError{text: "allow takes --file or --subject", command: a.command}
	}
	if c.Subject != "" {
		return accessError(access.AllowSubject(c.Name, c.Subject, rights), a)
	}
	all, err := server.ReadCertificates(c.File)
	if err != nil {
		return err
	}
	return accessError(access.AllowCertificate(c.Name, all[0], rights), a)
}
