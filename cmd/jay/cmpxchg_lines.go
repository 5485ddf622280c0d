package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// cmpxchgMark is the @metadata of a cmpxchgLine. It is a string and not an object, so
// that a version of jay without compare-exchange values refuses the line. Part of the
// export format. Must not change.
const cmpxchgMark = "jay compare exchange 1"

// cmpxchgLine is a compare-exchange value in an export, after all documents. It has no
// index, as an index is valid only in its own database.
//
// Part of the export format. Must not change.
type cmpxchgLine struct {
	Mark   string          `json:"@metadata"`
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`
	Custom json.RawMessage `json:"metadata,omitempty"`
}

// writeExchanges writes the lines of all compare-exchange values.
func writeExchanges(ctx context.Context, db *jay.DB, w io.Writer) error {
	return eachExchange(ctx, db, "", "", 0, func(v *jay.CompareExchangeValue) error {
		return writeLine(w, cmpxchgLine{cmpxchgMark, v.Key, v.Value, v.Metadata})
	})
}

// addExchange stores a value that is a cmpxchgLine as a compare-exchange value, in
// place of the present one. found reports whether it is. The documents before it are
// stored first, since a guard implies that its document exists.
func (l *loader) addExchange(ctx context.Context, v value, m gjson.Result) (found bool, err error) {
	if m.Str != cmpxchgMark {
		return false, nil
	}
	var line cmpxchgLine
	if err := decodeLine(v.text, &line); err != nil {
		return true, fmt.Errorf("%w: compare-exchange value: %w", jay.ErrInvalidDocument, err)
	}
	if err := l.flush(ctx); err != nil {
		return true, err
	}
	return true, putExchange(ctx, l.db, line.Key, line.Value, line.Custom)
}
