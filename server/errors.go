package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
)

// raven is the prefix of the names of RavenDB's exceptions. Clients choose their own
// exception by the part after the last dot.
const raven = "Raven.Client.Exceptions."

// Names of the exceptions that the server sends.
const (
	typeBadRequest       = raven + "BadRequestException"
	typeConcurrency      = raven + "ConcurrencyException"
	typeCluster          = raven + "ClusterTransactionConcurrencyException"
	typeInvalidKey       = raven + "CompareExchangeInvalidKeyException"
	typeKeyTooBig        = raven + "CompareExchangeKeyTooBigException"
	typeCollection       = raven + "Documents.DocumentCollectionMismatchException"
	typeQuery            = raven + "InvalidQueryException"
	typeRoute            = raven + "Routing.RouteNotFoundException"
	typeNotSupported     = raven + "NotSupportedException"
	typeDatabaseMissing  = raven + "Database.DatabaseDoesNotExistException"
	typeDatabaseLoad     = raven + "Database.DatabaseLoadFailureException"
	typeAuthorization    = raven + "Security.AuthorizationException"
	typeOverload         = raven + "TooManyRequestsException"
	typeTooLarge         = raven + "RequestTooLargeException"
	typeContent          = raven + "UnsupportedContentTypeException"
	typeShutdown         = raven + "ServerShuttingDownException"
	typeUnknownOutcome   = raven + "UnknownOutcomeException"
	typeInternal         = raven + "InternalServerErrorException"
	typeNoLeader         = raven + "Cluster.NoLeaderException"
	typeRequestCancelled = raven + "OperationCancelledException"
)

// problem is an error in the form in which a client gets it.
type problem struct {
	status  int
	kind    string         // the exception's name
	message string         // for the client
	fields  map[string]any // members of the reply, beside those of every error
	headers map[string]string
	cause   error // for the log, if the client must not see it; or nil
}

func (p *problem) Error() string {
	if p.cause != nil {
		return p.message + ": " + p.cause.Error()
	}
	return p.message
}

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.cause }

func badRequest(format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, kind: typeBadRequest, message: fmt.Sprintf(format, args...)}
}

// notSupported is the error for a feature of RavenDB that this server does not have. Its
// status must not make clients take the node to be down.
func notSupported(format string, args ...any) *problem {
	return &problem{status: http.StatusNotImplemented, kind: typeNotSupported, message: fmt.Sprintf(format, args...)}
}

func tooLarge(format string, args ...any) *problem {
	return &problem{status: http.StatusRequestEntityTooLarge, kind: typeTooLarge, message: fmt.Sprintf(format, args...)}
}

// overload is the error for a request that may succeed a little later. Its status is 429,
// as RavenDB's clients take a node that replies 503 to be down.
func overload(format string, args ...any) *problem {
	return &problem{status: http.StatusTooManyRequests, kind: typeOverload, message: fmt.Sprintf(format, args...), headers: map[string]string{"Retry-After": "1"}}
}

// missingDatabase is the error for a missing database, whose name is valid. The status is
// 503 and a header has the reason, as clients take 404 for a missing document.
func missingDatabase(name string) *problem {
	return &problem{status: http.StatusServiceUnavailable, kind: typeDatabaseMissing, message: fmt.Sprintf("Database '%s' does not exist", name), headers: map[string]string{"Database-Missing": name}}
}

var errShutdown = &problem{status: http.StatusServiceUnavailable, kind: typeShutdown, message: "the server is shutting down"}

