package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// studioCommand shows databases in a browser.
type studioCommand struct {
	Dir      string     `arg:"" optional:"" help:"A database, a data directory of jay serve with all its databases, or postgres://USER@HOST/DATABASE. The default is that of --db."`
	Open     bool       `help:"Open the browser."`
	Listen   string     `placeholder:"ADDRESS" help:"Loopback address and port, such as 127.0.0.1:8081. The default is a free port of a loopback address that no other program is likely to use."`
	LogLevel slog.Level `placeholder:"LEVEL" default:"warn" help:"debug, info, warn or error. The default is warn; info has each request."`
}

// Help is shown by jay studio --help.
func (*studioCommand) Help() string {
	return `It serves the studio on this machine only, and prints an address. The address opens the studio in one browser, once, within a quarter of an hour; whoever else comes to the port is refused, so that other users of the machine see nothing. On a terminal, Enter prints another address. The browser stays logged in for 12 hours, or until the command ends.

DIR is the directory of a database, as of --db, or a data directory of jay serve. While the command runs, no other process can open it. A database that another program has open is shown, and its documents can be changed if that program lets others write. For a data directory whose server runs, the studio shows the databases that the server has open at that time. --read-only shares it with others that only read, and changes nothing: copies, checkpoints and restored backups are for that.

A store on a server, postgres://USER@HOST/DATABASE, stays open to other processes. The password is read from PGPASSWORD or ~/.pgpass.

SIGINT (Ctrl-C) and SIGTERM end it. docs/studio.md shows the pages.

Examples:

    jay studio shop.db
    jay studio --open ./jay-data
    jay --read-only studio snapshot.db`
}

// Run serves the studio until ctx ends.
func (c *studioCommand) Run(ctx context.Context, a *app) error {
	if c.Dir != "" {
		if a.dirGiven {
			return usageError{text: "studio takes a directory or --db, not both", command: a.command}
		}
		var err error
		if a.dir, err = a.store.use(c.Dir, a.command, &a.options); err != nil {
			return err
		}
	}
	if err := a.checkGlobals(); err != nil {
		return err
	}
	l, err := c.listen(a)
	if err != nil {
		return err
	}
	own, err := os.MkdirTemp("", "jay-studio-")
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return andThen(c.serve(ctx, a, l, own), os.RemoveAll(own))
}

