package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
	"github.com/jaydb/jay/keys/passphrase"
)

// keyFlags name the keys of an encrypted database.
type keyFlags struct {
	KeyFile        string `group:"every" name:"key-file" placeholder:"FILE" help:"Keys of an encrypted database, as jay key new makes them; $$JAY_KEY_FILE unless given."`
	Passphrase     bool   `group:"every" name:"passphrase" help:"Ask for the passphrase of an encrypted database, on the terminal."`
	PassphraseFile string `group:"every" name:"passphrase-file" placeholder:"FILE" help:"File with the passphrase of an encrypted database, in one line; $$JAY_PASSPHRASE_FILE unless given."`
}

// keys returns the keys that the flags, or else the environment, name; nil for none.
func (f keyFlags) keys(a *app) (jay.EncryptionKeys, error) {
	if f == (keyFlags{}) {
		f.KeyFile, f.PassphraseFile = a.getenv("JAY_KEY_FILE"), a.getenv("JAY_PASSPHRASE_FILE")
		if f.KeyFile != "" && f.PassphraseFile != "" {
			return nil, usageError{text: "$JAY_KEY_FILE and $JAY_PASSPHRASE_FILE exclude each other: a database has keys of a file, or a passphrase"}
		}
	}
	a.secrets = append(a.secrets, f.KeyFile, f.PassphraseFile)
	switch {
	case f.given() > 1:
		return nil, usageError{text: "--key-file, --passphrase and --passphrase-file exclude each other"}
	case f.KeyFile != "":
		return keys.File(f.KeyFile), nil
	case f.given() == 1:
		return newWordKeys(newWords(f.PassphraseFile, a.stdin, a.stderr), func() string { return a.dir }), nil
	}
	return nil, nil
}

// given returns how many of the flags are.
func (f keyFlags) given() int { return howMany(f.KeyFile != "", f.Passphrase, f.PassphraseFile != "") }

