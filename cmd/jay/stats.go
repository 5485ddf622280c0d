package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/jaydb/jay"
)

// statsCommand shows figures about the database.
type statsCommand struct{}

// Help is shown by jay stats --help.
func (*statsCommand) Help() string {
	return `It reads every document to count it. Bytes are those of IDs, metadata and bodies before compression; what the directory takes up is shown below.

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
	Dir           string             `json:"dir"`
	Separator     string             `json:"separator"`
	NodeTag       string             `json:"nodeTag"`
	CaseSensitive bool               `json:"caseSensitive"`
	Prefixes      bool               `json:"prefixCollections"`
	Documents     int64              `json:"documents"`
	Bytes         int64              `json:"bytes"`
	Collections   []collectionResult `json:"collections"`
	Counters      jay.Counters       `json:"counters"`
	Engine        jay.EngineStats    `json:"engine"`
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
		Counters:      s.Counters,
		Engine:        s.Engine,
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
	collections := newTable("Collection", "Documents", "Bytes", "Indexes")
	for _, c := range all.Collections {
		collections.AppendRow(table.Row{c.Name, c.Documents, c.Bytes, c.Indexes})
	}
	collections.AppendFooter(table.Row{"all", all.Documents, all.Bytes})

	counters := newTable("Counter", "Last number")
	counters.AppendRow(table.Row{"etag (all writes)", s.Counters.Etag})
	for _, name := range slices.Sorted(maps.Keys(s.Counters.Identities)) {
		counters.AppendRow(table.Row{"identity " + name, s.Counters.Identities[name]})
	}
	for _, tag := range slices.Sorted(maps.Keys(s.Counters.HiLo)) {
		counters.AppendRow(table.Row{"HiLo " + tag, s.Counters.HiLo[tag]})
	}

	prefixes := "suggest no collection"
	if s.PrefixCollections {
		prefixes = "suggest collections"
	}
	return a.print(fmt.Sprintf("%s\n\n%s\n\nDatabase %s: %d bytes on disk, separator %s, node tag %s, prefixes %s\n",
		collections.Render(), counters.Render(), a.dir, s.Engine.DiskBytes, s.Separator, s.NodeTag, prefixes))
}

// newTable returns a table whose columns after the first hold numbers.
func newTable(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Format.Footer = text.FormatDefault
	t.AppendHeader(header)
	columns := make([]table.ColumnConfig, 0, len(header))
	for i := 2; i <= len(header); i++ {
		columns = append(columns, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t
}
