package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// restoreCommand creates a database from backups.
type restoreCommand struct {
	Dir     string   `arg:"" help:"Directory to make."`
	Files   []string `arg:"" help:"A full backup, and the incremental ones that follow it, in their order; or a directory of jay backup --every, whose newest chain is meant."`
	SameTag bool     `help:"Restore in the place of the original, under its node tag. Needs --floor for every counter and the etag."`
	floorFlags
	backupKeyFlags
	Damaged bool `name:"accept-damage" help:"Go on if the original was damaged when it was backed up, and say what is."`
}

// floorFlags name numbers that the original of a copy has not passed.
type floorFlags struct {
	Floor  []string `sep:"none" placeholder:"NAME=N" help:"A number that the original has not passed: etag=N, users|=N of an identity, users=N of HiLo. Several can be given."`
	Floors string   `placeholder:"FILE" help:"The same as JSON, as .counters of jay stats --json."`
}

// chooseTag returns what --copy-tag has put into options, and removes it there, as jay.Restore, jay.Promote and jay.Copy take it beside them.
// Either that or sameTag must have been chosen; the error of neither is what to do.
func chooseTag(options *jay.Options, sameTag bool, choose string) (copyTag string, err error) {
	copyTag, options.CopyTag = options.CopyTag, ""
	switch {
	case copyTag == "" && !sameTag:
		err = usageError{text: choose}
	case copyTag != "" && sameTag:
		err = usageError{text: "--copy-tag and --same-tag exclude each other"}
	}
	return copyTag, err
}

// Help is shown by jay restore --help.
func (*restoreCommand) Help() string {
	return `The directory is there when all is restored, its indexes are built, and it was read and found consistent. An index that the documents refuse, as two have the same values in a unique one, is left out and named.

The original may have made IDs since the backup, which the restored database does not know of. So it gets a node tag of its own with --copy-tag. Or it takes the place of the original with --same-tag and numbers that the original has not passed: two databases under one tag make the same IDs, and cannot be distinguished.

The new database is encrypted with the keys of --key-file or with the passphrase, and not without. Encrypted backups need their keys: those of --backup-key-file, or of --key-file.

Examples:

    jay restore --copy-tag B new.db monday.backup tuesday.backup
    jay restore --copy-tag B new.db /backups/shop
    jay restore --same-tag --floor etag=5000000 --floor 'invoices|=9000' --floor orders=200000 jay.db monday.backup`
}

// restoreResult is what restore prints with --json.
type restoreResult struct {
	Dir string `json:"dir"`
	jay.RestoreInfo
	Damages []jay.Damage `json:"damages,omitempty"` // damages that were accepted
	Seconds float64      `json:"seconds"`
}

// Run restores.
func (c *restoreCommand) Run(ctx context.Context, a *app) error {
	if err := a.checkGlobals(); err != nil {
		return err
	}
	if err := directories(a.command, c.Dir); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	floors, err := c.floors()
	if err != nil {
		return err
	}
	if c.Files, err = chainOf(c.Files, c.keys(a)); err != nil {
		return c.explain(a, err)
	}
	options := a.options
	options.EncryptionKeys = keysIn(options.EncryptionKeys, c.Dir)
	tag, err := chooseTag(&options, c.SameTag, "choose --copy-tag TAG, or --same-tag with --floor: the original may have made IDs since the backup")
	if err != nil {
		return err
	}
	o := jay.RestoreOptions{CopyTag: tag, SameTag: c.SameTag, Floors: floors, Options: &options, BackupKeys: c.keys(a)}
	r := restoreResult{Dir: c.Dir}
	if c.Damaged {
		o.Damage = func(d jay.Damage) { r.Damages = append(r.Damages, d) }
	}
	start := time.Now()
	err = withFiles(c.Files, func(readers []io.Reader, total int64) (err error) {
		bar := a.newByteProgress("restore", total)
		defer bar.done()
		o.Progress = bar.set
		r.RestoreInfo, err = jay.Restore(ctx, c.Dir, o, readers...)
		return nameFile(err, c.Files)
	})
	if err != nil {
		return c.explain(a, err)
	}
	if r.Seconds = time.Since(start).Seconds(); a.json {
		return a.printLine(r)
	}
	for _, d := range r.Damages {
		if err := a.print(d.String() + "\n"); err != nil {
			return err
		}
	}
	for _, l := range r.LeftOut {
		if err := a.print(l.String() + "\n"); err != nil {
			return err
		}
	}
	from := fromEncrypted(r.Backups)
	if from != "" && options.EncryptionKeys == nil {
		a.note("the database is not encrypted, as there was no --key-file: jay --key-file FILE encrypt %s does it", c.Dir)
	}
	return a.print(fmt.Sprintf("restored %s and %d indexes in %.1f s to %s, with node tag %s%s\n", count(r.Documents, "document"), r.Indexes, r.Seconds, c.Dir, r.NodeTag, from))
}

// fromEncrypted says which keys the backups had, in words that follow others.
func fromEncrypted(of []jay.BackupInfo) string {
	if text := encryption(of...); text != "" {
		return ", from backups" + strings.TrimPrefix(text, ",")
	}
	return ""
}

// floors returns the numbers of --floor and --floors.
func (c *floorFlags) floors() (f jay.Counters, err error) {
	if c.Floors != "" {
		text, err := os.ReadFile(c.Floors)
		if err != nil {
			return f, err
		}
		if err := json.Unmarshal(text, &f); err != nil {
			return f, fmt.Errorf("%s: %w", c.Floors, err)
		}
	}
	for _, one := range c.Floor {
		i := strings.LastIndexByte(one, '=')
		if i < 0 {
			return f, usageError{text: fmt.Sprintf("--floor is NAME=N, got %q", one)}
		}
		name := one[:i]
		n, err := strconv.ParseUint(one[i+1:], 10, 63)
		if err != nil || name == "" {
			return f, usageError{text: fmt.Sprintf("--floor is NAME=N with a number that is not negative, got %q", one)}
		}
		switch {
		case name == "etag":
			f.Etag = n
		case strings.HasSuffix(name, "|"):
			if f.Identities == nil {
				f.Identities = make(map[string]int64)
			}
			f.Identities[name] = int64(n)
		default:
			if f.HiLo == nil {
				f.HiLo = make(map[string]int64)
			}
			f.HiLo[name] = int64(n)
		}
	}
	return f, nil
}