// howMany returns how many are true.
func howMany(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// encryptCommand encrypts a database.
type encryptCommand struct {
	Dir    string `arg:"" optional:"" help:"Directory of the database; --db by default. It must not be in use, but for --rotate."`
	Rotate bool   `help:"Encrypt the files of an encrypted database anew that do not have the newest key."`

	NewPassphrase     bool   `help:"With --rotate: ask for a new passphrase, which takes the place of the old one, or of the key file."`
	NewPassphraseFile string `placeholder:"FILE" help:"The same, with the new passphrase in a file."`
	NewKeyFile        string `placeholder:"FILE" help:"With --rotate: the keys of this file take the place of the passphrase."`
}

// Help is shown by jay encrypt --help.
func (*encryptCommand) Help() string {
	return `Each file is copied, encrypted, and the copy takes its place; so the disk needs room for the largest file. If the command is interrupted, the database does not open until the same command has ended: it goes on where it was. What the disk keeps of the old files is not erased.

Without the key file or the passphrase, the database is lost. Keep a copy of the file, and not beside the database. A passphrase is as safe as it is hard to guess: six random words or more.

Examples:

    jay key new shop.keys
    jay --key-file shop.keys encrypt shop.db
    jay --key-file shop.keys --db shop.db get users/ann
    jay key add shop.keys && jay --key-file shop.keys encrypt --rotate shop.db
    jay --passphrase encrypt notes.db
    jay --passphrase encrypt --rotate --new-passphrase notes.db

If another program has the database open, --rotate lets that program do the work, with its own keys, while it goes on. The key file is then read for the ID of the newest key only: if that program has not got the key, nothing is changed. Without a key file, the newest key of that program counts. Another passphrase, or another kind of keys, is given to a database that no program has open: the --new flags say which, and if that is interrupted, the same command goes on.`
}

// Run encrypts.
func (c *encryptCommand) Run(ctx context.Context, a *app) error {
	switch n := howMany(c.NewPassphrase, c.NewPassphraseFile != "", c.NewKeyFile != ""); {
	case n > 1:
		return usageError{text: "--new-passphrase, --new-passphrase-file and --new-key-file exclude each other"}
	case n == 1 && !c.Rotate:
		return usageError{text: "--new-passphrase, --new-passphrase-file and --new-key-file go with --rotate"}
	case n == 1:
		return c.change(ctx, a)
	case c.Rotate:
		return c.rotate(ctx, a)
	}
	return conversion{"encrypt", "is encrypted", jay.EncryptDir}.run(ctx, a, c.Dir)
}

// change gives another passphrase, or keys of another kind, to the files of a database that is not in use.
func (c *encryptCommand) change(ctx context.Context, a *app) error {
	if c.Dir != "" {
		a.dir = c.Dir
	}
	_, words := a.options.EncryptionKeys.(*wordKeys)
	switch {
	case a.options.EncryptionKeys == nil:
		return errNoKeysNamed
	case c.NewKeyFile != "" && !words:
		return usageError{text: "--new-key-file is for a database with a passphrase: jay key add adds a key to a file, and --rotate alone gives it to the database"}
	}
	a.options.EncryptionKeys = newOtherKeys(a.options.EncryptionKeys, a.dir, c.NewKeyFile, newWords(c.NewPassphraseFile, a.stdin, a.stderr))
	err := conversion{"rotate", "has the new key in all files", jay.RotateDir}.run(ctx, a, "")
	if errors.Is(err, jay.ErrKey) {
		return explained{fmt.Sprintf("%s; if a change of the passphrase was interrupted, it goes on with the same new one only", err), err}
	}
	return err
}

// rotate gives the newest key to the files of a database, by the program that has it open if there is one.
func (c *encryptCommand) rotate(ctx context.Context, a *app) error {
	if c.Dir != "" {
		a.dir = c.Dir
	}
	if err := a.checkGlobals(); err != nil {
		return err
	}
	whole := conversion{"rotate", "has the newest key in all files", jay.RotateDir}
	if a.options.EncryptionKeys == nil { // the program that has it open has them, if there is one
		db, err := a.lookInto(jay.ErrLocked)
		if err != nil {
			return whole.run(ctx, a, "") // which asks for them
		}
		return andThen(c.rotateOpen(ctx, a, db, ""), db.Close())
	}
	err := whole.run(ctx, a, "")
	if !errors.Is(err, jay.ErrLocked) {
		return err
	}
	newest, failed := a.options.EncryptionKeys.Newest()
	if failed != nil {
		return failed
	}
	db, err := a.lookInto(err)
	if err != nil {
		return err
	}
	return andThen(c.rotateOpen(ctx, a, db, newest.ID), db.Close())
}

// rotateResult is what encrypt --rotate prints with --json of a database that another program has open.
type rotateResult struct {
	Dir     string   `json:"dir"`
	Key     string   `json:"key"`
	Done    int      `json:"done"`
	Left    []string `json:"left"` // never null
	Seconds float64  `json:"seconds"`
}

// rotateOpen gives a key to the files of a database that another program has open: that with this ID, or the newest for "".
func (*encryptCommand) rotateOpen(ctx context.Context, a *app, db *jay.DB, id string) error {
	start := time.Now()
	done, err := keys.RotateTo(ctx, db, id, nil)
	if err != nil {
		return err
	}
	r := rotateResult{a.dir, done.Key, done.Done, append([]string{}, done.Left...), time.Since(start).Seconds()}
	if a.json {
		return a.printLine(r)
	}
	text := fmt.Sprintf("Database %s, which another program has open, has the key %s in its new files: %s converted in %.1f s\n", a.dir, r.Key, count(int64(r.Done), "file"), r.Seconds)
	if n := len(r.Left); n > 0 {
		text += fmt.Sprintf("An older key is still needed for %s, until that program opens the database again: %s\n", count(int64(n), "file"), strings.Join(r.Left, ", "))
	} else {
		text += "No file needs an older key\n"
	}
	return a.print(text)
}

// decryptCommand decrypts a database.
type decryptCommand struct {
	Dir string `arg:"" optional:"" help:"Directory of the database; --db by default. It must not be in use."`
}

// Help is shown by jay decrypt --help.
func (*decryptCommand) Help() string {
	return `From then on the database is opened without keys. It takes the same room as jay encrypt, and goes on in the same way after an interruption.

Example:

    jay --key-file shop.keys decrypt shop.db
    jay --passphrase decrypt notes.db`
}

// Run decrypts.
func (c *decryptCommand) Run(ctx context.Context, a *app) error {
	return conversion{"decrypt", "is not encrypted any more", jay.DecryptDir}.run(ctx, a, c.Dir)
}

// errNoKeysNamed is returned where keys are needed.
var errNoKeysNamed = usageError{text: "--key-file, or $JAY_KEY_FILE, must name the keys, or there must be a passphrase, by --passphrase or --passphrase-file"}

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
	if err := directories(a.command, a.dir); err != nil {
		return err
	}
	if err := a.checkGlobals(); err != nil {
		return err
	}
	if a.options.EncryptionKeys == nil {
		return errNoKeysNamed
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

// backupKeyFlags name the keys of backups.
type backupKeyFlags struct {
	BackupKeyFile        string `placeholder:"FILE" help:"Keys of the backups, if they are not those of --key-file."`
	BackupPassphraseFile string `placeholder:"FILE" help:"File with the passphrase of the backups, if it is not that of the database."`
}

// own returns the keys of the backups that are not those of the database; nil for none.
func (f backupKeyFlags) own() jay.EncryptionKeys {
	switch {
	case f.BackupKeyFile != "":
		return keys.File(f.BackupKeyFile)
	case f.BackupPassphraseFile != "":
		return passphrase.InDir("", passphrase.File(f.BackupPassphraseFile))
	}
	return nil
}

// check refuses flags that exclude each other.
func (f backupKeyFlags) check() error {
	if f.BackupKeyFile != "" && f.BackupPassphraseFile != "" {
		return usageError{text: "--backup-key-file and --backup-passphrase-file exclude each other"}
	}
	return nil
}

// keys returns the keys of the backups; nil for none.
func (f backupKeyFlags) keys(a *app) jay.EncryptionKeys {
	if own := f.own(); own != nil {
		return own
	}
	return a.options.EncryptionKeys
}

// explain adds advice to the error of a backup that needs keys.
func (f backupKeyFlags) explain(a *app, err error) error {
	if errors.Is(err, jay.ErrKey) && f.keys(a) == nil {
		if backup, is := errors.AsType[*jay.BackupError](err); is && hasWords(backup.Key) {
			return explained{fmt.Sprintf("%s; it has a passphrase: name a file that has it with --backup-passphrase-file or --passphrase-file, or let --passphrase ask for it", err), err}
		}
		return explained{fmt.Sprintf("%s; name its file of keys with --backup-key-file, --key-file or $JAY_KEY_FILE", err), err}
	}
	return err
}

// withKeys gives keys to the readers of backups.
func withKeys(readers []io.Reader, keys jay.EncryptionKeys) (all []io.Reader) {
	for _, r := range readers {
		all = append(all, jay.EncryptedBackup(r, keys))
	}
	return all
}

// encryption says with which keys backups are encrypted, in words that follow others.
func encryption(of ...jay.BackupInfo) string {
	var ids []string
	for _, info := range of {
		if id := strconv.Quote(info.EncryptionKey); info.EncryptionKey != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ", encrypted with the key " + strings.Join(ids, " and ")
}

// noteClear says that a backup is not encrypted, which may be one of an encrypted database.
func (c *backupCommand) noteClear(a *app) {
	if c.Plain {
		a.note("the backup is not encrypted: see that nobody reads it")
	}
}
