package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
	"github.com/jaydb/jay/standby"
)

// serveCommand runs the HTTP server.
type serveCommand struct {
	memberFlags
	serveBackups
	followFlags
	storeFlags
	Data        string        `placeholder:"DIR" default:"./jay-data" help:"Directory of the databases, or with --store of what this server has for itself. The default is ./jay-data."`
	Listen      string        `placeholder:"ADDRESS" default:"127.0.0.1:8080" help:"Address and port; port 0 is any free one. The default is 127.0.0.1:8080."`
	Hosts       []string      `name:"host" placeholder:"NAME" help:"Also answer to this name in the Host of a request; * is any. Can be given several times."`
	Shutdown    time.Duration `name:"shutdown-timeout" placeholder:"D" default:"30s" help:"How long requests may take to finish after SIGINT or SIGTERM. The default is 30s."`
	IdleAfter   time.Duration `placeholder:"D" default:"15m" help:"Close a database after so long without a request. The default is 15m."`
	MaxRequests int           `placeholder:"N" default:"256" help:"Requests that run at a time. The default is 256."`
	MaxOpen     int           `name:"max-open-databases" placeholder:"N" default:"64" help:"Databases that are open at a time; one more closes the one that was idle longest. The default is 64."`
	MinFree     int64         `name:"min-free-bytes" placeholder:"N" help:"Refuse writes, but for deletions, while less is free on the disk of the data; -1 is no bound. The default is 256 MiB, or a tenth of a disk that is smaller than 2.5 GiB, for each database by its own disk."`
	MaxBody     int64         `name:"max-body-bytes" placeholder:"N" default:"134217728" help:"Bytes of a request's body. The default is 128 MiB."`
	OldMemory   string        `name:"max-memory-bytes" hidden:"" help:"Refused: use --max-memory."`
	QueryTime   time.Duration `name:"query-timeout" placeholder:"D" default:"5m" help:"How long a query, or another read of many documents, may run. The default is 5m."`
	LogLevel    slog.Level    `placeholder:"LEVEL" default:"info" help:"debug, info, warn or error. The default is info, which has each request."`
	SlowAfter   time.Duration `placeholder:"D" default:"1s" help:"Log a request that takes so long as slow. The default is 1s."`
	TLSCert     string        `name:"tls-cert" placeholder:"FILE" help:"Certificate of the server, in PEM. It is read again when it has changed."`
	TLSKey      string        `name:"tls-key" placeholder:"FILE" help:"Its private key, in PEM."`
	ClientCA    string        `name:"tls-client-ca" placeholder:"FILE" help:"Authorities whose client certificates count by their common name, in PEM."`
	Pprof       string        `name:"pprof" placeholder:"ADDRESS" help:"Serve Go's profiles on this loopback address, such as 127.0.0.1:6060."`
	Auth        bool          `name:"authenticate" help:"Ask for a token or a client certificate on a loopback address, too."`
	Plain       bool          `name:"insecure-no-encryption" help:"Listen without TLS on an address that others can reach, as behind a proxy that encrypts."`
	Anyone      bool          `name:"insecure-anyone-may-read-and-write" help:"Listen on an address that others can reach without TLS, and ask for no credentials."`
}

// Help is shown by jay serve --help.
func (*serveCommand) Help() string {
	return `Answers RavenDB's HTTP protocol, for RavenDB's own clients and for curl, over the databases of one directory. A request creates a database. The log goes to stderr, as text, or as JSON with --json; the address goes to stdout.

A browser sees the databases at /studio/ of that address.

On an address that is not a loopback one it needs TLS and credentials: see jay serve token.

With --cluster the databases of the same name on several servers agree on identities and compare-exchange values: docs/agreement.md. Each server has its own --node-tag. --cluster-member runs etcd, through which they agree, in the same process.

With --backup-dir each database has a directory of backups there, under its name in lower case: a full one a day, and what has changed since each hour. The log says of each that it was made, and at level ERROR that the last is too old.

With --follow a database is a standby of another one, which is read here and written there; the flags and variables for credentials of --url are those for its source. /readyz says 503 while a standby is behind more than --max-lag, or has no copy yet. To promote one, end the server, call jay promote with its directory, which is the one of its name in lower case in databases below --data, and start the server without that --follow: docs/standbys.md.

With --store the server has the databases of stores on PostgreSQL. Any number of servers can have one at once, and a client can ask any of them: docs/beyond-one-machine.md. Each server has a --data directory of its own, for tokens.

SIGINT and SIGTERM end it: it accepts no more requests, lets those under way finish, and closes the databases. docs/server/endpoints.md lists the endpoints.

Examples:

    jay serve --data ./data
    curl -X PUT 'http://127.0.0.1:8080/admin/databases?name=acorns' -d '{}'
    curl -X PUT 'http://127.0.0.1:8080/databases/acorns/docs?id=users/ann' -d '{"Name":"Ann"}'
    curl 'http://127.0.0.1:8080/databases/acorns/docs?id=users/ann'`
}

