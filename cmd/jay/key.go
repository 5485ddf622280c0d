package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
)

// keyCommand makes files of keys.
type keyCommand struct {
	New keyNewCommand `cmd:"" help:"Make a file with a new key, which only its owner can read."`
	Add keyAddCommand `cmd:"" help:"Add a new key to a file, as the newest one."`
}

// keyNewCommand makes a file.
type keyNewCommand struct {
	File string `arg:"" help:"File to make."`
	ID   string `name:"id" placeholder:"ID" help:"Name of the key, which is no secret. The default is the date, with a random number."`
}

// Help is shown by jay key new --help.
func (*keyNewCommand) Help() string {
	return `A file of keys has one line for each: an ID, a space, and 32 random bytes in base64. The last one is the newest.

Without the file, what was encrypted with its keys is lost: keep a copy, and not beside the database.

Example:

    jay key new shop.keys && jay --key-file shop.keys encrypt shop.db`
}

// keyResult is a key of a file, as key new and key add print it with --json.
type keyResult struct {
	File string `json:"file"`
	ID   string `json:"id"`
}

// Run makes the file.
func (c *keyNewCommand) Run(a *app) error {
	return keyResult{c.File, c.ID}.make(a, os.O_CREATE|os.O_EXCL)
}

// keyAddCommand adds a key to a file.
type keyAddCommand struct {
	File string `arg:"" help:"File of keys."`
	ID   string `name:"id" placeholder:"ID" help:"Name of the key, which is no secret. The default is the date, with a random number."`
}

// Help is shown by jay key add --help.
func (*keyAddCommand) Help() string {
	return `A database has the new key in the files that it makes from its next start on. jay encrypt --rotate gives it to all files, also while a program has the database open; until then the older keys must stay in the file.

Example:

    jay key add shop.keys && jay --key-file shop.keys encrypt --rotate shop.db`
}

// Run adds the key.
func (c *keyAddCommand) Run(a *app) error {
	file := keys.File(c.File)
	if _, err := file.Newest(); err != nil { // nothing is added to what is no file of keys
		return err
	}
	if c.ID != "" {
		if _, err := file.Key(c.ID); err == nil {
			return usageError{text: fmt.Sprintf("the file has a key %q: give the new one another --id", c.ID)}
		}
	}
	return keyResult{c.File, c.ID}.make(a, os.O_APPEND)
}

// make writes a new key at the end of a file, durably. A file without a last line break gets an empty line at most.
func (r keyResult) make(a *app, mode int) error {
	path, id := r.File, r.ID
	if id == "" {
		random := make([]byte, 4)
		_, _ = rand.Read(random) // which never fails
		id = time.Now().UTC().Format(time.DateOnly) + "-" + hex.EncodeToString(random)
	}
	key, err := keys.New(id)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|mode, 0o600)
	if errors.Is(err, os.ErrExist) {
		return explained{fmt.Sprintf("%s exists, and is not replaced: what it has encrypted would be lost; jay key add adds a key", path), err}
	}
	if err != nil {
		return err
	}
	text := keys.Line(key)
	if mode&os.O_APPEND != 0 {
		text = "\n" + text // the last line may have no end
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if newest, err := keys.File(path).Newest(); err != nil || newest.ID != id {
		return explained{fmt.Sprintf("%s does not have the new key: %v", path, err), jay.ErrKey}
	}
	if a.json {
		return a.printLine(keyResult{path, id})
	}
	return a.print(fmt.Sprintf("Key %s is in %s. Without it, what it encrypts is lost: keep a copy elsewhere.\n", id, path))
}
