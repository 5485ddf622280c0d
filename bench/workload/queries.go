package workload

// queryWorkloads returns the workloads that need secondary indexes. There are
// none yet. Each sets the field queries, so that engines without
// engine.Querier leave it out, and creates its indexes at the beginning of its
// round, or, if it is loaded, in Run.Start:
//
//	{Name: "query by company, 1 of 10,000", Group: "queries", loaded: true, queries: true, round: queryCompany}
//	{Name: "bulk load, 3 indexes, unsynced", Group: "queries", fresh: true, queries: true, Writes: true, round: bulkLoadIndexed}
//
// The documents have fields for it: Company (10,000 values), Employee (100),
// OrderedAt and Freight (ranges), ShipTo.City and Lines.Product (nested). The
// fixture's bodies follow from number and revision, so that the expected answer
// can be counted with fixture.Source.
func queryWorkloads(Params) []Workload { return nil }
