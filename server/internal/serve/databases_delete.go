package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// backOff says when something that has failed is tried again: after a second, and twice
// as long each time, up to 10 minutes.
type backOff struct {
	delay time.Duration
	at    time.Time
}

const maxBackOff = 10 * time.Minute

func (b *backOff) failed(now time.Time) {
	b.delay = min(max(time.Second, 2*b.delay), maxBackOff)
	b.at = now.Add(b.delay)
}

func (b *backOff) due(now time.Time) bool { return !now.Before(b.at) }

// RemoveAll is os.RemoveAll. Tests replace it.
var RemoveAll = os.RemoveAll

// FinishDeletions goes on with deletions that a crash or an error has interrupted. What
// cannot be removed now stays as it is, keeps its name, and is tried again later: it stops
// neither the server nor another database.
func (ds *Databases) FinishDeletions(ctx context.Context) {
	now := ds.opts.Now()
	for _, d := range ds.dueDeletions(now) {
		err := ds.remove(ctx, d)
		ds.mu.Lock()
		close(d.busy)
		d.busy = nil
		if err == nil {
			delete(ds.byKey, d.Key)
		} else {
			d.retry.failed(now)
			ds.opts.Logger.Error("server: the files of a deleted database cannot be removed yet, which is tried again", "database", d.Key, "err", err, "after", d.retry.delay)
		}
		ds.mu.Unlock()
	}
	if !ds.left.due(now) {
		return
	}
	if err := ds.emptyDeleted(); err != nil {
		ds.left.failed(now)
		ds.opts.Logger.Warn("server: what is left of deleted databases cannot be removed yet, which is tried again", "err", err, "after", ds.left.delay)
	} else {
		ds.left = backOff{}
	}
}

// dueDeletions returns the databases whose deletion is to be tried again, and makes them
// busy.
func (ds *Databases) dueDeletions(now time.Time) (due []*Database) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, d := range ds.byKey {
		if d.Record.State == stateDeleting && d.busy == nil && d.retry.due(now) {
			d.busy = make(chan struct{})
			due = append(due, d)
		}
	}
	return due
}

// remove removes the files of a database, and then its records.
func (ds *Databases) remove(ctx context.Context, d *Database) error {
	away := filepath.Join(ds.opts.Data, deletedDir, fmt.Sprintf("%s-%d", d.Key, d.etag))
	if err := ds.moveAway(ds.dir(d.Key), away); err != nil {
		return err
	}
	for _, dir := range []string{databasesDir, deletedDir} {
		if err := syncDir(filepath.Join(ds.opts.Data, dir)); err != nil {
			return err
		}
	}
	if err := ds.forget(ctx, d.Key); err != nil {
		return err
	}
	if err := RemoveAll(away); err != nil {
		ds.opts.Logger.Warn("server: the files of a deleted database are removed later", "database", d.Key, "err", err)
	}
	return nil
}

// moveAway renames the directory of a database. One that cannot be renamed, such as a
// mount point, and the target of a symbolic link, are emptied where they are.
func (ds *Databases) moveAway(dir, away string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) { // a crash came between this step and the next
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		renamed := os.Rename(dir, away)
		if renamed == nil {
			return nil
		}
		if err := emptyDirectory(dir); err != nil {
			return errors.Join(renamed, err)
		}
		if err := os.Remove(dir); err != nil { // of a mount point there is nothing left to remove
			ds.opts.Logger.Info("server: the directory of a deleted database is empty, and stays", "dir", dir, "err", err)
		}
		return nil
	}
	if err := emptyDirectory(dir); err != nil {
		return err
	}
	return os.Remove(dir) // the link
}

// formatFile is in the directory of each database.
const formatFile = "JAY"

// emptyDirectory removes all that is in the directory of a database. It refuses one that
// is no database, to which a symbolic link could lead. The file that says so goes last.
func emptyDirectory(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		if errors.Is(err, fs.ErrNotExist) { // the link leads nowhere
			return nil
		}
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, formatFile)); err != nil {
		return fmt.Errorf("%s is not emptied, as it has files and is no database: %w", dir, err)
	}
	for _, entry := range entries {
		if entry.Name() != formatFile {
			err = errors.Join(err, RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	return RemoveAll(filepath.Join(dir, formatFile))
}

// emptyDeleted removes the directories whose removal has begun earlier.
func (ds *Databases) emptyDeleted() error {
	entries, err := os.ReadDir(filepath.Join(ds.opts.Data, deletedDir))
	for _, entry := range entries {
		err = errors.Join(err, RemoveAll(filepath.Join(ds.opts.Data, deletedDir, entry.Name())))
	}
	return err
}
