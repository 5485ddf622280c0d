package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/script"
	"github.com/jaydb/jay/schema"
)

// ExceptionPrefix is the prefix of the names of RavenDB's exceptions. Clients choose their own
// exception by the part after the last dot.
const ExceptionPrefix = "Raven.Client.Exceptions."

// Names of the exceptions that the server sends.
const (
	TypeBadRequest       = ExceptionPrefix + "BadRequestException"
	TypeConcurrency      = ExceptionPrefix + "ConcurrencyException"
	TypeCluster          = ExceptionPrefix + "ClusterTransactionConcurrencyException"
	TypeInvalidKey       = ExceptionPrefix + "CompareExchangeInvalidKeyException"
	TypeKeyTooBig        = ExceptionPrefix + "CompareExchangeKeyTooBigException"
	typeCollection       = ExceptionPrefix + "Documents.DocumentCollectionMismatchException"
	typeQuery            = ExceptionPrefix + "InvalidQueryException"
	typeRoute            = ExceptionPrefix + "Routing.RouteNotFoundException"
	TypeNotSupported     = ExceptionPrefix + "NotSupportedException"
	TypeDatabaseMissing  = ExceptionPrefix + "Database.DatabaseDoesNotExistException"
	typeDatabaseLoad     = ExceptionPrefix + "Database.DatabaseLoadFailureException"
	TypeAuthorization    = ExceptionPrefix + "Security.AuthorizationException"
	typeOverload         = ExceptionPrefix + "TooManyRequestsException"
	typeTooLarge         = ExceptionPrefix + "RequestTooLargeException"
	TypeContent          = ExceptionPrefix + "UnsupportedContentTypeException"
	typeShutdown         = ExceptionPrefix + "ServerShuttingDownException"
	typeUnknownOutcome   = ExceptionPrefix + "UnknownOutcomeException"
	TypeInternal         = ExceptionPrefix + "InternalServerErrorException"
	typeTimeout          = ExceptionPrefix + "RavenTimeoutException"
	typeNoLeader         = ExceptionPrefix + "Cluster.NoLeaderException"
	TypeRequestCancelled = ExceptionPrefix + "OperationCancelledException"
)

// Problem is an error in the form in which a client gets it.
type Problem struct {
	Status  int
	Kind    string         // the exception's name
	Message string         // for the client
	Fields  map[string]any // members of the reply, beside those of every error
	Headers map[string]string
	Cause   error // for the log, if the client must not see it; or nil
}

// Error implements error. Its text is for the log: it has the cause.
func (p *Problem) Error() string {
	if p.Cause != nil {
		return p.Message + ": " + p.Cause.Error()
	}
	return p.Message
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Cause }

// Level returns the level at which the log has the cause. It is Warn for what any client can bring about, such as a
// damaged body, so that no client fills the log with errors of the server.
func (p *Problem) Level() slog.Level {
	if p.Status < http.StatusInternalServerError {
		return slog.LevelWarn
	}
	return slog.LevelError
}

// BadRequest is the error for a request that breaks a rule, which the text names.
func BadRequest(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusBadRequest, Kind: TypeBadRequest, Message: fmt.Sprintf(format, args...)}
}

// NotSupported is the error for a feature of RavenDB that this server does not have. Its
// status must not make clients take the node to be down.
func NotSupported(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusNotImplemented, Kind: TypeNotSupported, Message: fmt.Sprintf(format, args...)}
}

// TooLarge is the error for what exceeds a bound, which the text names.
func TooLarge(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusRequestEntityTooLarge, Kind: typeTooLarge, Message: fmt.Sprintf(format, args...)}
}

// overload is the error for a request that may succeed a little later. Its status is 429,
// as RavenDB's clients take a node that replies 503 to be down.
func overload(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusTooManyRequests, Kind: typeOverload, Message: fmt.Sprintf(format, args...), Headers: map[string]string{"Retry-After": "1"}}
}

// missingDatabase is the error for a missing database, whose name is valid. The status is
// 503 and a header has the reason, as clients take 404 for a missing document.
func missingDatabase(name string) *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Kind: TypeDatabaseMissing, Message: fmt.Sprintf("Database '%s' does not exist", name), Headers: map[string]string{"Database-Missing": name}}
}

// ErrShutdown is the error for a request to a server that is closing.
var ErrShutdown = &Problem{Status: http.StatusServiceUnavailable, Kind: typeShutdown, Message: "the server is shutting down"}

