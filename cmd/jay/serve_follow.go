package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jaydb/jay/server"
	"github.com/jaydb/jay/standby"
)

// followFlags are the flags of the standbys of jay serve.
type followFlags struct {
	Follow []string      `sep:"none" placeholder:"[NAME=]SOURCE" help:"Keep the database NAME as a standby that follows SOURCE, as jay follow does, and serve it read-only. Can be given several times. Without NAME it is the last part of SOURCE."`
	MaxLag time.Duration `placeholder:"D" default:"10s" help:"How far a standby may be behind for /readyz to say that the server is ready. The default is 10s."`
}

// defaultMaxLag is --max-lag if it is not given.
const defaultMaxLag = 10 * time.Second

// sources returns what is followed, by the names of the databases. sourceOf returns what one value names.
func (f *followFlags) sources(command string, clustered bool, sourceOf func(from string) (standby.Source, error)) (map[string]standby.Source, error) {
	wrong := func(format string, args ...any) (map[string]standby.Source, error) {
		return nil, usageError{text: fmt.Sprintf(format, args...), command: command}
	}
	if f.MaxLag <= 0 {
		return wrong("--max-lag must be more than 0, got %s", f.MaxLag)
	}
	if f.MaxLag != defaultMaxLag && len(f.Follow) == 0 {
		return wrong("--max-lag is for standbys, and goes with --follow")
	}
	if len(f.Follow) > 0 && clustered {
		return wrong("a member of a cluster cannot be a standby: --follow goes without --cluster")
	}
	sources, keys := make(map[string]standby.Source), make(map[string]bool)
	for _, text := range f.Follow {
		name, from := nameOfSource(text)
		source, err := sourceOf(from)
		if err != nil {
			return nil, err
		}
		if err := server.CheckDatabaseName(name); err != nil {
			return wrong("--follow %.200q: %v: give it a name, as in --follow NAME=SOURCE", text, err)
		}
		if keys[strings.ToLower(name)] {
			return wrong("--follow has the name %q twice", name)
		}
		sources[name], keys[strings.ToLower(name)] = source, true
	}
	return sources, nil
}

// nameOfSource returns the name of the database in a value of --follow, and what that follows.
func nameOfSource(text string) (name, from string) {
	if name, from, found := strings.Cut(text, "="); found && !strings.ContainsAny(name, `/\:`) {
		return name, from
	}
	return filepath.Base(strings.TrimRight(text, "/")), text
}
