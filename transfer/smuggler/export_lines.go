package smuggler

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/jaydb/jay"
)

// writeLines writes JSON, one value a line: the counters, revisions, documents with their
// attachments, subscriptions and compare-exchange values.
func writeLines(ctx context.Context, e *Exporter, w io.Writer) error {
	if e.o.Counters {
		counters, err := e.db.Counters(ctx)
		if err != nil {
			return err
		}
		line, err := appendCounters(nil, counters)
		if err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	if e.o.history() {
		if err := writeRevisions(ctx, e, w); err != nil {
			return err
		}
	}
	err := e.Each(ctx, func(one Exported) error {
		line, err := e.json(one)
		if err != nil {
			return err
		}
		if _, err = w.Write(append(line, '\n')); err != nil {
			return err
		}
		return e.attachments(one, func(a jay.Attachment) error {
			return writeAttachment(ctx, e.tx, w, one.Document.ID(), a)
		})
	})
	if err != nil || !e.o.whole() {
		return err
	}
	if err := writeSubscriptions(ctx, e.db, w); err != nil {
		return err
	}
	return writeExchanges(ctx, e, w)
}

// writeRevisions writes the lines of the configuration and of the revisions.
func writeRevisions(ctx context.Context, e *Exporter, w io.Writer) error {
	config := e.db.Revisions().Configuration()
	if config.Default != nil || len(config.Collections) > 0 {
		line, err := json.Marshal(configurationLine{configurationMark, config})
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return e.eachRevision(ctx, func(rev *jay.Revision) error {
		line, err := revisionLine(rev)
		if err != nil {
			return err
		}
		_, err = w.Write(line)
		return err
	})
}

// writeAttachment writes an attachment of a document.
func writeAttachment(ctx context.Context, tx *jay.Tx, w io.Writer, id string, a jay.Attachment) (err error) {
	r, err := tx.Attachments(id).Get(ctx, a.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := writeLine(w, attachmentLine{json.RawMessage(attachmentMark), attachmentVersion, id, a.Name, a.ContentType, a.Size, a.Hash}); err != nil {
		return err
	}
	buffer := make([]byte, lineBytes)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, buffer)
		if n > 0 {
			if err := writeLine(w, attachmentData{json.RawMessage(attachmentDataMark), buffer[:n]}); err != nil {
				return err
			}
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return nil
		default:
			return err
		}
	}
}

// writeSubscriptions writes the lines of all subscriptions.
func writeSubscriptions(ctx context.Context, db *jay.DB, w io.Writer) error {
	all, err := db.Subscriptions().List(ctx)
	if err != nil {
		return err
	}
	for _, info := range all {
		line, err := json.Marshal(subscriptionLine{
			subscriptionMark, info.Name, info.Query, info.Deletions, info.MaxFailures, int64(info.RetryDelay), info.Disabled,
			info.Behind == 0 && info.Failing == 0,
		})
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// writeExchanges writes the lines of all compare-exchange values.
func writeExchanges(ctx context.Context, e *Exporter, w io.Writer) error {
	return e.eachExchange(ctx, func(v *jay.CompareExchangeValue) error {
		return writeLine(w, exchangeLine{exchangeMark, v.Key, v.Value, v.Metadata})
	})
}

// writeArray writes the lines of writeLines as the elements of an array.
func writeArray(ctx context.Context, e *Exporter, w io.Writer) error {
	array := &arrayWriter{w: w}
	if err := writeLines(ctx, e, array); err != nil {
		return err
	}
	return array.close()
}

// arrayWriter turns lines of JSON into one JSON array. A line may be written in several
// parts.
type arrayWriter struct {
	w     io.Writer
	begun bool
	line  bool // in the middle of a line
}

// Write implements io.Writer.
func (a *arrayWriter) Write(p []byte) (int, error) {
	rest := p
	for len(rest) > 0 {
		if !a.line {
			open := ",\n"
			if !a.begun {
				open = "[\n"
			}
			if _, err := io.WriteString(a.w, open); err != nil {
				return 0, err
			}
			a.begun, a.line = true, true
		}
		end := len(rest)
		part := rest
		if rest[end-1] == '\n' { // jay writes no line break inside a line of JSON
			part, a.line = rest[:end-1], false
		}
		if _, err := a.w.Write(part); err != nil {
			return 0, err
		}
		rest = rest[end:]
	}
	return len(p), nil
}

// close ends the array.
func (a *arrayWriter) close() error {
	end := "\n]\n"
	if !a.begun {
		end = "[]\n"
	}
	_, err := io.WriteString(a.w, end)
	return err
}
