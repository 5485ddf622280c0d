package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/workload"
)

// summary are the rows and the columns of the table of docs/benchmarks.md.
var summary = struct {
	rows    []string
	engines []struct{ name, title string }
}{
	[]string{
		"bulk load, unsynced", "bulk load, synced", "bulk load, 3 indexes, synced",
		"durable insert, 1 goroutine", "durable insert, 8 goroutines", "durable insert, 32 goroutines", "durable insert, 128 goroutines",
		"random get, in cache", "random get, beyond the cache", "hot get, zipfian 0.99", "typed get", "collection scan",
		"update, batches, unsynced", "update, durable, 32 goroutines", "delete, durable, 32 goroutines", "mixed 95/5, 8 goroutines, unsynced",
		"query: equality on an index, 10 documents", "query: range and order by an index, top 10",
		"query: count over an index, 1 of 8", "query: scan with a filter, 1 of 1,000", workload.RowSorted, workload.RowGroups,
		workload.RowOpenShort, "open after a clean close", "open after kill -9",
	},
	[]struct{ name, title string }{
		{engine.Jay, "Jay"}, {engine.Raw, "bare Pebble"}, {"bbolt", "bbolt"}, {"bbolt-tuned", "bbolt, tuned"}, {"badger", "badger"},
		{"sqlite-mattn", "SQLite (C)"}, {"sqlite-modernc", "SQLite (Go)"},
	},
}

// Summary returns the table of docs/benchmarks.md: medians in microseconds, the
// least of each row without bare Pebble in bold.
func (r *Report) Summary() string {
	var b strings.Builder
	b.WriteString("| µs |")
	for _, e := range summary.engines {
		b.WriteString(" " + e.title + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(summary.engines)) + "\n")
	for _, name := range summary.rows {
		for _, row := range r.Rows {
			if row.Workload.Name != name || row.Workload.Group == workload.GroupGrowth {
				continue
			}
			least := math.Inf(1)
			for _, e := range summary.engines {
				if l := row.Line(e.name); l != nil && e.name != engine.Raw {
					least = min(least, l.Spread.Median)
				}
			}
			b.WriteString("| " + name + " |")
			for _, e := range summary.engines {
				l := row.Line(e.name)
				switch {
				case l == nil:
					b.WriteString(" |")
				case l.Spread.Median == least && e.name != engine.Raw:
					fmt.Fprintf(&b, " **%s** |", figureOf(l.Spread.Median))
				default:
					fmt.Fprintf(&b, " %s |", figureOf(l.Spread.Median))
				}
			}
			b.WriteString("\n")
			break
		}
	}
	return b.String()
}

// figureOf writes a figure with three digits, or more if it is above 1,000.
func figureOf(v float64) string {
	switch {
	case v >= 100:
		return number(math.Round(v))
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
