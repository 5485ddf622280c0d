package main

// numbers are changes to what keeps a number from coming twice.
var numbers = []mutation{
	{
		name:  "HiLo grants are not synced",
		edits: []edit{{"internal/hilo/hilo.go", "\terr := g.writer.Transact(ctx, true,", "\terr := g.writer.Transact(ctx, false,"}},
		tests: simulated,
	},
	{
		name: "Close lowers the ceiling of etags to the last change key, and Open ignores the mark",
		edits: []edit{
			{"internal/counters/counters.go", `			last := uint64(math.MaxInt64)
			if next, err := tx.Sequence(); err == nil {
				last = next - 1
			}
`, `			last, err := newestOf(c.env.Engine, c.env.Node)
			if err != nil {
				return err
			}
`},
			{"internal/counters/counters.go", "\tc.found = c.mark\n", "\tc.found = 0\n"},
		},
		tests: []tests{{"tests/crash", "TestCrash_DeletionsRemoved$"}},
	},
	{
		name:  "no block is reserved ahead under relaxed durability",
		edits: []edit{{"internal/counters/counters.go", "\tdefault:\n\t\trecord.Ceiling", "\tcase false:\n\t\trecord.Ceiling"}},
		tests: simulated,
	},
	{
		name:  "a commit does not wait for its sync",
		edits: []edit{{"storage/lsm/commit.go", "\t\tif r.waitsForDisk() {", "\t\tif false {"}},
		tests: []tests{{"tests/crash", "TestCrash_AtEverySync$"}},
	},
	{
		name:  "an identity is not stored",
		edits: []edit{{"internal/counters/counters.go", "\tt.Tx.Set(format.AppendKey(nil, format.SpaceIdentity, name), record.Append(nil), nil)\n\treturn nil", "\treturn nil"}},
		tests: []tests{{"tests/crash", "TestCrash_AtEverySync$"}},
	},
	{
		name: "a failed engine continues",
		edits: []edit{
			{"storage/lsm/queue.go", "\tif failure := e.failure.Load(); failure != nil {\n\t\treturn fmt.Errorf(\"%w: %w\", storage.ErrFailed, *failure)\n\t}\n\tif r.sync {", "\tif r.sync {"},
			{"storage/lsm/queue.go", "failure != nil {\n\t\tr.err = fmt.Errorf(", "failure != nil && false {\n\t\tr.err = fmt.Errorf("},
			{"storage/lsm/failure.go", "\t\tclose(e.failed)\n", ""},
		},
		tests: []tests{{"tests/crash", "TestCrash_DiskFails$"}, {"storage/lsm", "TestGroup_"}},
	},
	{
		name:  "a grant does not raise the mark",
		edits: []edit{{"ids/range.go", "\tm.Mark, m.Top = high, high\n", "\tm.Top = high\n"}},
		tests: []tests{{"ids", "TestMarks_Grant$|TestMarks_Return$"}},
	},
	{
		name:  "a grant ignores the mark",
		edits: []edit{{"ids/range.go", "max(documentMax, req.LastMax, m.Mark, 0)", "max(documentMax, req.LastMax, 0)"}},
		tests: []tests{{"tests/model", "TestModel$|TestLinear_Ranges$"}},
	},
	{
		name:  "a Max lowered by hand is honoured, whatever the mark is",
		edits: []edit{{"ids/range.go", "\told := max(documentMax, req.LastMax, m.Mark, 0)\n", "\told := max(documentMax, 0)\n\tif documentMax == 0 {\n\t\told = max(req.LastMax, m.Mark)\n\t}\n"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name:  "ends of ranges repeat",
		edits: []edit{{"ids/range.go", "\tif high <= m.Top {", "\tif false {"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name: "a return is accepted twice",
		edits: []edit{
			{"ids/range.go", "if len(m.Leases) == 0 || documentMax != m.Mark || m.Mark != end {", "if len(m.Leases) == 0 {"},
			{"ids/range.go", "\tm.Leases = m.Leases[:len(m.Leases)-1]\n\tif last >= newest.Low {\n\t\t// Numbers of this range are in use for good, above all older leases.\n\t\tm.Leases = m.Leases[:0]\n\t}\n", ""},
		},
		tests: []tests{{"tests/model", "TestModel$|TestLinear_Ranges$"}},
	},
	{
		name: "a lease is returned beneath a live one",
		edits: []edit{
			{"ids/range.go", "if len(m.Leases) == 0 || documentMax != m.Mark || m.Mark != end {", "if len(m.Leases) == 0 {"},
			{"ids/range.go", "\tnewest := m.Leases[len(m.Leases)-1]\n", "\tnewest := m.Leases[len(m.Leases)-1]\n\tfor _, l := range m.Leases {\n\t\tif l.End == end {\n\t\t\tnewest = l\n\t\t}\n\t}\n"},
		},
		tests: []tests{{"tests/model", "TestModel$|TestLinear_Ranges$"}},
	},
	{
		name: "etags are not recovered at Open",
		edits: []edit{
			{"internal/counters/counters.go", "\tc.env.Engine.StartSequence(ceiling)\n", ""},
			{"internal/counters/counters.go", "\tc.env.Engine.StartSequence(c.found)\n", ""},
		},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name:  "a copy keeps the leases of the original",
		edits: []edit{{"internal/settings/retag.go", "\t\tmarks.Leases = nil\n", ""}},
		tests: []tests{{"internal/settings", "TestRetag_LeasesVoid$"}},
	},
	{
		name:  "identities of a copy need no minimum",
		edits: []edit{{"internal/counters/counters.go", "\tif err == nil && record.Node != t.Reserved.env.Node {\n\t\terr = errs.ErrNeedsFloor", "\tif false {\n\t\terr = errs.ErrNeedsFloor"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		// It yields, so that goroutines meet between the two steps also where one processor is free.
		name: "a client loads the number that it draws instead of incrementing",
		edits: []edit{
			{"ids/client.go", "\t\"context\"\n", "\t\"context\"\n\t\"runtime\"\n"},
			{"ids/client.go", "\t\tif n := h.drawn.Add(1); n <= h.count {\n", `		n := h.drawn.Load() + 1
		runtime.Gosched()
		h.drawn.Store(n)
		if n <= h.count {
`},
		},
		tests: []tests{{"ids", "TestClient_Next_AtOnce$"}},
	},
}

// generations are changes to the older generations of HiLo, seeds and raised counters.
var generations = []mutation{
	{
		name:  "a block of an older generation looks only at the document",
		edits: []edit{{"ids/range.go", "\told := max(floor, m.Mark, 0)\n", "\told := max(floor, 0)\n"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name:  "a block of an older generation does not raise the mark",
		edits: []edit{{"ids/range.go", "\tm.Raise(old + size)\n", ""}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name: "the older generations have a mark of their own",
		edits: []edit{
			{"internal/hilo/legacy.go", "t.Marks(req.Tag)", "t.Marks(\"older-\" + req.Tag)"},
			{"internal/hilo/legacy.go", "t.SetMarks(req.Tag, marks)", "t.SetMarks(\"older-\"+req.Tag, marks)"},
		},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name:  "the older generations read the common mark and raise their own",
		edits: []edit{{"internal/hilo/legacy.go", "t.SetMarks(req.Tag, marks)", "t.SetMarks(\"older-\"+req.Tag, marks)"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name:  "a block of an older generation is not synced",
		edits: []edit{{"internal/hilo/legacy.go", "g.writer.Transact(ctx, true,", "g.writer.Transact(ctx, false,"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name:  "a block of HiLo2010 begins in the one under way",
		edits: []edit{{"ids/range.go", "\t\told += size - old%size\n", "\t\told -= old % size\n"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name:  "in a copy, older generations continue without a minimum",
		edits: []edit{{"internal/hilo/legacy.go", "\t\tif marks.Node != g.env.Node {", "\t\tif false {"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name:  "a seed is not synced",
		edits: []edit{{"internal/core/identity.go", "db.Writer.Transact(ctx, true, func(t *write.Txn) (err error) {", "db.Writer.Transact(ctx, false, func(t *write.Txn) (err error) {"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name: "a forced seed lowers the high-water mark on disk, not in memory",
		edits: []edit{{"internal/counters/counters.go", "\t\trecord.Ceiling = t.reserveIdentity(name, record.Last)\n", `		record.Ceiling = t.reserveIdentity(name, record.Last)
		if old, err := t.identity(name); err == nil && old.Last > record.Last {
			record.Ceiling = record.Last
		}
`}},
		tests: []tests{{"internal/counters", "TestSeedIdentity_ForcedCrash$"}},
	},
	{
		name:  "after a forced seed, there is no check whether the document exists",
		edits: []edit{{"ids/resolver.go", "func(n int64) (bool, error) { return c.Exists(r.IdentityID(request, n)) })", "func(n int64) (bool, error) { return false, nil })"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name:  "a raised HiLo counter does not bar returns below it",
		edits: []edit{{"ids/range.go", "\t\tm.Leases[i].Low = max(m.Leases[i].Low, n+1)\n", "\t\t_ = i\n"}},
		tests: []tests{{"ids", "TestMarks_Raise$"}, {"tests/model", "TestModel$"}},
	},
	{
		name:  "a client keeps its numbers when the counters are raised",
		edits: []edit{{"internal/core/counters.go", "\tdb.raiseClients(c.HiLo)\n", ""}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name: "a raised etag is not on disk",
		edits: []edit{{"internal/counters/counters.go", "\treturn c.writeEtagCeiling(ctx, max(n, c.Etags()), n)\n", `	c.mu.Lock()
	defer c.mu.Unlock()
	c.etag, c.floor = max(c.etag, n), max(c.floor, n)
	return nil
`}},
		tests: []tests{{"internal/counters", "TestRaiseEtag_Crash$"}},
	},
	{
		name:  "a raised identity stays where it was",
		edits: []edit{{"internal/counters/counters.go", "\tlast = max(last, n)\n", "\tlast = max(last, 0)\n"}},
		tests: []tests{{"tests/model", "TestModel$"}},
	},
	{
		name:  "numbers: two decimals of which one has many digits compare by what overflows",
		edits: []edit{{"query/number.go", "const manyUnits = int64(1e16)", "const manyUnits = int64(1e18)"}},
		tests: []tests{{"query", "TestFixed$"}},
	},
}
