package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// scripted makes the answers of a query with JavaScript of the documents that a run finds. It is outside of the run's lock, as
// a script reads documents as the transaction sees them, which is entered for that.
type scripted struct {
	r        *Run
	distinct *query.Distinct // nil for all rows
	skip     int             // of distinct rows
	left     int             // below 0 for no limit
	steps    int64           // that the query has left
	charged  int             // bytes of distinct rows that were paid for
	bytes    int64           // that scripts may take and have been paid for
	taken    int64           // by the present one
}

// begin takes what the run would skip and count, if rows are distinct: then rows are skipped and counted, and not documents.
func (s *scripted) begin() {
	if r := s.r; r.q.IsDistinct() {
		s.distinct = query.NewDistinct(r.env.MaxQueryBytes)
		s.skip, s.left, r.skip, r.left = r.skip, r.left, 0, -1
	}
}

// next returns the next row, or nil at the end.
func (s *scripted) next(ctx context.Context) (*Row, error) {
	for s.left != 0 {
		row, err := s.r.nextRow(ctx)
		if row == nil || err != nil {
			return nil, err
		}
		wanted, err := s.make(ctx, row)
		if err != nil {
			return nil, err
		}
		if !wanted {
			continue
		}
		if s.left > 0 {
			s.left--
		}
		return row, nil
	}
	return nil, nil
}

// make makes the row of a document. It reports whether the row is an answer.
func (s *scripted) make(ctx context.Context, row *Row) (wanted bool, err error) {
	read, exit, err := reading{s.r}.begin(ctx)
	if err != nil {
		return false, err
	}
	defer exit()
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.r.closed != nil {
		return false, s.r.closed
	}
	if row.JSON, err = s.run(ctx, row.Document, read); err != nil {
		return false, err
	}
	if wanted, err = s.isNew(row); !wanted || err != nil {
		s.r.stats.returned--
		return false, err
	}
	return true, s.r.shown.complete(s.r, row, read)
}

// run runs the script on a document.
func (s *scripted) run(ctx context.Context, doc *docs.Document, read readFunc) ([]byte, error) {
	given := query.Scripted{ID: doc.ID(), Steps: s.steps, Take: s.take}
	var err error
	if given.IDs, err = s.ids(doc, read); err != nil {
		return nil, err
	}
	if given.Document, err = doc.MarshalJSON(); err != nil {
		return nil, err
	}
	var failed error // of a read, which is no error of the script
	s.taken = 0
	row, steps, err := s.r.q.Script.Run(ctx, given, func(id string) ([]byte, error) {
		loaded, err := read(s.r.env.Rules.Fold(id))
		if err == errs.ErrNotFound {
			return nil, nil
		}
		if err == nil {
			var raw []byte
			if raw, err = loaded.MarshalJSON(); err == nil {
				s.r.stats.documents++
				return raw, nil
			}
		}
		failed = err
		return nil, err
	})
	s.steps -= steps
	if failed != nil {
		return nil, failed
	}
	if wrong := (*query.ScriptError)(nil); errors.As(err, &wrong) {
		return nil, fmt.Errorf("%w: document %q: %w", errs.ErrQuery, doc.ID(), wrong)
	}
	if limit := max(s.r.env.MaxQueryBytes, len(given.Document)); err == nil && len(row) > limit {
		return nil, fmt.Errorf("%w: document %q: %w (Options.MaxQueryBytes): select less", errs.ErrQuery, doc.ID(), &query.LimitError{What: "bytes of a row", Limit: limit, Actual: len(row)})
	}
	return row, err
}

// take pays for memory of a script. What one has given back the next one takes.
func (s *scripted) take(n int64) error {
	if s.taken += n; s.taken <= s.bytes {
		return nil
	}
	more := s.taken - s.bytes
	s.bytes = s.taken
	return s.r.payer.Pay(int(more))
}

// ids returns the IDs that the query loads for a document, parallel to its loads. The IDs of a load from
// another one are in the documents of that, which are read for them.
func (s *scripted) ids(doc *docs.Document, read readFunc) ([][]string, error) {
	loads := s.r.q.Script.Loads()
	all := make([][]string, len(loads))
	for i, l := range loads {
		add := func(raw []byte) bool {
			id := ""
			if docs.IsID(raw) {
				id = string(jsonpath.AppendUnquoted(nil, raw))
			}
			all[i] = append(all[i], id)
			return len(all[i]) < query.MaxScriptLoads+1
		}
		if l.From == "" {
			docs.EachID(doc.JSON(), []jsonpath.Path{l.Path}, add)
			continue
		}
		from := slices.IndexFunc(loads[:i], func(other query.Load) bool { return other.Name == l.From })
		ids := all[from]
		if !loads[from].List { // the name is the first one
			ids = ids[:min(1, len(ids))]
		}
		for _, id := range ids {
			if id == "" || len(all[i]) > query.MaxScriptLoads {
				continue
			}
			loaded, err := read(s.r.env.Rules.Fold(id))
			if err == errs.ErrNotFound {
				continue
			}
			if err != nil {
				return nil, err
			}
			s.r.stats.documents++
			docs.EachID(loaded.JSON(), []jsonpath.Path{l.Path.Suffix(1)}, add)
		}
	}
	return all, nil
}

// isNew reports whether a row is an answer, and no repetition of one.
func (s *scripted) isNew(row *Row) (bool, error) {
	if s.distinct == nil {
		return true, nil
	}
	first, err := s.distinct.Add(row.JSON)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	if err := s.r.payer.Pay(s.distinct.Bytes() - s.charged); err != nil {
		return false, err
	}
	s.charged = s.distinct.Bytes()
	if first && s.skip > 0 {
		s.skip--
		return false, nil
	}
	return first, nil
}

// reading reads documents as the query of a run sees them.
type reading struct{ r *Run }

// begin returns the function that reads, until exit is called. A transaction is entered for that only, as the search for an answer may take
// any time; the run must not be locked.
func (rd reading) begin(ctx context.Context) (read readFunc, exit func(), err error) {
	if o := rd.r.overlay; o.Enter != nil {
		return o.Read, o.Exit, o.Enter(ctx)
	}
	return func(folded string) (*docs.Document, error) {
		snapshot := rd.r.snapshot
		if rd.r.loading.spec != nil {
			snapshot = rd.r.loading.plain
		}
		doc, err := rd.r.docs.ReadFolded(snapshot, folded)
		return docs.AliveAt(rd.r.moment, doc, err)
	}, func() {}, nil
}
