package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// storeFlags are the flags of the stores of jay serve.
type storeFlags struct {
	Stores []string `name:"store" sep:"none" placeholder:"[NAME=]URL" help:"Serve the database in the store at postgres://USER@HOST/DATABASE, which other servers and programs may have open, too, and no directories. Can be given several times. Without NAME it is DATABASE. The password is read from PGPASSWORD or ~/.pgpass."`
}

// addresses returns the addresses of the stores by the names of their databases, and has o open them. No message has an address, as it may have a
// password.
func (f *storeFlags) addresses(command string, o *jay.Options) (map[string]string, error) {
	wrong := func(format string, args ...any) (map[string]string, error) {
		return nil, usageError{text: fmt.Sprintf(format, args...), command: command}
	}
	all := make(map[string]string)
	for i, text := range f.Stores {
		name, address, named := strings.Cut(text, "=")
		if !named || isStore(name) { // the = is in the address
			name, address = "", text
		}
		if !isStore(address) {
			return wrong("store %d of --store is not a URL such as postgres://USER@HOST/DATABASE", i+1)
		}
		if name == "" {
			u, err := url.Parse(address)
			if err != nil {
				return wrong("store %d of --store is not a URL such as postgres://USER@HOST/DATABASE", i+1)
			}
			name = strings.Trim(u.Path, "/")
		}
		if err := server.CheckDatabaseName(name); err != nil {
			return wrong("store %d of --store: %v: give it a name, as in --store NAME=URL", i+1, err)
		}
		for other := range all {
			if strings.EqualFold(other, name) {
				return wrong("--store has the name %q twice: give one of them another, as in --store NAME=URL", name)
			}
		}
		all[name] = address
		if _, err := useEngine(o, address); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// checkStores refuses flags that say how databases in directories are kept, or are shared otherwise than by a store.
func (c *serveCommand) checkStores(a *app) error {
	if len(c.Stores) == 0 {
		return nil
	}
	for _, r := range []struct {
		flag  string
		given bool
		why   string
	}{
		{"--follow", len(c.Follow) > 0, "a server of stores has no standbys: PostgreSQL has its own"},
		{"--cluster", len(a.cluster.Endpoints) > 0, "servers of one store agree through the store"},
		{"--idle-after", c.IdleAfter != defaultIdleAfter, "a store stays open, so that the server keeps its node tag"},
		{"--min-free-bytes", c.MinFree != 0, "the space is that of another machine"},
		{"--key-file, --passphrase and --passphrase-file", a.options.EncryptionKeys != nil, "the files are those of another machine"},
		{"--copy-tag", a.options.CopyTag != "", "others write under the tag of the store: --node-tag names that of this server"},
	} {
		if r.given {
			return usageError{text: fmt.Sprintf("--store goes without %s: %s", r.flag, r.why), command: a.command}
		}
	}
	return nil
}
