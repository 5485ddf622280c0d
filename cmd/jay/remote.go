package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
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

// maxReplyBytes bounds a reply that is read whole.
const maxReplyBytes = 512 << 20

// own returns the URL of an endpoint of Jay's own API, outside RavenDB's protocol.
func (r *remote) own(path string) string {
	server, name, _ := strings.Cut(r.base, "/databases/")
	return server + "/jay/v1/databases/" + name + path
}

// askAt sends a request. The caller must close the body of the reply.
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

// runRemote runs the command of a command line with --url.
func (a *app) runRemote(ctx context.Context, command *kong.Context, line *commandLine) error {
	by, err := a.access.access(a.getenv)
	if err != nil {
		return err
	}
	r, err := newRemote(line.URL, by)
	if err != nil {
		return err
	}
	return a.onRemote(ctx, r, command, line)
}

// readers are the commands that read a database of a server as they read that of a directory which another program has open. Of those that
// also configure, what would write is refused by the database.
var readers = []string{
	"jay attach get", "jay attach list", "jay changes", "jay check", "jay cmpxchg get", "jay cmpxchg list", "jay collections list", "jay expiration", "jay export", "jay get",
	"jay ids list", "jay ids show", "jay index computed list", "jay index computed preview", "jay index computed show", "jay index errors", "jay index list", "jay index terms", "jay list", "jay query", "jay revisions configure", "jay revisions deleted", "jay revisions diff", "jay revisions list", "jay schema check", "jay schema get", "jay schema infer", "jay schema list", "jay shell",
	"jay stats", "jay subscriptions failures", "jay subscriptions list", "jay top",
}

// onRemote runs a command on a server. Those that need the directory are refused.
func (a *app) onRemote(ctx context.Context, r *remote, command *kong.Context, line *commandLine) error {
	if a.dirGiven || line.Shell.Dir != "" || line.Check.Dir != "" {
		return usageError{text: "--url and a directory are two databases"}
	}
	a.dir, a.dirGiven = r.base, true // for messages
	switch a.command {
	case "jay put":
		return line.Put.remote(ctx, a, r)
	case "jay backup":
		return line.Backup.remote(ctx, a, r)
	case "jay ids next":
		return line.IDs.Next.remote(ctx, a, r)
	case "jay index computed create":
		return line.Index.Computed.Create.remote(ctx, a, r)
	case "jay index computed drop":
		return line.Index.Computed.Drop.remote(ctx, a, r)
	case "jay schema set":
		return line.Schema.Set.remote(ctx, a, r)
	case "jay schema remove":
		return line.Schema.Remove.remote(ctx, a, r)
	}
	if !slices.Contains(readers, a.command) {
		return usageError{text: fmt.Sprintf("%s works on a directory, and not with --url: put, backup, ids next, index computed, schema and the commands that read do", strings.TrimPrefix(a.command, "jay "))}
	}
	a.looks = func(options jay.Options) (*jay.DB, error) { return r.look(ctx, options) }
	return command.Run(a)
}

// lookPatience is how long a server has to let the command look.
const lookPatience = 30 * time.Second

// look opens the database, to be read only, through a connection of its own.
func (r *remote) look(ctx context.Context, options jay.Options) (*jay.DB, error) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.own("/look"), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "jay-look")
	reply, err := r.onlyHTTP1().do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", r.base, jay.ErrUnavailable, err)
	}
	conn, is := reply.Body.(io.ReadWriteCloser)
	switch {
	case reply.StatusCode >= 300:
		defer reply.Body.Close()
		return nil, r.problem(reply)
	case reply.StatusCode != http.StatusSwitchingProtocols || !is:
		_ = reply.Body.Close()
		return nil, fmt.Errorf("%s: not the reply of jay serve, or a proxy in between does not let connections go on with another protocol", r.base)
	}
	return jay.LookThrough(conn, r.base, ofOwner(options))
}

// onlyHTTP1 returns a with connections of HTTP/1.1, as those of HTTP/2 cannot go on with another protocol.
func (a access) onlyHTTP1() access {
	transport, is := a.client.Transport.(*http.Transport)
	if !is {
		transport = http.DefaultTransport.(*http.Transport)
	}
	transport = transport.Clone()
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	client := *a.client
	client.Transport = transport
	return access{a.token, &client}
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

// remote uses up a number of an identity on a server.
func (c *nextIDCommand) remote(ctx context.Context, a *app, r *remote) error {
	text, err := r.read(ctx, "POST", "/identity/next", url.Values{"name": {c.Name}}, nil)
	if err != nil {
		return err
	}
	next := gjson.GetBytes(text, "NewIdentityValue")
	if next.Type != gjson.Number {
		return fmt.Errorf("%s: not the reply of jay serve", r.base)
	}
	return a.printNumber("next", next.Int())
}

// remote writes a backup of a database on a server. It verifies the backup while it
// writes, so that one that was cut or damaged on its way is not kept.
func (c *backupCommand) remote(ctx context.Context, a *app, r *remote) error {
	if c.keepFlags != (keepFlags{}) {
		return usageError{text: "--every needs the database itself, and not --url: jay serve --backup-dir keeps backups"}
	}
	if c.own() != nil {
		return usageError{text: "--backup-key-file and --backup-passphrase-file go without --url: the server encrypts the backup with its own keys, and --key-file or --passphrase-file names them, to read it"}
	}
	params := url.Values{}
	if c.Once {
		params.Set("once", "true")
	}
	if c.Plain {
		params.Set("plain", "true")
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
		all, err := jay.VerifyBackup(ctx, progress, jay.EncryptedBackup(io.TeeReader(reply.Body, w), c.keys(a)))
		if err != nil {
			return info, fmt.Errorf("%s: %w", r.base, err)
		}
		return all[0], nil
	})
}
