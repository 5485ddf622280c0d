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
	"jay attach get", "jay attach list", "jay attach put", "jay attach rm", "jay backup", "jay changes", "jay check", "jay cmpxchg delete", "jay cmpxchg get", "jay cmpxchg list", "jay cmpxchg put",
	"jay collections list", "jay copy", "jay delete", "jay export", "jay get", "jay ids list", "jay ids next", "jay ids show", "jay import", "jay index create", "jay index drop", "jay index list",
	"jay list", "jay put", "jay query", "jay revisions configure", "jay revisions list", "jay stats", "jay studio", "jay update",
}

// store is where the database is: in the directory of --db, or on a server. The zero value is the directory.
type store struct {
	name string // on a server; or empty
}

// use makes a command work on the store that --db names, if that is on a server, or refuses one that cannot. It returns the name as messages
// have it, and sets the engine.
func (s *store) use(name, command string, o *jay.Options) (shown string, err error) {
	if !isStore(name) || strings.HasPrefix(command, "jay serve") { // which has --store, and says so
		return name, nil
	}
	if !slices.Contains(onStores, command) {
		return "", usageError{text: fmt.Sprintf("%s works on a directory, and not on a store on a server", strings.TrimPrefix(command, "jay "))}
	}
	s.name = name
	return useEngine(o, name)
}

// directories refuses names of stores on a server where directories are meant: they would be directories of these
// names, with the password in them. The error does not have the name, for that reason.
func directories(command string, names ...string) error {
	if slices.ContainsFunc(names, isStore) {
		return usageError{text: fmt.Sprintf("%s takes a directory, and not a store on a server, which jay copy copies from and to", strings.TrimPrefix(command, "jay "))}
	}
	return nil
}

// open opens the database, which is in dir if it is in a directory.
func (s *store) open(dir string, options *jay.Options) (*jay.DB, error) {
	if s.name == "" {
		return jay.Open(dir, options)
	}
	o := *options
	o.CacheBytes, o.MemTableBytes = 0, 0 // what some commands choose for a directory
	return jay.Open(s.name, &o)
}
