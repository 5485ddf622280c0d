package etcd

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jaydb/jay/cluster"
)

// Errors that an *Error may match with errors.Is, in addition to the errors of package cluster.
var (
	// ErrUnreachable is returned when no endpoint answers: a wrong address, an etcd
	// that is down, a firewall. It is a cluster.ErrNoMajority: the call succeeds when etcd can be
	// reached again.
	ErrUnreachable = errors.New("etcd cannot be reached")

	// ErrCertificate is returned when TLS fails with every endpoint: a certificate that has
	// expired or that names another host, an authority that is not trusted, a
	// certificate of this node that etcd refuses, or TLS on one side only. It is a
	// cluster.ErrRefused.
	ErrCertificate = errors.New("etcd: TLS fails")

	// ErrAuth is returned when etcd refuses the user, the password, or the keys of the
	// prefix. It is a cluster.ErrRefused.
	ErrAuth = errors.New("etcd: access denied")

	// ErrTooOld is returned for an etcd older than MinVersion. It is a cluster.ErrRefused.
	ErrTooOld = errors.New("etcd is too old")

	// ErrQuota is returned when the database of etcd has reached its quota: etcd
	// refuses every write until there is room, and the alarm is disarmed. Reads go on. It is
	// a cluster.ErrRefused.
	ErrQuota = errors.New("the quota of etcd is exhausted")

	// ErrCorrupt is returned when etcd has found that its members have different data. It is a
	// cluster.ErrRefused.
	ErrCorrupt = errors.New("etcd is corrupt")

	// ErrTwoClusters is returned when the endpoints belong to different etcd clusters. It
	// is a cluster.ErrOtherCluster.
	ErrTwoClusters = errors.New("endpoints of different etcd clusters")

	// ErrRestored is returned when etcd was restored from a backup, or has lost writes
	// that it had acknowledged, so that numbers would repeat. It is the error of package
	// cluster, and here also a cluster.ErrRefused. Accept accepts the restored state.
	ErrRestored = cluster.ErrRestored

	// ErrNewer is returned when a newer version of this package has written the keys. It is
	// a cluster.ErrRefused.
	ErrNewer = errors.New("keys of a newer format")
)

// MinVersion is the oldest etcd that a Coordinator works with.
const MinVersion = "3.4.0"

// Error is a failure between this process and etcd. errors.Is matches its Kinds, which are
// errors of this package and of package cluster, and its cause.
type Error struct {
	Op        string   // what was attempted, such as "reserve identities"
	Endpoints []string // the endpoints of the request
	Problem   string   // what is wrong
	Do        string   // what to do about it
	Kinds     []error  // such as ErrAuth
	Err       error    // the cause, as etcd or the network has it; may be nil
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "etcd: %s at %s: %s", e.Op, strings.Join(e.Endpoints, ", "), e.Problem)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Do != "" {
		fmt.Fprintf(&b, " (%s)", e.Do)
	}
	return b.String()
}

// Unwrap returns the kinds and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return e.Kinds
	}
	return append(e.Kinds[:len(e.Kinds):len(e.Kinds)], e.Err)
}

// withoutEffect returns err, an *Error, as that of a request that has certainly changed nothing.
func withoutEffect(err error) error {
	complete, is := errors.AsType[*Error](err)
	if !is {
		return err
	}
	certain := *complete
	certain.Kinds = slices.DeleteFunc(slices.Clone(certain.Kinds), func(kind error) bool { return kind == cluster.ErrUnknownOutcome })
	return &certain
}

// verdict is what the error of an attempt means for the whole call.
type verdict struct {
	final    bool    // another attempt would fail in the same way
	noEffect bool    // the request has certainly changed nothing
	kinds    []error // of a final error, like the next two fields
	problem  string
	do       string
}

// refused is the verdict on an error that is final and has changed nothing.
func refused(kind error, problem, do string) verdict {
	return verdict{final: true, noEffect: true, kinds: []error{cluster.ErrRefused, kind}, problem: problem, do: do}
}

