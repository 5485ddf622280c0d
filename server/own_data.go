package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// This file has the endpoints of Jay's own API for moving data: walks over IDs, imports,
// backups, and the figures of the database.

// ownStats replies with the figures of the database. They are cheap enough for a page to
// request them every second.
func (c *call) ownStats() error {
	now, err := c.db.Stats(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, now)
}

// ownDocuments replies with a page of documents after an ID, in the order of IDs or in
// reverse.
func (c *call) ownDocuments() error {
	scan, size, err := c.pageScan()
	if err != nil {
		return err
	}
	if err := c.take(2 * pageBytes); err != nil { // what a page may hold, before one document
		return err
	}
	var page documentPage
	if err := page.read(c.db.Documents(c.ctx, scan), size); err != nil {
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
		dst = append(append(dst, `,"next":`...), mustJSON(page.docs[len(page.docs)-1].ID())...)
	}
	return c.text(http.StatusOK, append(dst, '}'))
}

// ownBackup sends a backup of the database for jay.Restore and jay restore. The end of the
// stream shows that it is complete.
func (c *call) ownBackup() error {
	var opts []jay.BackupOption
	if since := c.params.get("since"); since != "" {
		opts = append(opts, jay.BackupSince(since))
	}
	once, err := c.params.flag("once")
	if err != nil {
		return err
	}
	if once {
		opts = append(opts, jay.BackupOnce())
	}
	ctx, cancel := c.streamContext()
	defer cancel()
	out := &backupWriter{c: c}
	return c.watched(ctx, func(ctx context.Context, o *operation) (any, error) {
		opts = append(opts, jay.BackupProgress(func(bytes int64) { c.report(o, map[string]any{"rawBytes": bytes}) }))
		info, err := c.db.Backup(ctx, out, opts...)
		if err == nil {
			return info, nil
		}
		var base *jay.BackupBaseError
		if errors.As(err, &base) && !c.started {
			return nil, badRequest("%s", strings.TrimPrefix(base.Error(), "jay: "))
		}
		return nil, err
	})
}

// backupWriter sends the head of the reply with the first bytes, so that an error before
// them can have a status.
type backupWriter struct {
	c *call
	w *pacedWriter
}

// Write implements io.Writer.
func (b *backupWriter) Write(text []byte) (int, error) {
	if b.w == nil {
		b.c.started, b.c.status = true, http.StatusOK
		b.c.reply.Set("Content-Type", "application/octet-stream")
		b.c.attach(describe(b.c.database.record.Name, b.c.s.opts.Now().UTC().Format("-2006-01-02-150405.backup")))
		b.c.w.WriteHeader(http.StatusOK)
		b.w = &pacedWriter{c: b.c, since: time.Now()}
	}
	return b.w.Write(text)
}
