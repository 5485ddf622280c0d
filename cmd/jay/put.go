package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// putCommand stores one document.
type putCommand struct {
	ID         *string        `name:"id" placeholder:"ID" help:"ID to ask for. Without it the collection's next HiLo ID is used."`
	Collection string         `placeholder:"NAME" help:"Collection, if the document's @metadata names none."`
	IfMatch    *string        `placeholder:"CV" xor:"condition" help:"Store only over the version with this change vector; if it is empty, only if there is no document."`
	Insert     bool           `xor:"condition" help:"Store only if there is no document with the ID."`
	TTL        *time.Duration `name:"ttl" placeholder:"TIME" xor:"expiry" help:"Delete the document this long after it was stored, such as 30m or 24h."`
	Expires    *time.Time     `name:"expires" placeholder:"INSTANT" xor:"expiry" help:"Delete the document at this instant, such as 2027-01-31T12:00:00Z."`
	Refresh    *time.Time     `name:"refresh" placeholder:"INSTANT" help:"Give the document a new version at this instant."`
	File       string         `arg:"" optional:"" help:"File with the document, - or none for standard input."`
}

// Help is shown by jay put --help.
func (*putCommand) Help() string {
	return `The ID that is asked for decides how the final one is made:

    --id users/ann       users/ann                      semantic, as it is
    --id ''              a random UUID                  GUID
    --id users/          users/0000000000000000042-A    server-side
    --id 'users|'        users/7                        identity
    --collection Users   users/33-A                     HiLo, without --id

Without --id, the collection may also come from the document's own @metadata. An @id in it is dropped.

Where neither names a collection, a document that exists stays in its own. A new one goes to the collection that its ID suggests, Users for users/ann; the database keeps whether it does (--prefix-collections), and jay stats shows it.

Examples:

    echo '{"Name":"Ann"}' | jay put --id users/ann --collection Users
    jay put --collection Orders order.json
    jay put --id users/ann --if-match "$CV" ann.json
    jay put --id sessions/7 --ttl 30m session.json`
}

// Run stores the document and prints its final ID.
func (c *putCommand) Run(ctx context.Context, a *app) error {
	if err := a.checkGlobals(); err != nil {
		return err
	}
	// Read the input before the database is opened: a slow one must not keep it
	// locked.
	body, err := c.read(ctx, a)
	if err != nil {
		return err
	}
	if c.ID == nil && c.Collection == "" && json.Valid(body) && !namesCollection(body) {
		return usageError{text: "put needs --id or a collection: --id ID, --collection NAME, or @collection in the document's @metadata"}
	}
	return a.withDatabase(true, func(db *jay.DB) error {
		m, err := c.store(ctx, db, body)
		if err != nil {
			return err
		}
		if err := a.printMetadata(m); err != nil {
			return err
		}
		if m.Collection == emptyCollection && c.Collection == "" && !namesCollection(body) {
			a.note("%q is in collection %s, as none was named; --collection NAME names one", m.ID, m.Collection)
		}
		return nil
	})
}

// emptyCollection is the collection of documents without one.
const emptyCollection = "@empty"

// read reads the document, but at most one byte more than the limit.
func (c *putCommand) read(ctx context.Context, a *app) ([]byte, error) {
	limit := a.options.MaxDocumentBytes
	name, body, err := a.input().read(ctx, c.File, "a document", limit)
	switch {
	case err == errLongInput:
		return nil, fmt.Errorf("%s: %w", name, tooManyBytes(limit))
	case err != nil:
		return nil, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, fmt.Errorf("%s: %w", name, &jay.DocumentError{Rule: "must be a JSON object, such as {\"Name\":\"Ann\"}", Detail: "there is nothing to store"})
	}
	return body, nil
}

// namesCollection reports whether a document may name its collection itself. It is
// true if the @metadata is invalid, which the database reports.
func namesCollection(body []byte) bool {
	m := gjson.GetBytes(body, `\@metadata`) // a bare @ begins a modifier
	if m.Exists() && !m.IsObject() || !gjson.ParseBytes(body).IsObject() {
		return true
	}
	return m.Get(`\@collection`).Exists() || m.Get("Raven-Entity-Name").Exists()
}

func (c *putCommand) store(ctx context.Context, db *jay.DB, body []byte) (jay.Metadata, error) {
	var options []jay.WriteOption
	if c.IfMatch != nil {
		options = append(options, jay.IfMatch(*c.IfMatch))
	}
	if c.TTL != nil {
		options = append(options, jay.WithTTL(*c.TTL))
	}
	if c.Expires != nil {
		options = append(options, jay.ExpiresAt(*c.Expires))
	}
	if c.Refresh != nil {
		options = append(options, jay.RefreshAt(*c.Refresh))
	}
	if c.ID == nil {
		return db.Store(ctx, c.Collection, body, options...)
	}
	if c.Collection != "" {
		options = append(options, jay.InCollection(c.Collection))
	}
	if c.Insert {
		return db.Insert(ctx, *c.ID, body, options...)
	}
	return db.Put(ctx, *c.ID, body, options...)
}

// putResult is what put prints with --json.
type putResult struct {
	ID           string          `json:"id"`
	Collection   string          `json:"collection"`
	ChangeVector string          `json:"changeVector"`
	Etag         uint64          `json:"etag"`
	LastModified time.Time       `json:"lastModified"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
}

// printMetadata prints the ID of a stored document, or with --json its metadata.
func (a *app) printMetadata(m jay.Metadata) error {
	if !a.json {
		return a.print(m.ID + "\n")
	}
	return a.printLine(putResult{
		ID:           m.ID,
		Collection:   m.Collection,
		ChangeVector: m.ChangeVector,
		Etag:         m.Etag,
		LastModified: m.LastModified,
		Metadata:     m.Custom,
	})
}

// tooManyBytes returns the error for a document of more than limit bytes.
func tooManyBytes(limit int) error {
	return &jay.DocumentError{Rule: fmt.Sprintf("at most %d bytes (--max-document-bytes)", limit), Offset: limit}
}
