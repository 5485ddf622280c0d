package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/files"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage/lsm"
)

// Keeper makes the backups of one database in one directory.
type Keeper struct {
	source Source
	fixed  bool // the database is always the same, and its end is that of the Keeper
	o      Options
	lock   io.Closer

	making sync.Mutex      // held while a backup is made, or a drill runs
	read   bool            // the newest chain was read to its end. Guarded by making.
	bad    map[string]bool // IDs of backups whose beginning is whole and whose rest is damaged. Guarded by making.

	keys  jay.EncryptionKeys // that read backups; nil for none. Guarded by making.
	asked bool               // the keys are those of the options, or of a database that was open. Guarded by making.

	mu     sync.Mutex
	status Status    // Guarded by mu.
	began  time.Time // by Now
	tried  time.Time // when the last failure was. Guarded by mu.
	closed bool      // Guarded by mu.
}

// Status is the state of the backups of a database.
type Status struct {
	Backups  int       `json:"backups"`            // files of whole backups, without chains that cannot be restored
	Chains   int       `json:"chains"`             // of these backups
	Bytes    int64     `json:"bytes"`              // of the files of these backups
	Broken   []string  `json:"broken,omitempty"`   // paths of files that cannot be restored
	Last     *Backup   `json:"last,omitempty"`     // the newest backup that can be restored
	Late     bool      `json:"late"`               // Last is older than Options.LateAfter, or there has been no backup for that long
	Failures int       `json:"failures,omitempty"` // in a row
	Problem  string    `json:"problem,omitempty"`  // of the last failure, or of Options.Each
	Unsent   int       `json:"unsent,omitempty"`   // backups that Options.Each has not taken
	Due      time.Time `json:"due"`                // when Run makes the next one
}

// Open returns a Keeper of the backups of db in Options.Dir, and makes the directory if it does not
// exist. It reads the beginnings of the backups there, and removes the rest of a backup that a
// process did not finish.
//
// Open returns jay.ErrOption for an invalid option, jay.ErrLocked if another Keeper has the
// directory, jay.ErrUsage if the directory has backups of another database, and errors of the file
// system. The database must stay open as long as the Keeper.
func Open(db *jay.DB, o Options) (*Keeper, error) {
	return open(context.Background(), func(context.Context) (*jay.DB, func(), error) { return db, func() {}, nil }, true, o)
}

// Source returns a database, which stays open until release is called. Server.Database of package
// server is a Source for one name.
type Source func(ctx context.Context) (db *jay.DB, release func(), err error)

// OpenFrom is Open for a database that is not open all the time. The Keeper calls source for each
// backup. If source returns another database than the one whose backups the directory has, such as
// one that was made under the same name later, the backup fails with jay.ErrUsage, and the directory stays
// as it is. Run ends when source returns jay.ErrNoDatabase. Any other error of source is a failed
// backup, which the Keeper tries again.
func OpenFrom(ctx context.Context, source Source, o Options) (*Keeper, error) {
	return open(ctx, source, false, o)
}

func open(ctx context.Context, source Source, fixed bool, o Options) (*Keeper, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("backups: %w", err)
	}
	k := &Keeper{source: source, fixed: fixed, o: o, bad: make(map[string]bool), began: o.Now()}
	k.keys, k.asked = remember(sealed.From(o.EncryptionKeys)), o.EncryptionKeys != nil
	if err := k.open(ctx); err != nil {
		return nil, fmt.Errorf("backups of %q: %w", o.Dir, err)
	}
	return k, nil
}

func (k *Keeper) open(ctx context.Context) error {
	disk := k.o.FS
	if err := makeDir(disk, k.o.Dir); err != nil {
		return err
	}
	lock, err := disk.Lock(disk.PathJoin(k.o.Dir, lockName))
	if err != nil {
		return fmt.Errorf("%w: %w", jay.ErrLocked, err)
	}
	d, err := k.scan(ctx)
	if err == nil {
		err = k.checkOwner(ctx, d)
	}
	for _, path := range d.left {
		if err == nil {
			err = disk.Remove(path)
		}
	}
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	k.lock = lock
	k.note(d, nil)
	return nil
}

