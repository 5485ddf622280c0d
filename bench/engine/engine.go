// Package engine provides one interface to the stores that are compared: Jay, raw
// Pebble, and Jay's peers.
//
// Every engine keeps one collection of JSON documents by their IDs. Docs says with
// which settings; docs/benchmarks.md repeats them.
package engine

import (
	"errors"
	"slices"

	"github.com/jaydb/jay/bench/fixture"
)

// ErrNotFound is returned by Get for an ID that has no document.
var ErrNotFound = errors.New("document not found")

// IDKind says how the IDs of new documents are made.
type IDKind string

// The kinds of IDs.
const (
	HiLo   IDKind = ""   // orders/1-A, orders/2-A, …
	GUIDv4 IDKind = "v4" // random
	GUIDv7 IDKind = "v7" // random, but begins with the time
)

// Key is an ID in both forms that engines take, so that no engine pays for a
// conversion.
type Key struct {
	Text  string
	Bytes []byte
}

// Doc is a document to write. Jay makes the ID of a new document itself, as in its
// normal use; the other engines use the key.
type Doc struct {
	Key
	Body []byte
}

// Settings are the settings of an engine for a workload.
type Settings struct {
	Dir string `json:"-"`
	// Synced asks that a write is on disk before it is acknowledged.
	Synced bool `json:"synced,omitempty"`
	// CacheBytes is for engines that have a cache of their own.
	CacheBytes int64 `json:"cacheBytes,omitempty"`
	// Writers is the number of goroutines that will write at the same time.
	Writers int    `json:"writers,omitempty"`
	IDs     IDKind `json:"ids,omitempty"`
}

// Engine is an open store. Insert, the methods that end in One, and those that
// read, are safe for concurrent use. Keys and bodies belong to the caller and change
// after the call.
type Engine interface {
	// Insert writes new documents in one atomic batch.
	Insert(docs []Doc) error
	// InsertOne writes one new document in a commit of its own.
	InsertOne(doc Doc) error
	// Update replaces documents in one atomic batch.
	Update(docs []Doc) error
	// UpdateOne replaces one document in a commit of its own.
	UpdateOne(doc Doc) error
	// Delete deletes documents in one atomic batch.
	Delete(keys []Key) error
	// DeleteOne deletes one document in a commit of its own.
	DeleteOne(key Key) error
	// Get returns the body of a document, which belongs to the caller, or
	// ErrNotFound.
	Get(key Key) ([]byte, error)
	// GetTyped decodes a document, the way a user of the engine would.
	GetTyped(key Key, into *fixture.Order) error
	// Scan reads the documents whose IDs begin with prefix; "" means the whole
	// collection.
	Scan(prefix string, fn Visit) error
	// Rest brings the tables into the order in which they would be after some
	// idle time, if the engine has a way to ask for it. It may close and open
	// the store.
	Rest() error
	Close() error
}

// Syncer is what an engine has that can be asked to have on disk what it has
// acknowledged, whatever its settings.
type Syncer interface{ Sync() error }

// Visit is called with each document of a scan. The body is a copy that
// belongs to the callee; id makes a copy of the ID, and is free if it is not
// called. An error ends the scan.
type Visit func(id func() string, body []byte) error

// Maker opens stores of one kind.
type Maker struct {
	// Name is what the engine is called in tables, flags and files.
	Name string `json:"name"`
	// Module is the path of the module that the engine is in.
	Module string `json:"module"`
	// Synced and Unsynced say what the two durabilities are, and Notes what
	// else there is to know.
	Synced   string `json:"synced"`
	Unsynced string `json:"unsynced"`
	Notes    string `json:"notes"`
	// Queries reports whether its engines are Queriers.
	Queries bool `json:"queries,omitempty"`
	// OnlyTogether says that it is for several goroutines that write durably,
	// and would be the same as another engine elsewhere.
	OnlyTogether bool `json:"onlyTogether,omitempty"`
	// VariantOf names the engine that this one is another way to use. It takes
	// part in the rows that ask for it, and no other.
	VariantOf string `json:"variantOf,omitempty"`
	// Missing says why the engine cannot be had in this build, "" if it can.
	Missing string `json:"missing,omitempty"`

	Open func(s Settings) (Engine, error) `json:"-"`
	// OpenBare, if not nil, opens the closed store's files with raw Pebble and
	// returns how to close them: the measure for how long an Open takes.
	OpenBare func(dir string, cacheBytes int64) (closeBare func() error, err error) `json:"-"`
}

// Raw is the name of the engine that is the baseline of the others.
const Raw = "pebble"

// Jay is the name of Jay's own engine.
const Jay = "jay"

// Makers returns all engines, the yardstick first, variants last.
func Makers() []Maker {
	return append([]Maker{
		pebbleMaker, jayMaker, bboltMaker, bboltTunedMaker, badgerMaker, badgerholdMaker, buntdbMaker, moderncMaker, mattnMaker, fileMaker,
	}, jayVariants...)
}

// ByName returns the maker with that name.
func ByName(name string) (Maker, bool) {
	all := Makers()
	i := slices.IndexFunc(all, func(m Maker) bool { return m.Name == name })
	if i < 0 {
		return Maker{}, false
	}
	return all[i], true
}
