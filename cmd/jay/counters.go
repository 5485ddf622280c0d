package main

import (
	"bytes"
	"encoding/json"
	"fmt"

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

// parseCounters returns the counters that text holds, if it is a countersLine.
func parseCounters(text []byte) (c jay.Counters, found bool, err error) {
	if !bytes.Contains(text, []byte(`"@jay"`)) {
		return jay.Counters{}, false, nil
	}
	m := metadataOf(text)
	if len(m.Map()) != 1 || m.Get(`\@jay`).Str != "counters" {
		return jay.Counters{}, false, nil
	}

	var line countersLine
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&line); err != nil {
		return jay.Counters{}, true, fmt.Errorf("%w: counters: %w", jay.ErrInvalidDocument, err)
	}
	return line.Counters, true, nil
}

// appendCounters appends the line for c.
func appendCounters(dst []byte, c jay.Counters) ([]byte, error) {
	line, err := json.Marshal(countersLine{json.RawMessage(countersMark), c})
	if err != nil {
		return nil, err
	}
	return append(append(dst, line...), '\n'), nil
}
