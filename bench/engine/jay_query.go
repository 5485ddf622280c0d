package engine

import "github.com/jaydb/jay"

// CreateIndexes implements Querier.
func (e *jayEngine) CreateIndexes() error {
	for _, ix := range Indexes {
		if err := e.db.EnsureIndex(e.ctx, collection, jay.Index{Name: ix.Name, Fields: []string{ix.Field}}); err != nil {
			return err
		}
	}
	return nil
}

// query translates q to Jay's query.
func (e *jayEngine) query(q *Query) jay.Query[jay.Document] {
	query := e.db.Query(collection)
	if q.Equal != nil {
		query = query.Where(jay.Eq(q.Field, q.Equal))
	} else {
		query = query.Where(jay.Between(q.Field, q.From, q.To))
	}
	if q.Descending {
		query = query.OrderBy("-" + q.Field)
	}
	if q.Limit > 0 {
		query = query.Limit(q.Limit)
	}
	return query
}

// Query implements Querier.
func (e *jayEngine) Query(q Query, fn Visit) error {
	var doc *jay.Document
	id := func() string { return doc.ID() }
	for d, err := range e.query(&q).Iter(e.ctx) {
		if err != nil {
			return err
		}
		doc = d
		if err := fn(id, d.Body()); err != nil {
			return err
		}
	}
	return nil
}

// Count implements Querier.
func (e *jayEngine) Count(q Query) (int, error) {
	n, err := e.query(&q).Count(e.ctx)
	return int(n), err
}

// Groups implements Grouper.
func (e *jayEngine) Groups(by, sum string) (map[string]Group, error) {
	rows := jay.Select[struct {
		By  string
		N   int
		Sum float64
	}](e.db.Query(collection).GroupBy(by), by+" as By", "count() as N", "sum("+sum+") as Sum")
	groups := make(map[string]Group)
	for row, err := range rows.Iter(e.ctx) {
		if err != nil {
			return nil, err
		}
		groups[row.By] = Group{row.N, row.Sum}
	}
	return groups, nil
}

// Edge implements Pager.
func (e *jayEngine) Edge(newest bool, limit int, fn Visit) error {
	order := "id()"
	if newest {
		order = "-id()"
	}
	for d, err := range e.db.Query(collection).OrderBy(order).Limit(limit).Iter(e.ctx) {
		if err != nil {
			return err
		}
		if err := fn(d.ID, d.Body()); err != nil {
			return err
		}
	}
	return nil
}
