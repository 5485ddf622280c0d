package server

import (
	"fmt"
	"net/http"

	"github.com/jaydb/jay"
)

// healthcheck replies that the database is open.
func (c *call) healthcheck() error { return c.empty(http.StatusNoContent) }

// stats replies with the statistics of the database.
func (c *call) stats() error {
	now, err := c.db.Stats(c.ctx)
	if err != nil {
		return err
	}
	indexes, err := c.indexStats()
	if err != nil {
		return err
	}
	documents, revisions := int64(0), int64(0)
	for _, one := range now.Collections {
		documents += one.Documents
	}
	for _, one := range now.Revisions {
		revisions += one.Revisions
	}
	newest, err := c.newestChangeVector()
	if err != nil {
		return err
	}
	size, err := diskBytes(c.db.Dir())
	if err != nil {
		return err
	}
	sizes := map[string]any{"HumaneSize": humane(size), "SizeInBytes": size}
	return c.json(http.StatusOK, map[string]any{
		"LastDocEtag": now.Counters.Etag, "LastDatabaseEtag": now.Counters.Etag, "CountOfIndexes": len(indexes), "CountOfDocuments": documents,
		"CountOfRevisionDocuments": revisions, "CountOfDocumentsConflicts": 0, "CountOfTombstones": 0, "CountOfConflicts": 0, "CountOfAttachments": now.Attachments.Attachments,
		"CountOfUniqueAttachments": now.Attachments.Contents, "CountOfCounterEntries": 0, "CountOfTimeSeriesSegments": 0, "Indexes": indexes, "DatabaseChangeVector": newest,
		"DatabaseId": c.database.record.ID, "Is64Bit": true, "Pager": "Pebble", "LastIndexingTime": nil, "SizeOnDisk": sizes,
		"TempBuffersSizeOnDisk": map[string]any{"HumaneSize": "0 Bytes", "SizeInBytes": 0}, "NumberOfTransactionMergerQueueOperations": 0,
	})
}

// indexStats describes the indexes. Each is up to date, unless it is being built.
func (c *call) indexStats() ([]any, error) {
	indexes, err := c.db.Indexes(c.ctx, "")
	list := []any{}
	for _, ix := range indexes {
		list = append(list, map[string]any{"Name": ix.Collection + "/" + ix.Name, "IsStale": ix.State != jay.IndexReady, "State": "Normal", "LockMode": "Unlock",
			"Priority": "Normal", "Type": "AutoMap", "LastIndexingTime": c.s.opts.Now().UTC().Format(ravenTime)})
	}
	return list, err
}

// newestChangeVector returns the change vector of the document that was written last, or
// "".
func (c *call) newestChangeVector() (string, error) {
	for doc, err := range c.db.Query("").OrderBy("-@metadata.@etag").Limit(1).Iter(c.ctx) {
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

// collectionStats replies with the number of documents in each collection.
func (c *call) collectionStats() error {
	collections, err := c.db.Collections(c.ctx)
	if err != nil {
		return err
	}
	byName, sum := make(map[string]int64), int64(0)
	for _, one := range collections {
		byName[one.Name] = one.Documents
		sum += one.Documents
	}
	return c.json(http.StatusOK, map[string]any{"CountOfDocuments": sum, "CountOfConflicts": 0, "Collections": byName})
}
