package server

import (
	"crypto/x509"
	"log/slog"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/standby"
)

// Options configure Open. Data or Mounted must be set. The zero value of every other field is a
// good default.
type Options struct {
	// Data is the directory of the databases and of the server's own records about them. Open creates
	// it.
	Data string

	// Directories maps names of databases to their directories. Each database has a directory of its
	// own, which must exist. A server with Directories has no other databases: it creates none, and
	// deletes none. Its records about them, such as definitions of indexes and configurations, are in
	// Data. Each database keeps its stored setting of whether the prefix of an ID suggests the
	// collection.
	Directories map[string]string

	// Mounted are databases that the program has open, by their names. The program may go on using
	// them, and closes them after the server. The server never closes them, and creates and deletes no
	// database. It serves them as they are: Database and the options of a cluster do not apply to
	// them, and the figures of the server's operations do not include theirs. A database that is open
	// for reading only refuses changes.
	//
	// A server with Mounted needs no Data, unless it has tokens (Authenticate) or Directories. Without
	// Data it keeps its records, such as results by request ID, in memory. ServeHTTP and Serve let
	// requests read and nothing more if neither Authenticate nor AnyoneMayReadAndWrite is set. Handler
	// has a hook that gives other rights.
	Mounted map[string]*jay.DB

	// Stores maps names of databases to stores of Database.Engine. The engine's name of a store is,
	// for example, the address of a database of PostgreSQL (package storage/sqlkv). Any number of
	// servers can have a store open at the same time, and a client can ask any of them. Open makes a
	// store that does not exist. All stores stay open until Close, so that the server keeps its node
	// tags: Database.NodeTag, or a free one.
	//
	// A server with Stores has no other databases: it creates none, and deletes none. Stores cannot be
	// combined with Directories, Mounted, Follow, Cluster or Database.MinFreeBytes. Data is needed,
	// for the records of each server: tokens, and results of commands about databases and indexes by
	// request ID. Each database keeps its stored setting of whether the prefix of an ID suggests the
	// collection.
	Stores map[string]string

	// Follow maps names of standbys to their sources: see package standby. A standby is a database
	// below Data. Clients can read it here, but not write to it, while it follows its source. Open
	// makes standbys that do not exist. MaxDatabases bounds the names. A standby gets the options of
	// Database, except MinFreeBytes and the options that say how IDs are made, which are those of its
	// source.
	//
	// A standby is always open, and does not count for MaxOpenDatabases. It cannot be deleted. Open
	// returns jay.ErrStandby if the database of a name is not a standby, such as one that was
	// promoted.
	Follow map[string]standby.Source

	// MaxLag is the greatest lag of a standby of Follow with which /readyz says that the server is
	// ready. The server is not ready before the first copies are complete. The default is 10 seconds.
	MaxLag time.Duration

	// Database are the options of every database. MaxMemory and Memory must not be set: the server's
	// MaxMemory is for all databases. The server sets Logger and MustExist. It sets PrefixCollections
	// to jay.PrefixCollectionsIgnored: a document that names no collection has none, as in RavenDB. It
	// also sets ExpirationDisabled and RefreshDisabled: in a new database @expires and @refresh have
	// no effect until a configuration is stored, or if its record has one.
	//
	// The default of MinFreeBytes is 256 MiB, or a tenth of the disk that the database is on if that
	// is less. A value below 0 means no bound. With Directories, Database.FS or Database.Engine the
	// default is no bound.
	Database jay.Options

	// Cluster, if not nil, makes each database a node of a cluster with the databases of
	// the same name on other servers. They share identities, compare-exchange values and
	// node tags, but not documents. Cluster returns the coordinator for the key of a
	// database, its name in lower case. It is called each time a database is opened and
	// must not wait for the network; the server closes the coordinator after the database.
	// For the key "" it returns the coordinator in which the servers themselves record
	// their tags and addresses. The servers of a cluster must have different values of
	// Database.NodeTag.
	Cluster func(key string) (cluster.Coordinator, error)

	// ClusterTimeout bounds the wait for a majority of a request that needs one: identities,
	// compare exchange, cluster-wide sessions. The default is 10 seconds.
	ClusterTimeout time.Duration

	// QueryTimeout bounds the time of a query, and of any other request that may read many documents,
	// revisions or compare-exchange values. A request that takes longer ends with 408. Streams, which
	// take as long as their readers, and operations have no such bound. The default is 5 minutes, as in
	// RavenDB.
	QueryTimeout time.Duration

	// Address is the URL under which other machines reach the server, for the list of the
	// cluster's servers. The default is none.
	Address string

	// Logger receives a record for each request at level Info, and messages about the
	// server and its databases. The default is no logging.
	Logger *slog.Logger

	// Hosts are the names and addresses, without a port, by which clients may call the server, in
	// addition to localhost and the loopback addresses. The server refuses a request with another
	// Host, as a protection against DNS rebinding. "*" allows every host.
	Hosts []string

	// TLSCertificate and TLSKey are PEM files. If they are set, Serve takes TLS connections, of
	// version 1.2 at least. The server reads files that have changed again.
	TLSCertificate string
	TLSKey         string

	// ClientCAs are the authorities whose client certificates are accepted by their common name: see
	// Access.AllowSubject.
	ClientCAs *x509.CertPool

	// Authenticate requires a token or a client certificate for every request: see Access. On an
	// address that is not a loopback one, Serve requires credentials and TLS even if Authenticate is
	// not set: see NoEncryption and AnyoneMayReadAndWrite.
	Authenticate bool

	// InvitedOnly requires a browser session from Invite for every request, including those for
	// /healthz and for the files of the studio. Tokens and certificates are not accepted. It is for a
	// server that a user starts for a browser on the same machine.
	InvitedOnly bool

	// NoEncryption lets Serve listen without TLS on an address that is not a loopback one, for example
	// behind a proxy that encrypts.
	//
	// Danger: tokens and documents can be read and changed in transit.
	NoEncryption bool

	// AnyoneMayReadAndWrite lets Serve listen on an address that is not a loopback one
	// without TLS, and answer without authentication.
	//
	// Danger: every program that reaches the address can read and change everything.
	AnyoneMayReadAndWrite bool

	// Studio serves the studio at /studio/: pages with which a browser shows and changes the
	// databases, with the rights of its user. "/" redirects to it. Server.Handler serves the studio
	// below a path of the program's mux.
	Studio bool

	// IdleAfter is how long a database stays open after its last request. The default
	// is 15 minutes.
	IdleAfter time.Duration

	// MaxDatabases bounds the databases of the server. The default is 1,000.
	MaxDatabases int

	// MaxOpenDatabases bounds the databases that are open at the same time. MaxMemory bounds them,
	// too. To open one more, the server closes the database that has been idle longest. If none is
	// idle, it closes one that is only watched: its changes sockets and feeds end. If all are in use,
	// the server refuses the request with 429. The default is 64.
	MaxOpenDatabases int

	// MaxBodyBytes bounds the body of a request, both as sent and decompressed. The default is 128
	// MiB.
	MaxBodyBytes int64

	// MaxReplyBytes bounds the documents of a reply, before it is compressed. The
	// default is 128 MiB. Streams have no such bound: they hold one document at a time.
	MaxReplyBytes int64

	// MaxMemory bounds the memory of the server and its databases, in bytes. A quarter, at most 1 GiB,
	// is for requests: their decoded bodies, what queries sort, documents and replies. The server
	// refuses a request that would exceed this share with 429. 8 MiB are for the server's own
	// database. The databases share the rest, as jay.NewMemory says: a database that is opened gets
	// half of what is left for caches. If too little is left, the server closes the database that has
	// been idle longest, as with MaxOpenDatabases. Server.Memory returns the figures.
	//
	// Database.CacheBytes, DocumentCacheBytes, MemTableBytes and MaxQueryBytes, if they are set, are
	// taken out of MaxMemory for each database. Mounted databases do not count: each has the memory
	// that it was opened with. MaxMemory does not include the program itself and the documents that
	// calls read and write at the moment. The minimum is 64 MiB. The default is half of the memory of
	// the machine, or half of what the control group (Linux) or GOMEMLIMIT allows the process if that
	// is less.
	MaxMemory int64

	// MaxSenderMemoryBytes bounds how much of the memory for requests the requests of one sender hold,
	// so that no sender holds all of it. A sender is a token or a certificate, or an address if there
	// is no authentication. The server refuses a request that exceeds the bound on its own with 413,
	// and one that exceeds it together with others of the sender with 429. The default is half of the
	// memory for requests, or four times Database.MaxDocumentBytes if that is more, because a document
	// takes that much while it is stored. The default is at most all of the memory for requests.
	MaxSenderMemoryBytes int64

	// MaxRequests bounds the requests that run at the same time. Up to four times as many wait for a
	// place. The server refuses further requests, and requests that have waited for QueueTimeout, with
	// 429. One sender gets at most half of the places, and at most half of MaxStreams, MaxSockets and
	// MaxConnections. Without authentication this holds for addresses other than loopback ones. The
	// default is 256.
	MaxRequests int

	// MaxStreams bounds the streams that run at the same time. They do not count for MaxRequests,
	// because a stream runs as long as its reader takes. Further streams wait and are refused as
	// requests are. The default is 64.
	MaxStreams int

	// MaxSockets bounds the changes sockets and feeds of changes that are open at the same time. They
	// do not count for MaxRequests and MaxStreams. MaxConnections bounds them, too. An idle one takes
	// some 30 KiB. The default is 2,048.
	MaxSockets int

	// SilenceTimeout is how long the client of a bulk insert may send nothing. RavenDB's clients send
	// a heartbeat every 40 seconds. A client may send nothing but heartbeats for 15 times
	// SilenceTimeout. The default is 2 minutes.
	SilenceTimeout time.Duration

	// QueueTimeout is how long a request waits for a place. The default is 5 seconds.
	QueueTimeout time.Duration

	// MaxConnections bounds the connections of Serve. For one more, the server ends a connection that
	// is idle or on which no credentials came. If there is none, it refuses the requests of the new
	// connection with 429, except /healthz and /readyz. The default is 4,096.
	MaxConnections int

	// MaxHeaderBytes bounds the request line and the headers, in Serve. The default is 64
	// KiB. RavenDB's clients send IDs of up to 1,024 characters in a URL.
	MaxHeaderBytes int

	// HeaderTimeout is how long a client may take to send the headers, and GraceTimeout how long it
	// may take to send a body or to take a reply, plus a second for every MinBytesPerSecond of it. The
	// server disconnects a slower client. The defaults are 10 and 30 seconds, and 16 KiB.
	HeaderTimeout     time.Duration
	GraceTimeout      time.Duration
	MinBytesPerSecond int64

	// ShutdownTimeout is how long Serve lets requests finish after its context has
	// ended. The default is 30 seconds.
	ShutdownTimeout time.Duration

	// SlowAfter is the duration from which a request is logged as slow, at level Warn.
	// The default is 1 second.
	SlowAfter time.Duration

	// MaxRememberedResults bounds the results of commands that the server keeps by their
	// raft-request-id. It removes the oldest first. The default is 10,000.
	MaxRememberedResults int

	// Now replaces the clock. The default is time.Now.
	Now func() time.Time
}
