package feed

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

// Now is the token of the position after the newest change.
const Now = "now"

// token is a position at which a feed continues: after the change with the etag position.
// Its text is
//
//	A:5-AAECAwQFBgcICQoLDA0ODw         the node tag, the etag and the ID of the database
//	A:5-AAECAwQFBgcICQoLDA0ODw~1000    the same, of a reader that began with no documents at etag 1000
//
// The first form is a change vector. Its node is always that of this database, even if the
// change was made by an earlier node of it: other copies of that node have other changes
// with the same etags. A reader that begins with no documents needs no deletions from
// before its beginning, which base records. So its tokens stay valid while it catches up,
// however many of those deletions are removed.
type token struct{ position, base uint64 }

// Token returns the text of a token of the database own. all has the databases behind its
// node numbers.
func Token(all env.Origins, own, position, base uint64) string {
	text := all.ChangeVector(own, position)
	if base > position {
		text += "~" + strconv.FormatUint(base, 10)
	}
	return text
}

// GoneError is returned for a token after which changes may be missing: deletions after it
// were removed, or it does not belong to the history of this database. Package jay has an
// error of its own for it.
type GoneError struct {
	Since  string // the token
	Oldest uint64 // the least etag with which a token is still valid
	Reason string
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("since %q: %s", errs.Shorten(e.Since), e.Reason)
}

// gone returns the error for a token whose etag is below oldest.
func (s *Source) gone(since string, oldest uint64) error {
	return &GoneError{since, oldest, fmt.Sprintf("records of deletions up to etag %d were removed", oldest)}
}

// parse parses a token and checks that it belongs to the history of this database: a feed
// that continued from any other would miss changes silently.
func (s *Source) parse(ctx context.Context, since string) (t token, err error) {
	vector, base, based := strings.Cut(since, "~")
	tag, rest, tagged := strings.Cut(vector, ":")
	etag, id, named := strings.Cut(rest, "-")
	t.position, err = strconv.ParseUint(etag, 10, 63)
	if based && err == nil {
		t.base, err = strconv.ParseUint(base, 10, 63)
	}
	if err != nil || !tagged || !named || tag == "" || id == "" || t.position == math.MaxInt64 {
		return token{}, fmt.Errorf("%w: since %q is not a token of a change, nor empty, nor %q", ids.ErrUsage, errs.Shorten(since), Now)
	}
	newest, mark, err := s.newest()
	if err != nil {
		return token{}, err
	}
	if own := s.Env.Origins[s.Env.Node]; tag != own.Tag || id != own.ID {
		return token{}, &GoneError{since, mark, fmt.Sprintf("it is not of this database, which is %s-%s", own.Tag, own.ID)}
	}
	if max(t.position, t.base) > newest {
		// The token may be that of a write whose commit is not on disk yet.
		if err = s.Env.Engine.Sync(ctx); err == nil {
			newest, mark, err = s.newest()
		}
		if err != nil {
			return token{}, err
		}
	}
	if max(t.position, t.base) > newest {
		return token{}, &GoneError{since, mark, fmt.Sprintf("the newest change has etag %d: the database is an earlier state of itself, or has lost changes", newest)}
	}
	return t, nil
}

// newest returns the etag of the newest change that readers see, and the mark: see
// NewestIn.
func (s *Source) newest() (newest, mark uint64, err error) {
	snapshot := s.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return s.NewestIn(snapshot)
}

// NewestIn returns the etag of the newest change in a snapshot, and the mark, the etag up
// to which records of deletions may be gone.
func (s *Source) NewestIn(r storage.Reader) (newest, mark uint64, err error) {
	if mark, err = counters.Mark(r); err != nil {
		return 0, 0, err
	}
	newest, err = counters.NewestChange(s.Env, r)
	return newest, mark, err
}