// scan reads what the directory has. If there are encrypted backups, it asks for the database once,
// whose keys they may have.
func (k *Keeper) scan(ctx context.Context) (directory, error) {
	d, err := scan(k.o.FS, k.o.Dir, k.keys)
	if err != nil || k.asked {
		return d, err
	}
	if _, found := d.withoutKey(); !found {
		return d, nil
	}
	db, release, err := k.source(ctx)
	if err != nil {
		return d, err
	}
	k.learn(db)
	release()
	return scan(k.o.FS, k.o.Dir, k.keys)
}

// learn takes the keys of a database that is open, unless there are some.
func (k *Keeper) learn(db *jay.DB) {
	k.asked = true
	if keys := parts.Keys(db); keys != nil && k.keys == nil {
		k.keys = remember(keys)
	}
}

// makeDir makes a directory and those above it that are missing, durably.
func makeDir(disk lsm.FS, dir string) error {
	var missing []string
	for d := dir; ; d = disk.PathDir(d) {
		if _, err := disk.Stat(d); !errors.Is(err, fs.ErrNotExist) || disk.PathDir(d) == d {
			break
		}
		missing = append(missing, d)
	}
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range missing {
		if err := files.SyncDir(disk, disk.PathDir(d)); err != nil {
			return err
		}
	}
	return nil
}

// checkOwner refuses a directory with backups of another database.
func (k *Keeper) checkOwner(ctx context.Context, d directory) error {
	if len(d.backups) == 0 {
		return nil
	}
	db, release, err := k.source(ctx)
	if err != nil {
		return err
	}
	defer release()
	return d.checkOwner(db)
}

// checkOwner refuses a database of which the directory has no backups, but has those of another one.
func (d *directory) checkOwner(db *jay.DB) error {
	if len(d.backups) == 0 {
		return nil
	}
	own, err := idOf(db)
	if err != nil {
		return err
	}
	for _, b := range d.backups {
		if b.Err == nil && b.Database != own {
			return fmt.Errorf("%w: %s is of another database, %s, and this is %s: give each a directory of its own", jay.ErrUsage, b.Path, b.Database, own)
		}
	}
	return nil
}

// idOf returns the ID of a database, as its backups have it: from the beginning of one that goes nowhere.
func idOf(db *jay.DB) (string, error) {
	r, w := io.Pipe()
	made := make(chan error, 1)
	go func() {
		_, err := db.Backup(context.Background(), w, jay.BackupOnce(), jay.BackupPlain())
		made <- errors.Join(err, w.CloseWithError(err))
	}()
	info, err := jay.ReadBackup(r)
	closed := r.Close() // which ends it
	if making := <-made; err != nil {
		return "", errors.Join(making, err)
	}
	return info.Database, closed
}

// Close waits for a backup that is being made, and releases the directory. It is idempotent. The
// database stays open.
func (k *Keeper) Close() error {
	k.making.Lock()
	defer k.making.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil
	}
	k.closed = true
	return k.lock.Close()
}

// maxWait is how long Run waits at a time, so that a clock that is set forward is noticed.
const maxWait = time.Minute

// Run makes backups when they are due, until ctx ends or the Keeper or the database is closed. Then
// it returns nil. It waits with Options.After, that is, by elapsed time, and asks Options.Now at
// least once a minute.
func (k *Keeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		wait := k.Status().Due.Sub(k.o.Now())
		if wait <= 0 {
			_, err := k.Make(ctx)
			if k.isClosed() || k.fixed && errors.Is(err, jay.ErrClosed) || errors.Is(err, jay.ErrNoDatabase) {
				return nil
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-k.o.After(min(wait, maxWait)):
		}
	}
	return nil
}

// Make makes the next backup now, reads it to its end, hands it to Options.Each, and removes old
// chains. After an error the backups are as they were, but Status has changed. An error of Each or
// of a removal is not an error of Make: the backup is whole and stays, and Status and the log have
// the error.
//
// Make returns jay.ErrClosed if the Keeper or the database is closed.
func (k *Keeper) Make(ctx context.Context) (Backup, error) {
	k.making.Lock()
	defer k.making.Unlock()
	if k.isClosed() {
		return Backup{}, fmt.Errorf("backups of %q: %w", k.o.Dir, jay.ErrClosed)
	}
	made, err := k.make(ctx)
	if err != nil {
		err = fmt.Errorf("backups of %q: %w", k.o.Dir, err)
		k.failed(err)
		return Backup{}, err
	}
	k.o.Logger.Info("backups: a backup was made", "file", made.Path, "base", made.Base, "documents", made.Documents, "bytes", made.Bytes)
	d, err := k.scan(ctx)
	if err == nil {
		after := errors.Join(k.send(ctx, d), k.thin(d))
		d, err = k.scan(ctx)
		err = errors.Join(after, err)
	}
	if err != nil {
		k.o.Logger.Warn("backups: a backup was made, and what follows has failed", "dir", k.o.Dir, "err", err)
	}
	k.note(d, &made)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.status.Failures, k.status.Problem = 0, ""
	if err != nil {
		k.status.Problem = err.Error()
	}
	return made, nil
}

