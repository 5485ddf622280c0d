// Package workload defines the workloads, and checks the documents that the
// engines keep. It runs inside the process of one engine, where package worker
// calls it.
package workload

import (
	"fmt"
	"slices"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
)

// Params decide the sizes of all workloads. The same ones make the same list.
type Params struct {
	// Docs is the number of documents of a workload with documents of Size
	// bytes; those of other sizes have as many as take the same room.
	Docs int `json:"docs"`
	Size int `json:"size"`
	// Rounds is the number of rounds that will be asked for.
	Rounds int `json:"rounds"`
	// RealFile holds real documents, "" if there are none.
	RealFile string `json:"realFile,omitempty"`
	// Limit ends a round of single operations early. What it has done counts.
	Limit time.Duration `json:"limit"`
	// Growth asks for the workloads that are repeated at growing sizes.
	Growth bool `json:"growth,omitempty"`
}

// Workload is one row of the results.
type Workload struct {
	Name  string `json:"name"`
	Group string `json:"group"` // of the plot it belongs in
	// Docs is the number of documents that are there when the clock starts, or,
	// if each round begins with none, that are written.
	Docs int `json:"docs"`
	// Ops is the number of operations in a round, each counted for itself.
	Ops      int             `json:"ops"`
	Rounds   int             `json:"rounds"`
	Size     int             `json:"size"` // of a document, 0 if real
	Settings engine.Settings `json:"settings"`
	// Unit is what an operation is, and LatencyOf what the percentiles are of,
	// if that is something else.
	Unit      string `json:"unit"`
	LatencyOf string `json:"latencyOf,omitempty"`
	// Writes says that durability matters in this row.
	Writes bool `json:"writes"`
	// Killed says that the process is killed once the documents are there, and
	// the rounds happen in another one.
	Killed bool `json:"killed,omitempty"`
	// Subject is the engine that the row is about, and Baseline the one whose
	// time the others are divided by. The defaults are Jay and raw Pebble.
	Subject  string `json:"subject"`
	Baseline string `json:"baseline"`

	fresh    bool // each round begins with an empty directory
	loaded   bool // Docs documents are there, and at rest, before the first round
	rested   bool // all but the last shortLog documents are at rest when it is closed
	closed   bool // the round opens the engine itself
	anyIDs   bool // which document has which ID isn't known
	queries  bool // needs engine.Querier
	indexes  bool // engine.Indexes are there
	inPlace  bool // revisions differ in nothing else
	warm     bool // all is read once before the first round
	realDocs bool
	engines  []string // the only ones that run it; nil means all but variants
	pick     func(a *asker) question
	round    func(r *Run) error
}

// Durability says what is asked of writes, in a word.
func (w *Workload) Durability() string {
	switch {
	case !w.Writes:
		return "–"
	case w.Settings.Synced:
		return "synced"
	}
	return "unsynced"
}

// RunsOn reports whether the engines of m can do what the workload asks.
func (w *Workload) RunsOn(m engine.Maker) bool {
	if w.engines != nil || m.VariantOf != "" {
		return slices.Contains(w.engines, m.Name)
	}
	if m.OnlyTogether && !(w.Writes && w.Settings.Synced && w.Settings.Writers > 1) {
		return false
	}
	return m.Queries || !w.queries
}

// Bytes is about the size of all documents.
func (w *Workload) Bytes() int64 {
	if w.realDocs {
		return int64(w.Docs) * realBytes
	}
	return int64(w.Docs) * int64(w.Size)
}

// realBytes is about the size of a package in `go list -json`.
const realBytes = 4 << 10

// Sizes of documents that are measured beside the one that was asked for.
var otherSizes = []int{100, 4 << 10, 100_000}

const (
	// DefaultCacheBytes is what an engine's cache gets if a row says nothing
	// else: what Jay uses by default.
	DefaultCacheBytes = fixture.DefaultCacheBytes
	leastCacheBytes   = 1 << 20
)

// list collects workloads, whose defaults it fills in.
type list struct {
	p   Params
	all []Workload
}

// All returns the workloads, in the order in which they run.
func All(p Params) []Workload {
	l := &list{p: p}
	if p.Growth {
		l.addGrowth()
		return l.all
	}
	l.addBulk()
	l.addDurable()
	l.addReads()
	l.addChanges()
	l.addSizes()
	l.addOpens()
	l.addSessions()
	l.addQueries()
	return l.all
}

// ByName returns one of All.
func ByName(p Params, name string) (Workload, error) {
	for _, w := range All(p) {
		if w.Name == name {
			return w, nil
		}
	}
	return Workload{}, fmt.Errorf("no workload %q", name)
}

