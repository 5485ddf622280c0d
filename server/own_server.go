package server

import (
	"errors"
	"net/http"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/jaydb/jay"
)

// ownServer replies with a description of the server, its bounds and their use.
func (c *call) ownServer() error {
	s, o := c.s, &c.s.opts
	version, commit := "", ""
	if info, found := debug.ReadBuildInfo(); found {
		version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = setting.Value
			}
		}
	}
	heap := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtimemetrics.Read(heap)
	now := o.Now()
	part := func(used, most int64) map[string]int64 { return map[string]int64{"used": used, "most": most} }
	return c.json(http.StatusOK, map[string]any{
		"version": version, "commit": commit, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH, "processors": runtime.GOMAXPROCS(0),
		"began": s.began.UTC().Format(ravenTime), "now": now.UTC().Format(ravenTime), "uptimeNs": now.Sub(s.began),
		"id": s.databases.serverID, "authenticates": s.authenticates.Load(), "encrypted": c.r.TLS != nil,
		"databases": part(int64(len(s.databases.list())), int64(o.MaxDatabases)), "openDatabases": part(int64(s.databases.opened()), int64(o.MaxOpenDatabases)),
		"requests": part(int64(len(s.gate.places)), int64(o.MaxRequests)), "waiting": part(s.gate.waiting.Load(), s.gate.most),
		"streams": part(int64(len(s.streams.places)), int64(o.MaxStreams)), "sockets": part(int64(len(s.sockets.places)), int64(o.MaxSockets)),
		"memory": part(s.memory.used.Load(), s.memory.most), "operations": part(int64(s.operations.underWay()), maxRunningOperations),
		"heapBytes": heap[0].Value.Uint64(), "goroutines": runtime.NumGoroutine(),
		"maxBodyBytes": o.MaxBodyBytes, "idleAfterNs": o.IdleAfter,
	})
}

// underWay returns the number of operations that run.
func (os *operations) underWay() int {
	os.mu.Lock()
	defer os.mu.Unlock()
	return os.running
}

// errNoCredentials refuses changes of tokens if the server requires none: otherwise any
// program that reaches the port could give itself lasting rights.
var errNoCredentials = badRequest("this server asks for no credentials, and so it gives none: start it with --authenticate, or use jay serve token")

// ownToken is a token or a certificate in the list.
type ownToken struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`         // token, certificate or subject
	Of      string `json:"of,omitempty"` // the thumbprint, or the common name
	Created string `json:"created"`
	Expires string `json:"expires,omitempty"`
	Expired bool   `json:"expired,omitempty"`
	Rights  Rights `json:"rights"`
	You     bool   `json:"you,omitempty"` // it is the sender's
}

// ownTokens replies with the tokens and certificates that have rights, without secrets,
// which are not stored.
func (c *call) ownTokens() error {
	all, err := c.s.auth.access.List()
	if err != nil {
		return err
	}
	list := make([]ownToken, 0, len(all))
	for _, g := range all {
		one := ownToken{Name: g.Name, Kind: "token", Created: g.Created.UTC().Format(ravenTime), Rights: g.Rights, You: c.who != nil && c.who.Name == g.Name}
		switch {
		case g.Thumbprint != "":
			one.Kind, one.Of = "certificate", g.Thumbprint
		case g.Subject != "":
			one.Kind, one.Of = "subject", g.Subject
		}
		if !g.Expires.IsZero() {
			one.Expires, one.Expired = g.Expires.UTC().Format(ravenTime), !c.s.opts.Now().Before(g.Expires)
		}
		list = append(list, one)
	}
	return c.json(http.StatusOK, map[string]any{"tokens": list, "authenticates": c.s.authenticates.Load()})
}

// ownMakeToken creates a token and replies with it. It cannot be shown again.
func (c *call) ownMakeToken() error {
	if !c.s.authenticates.Load() {
		return errNoCredentials
	}
	var body struct {
		Name    string    `json:"name"`
		Rights  Rights    `json:"rights"`
		Expires time.Time `json:"expires"`
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	if !body.Expires.IsZero() && !c.s.opts.Now().Before(body.Expires) {
		return badRequest("expires is in the past: %s", body.Expires.UTC().Format(time.RFC3339))
	}
	token, err := c.s.auth.access.CreateToken(body.Name, body.Rights, body.Expires)
	if err != nil {
		return accessProblem(err)
	}
	c.s.auth.forget()
	c.s.opts.Logger.Info("server: a token was made", "name", body.Name, "by", c.who.Name)
	c.reply.Set("Cache-Control", "no-store")
	return c.json(http.StatusCreated, map[string]any{"name": body.Name, "token": token})
}

// ownWithdrawToken ends the rights of a token or a certificate, at once.
func (c *call) ownWithdrawToken() error {
	if !c.s.authenticates.Load() {
		return errNoCredentials
	}
	name := c.params.get("name")
	if err := c.s.auth.access.Withdraw(name); err != nil {
		return accessProblem(err)
	}
	c.s.auth.forget()
	c.s.auth.endStreams()
	c.s.opts.Logger.Info("server: a token was withdrawn", "name", name, "by", c.who.Name)
	return c.empty(http.StatusNoContent)
}

// accessProblem converts the error of a change of the access file.
func accessProblem(err error) error {
	switch {
	case errors.Is(err, jay.ErrNotFound):
		return badRequest("there is no token and no certificate of this name")
	case errors.Is(err, jay.ErrLocked), errors.Is(err, jay.ErrNotWritable), errors.Is(err, jay.ErrCorrupt), errors.Is(err, jay.ErrNewerFormat):
		return &problem{status: http.StatusInternalServerError, kind: typeInternal, message: "the access file could not be changed; the server's log says why", cause: err}
	}
	return err
}

// forget makes the next request read the access file.
func (a *authentication) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checked = time.Time{}
}