// serve runs the server on l. own is a directory for files of the command itself.
func (c *studioCommand) serve(ctx context.Context, a *app, l net.Listener, own string) error {
	bound := a.options.MaxMemory
	if bound > 0 { // what is mounted shares what the server has for its databases
		shared, err := server.NewMemory(bound)
		if err != nil {
			return andThen(err, l.Close())
		}
		a.options.MaxMemory, a.options.Memory = 0, shared
	}
	options, err := c.options(ctx, a, own)
	if err != nil {
		return andThen(err, l.Close())
	}
	options.MaxMemory, options.Database.Memory = bound, nil
	right := server.AdminRight
	if a.options.ReadOnly {
		right = server.ReadRight
	}
	if a.store.name != "" {
		db, err := a.store.open(a.dir, &a.options)
		if err != nil {
			return andThen(a.explainOpen(err), l.Close())
		}
		defer func() {
			if err := db.Close(); err != nil {
				a.note("closing the store: %v", err)
			}
		}()
		options.Database.Engine, options.Directories = nil, nil
		options.Mounted = map[string]*jay.DB{databaseName(a.dir): db}
		right = min(right, server.WriteRight)
	}
	s, err := server.Open(options)
	if errors.Is(err, jay.ErrLocked) {
		mounted, failed := c.lookInto(ctx, a, err)
		defer func() {
			for _, db := range mounted {
				_ = db.Close() // its program writes
			}
		}()
		if err = failed; err == nil {
			options.Data, options.Directories, options.Mounted = own, nil, mounted
			s, err = server.Open(options)
			right = rightThrough(ctx, mounted)
		}
	}
	if err != nil {
		return andThen(a.explainOpen(err), l.Close())
	}
	if bound > 0 {
		limitHeap(bound, s.Memory().HeapBytes, int64(a.options.MaxDocumentBytes))
	}
	invite := func() (address string, err error) {
		path, err := s.Invite(right)
		return "http://" + l.Addr().String() + path, err
	}
	address, err := invite()
	if err == nil {
		err = a.printStudio(address)
	}
	if err == nil && c.Open {
		c.open(a, own, address)
	}
	if err != nil {
		return andThen(errors.Join(err, l.Close()), s.Close())
	}
	if a.isTerminal(a.stdin) {
		a.note("the address works once, within 15 minutes; Enter prints another one, Ctrl-C ends the studio")
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	lines := a.enters(ctx)
	for {
		select {
		case err := <-served:
			return err
		case <-lines:
			if address, err = invite(); err == nil {
				err = a.printStudio(address)
			}
			if err != nil {
				a.note("no further address: %v", err)
			}
		}
	}
}

// rightThrough returns the right of a studio on databases that other programs have open: to write if all of them carry that out. Raising no counter
// changes nothing, and is refused as any other write.
func rightThrough(ctx context.Context, mounted map[string]*jay.DB) server.Right {
	for _, db := range mounted {
		if err := db.RaiseCounters(ctx, jay.Counters{}); err != nil {
			return server.ReadRight // the error would be that of each write
		}
	}
	return server.WriteRight
}

// lookInto opens what another program has open of the directory: a database, or those of a data directory that the server has
// open now. locked is the error of opening it here. The caller closes the databases, also after an error.
func (c *studioCommand) lookInto(ctx context.Context, a *app, locked error) (all map[string]*jay.DB, err error) {
	all = make(map[string]*jay.DB)
	if !isDataDirectory(a.dir) {
		db, err := lookInto(a.dir, a.options, locked)
		if err == nil {
			all[databaseName(a.dir)] = db
		}
		return all, err
	}
	found, err := a.databasesOf(ctx, a.dir)
	if err != nil {
		return all, err
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		db, err := lookInto(found[name], a.options, nil)
		switch {
		case errors.Is(err, jay.ErrUnavailable):
			a.note("%s is not shown, as the server does not have it open: use it there, and open the studio again", name)
		case err != nil:
			return all, err
		default:
			all[name] = db
		}
	}
	if len(all) == 0 {
		return all, explained{text: fmt.Sprintf("the server of %q has none of its databases open: use one there, or open the server's own studio, at /studio/ of its address", a.dir), err: locked}
	}
	return all, nil
}

// options returns the options of a server for the directory.
func (c *studioCommand) options(ctx context.Context, a *app, own string) (server.Options, error) {
	o := server.Options{
		Data: own, Database: a.options, InvitedOnly: true, Studio: true, ShutdownTimeout: 5 * time.Second,
		IdleAfter: 100 * 365 * 24 * time.Hour, // databases stay open, and so locked, until the process ends
		Logger:    slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: c.LogLevel})),
	}
	served := isDataDirectory(a.dir)
	if served {
		a.options.EncryptionKeys = keysIn(a.options.EncryptionKeys, systemDirectory(a.dir))
		o.Database.EncryptionKeys = a.options.EncryptionKeys
	}
	switch {
	case served && a.options.ReadOnly:
		var err error
		o.Directories, err = a.databasesOf(ctx, a.dir)
		return o, err
	case served:
		o.Data = a.dir
	default:
		o.Directories = map[string]string{databaseName(a.dir): a.dir}
	}
	return o, nil
}

// systemDirectory returns the directory of the server's own database, in a data directory.
func systemDirectory(data string) string { return filepath.Join(data, "system") }

// isDataDirectory reports whether a directory is a data directory of jay serve: it
// contains the server's own database, and has no marker of a database itself. A
// directory that is neither fails when it is opened.
func isDataDirectory(dir string) bool {
	for _, marker := range []string{"JAY", filepath.Join("system", "JAY")} {
		if _, err := os.Stat(filepath.Join(dir, marker)); err == nil {
			return marker != "JAY"
		}
	}
	return false
}

