package raven

import (
	"net/http"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// ifNoneMatch reads If-None-Match of a write. absent reports that what is written must not
// exist.
func ifNoneMatch(c *serve.Call) (absent bool, err error) {
	tag, found := c.Header["If-None-Match"]
	if !found {
		return false, nil
	}
	if len(tag) > 1 || strings.TrimSpace(tag[0]) != "*" {
		return false, serve.NotSupported("If-None-Match of a write is * only, for what must not exist")
	}
	if _, both := c.Header["If-Match"]; both {
		return false, serve.BadRequest("If-Match and If-None-Match cannot both hold")
	}
	return true, nil
}

// matches reports whether the client has this version already. In a HEAD, RavenDB's
// clients send the etag without quotes.
func matches(c *serve.Call, etag string) bool {
	for _, line := range c.Header["If-None-Match"] {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == "*" || strings.Trim(one, `"`) == etag {
				return true
			}
		}
	}
	return false
}

// ifMatch reads If-Match. version is the version that the document must have, "" if it
// must not exist, or nil for any. found is false without the header.
func ifMatch(c *serve.Call) (version *string, found bool, err error) {
	tag, found := c.Header["If-Match"]
	switch {
	case !found:
		return nil, false, nil
	case len(tag) > 1 || strings.Contains(strings.Replace(tag[0], guardMark, "", 1), ","):
		return nil, true, serve.BadRequest("If-Match must name one version")
	case tag[0] == "*":
		return nil, true, nil
	case strings.HasPrefix(tag[0], "W/"):
		return nil, true, serve.BadRequest("If-Match must not be a weak tag")
	}
	text := tag[0]
	if len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	text, _, _ = splitVector(text)
	return &text, true, nil
}

// condition reads If-Match as options of a write. exists reports that the document must
// exist, in any version.
func condition(c *serve.Call) (opts []jay.WriteOption, exists bool, err error) {
	version, found, err := ifMatch(c)
	if err != nil || version == nil {
		return nil, found, err
	}
	return []jay.WriteOption{jay.IfMatch(*version)}, false, nil
}

// versionCondition reads If-Match as condition does, but refuses "any version".
func versionCondition(c *serve.Call, what string) ([]jay.WriteOption, error) {
	opts, exists, err := condition(c)
	if err == nil && exists {
		err = serve.BadRequest("If-Match of %s", what)
	}
	return opts, err
}

// preconditionFailed is the error for a write that If-None-Match forbids.
func preconditionFailed(message string) *serve.Problem {
	return &serve.Problem{Status: http.StatusPreconditionFailed, Kind: serve.TypeConcurrency, Message: message}
}
