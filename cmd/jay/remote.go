package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer/smuggler"
)

// remote is a database of a running server, for --url.
type remote struct {
	access
	base string // its URL, without a slash at the end
}

// newRemote checks --url.
func newRemote(text string, by access) (*remote, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, usageError{text: fmt.Sprintf("--url is that of a database, such as http://127.0.0.1:8080/databases/acorns, not %.200q", text)}
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	if before, name, found := strings.Cut(path, "/databases/"); !found || name == "" || strings.Contains(name, "/") {
		return nil, usageError{text: fmt.Sprintf("--url names no database: it ends with /databases/NAME, such as %s://%s%s/databases/acorns", u.Scheme, u.Host, before)}
	}
	if err := by.check(u); err != nil {
		return nil, err
	}
	return &remote{by, u.Scheme + "://" + u.Host + path}, nil
}

func isLoopbackHost(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Unmap().IsLoopback()
}

// maxReplyBytes bounds a reply that is read whole, and each line of any other.
const maxReplyBytes = 512 << 20

// ask sends a request about the database. The caller must close the body of the reply.
func (r *remote) ask(ctx context.Context, method, path string, params url.Values, body []byte) (*http.Response, error) {
	return r.askAt(ctx, method, r.base+path, params, body)
}

// own returns the URL of an endpoint of Jay's own API, outside RavenDB's protocol.
func (r *remote) own(path string) string {
	server, name, _ := strings.Cut(r.base, "/databases/")
	return server + "/jay/v1/databases/" + name + path
}

func (r *remote) askAt(ctx context.Context, method, address string, params url.Values, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address+"?"+params.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	reply, err := r.do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.base, err)
	}
	if reply.StatusCode >= 300 {
		defer reply.Body.Close()
		return nil, r.problem(reply)
	}
	return reply, nil
}

// problem returns the error in a reply.
func (r *remote) problem(reply *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(reply.Body, 64<<10)) // as much of the reason as can be read
	var said struct{ Message string }
	if json.Unmarshal(text, &said) != nil || said.Message == "" {
		said.Message = reply.Status
	}
	is := map[int]error{http.StatusNotFound: jay.ErrNotFound, http.StatusConflict: jay.ErrConflict, http.StatusRequestEntityTooLarge: jay.ErrTooLarge}[reply.StatusCode]
	return explained{text: fmt.Sprintf("%s: %s (%d)", r.base, said.Message, reply.StatusCode), err: is}
}

// read sends a request and returns the body of the reply.
func (r *remote) read(ctx context.Context, method, path string, params url.Values, body []byte) ([]byte, error) {
	return r.readAt(ctx, method, r.base+path, params, body)
}

func (r *remote) readAt(ctx context.Context, method, address string, params url.Values, body []byte) ([]byte, error) {
	reply, err := r.askAt(ctx, method, address, params, body)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxReplyBytes+1))
	if err == nil && len(text) > maxReplyBytes {
		err = fmt.Errorf("%s: %w: the reply has more than %d bytes", r.base, jay.ErrTooLarge, maxReplyBytes)
	}
	return text, err
}

// readOwn decodes the reply of an endpoint of Jay's own API.
func (r *remote) readOwn(ctx context.Context, path string, params url.Values, to any) error {
	text, err := r.readAt(ctx, "GET", r.own(path), params, nil)
	if err == nil && json.Unmarshal(text, to) != nil {
		err = fmt.Errorf("%s: not the reply of jay serve", r.base)
	}
	return err
}

// indexes returns the indexes of a collection, or all if it is "".
func (r *remote) indexes(ctx context.Context, collection string) ([]jay.IndexInfo, error) {
	params := url.Values{}
	if collection != "" {
		params.Set("collection", collection)
	}
	var reply struct{ Indexes []jay.IndexInfo }
	err := r.readOwn(ctx, "/indexes", params, &reply)
	return reply.Indexes, err
}

