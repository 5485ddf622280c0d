package verify

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/format"
)

// Describe says in words what a key is, as far as that can be said without the database that it is of.
func Describe(key []byte) string { return new(verifier).describe(key) }

// describe says in words what a key is.
func (v *verifier) describe(key []byte) string {
	if len(key) == 0 {
		return "the first key"
	}
	if key[0] == format.SpaceIndex && len(key) >= 5 {
		if ix := v.byNumber[binary.BigEndian.Uint32(key[1:])]; ix != nil && ix.Unknown == nil {
			return fmt.Sprintf("entry of index %q of %s: %s", ix.Info.Name, ix.Info.Collection, ix.Describe(key))
		}
	}
	if describe := spaces[key[0]].describe; describe != nil {
		if text := describe(key); text != "" {
			return text
		}
	}
	return fmt.Sprintf("key %q", shorten(key))
}

// named returns a function that describes keys by the name that they begin with.
func named(text string) func(key []byte) string {
	return func(key []byte) string {
		name, _ := cutName(key)
		return fmt.Sprintf(text, name)
	}
}

func describeChunk(key []byte) string {
	stream, chunk, err := format.SplitChunkKey(key)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("chunk %d of stream %d", chunk, stream)
}

func describeMember(key []byte) string {
	name, rest := cutName(key)
	id, _ := cutName(append([]byte{0}, rest...))
	return fmt.Sprintf("entry of document %q in collection %q", id, name)
}

func describeChange(key []byte) string {
	etag, err := format.EtagOf(key)
	if err != nil {
		return ""
	}
	node, _ := format.NodeOf(key)
	return fmt.Sprintf("change with etag %d of node %d", etag, node)
}

func describeCount(key []byte) string {
	if len(key) > 1 && key[1] == 1 {
		return fmt.Sprintf("number of revisions of collection %q", trimEnd(key[2:]))
	}
	switch string(key) {
	case string(format.ContentTallyKey()):
		return "numbers of attachments"
	case string(format.AppendTimesTallyKey(nil)):
		return "numbers of what is due"
	}
	name, _ := cutName(key)
	return fmt.Sprintf("numbers of collection %q", name)
}

func describeNode(key []byte) string {
	if len(key) != 5 {
		return ""
	}
	return fmt.Sprintf("node %d", binary.BigEndian.Uint32(key[1:]))
}

func describeDue(key []byte) string {
	due, err := format.DecodeDue(key, nil)
	if err != nil {
		return ""
	}
	what := "expiry"
	if due.Kind == format.DueRefresh {
		what = "refresh"
	}
	return fmt.Sprintf("%s of document %q at %s", what, due.FoldedID, due.At.Format("2006-01-02T15:04:05.999999999Z07:00"))
}

func describeRevision(key []byte) string {
	if len(key) > 1 && key[1] == 0 {
		return fmt.Sprintf("deleted document %q", trimEnd(key[2:]))
	}
	id, number, err := format.SplitRevisionKey(key)
	switch {
	case err != nil:
		return ""
	case number == 0:
		return fmt.Sprintf("history of document %q", id)
	}
	return fmt.Sprintf("revision %d of document %q", number, id)
}

func describeRequest(key []byte) string {
	return fmt.Sprintf("result of a request %q", shorten(key[1:]))
}

func describeDefinition(key []byte) string {
	if kind, name, ok := format.SplitDefinitionKey(key); ok {
		return fmt.Sprintf("definition %q of the kind %q", name, kind)
	}
	if bytes.Equal(key, format.LastDefinitionKey()) {
		return "number of the last definition"
	}
	return ""
}

func describeCluster(key []byte) string {
	if name, err := format.LostName(key); err == nil {
		return fmt.Sprintf("lost numbers of identity %q", name)
	}
	if number, at, ok := format.SplitIntentWriteKey(key); ok {
		return fmt.Sprintf("write %d of intent %d", at, number)
	}
	if number, err := format.IntentNumber(key); err == nil {
		return fmt.Sprintf("intent %d", number)
	}
	return ""
}

// describeEntry describes the key of an index that the verifier does not know.
func describeEntry(key []byte) string {
	if len(key) < 5 {
		return ""
	}
	return fmt.Sprintf("entry %x of index %d", shorten(key[5:]), binary.BigEndian.Uint32(key[1:]))
}

func describeIndexState(key []byte) string {
	if len(key) != 6 {
		return ""
	}
	return fmt.Sprintf("state of index %d", binary.BigEndian.Uint32(key[1:]))
}

func describeAttachment(key []byte) string {
	if len(key) > 1 {
		switch key[1] {
		case 'c':
			return fmt.Sprintf("content %x", shorten(key[2:]))
		case 'g', 'u':
			what := map[byte]string{'g': "stream %d, which is to be removed", 'u': "stream %d, which is being written"}[key[1]]
			if stream, err := format.StreamOf(key); err == nil {
				return fmt.Sprintf(what, stream)
			}
		case 'n':
			return "the next stream number"
		}
	}
	return ""
}

// cutName returns the name in a key, behind its first byte, and what follows its 00.
func cutName(key []byte) (name string, rest []byte) {
	text, rest, _ := bytes.Cut(key[1:], []byte{0})
	return string(text), rest
}

func trimEnd(name []byte) string { return strings.TrimSuffix(string(name), "\x00") }

func shorten(b []byte) []byte { return b[:min(len(b), 100)] }