func (l *list) add(workloads ...Workload) {
	for _, w := range workloads {
		if w.Docs == 0 {
			w.Docs = l.p.Docs
		}
		if w.Size == 0 && !w.realDocs {
			w.Size = l.p.Size
		}
		if w.Ops == 0 {
			w.Ops = w.Docs
		}
		if w.Rounds == 0 {
			w.Rounds = l.p.Rounds
		}
		if w.Unit == "" {
			w.Unit = "document"
		}
		if w.Subject == "" {
			w.Subject, w.Baseline = engine.Jay, engine.Raw
		}
		if w.Settings.CacheBytes == 0 {
			w.Settings.CacheBytes = DefaultCacheBytes
		}
		w.Settings.Writers = max(1, w.Settings.Writers)
		l.all = append(l.all, w)
	}
}

func (l *list) addBulk() {
	bulk := Workload{Group: "bulk", Writes: true, fresh: true, LatencyOf: "batch", round: bulkLoad}
	add := func(name string, change func(w *Workload)) {
		w := bulk
		w.Name = name
		change(&w)
		l.add(w)
	}
	add("bulk load, unsynced", func(w *Workload) {})
	add("bulk load, synced", func(w *Workload) { w.Settings.Synced = true })
	add("bulk load, GUID v4, unsynced", func(w *Workload) { w.Settings.IDs, w.anyIDs = engine.GUIDv4, true })
	add("bulk load, GUID v7, unsynced", func(w *Workload) { w.Settings.IDs, w.anyIDs = engine.GUIDv7, true })
}

func (l *list) addDurable() {
	for _, goroutines := range []int{1, 8, 32, 128} {
		rounds := l.p.Rounds
		if goroutines == 1 && rounds > 1 {
			rounds = max(10, rounds) // a sync's time varies so much
		}
		l.add(Workload{
			Rounds: rounds,
			Name:   "durable insert, " + plural(goroutines, "goroutine"), Group: "durable", Writes: true,
			Docs: l.few(), Settings: engine.Settings{Synced: true, Writers: goroutines},
			anyIDs: true, fresh: true, round: insertSingly,
		})
	}
	l.add(Workload{
		Rounds: max(20, l.p.Rounds), Name: RowAlone, Group: "durable", Writes: true, Baseline: engine.FileLog, Subject: engine.Jay,
		Docs: min(500, l.few()), Settings: engine.Settings{Synced: true}, anyIDs: true, fresh: true, round: insertSingly,
		engines: []string{engine.FileLog, engine.Jay, engine.Raw, "sqlite-mattn"},
	})
	l.add(Workload{
		Name: "durable insert under a bulk load", Group: "durable", Writes: true,
		Settings: engine.Settings{Synced: true}, anyIDs: true, fresh: true, round: insertUnderLoad,
	})
	l.add(Workload{
		Name: RowBesideWriter, Group: "durable", Writes: true,
		Settings: engine.Settings{Synced: true}, anyIDs: true, fresh: true, round: insertUnderLoad,
		Subject: engine.JayBulk, engines: []string{engine.JayBulk},
	})
}

// RowBesideWriter is the inserts under a bulk load by Jay's bulk writer, which makes room.
const RowBesideWriter = "durable insert beside a bulk writer"

// RowAlone is durable inserts by one goroutine, in many short rounds, with a file as the limit.
const RowAlone = "durable insert, 1 goroutine, and a file"

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// few is the number of operations that wait for the disk, one by one.
func (l *list) few() int { return min(l.p.Docs, max(256, l.p.Docs/20)) }

// The pages at either end of the order of IDs. At a million documents the newest should
// take at most 1.2 times as long as the oldest.
const (
	RowOldest = "page of 100 documents, oldest first"
	RowNewest = "page of 100 documents, newest first"
)

func (l *list) addReads() {
	read := Workload{Group: "reads", Ops: 3 * l.p.Docs, loaded: true, warm: true, Settings: engine.Settings{CacheBytes: l.wholeCache()}}
	add := func(name string, round func(r *Run) error, change func(w *Workload)) {
		w := read
		w.Name, w.round = name, round
		if change != nil {
			change(&w)
		}
		l.add(w)
	}
	add("random get, in cache", randomGet, nil)
	add("random get, beyond the cache", randomGet, func(w *Workload) {
		w.Settings.CacheBytes = max(leastCacheBytes, int64(l.p.Docs)*int64(l.p.Size)/8)
	})
	add("hot get, zipfian 0.99", hotGet, nil)
	add("missing get", missingGet, nil)
	add("typed get", typedGet, nil)
	add("collection scan", collectionScan, func(w *Workload) { w.Group, w.LatencyOf = "scans", "scan" })
	add("collection scan, GUID v4", collectionScan, func(w *Workload) {
		w.Group, w.LatencyOf, w.Settings.IDs, w.anyIDs = "scans", "scan", engine.GUIDv4, true
	})
	add("prefix scan", prefixScan, func(w *Workload) { w.Group, w.LatencyOf = "scans", "scan" })
	for _, newest := range []bool{false, true} {
		name := RowOldest
		if newest {
			name = RowNewest
		}
		add(name, edge(newest), func(w *Workload) {
			w.Group, w.LatencyOf, w.engines, w.Baseline = "scans", "page", []string{engine.Jay}, engine.Jay
		})
	}
}

