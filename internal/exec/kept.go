package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// keptRun makes groups of what indexes keep of them, as a query sees it.
type keptRun struct{ r *Run }

// fill adds the groups that an index keeps to groups, with the columns that ordered indexes have beside it.
func (k keptRun) fill(ctx context.Context, kept *plan.Kept, groups *query.Groups) error {
	if err := k.read(kept, groups); err != nil {
		return err
	}
	for _, b := range kept.Beside {
		others, err := query.NewGroups(b.Query.GroupBy, b.Query.Select, k.r.env.MaxQueryBytes)
		if err != nil {
			return fmt.Errorf("%w: %w", errs.ErrQuery, err)
		}
		others.SetPace(&k.r.pace)
		var of *catalog.Index
		if b.Kept != nil {
			of, err = b.Kept.Index, k.read(b.Kept, others)
		} else {
			of, err = b.Access[0].Index, k.walk(ctx, b.Plan, b.Query, others, nil)
		}
		if err != nil {
			return err
		}
		if !groups.Join(others, b.Columns) && !b.Narrow {
			return fmt.Errorf("index %q has no entries of a group that index %q has: %w", of.Info.Name, kept.Index.Info.Name, errs.ErrCorrupt)
		}
		if err := k.r.pace.Err(); err != nil {
			return err
		}
	}
	return nil
}

// read adds the groups that an index keeps. What the transaction has written, and what has expired and is not deleted yet, is in
// the index otherwise than the query sees it: it is corrected by what the index has of these documents.
func (k keptRun) read(kept *plan.Kept, groups *query.Groups) error {
	hidden, err := k.r.hidden()
	if err != nil {
		return err
	}
	changes := catalog.GroupChanges{Hidden: hidden}
	for _, doc := range k.r.overlay.Own {
		changes.Bodies = append(changes.Bodies, doc.JSON())
	}
	keys, err := kept.Read(k.r.snapshot, changes, groups)
	k.r.stats.keys += keys
	if refused := (*metadata.Error)(nil); errors.Is(err, query.ErrLimit) || errors.Is(err, query.ErrNumber) || errors.As(err, &refused) {
		err = fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	if err == nil {
		err = k.r.payer.Pay(groups.Bytes())
	}
	return err
}

// severalOwn returns plan.Options.OwnSeveral, which looks at the documents of the transaction once for each index, or nil if there are none.
func (k keptRun) severalOwn() func(ix *catalog.Index) bool {
	own := k.r.overlay.Own
	if len(own) == 0 {
		return nil
	}
	known := make(map[uint32]bool)
	return func(ix *catalog.Index) bool {
		several, found := known[ix.Number]
		if found {
			return several
		}
		only := catalog.Only(ix)
		for _, doc := range own {
			entries, err := only.Extract(doc.JSON(), nil)
			if err != nil {
				break // read says why
			}
			if several = slices.ContainsFunc(entries.Flags, func(f catalog.Flag) bool { return f.Flags&catalog.FlagMultiple != 0 }); several {
				break
			}
		}
		known[ix.Number] = several
		return several
	}
}

// walk adds the groups of the entries of an index. With addOwn, documents without a value of the field of the group by do not count; it adds one
// of the transaction's own, and nil adds all of them.
func (k keptRun) walk(ctx context.Context, pl *plan.Plan, q *query.Query, groups *query.Groups, addOwn func(query.Doc) error) (err error) {
	source := &indexSource{lookups: lookups{r: k.r}}
	source.add(pl.Access[0], nil)
	defer func() { err = errs.First(err, source.close()) }()
	entries, err := newEntryGroups(k.r, pl, q, source, groups)
	if err != nil {
		return err
	}
	if addOwn != nil {
		entries.addOwn, entries.present = addOwn, true
	}
	own := k.r.overlay.Own
	defer func() { k.r.overlay.Own = own }() // each of several walks needs them
	return entries.collect(ctx)
}
