package smuggler

import (
	"bytes"
	"io"
)

// Rejects receives the records that an import refuses.
type Rejects interface {
	// Write receives records, one a line, each in one or more parts. White space inside a
	// record is blanks, which does not change the meaning of JSON. An error ends the import.
	io.Writer

	// Reject says why a record is refused, of which a whole line was written.
	Reject(why *ImportError)
}

// SyncedRejects are Rejects that can be made durable. An import with ImportOptions.Resume
// calls Sync before it notes that it has passed a record that was written: the import that
// goes on after a crash does not read this record again. An error ends the import.
type SyncedRejects interface {
	Rejects
	Sync() error
}

// rejectLine writes records as lines.
type rejectLine struct {
	w        io.Writer
	blanks   int  // not written yet: dropped at the beginning and the end of a record
	begun    bool // a part of the record is written
	unsynced bool // something was written since the last Sync
}

// Write writes a part of a record.
func (r *rejectLine) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := bytes.IndexAny(rest, " \t\r\n")
		if n < 0 {
			n = len(rest)
		}
		if n > 0 {
			if err := r.writeText(rest[:n]); err != nil {
				return 0, err
			}
		}
		if rest = rest[n:]; len(rest) > 0 {
			r.blanks++
			rest = rest[1:]
		}
	}
	return len(p), nil
}

// writeText writes text without white space, and the blanks before it.
func (r *rejectLine) writeText(text []byte) error {
	for ; r.blanks > 0; r.blanks-- {
		if !r.begun {
			continue
		}
		if _, err := r.w.Write([]byte{' '}); err != nil {
			return err
		}
	}
	r.begun, r.unsynced = true, true
	_, err := r.w.Write(text)
	return err
}

// sync makes what was written durable, if it can be.
func (r *rejectLine) sync() error {
	rejects, can := r.w.(SyncedRejects)
	if !can || !r.unsynced {
		return nil
	}
	r.unsynced = false
	return rejects.Sync()
}

// end ends a record.
func (r *rejectLine) end() error {
	begun := r.begun
	r.blanks, r.begun = 0, false
	if !begun {
		return nil // the record could not be written
	}
	_, err := r.w.Write([]byte{'\n'})
	return err
}
