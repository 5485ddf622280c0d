package sqlkv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jaydb/jay/storage"
)

var (
	// ErrAddress is returned when the name of a store is not a valid address.
	ErrAddress = errors.New("the address of the store is not right")

	// ErrCredentials is returned when the server refuses the user or the password.
	ErrCredentials = errors.New("the server refuses the credentials")

	// ErrOtherStore is returned when the address leads to another store than at Open. Nothing was
	// changed.
	ErrOtherStore = errors.New("the address leads to another store than the one that was opened")

	// ErrProfile is returned when the server is not of the kind in Driver.Profile.
	ErrProfile = errors.New("the server is not what the profile says")
)

// Error is the error of a store that cannot be reached, or whose server refuses a call. Nothing was
// changed, unless Kind is storage.ErrUnknownOutcome.
type Error struct {
	Address string // of the store; never with a password
	Kind    error  // one of package storage or of this package: errors.Is finds it
	Cause   error  // the error of the server or the system; or nil
	Do      string // what to do
}

// Error names the address, what happened, and what to do.
func (e *Error) Error() string {
	text := e.Address + ": " + e.Kind.Error()
	if e.Cause != nil {
		text += ": " + strings.Join(strings.Fields(e.Cause.Error()), " ") // a failure to connect has lines
	}
	if e.Do != "" {
		text += "; " + e.Do
	}
	return text
}

// Unwrap returns Kind and Cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// state returns the SQLSTATE of a server's answer, or "".
func state(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// ended reports whether the server has ended the connection, or itself, by an error.
func ended(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	severity := refused.SeverityUnlocalized
	if severity == "" { // of a server before version 9.6
		severity = refused.Severity
	}
	return severity == "FATAL" || severity == "PANIC"
}

// lost reports whether the connection is of no use any more, so that the server has not answered, or has said that it
// ends.
func lost(err error) bool {
	code := state(err)
	switch {
	case code == "":
		return true
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"), code == "25P03", code == "57014":
		return true
	}
	return false
}

// again reports whether a transaction that the server has refused may be run again at once.
func again(err error) bool {
	switch state(err) {
	case "40001", "40P01", "23505": // a number of a commit that another transaction took
		return true
	}
	return false
}

// reasons are what SQLSTATEs mean: those that are not here are storage.ErrUnavailable, and so are
// failures of the network.
var reasons = map[string]struct {
	kind error
	do   string
}{
	"28P01": {ErrCredentials, "check the user, and the password in PGPASSWORD or ~/.pgpass"},
	"28000": {ErrCredentials, "check the user, and what pg_hba.conf allows"},
	"3D000": {storage.ErrNoDatabase, "make the database with createdb, or name another one"},
	"42501": {storage.ErrNotWritable, "grant the user CREATE on the database, or all rights in the schema and its tables"},
	"25006": {storage.ErrNotWritable, "the server is read only, such as a standby: name the primary one, or several hosts with target_session_attrs=read-write"},
	"53100": {storage.ErrDiskFull, "free space on the server's disk"},
	"53300": {storage.ErrUnavailable, "the server has no connection left: raise its max_connections, or lower Driver.Connections"},
	"55P03": {storage.ErrUnavailable, "another process has held the lock of the store for long: see whether it hangs"},
	"25P03": {storage.ErrUnavailable, "the process has stood still for so long that the server ended its transaction: try again"},
	"57014": {storage.ErrUnavailable, "the server took longer than Driver.Timeout: try again, or raise that"},
	"57P01": {storage.ErrUnavailable, "the server is being stopped: try again when it is back"},
	"57P03": {storage.ErrUnavailable, "the server is starting: try again"},
	"42P01": {storage.ErrNotDatabase, "tables of the store are missing: restore the store from a backup"},
}

// explain returns err, which a server or the network caused, as an *Error; one that has been
// explained already stays as it is.
func (a address) explain(err error) error {
	if err == nil {
		return nil
	}
	var already *Error
	if errors.As(err, &already) {
		return already
	}
	code := state(err)
	if r, known := reasons[code]; known {
		return &Error{Address: a.String(), Kind: r.kind, Cause: err, Do: r.do}
	}
	do := "see whether the server runs and answers at this address, and try again"
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return &Error{Address: a.String(), Kind: ErrAddress, Cause: err, Do: "check the name of the host"}
	case errors.Is(err, context.DeadlineExceeded):
		do = "the server took longer than Driver.Timeout: try again, or raise that"
	case code != "":
		do = fmt.Sprintf("the server refused a statement with SQLSTATE %s: see its log", code)
	}
	return &Error{Address: a.String(), Kind: storage.ErrUnavailable, Cause: err, Do: do}
}
