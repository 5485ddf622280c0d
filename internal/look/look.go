// Package look lets other processes of the same user read a database that a program has open, and have that program write, if it allows that.
//
// The owner of a directory calls [Listen], which answers on a socket, and [Driver] opens what is there as a
// storage.Engine that only reads: snapshots, values, pages of keys. So the database above it is the same code on
// both sides, and the owner's program contains no command and no server. Connections that have come another way, such as through an HTTP server, are for
// [Answerer.Answer] on the owner's side, and for the Dial of a Driver on the other.
//
// The socket is the file [Name] in the directory. Where that cannot be, as the path is too long for a socket or the file
// system has none, it is in the user's runtime directory, and the file Name has its path. The holder of the directory's
// lock alone makes and removes them, so what it finds there is left over.
//
// Nothing is written by keys. If the Source has a Call, the owner carries out calls of clients: names and arguments that the rooms above agree on
// ([Call]). Without it, each call is refused, whatever a client says that it may.
//
// # Who gets in
//
// The socket has the mode 0600, and on Linux a process of another user is refused by its credentials as well, but for
// root. Nothing listens on a network.
//
// # Bytes
//
// A client begins with "jaylook" and its version, one byte. The owner answers with the same eight bytes, with its own
// version, and a frame: a JSON object with its process, or an error. Then requests and replies alternate. A frame is
//
//	length   4 bytes, big-endian, of what follows
//	kind     1 byte: of a request what is asked for, of a reply 0 or the code of an error
//	content
//
// Texts in a content are their length, as an unsigned varint, and their bytes. A kind that is not known is answered with an
// error, so that a later version can ask for more and go on without it.
//
// All of the package is safe for concurrent use, but for iterators.
package look

import "time"

// Name is the file in the directory of a database: the socket, or the path of one.
const Name = "LOOK"

const (
	magic   = "jaylook"
	version = 1
)

// Bounds of what one side accepts of the other: docs/limits.md.
const (
	maxClients   = 100
	maxSnapshots = 256              // of a client
	maxRequest   = 1 << 20          // bytes of a frame
	maxReply     = 1<<30 + 1<<20    // bytes of a frame: the largest value, and its key
	pageBytes    = 256 << 10        // that a page has about
	pageKeys     = 4096             // that a page has at most
	snapshotAge  = 15 * time.Minute // after which a snapshot is closed
)

// Times for which one side waits for the other. Tests shorten them.
var (
	greeting = 5 * time.Second  // for the first frame
	stall    = 30 * time.Second // for a byte that the other side should send or take
)

// Kinds of requests.
const (
	askSnapshot  = 1 + iota // → its number
	askClose                // number
	askGet                  // number, or 0 for one of now; key → value
	askPage                 // number, flags, keys, lo, hi → flag, and keys with their values
	askStats                // → a statsReply
	askSpace                // flags, lo, hi → bytes
	askSync                 //
	askFollow               // and the request of a standby behind the frame → an empty reply, and the stream, up to the end of the connection
	askFiles                // → a list of storage.File
	askCheckFile            // name → a fileReply, again and again; but to the last, the client answers with an askGo
	askGo                   //
	askMany                 // number, or 0 for one of now; keys → for the first of them, as many as a page has, 0, or 1 and the value
	askArguments            // the first part of the arguments of the call that comes next, behind those sent before → an empty reply
	askCall                 // name, and the rest of the arguments → a flag, the number of the call, its progress, and if the flag is 1 its result
	askAwait                // number → the same as of askCall
	askCancel               // number → the same as of askCall
)

// Flags of requests.
const (
	backward  = 1 << iota // a page begins with the last key
	unbounded             // there is no hi
)

// hello is the owner's answer to a greeting.
type hello struct {
	PID         int           `json:"pid"`
	SnapshotAge time.Duration `json:"snapshotAgeNs"`

	// Writes says why the owner carries out no calls that write, and is empty if it does. Older owners do not send it.
	Writes *string `json:"writes,omitempty"`

	// Calls are those that the owner carries out all the same.
	Calls []string `json:"calls,omitempty"`
}
