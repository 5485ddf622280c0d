package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/standby"
)

// followCommand keeps a standby.
type followCommand struct {
	From  string        `arg:"" name:"from" help:"The database to follow: of jay serve, such as http://127.0.0.1:8080/databases/acorns, or the directory of one that a program has open."`
	Dir   string        `arg:"" help:"Directory of the standby; it is made."`
	Every time.Duration `default:"10s" placeholder:"D" help:"How often to say how far behind it is."`
	Once  bool          `help:"End when the standby has all that the source had when the command began."`
}

// Help is shown by jay follow --help.
func (*followCommand) Help() string {
	return `The directory has all that the database has, a moment later, until the command is interrupted; it says how far behind that is. When the source does not answer it is asked again. Run it again to go on. Between two runs the directory can be read with --read-only, and jay promote makes a database of it.

A directory is followed in the program that has it open, which must run as the same user. Credentials for jay serve are those of --url: see jay --help. While it is followed, jay --db copy.db reads the copy through this process.

Examples:

    jay follow http://127.0.0.1:8080/databases/acorns copy.db
    jay follow --once http://127.0.0.1:8080/databases/acorns copy.db
    jay follow shop.jay copy.db
    jay --db copy.db --read-only query "from Users"`
}

// followResult is what follow prints with --json, again and again.
type followResult struct {
	Dir string `json:"dir"`
	standby.Status
}

// Run follows until ctx ends.
func (c *followCommand) Run(ctx context.Context, a *app) error {
	if err := a.checkGlobals(); err != nil {
		return err
	}
	if err := directories(a.command, c.Dir); err != nil {
		return err
	}
	if a.options.ReadOnly {
		return usageError{text: "follow writes to the directory, and goes without --read-only, with which others read it between two runs"}
	}
	if c.Every <= 0 {
		return usageError{text: "--every must be more than 0"}
	}
	source, err := sourceName(c.From).source(a)
	if err != nil {
		return err
	}
	begun := time.Now()
	s, err := standby.Open(c.Dir, source, standby.Options{Database: &jay.Options{CacheBytes: a.options.CacheBytes, EncryptionKeys: keysIn(a.options.EncryptionKeys, c.Dir)}})
	if err != nil {
		return err
	}
	return andThen(c.report(ctx, a, s, begun), s.Close())
}

// sourceName names what is followed: a database of jay serve by its URL, or one in a directory that a program has open.
type sourceName string

// source returns what is followed.
func (n sourceName) source(a *app) (standby.Source, error) {
	from := string(n)
	if !strings.Contains(from, "://") {
		return standby.Dir(from), nil
	}
	by, err := a.access.access(a.getenv)
	if err != nil {
		return nil, err
	}
	r, err := newRemote(from, by)
	if usage := (usageError{}); errors.As(err, &usage) {
		usage.text = strings.Replace(usage.text, "--url", "the URL of a source", 1)
		return nil, usage
	}
	if err != nil {
		return nil, err
	}
	return standby.URL(&http.Client{Transport: bearer{by}, CheckRedirect: by.client.CheckRedirect}, r.own("/follow")), nil
}

// bearer sends requests with the token.
type bearer struct{ access }

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.client.Transport.RoundTrip(r)
}

// report says how far the standby is, until ctx or following ends.
func (c *followCommand) report(ctx context.Context, a *app, s *standby.Standby, begun time.Time) error {
	said, last := time.Time{}, ""
	for {
		status := s.Status()
		done := c.Once && status.Connected && !status.Moment.Before(begun)
		if done || time.Since(said) >= c.Every || last != status.Error {
			said, last = time.Now(), status.Error
			if err := c.print(a, status); err != nil || done {
				return err
			}
		}
		wait, cancel := context.WithTimeout(ctx, min(c.Every, 100*time.Millisecond))
		err := s.Wait(wait)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if wait.Err() == nil {
			return err
		}
	}
}

func (c *followCommand) print(a *app, status standby.Status) error {
	var err error
	if a.json {
		err = a.printLine(followResult{c.Dir, status})
	} else {
		err = a.print(statusText(status) + "\n")
	}
	return andThen(err, a.stdout.Flush())
}

func statusText(s standby.Status) string {
	behind := "no copy yet"
	if !s.Moment.IsZero() {
		behind = fmt.Sprintf("%.1f s behind", s.Lag.Seconds())
	}
	if s.Err != nil {
		return behind + ", and not connected: " + s.Error
	}
	return behind
}

// promoteCommand makes a database of a standby.
type promoteCommand struct {
	floorFlags
	Dir     string `arg:"" help:"Directory of the standby, which no program has open."`
	SameTag bool   `help:"Promote in the place of the source, under its node tag. Needs --floor for every counter and the etag."`
}

// Help is shown by jay promote --help.
func (*promoteCommand) Help() string {
	return `The standby becomes a database that can be written. What its source has written after the last moment that the standby has is lost.

The source may have made IDs that the standby does not know of, and may still run. So the database gets a node tag of its own with --copy-tag. Or it takes the place of a source that cannot write any more, with --same-tag and numbers that the source has not passed.

Examples:

    jay promote --copy-tag B copy.db
    jay promote --same-tag --floor etag=5000000 --floor 'invoices|=9000' --floor orders=200000 copy.db`
}

// promoteResult is what promote prints with --json.
type promoteResult struct {
	Dir       string `json:"dir"`
	NodeTag   string `json:"nodeTag"`
	Documents int64  `json:"documents"`
}

// Run promotes.
func (c *promoteCommand) Run(ctx context.Context, a *app) error {
	if err := a.checkGlobals(); err != nil {
		return err
	}
	if err := directories(a.command, c.Dir); err != nil {
		return err
	}
	floors, err := c.floors()
	if err != nil {
		return err
	}
	options := a.options
	options.EncryptionKeys = keysIn(options.EncryptionKeys, c.Dir)
	tag, err := chooseTag(&options, c.SameTag, "choose --copy-tag TAG, or --same-tag with --floor: the source may have made IDs that the standby does not know")
	if err != nil {
		return err
	}
	info, err := jay.Promote(ctx, c.Dir, jay.PromoteOptions{CopyTag: tag, SameTag: c.SameTag, Floors: floors, Options: &options})
	if err != nil {
		return err
	}
	if a.json {
		return a.printLine(promoteResult{c.Dir, info.NodeTag, info.Documents})
	}
	return a.print(fmt.Sprintf("promoted %s with node tag %s, %s\n", c.Dir, info.NodeTag, count(info.Documents, "document")))
}