// databasesOf returns the databases of a data directory of jay serve, by their names,
// without changing any file.
func (a *app) databasesOf(ctx context.Context, data string) (map[string]string, error) {
	path := systemDirectory(data)
	system, err := jay.Open(path, &jay.Options{MustExist: true, ReadOnly: true, EncryptionKeys: a.options.EncryptionKeys})
	if errors.Is(err, jay.ErrLocked) {
		system, err = lookInto(path, jay.Options{}, err)
	}
	if err != nil {
		return nil, a.explainOpen(err)
	}
	found := make(map[string]string)
	err = eachDocument(ctx, system, jay.Scan{Prefix: "databases/"}, func(doc *jay.Document) error {
		var record struct{ Name, State string }
		if err := doc.Decode(&record); err != nil {
			return err
		}
		if record.State == "ready" {
			found[record.Name] = filepath.Join(data, "databases", strings.TrimPrefix(doc.ID(), "databases/"))
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		err = explained{text: fmt.Sprintf("data directory %q has no databases to read", data), err: jay.ErrNoDatabase}
	}
	return found, andThen(err, system.Close())
}

// databaseName returns the name of a database in the studio: that of its directory,
// with hyphens for invalid characters.
func databaseName(dir string) string {
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, filepath.Base(dir))
	for strings.Contains(name, "..") {
		name = strings.ReplaceAll(name, "..", ".")
	}
	name = strings.TrimRight(strings.TrimLeft(name[:min(len(name), 100)], ".-"), ".-")
	if server.CheckDatabaseName(name) != nil {
		name = "database-" + strings.ReplaceAll(name, ".", "-")
		name = strings.TrimRight(name, "-")
	}
	return name
}

// listen listens on a loopback address. A browser sends the cookies of a host to all
// its ports, so another program's page on 127.0.0.1 would receive the studio's cookie.
// By default the studio therefore uses an address of its own in 127.0.0.0/8, if the
// system has one.
func (c *studioCommand) listen(a *app) (net.Listener, error) {
	if c.Listen != "" {
		host, _, err := net.SplitHostPort(c.Listen)
		if err != nil || !isLoopbackHost(host) {
			return nil, usageError{text: fmt.Sprintf("--listen names a loopback address and a port, such as 127.0.0.1:8081, not %.100q; jay serve serves other machines", c.Listen), command: a.command}
		}
		return net.Listen("tcp", c.Listen)
	}
	if runtime.GOOS == "linux" || runtime.GOOS == "windows" {
		var b [3]byte
		_, _ = rand.Read(b[:]) // never fails
		address := netip.AddrFrom4([4]byte{127, b[0]%254 + 1, b[1], b[2]%254 + 1})
		if l, err := net.Listen("tcp4", netip.AddrPortFrom(address, 0).String()); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// printStudio prints an address without buffering.
func (a *app) printStudio(address string) error {
	var err error
	if a.json {
		err = a.printLine(map[string]string{"url": address})
	} else {
		err = a.print("Open " + address + "\n")
	}
	return andThen(err, a.stdout.Flush())
}

// enters returns a channel that receives for each typed line, if there is a terminal.
func (a *app) enters(ctx context.Context) <-chan struct{} {
	if !a.isTerminal(a.stdin) {
		return nil
	}
	lines := make(chan struct{})
	go func() {
		for typed := bufio.NewScanner(a.stdin); typed.Scan(); {
			select {
			case lines <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// open opens the browser. All users of a machine can see the arguments of programs. So
// the browser gets a file that only this user can read, and which redirects to the
// address.
func (c *studioCommand) open(a *app, own, address string) {
	file := filepath.Join(own, "studio.html")
	page := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Jay</title><meta http-equiv="refresh" content="0; url=` + html.EscapeString(address) + `">`
	err := os.WriteFile(file, []byte(page), 0o600)
	if err == nil {
		err = a.browse(file)
	}
	if err != nil {
		a.note("the browser could not be opened (%v): open the address above", err)
	}
}

// browse opens a file in the program of $BROWSER, or else that of the system.
func (a *app) browse(file string) error {
	command := exec.Command("xdg-open", file)
	switch name := a.getenv("BROWSER"); {
	case name != "":
		command = exec.Command(name, file)
	case runtime.GOOS == "darwin":
		command = exec.Command("open", file)
	case runtime.GOOS == "windows":
		command = exec.Command("rundll32", "url.dll,FileProtocolHandler", file)
	}
	if err := command.Start(); err != nil {
		return err
	}
	go func() { _ = command.Wait() }() // the program may run as long as the browser
	return nil
}
