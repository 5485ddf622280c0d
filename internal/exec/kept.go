package exec

import (
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// keptGroups are groups that an index keeps, as a query sees them.
type keptGroups struct {
	*plan.Kept
	snapshot storage.Reader
	hidden   map[string]bool  // see Run.hidden
	own      []*docs.Document // of the transaction
}

// readInto adds the groups to groups, and returns how many keys it has examined. What the transaction has written, and what has
// expired and is not deleted yet, is in the index otherwise than the query sees it: it is corrected by what the index
// has of these documents.
func (k *keptGroups) readInto(groups *query.Groups, pay func(bytes int) error) (keys int64, err error) {
	changes := catalog.GroupChanges{Hidden: k.hidden}
	for _, doc := range k.own {
		changes.Bodies = append(changes.Bodies, doc.JSON())
	}
	keys, err = k.Read(k.snapshot, changes, groups)
	if large, refused := (*query.LimitError)(nil), (*metadata.Error)(nil); errors.As(err, &large) || errors.Is(err, query.ErrNumber) || errors.As(err, &refused) {
		err = fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	if err == nil {
		err = pay(groups.Bytes())
	}
	return keys, err
}
