package backups

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/files"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage/lsm"
)

// Backup is one backup of a directory.
type Backup struct {
	Number uint64 `json:"number"` // in the order of the directory, from 1
	Path   string `json:"path"`

	// BackupInfo has the fields that the beginning of the file gives, and the size. For a backup that
	// a Keeper has just made, all fields are set.
	jay.BackupInfo

	// Err is why the beginning of the file cannot be read, or nil. It is jay.ErrKey if the key of an
	// encrypted backup is missing or wrong: then EncryptionKey is the ID of the key.
	Err error `json:"-"`
}

// Names of the files of a directory. Part of the format. Must not change.
const (
	fullSuffix  = "-full.jaybackup"
	sinceSuffix = "-since.jaybackup"
	sentSuffix  = ".sent" // after the name of a backup: Options.Each has returned nil for it
	lockName    = "LOCK"
)

var nameOf = regexp.MustCompile(`^([0-9]{8,18})-(full|since)\.jaybackup$`)

// directory is what a directory has.
type directory struct {
	backups []Backup        // by number
	sent    map[string]bool // paths of backups
	left    []string        // paths of files that were being written when a process ended
}

// scan reads the names in a directory, and the beginning of each backup, of an encrypted one with
// the keys, which may be nil.
func scan(fs lsm.FS, dir string, keys jay.EncryptionKeys) (directory, error) {
	d := directory{sent: make(map[string]bool)}
	names, err := fs.List(dir)
	if err != nil {
		return d, err
	}
	if len(names) > maxFiles {
		return d, fmt.Errorf("%w: %q has %d files, and %d are the most", jay.ErrUsage, dir, len(names), maxFiles)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		if of, found := strings.CutSuffix(path, sentSuffix); found {
			d.sent[of] = true
			continue
		}
		begin, _, _ := strings.Cut(name, ".jaybackup.")
		if strings.HasSuffix(name, lsm.Unfinished) && nameOf.MatchString(begin+".jaybackup") {
			d.left = append(d.left, path)
			continue
		}
		parts := nameOf.FindStringSubmatch(name)
		if parts == nil {
			continue
		}
		n, err := strconv.ParseUint(parts[1], 10, 63)
		if err != nil {
			continue
		}
		b := Backup{Number: n, Path: path}
		b.BackupInfo, b.Err = begins(fs, path, keys)
		d.backups = append(d.backups, b)
	}
	slices.SortFunc(d.backups, func(a, b Backup) int {
		return strings.Compare(fmt.Sprintf("%020d%s", a.Number, a.Path), fmt.Sprintf("%020d%s", b.Number, b.Path))
	})
	return d, nil
}

// begins reads the beginning of a backup.
func begins(fs lsm.FS, path string, keys jay.EncryptionKeys) (info jay.BackupInfo, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return info, err
	}
	defer f.Close()
	if info, err = jay.ReadBackup(jay.EncryptedBackup(f, keys)); err != nil {
		return info, err
	}
	stat, err := f.Stat()
	if err == nil {
		info.Bytes = stat.Size()
	}
	return info, err
}

// chains returns the chains of backups, the oldest first. A backup that does not follow the one before it is in a chain
// that cannot be restored, which is broken, with those that follow.
func (d *directory) chains(bad map[string]bool) (all []chain) {
	for _, b := range d.backups {
		last := len(all) - 1
		switch {
		case b.Err == nil && b.Base == "":
			all = append(all, chain{links: []Backup{b}, broken: bad[b.ID]})
		case last >= 0 && b.Err == nil && !all[last].broken && !bad[b.ID] && b.Base == all[last].last().ID:
			all[last].links = append(all[last].links, b)
		case last >= 0 && all[last].broken:
			all[last].links = append(all[last].links, b)
		default:
			all = append(all, chain{links: []Backup{b}, broken: true})
		}
	}
	return all
}

// chain is a full backup and those that follow it, each the one before it.
type chain struct {
	links  []Backup
	broken bool // it cannot be restored
}

func (c *chain) last() Backup { return c.links[len(c.links)-1] }

// newest returns the newest chain that is not broken, and nil if there is none.
func newest(all []chain) *chain {
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].broken {
			return &all[i]
		}
	}
	return nil
}

// ErrNoBackup is returned when a directory has no chain that can be restored.
var ErrNoBackup = errors.New("there is no full backup that can be read")

// Files reads directories of backups without a Keeper.
type Files struct {
	// FS replaces the operating system's files, as Options.FS does.
	FS lsm.FS

	// EncryptionKeys are the keys of encrypted backups. Backups that are not encrypted need no key.
	// The default, nil, means no keys.
	EncryptionKeys jay.EncryptionKeys
}

// Chain returns the newest chain that has all of its links, in the order in which jay.RestoreFrom
// restores them. It reads only the beginnings of the files. It returns ErrNoBackup if the directory
// has no such chain. The error is jay.ErrKey as well if the key of a backup is missing or wrong.
func (f Files) Chain(dir string) ([]Backup, error) {
	fs := f.FS
	if fs == nil {
		fs = lsm.OS(false)
	}
	d, err := scan(fs, dir, remember(sealed.From(f.EncryptionKeys)))
	if err != nil {
		return nil, fmt.Errorf("backups of %q: %w", dir, err)
	}
	c := newest(d.chains(nil))
	if c == nil {
		err := ErrNoBackup
		if b, found := d.withoutKey(); found {
			err = fmt.Errorf("%w: %s: %w", ErrNoBackup, b.Path, b.Err)
		}
		return nil, fmt.Errorf("backups of %q: %w", dir, err)
	}
	return c.links, nil
}

// Chain is Files.Chain without keys. A nil file system means the operating system's files.
func Chain(fs lsm.FS, dir string) ([]Backup, error) { return Files{FS: fs}.Chain(dir) }

// paths returns the paths of backups.
func paths(of []Backup) (all []string) {
	for _, b := range of {
		all = append(all, b.Path)
	}
	return all
}

// readers returns readers of the files of backups, and what closes them.
func readers(fs lsm.FS, of []Backup, keys jay.EncryptionKeys) (all []io.Reader, closeAll func() error, err error) {
	var open []*files.Reader
	closeAll = func() (err error) {
		for _, r := range open {
			err = errors.Join(err, r.Close())
		}
		return err
	}
	for _, b := range of {
		r, err := files.NewReader(fs, b.Path)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		open, all = append(open, r), append(all, jay.EncryptedBackup(r, keys))
	}
	return all, closeAll, nil
}
