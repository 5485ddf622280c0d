package own

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// dataRoutes are the endpoints of walks, statistics and backups.
var dataRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/stats", Run: getStats},
	{Method: "GET", Path: "{J}/documents", Run: getDocuments, Timed: true, Takes: "after collection pageSize reverse startsWith"},
	{Method: "GET", Path: "{J}/backup", Run: backup, Begins: "backup", Stream: true, Takes: "once operation plain since"},
}

// getStats replies with the figures of the database. They are cheap enough for a page to
// request them every second.
func getStats(c *serve.Call) error {
	now, err := c.DB.Stats(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	return c.Listed(http.StatusOK, now)
}

// getDocuments replies with a page of documents after an ID, in the order of IDs or in
// reverse.
func getDocuments(c *serve.Call) error {
	scan, size, err := pageScan(c)
	if err != nil {
		return err
	}
	var page documentPage
	if err := page.read(c.DB.Documents(c.Ctx, scan), size, c); err != nil {
		return err
	}
	dst := []byte(`{"rows":[`)
	for i, doc := range page.docs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendRow(dst, &jay.Row{Document: doc}); err != nil {
			return err
		}
	}
	dst = append(dst, ']')
	if page.more {
		dst = append(append(dst, `,"next":`...), serve.MustJSON(page.docs[len(page.docs)-1].ID())...)
	}
	return c.Text(http.StatusOK, append(dst, '}'))
}

// backup sends a backup of the database for jay.Restore and jay restore. The end of the
// stream shows that it is complete.
func backup(c *serve.Call) error {
	var opts []jay.BackupOption
	if since := c.Params.Get("since"); since != "" {
		opts = append(opts, jay.BackupSince(since))
	}
	plain, err := c.Params.Flag("plain")
	if err != nil {
		return err
	}
	if plain {
		opts = append(opts, jay.BackupPlain())
	}
	once, err := c.Params.Flag("once")
	if err != nil {
		return err
	}
	if once {
		opts = append(opts, jay.BackupOnce())
	} else if err := mayRecordBackup(c); err != nil {
		return err
	}
	ctx, cancel := c.StreamContext()
	defer cancel()
	out := &backupWriter{c: c}
	return watched(c, ctx, func(ctx context.Context, o *serve.Operation) (any, error) {
		opts = append(opts, jay.BackupProgress(func(bytes int64) { report(c, o, map[string]any{"rawBytes": bytes}) }))
		info, err := c.DB.Backup(ctx, out, opts...)
		if err == nil {
			return info, nil
		}
		var base *jay.BackupBaseError
		if errors.As(err, &base) && !c.Started {
			return nil, serve.BadRequest("%s", strings.TrimPrefix(base.Error(), "jay: "))
		}
		return nil, err
	})
}

// mayRecordBackup refuses a backup that an increment can follow to a sender who may only read: it is recorded in
// the database, in place of the oldest that an increment can follow.
func mayRecordBackup(c *serve.Call) error {
	if !c.Who.May(c.Name, serve.WriteRight) {
		return &serve.Problem{Status: http.StatusForbidden, Kind: serve.TypeAuthorization, Message: fmt.Sprintf("%s has not the right %q, which a backup needs that an increment can follow: once=true makes one that none follows", c.Who.Name, serve.WriteRight)}
	}
	return c.Mount.ShowsOrigin(c.Request)
}

// backupWriter sends the head of the reply with the first bytes, so that an error before
// them can have a status.
type backupWriter struct {
	c *serve.Call
	w *serve.PacedWriter
}

// Write implements io.Writer.
func (b *backupWriter) Write(text []byte) (int, error) {
	if b.w == nil {
		b.c.Started, b.c.Status = true, http.StatusOK
		b.c.Reply.Set("Content-Type", "application/octet-stream")
		attach(b.c, describe(b.c.Database.Record.Name, b.c.Server.Options.Now().UTC().Format("-2006-01-02-150405.backup")))
		b.c.Writer.WriteHeader(http.StatusOK)
		b.w = serve.NewPacedWriter(b.c)
	}
	return b.w.Write(text)
}