// wholeCache is a cache that holds all of the documents, whatever else an
// engine keeps beside them.
func (l *list) wholeCache() int64 { return max(1<<30, 2*int64(l.p.Docs)*int64(l.p.Size)) }

func (l *list) addChanges() {
	change := Workload{Group: "changes", Writes: true, loaded: true}
	add := func(name string, round func(r *Run) error, s engine.Settings, ops int) {
		w := change
		w.Name, w.round, w.Settings, w.Ops = name, round, s, ops
		if ops == 0 {
			w.LatencyOf = "batch"
		}
		w.warm = s.CacheBytes != 0
		l.add(w)
	}
	single := max(256, l.p.Docs/4)
	durable := engine.Settings{Synced: true, Writers: 32}
	add("update, batches, unsynced", updateBatches, engine.Settings{}, 0)
	add("update, batches, in cache, unsynced", updateBatches, engine.Settings{CacheBytes: l.wholeCache()}, 0)
	add("update, one by one, unsynced", updateSingly, engine.Settings{}, single)
	add("update, durable, 32 goroutines", updateSingly, durable, l.few())
	add("delete, batches, unsynced", deleteBatches, engine.Settings{}, 0)
	add("delete, durable, 32 goroutines", deleteSingly, durable, l.few())
	add("mixed 95/5, 8 goroutines, unsynced", mixed(95), engine.Settings{Writers: 8}, l.p.Docs)
	add("mixed 50/50, 8 goroutines, unsynced", mixed(50), engine.Settings{Writers: 8}, single)
}

func (l *list) addSizes() {
	add := func(what string, w Workload) {
		load, get := w, w
		load.Name, load.round, load.Writes, load.fresh, load.LatencyOf = "bulk load, "+what+", unsynced", bulkLoad, true, true, "batch"
		get.Name, get.round, get.loaded, get.warm = "random get, "+what, randomGet, true, true
		get.Settings.CacheBytes = l.wholeCache()
		l.add(load, get)
	}
	for _, size := range otherSizes {
		if size == l.p.Size {
			continue
		}
		docs := min(4*l.p.Docs, max(64, l.p.Docs*l.p.Size/size))
		add(sizeName(size), Workload{Group: "sizes", Size: size, Docs: docs})
	}
	if l.p.RealFile != "" {
		add("go list -json", Workload{Group: "sizes", realDocs: true, Docs: max(64, l.p.Docs/10)})
	}
}

func sizeName(bytes int) string {
	switch {
	case bytes >= 10_000:
		return fmt.Sprintf("%d KB", bytes/1000)
	case bytes >= 1<<10:
		return fmt.Sprintf("%d KB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

// RowOpenShort is an open of files in which nearly all documents are in tables.
const RowOpenShort = "open after a clean close, 1 MB in the log"

const shortLog = 1500

func (l *list) addOpens() {
	open := Workload{Group: "open", Unit: "open", Ops: 1, loaded: true, closed: true,
		Settings: engine.Settings{Synced: true}, round: opening}
	short, clean, killed := open, open, open
	short.Name, short.rested, short.engines = RowOpenShort, true, []string{engine.Jay, engine.Raw}
	clean.Name = "open after a clean close"
	killed.Name, killed.Killed = "open after kill -9", true
	l.add(short, clean, killed)
}

// GroupGrowth is the group of what is repeated with ever more documents.
const GroupGrowth = "growth"

// addGrowth lists what is repeated with ever more documents.
func (l *list) addGrowth() {
	l.add(Workload{Name: "bulk load, unsynced", Group: GroupGrowth, Writes: true, fresh: true, LatencyOf: "batch", round: bulkLoad})
	l.add(Workload{
		Name: "random get, in cache", Group: GroupGrowth, Ops: min(l.p.Docs, 500_000), loaded: true, warm: true,
		Settings: engine.Settings{CacheBytes: l.wholeCache()}, round: randomGet,
	})
	l.add(Workload{
		Name: "random get, default cache", Group: GroupGrowth, Ops: min(l.p.Docs, 500_000), loaded: true, warm: true, round: randomGet,
	})
}