// problemOf converts an error to what the client gets. Details about files, disks and
// other databases stay in the log.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	if p := scriptProblem(err); p != nil {
		return p
	}
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	say := func(status int, kind string) *problem {
		return &problem{status: status, kind: kind, message: oneLine(strings.TrimPrefix(err.Error(), "jay: "))}
	}
	hide := func(status int, kind, message string) *problem {
		return &problem{status: status, kind: kind, message: message, cause: err}
	}
	var document *jay.DocumentError
	var tag *cluster.TagError
	switch {
	case is(jay.ErrUnknownOutcome):
		return hide(http.StatusInternalServerError, typeUnknownOutcome, "it is not known whether the write has happened: read what is there before repeating it")
	case is(cluster.ErrNoMajority):
		p := hide(http.StatusInternalServerError, typeNoLeader, "no majority of the cluster's coordinator answers: identities, compare exchange and cluster-wide transactions wait for it, and everything else goes on")
		p.headers = map[string]string{"Retry-After": "1"}
		return p
	case errors.As(err, &tag): // its text, without the path of the database
		return &problem{status: http.StatusInternalServerError, kind: typeInternal, message: tag.Error(), cause: err}
	case is(cluster.ErrRefused, cluster.ErrRestored, cluster.ErrOtherCluster):
		return hide(http.StatusInternalServerError, typeInternal, "the cluster's coordinator refuses; the server's log says why")
	case is(jay.ErrFailed):
		return hide(http.StatusInternalServerError, typeInternal, "the database takes no writes since its disk has failed")
	case is(jay.ErrDiskFull):
		return hide(http.StatusInsufficientStorage, typeInternal, "the disk of the database is almost full: deletions go on, and other writes when there is room again")
	case is(context.Canceled, context.DeadlineExceeded):
		return hide(http.StatusInternalServerError, typeRequestCancelled, "the request was cancelled")
	case is(jay.ErrClosed, jay.ErrClientClosed):
		return errShutdown
	case is(jay.ErrConflict, jay.ErrExists):
		return conflictOf(err, say(http.StatusConflict, typeConcurrency))
	case is(jay.ErrUnique):
		return say(http.StatusConflict, typeConcurrency)
	case is(jay.ErrCollection):
		return say(http.StatusBadRequest, typeCollection)
	case is(jay.ErrTooLarge), errors.As(err, &document) && document.Limit > 0 && strings.HasSuffix(document.Rule, " bytes") && strings.HasPrefix(document.Rule, "at most "):
		return say(http.StatusRequestEntityTooLarge, typeTooLarge)
	case is(jay.ErrSyntax, jay.ErrQuery, jay.ErrNoIndex):
		return say(http.StatusBadRequest, typeQuery)
	case is(jay.ErrNoAttachment):
		return say(http.StatusBadRequest, typeNoAttachment)
	case is(jay.ErrInvalidID, jay.ErrInvalidDocument, jay.ErrInvalidAttachment, jay.ErrInvalidPatch, jay.ErrLeadTooLarge, jay.ErrUsage, jay.ErrIndex, jay.ErrIndexExists):
		return say(http.StatusBadRequest, typeBadRequest)
	case is(jay.ErrNeedsFloor, jay.ErrNeedsCapacity, jay.ErrExhausted):
		return say(http.StatusInternalServerError, typeInternal)
	case is(jay.ErrLocked, jay.ErrNotDatabase, jay.ErrNoDatabase, jay.ErrNewerFormat, jay.ErrNotWritable, jay.ErrFixed, jay.ErrOption):
		return hide(http.StatusInternalServerError, typeDatabaseLoad, "the database could not be opened; the server's log says why")
	case is(jay.ErrCorrupt, jay.ErrUnreadable):
		return hide(http.StatusInternalServerError, typeInternal, "stored data could not be read; the server's log says why")
	}
	return hide(http.StatusInternalServerError, typeInternal, "the server has failed at this request; its log says why")
}

// conflictOf adds RavenDB's details of a conflict.
func conflictOf(err error, p *problem) *problem {
	var conflict *jay.ConflictError
	if errors.As(err, &conflict) {
		p.fields = map[string]any{"Id": conflict.ID, "ExpectedChangeVector": conflict.Expected, "ActualChangeVector": conflict.Actual}
	}
	return p
}

// body returns the body of the reply to a request with this URL.
func (p *problem) body(url string) []byte {
	reply := map[string]any{"Url": url, "Type": p.kind, "Message": p.message, "Error": p.kind + ": " + p.message}
	for name, value := range p.fields {
		reply[name] = value
	}
	return mustJSON(reply)
}

// mustJSON returns v as JSON. v must consist of types that can be encoded. JSON in it
// keeps its spelling.
func mustJSON(v any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("server: %T as JSON: %v", v, err))
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// oneLine replaces line breaks.
func oneLine(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
}
