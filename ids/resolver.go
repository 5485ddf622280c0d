package ids

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Counters are the counters of the transaction that writes the document. A
// Resolver reads and stages them. Numbers commit with the transaction; if it
// fails, a later one draws them again.
type Counters interface {
	// Sequence draws the etag of this write.
	Sequence() (uint64, error)
	// Identity returns the last used number of the counter with this name, a
	// case-folded request such as "users|". A missing counter is at 0.
	Identity(name string) (last int64, err error)
	// SetIdentity stages n as the last used number.
	SetIdentity(name string, n int64) error
	// Exists reports whether a document has this ID, committed or staged.
	Exists(id string) (bool, error)
}

// Resolver makes final IDs from requested ones. It is immutable and safe for
// concurrent use.
type Resolver struct {
	rules  Rules
	suffix string // of server-side IDs: -A
	legacy bool   // requests mean what they meant up to RavenDB 3.5
	uuid   func() (uuid.UUID, error)
}

// NewResolver returns a resolver for these rules, which must be valid. GUIDs
// are UUIDs of version 4, or of version 7 if ordered is set, made from random;
// nil means the system's source. With legacy set, requests mean what they meant
// up to RavenDB 3.5: they are trimmed, a trailing separator asks for an
// identity, and the pipe is a character like any other.
func NewResolver(rules Rules, ordered, legacy bool, random io.Reader) *Resolver {
	r := &Resolver{rules: rules, suffix: "-" + rules.NodeTag, legacy: legacy}
	switch {
	case ordered && random != nil:
		r.uuid = func() (uuid.UUID, error) { return uuid.NewV7FromReader(random) }
	case ordered:
		r.uuid = uuid.NewV7
	case random != nil:
		r.uuid = func() (uuid.UUID, error) { return uuid.NewRandomFromReader(random) }
	default:
		r.uuid = uuid.NewRandom
	}
	return r
}

// Rules returns the rules of the resolver.
func (r *Resolver) Rules() Rules { return r.rules }

// Request returns the strategy that a requested ID asks for, and the request in its current form:
// it translates a legacy request.
func (r *Resolver) Request(request string) (string, Strategy) {
	if !r.legacy {
		return request, Classify(request, r.rules.Separator)
	}
	request = strings.TrimSpace(request)
	strategy := Classify(request, r.rules.Separator)
	switch strategy {
	case ServerSide:
		// "users/" of then and "users|" of today share a counter, so that a
		// change of generation does not repeat a number.
		return strings.TrimSuffix(request, r.rules.Separator) + IdentityMark, Identity
	case Identity:
		return request, Semantic
	}
	return request, strategy
}

// Check returns an *Error if no ID that strategy makes from request could satisfy
// the rules. It draws no number.
func (r *Resolver) Check(request string, strategy Strategy) error {
	form := &strategy.traits().form
	if form.alone {
		return nil
	}
	if err := checkCharacters(request); err != nil {
		return err
	}
	size := len(request) - len(form.mark) + form.bytes
	if form.joined {
		size += len(r.rules.Separator)
	}
	if form.tagged {
		size += len(r.suffix)
	}
	return r.rules.checkSize(request, size)
}

// Stem returns the prefix that all IDs of a request share: users/ann for users/ann, users/ for
// users/, users for users|, and "" for a request for a GUID. request and s are the results of
// Request.
func (r *Resolver) Stem(request string, s Strategy) string {
	form := &s.traits().form
	if form.alone {
		return ""
	}
	return strings.TrimSuffix(request, form.mark)
}

// Form returns the form of the IDs of a request, with … for the part that the strategy makes:
// users/ann, users/…-A for users/, and users/… for users|. The form of a HiLo tag lacks the node
// tag, because not every generation of HiLo appends it. request and s are the results of Request,
// or a tag and HiLo.
func (r *Resolver) Form(request string, s Strategy) string {
	text, form := r.Stem(request, s), &s.traits().form
	if form.joined {
		text += r.rules.Separator
	}
	if form.bytes > 0 {
		text += "…"
	}
	if form.tagged {
		text += r.suffix
	}
	return text
}