// lines sends a request and calls fn with each line of the reply.
func (r *remote) lines(ctx context.Context, method, path string, params url.Values, body []byte, fn func(line []byte) error) error {
	reply, err := r.ask(ctx, method, path, params, body)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	in := bufio.NewReaderSize(reply.Body, 64<<10)
	for {
		line, err := readLine(in, maxReplyBytes)
		switch {
		case err == io.EOF && len(line) == 0:
			return nil
		case errors.Is(err, errLongLine):
			return fmt.Errorf("%s: %w: a line of the reply has more than %d bytes", r.base, jay.ErrTooLarge, maxReplyBytes)
		case err != nil:
			return fmt.Errorf("%s: the reply ends before its end: %w", r.base, err)
		}
		if err := fn(line); err != nil {
			return err
		}
	}
}

// runRemote runs the command of a command line with --url.
func (a *app) runRemote(ctx context.Context, line *commandLine) error {
	by, err := a.access.access(a.getenv)
	if err != nil {
		return err
	}
	r, err := newRemote(line.URL, by)
	if err != nil {
		return err
	}
	return a.onRemote(ctx, r, a.command, line)
}

// onRemote runs a command on a server. Those that need the directory are refused.
func (a *app) onRemote(ctx context.Context, r *remote, command string, line *commandLine) error {
	if a.dirGiven {
		return usageError{text: "--url and --db are two databases"}
	}
	switch command {
	case "jay get":
		return line.Get.remote(ctx, a, r)
	case "jay put":
		return line.Put.remote(ctx, a, r)
	case "jay query":
		return line.Query.remote(ctx, a, r)
	case "jay stats":
		return line.Stats.remote(ctx, a, r)
	case "jay collections list":
		return line.Collections.List.remote(ctx, a, r)
	case "jay index list":
		return line.Index.List.remote(ctx, a, r)
	case "jay export":
		return line.Export.remote(ctx, a, r)
	case "jay backup":
		return line.Backup.remote(ctx, a, r)
	case "jay ids list":
		return a.printReply(r.read(ctx, "GET", "/debug/identities", nil, nil))
	case "jay ids next":
		return a.printReply(r.read(ctx, "POST", "/identity/next", url.Values{"name": {line.IDs.Next.Name}}, nil))
	case "jay top":
		return usageError{text: "top takes the address of the metrics as its argument, and no --url"}
	}
	return usageError{text: fmt.Sprintf("%s works on a directory, and not with --url: get, put, query, stats, collections list, index list, export, backup, ids list and ids next do", strings.TrimPrefix(command, "jay "))}
}

// printReply prints a reply as a line.
func (a *app) printReply(text []byte, err error) error {
	if err != nil {
		return err
	}
	return a.print(string(bytes.TrimSpace(text)) + "\n")
}

