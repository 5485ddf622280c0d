package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/transfer/smuggler"
)

// Exit codes.
const (
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells count
)

// usageError is the error for an invalid command line.
type usageError struct {
	text    string
	command string // command whose help to point to; "" for the command that runs
}

// Error returns the text with a reference to the help.
func (e usageError) Error() string { return fmt.Sprintf("%s (see %q)", e.text, e.command+" --help") }

// interrupted is the error of a command that a signal stopped.
type interrupted struct{ err error }

// Error returns the command's error, which may include its progress, with "interrupted"
// in place of the context's text.
func (e interrupted) Error() string {
	if e.err == context.Canceled {
		return "interrupted"
	}
	return strings.ReplaceAll(e.err.Error(), context.Canceled.Error(), "interrupted")
}

// Unwrap returns the command's error.
func (e interrupted) Unwrap() error { return e.err }

// explained is an error whose text also says what to do next.
type explained struct {
	text string
	err  error
}

// Error returns the text.
func (e explained) Error() string { return e.text }

// Unwrap returns the original error.
func (e explained) Unwrap() error { return e.err }

// explainOpen adds advice to the error of opening the database.
func (a *app) explainOpen(err error) error {
	text := ""
	switch {
	case errors.Is(err, jay.ErrLocked):
		text = fmt.Sprintf("database %q is open in another process: wait until that ends, or name another one with --db", a.dir)
		if errors.Is(err, jay.ErrUnavailable) {
			text += "; it lets no one look into it, or does not answer"
		}
	case errors.Is(err, jay.ErrNoDatabase):
		text = fmt.Sprintf(`no database in %q: name one with --db or $JAY_DB, or create it with "jay put" or "jay import"`, a.dir)
	case errors.Is(err, jay.ErrKey):
		if text = explainKey(a.options.EncryptionKeys, a.dir, err); text == "" {
			return err
		}
	case errors.Is(err, jay.ErrStandby):
		text = inCommand.Replace(err.Error())
	case errors.Is(err, jay.ErrDiskFull):
		text = fmt.Sprintf("%s; make room on the disk, or only read with --read-only", err)
	case errors.Is(err, jay.ErrNotWritable):
		text = fmt.Sprintf("%s; check its permissions and its disk, or name another directory with --db", err)
	case errors.Is(err, jay.ErrOption):
		return usageError{text: inCommand.Replace(strings.TrimPrefix(err.Error(), fmt.Sprintf("open %q: ", a.dir)))}
	default:
		return err
	}
	return explained{text, err}
}

// inCommand adds to names of the package the flags and subcommands that set them.
var inCommand = strings.NewReplacer(
	"open it with ReadOnly, or promote it", "read it with --read-only, or make a database of it with jay promote",
	"HiLoCapacity", "HiLoCapacity (--hilo-capacity)",
	"SeedIdentity", "SeedIdentity (jay ids seed)",
	"RaiseCounters", "RaiseCounters (jay hilo raise)",
)