func (k *Keeper) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// make makes a backup that is known to be whole.
func (k *Keeper) make(ctx context.Context) (b Backup, err error) {
	d, err := k.scan(ctx)
	if err != nil {
		return b, err
	}
	if closed, found := d.withoutKey(); found {
		k.o.Logger.Warn("backups: the key of a backup is missing or wrong, and it stays", "file", closed.Path, "key", closed.EncryptionKey, "err", closed.Err)
	}
	for _, path := range d.left { // of another process that does not know the lock
		if err := k.o.FS.Remove(path); err != nil {
			return b, err
		}
	}
	b.Number = 1
	if n := len(d.backups); n > 0 {
		b.Number = d.backups[n-1].Number + 1
	}
	base, err := k.base(ctx, d)
	if err != nil {
		return b, err
	}
	if base != nil {
		b.Path = k.o.FS.PathJoin(k.o.Dir, fmt.Sprintf("%08d", b.Number)+sinceSuffix)
		b.BackupInfo, err = k.write(ctx, d, b.Path, jay.BackupSince(base.ID))
	}
	if base == nil || errors.Is(err, jay.ErrBackupBase) {
		b.Path = k.o.FS.PathJoin(k.o.Dir, fmt.Sprintf("%08d", b.Number)+fullSuffix)
		b.BackupInfo, err = k.write(ctx, d, b.Path)
	}
	if err != nil {
		return b, err
	}
	if err := k.check(ctx, []Backup{b}); err != nil {
		// It is damaged on its way to the disk. The database knows it, and the next one follows an older one.
		return b, errors.Join(fmt.Errorf("the backup that was made is not whole: %w", err), k.o.FS.Remove(b.Path))
	}
	k.read = true // from now on each link is read when it is made
	return b, nil
}

// write makes a backup in a file of the directory, whose other ones are those of d.
func (k *Keeper) write(ctx context.Context, d directory, path string, opts ...jay.BackupOption) (jay.BackupInfo, error) {
	db, release, err := k.source(ctx)
	if err != nil {
		return jay.BackupInfo{}, err
	}
	defer release()
	if err := d.checkOwner(db); err != nil { // a server may have made another one with this name since
		return jay.BackupInfo{}, err
	}
	k.learn(db)
	switch {
	case k.o.Plain:
		opts = append(opts, jay.BackupPlain())
	case k.o.EncryptionKeys != nil:
		opts = append(opts, jay.BackupEncrypted(k.o.EncryptionKeys))
	}
	f, err := files.Create(k.o.FS, path)
	if err != nil {
		return jay.BackupInfo{}, err
	}
	info, err := db.Backup(ctx, f, append(opts, jay.BackupStored(f.Commit))...)
	return info, errors.Join(err, f.Abandon())
}

// base returns the backup that the next one follows, or nil if a full one is due.
func (k *Keeper) base(ctx context.Context, d directory) (*Backup, error) {
	all := d.chains(k.bad)
	c := newest(all)
	if c == nil || c.last().Number != d.backups[len(d.backups)-1].Number || len(c.links) >= maxChain {
		return nil, nil
	}
	if age := k.o.Now().Sub(c.links[0].Created); age >= k.o.Full || age < 0 { // a date to come says nothing
		return nil, nil
	}
	if !k.read {
		whole, err := k.verify(ctx, c.links)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			k.bad[c.links[whole].ID] = true
			k.o.Logger.Warn("backups: a backup is damaged, and a new chain begins", "file", c.links[whole].Path, "err", err)
			return nil, nil
		}
	}
	base := c.last()
	return &base, nil
}