// judge classifies the error of an attempt. An unknown error gets the zero verdict: the
// request may have been carried out, and the call may go on.
func judge(err error) verdict {
	tooLarge := verdict{final: true, noEffect: true, kinds: []error{cluster.ErrTooLarge}, problem: "the request has too many bytes", do: "write less at once, or raise --max-request-bytes of every member of etcd"}
	switch known := rpctypes.Error(err); {
	case errors.Is(known, rpctypes.ErrNoSpace):
		what := refused(ErrQuota, "the database of etcd has reached its quota",
			"compact and defragment etcd, or raise its --quota-backend-bytes; then etcdctl alarm disarm")
		what.noEffect = false // etcd answers so, too, when it has carried the request out: see Coordinator.decide
		return what
	case errors.Is(known, rpctypes.ErrAuthFailed):
		return refused(ErrAuth, "etcd refuses the user or the password", "check Username and Password")
	case errors.Is(known, rpctypes.ErrUserEmpty):
		return refused(ErrAuth, "etcd demands a user", "set Username and Password")
	case errors.Is(known, rpctypes.ErrPermissionDenied):
		return refused(ErrAuth, "the user may not read and write the keys of the prefix", "etcdctl role grant-permission ROLE --prefix=true readwrite PREFIX")
	case errors.Is(known, rpctypes.ErrTooManyOps):
		return verdict{final: true, noEffect: true, kinds: tooLarge.kinds, problem: "the transaction has too many operations", do: "write less at once, or raise --max-txn-ops of every member of etcd"}
	case errors.Is(known, rpctypes.ErrRequestTooLarge):
		return tooLarge
	case errors.Is(known, rpctypes.ErrCompacted):
		return verdict{final: true, noEffect: true, kinds: []error{rpctypes.ErrCompacted}, problem: "etcd was compacted meanwhile"}
	case errors.Is(known, rpctypes.ErrCorrupt):
		what := refused(ErrCorrupt, "members of etcd have different data", "replace the member that is damaged, as etcd's documentation of its CORRUPT alarm says")
		what.noEffect = false
		return what
	case errors.Is(known, rpctypes.ErrNoLeader), errors.Is(known, rpctypes.ErrTooManyRequests),
		errors.Is(known, rpctypes.ErrInvalidAuthToken), errors.Is(known, rpctypes.ErrAuthOldRevision):
		return verdict{noEffect: true}
	}

	if status.Code(err) == codes.ResourceExhausted && strings.Contains(rpctypes.ErrorDesc(err), "message larger than max") {
		return tooLarge
	}
	return verdict{}
}

// tlsProblem returns what is wrong with TLS and the remedy, or "" if err is not about TLS.
func tlsProblem(err error) (problem, do string) {
	var (
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
	)
	text := err.Error()
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of etcd is valid from %s to %s", invalid.Cert.NotBefore.Format("2006-01-02 15:04:05Z"), invalid.Cert.NotAfter.Format("2006-01-02 15:04:05Z")), "renew it, and check the clock of this machine"
	case errors.As(err, &unknown):
		return "the certificate of etcd is signed by an authority that is not trusted", "name the authority's certificate in Config.TLS (LoadTLS), and check that the address is that of your etcd"
	case errors.As(err, &host):
		return "the certificate of etcd names other hosts", "use an address that it names, or issue it for this one"
	case strings.Contains(text, "first record does not look like a TLS handshake"), errors.Is(err, errNotTLS):
		return "etcd speaks plain text there, and the endpoint says https", "use http, or configure etcd with TLS"
	case errors.Is(err, errOnlyTLS):
		return "etcd demands TLS there, and the endpoint says http", "use https, and Config.TLS for the authority"
	case strings.Contains(text, "certificate required"):
		return "etcd demands a certificate of this node, and was shown none", "set Config.TLS with a certificate (LoadTLS) that is signed by the authority that etcd trusts: one of another authority is not shown"
	case strings.Contains(text, "remote error: tls:"):
		return "etcd refuses the certificate of this node", "check that it is valid now, and signed by the authority that etcd trusts"
	case strings.Contains(text, "tls:"), strings.Contains(text, "x509:"):
		return "TLS fails", "check the certificates of both sides"
	}
	return "", ""
}

// isContext reports whether err is the end of a context.
func isContext(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		status.Code(err) == codes.DeadlineExceeded || status.Code(err) == codes.Canceled
}