// Run serves until ctx ends.
func (c *serveCommand) Run(ctx context.Context, a *app) (err error) {
	if a.dirGiven {
		return usageError{text: "serve takes --data, a directory of databases, or --store, and not --db", command: a.command}
	}
	a.dir = c.Data          // for messages
	if a.options.ReadOnly { // requests create and delete databases, and the server has records of its own
		return usageError{text: "serve writes to its directory, and goes without --read-only: a token can have the right to read only, and jay studio takes --read-only", command: a.command}
	}
	if err := directories(a.command, c.Data, c.BackupDir); err != nil {
		return err
	}
	if c.SlowAfter <= 0 || c.Shutdown <= 0 || c.IdleAfter <= 0 || c.MaxRequests <= 0 || c.MaxOpen <= 0 || c.MaxBody <= 0 || c.QueryTime <= 0 {
		return usageError{text: "durations and numbers of serve must be above 0", command: a.command}
	}
	if c.OldMemory != "" {
		return usageError{text: "--max-memory-bytes is no more: --max-memory is the bound of the databases and the requests together, and requests have a quarter of it", command: a.command}
	}
	if err := c.checkBackups(a.command); err != nil {
		return err
	}
	var handler slog.Handler = slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: c.LogLevel})
	if a.json {
		handler = slog.NewJSONHandler(a.stderr, &slog.HandlerOptions{Level: c.LogLevel})
	}
	var authorities *x509.CertPool
	if c.ClientCA != "" {
		all, err := server.ReadCertificates(c.ClientCA)
		if err != nil {
			return err
		}
		authorities = x509.NewCertPool()
		for _, one := range all {
			authorities.AddCert(one)
		}
	}
	sources, err := c.sources(a.command, len(a.cluster.Endpoints) > 0, func(from string) (standby.Source, error) { return sourceName(from).source(a) })
	if err != nil {
		return err
	}
	if err := c.checkStores(a); err != nil {
		return err
	}
	options := a.options
	options.EncryptionKeys = keysIn(options.EncryptionKeys, systemDirectory(c.Data))
	stores, err := c.addresses(a.command, &options)
	if err != nil {
		return err
	}
	nodes, err := a.serverCluster()
	if err != nil {
		return err
	}
	limitAllocator()
	logger := slog.New(handler)
	stopMember, err := c.start(c.Data, a, logger)
	if err != nil {
		return err
	}
	defer func() { err = andThen(err, stopMember()) }()
	options.MinFreeBytes = c.MinFree
	options.Cluster, options.ClusterAddress = nil, "" // each database gets a coordinator of its own
	options.MaxMemory = 0                             // it is for all databases together
	s, err := server.Open(server.Options{
		MaxMemory: a.options.MaxMemory, QueryTimeout: c.QueryTime,
		Cluster: nodes, ClusterTimeout: a.cluster.Timeout, Address: a.cluster.Address,
		Follow: sources, MaxLag: c.MaxLag, Stores: stores,
		Data: c.Data, Studio: true, Database: options, Logger: logger, Hosts: c.Hosts, AnyoneMayReadAndWrite: c.Anyone,
		ShutdownTimeout: c.Shutdown, IdleAfter: c.IdleAfter, MaxRequests: c.MaxRequests, MaxOpenDatabases: c.MaxOpen, MaxBodyBytes: c.MaxBody, SlowAfter: c.SlowAfter,
		TLSCertificate: c.TLSCert, TLSKey: c.TLSKey, ClientCAs: authorities, Authenticate: c.Auth, NoEncryption: c.Plain,
	})
	if errors.Is(err, jay.ErrStandby) {
		return explained{text: inServe.Replace(err.Error()) + ": if it was promoted, start the server without following that name", err: err}
	}
	if errors.Is(err, jay.ErrLocked) {
		return explained{text: fmt.Sprintf("data directory %q is open in another process: wait until that ends, or name another one with --data", c.Data), err: err}
	}
	if err != nil {
		return err
	}
	memory := s.Memory()
	limitHeap(memory.BoundBytes, memory.HeapBytes, int64(cmp.Or(options.MaxDocumentBytes, defaultMaxDocumentBytes)))
	if c.Pprof != "" {
		mux := http.NewServeMux()
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
		if err := servePprof(ctx, c.Pprof, mux); err != nil {
			return andThen(err, s.Close())
		}
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return andThen(err, s.Close())
	}
	scheme := "http://"
	if c.TLSCert != "" {
		scheme = "https://"
	}
	err = s.CheckAddress(l.Addr()) // Serve says the same, but a program that waits for the address would have it by then
	if err == nil {
		err = a.printAddress(scheme + l.Addr().String())
	}
	if err != nil {
		err = andThen(errors.Join(err, l.Close()), s.Close())
		if errors.Is(err, jay.ErrOption) {
			return explained{text: inServe.Replace(err.Error()), err: err}
		}
		return err
	}
	defer c.startBackups(ctx, s, logger)()
	if err := s.Serve(ctx, l); errors.Is(err, jay.ErrOption) {
		return explained{text: inServe.Replace(err.Error()), err: err}
	} else if err != nil {
		return err
	}
	return nil
}

// defaultIdleAfter is the default of --idle-after.
const defaultIdleAfter = 15 * time.Minute

// printAddress prints the URL of the server without buffering, for a program that waits
// for it.
func (a *app) printAddress(url string) error {
	var err error
	if a.json {
		err = a.printLine(map[string]string{"url": url})
	} else {
		err = a.print("Serving " + url + "\n")
	}
	return andThen(err, a.stdout.Flush())
}

// inServe adds to names of package server the flags that set them.
var inServe = strings.NewReplacer("TLSCertificate and TLSKey", "--tls-cert and --tls-key", "NoEncryption", "--insecure-no-encryption",
	"Options.Follow", "--follow", "AnyoneMayReadAndWrite", "--insecure-anyone-may-read-and-write", "Access.CreateToken", "jay serve token create")