// What clients are told about the disk of a database.
const (
	MessageFailed     = "the database takes no writes since its disk has failed"
	MessageFailedFull = "the database takes no writes since its disk was full: the server opens it again when there is room"
	MessageDiskFull   = "the disk of the database is almost full: deletions go on, and other writes when there is room again"
)

// MessageStandby is what a client is told that writes to a standby.
const MessageStandby = "the database is a standby, which follows another one: write to that, or promote this one by jay promote when the server is stopped"

// ProblemOf converts an error to what the client gets. Details about files, disks and
// other databases stay in the log.
func ProblemOf(err error) *Problem {
	var p *Problem
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
	say := func(status int, kind string) *Problem {
		return &Problem{Status: status, Kind: kind, Message: OneLine(strings.TrimPrefix(err.Error(), "jay: "))}
	}
	hide := func(status int, kind, message string) *Problem {
		return &Problem{Status: status, Kind: kind, Message: message, Cause: err}
	}
	var document *jay.DocumentError
	var tag *cluster.TagError
	switch {
	case is(jay.ErrUnknownOutcome):
		return hide(http.StatusInternalServerError, typeUnknownOutcome, "it is not known whether the write has happened: read what is there before repeating it")
	case is(cluster.ErrNoMajority):
		p := hide(http.StatusInternalServerError, typeNoLeader, "no majority of the cluster's coordinator answers: identities, compare exchange and cluster-wide transactions wait for it, and everything else goes on")
		p.Headers = map[string]string{"Retry-After": "1"}
		return p
	case is(jay.ErrMemory):
		return overload("%s", strings.TrimPrefix(OneLine(err.Error()), "jay: "))
	case is(jay.ErrUnavailable, jay.ErrLeaseLost): // 503, unlike an overload: another node may have a store that answers
		p := hide(http.StatusServiceUnavailable, typeDatabaseLoad, "the store of the database cannot be reached at the moment, and nothing was changed")
		p.Headers = map[string]string{"Retry-After": "1"}
		return p
	case errors.As(err, &tag): // its text, without the path of the database
		return &Problem{Status: http.StatusInternalServerError, Kind: TypeInternal, Message: tag.Error(), Cause: err}
	case is(cluster.ErrRefused, cluster.ErrRestored, cluster.ErrOtherCluster):
		return hide(http.StatusInternalServerError, TypeInternal, "the cluster's coordinator refuses; the server's log says why")
	case is(jay.ErrFailed) && is(jay.ErrDiskFull):
		return hide(http.StatusInsufficientStorage, TypeInternal, MessageFailedFull)
	case is(jay.ErrFailed):
		return hide(http.StatusInternalServerError, TypeInternal, MessageFailed)
	case is(jay.ErrDiskFull):
		return hide(http.StatusInsufficientStorage, TypeInternal, MessageDiskFull)
	case is(jay.ErrSnapshotExpired):
		return hide(http.StatusRequestTimeout, typeTimeout, "the request has read for longer than the store of the database shows one moment: ask for less, or make an index")
	case is(context.Canceled, context.DeadlineExceeded):
		return hide(http.StatusInternalServerError, TypeRequestCancelled, "the request was cancelled")
	case is(jay.ErrClosed, jay.ErrClientClosed):
		return ErrShutdown
	case is(jay.ErrReadOnly) && is(jay.ErrStandby):
		return hide(http.StatusForbidden, TypeAuthorization, MessageStandby)
	case is(jay.ErrReadOnly):
		return hide(http.StatusForbidden, TypeAuthorization, "the database was opened for reading only")
	case is(jay.ErrConflict, jay.ErrExists):
		return ConflictOf(err, say(http.StatusConflict, TypeConcurrency))
	case is(jay.ErrUnique):
		return say(http.StatusConflict, TypeConcurrency)
	case is(jay.ErrCollection):
		return say(http.StatusBadRequest, typeCollection)
	case is(jay.ErrTooLarge), errors.As(err, &document) && strings.HasSuffix(document.Rule, " bytes") && strings.HasPrefix(document.Rule, "at most "):
		return say(http.StatusRequestEntityTooLarge, typeTooLarge)
	case is(jay.ErrSyntax, jay.ErrQuery, jay.ErrNoIndex):
		return say(http.StatusBadRequest, typeQuery)
	case is(jay.ErrNoAttachment):
		return say(http.StatusBadRequest, typeNoAttachment)
	case is(jay.ErrSchema, jay.ErrSchemaRule):
		return schemaOf(err, say(http.StatusUnprocessableEntity, TypeBadRequest))
	case is(jay.ErrRequestID):
		return say(http.StatusUnprocessableEntity, TypeBadRequest)
	case is(jay.ErrInvalidID, jay.ErrInvalidDocument, jay.ErrInvalidAttachment, jay.ErrInvalidPatch, jay.ErrLeadTooLarge, jay.ErrUsage, jay.ErrStandby, jay.ErrIndex, jay.ErrIndexExists):
		return say(http.StatusBadRequest, TypeBadRequest)
	case is(jay.ErrNeedsFloor, jay.ErrNeedsCapacity, jay.ErrExhausted):
		return say(http.StatusInternalServerError, TypeInternal)
	case is(jay.ErrLocked, jay.ErrNotDatabase, jay.ErrNoDatabase, jay.ErrNewerFormat, jay.ErrNotWritable, jay.ErrFixed, jay.ErrOption):
		return hide(http.StatusInternalServerError, typeDatabaseLoad, "the database could not be opened; the server's log says why")
	case is(jay.ErrCorrupt, jay.ErrUnreadable):
		return hide(http.StatusInternalServerError, TypeInternal, "stored data could not be read; the server's log says why")
	}
	return hide(http.StatusInternalServerError, TypeInternal, "the server has failed at this request; its log says why")
}

