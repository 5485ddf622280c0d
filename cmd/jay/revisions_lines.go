package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// An export has the configuration of the revisions, and the revisions, on lines of
// their own before the documents, because an import must store the revisions of a
// document before the document. The @metadata of such a line is a string and not an
// object, so that a version of jay without revisions refuses the line and does not take
// it for a document. For a revision the string is the mark followed by the @metadata as
// JSON.
const (
	revisionMark       = "jay revision 1: "
	configurationMark  = "jay revisions configuration 1"
	revisionMarksBegin = "jay revision"
)

// configurationLine is the line of the configuration.
type configurationLine struct {
	Mark string `json:"@metadata"`
	jay.RevisionsConfiguration
}

// writeRevisions writes the lines of the revisions of a collection, or of all, and
// returns their number.
func writeRevisions(ctx context.Context, db *jay.DB, collection string, w io.Writer) (n int64, err error) {
	config := db.Revisions().Configuration()
	if config.Default != nil || len(config.Collections) > 0 {
		line, err := json.Marshal(configurationLine{configurationMark, config})
		if err != nil {
			return 0, err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return 0, err
		}
	}
	for rev, err := range db.Revisions().All(ctx, collection) {
		if err != nil {
			return n, err
		}
		line, err := revisionLine(rev)
		if err != nil {
			return n, err
		}
		if _, err := w.Write(line); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func revisionLine(rev *jay.Revision) ([]byte, error) {
	text, err := rev.MarshalJSON()
	if err != nil {
		return nil, err
	}
	m := metadataOf(text)
	mark, err := json.Marshal(revisionMark + m.Raw)
	if err != nil {
		return nil, err
	}
	line := append(text[:m.Index:m.Index], mark...)
	return append(append(line, text[m.Index+len(m.Raw):]...), '\n'), nil
}

// maxRevisionLines is the number of revisions that a loader imports at a time.
const maxRevisionLines = 200

// addRevision handles a value that is a line about revisions: found reports whether it
// is. It imports revisions in batches, and adopts a configuration if the database has
// none.
func (l *loader) addRevision(ctx context.Context, v value, m gjson.Result) (found bool, err error) {
	if m.Str == "" || !strings.HasPrefix(m.Str, revisionMarksBegin) {
		return false, nil
	}
	if len(l.filling.items) > 0 { // keep the order of the input
		if err := l.flush(ctx); err != nil {
			return true, err
		}
	}
	switch {
	case m.Str == configurationMark:
		if err := l.configureRevisions(ctx, v.text); err != nil {
			return true, l.reject(v, err)
		}
		return true, nil
	case !strings.HasPrefix(m.Str, revisionMark):
		return true, l.reject(v, &jay.DocumentError{Rule: "a newer jay wrote this line about revisions", Detail: fmt.Sprintf("%.60q", m.Str)})
	}
	text := append([]byte(nil), v.text[:m.Index]...)
	text = append(append(text, m.Str[len(revisionMark):]...), v.text[m.Index+len(m.Raw):]...)
	v.text = append([]byte(nil), v.text...)
	l.past = append(l.past, pastLine{v, text})
	if l.pastBytes += len(text); len(l.past) == maxRevisionLines || l.pastBytes >= batchBytes {
		return true, l.flushRevisions(ctx)
	}
	return true, nil
}

// pastLine is a line with a revision of the next batch.
type pastLine struct {
	value
	revision json.RawMessage
}

// configureRevisions adopts a configuration, if the database has none.
func (l *loader) configureRevisions(ctx context.Context, text []byte) error {
	var line configurationLine
	if err := json.Unmarshal(text, &line); err != nil {
		return fmt.Errorf("%w: configuration of revisions: %w", jay.ErrInvalidDocument, err)
	}
	config := l.db.Revisions().Configuration()
	if config.Default != nil || len(config.Collections) > 0 {
		return nil
	}
	return l.db.Revisions().Configure(ctx, line.RevisionsConfiguration)
}

// flushRevisions imports the batch of revisions. If one is refused, it imports them one
// by one.
func (l *loader) flushRevisions(ctx context.Context) error {
	lines := l.past
	l.past, l.pastBytes = nil, 0
	if len(lines) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return l.fail(value{}, err)
	}
	all := make([]json.RawMessage, len(lines))
	for i := range lines {
		all[i] = lines[i].revision
	}
	stored, err := l.db.Revisions().Import(ctx, all)
	if err == nil {
		l.revisions += int64(stored)
		return nil
	}
	if !isRefusal(err) {
		return l.fail(value{}, err)
	}
	for i := range lines {
		stored, err := l.db.Revisions().Import(ctx, all[i:i+1])
		l.revisions += int64(stored)
		if err == nil {
			continue
		}
		if err := l.reject(lines[i].value, err); err != nil {
			return err
		}
	}
	return nil
}
