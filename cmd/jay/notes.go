package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// note prints a message on stderr that is not an error. With --json it prints nothing,
// as stderr then has only errors. It ignores errors of stderr.
func (a *app) note(format string, args ...any) {
	if !a.json {
		_ = a.stdout.Flush() // print what the note is about first; run reports the error
		fmt.Fprintf(a.stderr, "note: %s\n", printable(fmt.Sprintf(format, args...)))
	}
}

// noteEmptyCollection notes that a collection has no documents, as its name may be
// misspelt.
func (a *app) noteEmptyCollection(ctx context.Context, db *jay.DB, name string) error {
	if a.json || name == "" || strings.HasPrefix(name, "@") {
		return nil
	}
	for _, err := range db.Documents(ctx, jay.Scan{Collection: name, Limit: 1}) {
		return err
	}
	a.note("no document is in a collection %q", name)
	return nil
}

// missingFields returns the fields of an index that none of the first 1,000 documents of its collection has, as
// their names may be misspelt, and the number of documents that were read.
func missingFields(ctx context.Context, db *jay.DB, collection string, fields []string) (names []string, read int64, err error) {
	missing := make(map[string]*jay.Matcher)
	for _, field := range fields {
		path, _, _ := strings.Cut(strings.TrimPrefix(field, "-"), " as ")
		if !plainPath.MatchString(path) {
			continue // an expression
		}
		m, err := db.Query(collection).Where(jay.Exists(path)).Matcher()
		if err != nil {
			return nil, 0, err
		}
		missing[path] = m
	}
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: collection, Limit: 1000}) {
		if err != nil || len(missing) == 0 {
			return nil, read, err
		}
		read++
		for path, m := range missing {
			has, err := m.Match(ctx, doc)
			if err != nil {
				return nil, read, err
			}
			if has {
				delete(missing, path)
			}
		}
	}
	return slices.Sorted(maps.Keys(missing)), read, nil
}

var plainPath = regexp.MustCompile(`^[\pL_][\pL\pN_.\[\]]*$`)

// collectionOf returns the collection of a query as Query.String writes it, or "".
func collectionOf(query string) string {
	rest, found := strings.CutPrefix(query, "from ")
	if !found {
		return ""
	}
	quoted, found := strings.CutPrefix(rest, "'")
	if !found {
		name, _, _ := strings.Cut(rest, " ")
		return name
	}
	var name strings.Builder
	for i := 0; i < len(quoted) && quoted[i] != '\''; i++ {
		if quoted[i] == '\\' {
			i++
		}
		if i < len(quoted) {
			name.WriteByte(quoted[i])
		}
	}
	return name.String()
}

// isSystem reports whether a document is one that Jay or RavenDB keeps for itself.
func isSystem(doc *jay.Document) bool {
	id := doc.ID()
	return strings.EqualFold(doc.Collection(), "@hilo") || len(id) >= len(systemPrefix) && strings.EqualFold(id[:len(systemPrefix)], systemPrefix)
}

const systemPrefix = "Raven/"
