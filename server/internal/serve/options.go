package serve

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/standby"
)

// Options are those of package server, which says what each means. They are converted, so
// the fields must be the same.
type Options struct {
	Data                  string
	Directories           map[string]string
	Mounted               map[string]*jay.DB
	Stores                map[string]string
	Follow                map[string]standby.Source
	MaxLag                time.Duration
	Database              jay.Options
	Cluster               func(key string) (cluster.Coordinator, error)
	ClusterTimeout        time.Duration
	QueryTimeout          time.Duration
	Address               string
	Logger                *slog.Logger
	Hosts                 []string
	TLSCertificate        string
	TLSKey                string
	ClientCAs             *x509.CertPool
	Authenticate          bool
	InvitedOnly           bool
	NoEncryption          bool
	AnyoneMayReadAndWrite bool
	Studio                bool
	IdleAfter             time.Duration
	MaxDatabases          int
	MaxOpenDatabases      int
	MaxBodyBytes          int64
	MaxReplyBytes         int64
	MaxMemory             int64
	MaxSenderMemoryBytes  int64
	MaxRequests           int
	MaxStreams            int
	MaxSockets            int
	SilenceTimeout        time.Duration
	QueueTimeout          time.Duration
	MaxConnections        int
	MaxHeaderBytes        int
	HeaderTimeout         time.Duration
	GraceTimeout          time.Duration
	MinBytesPerSecond     int64
	ShutdownTimeout       time.Duration
	SlowAfter             time.Duration
	MaxRememberedResults  int
	Now                   func() time.Time
}

// withDefaults returns the options with their defaults, or an error that names the invalid
// field.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Data == "" && len(o.Mounted) == 0:
		return o, fmt.Errorf("server: %w: Options.Data names no directory", jay.ErrOption)
	case o.Data == "" && (o.Authenticate || o.InvitedOnly || len(o.Directories) > 0 || len(o.Follow) > 0 || o.Cluster != nil):
		return o, fmt.Errorf("server: %w: Authenticate, InvitedOnly, Directories, Follow and Cluster need Options.Data, a directory for what the server records", jay.ErrOption)
	case len(o.Follow) > 0 && o.Cluster != nil:
		return o, fmt.Errorf("server: %w: a member of a cluster cannot be a standby: Options.Follow goes without Cluster", jay.ErrOption)
	}
	if err := o.checkStores(); err != nil {
		return o, err
	}
	o.MaxLag = cmp.Or(o.MaxLag, 10*time.Second)
	o.IdleAfter = cmp.Or(o.IdleAfter, 15*time.Minute)
	o.MaxDatabases = cmp.Or(o.MaxDatabases, 1000)
	o.MaxOpenDatabases = cmp.Or(o.MaxOpenDatabases, 64)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 128<<20)
	o.MaxReplyBytes = cmp.Or(o.MaxReplyBytes, 128<<20)
	if o.MaxMemory == 0 {
		o.MaxMemory = defaultMemory()
	}
	o.MaxSenderMemoryBytes = cmp.Or(o.MaxSenderMemoryBytes, senderMemory(o.MaxMemory, int64(o.Database.MaxDocumentBytes)))
	o.MaxRequests = cmp.Or(o.MaxRequests, 256)
	o.MaxStreams = cmp.Or(o.MaxStreams, 64)
	o.MaxSockets = cmp.Or(o.MaxSockets, 2048)
	o.SilenceTimeout = cmp.Or(o.SilenceTimeout, 2*time.Minute)
	o.QueueTimeout = cmp.Or(o.QueueTimeout, 5*time.Second)
	o.MaxConnections = cmp.Or(o.MaxConnections, 4096)
	o.MaxHeaderBytes = cmp.Or(o.MaxHeaderBytes, 64<<10)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, 10*time.Second)
	o.GraceTimeout = cmp.Or(o.GraceTimeout, 30*time.Second)
	o.MinBytesPerSecond = cmp.Or(o.MinBytesPerSecond, 16<<10)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, 30*time.Second)
	o.SlowAfter = cmp.Or(o.SlowAfter, time.Second)
	o.QueryTimeout = cmp.Or(o.QueryTimeout, 5*time.Minute)
	o.ClusterTimeout = cmp.Or(o.ClusterTimeout, 10*time.Second)
	o.MaxRememberedResults = cmp.Or(o.MaxRememberedResults, 10_000)
	for name, value := range map[string]int64{
		"MaxLag": int64(o.MaxLag), "IdleAfter": int64(o.IdleAfter), "MaxDatabases": int64(o.MaxDatabases), "MaxOpenDatabases": int64(o.MaxOpenDatabases),
		"MaxBodyBytes": o.MaxBodyBytes, "MaxReplyBytes": o.MaxReplyBytes, "MaxMemory": o.MaxMemory, "MaxSenderMemoryBytes": o.MaxSenderMemoryBytes, "MaxRequests": int64(o.MaxRequests), "MaxStreams": int64(o.MaxStreams),
		"MaxSockets": int64(o.MaxSockets), "SilenceTimeout": int64(o.SilenceTimeout),
		"QueueTimeout": int64(o.QueueTimeout), "MaxConnections": int64(o.MaxConnections), "MaxHeaderBytes": int64(o.MaxHeaderBytes),
		"HeaderTimeout": int64(o.HeaderTimeout), "GraceTimeout": int64(o.GraceTimeout), "MinBytesPerSecond": o.MinBytesPerSecond,
		"QueryTimeout": int64(o.QueryTimeout), "ClusterTimeout": int64(o.ClusterTimeout), "ShutdownTimeout": int64(o.ShutdownTimeout), "SlowAfter": int64(o.SlowAfter), "MaxRememberedResults": int64(o.MaxRememberedResults),
	} {
		if value < 0 {
			return o, fmt.Errorf("server: %w: Options.%s must not be negative, got %d", jay.ErrOption, name, value)
		}
	}
	if err := o.checkMemory(); err != nil {
		return o, err
	}
	if err := o.checkTLS(); err != nil {
		return o, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Database.PrefixCollections = jay.PrefixCollectionsIgnored
	return o, nil
}

// checkMemory checks the options about memory, after their defaults.
func (o *Options) checkMemory() error {
	if err := checkBound(o.MaxMemory); err != nil {
		return err
	}
	if o.Database.MaxMemory != 0 || o.Database.Memory != nil {
		return fmt.Errorf("server: %w: Options.Database goes without MaxMemory (%d) and Memory: the databases share Options.MaxMemory", jay.ErrOption, o.Database.MaxMemory)
	}
	return nil
}

// fixed reports whether the server has the databases that it was opened with, and creates and deletes none.
func (o *Options) fixed() bool {
	return len(o.Directories) > 0 || len(o.Mounted) > 0 || len(o.Stores) > 0
}

// date returns the time by Now, for a record that spells it as RFC 3339 does.
func (o *Options) date() (time.Time, error) {
	now := o.Now().UTC()
	if y := now.Year(); y < 0 || y > 9999 {
		return now, fmt.Errorf("server: %w: the clock (Options.Now) is in the year %d, and must be in 0 to 9999", jay.ErrOption, y)
	}
	return now, nil
}

// checkTLS checks the files of the options.
func (o *Options) checkTLS() error {
	if (o.TLSCertificate == "") != (o.TLSKey == "") {
		return fmt.Errorf("server: %w: Options.TLSCertificate and TLSKey belong together", jay.ErrOption)
	}
	if o.TLSCertificate == "" && o.ClientCAs != nil {
		return fmt.Errorf("server: %w: Options.ClientCAs needs TLSCertificate and TLSKey", jay.ErrOption)
	}
	return nil
}
