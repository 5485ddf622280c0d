package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jaydb/jay"
)

// backupCommand writes a backup.
type backupCommand struct {
	keepFlags
	backupKeyFlags
	File   string `arg:"" help:"File to write, - for standard output; with --every the directory of the backups."`
	Since  string `placeholder:"FILE" help:"Write only what has changed since this backup, which must be one of this database."`
	Once   bool   `help:"No backup is going to follow this one: nothing is written to the database."`
	Verify bool   `help:"Read the file to its end afterwards, and before that the one of --since."`
	Plain  bool   `help:"Do not encrypt the backup, though the database may be."`
}

// Help is shown by jay backup --help.
func (*backupCommand) Help() string {
	return `A backup has everything: documents, attachments, revisions, counters, configuration, subscriptions and the declarations of indexes. It is compressed, and damage to it is noticed. jay restore makes a database of it. A program makes its own backups with DB.Backup, while it writes. If a program has the database open, the command makes a full backup through it, as with --once; with --url, jay serve makes one of a database that it has open, also an incremental one.

With --since the backup is incremental. To restore it, the one that it follows is needed, and the one which that follows, down to a full one.

A file is there when it is complete: it is written under another name first.

The backup of an encrypted database is encrypted with the newest of its keys, and with --backup-key-file that of any database with the newest key of that file, with --backup-passphrase-file with a key from that passphrase. To restore it, the key or the passphrase is needed. --plain writes it in the clear. With --url the server encrypts it with its own keys, which --key-file has to name, as the command reads what it gets.

With --every it goes on until it is interrupted, and keeps the backups of a directory: a full one now and then, in between what has changed, each read to its end before it counts, and old ones removed. jay verify and jay restore take the directory in place of files. The command has the database for itself meanwhile: a program uses package backups, and jay serve --backup-dir.

Examples:

    jay backup monday.backup
    jay backup --since monday.backup tuesday.backup
    jay backup - | ssh backups 'cat > jay.backup'
    jay backup --every 1h --keep 48 --then ./copy-to-store.sh /backups/shop
    jay backup --url http://127.0.0.1:8080/databases/acorns monday.backup`
}

// backupResult is what backup and verify print with --json, verify one for each file.
type backupResult struct {
	File string `json:"file"`
	jay.BackupInfo
	Seconds float64 `json:"seconds,omitempty"`
}

// Run writes the backup.
func (c *backupCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	a.secrets = append(a.secrets, c.BackupKeyFile, c.BackupPassphraseFile)
	if c.Plain && c.own() != nil {
		return usageError{text: "--plain goes without --backup-key-file and --backup-passphrase-file"}
	}
	if c.Every != 0 {
		return c.keep(ctx, a)
	}
	if c.keepFlags != (keepFlags{}) {
		return usageError{text: "--full, --keep, --keep-for and --then go with --every"}
	}
	options := []jay.BackupOption{}
	if c.Plain {
		options = append(options, jay.BackupPlain())
	}
	if c.Once {
		options = append(options, jay.BackupOnce())
	}
	if c.Since != "" {
		base, err := c.base(ctx, a)
		if err != nil {
			return err
		}
		options = append(options, jay.BackupSince(base.ID))
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		// The keys of a database that another program has open are with that program.
		if keys := c.keys(a); !c.Plain && keys != nil && (c.own() != nil || a.looked) {
			options = append(options, jay.BackupEncrypted(keys))
		}
		return c.write(ctx, a, func(w io.Writer, progress func(int64)) (jay.BackupInfo, error) {
			return db.Backup(ctx, w, append(options, jay.BackupProgress(progress))...)
		})
	})
}

// write writes the file with fn, and prints what is in it.
func (c *backupCommand) write(ctx context.Context, a *app, fn func(w io.Writer, progress func(int64)) (jay.BackupInfo, error)) error {
	if c.File == stdinName {
		if c.Verify {
			return usageError{text: "--verify reads the file again, which standard output does not allow"}
		}
		c.noteClear(a)
		_, err := fn(a.stdout, func(int64) {})
		return c.explain(a, err)
	}
	r := backupResult{File: c.File}
	start := time.Now()
	bar := a.newByteProgress("backup", -1)
	err := a.replaceFile(c.File, "", func(w io.Writer) (err error) {
		r.BackupInfo, err = fn(w, bar.set)
		return err
	})
	bar.done()
	if err != nil {
		return c.explain(a, err)
	}
	c.noteClear(a)
	r.Seconds = time.Since(start).Seconds()
	if c.Verify {
		if _, err := a.verifyFiles(ctx, []string{c.File}, c.backupKeyFlags); err != nil {
			return err
		}
	}
	if a.json {
		return a.printLine(r)
	}
	what := count(r.Documents, "document")
	if r.Base != "" {
		what += " written and " + thousands(r.Deletions) + " deleted since"
	}
	return a.print(fmt.Sprintf("backed up %s, %s, in %.1f s to %s%s\n", what, size(r.Bytes), r.Seconds, c.File, encryption(r.BackupInfo)))
}