// remote prints documents of a server.
func (c *getCommand) remote(ctx context.Context, a *app, r *remote) error {
	body, err := json.Marshal(map[string][]string{"Ids": c.IDs})
	if err != nil {
		return err
	}
	text, err := r.read(ctx, "POST", "/docs", nil, body)
	var reply struct{ Results []json.RawMessage }
	switch {
	case errors.Is(err, jay.ErrNotFound): // the missing document was the only one
		reply.Results = make([]json.RawMessage, len(c.IDs))
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &reply); err != nil || len(reply.Results) != len(c.IDs) {
			return fmt.Errorf("%s: not the reply of jay serve", r.base)
		}
	}
	for i, doc := range reply.Results {
		if doc == nil || string(doc) == "null" {
			a.failed = true
			a.complain(fmt.Errorf("no document %q", c.IDs[i]), kindOf(jay.ErrNotFound))
			continue
		}
		if err := a.print(string(doc) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// remote stores a document on a server.
func (c *putCommand) remote(ctx context.Context, a *app, r *remote) error {
	if c.ID == nil || c.Collection != "" || c.Insert || c.TTL != nil || c.Expires != nil || c.Refresh != nil {
		return usageError{text: "put with --url takes --id and --if-match; the document's own @metadata names the collection"}
	}
	body, err := c.read(ctx, a)
	if err != nil {
		return err
	}
	command := map[string]any{"Type": "PUT", "Id": *c.ID, "Document": json.RawMessage(body)}
	if c.IfMatch != nil {
		command["ChangeVector"] = *c.IfMatch
	}
	if !json.Valid(body) {
		return &jay.DocumentError{Rule: "it must be JSON"}
	}
	var batch bytes.Buffer
	if err := writeLine(&batch, map[string]any{"Commands": []any{command}}); err != nil { // the document unchanged
		return err
	}
	text, err := r.read(ctx, "POST", "/bulk_docs", nil, batch.Bytes())
	if err != nil {
		return err
	}
	id := gjson.GetBytes(text, `Results.0.\@id`).Str
	if id == "" {
		return fmt.Errorf("%s: not the reply of jay serve", r.base)
	}
	if a.json {
		return a.printLine(map[string]string{"id": id})
	}
	return a.print(id + "\n")
}

// remote prints the results from a server, as a table or one per line.
func (c *queryCommand) remote(ctx context.Context, a *app, r *remote) error {
	if c.Explain || c.NoScan || c.IncludeTo != "" {
		return usageError{text: "query with --url takes no --explain, --no-scan and --include-to"}
	}
	params, err := parseParams(c.Param)
	if err != nil {
		return err
	}
	text, err := c.text(ctx, a)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"Query": text, "QueryParameters": params})
	if err != nil {
		return err
	}
	start := time.Now()
	t := &answerTable{print: a.print, width: a.width}
	err = r.lines(ctx, "POST", "/streams/queries", url.Values{"format": {"jsonl"}}, body, func(line []byte) error {
		var one struct{ Item json.RawMessage }
		if err := json.Unmarshal(line, &one); err != nil {
			return fmt.Errorf("%s: not the reply of jay serve", r.base)
		}
		switch {
		case one.Item == nil: // the last line: the statistics
			return nil
		case a.json:
			return a.print(string(one.Item) + "\n")
		}
		return t.addItem(one.Item)
	})
	if err != nil || a.json {
		return err
	}
	if err := t.end(); err != nil {
		return err
	}
	return a.noteAnswers(t, start)
}

// remote writes the documents of a server.
func (c *exportCommand) remote(ctx context.Context, a *app, r *remote) error {
	if c.Collection != "" {
		return usageError{text: "export with --url takes no --collection: jay query has the documents of one"}
	}
	if format := formatOf(c.File, c.Format); format != smuggler.NDJSON {
		return usageError{text: fmt.Sprintf("export with --url writes ndjson, and not %s", format.Name)}
	}
	write := func(w io.Writer) error {
		return r.lines(ctx, "GET", "/streams/docs", url.Values{"format": {"jsonl"}}, nil, func(line []byte) error {
			_, err := w.Write(line)
			return err
		})
	}
	if c.File == "" || c.File == stdinName {
		return write(a.stdout)
	}
	return a.writeFile(c.File, write)
}

// remote writes a backup of a database on a server. It verifies the backup while it
// writes, so that one that was cut or damaged on its way is not kept.
func (c *backupCommand) remote(ctx context.Context, a *app, r *remote) error {
	if c.keepFlags != (keepFlags{}) {
		return usageError{text: "--every needs the database itself, and not --url: jay serve --backup-dir keeps backups"}
	}
	params := url.Values{}
	if c.Once {
		params.Set("once", "true")
	}
	if c.Since != "" {
		base, err := c.base(ctx, a)
		if err != nil {
			return err
		}
		params.Set("since", base.ID)
	}
	return c.write(ctx, a, func(w io.Writer, progress func(int64)) (info jay.BackupInfo, err error) {
		reply, err := r.askAt(ctx, "GET", r.own("/backup"), params, nil)
		if err != nil {
			return info, err
		}
		defer reply.Body.Close()
		all, err := jay.VerifyBackup(ctx, progress, io.TeeReader(reply.Body, w))
		if err != nil {
			return info, fmt.Errorf("%s: %w", r.base, err)
		}
		return all[0], nil
	})
}
