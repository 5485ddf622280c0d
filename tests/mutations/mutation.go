package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// mutation is a change that tests must catch.
type mutation struct {
	name  string // what the change does
	edits []edit
	tests []tests // tried one after another until one fails

	// hangs is how long tests may take that notice the change by waiting for ever; 0 for
	// tests that fail. Tests of any other change that do not end prove nothing.
	hangs time.Duration
}

// edit replaces a text in a file that has it exactly once.
type edit struct {
	file     string // below the root of the repository
	old, new string
}

// tests are some tests of a package.
type tests struct {
	dir string // below the root of the repository
	run string // a regular expression, as that of go test -run
}

// mutated returns the changed text of each file.
func (m mutation) mutated(root string) (map[string]string, error) {
	texts := make(map[string]string)
	for _, e := range m.edits {
		text, found := texts[e.file]
		if !found {
			bytes, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = string(bytes)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s has %d times, not once: %q", e.file, n, e.old)
		}
		if e.old == e.new {
			return nil, fmt.Errorf("%s is not changed: %q", e.file, e.old)
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return texts, nil
}

// mutations are all of them.
func mutations() []mutation {
	var all []mutation
	for _, rows := range [][]mutation{numbers, generations, coordinators, transactions, writing, querying, storing, spaces, sharing, standbys, meetings, kept, definitions, expressed, worded, around, computedIndexes, loadingIndexes, placed, vectors, reducing, onPostgres, sealing, copied, live, schemaRules, ofClients} {
		all = append(all, rows...)
	}
	return all
}