// check reads backups to their end.
func (k *Keeper) check(ctx context.Context, of []Backup) error {
	_, err := k.verify(ctx, of)
	return err
}

// verify reads backups to their end, and returns how many of them are whole.
func (k *Keeper) verify(ctx context.Context, of []Backup) (whole int, err error) {
	in, closeAll, err := readers(k.o.FS, of, k.keys)
	if err != nil {
		return 0, err
	}
	found, err := jay.VerifyBackup(ctx, nil, in...)
	return len(found), errors.Join(err, closeAll())
}

// send hands the backups to Options.Each that it has not taken.
func (k *Keeper) send(ctx context.Context, d directory) error {
	if k.o.Each == nil {
		return nil
	}
	for _, c := range d.chains(k.bad) {
		for _, b := range c.links {
			if c.broken || d.sent[b.Path] {
				continue
			}
			if err := k.o.Each(ctx, b); err != nil {
				return fmt.Errorf("hand over %s: %w", b.Path, err)
			}
			if err := writeMark(k.o.FS, b.Path+sentSuffix); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeMark makes an empty file.
func writeMark(disk lsm.FS, path string) error {
	f, err := files.Create(disk, path)
	if err != nil {
		return err
	}
	return f.Commit()
}

// thin removes chains that neither Keep nor KeepFor keeps. A chain whose key is missing stays: it may be whole.
func (k *Keeper) thin(d directory) error {
	all, newer := d.chains(k.bad), 0
	var errs error
	for i := len(all) - 1; i >= 0; i-- {
		c := all[i]
		old := k.o.KeepFor == 0 || k.o.Now().Sub(c.last().Created) > k.o.KeepFor
		if newer > 0 && newer >= k.o.Keep && old && !c.withoutKey() {
			errs = errors.Join(errs, k.remove(c))
			continue
		}
		if !c.broken {
			newer += len(c.links)
		}
	}
	return errs
}

// remove removes the files of a chain, the last first: what a crash leaves can be restored.
func (k *Keeper) remove(c chain) error {
	for i := len(c.links) - 1; i >= 0; i-- {
		path := c.links[i].Path
		if err := k.o.FS.Remove(path + sentSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := k.o.FS.Remove(path); err != nil {
			return err
		}
	}
	k.o.Logger.Info("backups: a chain was removed", "first", c.links[0].Path, "backups", len(c.links))
	return files.SyncDir(k.o.FS, k.o.Dir)
}

// failed notes that a backup could not be made.
func (k *Keeper) failed(err error) {
	k.mu.Lock()
	k.status.Failures++
	k.status.Problem = err.Error()
	k.tried = k.o.Now()
	k.mu.Unlock()
	s := k.Status()
	log := k.o.Logger.Warn
	if s.Late {
		log = k.o.Logger.Error
	}
	log("backups: no backup was made, which is tried again", "dir", k.o.Dir, "late", s.Late, "failures", s.Failures, "err", err)
}

// note stores what a directory has.
func (k *Keeper) note(d directory, made *Backup) {
	var s Status
	for _, c := range d.chains(k.bad) {
		if c.broken {
			s.Broken = append(s.Broken, paths(c.links)...)
			continue
		}
		s.Chains++
		for _, b := range c.links {
			s.Backups++
			s.Bytes += b.Bytes
			if k.o.Each != nil && !d.sent[b.Path] {
				s.Unsent++
			}
			s.Last = &b
		}
	}
	if made != nil && s.Last != nil && s.Last.ID == made.ID {
		s.Last = made
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Failures, s.Problem = k.status.Failures, k.status.Problem
	k.status = s
}

// Status returns the state of the backups, as of the last Make and the present time.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, now := k.status, k.o.Now()
	since := k.began
	if s.Last != nil {
		since = s.Last.Created
		s.Due = since.Add(k.o.Every)
	} else {
		s.Due = now
	}
	s.Late = now.Sub(since) > k.o.LateAfter
	if s.Last != nil && since.After(now) { // the clock was set back: what is to come says nothing
		s.Due = now
	}
	if s.Failures > 0 {
		delay := min(time.Minute<<min(s.Failures-1, 20), k.o.Every)
		if again := k.tried.Add(delay); again.Sub(now) <= delay {
			s.Due = again
		}
	}
	return s
}
