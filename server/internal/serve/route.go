package serve

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Route is one endpoint.
type Route struct {
	Method  string
	Path    string // "{D}" stands for /databases/{db}, "{J}" for /jay/v1/databases/{db}
	Run     func(c *Call) error
	Params  func(raw string) (Params, error) // parses the query; nil for parseParams
	Takes   string                           // its parameters, apart from RaftParam; one with * may be repeated
	Body    bool                             // it has a body
	Upload  bool                             // it reads its body itself
	Timed   bool                             // Options.QueryTimeout bounds it: it may look at many documents and is no stream. See InTime
	Stores  bool                             // the body has documents to store: see BodyLimit
	Parts   bool                             // the body may be multipart
	Lazy    bool                             // it may be part of a multi_get
	Raft    bool                             // its reply is stored by raft-request-id, in the server's own database
	Once    bool                             // its result is stored by raft-request-id, in the commit of the command
	free    bool                             // served under any load and for any host; reveals nothing
	Stream  bool                             // it writes its reply itself; it has a place among the streams
	Socket  bool                             // it reports changes as long as the client likes: it has a place among the sockets
	Agreed  bool                             // it needs the majority of a cluster
	Named   bool                             // the parameter name has the name of its database
	invites bool                             // it needs only a ticket
	Open    bool                             // any sender with credentials may call it; run checks the rights
	Needs   Right                            // see right
	Reads   bool                             // it changes nothing, although it needs more than the right to read: see changes
	Heeds   Conditions                       // the conditional headers that it heeds

	Begins string // what the operation that it begins is called

	names    map[string]bool // see taken
	unheeded []Unheeded      // parameters that it accepts and does not heed
	Refused  string          // why it is not supported, if run is nil
}

// Table has the routes by their paths in lower case. It is immutable.
type Table struct{ ByPath map[string][]*Route }

// NewTable returns the table of all lists of routes, which it completes. Of unheeded each
// route gets the parameters that have its path.
func NewTable(unheeded []Unheeded, lists ...[]*Route) *Table {
	t := &Table{ByPath: make(map[string][]*Route)}
	for _, r := range slices.Concat(lists...) {
		if r.Params == nil {
			r.Params = parseParams
		}
		r.names = r.taken()
		for _, u := range unheeded {
			if slices.ContainsFunc(u.Paths, r.under) {
				r.unheeded = append(r.unheeded, u)
			}
		}
		key := strings.ToLower(r.Path)
		t.ByPath[key] = append(t.ByPath[key], r)
	}
	return t
}

// under reports whether the path of the route is this one, or with a * at its end, begins
// so.
func (r *Route) under(path string) bool {
	prefix, many := strings.CutSuffix(path, "*")
	return path == r.Path || many && strings.HasPrefix(r.Path, prefix)
}

// Find returns the route of a path, which is escaped, and the name of the database
// in it. Paths are compared without regard to case.
func (t *Table) Find(method, path string) (r *Route, database string, err error) {
	lookup, below := path, "{D}/"
	rest, found := cutPrefixFold(path, "/databases/")
	if !found {
		below = "{J}/"
		rest, found = cutPrefixFold(path, "/jay/v1/databases/")
	}
	if found {
		name, endpoint, found := strings.Cut(rest, "/")
		if !found {
			return nil, "", noRoute(method, path, nil)
		}
		if database, err = url.PathUnescape(name); err != nil {
			return nil, "", BadRequest("the URL has an invalid escape in %.100q", name)
		}
		lookup = below + endpoint
	}
	candidates := t.ByPath[strings.ToLower(lookup)]
	i := slices.IndexFunc(candidates, func(r *Route) bool { return r.Method == method })
	if i < 0 {
		return nil, "", noRoute(method, path, candidates)
	}
	if r = candidates[i]; r.Run == nil {
		return nil, "", NotSupported("%s %s: %s", method, r.Path, r.Refused)
	}
	return r, database, nil
}

