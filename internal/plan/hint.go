package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
)

// hinted plans a query that names the index to use. It returns ErrNoIndex if there is no
// such index, or it cannot answer the query.
func (p *planner) hinted(c *catalog.Catalog) (*Plan, error) {
	ix := c.Find(p.q.From, p.q.UseIndex)
	switch {
	case ix == nil:
		return nil, p.refuseHint(notThere(c, p.q))
	case ix.Info.State == index.Building:
		return nil, p.refuseHint("it is still being built")
	case ix.Info.State != index.Ready:
		return nil, p.refuseHint("it is being dropped")
	case ix.Unknown != nil:
		return nil, p.refuseHint(strings.TrimPrefix(ix.Unknown.Error(), "jay: "))
	case !p.implies(ix):
		return nil, p.refuseHint(fmt.Sprintf("it has only documents with %.300s, and the query does not have this condition in these words", ix.Info.Where))
	}
	p.hint, p.indexes = true, []*catalog.Index{ix}
	for _, instead := range []func() (*Plan, error){p.kept, parts{p}.counted} {
		if pl, err := instead(); pl != nil || err != nil {
			if pl != nil {
				pl.Hinted = true
			}
			return pl, err
		}
	}
	if err := p.addPath(ix); err != nil {
		return nil, err
	}
	pl, err := p.union()
	if err != nil {
		return nil, err
	}
	if pl == nil && len(p.paths) == 0 && !ix.Ordered {
		return nil, p.refuseHint(fmt.Sprintf("a %.100s index on %s answers neither a condition nor the order of the query", ix.Info.Kind, strings.Join(ix.Info.Fields, ", ")))
	}
	if pl == nil && len(p.paths) == 0 {
		return nil, p.refuseHint(fmt.Sprintf("neither a condition nor the order of the query uses its first field, %s, and it does not have all fields that the query needs", ix.Info.Fields[0]))
	}
	if pl == nil {
		pl = p.over(p.paths[0], nil)
	}
	pl.Hinted = true
	return pl, nil
}

func (p *planner) refuseHint(why string) error {
	return fmt.Errorf("%w: the query names the index %.200q of %.200q: %s", errs.ErrNoIndex, p.q.UseIndex, p.q.From, why)
}

// namesShown is how many indexes the error for one that is not there names.
const namesShown = 10

// notThere says which indexes a collection has.
func notThere(c *catalog.Catalog, q *query.Query) string {
	var names []string
	for _, ix := range c.All {
		if ix.Collection == format.FoldName(q.From) && ix.Replaces == 0 {
			names = append(names, fmt.Sprintf("%.200q", ix.Info.Name))
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "the collection has no indexes"
	case len(names) > namesShown:
		names = append(names[:namesShown], fmt.Sprintf("and %d more", len(names)-namesShown))
	}
	return "the collection has none of this name, but " + strings.Join(names, ", ")
}
