package query

// Choose makes the group with these members, one for each field of the group by, the one to which
// AddEntry adds. A missing member counts as null. It makes the group if there is none.
func (g *Groups) Choose(members []Value) {
	g.entry = g.chosen(func(i int) Value {
		if members[i].IsMissing() {
			return null
		}
		return members[i]
	})
}

// AddEntry adds a document, of which only an index entry is known, to the group that Choose has
// chosen. values has, for each column, the only value that its field reaches, or missing. AddEntry
// does not read the values of columns without a field, and keeps no value. It does not compute min
// and max, which need AddExtreme, nor first and last, which need AddOrdered. Its errors are those
// of Add.
func (g *Groups) AddEntry(values []Value) error {
	for i, c := range g.columns {
		to, err := &g.entry.cells[i], error(nil)
		switch {
		case c.Func == FuncCount:
			to.total.count++
		case c.Func == FuncMin, c.Func == FuncMax, c.isPicked():
		case c.Func != FuncNone && !values[i].IsMissing():
			err = g.addValue(to, c.Func, values[i])
		}
		if err != nil {
			return g.ofGroup(err, g.entry, i)
		}
	}
	return g.within()
}

// AddExtreme adds a value that the field of a column with min or max reaches in some document of
// the group that Choose has chosen.
func (g *Groups) AddExtreme(column int, v Value) error {
	if v.IsMissing() {
		return nil
	}
	if err := g.addValue(&g.entry.cells[column], g.columns[column].Func, v); err != nil {
		return err
	}
	return g.within()
}

// AddOrdered adds a value that the field of a column with first or last reaches in some document of
// the group that Choose has chosen. order is the value of the order field in that document. A
// missing v counts as null. If order is missing, AddOrdered adds nothing.
func (g *Groups) AddOrdered(column int, order, v Value) error {
	if v.IsMissing() {
		v = null
	}
	g.take(&g.entry.cells[column], g.columns[column].Func, order, v)
	return g.within()
}

// within returns a *LimitError if the groups exceed their memory.
func (g *Groups) within() error {
	if g.limit > 0 && g.used > g.limit {
		return &LimitError{"bytes of groups", g.limit, g.used}
	}
	return g.pace.Err()
}

// Reset removes all documents and their groups. What Merge has read of g stays valid.
func (g *Groups) Reset() {
	clear(g.groups)
	clear(g.ordered)
	g.ordered, g.entry, g.used, g.listed = g.ordered[:0], nil, 0, 0
	if g.by == 0 {
		g.addOnly()
	}
}

// Join takes over columns of the same groups from other: column [i] of other becomes the column of
// g at columns[i]. It reports whether other has all groups of g. It leaves out further groups of
// other. other must not be used any more. Its memory counts for g from then on, within the sum of
// their bounds.
func (g *Groups) Join(other *Groups, columns []int) (all bool) {
	var key []byte
	joined := 0
	for _, from := range other.ordered {
		key = key[:0]
		for _, v := range from.keys {
			key = appendIdentity(key, v)
		}
		g.pace.Spend(len(key))
		to, found := g.groups[string(key)]
		if !found {
			continue
		}
		joined++
		for i, at := range columns {
			cell := &to.cells[at]
			cell.best, cell.order, cell.seen, cell.listed = from.cells[i].best, from.cells[i].order, from.cells[i].seen, from.cells[i].listed
		}
	}
	g.used += other.used
	g.listed += other.listed
	return joined == len(g.ordered)
}
