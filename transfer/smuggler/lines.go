package smuggler

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

const (
	metadataKey  = "@metadata"
	metadataPath = `\@metadata` // for gjson, where a bare @ begins a modifier
)

// metadataOf returns the @metadata of a document. Most documents have none, which
// a search for the key finds out without parsing; without its first quote, as quotes are
// everywhere. A key with escapes has \u00 in it: @ and letters have no shorter escapes.
func metadataOf(text []byte) gjson.Result {
	if !bytes.Contains(text, []byte(metadataKey+`"`)) && !bytes.Contains(text, []byte(`\u00`)) {
		return gjson.Result{}
	}
	return gjson.GetBytes(text, metadataPath)
}

// kindOf returns the kind of a line of an export that is no document, by its @metadata; ""
// for another one. The @metadata of such a line has the members of its mark and no others:
// an exported document may have an @jay of its own, and always has an @id.
func kindOf(m gjson.Result) string {
	if !strings.Contains(m.Raw, `"@jay"`) {
		return ""
	}
	members := 0
	m.ForEach(func(_, _ gjson.Result) bool {
		members++
		return members <= 2
	})
	switch kind := m.Get(`\@jay`).Str; {
	case kind == countersKind && members == 1:
		return kind
	case (kind == attachmentKind || kind == attachmentDataKind) && members == 2 && m.Get(`\@collection.needs`).Exists():
		return kind
	}
	return ""
}

// decodeLine decodes a line of an export that is not a document. An unknown field is an
// error: a newer jay has written it.
func decodeLine(text []byte, line any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(line)
}

// writeLine writes a value as one line of JSON, in which <, > and & are as they are.
func writeLine(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

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

// countersKind is the kind of a countersLine.
const countersKind = "counters"

// appendCounters appends the line for c.
func appendCounters(dst []byte, c jay.Counters) ([]byte, error) {
	line, err := json.Marshal(countersLine{json.RawMessage(countersMark), c})
	if err != nil {
		return nil, err
	}
	return append(append(dst, line...), '\n'), nil
}

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

// In an export, the attachments of a document follow it, each as a line that describes
// it and as many lines with its bytes as it takes:
//
//	{"@metadata":{"@jay":"attachment","@collection":{"needs":"a newer version of jay"}},"version":1,"id":"users/ann","name":"photo.png","type":"image/png","size":5,"hash":"LPJNul+…"}
//	{"@metadata":{"@jay":"attachment-data","@collection":{"needs":"a newer version of jay"}},"data":"aGVsbG8="}
//
// A program that does not know these lines refuses them for their @collection, which is no
// text. Part of the export format. Must not change.
type attachmentLine struct {
	Metadata json.RawMessage `json:"@metadata"`
	Version  int             `json:"version"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Type     string          `json:"type"`
	Size     int64           `json:"size"`
	Hash     string          `json:"hash"`
}

// attachmentData is a line with bytes of the attachment before it.
// Part of the export format. Must not change.
type attachmentData struct {
	Metadata json.RawMessage `json:"@metadata"`
	Data     []byte          `json:"data"`
}

// The marks of these lines. Part of the export format. Must not change.
const (
	attachmentVersion  = 1
	attachmentMark     = `{"@jay":"attachment","@collection":{"needs":"a newer version of jay"}}`
	attachmentDataMark = `{"@jay":"attachment-data","@collection":{"needs":"a newer version of jay"}}`
)

// The kinds of these lines.
const (
	attachmentKind     = "attachment"
	attachmentDataKind = "attachment-data"
)

// lineBytes is the number of bytes of an attachment in one line.
const lineBytes = 48 << 10

// subscriptionMark is the @metadata of a subscriptionLine. It is a string and not an
// object, so that a version of jay without subscriptions refuses the line. Part of the
// export format. Must not change.
const subscriptionMark = "jay subscription 1"

// subscriptionLine is a subscription in an export, after all documents. It has no
// position, as etags are valid only in their own database. The imported subscription
// begins after the import if nothing was left to be sent, and otherwise with all
// documents.
//
// Part of the export format. Must not change.
type subscriptionLine struct {
	Mark        string `json:"@metadata"`
	Name        string `json:"name"`
	Query       string `json:"query"`
	Deletions   bool   `json:"deletions,omitempty"`
	MaxFailures int    `json:"maxFailures"`
	RetryDelay  int64  `json:"retryDelayNs"`
	Disabled    bool   `json:"disabled,omitempty"`
	CaughtUp    bool   `json:"caughtUp,omitempty"`
}

// exchangeMark is the @metadata of a exchangeLine. It is a string and not an object, so
// that a version of jay without compare-exchange values refuses the line. Part of the
// export format. Must not change.
const exchangeMark = "jay compare exchange 1"

// exchangeLine is a compare-exchange value in an export, after all documents. It has no
// index, as an index is valid only in its own database.
//
// Part of the export format. Must not change.
type exchangeLine struct {
	Mark   string          `json:"@metadata"`
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`
	Custom json.RawMessage `json:"metadata,omitempty"`
}
