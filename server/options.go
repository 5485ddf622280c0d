package server

import (
	"crypto/x509"
	"log/slog"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/standby"
)

// Options configure Open. Data or Mounted must be set; the zero value of every other field is a
// good default.
type Options struct {
	// Data is the directory of the databases and of what the server records about
	// them. Open creates it.
	Data string

	// Directories are databases by their names, each in a directory of its own, which must
	// be there. With them the server has no others: it creates none, and deletes none.
	// What it records about them, such as definitions of indexes and configurations, is in
	// Data. Whether the prefix of an ID suggests the collection is as stored in each
	// database.
	Directories map[string]string

	// Mounted are databases that the program has open, by their names. The program goes on using them, and closes them
	// after the server; the server never does, and creates and deletes none. It answers for them as they are: Database
	// and the options of a cluster do not apply to them, the figures of the server's operations have none of theirs, and one that is
	// open for reading only refuses changes.
	//
	// A server with them needs no Data, unless it has tokens (Authenticate) or Directories: what it records, such as
	// results by request ID, is in memory then. Without Authenticate and AnyoneMayReadAndWrite, ServeHTTP and Serve let
	// requests read and nothing more; Handler has a hook that gives other rights.
	Mounted map[string]*jay.DB

	// Stores are databases by their names, each in a store of Database.Engine, by the name that the engine knows it by, such as the address of a
	// database of PostgreSQL (package storage/sqlkv). Any number of servers can have one open at once, and a client can ask any of them. A
	// store that is not there is made. All are open until Close, so that the server keeps its node tags: Database.NodeTag, or one that is free.
	//
	// With them the server has no other databases: it creates none, and deletes none. They go without Directories, Mounted, Follow, Cluster and
	// Database.MinFreeBytes. They need Data for what each server has for itself: tokens, and results of commands about databases and
	// indexes by request ID. Whether the prefix of an ID suggests the collection is as stored in each database.
	Stores map[string]string

	// Follow are standbys by their names: databases below Data that follow another one, which can be read here
	// and not written, while it is followed: see package standby. Open makes those that are not there. The names are bounded by MaxDatabases.
	// Of Database they get what does not say how IDs are made, as that is their source's, and no MinFreeBytes.
	//
	// A standby is always open, and counts in no MaxOpenDatabases. It cannot be deleted. Open returns jay.ErrStandby for the name of a
	// database that is none, such as one that was promoted.
	Follow map[string]standby.Source

	// MaxLag is how far a standby of Follow may be behind for /readyz to say that the server is ready. It never is
	// before the first copies are complete. The default is 10 seconds.
	MaxLag time.Duration

	// Database are the options of every database. MaxMemory and Memory must not be set: the server's MaxMemory is
	// for all. Logger and MustExist are set by the server, and PrefixCollections is jay.PrefixCollectionsIgnored: a document that
	// names no collection has none, as in RavenDB. So are ExpirationDisabled and
	// RefreshDisabled: in a new database @expires and @refresh have no effect until a
	// configuration is stored, or if its record has one.
	//
	// The default of MinFreeBytes is 256 MiB, or a tenth of the disk that the database is on
	// if that is less; below 0 there is no bound. With Directories, Database.FS or Database.Engine the default is none.
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

	// QueryTimeout bounds the time of a query, and of another request that may look at many
	// documents: then it ends with 408. A stream, which takes as long as its reader, has no
	// such bound, and neither has an operation. The default is 5 minutes, as in RavenDB.
	QueryTimeout time.Duration

	// Address is the URL under which other machines reach the server, for the list of the
	// cluster's servers. The default is none.
	Address string

	// Logger receives a record for each request at level Info, and messages about the
	// server and its databases. The default is no logging.
	Logger *slog.Logger

	// Hosts are the names and addresses, without a port, by which the server may be
	// called, beside localhost and the loopback addresses. A request with another
	// Host is refused, so that a name which an attacker has rebound to this machine is
	// of no use. "*" allows every host.
	Hosts []string

	// TLSCertificate and TLSKey are files in PEM. With them Serve takes TLS connections,
	// of version 1.2 at least. Files that have changed are read again.
	TLSCertificate string
	TLSKey         string

	// ClientCAs are the authorities whose client certificates count by their common name:
	// see Access.AllowSubject.
	ClientCAs *x509.CertPool

	// Authenticate requires a token or a client certificate for every request: see Access.
	// On an address other than loopback, Serve requires that in any case, and TLS.
	Authenticate bool

	// InvitedOnly requires a browser session from Invite for every request, including
	// those for /healthz and for the files of the studio. Tokens and certificates are not
	// accepted. It is for a server that one user of a machine starts for a browser on it.
	InvitedOnly bool

	// NoEncryption lets Serve listen without TLS on an address that is not a loopback
	// one, as behind a proxy that encrypts.
	//
	// Danger: tokens and documents can be read and changed in transit.
	NoEncryption bool

	// AnyoneMayReadAndWrite lets Serve listen on an address that is not a loopback one
	// without TLS, and answer without authentication.
	//
	// Danger: every program that reaches the address can read and change everything.
	AnyoneMayReadAndWrite bool

	// Studio serves the studio at /studio/: pages with which a browser shows and changes
	// the databases, with the rights of its user. "/" redirects to it. Below a path of a host
	// it is served by Server.Handler.
	Studio bool

	// IdleAfter is how long a database stays open after its last request. The default
	// is 15 minutes.
	IdleAfter time.Duration

	// MaxDatabases bounds the databases of the server. The default is 1,000.
	MaxDatabases int

	// MaxOpenDatabases bounds those that are open at a time, as MaxMemory does. The default is 64. One more closes the database that has been
	// idle longest, or if none is idle, one that is only watched, whose changes sockets and
	// feeds end. If all are in use, the request is refused with 429.
	MaxOpenDatabases int

	// MaxBodyBytes bounds the body of a request, also after it was unpacked. The default
	// is 128 MiB.
	MaxBodyBytes int64

	// MaxReplyBytes bounds the documents of a reply, before it is compressed. The
	// default is 128 MiB. Streams have no such bound: they hold one document at a time.
	MaxReplyBytes int64

	// MaxMemory bounds the memory of the server and its databases, in bytes. A quarter is for requests, but at most 1 GiB: what their bodies are
	// decoded into, what queries sort, documents and replies. A request that would exceed it is refused with 429. 8 MiB are for the server's own
	// database, and the databases share the rest, as jay.NewMemory says: a database that is opened gets half of what is left for caches. If too little
	// is left, the server closes the one that has been idle longest, as with MaxOpenDatabases. Server.Memory has the figures.
	//
	// Database.CacheBytes, DocumentCacheBytes, MemTableBytes and MaxQueryBytes, if they are set, are taken out of it for each database.
	// Mounted databases do not count: each has the memory that it was opened with. On top come the program and the
	// documents that calls read and write at the moment. The least is 64 MiB. The default is half of the memory of the machine, or of the process if
	// its control group (Linux) or GOMEMLIMIT allow it less.
	MaxMemory int64

	// MaxSenderMemoryBytes bounds what the requests of one sender hold of the memory for requests, so
	// that no sender holds all of it. A sender is a token or a certificate, or without
	// authentication an address. A request that alone would exceed it is refused with 413,
	// another one with 429. The default is half of that memory, or four times Database.MaxDocumentBytes if that
	// is more, as a document takes while it is stored, and at most all of it.
	MaxSenderMemoryBytes int64

	// MaxRequests bounds the requests that run at a time. The default is 256. Up to four
	// times as many wait for a place; what comes on top, or has waited for QueueTimeout,
	// is refused with 429. One sender has at most half of the places, and likewise of
	// MaxStreams, MaxSockets and MaxConnections; without authentication this holds for
	// addresses other than loopback ones.
	MaxRequests int

	// MaxStreams bounds the streams that run at a time, beside MaxRequests: one runs as long
	// as its reader takes. Further ones wait and are refused as requests are. The default is
	// 64.
	MaxStreams int

	// MaxSockets bounds the changes sockets and feeds of changes that are open at a time,
	// beside MaxRequests and MaxStreams; MaxConnections bounds them, too. An idle one takes
	// some 30 KiB. The default is 2,048.
	MaxSockets int

	// SilenceTimeout is how long the client of a bulk insert may send nothing. RavenDB's
	// clients send a heartbeat every 40 seconds; it may send nothing else for 15 times as
	// long. The default is 2 minutes.
	SilenceTimeout time.Duration

	// QueueTimeout is how long a request waits for a place. The default is 5 seconds.
	QueueTimeout time.Duration

	// MaxConnections bounds the connections of Serve. One more ends one that is idle, or on
	// which no credentials came; if there is none, its requests are refused with 429, but for
	// /healthz and /readyz. The default is 4,096.
	MaxConnections int

	// MaxHeaderBytes bounds the request line and the headers, in Serve. The default is 64
	// KiB. RavenDB's clients send IDs of up to 1,024 characters in a URL.
	MaxHeaderBytes int

	// HeaderTimeout is how long a client may take to send the headers, and GraceTimeout how
	// long it may take to send a body or to take a reply, plus a second for every
	// MinBytesPerSecond of it. A client that is slower is disconnected. The defaults are 10
	// and 30 seconds, and 16 KiB.
	HeaderTimeout     time.Duration
	GraceTimeout      time.Duration
	MinBytesPerSecond int64

	// ShutdownTimeout is how long Serve lets requests finish after its context has
	// ended. The default is 30 seconds.
	ShutdownTimeout time.Duration

	// SlowAfter is the duration from which a request is logged as slow, at level Warn.
	// The default is 1 second.
	SlowAfter time.Duration

	// MaxRememberedResults bounds the results of commands that are kept by their
	// raft-request-id. The default is 10,000; the oldest go first.
	MaxRememberedResults int

	// Now replaces the clock. The default is time.Now.
	Now func() time.Time
}
