package ids

import "strings"

// Strategy is a way to make a document's final ID. Its methods return the properties of a strategy
// that writers depend on, so that no writer needs a list of strategies. They report false for a
// number that is not a strategy.
type Strategy uint8

const (
	// Semantic uses the requested ID unchanged.
	Semantic Strategy = iota
	// GUID makes a random UUID.
	GUID
	// ServerSide appends the write's own etag, in 19 digits, and the node tag.
	ServerSide
	// Identity replaces the trailing pipe by the separator and the next number
	// of a counter that commits with the document.
	Identity
	// HiLo takes the next number of a range reserved in advance. Classify never
	// returns it: a caller asks for HiLo by giving no ID at all.
	HiLo

	strategyCount // how many there are
)

// strategies has a row for each strategy. All other code asks the methods below, and
// [Resolver.Make] makes the IDs: a new strategy is a row here, a case of Classify, and one
// of Make. A row without an answer does not compile.
var strategies = [...]traits{
	Semantic:   {"semantic", given, byCaller, form{}},
	GUID:       {"guid", drawn, fromRandom, form{alone: true, bytes: 36}},
	ServerSide: {"server-side", committed, fromEtag, form{bytes: serverSideDigits, tagged: true}},
	Identity:   {"identity", committed, fromCounter, form{mark: IdentityMark, joined: true, bytes: 1}},
	HiLo:       {"hilo", drawn, fromRange, form{joined: true, bytes: 1}},
}

// serverSideDigits is how many digits a server-side ID has.
const serverSideDigits = 19

// A strategy without a row does not compile.
var _ = [1]struct{}{}[len(strategies)-int(strategyCount)]

// traits are what other code has to know of a strategy.
type traits struct {
	name string
	made moment
	from origin
	form form
}

// moment is when an ID becomes known. The zero moment is no answer.
type moment uint8

const (
	given     moment = iota + 1 // by the caller
	drawn                       // before the commit, and anew if it is in use
	committed                   // in the transaction that commits the document
)

// origin is what makes an ID unique. The zero origin is no answer.
type origin uint8

const (
	byCaller    origin = iota + 1
	fromRandom         // random bytes
	fromEtag           // the etag of the write
	fromCounter        // a counter of the request
	fromRange          // numbers that a Client has reserved
)

// form is what an ID looks like: the request without its mark, the separator, what the
// strategy makes, and the node tag.
type form struct {
	alone  bool   // nothing of the request is in the ID
	mark   string // of the request, which goes
	joined bool   // by the separator
	bytes  int    // at least, of what the strategy makes
	tagged bool   // with the node tag
}

// traits returns the row of s, or one that answers nothing.
func (s Strategy) traits() *traits {
	if s < strategyCount {
		return &strategies[s]
	}
	return &noStrategy
}

var noStrategy = traits{name: "unknown"}

// String returns the strategy's name in lower case, such as "server-side".
func (s Strategy) String() string { return s.traits().name }

// Made reports whether the database makes the ID. If not, the ID is the request, and a
// document may have it already.
func (s Strategy) Made() bool { return s.traits().made > given }

// MadeByCommit reports whether the ID is known only when the document is committed: it is
// made of a number that commits with the document.
func (s Strategy) MadeByCommit() bool { return s.traits().made == committed }

// Drawn reports whether the ID is made before the commit. If a document has the ID already, the
// commit draws another one.
func (s Strategy) Drawn() bool { return s.traits().made == drawn }

// Random reports whether the ID is made of random bytes. If several such IDs in a row are in use
// already, the source of random bytes repeats itself.
func (s Strategy) Random() bool { return s.traits().from == fromRandom }

// FromEtag reports whether the ID holds the etag of its write. It cannot be made for a
// write that gets its etag later.
func (s Strategy) FromEtag() bool { return s.traits().from == fromEtag }

// FromCounter reports whether the ID takes the next number of a counter that the request
// names. In a cluster all nodes share the counter.
func (s Strategy) FromCounter() bool { return s.traits().from == fromCounter }

// FromRange reports whether the ID takes a number of a range that a [Client] has reserved.
// IDs drawn together are neighbours, and a number that was drawn and not used is lost.
func (s Strategy) FromRange() bool { return s.traits().from == fromRange }

// IdentityMark is the last character of a request for an identity.
const IdentityMark = "|"

// Classify returns the strategy that a requested ID asks for. Only its last
// character counts; nothing is trimmed. An empty or blank request asks for a
// GUID.
func Classify(request, separator string) Strategy {
	switch {
	case strings.TrimSpace(request) == "":
		return GUID
	case strings.HasSuffix(request, IdentityMark):
		return Identity
	case strings.HasSuffix(request, separator):
		return ServerSide
	}
	return Semantic
}
