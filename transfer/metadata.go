package transfer

import "bytes"

// Placing gives IDs and collections to documents of formats that have no IDs or collections as Jay
// knows them. The zero value leaves both to the database.
type Placing struct {
	// IDPrefix is prepended to the IDs of the input, such as "users/".
	IDPrefix string
	// Collection is the collection of the documents that have an ID and name no collection.
	Collection string
}

// place is what is known of a document's place.
type place struct {
	id            []byte // nil if there is none
	collection    []byte
	hasCollection bool   // also if collection is empty, which is @empty
	custom        []byte // a JSON object, or nil
}

// append appends the member @metadata, without a comma, or nothing if there is nothing
// to say.
func (p place) append(dst []byte, to Placing) []byte {
	custom := bytes.TrimSpace(p.custom)
	if len(custom) >= 2 {
		custom = bytes.TrimSpace(custom[1 : len(custom)-1])
	}
	collection, named := p.collection, p.hasCollection
	if !named && p.id != nil && to.Collection != "" {
		collection, named = []byte(to.Collection), true
	}
	if p.id == nil && !named && len(custom) == 0 {
		return dst
	}
	dst = append(dst, `"@metadata":{`...)
	start := len(dst)
	if p.id != nil {
		dst = append(dst, `"@id":`...)
		dst = AppendString(dst, to.IDPrefix+string(p.id))
	}
	if named {
		if len(collection) == 0 {
			collection = []byte("@empty")
		}
		dst = appendComma(dst, start)
		dst = append(dst, `"@collection":`...)
		dst = AppendString(dst, collection)
	}
	if len(custom) > 0 {
		dst = append(appendComma(dst, start), custom...)
	}
	return append(dst, '}')
}

// appendComma appends a comma if there is something behind start.
func appendComma(dst []byte, start int) []byte {
	if len(dst) > start {
		dst = append(dst, ',')
	}
	return dst
}

// Document is a document for a writer.
type Document struct {
	ID         string
	Collection string // "@empty" for none
	Custom     []byte // the caller's own metadata, a JSON object, or nil
	Body       []byte // a JSON object without @metadata
}