// Make makes the final ID of a request. s and request are the results of Request. If the ID holds
// the etag of the write, Make returns the etag with which the document must be written, and 0
// otherwise. c may be nil unless s.MadeByCommit(). A semantic request is its own ID; HiLo IDs come
// from a [Client] instead, and Make returns ErrUsage.
//
// Make returns an *Error if the ID breaks a rule, and ErrExhausted if a counter has no number left.
// If s.Drawn(), Make does not check whether a document has the ID. If s.MadeByCommit(), the ID is
// free in c.
func (r *Resolver) Make(s Strategy, c Counters, request string) (id string, etag uint64, err error) {
	switch s {
	case Semantic:
		id = request
	case GUID:
		id, err = r.newGUID()
	case ServerSide:
		return r.serverSide(c, request)
	case Identity:
		id, err = r.identity(c, request)
	default:
		err = fmt.Errorf("%w: no %s id is made of a request", ErrUsage, s)
	}
	return id, 0, err
}

// newGUID returns the text of a new UUID: 36 characters, lower-case hex.
func (r *Resolver) newGUID() (string, error) {
	u, err := r.uuid()
	if err != nil {
		return "", fmt.Errorf("make a GUID: %w", err)
	}
	return u.String(), nil
}

// serverSide makes the ID of a request that ends with the separator: the
// request, the etag of this write in 19 digits, and the node tag. If a document
// has that ID already, serverSide tries the next etag. It returns the etag that
// the document must be written with.
func (r *Resolver) serverSide(c Counters, request string) (id string, etag uint64, err error) {
	for {
		if etag, err = c.Sequence(); err != nil {
			return "", 0, err
		}
		id = fmt.Sprintf("%s%0*d%s", request, serverSideDigits, etag, r.suffix)
		if err := r.rules.Check(id); err != nil {
			return "", 0, err
		}
		taken, err := c.Exists(id)
		if err != nil {
			return "", 0, err
		}
		if !taken {
			return id, etag, nil
		}
	}
}

// identity makes the ID of a request that ends with a pipe: the request
// without the pipe, the separator, and the next number of its counter, which
// it stages. It skips numbers that documents have already: see NextFree.
func (r *Resolver) identity(c Counters, request string) (string, error) {
	name := r.rules.Fold(request)
	last, err := c.Identity(name)
	if err != nil {
		return "", err
	}
	n, err := NextFree(last, func(n int64) (bool, error) { return c.Exists(r.IdentityID(request, n)) })
	if err != nil {
		return "", fmt.Errorf("identity %.100q: %w", request, err)
	}

	id := r.IdentityID(request, n)
	if err := r.rules.Check(id); err != nil {
		return "", err
	}
	return id, c.SetIdentity(name, n)
}

// IdentityID returns the ID of number n for a request that ends with a pipe.
func (r *Resolver) IdentityID(request string, n int64) string {
	prefix := request[:len(request)-len(IdentityMark)]
	return prefix + r.rules.Separator + strconv.FormatInt(n, 10)
}

// NextFree returns a free number above last: last + 1 unless taken says that a document has it.
// Otherwise NextFree doubles the number until it finds a free one, and bisects back to a free
// number that follows a taken one. Documents 1, 2, 4, 8 and 9 give 10; a million in a row take some
// forty calls of taken. Free numbers below the result are never used. RavenDB 3.x uses the same
// algorithm.
func NextFree(last int64, taken func(int64) (bool, error)) (int64, error) {
	if last == math.MaxInt64 {
		return 0, ErrExhausted
	}
	n := last + 1
	busy, err := taken(n)
	if err != nil || !busy {
		return n, err
	}

	// Double: lo is the last number found taken, hi the first found free.
	lo, hi := n, n
	for busy {
		if hi == math.MaxInt64 {
			return 0, ErrExhausted
		}
		lo = hi
		hi = double(hi)
		if busy, err = taken(hi); err != nil {
			return 0, err
		}
	}
	// Bisect: lo stays taken, hi stays free.
	for hi-lo > 1 {
		middle := lo + (hi-lo)/2
		if busy, err = taken(middle); err != nil {
			return 0, err
		}
		if busy {
			lo = middle
		} else {
			hi = middle
		}
	}
	return hi, nil
}

// double returns 2n, or the greatest int64 if that overflows.
func double(n int64) int64 {
	if n > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return 2 * n
}
