package verbs

import (
	"bytes"
	"fmt"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// AppendDocument appends a document with its @metadata, or with metadataOnly only that.
func AppendDocument(dst []byte, doc *jay.Document, metadataOnly bool) ([]byte, error) {
	if doc == nil {
		return append(dst, "null"...), nil
	}
	if !metadataOnly {
		return doc.AppendJSON(dst), nil
	}
	// The members of the body come first, then @metadata.
	members := doc.Body()[:len(doc.Body())-1]
	rest, found := bytes.CutPrefix(doc.AppendJSON(nil), members)
	if !found {
		return nil, fmt.Errorf("server: the JSON of %q does not begin with its body", doc.ID())
	}
	dst = append(dst, '{')
	return append(dst, bytes.TrimPrefix(rest, []byte(","))...), nil
}

// DocumentID returns the ID that the URL names.
func DocumentID(c *serve.Call) (string, error) {
	id, found := c.Params.Find("id")
	if !found || id == "" {
		return "", serve.BadRequest("the URL names no document: id is missing")
	}
	return id, nil
}
