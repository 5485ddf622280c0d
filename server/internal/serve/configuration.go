package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/jaydb/jay"
)

// Configurations holds the client configurations of databases, by database key. They are
// stored as documents of the server's own database.
type Configurations struct {
	system *jay.DB

	mu    sync.RWMutex
	byKey map[string]Configuration // Guarded by mu.
}

// Configuration is the client configuration of one database.
type Configuration struct {
	Etag  uint64
	Given json.RawMessage // an object
}

// MaxConfigurationBytes bounds a configuration of a database.
const MaxConfigurationBytes = 64 << 10

func openConfigurations(ctx context.Context, system *jay.DB) (*Configurations, error) {
	cs := &Configurations{system: system, byKey: make(map[string]Configuration)}
	for doc, err := range system.Documents(ctx, jay.Scan{Prefix: configurationPrefix}) {
		if err != nil {
			return nil, err
		}
		cs.byKey[strings.TrimPrefix(doc.ID(), configurationPrefix)] = Configuration{doc.Metadata().Etag, doc.Body()}
	}
	return cs, nil
}

// Get returns the configuration of a database by its key, and whether there is one.
func (cs *Configurations) Get(key string) (Configuration, bool) {
	cs.mu.RLock()
	defer cs.mu.RUnlock()
	found, ok := cs.byKey[key]
	return found, ok
}

// Put stores the configuration of a database.
func (cs *Configurations) Put(ctx context.Context, key string, given json.RawMessage) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	meta, err := cs.system.Put(ctx, configurationPrefix+key, given, jay.InCollection("Configurations"))
	if err == nil {
		cs.byKey[key] = Configuration{meta.Etag, bytes.Clone(given)}
	}
	return err
}

// Forget removes the configuration of a database that was deleted.
func (cs *Configurations) Forget(ctx context.Context, name string) error {
	key, err := CheckName(name)
	if err != nil {
		return err
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, found := cs.byKey[key]; !found {
		return nil
	}
	if err := cs.system.Delete(context.WithoutCancel(ctx), configurationPrefix+key); err != nil {
		return err
	}
	delete(cs.byKey, key)
	return nil
}
