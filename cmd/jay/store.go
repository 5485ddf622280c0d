package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// isStore reports whether --db names a store on a server, and not a directory.
func isStore(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// onStores are the commands that work on a store on a server.
var onStores = []string{
	"jay attach get", "jay attach list", "jay attach put", "jay attach rm", "jay backup", "jay changes", "jay cmpxchg delete", "jay cmpxchg get", "jay cmpxchg list", "jay cmpxchg put",
	"jay collections list", "jay delete", "jay export", "jay get", "jay ids list", "jay ids next", "jay ids show", "jay import", "jay index create", "jay index drop", "jay index list",
	"jay list", "jay put", "jay query", "jay revisions configure", "jay revisions list", "jay stats", "jay update",
}

// useStore makes the command work on the store that --db names, if that is on a server, or refuses one that cannot. From then on a.dir is the
// name as messages have it.
func (a *app) useStore() error {
	if !isStore(a.dir) {
		return nil
	}
	if !slices.Contains(onStores, a.command) {
		return usageError{text: fmt.Sprintf("%s works on a directory, and not on a store on a server", strings.TrimPrefix(a.command, "jay "))}
	}
	shown, err := useEngine(&a.options, a.dir)
	a.store, a.dir = a.dir, shown
	return err
}

// openNamed opens the database that --db names.
func (a *app) openNamed(options *jay.Options) (*jay.DB, error) {
	if a.store == "" {
		return jay.Open(a.dir, options)
	}
	o := *options
	o.CacheBytes, o.MemTableBytes = 0, 0 // what some commands choose for a directory
	return jay.Open(a.store, &o)
}
