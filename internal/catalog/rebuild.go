package catalog

import (
	"errors"
	"fmt"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/format"
)

// Refused is an index that a database cannot have, and why.
type Refused struct {
	Info index.Info // its state is the one that it had
	Err  error
}

// ForRebuild makes the record of a database whose indexes are built anew from its
// documents: those that were ready are to be built. It returns the indexes that were
// being built, which may never become ready and must not keep the others from it, and
// those whose declarations are broken, or of a kind that this version does not know.
// Indexes that were being dropped are gone. The parts of computed indexes are all to be built.
func (r *Record) ForRebuild() (unfinished []index.Info, refused []Refused) {
	all := r.Indexes
	r.Indexes, r.Next = nil, max(r.Next, 1)
	taken := make(map[[2]string]bool)
	begun := make(map[[2]string]int) // in unfinished
	for _, e := range all {
		if e.State == index.Dropping {
			continue
		}
		if err := checkEntry(e); err != nil {
			refused = append(refused, Refused{e.Info, err})
			continue
		}
		if e.Part {
			e.State, e.Replaces, e.Number = index.Building, 0, r.Next
			r.Next++
			r.Indexes = append(r.Indexes, e)
			continue
		}
		name := [2]string{format.FoldName(e.Collection), format.FoldName(e.Name)}
		if e.State == index.Building {
			if at, found := begun[name]; !found {
				begun[name] = len(unfinished)
				unfinished = append(unfinished, e.Info)
			} else if e.Replaces != 0 { // it replaces one that was not ready either
				unfinished[at] = e.Info
			}
			continue
		}
		if taken[name] {
			refused = append(refused, Refused{e.Info, fmt.Errorf("%s has another index of this name", e.Collection)})
			continue
		}
		taken[name] = true
		e.State, e.Replaces, e.Number = index.Building, 0, r.Next // it has no entries under any number
		r.Next++
		r.Indexes = append(r.Indexes, e)
	}
	if err := r.settle(); err != nil {
		refused = append(refused, Refused{index.Info{Index: index.Index{Name: PartPrefix}}, err})
	}
	return unfinished, refused
}

// checkEntry refuses an index that cannot be open.
func checkEntry(e RecordEntry) error {
	if e.State != index.Building && e.State != index.Ready {
		return fmt.Errorf("its state %.40q is not known", e.State)
	}
	ix, err := Open(e)
	missing := (*index.FunctionError)(nil)
	switch {
	case err != nil:
		return err
	case errors.As(ix.Unknown, &missing):
		return nil // a program with the function builds it
	case ix.Unknown != nil:
		return ix.Unknown
	case len(e.Fields) == 0:
		return fmt.Errorf("it has no fields")
	}
	return nil
}
