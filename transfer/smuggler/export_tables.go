package smuggler

import (
	"context"
	"errors"
	"io"

	"github.com/jaydb/jay/transfer"
)

// writeCSV reads the documents twice: for the columns, and for the rows.
func writeCSV(ctx context.Context, e *Exporter, w io.Writer) error {
	var columns transfer.CSVColumns
	err := e.Look(ctx, func(one Exported) error {
		if one.Document == nil {
			return columns.Add(&transfer.Document{Body: one.Row})
		}
		return columns.Add(&transfer.Document{Custom: one.Document.Metadata().Custom, Body: one.Document.Body()})
	})
	if err != nil {
		return err
	}
	newWriter := transfer.NewCSVWriter
	if e.o.Spreadsheet {
		newWriter = transfer.NewSpreadsheetWriter
	}
	rows, err := newWriter(w, &columns, e.o.Comma)
	var bad *transfer.Error
	if errors.As(err, &bad) {
		return &formatError{bad}
	}
	if err != nil {
		return err
	}
	return e.Each(ctx, func(one Exported) error { return rows.Write(e.Bare(one)) })
}

// writeExtended writes MongoDB's Extended JSON, one document a line.
func writeExtended(ctx context.Context, e *Exporter, w io.Writer) error {
	var line []byte
	return e.Each(ctx, func(one Exported) (err error) {
		if line, err = transfer.ToExtended(line[:0], e.Bare(one)); err != nil {
			return err
		}
		line = append(line, '\n')
		_, err = w.Write(line)
		if cap(line) > 1<<20 {
			line = nil
		}
		return err
	})
}
