package storage

import (
	"fmt"
	"strings"
)

// DamageError describes a directory that is not opened, because it does not
// hold what the engine has written and synced. It is an ErrCorrupt. No file was
// changed.
type DamageError struct {
	Dir     string // as Open was given it
	File    string // name of the file in Dir
	Offset  int64  // of the damage in the file; -1 if the file is missing or has another length
	Problem string // what is wrong
	Loss    string // what opening without it would lose; empty for nothing
}

// Error names the file, the place, what opening it anyway would lose, and the
// command that saves the rest into a new directory.
func (e *DamageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", ErrCorrupt, e.File)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at byte %d", e.Offset)
	}
	fmt.Fprintf(&b, ": %s; ", e.Problem)
	if e.Loss == "" {
		b.WriteString("nothing that was stored is known to be lost")
	} else {
		fmt.Fprintf(&b, "going on loses %s", e.Loss)
	}
	fmt.Fprintf(&b, "; nothing was changed; restore a backup, or save what is left with: jay repair %s NEWDIR", e.Dir)
	return b.String()
}

// Unwrap returns ErrCorrupt.
func (e *DamageError) Unwrap() error { return ErrCorrupt }
