package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/jaydb/jay"
)

// configurations holds the client configurations of databases, by database key. They are
// stored as documents of the server's own database.
type configurations struct {
	system *jay.DB

	mu    sync.RWMutex
	byKey map[string]configuration // Guarded by mu.
}

type configuration struct {
	etag  uint64
	given json.RawMessage // an object
}

const (
	configurationPrefix   = "configurations/"
	maxConfigurationBytes = 64 << 10

	// noConfiguration is the etag of a database without a configuration.
	noConfiguration = -2
)

func openConfigurations(ctx context.Context, system *jay.DB) (*configurations, error) {
	cs := &configurations{system: system, byKey: make(map[string]configuration)}
	for doc, err := range system.Documents(ctx, jay.Scan{Prefix: configurationPrefix}) {
		if err != nil {
			return nil, err
		}
		cs.byKey[strings.TrimPrefix(doc.ID(), configurationPrefix)] = configuration{doc.Metadata().Etag, doc.Body()}
	}
	return cs, nil
}

func (cs *configurations) get(key string) (configuration, bool) {
	cs.mu.RLock()
	defer cs.mu.RUnlock()
	found, ok := cs.byKey[key]
	return found, ok
}

// put stores the configuration of a database.
func (cs *configurations) put(ctx context.Context, key string, given json.RawMessage) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	meta, err := cs.system.Put(ctx, configurationPrefix+key, given, jay.InCollection("Configurations"))
	if err == nil {
		cs.byKey[key] = configuration{meta.Etag, bytes.Clone(given)}
	}
	return err
}

// forget removes the configuration of a database that was deleted.
func (cs *configurations) forget(ctx context.Context, name string) error {
	key, err := checkName(name)
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

// refreshConfiguration makes a client with an outdated configuration fetch the present
// one. A client that fetches none sends no etag. The header is set only when needed, as
// The Node.js client takes any value of it for true.
func (c *call) refreshConfiguration() {
	sent := strings.Trim(c.header.Get("Client-Configuration-Etag"), `"`)
	if sent == "" {
		return
	}
	if now, found := c.s.clients.get(c.database.key); found && sent != strconv.FormatUint(now.etag, 10) {
		c.reply.Set("Refresh-Client-Configuration", "true")
	}
}

// clientConfiguration returns the configuration of the database for its clients.
func (c *call) clientConfiguration() error {
	now, found := c.s.clients.get(c.database.key)
	c.reply.Del("Refresh-Client-Configuration") // this request fetches it
	if !found {
		return c.json(http.StatusOK, map[string]any{"Etag": noConfiguration, "Configuration": nil})
	}
	// The configuration itself must contain its new etag.
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal(now.given, &members); err != nil {
		return err
	}
	members["Etag"] = json.RawMessage(strconv.FormatUint(now.etag, 10))
	return c.json(http.StatusOK, map[string]any{"Etag": now.etag, "Configuration": members})
}

// putClientConfiguration stores the configuration of the database for its clients.
func (c *call) putClientConfiguration() error {
	if len(c.body) > maxConfigurationBytes {
		return tooLarge("a client configuration has at most %d bytes", maxConfigurationBytes)
	}
	members := make(map[string]json.RawMessage)
	if err := c.decode(&members); err != nil {
		return err
	}
	delete(members, "Etag")
	if err := c.s.clients.put(c.ctx, c.database.key, mustJSON(members)); err != nil {
		return err
	}
	c.reply.Set("Refresh-Client-Configuration", "true")
	return c.empty(http.StatusCreated)
}
