package own

import (
	"errors"
	"net/http"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// serverRoutes are the endpoints of the server and of its tokens.
var serverRoutes = []*serve.Route{
	{Method: "GET", Path: "/jay/v1/server", Run: getServer, Needs: serve.ReadRight},
	{Method: "GET", Path: "/jay/v1/tokens", Run: getTokens, Reads: true},
	{Method: "POST", Path: "/jay/v1/tokens", Run: makeToken, Body: true},
	{Method: "DELETE", Path: "/jay/v1/tokens", Run: withdrawToken, Takes: "name"},
}

// getServer replies with a description of the server, its bounds and their use.
func getServer(c *serve.Call) error {
	s, o := c.Server, &c.Server.Options
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
	used, memory := s.Memory.Load()
	part := func(used, most int64) map[string]int64 { return map[string]int64{"used": used, "most": most} }
	return c.JSON(http.StatusOK, map[string]any{
		"version": version, "commit": commit, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH, "processors": runtime.GOMAXPROCS(0),
		"began": s.Began.UTC().Format(serve.RavenTime), "now": now.UTC().Format(serve.RavenTime), "uptimeNs": now.Sub(s.Began),
		"id": s.Databases.ServerID, "authenticates": s.Authenticates.Load(), "encrypted": c.Request.TLS != nil,
		"databases": part(int64(len(s.Databases.List())), int64(o.MaxDatabases)), "openDatabases": part(int64(s.Databases.Opened()), int64(o.MaxOpenDatabases)),
		"requests": part(int64(s.Gate.Load()), int64(o.MaxRequests)), "waiting": part(int64(s.Gate.Queued()), int64(s.Gate.Most)),
		"streams": part(int64(s.Streams.Load()), int64(o.MaxStreams)), "sockets": part(int64(s.Sockets.Load()), int64(o.MaxSockets)),
		"memory": part(used, memory), "operations": part(int64(s.Operations.UnderWay()), serve.MaxRunningOperations),
		"heapBytes": heap[0].Value.Uint64(), "goroutines": runtime.NumGoroutine(),
		"maxBodyBytes": o.MaxBodyBytes, "idleAfterNs": o.IdleAfter,
	})
}

// errNoCredentials refuses changes of tokens if the server requires none: otherwise any
// program that reaches the port could give itself lasting rights.
var errNoCredentials = serve.BadRequest("this server asks for no credentials, and so it gives none: start it with --authenticate, or use jay serve token")

// tokenReply is a token or a certificate in the list.
type tokenReply struct {
	Name    string       `json:"name"`
	Kind    string       `json:"kind"`         // token, certificate or subject
	Of      string       `json:"of,omitempty"` // the thumbprint, or the common name
	Created string       `json:"created"`
	Expires string       `json:"expires,omitempty"`
	Expired bool         `json:"expired,omitempty"`
	Rights  serve.Rights `json:"rights"`
	You     bool         `json:"you,omitempty"` // it is the sender's
}

// getTokens replies with the tokens and certificates that have rights, without secrets,
// which are not stored.
func getTokens(c *serve.Call) error {
	all, err := c.Server.Auth.Access.List()
	if err != nil {
		return err
	}
	list := make([]tokenReply, 0, len(all))
	for _, g := range all {
		one := tokenReply{Name: g.Name, Kind: "token", Created: g.Created.UTC().Format(serve.RavenTime), Rights: g.Rights, You: c.Who != nil && c.Who.Name == g.Name}
		switch {
		case g.Thumbprint != "":
			one.Kind, one.Of = "certificate", g.Thumbprint
		case g.Subject != "":
			one.Kind, one.Of = "subject", g.Subject
		}
		if !g.Expires.IsZero() {
			one.Expires, one.Expired = g.Expires.UTC().Format(serve.RavenTime), !c.Server.Options.Now().Before(g.Expires)
		}
		list = append(list, one)
	}
	return c.JSON(http.StatusOK, map[string]any{"tokens": list, "authenticates": c.Server.Authenticates.Load() && c.Mount == nil})
}

// makeToken creates a token and replies with it. It cannot be shown again.
func makeToken(c *serve.Call) error {
	if err := c.Mount.OwnSignIn(); err != nil {
		return err
	}
	if !c.Server.Authenticates.Load() {
		return errNoCredentials
	}
	var body struct {
		Name    string       `json:"name"`
		Rights  serve.Rights `json:"rights"`
		Expires time.Time    `json:"expires"`
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	if !body.Expires.IsZero() && !c.Server.Options.Now().Before(body.Expires) {
		return serve.BadRequest("expires is in the past: %s", body.Expires.UTC().Format(time.RFC3339))
	}
	token, err := c.Server.Auth.Access.CreateToken(body.Name, body.Rights, body.Expires)
	if err != nil {
		return accessProblem(err)
	}
	c.Server.Auth.Forget()
	c.Server.Options.Logger.Info("server: a token was made", "name", body.Name, "by", c.Who.Name)
	c.Reply.Set("Cache-Control", "no-store")
	return c.JSON(http.StatusCreated, map[string]any{"name": body.Name, "token": token})
}

// withdrawToken ends the rights of a token or a certificate, at once.
func withdrawToken(c *serve.Call) error {
	if err := c.Mount.OwnSignIn(); err != nil {
		return err
	}
	if !c.Server.Authenticates.Load() {
		return errNoCredentials
	}
	name := c.Params.Get("name")
	if err := c.Server.Auth.Access.Withdraw(name); err != nil {
		return accessProblem(err)
	}
	c.Server.Auth.Forget()
	c.Server.Auth.EndStreams()
	c.Server.Options.Logger.Info("server: a token was withdrawn", "name", name, "by", c.Who.Name)
	return c.Empty(http.StatusNoContent)
}

// accessProblem converts the error of a change of the access file.
func accessProblem(err error) error {
	switch {
	case errors.Is(err, jay.ErrNotFound):
		return serve.BadRequest("there is no token and no certificate of this name")
	case errors.Is(err, jay.ErrLocked), errors.Is(err, jay.ErrNotWritable), errors.Is(err, jay.ErrCorrupt), errors.Is(err, jay.ErrNewerFormat):
		return &serve.Problem{Status: http.StatusInternalServerError, Kind: serve.TypeInternal, Message: "the access file could not be changed; the server's log says why", Cause: err}
	}
	return err
}
