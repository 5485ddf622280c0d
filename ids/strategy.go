package ids

import "strings"

// Strategy is a way to make a document's final ID.
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
)

// String returns the strategy's name in lower case, such as "server-side".
func (s Strategy) String() string {
	switch s {
	case Semantic:
		return "semantic"
	case GUID:
		return "guid"
	case ServerSide:
		return "server-side"
	case Identity:
		return "identity"
	case HiLo:
		return "hilo"
	}
	return "unknown"
}

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
