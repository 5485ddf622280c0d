package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// countersLine is the first line of an export: the counters of the database, in
// place of a document. All documents of an export have an @id in their @metadata;
// this line has only a mark.
//
//	{"@metadata":{"@jay":"counters"},"etag":7,"identities":{"users|":3},"hilo":{"users":32}}
//
// Part of the export format. Must not change.
type countersLine struct {
	Metadata json.RawMessage `json:"@metadata"`
	jay.Counters
}

// countersMark is the @metadata of a countersLine.
// Part of the export format. Must not change.
const countersMark = `{"@jay":"counters"}`

// addCounters raises the counters to those of a value, if that is a countersLine.
func (l *loader) addCounters(ctx context.Context, v value, m gjson.Result) (found bool, err error) {
	if !strings.Contains(m.Raw, `"@jay"`) || len(m.Map()) != 1 || m.Get(`\@jay`).Str != "counters" {
		return false, nil
	}
	var line countersLine
	if err := decodeLine(v.text, &line); err != nil {
		return true, fmt.Errorf("%w: counters: %w", jay.ErrInvalidDocument, err)
	}
	return true, l.db.RaiseCounters(ctx, line.Counters)
}

// appendCounters appends the line for c.
func appendCounters(dst []byte, c jay.Counters) ([]byte, error) {
	line, err := json.Marshal(countersLine{json.RawMessage(countersMark), c})
	if err != nil {
		return nil, err
	}
	return append(append(dst, line...), '\n'), nil
}
