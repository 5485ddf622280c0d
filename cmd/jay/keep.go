package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
	"github.com/jaydb/jay/keys"
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
	if err := directories(a.command, c.File); err != nil {
		return err
	}
	var handler slog.Handler = slog.NewTextHandler(a.stderr, nil)
	if a.json {
		handler = slog.NewJSONHandler(a.stderr, nil)
	}
	c.noteClear(a)
	return a.withDatabase(false, func(db *jay.DB) error {
		o := c.options(c.File, a.stderr, slog.New(handler))
		if o.Plain = c.Plain; c.own() != nil {
			o.EncryptionKeys = c.keys(a)
		}
		k, err := backups.Open(db, o)
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
func chainOf(names []string, keys jay.EncryptionKeys) ([]string, error) {
	if len(names) != 1 {
		return names, nil
	}
	if info, err := os.Stat(names[0]); err != nil || !info.IsDir() {
		return names, nil // the error shows when it is opened
	}
	chain, err := backups.Files{EncryptionKeys: keys}.Chain(names[0])
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
	info, err := backups.Files{EncryptionKeys: c.keys(a)}.Drill(ctx, filepath.Join(dir, "db"), c.Files...)
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
	BackupPlain bool          `help:"Do not encrypt the backups, though the databases may be."`

	BackupKeyFile string `placeholder:"FILE" help:"Keys of the backups, if they are not those of --key-file."`
}

// checkBackups refuses flags of backups that contradict each other or would be ignored, and keys that are not there: each
// backup would fail, and nobody would see it but in the log.
func (f *serveBackups) checkBackups(command string) error {
	defaults := serveBackups{BackupDir: f.BackupDir, BackupEvery: time.Hour, BackupFull: 24 * time.Hour, BackupKeep: 48}
	problem := ""
	switch {
	case f.BackupDir == "" && *f != defaults:
		problem = "the flags of backups go with --backup-dir, which says where they are kept"
	case f.BackupPlain && f.BackupKeyFile != "":
		problem = "--backup-plain and --backup-key-file exclude each other"
	case f.BackupEvery < time.Second, f.BackupFull <= 0, f.BackupKeep <= 0:
		problem = "--backup-every is at least 1s, and --backup-full and --backup-keep are above 0"
	}
	if problem != "" {
		return usageError{text: problem, command: command}
	}
	if f.BackupKeyFile != "" {
		if _, err := keys.File(f.BackupKeyFile).Newest(); err != nil {
			return fmt.Errorf("--backup-key-file: %w", err)
		}
	}
	if info, err := os.Stat(f.BackupDir); err == nil && !info.IsDir() {
		return usageError{text: fmt.Sprintf("--backup-dir %q is a file: name a directory", f.BackupDir), command: command}
	}
	return nil
}

// newDatabases is how often jay serve looks for databases that have no backups yet. Tests shorten it.
var newDatabases = 30 * time.Second

// startBackups keeps backups of all databases of a server, also of those that are created later, until stop is called.
func (f *serveBackups) startBackups(ctx context.Context, s *server.Server, logger *slog.Logger) (stop func()) {
	if f.BackupDir == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	k := &keepers{flags: f, server: s, logger: logger, turns: make(chan struct{}, 2), under: make(map[string]*backups.Keeper), without: make(map[string]bool)}
	if err := s.Register(k); err != nil {
		logger.Error("backups: their figures are not in /metrics", "err", err)
	}
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

	mu      sync.Mutex
	under   map[string]*backups.Keeper // by the names that have one; nil while it opens. Guarded by mu.
	without map[string]bool            // names of those that had an error in place of one. Guarded by mu.
}

// Figures of the backups of all databases. They name none: see server.Server.Register.
var (
	backupsKept   = prometheus.NewDesc("jay_backups", "Backups that can be restored, of all databases.", nil, nil)
	backupsBytes  = prometheus.NewDesc("jay_backup_bytes", "Bytes of their files.", nil, nil)
	backupsBroken = prometheus.NewDesc("jay_backup_broken", "Files of backups that cannot be restored.", nil, nil)
	backupsUnsent = prometheus.NewDesc("jay_backup_unsent", "Backups that the program of --backup-then has not taken.", nil, nil)
	backupsLate   = prometheus.NewDesc("jay_backup_late", "Databases whose last backup is too old.", nil, nil)
	backupsFailed = prometheus.NewDesc("jay_backup_failing", "Databases whose last attempt at a backup failed, or that have no directory for them.", nil, nil)
)

// Describe implements prometheus.Collector.
func (k *keepers) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{backupsKept, backupsBytes, backupsBroken, backupsUnsent, backupsLate, backupsFailed} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (k *keepers) Collect(out chan<- prometheus.Metric) {
	k.mu.Lock()
	all := slices.Collect(maps.Values(k.under))
	failing := len(k.without)
	k.mu.Unlock()
	var kept, broken, unsent, late int
	var bytes int64
	for _, keeper := range all {
		if keeper == nil {
			continue
		}
		s := keeper.Status()
		kept, bytes, broken, unsent = kept+s.Backups, bytes+s.Bytes, broken+len(s.Broken), unsent+s.Unsent
		if s.Late {
			late++
		}
		if s.Failures > 0 {
			failing++
		}
	}
	for d, value := range map[*prometheus.Desc]float64{
		backupsKept: float64(kept), backupsBytes: float64(bytes), backupsBroken: float64(broken),
		backupsUnsent: float64(unsent), backupsLate: float64(late), backupsFailed: float64(failing),
	} {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
}

// run begins to keep the backups of each database that is there, and of those to come.
func (k *keepers) run(ctx context.Context) {
	tick := time.NewTicker(newDatabases)
	defer tick.Stop()
	for ctx.Err() == nil {
		names := k.server.Databases()
		k.mu.Lock()
		maps.DeleteFunc(k.without, func(name string, _ bool) bool { return !slices.Contains(names, name) })
		k.mu.Unlock()
		for _, name := range names {
			k.mu.Lock()
			_, there := k.under[name]
			if !there {
				k.under[name] = nil
			}
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
	o := f.options(dir, os.Stderr, k.logger.With("database", name))
	if o.Plain = k.flags.BackupPlain; k.flags.BackupKeyFile != "" {
		o.EncryptionKeys = keys.File(k.flags.BackupKeyFile)
	}
	keeper, err := backups.OpenFrom(ctx, func(ctx context.Context) (*jay.DB, func(), error) { return k.database(ctx, name) }, o)
	if err == nil {
		k.note(name, keeper, false)
		err = andThen(keeper.Run(ctx), keeper.Close())
	}
	if err != nil && ctx.Err() == nil {
		k.note(name, nil, true)
		k.logger.Error("backups: a database has none, which is tried again", "database", name, "err", err)
	}
}

// note notes the keeper of a database, or that it has none.
func (k *keepers) note(name string, keeper *backups.Keeper, without bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.under[name] = keeper; without {
		k.without[name] = true
	} else {
		delete(k.without, name)
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
