package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
)

// keyFlags name the keys of an encrypted database.
type keyFlags struct {
	KeyFile string `group:"every" name:"key-file" placeholder:"FILE" help:"Keys of an encrypted database, as jay key new makes them; $$JAY_KEY_FILE unless given."`
}

// keys returns the keys that the flag or the environment names; nil for none.
func (f keyFlags) keys(getenv func(string) string) jay.EncryptionKeys {
	name := f.KeyFile
	if name == "" {
		name = getenv("JAY_KEY_FILE")
	}
	if name == "" {
		return nil
	}
	return keys.File(name)
}

// encryptCommand encrypts a database.
type encryptCommand struct {
	Dir    string `arg:"" optional:"" help:"Directory of the database; --db by default. It must not be in use."`
	Rotate bool   `help:"Encrypt the files of an encrypted database anew that do not have the newest key."`
}

// Help is shown by jay encrypt --help.
func (*encryptCommand) Help() string {
	return `Each file is copied, encrypted, and the copy takes its place; so the disk needs room for the largest file. If the command is interrupted, the database does not open until the same command has ended: it goes on where it was. What the disk keeps of the old files is not erased.

Without the key file, the database is lost. Keep a copy of the file, and not beside the database.

Examples:

    jay key new shop.keys
    jay --key-file shop.keys encrypt shop.db
    jay --key-file shop.keys --db shop.db get users/ann
    jay key add shop.keys && jay --key-file shop.keys encrypt --rotate shop.db`
}

// Run encrypts.
func (c *encryptCommand) Run(ctx context.Context, a *app) error {
	if c.Rotate {
		return conversion{"rotate", "has the newest key in all files", jay.RotateDir}.run(ctx, a, c.Dir)
	}
	return conversion{"encrypt", "is encrypted", jay.EncryptDir}.run(ctx, a, c.Dir)
}

// decryptCommand decrypts a database.
type decryptCommand struct {
	Dir string `arg:"" optional:"" help:"Directory of the database; --db by default. It must not be in use."`
}

// Help is shown by jay decrypt --help.
func (*decryptCommand) Help() string {
	return `From then on the database is opened without keys. It takes the same room as jay encrypt, and goes on in the same way after an interruption.

Example:

    jay --key-file shop.keys decrypt shop.db`
}

// Run decrypts.
func (c *decryptCommand) Run(ctx context.Context, a *app) error {
	return conversion{"decrypt", "is not encrypted any more", jay.DecryptDir}.run(ctx, a, c.Dir)
}

// convertResult is what encrypt and decrypt print with --json.
type convertResult struct {
	Dir string `json:"dir"`
	jay.ConvertProgress
	Seconds float64 `json:"seconds"`
}

// conversion is what encrypt and decrypt do.
type conversion struct {
	verb string
	now  string // what the database is afterwards
	fn   func(context.Context, string, *jay.Options, func(jay.ConvertProgress)) (jay.ConvertProgress, error)
}

// run converts a directory, that of --db if none is named.
func (c conversion) run(ctx context.Context, a *app, dir string) error {
	if dir != "" {
		a.dir = dir
	}
	if err := a.checkGlobals(); err != nil {
		return err
	}
	if a.options.EncryptionKeys == nil {
		return usageError{text: "--key-file, or $JAY_KEY_FILE, must name the keys"}
	}
	options, start := a.options, time.Now()
	bar := a.newByteProgress(c.verb, -1)
	done, err := c.fn(ctx, a.dir, &options, func(p jay.ConvertProgress) { bar.set(p.Bytes) })
	bar.done()
	if err != nil {
		return a.explainOpen(err)
	}
	r := convertResult{a.dir, done, time.Since(start).Seconds()}
	if a.json {
		return a.printLine(r)
	}
	return a.print(fmt.Sprintf("Database %s %s: %s converted of %d, %s in %.1f s\n", a.dir, c.now, count(int64(done.Copied), "file"), done.Files, size(done.Bytes), r.Seconds))
}

// noteClear says that a backup of an encrypted database is not encrypted.
func (c *backupCommand) noteClear(a *app) {
	if a.options.EncryptionKeys != nil {
		a.note("the backup is not encrypted, though the database is: see that nobody reads it")
	}
}