func cutPrefixFold(s, prefix string) (rest string, found bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// noRoute is the error for an unknown path, or for an unknown method of a path.
func noRoute(method, path string, others []*Route) error {
	p := &Problem{Status: http.StatusBadRequest, Kind: typeRoute}
	p.Message = BadRequest("There is no handler for path: %s %.200s", method, path).Message
	if len(others) > 0 {
		var methods []string
		for _, r := range others {
			methods = append(methods, r.Method)
		}
		p.Headers = map[string]string{"Allow": strings.Join(methods, ", ")}
		p.Message += "; the path takes " + strings.Join(methods, ", ")
	}
	return p
}

// Unheeded is a parameter that clients send and on which no answer depends.
type Unheeded struct {
	Name   string   // DebugTag for any name without a value
	Paths  []string // one with * stands for those that begin so
	Reason string
}

// DebugTag stands for a parameter without a value.
const DebugTag = "NAME"

// taken are the names of the parameters that a route takes, and whether each may be
// repeated.
func (r *Route) taken() map[string]bool {
	out := make(map[string]bool)
	for name := range strings.FieldsSeq(r.Takes) {
		plain := strings.TrimSuffix(name, "*")
		out[plain] = plain != name
	}
	if r.Raft || r.Once {
		out[RaftParam] = false
	}
	if r.Method == "GET" {
		out[ticketParam] = false // see sessions.shows
	}
	return out
}

// Parse reads the query of a URL, and refuses what the route does not take.
func (r *Route) Parse(raw string) (Params, error) {
	ps, err := r.Params(raw)
	if err != nil {
		return nil, err
	}
	for i, p := range ps {
		repeats, found := r.names[p.name]
		switch {
		case !found && !r.leavesOut(p):
			return nil, BadRequest("%s %s has no parameter %.100q; %s", r.Method, r.Path, p.name, r.listParams())
		case found && !repeats && slices.ContainsFunc(ps[:i], func(other param) bool { return other.name == p.name }):
			return nil, BadRequest("%s %s takes the parameter %s once", r.Method, r.Path, p.name)
		}
	}
	return ps, nil
}

// leavesOut reports whether a parameter is accepted and not heeded.
func (r *Route) leavesOut(p param) bool {
	return slices.ContainsFunc(r.unheeded, func(u Unheeded) bool { return strings.EqualFold(u.Name, p.name) || u.Name == DebugTag && p.value == "" })
}

// listParams says which parameters the route takes.
func (r *Route) listParams() string {
	if r.Takes == "" {
		return "it takes none"
	}
	return "it takes " + strings.ReplaceAll(strings.ReplaceAll(r.Takes, "*", ""), " ", ", ")
}

// Alone returns an error if one of the other parameters is given too, which has no effect
// with the parameter name.
func (ps Params) Alone(name string, others ...string) error {
	for _, other := range others {
		if ps.Get(other) != "" {
			return BadRequest("the parameter %s has no effect with %s", other, name)
		}
	}
	return nil
}

// right returns the right that the route needs.
func (r *Route) right() Right {
	switch {
	case r.Needs != NoRight:
		return r.Needs
	case r.Path[0] == '/':
		return AdminRight // of the server, unless the route sets needs
	case strings.HasPrefix(r.Path, "{D}/admin/"):
		return AdminRight
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return ReadRight
	}
	return WriteRight
}

// changes reports whether a call may change something: by another method than GET and HEAD, or with more than the
// right to read, unless the route says that it only reads. r may be nil, where the route is not known yet: it is asked
// again when it is.
func (r *Route) changes(method string) bool {
	if method != http.MethodGet && method != http.MethodHead {
		return true
	}
	return r != nil && r.right() > ReadRight && !r.Open && !r.Reads
}

// Conditions are the conditional headers of RFC 9110, section 13, that a route heeds. It
// refuses the others: a write that must not be carried out is not. Those that only save a
// transfer may be ignored: the client gets the whole answer.
type Conditions uint8

const (
	Match     Conditions = 1 << iota // If-Match
	NoneMatch                        // If-None-Match: of a read the version that the client has, of a write "*"
)

// ParseWriteParams reads the query of a PUT or DELETE of a document.
func ParseWriteParams(raw string) (Params, error) { return ParseRawParams(raw, writeParams) }

// writeParams are the parameters of PUT and DELETE of a document. The Go client does not
// escape them like others: a plus sign is not a blank, and the ID may contain '&' and '='.
var writeParams = []string{"id", RaftParam}
