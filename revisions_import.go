package jay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/metadata"
)

// maxImported is how many revisions one Import takes.
const maxImported = 1000

// Import stores revisions of another database, as Revision.MarshalJSON returns them: with
// @id, @change-vector, @last-modified, @flags and, unless it is @empty, @collection in
// their @metadata. They keep all of these, so that Get finds them by the change vectors
// that they had. It stores all of them or none, at most 1,000, and returns how many were
// not there already. The rules of the configuration do not matter.
//
// The revisions of a document come before it: from the oldest on, as Revisions.All lists
// them, and before the document is written. Otherwise Import returns ErrExists. Later
// writes get higher etags than the imported revisions have.
func (r Revisions) Import(ctx context.Context, all []json.RawMessage) (stored int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if len(all) > maxImported {
		return 0, fmt.Errorf("import revisions: %w: at most %d at a time, not %d", ErrUsage, maxImported, len(all))
	}
	if err := r.db.env.Enter(); err != nil {
		return 0, err
	}
	defer r.db.env.Exit()
	list := make([]revisions.Imported, len(all))
	etag := uint64(0)
	for i, text := range all {
		if list[i], err = r.imported(text); err != nil {
			return 0, fmt.Errorf("import revision %d of %d: %w", i+1, len(all), err)
		}
		etag = max(etag, list[i].Etag)
	}
	if err := r.db.reserved.RaiseEtag(ctx, etag); err != nil {
		return 0, fmt.Errorf("import revisions: %w", err)
	}
	if stored, err = r.reader().Import(ctx, list); err != nil {
		return 0, fmt.Errorf("import revisions: %w", err)
	}
	return stored, nil
}

// imported reads one revision.
func (r Revisions) imported(text []byte) (m revisions.Imported, err error) {
	scanned, err := metadata.Scan(text, r.db.env.Limits)
	if err != nil {
		return m, err
	}
	given, err := metadata.Parse(orObject(scanned.Metadata))
	if err != nil {
		return m, err
	}
	raw := gjson.ParseBytes(scanned.Metadata)
	flags := strings.Split(raw.Get(`\@flags`).String(), ", ")
	m = revisions.Imported{ID: given.ID, Collection: given.Collection, Custom: given.Custom, Body: slices.Clone(scanned.Body)}
	m.Deletion = slices.Contains(flags, metadata.DeleteRevision.String())
	if !m.Deletion && !slices.Contains(flags, metadata.Revision.String()) {
		return m, &DocumentError{Rule: "a revision has Revision or DeleteRevision in its @flags", Detail: fmt.Sprintf("%.100q", strings.Join(flags, ", "))}
	}
	if m.Deletion && string(m.Body) != "{}" {
		return m, &DocumentError{Rule: "a deletion has no members", Detail: fmt.Sprintf("%.100s", m.Body)}
	}
	if err := r.db.env.Rules.Check(m.ID); err != nil {
		return m, err
	}
	m.FoldedID = r.db.env.Rules.Fold(m.ID)
	modified, err := time.Parse(time.RFC3339Nano, raw.Get(`\@last-modified`).String())
	if err != nil {
		return m, &DocumentError{Rule: "a revision has a time in its @last-modified", Detail: fmt.Sprintf("%.100q", raw.Get(`\@last-modified`).String())}
	}
	m.Modified = metadata.Ticks(modified)
	m.ChangeVector = raw.Get(`\@change-vector`).String()
	return m, m.Check()
}