// base returns the description of the backup that --since names.
func (c *backupCommand) base(ctx context.Context, a *app) (info jay.BackupInfo, err error) {
	keys := c.keys(a)
	if c.Verify {
		all, err := a.verifyFiles(ctx, []string{c.Since}, c.backupKeyFlags)
		if err != nil {
			return info, err
		}
		info = all[0]
	} else if info, err = readBackup(c.Since, keys); err != nil {
		if errors.Is(err, jay.ErrBackup) {
			err = c.explain(a, fmt.Errorf("%s: %w", c.Since, err))
		}
		return info, err
	}
	if c.isNeeded(info, keys) {
		return info, usageError{text: fmt.Sprintf("the new backup would replace %s, without which it cannot be restored: name another file", c.File)}
	}
	return info, nil
}

// readBackup returns the description of a backup.
func readBackup(file string, keys jay.EncryptionKeys) (info jay.BackupInfo, err error) {
	f, err := os.Open(file)
	if err != nil {
		return info, err
	}
	defer f.Close()
	return jay.ReadBackup(jay.EncryptedBackup(f, keys))
}

// isNeeded reports whether the file to write is the base of the new backup, or that of the base. Older ones
// of the chain cannot be told: a backup names only the one that it follows.
func (c *backupCommand) isNeeded(base jay.BackupInfo, keys jay.EncryptionKeys) bool {
	now, err := os.Stat(c.File)
	if err != nil || !now.Mode().IsRegular() {
		return false
	}
	if since, err := os.Stat(c.Since); err == nil && os.SameFile(now, since) {
		return true
	}
	replaced, err := readBackup(c.File, keys)
	return err == nil && replaced.ID == base.Base
}

// verifyCommand checks backups.
type verifyCommand struct {
	backupKeyFlags
	Files   []string `arg:"" help:"Backups, each one that follows the one before it; or a directory of jay backup --every, whose newest chain is meant."`
	Restore bool     `help:"Also restore them, in the directory for temporary files, and remove what was restored: a drill."`
}

// Help is shown by jay verify --help.
func (*verifyCommand) Help() string {
	return `It reads the files to their end, and needs no database. What is whole, jay restore restores. Damage that the database had when it was backed up is found by jay restore, which reads all documents, and which goes on with --accept-damage. With --restore they are restored as a drill: it needs the room and the time of a restore. Encrypted backups need their keys, those of --backup-key-file or --key-file; the drill encrypts what it restores.

Examples:

    jay verify monday.backup tuesday.backup
    jay verify --restore /backups/shop`
}

// Run checks the files.
func (c *verifyCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	names, err := chainOf(c.Files, c.keys(a))
	if err != nil {
		return c.explain(a, err)
	}
	c.Files = names
	all, err := a.verifyFiles(ctx, c.Files, c.backupKeyFlags)
	for i, info := range all {
		if a.json {
			err = andThen(err, a.printLine(backupResult{File: c.Files[i], BackupInfo: info}))
			continue
		}
		kind := "full"
		if info.Base != "" {
			kind = fmt.Sprintf("since etag %d", info.After)
		}
		err = andThen(err, a.print(fmt.Sprintf("%s is whole: %s, up to etag %d, %s, made %s%s\n", c.Files[i], kind, info.Etag, count(info.Documents, "document"), info.Created.Format(time.RFC3339), encryption(info))))
	}
	if err != nil || !c.Restore {
		return err
	}
	return c.drill(ctx, a)
}

// verifyFiles reads backups to their end.
func (a *app) verifyFiles(ctx context.Context, names []string, keys backupKeyFlags) (whole []jay.BackupInfo, err error) {
	err = withFiles(names, func(readers []io.Reader, total int64) error {
		bar := a.newByteProgress("verify", total)
		defer bar.done()
		whole, err = jay.VerifyBackup(ctx, bar.set, withKeys(readers, keys.keys(a))...)
		return nameFile(err, names)
	})
	return whole, keys.explain(a, err)
}

// nameFile adds the name of the file that an error of a backup is about.
func nameFile(err error, names []string) error {
	if damage, is := errors.AsType[*jay.BackupError](err); is && damage.Stream < len(names) {
		return fmt.Errorf("%s: %w", names[damage.Stream], err)
	}
	return err
}

// withFiles calls fn with readers of files and their total size, -1 if that is unknown.
func withFiles(names []string, fn func(readers []io.Reader, total int64) error) (err error) {
	var readers []io.Reader
	total := int64(0)
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			total = -1
		} else if total >= 0 {
			total += info.Size()
		}
		readers = append(readers, bufio.NewReaderSize(f, 256<<10))
	}
	return fn(readers, total)
}
