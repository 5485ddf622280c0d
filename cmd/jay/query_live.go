package main

import (
	"context"
	"encoding/json"

	"github.com/jaydb/jay"
)

// liveLine is a line of jay query --live --json.
type liveLine struct {
	Event        string          `json:"event"` // enter, change, leave or current
	ID           string          `json:"id,omitempty"`
	Etag         uint64          `json:"etag"`
	ChangeVector string          `json:"changeVector,omitempty"`
	CatchingUp   bool            `json:"catchingUp,omitempty"`
	Token        string          `json:"token,omitempty"`
	Document     *jay.Document   `json:"document,omitempty"`
	Row          json.RawMessage `json:"row,omitempty"`
}

// follow prints the events of the query as a live query. What a group has is on stdout once
// the group is complete.
func (c *queryCommand) follow(ctx context.Context, a *app, q jay.Query[jay.Row]) error {
	for e, err := range q.Live(ctx, c.Since) {
		if err != nil {
			return err
		}
		if a.json {
			err = a.printLine(newLiveLine(&e))
		} else {
			var text string
			if text, err = liveText(&e); err == nil {
				err = a.print(text)
			}
		}
		if err != nil {
			return err
		}
		if e.Kind != jay.LiveCurrent {
			continue
		}
		if err := a.stdout.Flush(); err != nil || c.UntilDone {
			return err
		}
	}
	return nil
}

func newLiveLine(e *jay.LiveEvent[jay.Row]) liveLine {
	line := liveLine{Event: e.Kind.String(), ID: e.ID, Etag: e.Etag, ChangeVector: e.ChangeVector, CatchingUp: e.CatchingUp, Token: e.Token}
	if e.Value != nil {
		if line.Document = e.Value.Document; line.Document == nil {
			line.Row = e.Value.JSON
		}
	}
	return line
}

// liveText is an event for people.
func liveText(e *jay.LiveEvent[jay.Row]) (string, error) {
	line := e.Kind.String() + " " + e.ID + e.Token
	if e.Value != nil {
		text, err := e.Value.MarshalJSON()
		if err != nil {
			return "", err
		}
		line += " " + string(text)
	}
	return printable(line) + "\n", nil
}