// Listed returns the first violations of a document, up to schema.MaxReportedBytes of them.
func Listed(violations []schema.Violation) []schema.Violation {
	listed, size := []schema.Violation{}, 0
	for _, v := range violations {
		if size += len(v.Path) + len(v.Keyword) + len(v.Message); size > schema.MaxReportedBytes {
			break
		}
		listed = append(listed, v)
	}
	return listed
}

// schemaOf adds which values of a document violate which keywords of a schema, or where the schema cannot be one. What Listed leaves out is in
// the number of all violations.
func schemaOf(err error, p *Problem) *Problem {
	var refused *schema.Error
	var rule *schema.RuleError
	switch {
	case errors.As(err, &refused):
		p.Fields = map[string]any{"Id": refused.ID, "Collection": refused.Collection, "ViolationCount": refused.Count, "Violations": Listed(refused.Violations)}
	case errors.As(err, &rule):
		p.Fields = map[string]any{"Collection": rule.Collection, "Path": rule.Path, "Rule": rule.Rule}
	}
	return p
}

// ConflictOf adds RavenDB's details of a conflict.
func ConflictOf(err error, p *Problem) *Problem {
	var conflict *jay.ConflictError
	if errors.As(err, &conflict) {
		p.Fields = map[string]any{"Id": conflict.ID, "ExpectedChangeVector": conflict.Expected, "ActualChangeVector": conflict.Actual}
	}
	return p
}

// Body returns the body of the reply to a request with this URL.
func (p *Problem) Body(url string) []byte {
	reply := map[string]any{"Url": url, "Type": p.Kind, "Message": p.Message, "Error": p.Kind + ": " + p.Message}
	for name, value := range p.Fields {
		reply[name] = value
	}
	return MustJSON(reply)
}

// MustJSON returns v as JSON. v must consist of types that can be encoded. JSON in it
// keeps its spelling.
func MustJSON(v any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("server: %T as JSON: %v", v, err))
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// OneLine replaces line breaks.
func OneLine(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
}

// panicked returns the error for a recovered panic, with the stack for the log.
func panicked(p any) *Problem {
	return &Problem{Status: http.StatusInternalServerError, Kind: TypeInternal, Message: "the server has failed at this request; its log says why", Cause: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
}

// scriptProblem converts the error of a script to what a client gets; nil if err is no
// script error.
func scriptProblem(err error) *Problem {
	var e *script.Error
	if !errors.As(err, &e) {
		return nil
	}
	if e.Cause != nil {
		if p := ProblemOf(e.Cause); p.Status >= http.StatusInternalServerError || p.Status == http.StatusConflict {
			return p
		}
	}
	if e.Missing {
		return NotSupported("%s", OneLine(e.Error()))
	}
	return &Problem{Status: http.StatusBadRequest, Kind: typeScript, Message: OneLine(e.Error())}
}

const typeScript = ExceptionPrefix + "Documents.Patching.JavaScriptException"

// IsMissing reports whether there is no such document.
func IsMissing(err error) bool { return errors.Is(err, jay.ErrNotFound) }

const typeNoAttachment = ExceptionPrefix + "Documents.Attachments.AttachmentDoesNotExistException"
