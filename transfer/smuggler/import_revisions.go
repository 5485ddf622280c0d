package smuggler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// maxRevisionLines is the number of revisions that a loader imports at a time.
const maxRevisionLines = 200

// pastLine is a line with a revision of the next batch.
type pastLine struct {
	Record
	revision json.RawMessage
}

// addRevision handles a record that is a line about revisions: found reports whether it
// is. It imports revisions in batches, and adopts a configuration if the database has
// none.
func (im *Importer) addRevision(ctx context.Context, v Record, m gjson.Result) (found bool, err error) {
	if m.Str == "" || !strings.HasPrefix(m.Str, revisionMarksBegin) {
		return false, nil
	}
	if len(im.filling.items) > 0 { // keep the order of the input
		if err := im.flush(ctx); err != nil {
			return true, err
		}
	}
	switch {
	case m.Str == configurationMark:
		if err := im.configureRevisions(ctx, v); err != nil {
			return true, im.reject(v, err)
		}
		return true, nil
	case !strings.HasPrefix(m.Str, revisionMark):
		return true, im.reject(v, &jay.DocumentError{Rule: "a newer jay wrote this line about revisions", Detail: fmt.Sprintf("%.60q", m.Str)})
	}
	text := append([]byte(nil), v.Text[:m.Index]...)
	text = append(append(text, m.Str[len(revisionMark):]...), v.Text[m.Index+len(m.Raw):]...)
	return true, im.holdRevision(ctx, v, text)
}

// configureRevisions adopts a configuration, if the database has none.
func (im *Importer) configureRevisions(ctx context.Context, v Record) error {
	if im.o.NoSettings {
		im.leaveOut("configuration of revisions")
		return nil
	}
	if err := im.room(v, memberOfMap); err != nil {
		return err
	}
	var line configurationLine
	if err := json.Unmarshal(v.Text, &line); err != nil {
		return fmt.Errorf("%w: configuration of revisions: %w", jay.ErrInvalidDocument, err)
	}
	config := im.db.Revisions().Configuration()
	if config.Default != nil || len(config.Collections) > 0 {
		return nil
	}
	return im.db.Revisions().Configure(ctx, line.RevisionsConfiguration)
}

// holdRevision adds a revision, which a record has, to the next batch.
func (im *Importer) holdRevision(ctx context.Context, v Record, revision []byte) error {
	v.Text = bytes.Clone(v.Text)
	im.past = append(im.past, pastLine{v, revision})
	if im.pastBytes += len(revision); len(im.past) == maxRevisionLines || im.pastBytes >= im.o.BatchBytes/2 {
		return im.flushRevisions(ctx)
	}
	return nil
}

// flushRevisions imports the batch of revisions. If one is refused, it imports them one
// by one.
func (im *Importer) flushRevisions(ctx context.Context) error {
	lines := im.past
	im.past, im.pastBytes = nil, 0
	if len(lines) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return im.fail(Record{}, err)
	}
	all := make([]json.RawMessage, len(lines))
	for i := range lines {
		all[i] = lines[i].revision
	}
	stored, err := im.db.Revisions().Import(ctx, all)
	if err == nil {
		im.done.Revisions += int64(stored)
		im.report()
		return nil
	}
	if !isRefusal(err) {
		return im.fail(Record{}, err)
	}
	for i := range lines {
		stored, err := im.db.Revisions().Import(ctx, all[i:i+1])
		im.done.Revisions += int64(stored)
		if err == nil {
			continue
		}
		if err := im.reject(lines[i].Record, err); err != nil {
			return err
		}
	}
	return nil
}
