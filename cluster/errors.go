package cluster

import (
	"errors"
	"fmt"

	"github.com/jaydb/jay/storage"
)

var (
	// ErrNoMajority is returned when no majority of the coordinator's members has answered
	// in time: the network is cut, or too many members are down. Nothing has changed.
	// Calls succeed again when the majority is back.
	ErrNoMajority = errors.New("no majority of the cluster's coordinator answers")

	// ErrUnknownOutcome is returned by a Commit that may have happened, or may still
	// happen. It is the error of the same name in package jay.
	ErrUnknownOutcome = storage.ErrUnknownOutcome

	// ErrTooLarge is returned for a Commit that is larger than the coordinator accepts.
	// Nothing has changed. It is the error of the same name in package jay.
	ErrTooLarge = storage.ErrTooLarge

	// ErrClosed is returned by a Coordinator after its Close.
	ErrClosed = errors.New("coordinator is closed")

	// ErrUsage is returned for a call with invalid arguments. Nothing has changed.
	ErrUsage = errors.New("wrong usage of a coordinator")

	// ErrRefused is returned when the coordinator rejects a request: wrong or expired
	// credentials or certificates, a version that is too old, a full disk. Nothing has
	// changed. The message names the endpoint and says what to do.
	ErrRefused = errors.New("the cluster's coordinator refuses")

	// ErrRestored is returned when the coordinator was restored from a backup, or has lost
	// commits that it had acknowledged. Numbers of identities would repeat, so databases
	// send it no more calls until an operator accepts its state: see etcd.Accept.
	ErrRestored = errors.New("the cluster's coordinator has gone back: it was restored from a backup, or has lost commits")

	// ErrOtherCluster is returned when a database belongs to one cluster, and the coordinator
	// has the records of another one, or none: a wrong address, or a coordinator that has lost
	// its data.
	ErrOtherCluster = errors.New("the coordinator is that of another cluster")

	// ErrTag is matched by every *TagError: a database must not use its node tag.
	ErrTag = errors.New("the database must not use its node tag")
)

// TagError is returned when a database must not make IDs with its node tag.
// errors.Is(err, ErrTag) is true.
type TagError struct {
	Tag    string
	Reason TagReason
	Member Member // the owner of the tag, as recorded by the coordinator
}

// TagReason is why a database must not use its node tag.
type TagReason string

// The reasons.
const (
	// TagTaken: the tag belongs to another database, for good.
	TagTaken TagReason = "taken"
	// TagRetired: the database has left the cluster. No database gets the tag again.
	TagRetired TagReason = "retired"
	// TagRunning: another copy of the database is running. It keeps the tag.
	TagRunning TagReason = "running"
	// TagCopied: two copies of the database have run under the tag, at the same time or one
	// after the other. Neither may make IDs with it until Resolve.
	TagCopied TagReason = "copied"
)

func (e *TagError) Error() string {
	switch e.Reason {
	case TagTaken:
		return fmt.Sprintf("node tag %q belongs to another database (%s%s), for good: if this one is new, remove its directory and create it with another NodeTag, or, if it is a copy, open it with a CopyTag that no node has had", e.Tag, e.Member.Database, at(e.Member.Address))
	case TagRetired:
		return fmt.Sprintf("node tag %q was retired when its database left the cluster on %s: open the database with a CopyTag that no node has had", e.Tag, e.Member.Left.Format("2006-01-02"))
	case TagRunning:
		return fmt.Sprintf("another copy of this database runs under the node tag %q%s: close that one first, or, if this one is the copy, open it with a CopyTag that no node has had", e.Tag, at(e.Member.Address))
	}
	return fmt.Sprintf("two copies of this database have run under the node tag %q, and neither makes ids with it any more: open the copy with a CopyTag that no node has had; then \"jay cluster resolve %s\" gives the tag back to the original", e.Tag, e.Tag)
}

func at(address string) string {
	if address == "" {
		return ""
	}
	return " at " + address
}

// Is reports whether target is ErrTag.
func (e *TagError) Is(target error) bool { return target == ErrTag }
