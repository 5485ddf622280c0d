package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// statsCommand shows figures about the database.
type statsCommand struct{}

// Help is shown by jay stats --help.
func (*statsCommand) Help() string {
	return `It reads every document to count it. Sizes are those of IDs, metadata and bodies before compression; what the directory takes up is shown below.

Examples:

    jay stats
    jay stats --json | jq '.collections[] | select(.documents > 1000) | .name'`
}

// Run prints the figures.
func (c *statsCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		s, err := db.Stats(ctx, nil)
		if err != nil {
			return err
		}
		indexes, err := db.Indexes(ctx, "")
		if err != nil {
			return err
		}
		r := newStatsResult(a.dir, s, indexes)
		if a.json {
			return a.printLine(r)
		}
		return a.printStats(s, r)
	})
}

// statsResult is what stats prints with --json.
type statsResult struct {
	Dir           string              `json:"dir"`
	Separator     string              `json:"separator"`
	NodeTag       string              `json:"nodeTag"`
	CaseSensitive bool                `json:"caseSensitive"`
	Prefixes      bool                `json:"prefixCollections"`
	Documents     int64               `json:"documents"`
	Bytes         int64               `json:"bytes"`
	Collections   []collectionResult  `json:"collections"`
	Revisions     []jay.RevisionCount `json:"revisions,omitempty"`
	Counters      jay.Counters        `json:"counters"`
	Expiry        jay.ExpiryStats     `json:"expiry"`
	Engine        jay.EngineStats     `json:"engine"`

	Attachments jay.AttachmentStats `json:"attachments"`
}

// collectionResult is the part of statsResult about one collection.
type collectionResult struct {
	jay.CollectionStats
	Indexes int `json:"indexes,omitempty"`
}

func newStatsResult(dir string, s jay.Stats, indexes []jay.IndexInfo) statsResult {
	r := statsResult{
		Dir:           dir,
		Separator:     s.Separator,
		NodeTag:       s.NodeTag,
		CaseSensitive: s.CaseSensitive,
		Prefixes:      s.PrefixCollections,
		Collections:   []collectionResult{}, // [] in JSON, not null
		Revisions:     s.Revisions,
		Counters:      s.Counters,
		Expiry:        s.Expiry,
		Engine:        s.Engine,
		Attachments:   s.Attachments,
	}
	for _, one := range s.Collections {
		c := collectionResult{CollectionStats: one}
		for _, i := range indexes {
			if strings.EqualFold(i.Collection, one.Name) {
				c.Indexes++
			}
		}
		r.Collections = append(r.Collections, c)
		r.Documents += one.Documents
		r.Bytes += one.Bytes
	}
	return r
}

func (a *app) printStats(s jay.Stats, all statsResult) error {
	collections := newFigures("Collection", "Documents", "Size", "Indexes")
	for _, c := range all.Collections {
		collections.add(c.Name, c.Documents, size(c.Bytes), c.Indexes)
	}
	collections.total("all", all.Documents, size(all.Bytes))

	counters := newFigures("Counter", "Last number")
	counters.add("etag (all writes)", s.Counters.Etag)
	for _, name := range slices.Sorted(maps.Keys(s.Counters.Identities)) {
		counters.add("identity "+name, s.Counters.Identities[name])
	}
	for _, tag := range slices.Sorted(maps.Keys(s.Counters.HiLo)) {
		counters.add("HiLo "+tag, s.Counters.HiLo[tag])
	}
	revisions := ""
	if len(s.Revisions) > 0 {
		t := newFigures("Revisions of", "Beside the documents")
		for _, c := range s.Revisions {
			t.add(c.Collection, c.Revisions)
		}
		revisions = t.render(a.width) + "\n\n"
	}

	prefixes := "suggest no collection"
	if s.PrefixCollections {
		prefixes = "suggest collections"
	}
	disk := size(int64(s.Engine.DiskBytes)) + " on disk"
	if n := s.Engine.ReclaimableBytes; n > 0 {
		disk += fmt.Sprintf(" (jay compact frees about %s)", size(int64(n)))
	}
	attached := ""
	if n := s.Attachments; n.Attachments > 0 {
		attached = fmt.Sprintf("%s, %s, of which %s are stored\n\n", count(n.Attachments, "attachment"), size(n.Bytes), size(n.StoredBytes))
	}
	return a.print(fmt.Sprintf("%s\n\n%s\n\n%s%sDatabase %s: %s, separator %s, node tag %s, prefixes %s\n%s",
		collections.render(a.width), counters.render(a.width), revisions, attached, a.dir, disk, s.Separator, s.NodeTag, prefixes, expiryText(s.Expiry)))
}

// expiryText is the line about what is due for documents, if there is anything.
func expiryText(e jay.ExpiryStats) string {
	text := ""
	if e.Expiring+e.Refreshing > 0 {
		text = fmt.Sprintf("Due at some time: %d documents expire, %d are refreshed; due already: %d\n", e.Expiring, e.Refreshing, e.Due)
	}
	if e.Kept > 0 {
		text += fmt.Sprintf("An older Jay has written %d documents with an @expires that stay: docs/expiry.md says why\n", e.Kept)
	}
	return text
}
