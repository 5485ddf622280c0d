package raven

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// statsRoutes are the endpoints of statistics.
var statsRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/stats", Run: getStats, Lazy: true},
	{Method: "GET", Path: "{D}/collections/stats", Run: getCollectionStats, Lazy: true},
	{Method: "GET", Path: "{D}/healthcheck", Run: healthcheck},
}

// getStats replies with the statistics of the database.
func getStats(c *serve.Call) error {
	now, err := c.DB.Stats(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	indexes, err := indexStats(c)
	if err != nil {
		return err
	}
	var lastIndexing any
	if len(indexes) > 0 { // they are written with the documents
		lastIndexing = c.Server.Options.Now().UTC().Format(serve.RavenTime)
	}
	documents, revisions := int64(0), int64(0)
	for _, one := range now.Collections {
		documents += one.Documents
	}
	for _, one := range now.Revisions {
		revisions += one.Revisions
	}
	newest, err := newestChangeVector(c)
	if err != nil {
		return err
	}
	size, err := c.Database.DiskBytes(c.Ctx)
	if err != nil {
		return err
	}
	sizes := map[string]any{"HumaneSize": humane(size), "SizeInBytes": size}
	return c.JSON(http.StatusOK, map[string]any{
		"LastDocEtag": now.Counters.Etag, "LastDatabaseEtag": now.Counters.Etag, "CountOfIndexes": len(indexes), "CountOfDocuments": documents,
		"CountOfRevisionDocuments": revisions, "CountOfDocumentsConflicts": 0, "CountOfTombstones": 0, "CountOfConflicts": 0, "CountOfAttachments": now.Attachments.Attachments,
		"CountOfUniqueAttachments": now.Attachments.Contents, "CountOfCounterEntries": 0, "CountOfTimeSeriesSegments": 0, "Indexes": indexes, "DatabaseChangeVector": newest,
		"DatabaseId": c.Database.Record.ID, "Is64Bit": true, "Pager": "Pebble", "LastIndexingTime": lastIndexing, "SizeOnDisk": sizes,
		"TempBuffersSizeOnDisk": map[string]any{"HumaneSize": "0 Bytes", "SizeInBytes": 0}, "NumberOfTransactionMergerQueueOperations": 0,
	})
}

// indexStats describes the indexes: those that clients have defined and programs have declared, and those of the
// database itself, but for the parts of computed ones. Each is up to date, unless it is being built.
func indexStats(c *serve.Call) ([]any, error) {
	states, err := states(c)
	if err != nil {
		return nil, err
	}
	all, err := listed(c, "")
	if err != nil {
		return nil, err
	}
	now := c.Server.Options.Now().UTC().Format(serve.RavenTime)
	list := []any{}
	for _, one := range all {
		lock, priority := one.modes()
		list = append(list, map[string]any{"Name": one.name, "IsStale": one.stale, "State": one.state(), "LockMode": lock, "Priority": priority, "Type": one.kind(), "LastIndexingTime": now})
		if one.defined == nil {
			continue
		}
		for _, key := range stateKeys(one.defined) {
			delete(states, key)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(states), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		ix := states[key]
		if strings.HasPrefix(key[1], partPrefix) {
			continue
		}
		name := ix.Collection + "/" + ix.Name
		if ix.Automatic {
			name = verbs.AutomaticName(ix)
		}
		list = append(list, map[string]any{"Name": name, "IsStale": ix.State != jay.IndexReady, "State": "Normal", "LockMode": "Unlock",
			"Priority": "Normal", "Type": "AutoMap", "LastIndexingTime": now})
	}
	return list, nil
}

// partPrefix begins the names of the parts of computed indexes.
const partPrefix = "computed:"

// newestChangeVector returns the change vector of the document that was written last, or
// "".
func newestChangeVector(c *serve.Call) (string, error) {
	for doc, err := range c.DB.Query("").OrderBy("-@metadata.@etag").Limit(1).Iter(c.Ctx) {
		if err != nil {
			return "", err
		}
		return doc.ChangeVector(), nil
	}
	return "", nil
}

// humane formats a number of bytes as RavenDB does.
func humane(n int64) string {
	value, unit := float64(n), 0
	for value >= 1024 && unit < 4 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.4g %s", value, [...]string{"Bytes", "KBytes", "MBytes", "GBytes", "TBytes"}[unit])
}

// getCollectionStats replies with the number of documents in each collection.
func getCollectionStats(c *serve.Call) error {
	collections, err := c.DB.Collections(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	byName, sum := make(map[string]int64), int64(0)
	for _, one := range collections {
		byName[one.Name] = one.Documents
		sum += one.Documents
	}
	return c.Listed(http.StatusOK, map[string]any{"CountOfDocuments": sum, "CountOfConflicts": 0, "Collections": byName})
}

// healthcheck replies with 204 if the database is open and takes writes, with 200 and the
// reason if it takes deletions only, as its disk is almost full, and with 503 if it takes no
// writes at all, or if the program that mounts it has closed it.
func healthcheck(c *serve.Call) error {
	trouble, err := c.Server.Databases.Look(c.Ctx, c.Database)
	if errors.Is(err, jay.ErrClosed) || errors.Is(err, jay.ErrUnavailable) { // as other requests of the database
		return err
	}
	switch trouble {
	case serve.LowOnSpace:
		return c.JSON(http.StatusOK, map[string]string{"Status": "degraded", "Reason": serve.MessageDiskFull})
	case serve.DiskFull:
		return &serve.Problem{Status: http.StatusServiceUnavailable, Kind: serve.TypeInternal, Message: serve.MessageFailedFull}
	case serve.DiskFailed:
		return &serve.Problem{Status: http.StatusServiceUnavailable, Kind: serve.TypeInternal, Message: serve.MessageFailed}
	}
	return c.Empty(http.StatusNoContent)
}
