// Package errs holds errors that several packages return which must not import
// one another.
package errs

import "errors"

// ErrCorrupt is returned when stored bytes are not those that were written:
// by package storage for files, by package metadata for the records in them.
var ErrCorrupt = errors.New("stored data is corrupt")

// ErrKey is returned when an encryption key is not there, or is not the right one.
var ErrKey = errors.New("encryption key is missing or wrong")

var ErrConflict = errors.New("transaction conflict")

// The sentinels of package jay, which documents them by occasion: the packages below it
// return them too.
var (
	ErrFixed         = errors.New("jay: fixed when the database was created")
	ErrOption        = errors.New("jay: invalid option")
	ErrClosed        = errors.New("jay: database is closed")
	ErrTxDone        = errors.New("jay: transaction is over")
	ErrNotFound      = errors.New("jay: document not found")
	ErrNoAttachment  = error(&kind{"jay: attachment not found", ErrNotFound})
	ErrExists        = errors.New("jay: document exists")
	ErrCollection    = errors.New("jay: document is in another collection")
	ErrInvalid       = errors.New("invalid document") // metadata.ErrInvalid
	ErrUnique        = errors.New("jay: unique index")
	ErrSchema        = errors.New("jay: document violates a schema")
	ErrSchemaRule    = errors.New("jay: invalid schema")
	ErrIndex         = errors.New("jay: invalid index")
	ErrIndexExists   = errors.New("jay: index exists with another declaration")
	ErrQuery         = errors.New("jay: invalid query")
	ErrNoIndex       = errors.New("jay: no index serves the query")
	ErrChangesGone   = errors.New("jay: changes are gone")
	ErrSubscription  = errors.New("jay: subscription")
	ErrInUse         = errors.New("jay: subscription has a worker")
	ErrEnded         = errors.New("jay: the work on a subscription was ended")
	ErrType          = errors.New("jay: type cannot be stored")
	ErrNeedsFloor    = errors.New("jay: numbers without a node tag need a floor in a copied database: give one that the original has not passed with SeedIdentity or RaiseCounters")
	ErrBackup        = errors.New("jay: backup")
	ErrBackupBase    = errors.New("jay: backup that cannot be followed")
	ErrRestoring     = errors.New("jay: database that was not restored to its end")
	ErrCopy          = errors.New("jay: copy")
	ErrStandby       = errors.New("jay: standby")
	ErrNeedsCluster  = errors.New("jay: the database belongs to a cluster: open it with Options.Cluster for identities and compare-exchange values")
	ErrNodeTag       = errors.New("jay: another process has the node tag")
	ErrLeaseLost     = errors.New("jay: the process has lost the lease of its node tag")
	ErrNeedsCapacity = errors.New("jay: capacity of HiLo2010 is not known")
)

// kind is a sentinel that is a case of another one.
type kind struct {
	text string
	of   error
}

func (k *kind) Error() string { return k.text }

func (k *kind) Unwrap() error { return k.of }

// First returns err, or the error of a clean-up that followed it.
func First(err, cleanup error) error {
	if err != nil {
		return err
	}
	return cleanup
}

// Shorten returns s, or its beginning if it is long, for the text of an error.
func Shorten(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
