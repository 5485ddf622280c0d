package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
	"github.com/jaydb/jay/server"
)

// keepFlags say how backups keep themselves.
type keepFlags struct {
	Every   time.Duration `placeholder:"D" help:"Make a backup so often, until interrupted, in a directory, which is made."`
	Full    time.Duration `placeholder:"D" help:"How old a full backup may become before the next is one again. The default is 24h."`
	Keep    int           `placeholder:"N" help:"How many of the newest backups stay. The default is 48, or none with --keep-for."`
	KeepFor time.Duration `placeholder:"D" help:"How long a backup stays."`
	Then    string        `placeholder:"PROGRAM" help:"Run this program with the path of each new backup, to copy it elsewhere. If it fails it is run again after the next."`
}

// options returns the options of a Keeper.
func (f *keepFlags) options(dir string, stderr io.Writer, logger *slog.Logger) backups.Options {
	o := backups.Options{Dir: dir, Every: f.Every, Full: f.Full, Keep: f.Keep, KeepFor: f.KeepFor, Logger: logger}
	if f.Then != "" {
		o.Each = func(ctx context.Context, b backups.Backup) error {
			program := exec.CommandContext(ctx, f.Then, b.Path)
			program.Stdout, program.Stderr = stderr, stderr
			if err := program.Run(); err != nil {
				return fmt.Errorf("%s: %w", f.Then, err)
			}
			return nil
		}
	}
	return o
}

// keep makes backups until ctx ends.
func (c *backupCommand) keep(ctx context.Context, a *app) error {
	if c.Since != "" || c.Once || c.Verify || c.File == stdinName {
		return usageError{text: "--every takes a directory, and goes without --since, --once and --verify: each backup follows the one before it, and is read to its end"}
	}
	var handler slog.Handler = slog.NewTextHandler(a.stderr, nil)
	if a.json {
		handler = slog.NewJSONHandler(a.stderr, nil)
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		k, err := backups.Open(db, c.options(c.File, a.stderr, slog.New(handler)))
		if errors.Is(err, jay.ErrOption) {
			return usageError{text: inKeep.Replace(err.Error())}
		}
		if err != nil {
			return err
		}
		return andThen(k.Run(ctx), k.Close())
	})
}

// inKeep replaces names of package backups by the flags that set them.
var inKeep = strings.NewReplacer("Options.Dir names no directory", "name a directory", "Options.Every", "--every", "Options.Full", "--full", "Options.KeepFor", "--keep-for", "Options.Keep", "--keep")

// chainOf returns the files of the newest chain, if names is one directory, and else names.
func chainOf(names []string) ([]string, error) {
	if len(names) != 1 {
		return names, nil
	}
	if info, err := os.Stat(names[0]); err != nil || !info.IsDir() {
		return names, nil // the error shows when it is opened
	}
	chain, err := backups.Chain(nil, names[0])
	var all []string
	for _, b := range chain {
		all = append(all, b.Path)
	}
	return all, err
}

// drill restores the files, and removes what was restored.
func (c *verifyCommand) drill(ctx context.Context, a *app) error {
	dir, err := os.MkdirTemp("", "jay-drill-*")
	if err != nil {
		return err
	}
	start := time.Now()
	info, err := backups.Drill(ctx, nil, filepath.Join(dir, "db"), c.Files...)
	if err = andThen(err, os.RemoveAll(dir)); err != nil {
		return err
	}
	if a.json {
		return a.printLine(restoreResult{RestoreInfo: info, Seconds: time.Since(start).Seconds()})
	}
	return a.print(fmt.Sprintf("restored %s and %d indexes in %.1f s, and removed them again\n", count(info.Documents, "document"), info.Indexes, time.Since(start).Seconds()))
}

// serveBackups are the flags of the backups of jay serve.
type serveBackups struct {
	BackupDir   string        `placeholder:"DIR" help:"Keep backups of each database in a directory below this one."`
	BackupEvery time.Duration `placeholder:"D" default:"1h" help:"How often one is made. The default is 1h."`
	BackupFull  time.Duration `placeholder:"D" default:"24h" help:"How old a full one may become before the next is one again. The default is 24h."`
	BackupKeep  int           `placeholder:"N" default:"48" help:"How many of the newest stay. The default is 48."`
	BackupThen  string        `placeholder:"PROGRAM" help:"Run this program with the path of each new backup, to copy it elsewhere."`
}

// newDatabases is how often jay serve looks for databases that have no backups yet. Tests shorten it.
var newDatabases = 30 * time.Second

// startBackups keeps backups of all databases of a server, also of those that are created later, until stop is called.
func (f *serveBackups) startBackups(ctx context.Context, s *server.Server, logger *slog.Logger) (stop func()) {
	if f.BackupDir == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	k := &keepers{flags: f, server: s, logger: logger, turns: make(chan struct{}, 2), under: make(map[string]bool)}
	k.running.Go(func() { k.run(ctx) })
	return func() {
		cancel()
		k.running.Wait()
	}
}

// keepers keep the backups of the databases of a server.
type keepers struct {
	flags   *serveBackups
	server  *server.Server
	logger  *slog.Logger
	turns   chan struct{} // of backups at a time: each has its database open
	running sync.WaitGroup

	mu    sync.Mutex
	under map[string]bool // names that have a keeper. Guarded by mu.
}

// run begins to keep the backups of each database that is there, and of those to come.
func (k *keepers) run(ctx context.Context) {
	tick := time.NewTicker(newDatabases)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, name := range k.server.Databases() {
			k.mu.Lock()
			there := k.under[name]
			k.under[name] = true
			k.mu.Unlock()
			if !there {
				k.running.Go(func() { k.one(ctx, name) })
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// one keeps the backups of a database until ctx ends or the database is deleted.
func (k *keepers) one(ctx context.Context, name string) {
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.under, name)
	}()
	f := keepFlags{Every: k.flags.BackupEvery, Full: k.flags.BackupFull, Keep: k.flags.BackupKeep, Then: k.flags.BackupThen}
	dir := filepath.Join(k.flags.BackupDir, strings.ToLower(name))
	keeper, err := backups.OpenFrom(ctx, func(ctx context.Context) (*jay.DB, func(), error) { return k.database(ctx, name) }, f.options(dir, os.Stderr, k.logger.With("database", name)))
	if err == nil {
		err = andThen(keeper.Run(ctx), keeper.Close())
	}
	if err != nil && ctx.Err() == nil {
		k.logger.Error("backups: a database has none, which is tried again", "database", name, "err", err)
	}
}

// database returns a database when it is its turn.
func (k *keepers) database(ctx context.Context, name string) (*jay.DB, func(), error) {
	select {
	case k.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	db, release, err := k.server.Database(ctx, name)
	if err != nil {
		<-k.turns
		return nil, nil, err
	}
	return db, func() {
		release()
		<-k.turns
	}, nil
}
