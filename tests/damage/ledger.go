package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// state is what a database must hold.
type state struct {
	Docs  map[string]stored // by ID
	Ever  map[string]bool   // IDs that were made; none may come again
	Loose map[string]bool   // documents of operations without an acknowledgement: they may be as they like

	// entries are the IDs by field and value.
	entries map[string]map[string][]string
}

type stored struct {
	Body         string
	ChangeVector string
}

// ledger is what the writers acknowledged.
type ledger struct {
	docs    map[string]int // the N of each document; -1 once it was deleted
	owner   map[string]int // its G
	ever    map[string]bool
	pending map[[2]int]entry // begun and not acknowledged
}

func newLedger() *ledger {
	return &ledger{docs: make(map[string]int), owner: make(map[string]int), ever: make(map[string]bool), pending: make(map[[2]int]entry)}
}

func (l *ledger) add(e entry) {
	key := [2]int{e.G, e.N}
	if e.Begin {
		l.pending[key] = e
		return
	}
	delete(l.pending, key)
	l.owner[e.ID] = e.G
	l.docs[e.ID] = e.N
	if e.Delete {
		l.docs[e.ID] = -1
	}
	if !strings.HasPrefix(e.ID, "things/") {
		l.ever[e.ID] = true
	}
}

// state reads a copy of the undamaged image, compares it with the ledger, and
// returns what it holds. Later losses are judged by that.
func (l *ledger) state(im *image) (*state, error) {
	dir := im.dir + "-read"
	if err := copyDir(dir, im.dir); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	db, err := jay.Open(dir, options(im.relaxed, true))
	if err != nil {
		return nil, err
	}
	defer db.Close()

	s := &state{Docs: make(map[string]stored), Ever: maps.Clone(l.ever), Loose: make(map[string]bool)}
	pending := make(map[[2]int]bool)
	for key, e := range l.pending {
		pending[key] = true
		if e.ID != "" {
			s.Loose[e.ID] = true
		}
	}
	for doc, err := range db.Documents(context.Background(), jay.Scan{}) {
		if err != nil {
			return nil, err
		}
		if ours(doc.ID()) {
			s.Docs[doc.ID()] = stored{string(doc.Body()), doc.ChangeVector()}
			var b body
			if err := json.Unmarshal(doc.Body(), &b); err != nil {
				return nil, err
			}
			if pending[[2]int{b.G, b.N}] {
				s.Loose[doc.ID()] = true
			}
		}
	}
	for id, n := range l.docs {
		doc, found := s.Docs[id]
		switch {
		case s.Loose[id]:
		case im.relaxed && im.killed: // the last of them may be lost, which is said of Relaxed
		case n < 0 && found:
			return nil, fmt.Errorf("%s was deleted and is there", id)
		case n >= 0 && !found:
			return nil, fmt.Errorf("%s was acknowledged and is not there", id)
		case n >= 0 && doc.Body != string(newBody(l.owner[id], n)):
			return nil, fmt.Errorf("%s is %s, want %d", id, doc.Body, n)
		}
	}
	return s, nil
}

// ours reports whether a document was written by this program: those under
// Raven/ are Jay's own, and change with every Open.
func ours(id string) bool { return !strings.HasPrefix(id, "Raven/") }

// save writes the state where those who judge find it.
func (s *state) save(path string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

func loadState(path string) (*state, error) {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	s.entries = make(map[string]map[string][]string)
	for id, doc := range s.Docs {
		if err := s.enter(id, doc.Body); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// with returns the state with more documents.
func (s *state) with(docs map[string]stored) (*state, error) {
	more := &state{Docs: maps.Clone(s.Docs), Ever: maps.Clone(s.Ever), Loose: s.Loose, entries: make(map[string]map[string][]string)}
	for field, values := range s.entries {
		more.entries[field] = maps.Clone(values)
	}
	for id, doc := range docs {
		more.Docs[id], more.Ever[id] = doc, true
		if err := more.enter(id, doc.Body); err != nil {
			return nil, err
		}
	}
	return more, nil
}

// enter adds a document to the entries. Lists are copied, not appended to: the
// state that this one was made of has them, too.
func (s *state) enter(id, text string) error {
	var b body
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return err
	}
	for field, values := range map[string][]string{"City": {b.City}, "Tags": b.Tags} {
		if s.entries[field] == nil {
			s.entries[field] = make(map[string][]string)
		}
		for _, value := range values {
			s.entries[field][value] = append(slices.Clip(s.entries[field][value]), id)
		}
	}
	return nil
}