// kinds are the names of errors in JSON, so that scripts need not parse texts. The
// first entry that an error matches counts.
var kinds = []struct {
	err  error
	name string
}{
	{jay.ErrLocked, "locked"},
	{jay.ErrNoDatabase, "no-database"},
	{jay.ErrNotDatabase, "not-a-database"},
	{jay.ErrNewerFormat, "newer-format"},
	{jay.ErrStandby, "standby"},
	{jay.ErrReadOnly, "read-only"},
	{jay.ErrRestoring, "restoring"},
	{jay.ErrBackupBase, "backup-base"},
	{jay.ErrKey, "key"}, // a backup whose key is missing is not damaged
	{jay.ErrBackup, "backup"},
	{jay.ErrCopy, "copy"},
	{jay.ErrUnknownOutcome, "unknown-outcome"}, // wraps its cause, which may be one of these
	{jay.ErrDiskFull, "disk-full"},
	{jay.ErrNotWritable, "not-writable"},
	{jay.ErrNoMajority, "no-majority"},
	{jay.ErrUnavailable, "unavailable"},
	{jay.ErrTag, "node-tag"},
	{jay.ErrNeedsCluster, "needs-cluster"},
	{jay.ErrOtherCluster, "other-cluster"},
	{jay.ErrClusterRestored, "cluster-restored"},
	{cluster.ErrRefused, "cluster-refused"},
	{jay.ErrCorrupt, "corrupt"},
	{jay.ErrUnreadable, "unreadable"},
	{jay.ErrFailed, "failed"},
	{jay.ErrTooLarge, "too-large"},
	{jay.ErrInvalidDocument, "invalid-document"},
	{jay.ErrInvalidID, "invalid-id"},
	{jay.ErrCollection, "other-collection"},
	{jay.ErrExists, "exists"},
	{jay.ErrConflict, "conflict"},
	{jay.ErrInvalidAttachment, "invalid-attachment"},
	{jay.ErrNoAttachment, "no-attachment"}, // is not found
	{jay.ErrNotFound, "not-found"},
	{jay.ErrNeedsFloor, "needs-floor"},
	{jay.ErrNeedsCapacity, "needs-capacity"},
	{jay.ErrLeadTooLarge, "lead-too-large"},
	{jay.ErrExhausted, "exhausted"},
	{jay.ErrFixed, "fixed"},
	{jay.ErrUnique, "unique"},
	{jay.ErrTooLarge, "too-large"},
	{jay.ErrIndexExists, "index-exists"},
	{jay.ErrIndex, "invalid-index"},
	{jay.ErrNoIndex, "no-index"},
	{jay.ErrQuery, "invalid-query"},
	{jay.ErrChangesGone, "changes-gone"},
	{jay.ErrSubscription, "subscription"},
}

// jsonError is an error on stderr with --json. Line and Column locate a syntax
// error in a query; Line and the fields from File on locate an error of an import.
type jsonError struct {
	Error    string `json:"error"`
	Kind     string `json:"kind,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	File     string `json:"file,omitempty"`
	Document int64  `json:"document,omitempty"`
	Byte     *int64 `json:"byte,omitempty"`
	Stored   *int64 `json:"stored,omitempty"`
}

// report prints err on stderr and returns the exit code.
func (a *app) report(err error) int {
	code, kind := exitError, kindOf(err)
	if usage, is := errors.AsType[usageError](err); is {
		if usage.command == "" {
			usage.command = a.command
		}
		code, kind, err = exitUsage, "usage", usage
	}
	if _, is := errors.AsType[interrupted](err); is {
		code, kind = exitInterrupted, "interrupted"
	}
	a.complain(err, kind)
	return code
}

// complain prints err on stderr. It ignores errors of stderr, which it could not
// report.
func (a *app) complain(err error, kind string) {
	syntax, isSyntax := errors.AsType[*jay.SyntaxError](err)
	if !a.json {
		fmt.Fprintf(a.stderr, "jay: %s\n", printable(oneLine(err)))
		if isSyntax {
			fmt.Fprintln(a.stderr, printable(syntax.Caret()))
		}
		return
	}
	e := jsonError{Error: oneLine(err), Kind: kind}
	if isSyntax {
		e.Kind, e.Line, e.Column = "syntax", syntax.Line, syntax.Column
	}
	if at, is := errors.AsType[scriptError](err); is {
		e.Line = at.place()
	}
	if at, is := errors.AsType[*smuggler.ImportError](err); is {
		e.File, e.Document, e.Stored = at.Input, at.Number, &at.Stored
		if at.Number > 0 {
			e.Byte, e.Line = &at.Offset, int(at.Line)
		}
	}
	text, _ := json.Marshal(e) // strings and numbers always encode
	fmt.Fprintf(a.stderr, "%s\n", printable(string(text)))
}

// kindOf returns the name of err in JSON, or "".
func kindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return ""
}

// oneLine returns the text of err on one line, without the prefix "jay: " of the
// errors of the package, at any depth of wrapping. Errors that ask for an option
// also name the flag.
func oneLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimPrefix(line, "jay: "), ": jay: ", ": ")
	}
	text := strings.Join(lines, "; ")
	if errors.Is(err, jay.ErrNeedsCapacity) || errors.Is(err, jay.ErrNeedsFloor) {
		text = inCommand.Replace(text)
	}
	return text
}
