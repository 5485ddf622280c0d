package main

// onPostgres are changes to the engine on PostgreSQL. Their tests need that: make mutations installs it.
var onPostgres = []mutation{
	{
		name:  "sqlkv: a function runs again when its call has returned while its group was being committed",
		edits: []edit{{"storage/sqlkv/member.go", "\tm.left = true // if", "\tm.left = m.left || at != committing // if"}},
		tests: []tests{{"storage/sqlkv", "TestUpdate_NotAfterReturn"}},
	},
	{
		name:  "sqlkv: a commit that a server ends at was not made",
		edits: []edit{{"storage/sqlkv/commit.go", " || ended(err) }", " }"}},
		tests: []tests{{"storage/sqlkv", "TestCommit_ServerPanics"}},
	},
	{
		name:  "sqlkv: a tracker takes commits with a hole for all of them",
		edits: []edit{{"storage/sqlkv/commit.go", "whole = whole && n == number+uint64(count);", "whole = whole && (n == number || count > 0);"}},
		tests: []tests{{"storage/sqlkv", "TestTracker_Hole"}},
	},
	{
		name:  "sqlkv: a call joins a group that reads an older state",
		edits: []edit{{"storage/sqlkv/lead.go", " || g.begun && !g.locked && len(g.staged) == 0 {", " {"}},
		tests: []tests{{"storage/sqlkv", "TestUpdate_JoinsNothingOld"}},
	},
	{
		name:  "sqlkv: keys that were read may have changed at the commit",
		edits: []edit{{"storage/sqlkv/commit.go", "\t\t\tunchanged = unchanged && !slices.ContainsFunc(keys, g.hasRead)\n", "\t\t\t_ = slices.Contains([]int(nil), 0)\n"}},
		tests: []tests{{"storage/sqlkv", "TestEngine_Two|TestIsolation_OrderOfCommits"}},
	},
	{
		name:  "sqlkv: ranges that were walked over may have changed at the commit",
		edits: []edit{{"storage/sqlkv/group.go", "\tg.ranges = append(g.ranges, bounds{bytes.Clone(lo), bytes.Clone(hi)})\n", ""}},
		tests: []tests{{"storage/sqlkv", "TestEngine_Two|TestUpdate_MeetsOthers"}},
	},
	{
		name:  "sqlkv: a transaction that is older than the log commits",
		edits: []edit{{"storage/sqlkv/commit.go", "whole = whole && n == number+uint64(count);", "whole = whole && (n == number+uint64(count) || count == 0 && n > number);"}},
		tests: []tests{{"storage/sqlkv", "TestPrune"}},
	},
	{
		name:  "sqlkv: a commit whose row has no keys is in conflict with nothing",
		edits: []edit{{"storage/sqlkv/commit.go", "\t\t\tunchanged = unchanged && len(g.reads)+len(g.ranges) == 0 && !g.everything\n", ""}},
		tests: []tests{{"storage/sqlkv", "TestUpdate_ManyKeys"}},
	},
	{
		name:  "sqlkv: keys that a snapshot has read ahead are not there",
		edits: []edit{{"storage/sqlkv/snapshot.go", "func(p pair) { s.first[string(p.key)] = p.value })", "func(pair) {})"}},
		tests: []tests{{"storage/sqlkv", "TestSnapshot_ReadsAhead"}},
	},
	{
		name:  "sqlkv: many keys that a tracker gets are found twice when the connection is lost",
		edits: []edit{{"storage/sqlkv/read.go", "\t\tdelete(m.at, string(p.key))\n", ""}},
		tests: []tests{{"storage/sqlkv", "TestTracker_GetsAgain"}},
	},
	{
		name:  "sqlkv: the row of the newest commit is deleted when it is old",
		edits: []edit{{"storage/sqlkv/statements.go", " and n < (select n from $s.commits order by n desc limit 1) returning n`", " returning n`"}},
		tests: []tests{{"storage/sqlkv", "TestPrune"}},
	},
	{
		name:  "sqlkv: a commit whose answer is lost counts as refused",
		edits: []edit{{"storage/sqlkv/commit.go", "func undecided(err error) bool { return lost(err) ||", "func undecided(err error) bool { return lost(err) && false ||"}},
		tests: []tests{{"storage/sqlkv", "TestUpdate_LostAnswer"}},
	},
	{
		name:  "sqlkv: a commit whose answer is lost counts as made",
		edits: []edit{{"storage/sqlkv/commit.go", "\tif committed {\n\t\te.committed(d.group", "\tif committed = true; committed {\n\t\te.committed(d.group"}},
		tests: []tests{{"storage/sqlkv", "TestUpdate_LostAnswer"}},
	},
	{
		name:  "sqlkv: the lock is not taken by transactions that keep meeting others",
		edits: []edit{{"storage/sqlkv/lead.go", "\tlockedAttempt = 2\n", "\tlockedAttempt = 200\n"}},
		tests: []tests{{"storage/sqlkv", "TestUpdate_MeetsOthers"}},
	},
	{
		name:  "sqlkv: a connection to another store is used",
		edits: []edit{{"storage/sqlkv/connect.go", "\tif !bytes.Equal(r.id, e.id) {\n", "\tif !bytes.Equal(r.id, e.id) && len(r.id) == 0 {\n"}},
		tests: []tests{{"storage/sqlkv", "TestEngine_OtherStore"}},
	},
	{
		name:  "sqlkv: the format of the store is looked at by Open alone",
		edits: []edit{{"storage/sqlkv/commit.go", "\tused, err := e.parseFeatures(g.features)\n\tif err != nil {\n\t\treturn err\n\t}\n", "\tused, _ := e.parseFeatures(g.features)\n"}},
		tests: []tests{{"storage/sqlkv", "TestEngine_NewerFormatMeanwhile"}},
	},
	{
		name:  "sqlkv: a commit that should wait for the disk does not",
		edits: []edit{{"storage/sqlkv/commit.go", "\trelaxed := e.relaxed && !sync\n", "\trelaxed := e.relaxed\n"}},
		tests: []tests{{"storage/sqlkv", "TestUpdate_WaitsForTheDisk"}},
	},
	{
		name:  "sqlkv: with durable reads, a commit does not wait for the disk",
		edits: []edit{{"storage/sqlkv/driver.go", "t.relaxed && !o.DurableReads,", "t.relaxed,"}},
		tests: []tests{{"storage/sqlkv", "TestUpdate_WaitsForTheDisk"}},
	},
	{
		name:  "sqlkv: a snapshot does not end",
		edits: []edit{{"storage/sqlkv/snapshot.go", "func() { s.end(storage.ErrSnapshotExpired) }", "func() {}"}},
		tests: []tests{{"storage/sqlkv", "TestSnapshot_Expires"}},
	},
	{
		name:  "sqlkv: a transaction does not see what others of its group have staged",
		edits: []edit{{"storage/sqlkv/group.go", "\tc, changed := g.staged[string(key)]\n\tif changed && c.add == nil {", "\tc, changed := change{}, false\n\tif changed && c.add == nil {"}},
		tests: []tests{{"storage/sqlkv", "TestEngine_One"}},
	},
	{
		name:  "sqlkv: what another process has added to a sum is lost",
		edits: []edit{{"storage/sqlkv/commit.go", "\t\t\tc = c.addedTo(current[name])\n", "\t\t\tc = c.addedTo(g.cache[name])\n"}},
		tests: []tests{{"storage/sqlkv", "TestEngine_Two"}},
	},
	{
		name:  "sqlkv: a page that is full of bytes is taken for the end of the range",
		edits: []edit{{"storage/sqlkv/read.go", "len(pairs) < p.rows && bytes < pageBytes, err", "len(pairs) < p.rows && bytes >= 0, err"}},
		tests: []tests{{"storage/sqlkv", "TestIterator_Model"}},
	},
	{
		name:  "sqlkv: a commit that is found is acknowledged though it is on no standby",
		edits: []edit{{"storage/sqlkv/commit.go", "\tb.Queue(e.sql.lock)\n\tb.Queue(\"commit\")\n", "\tb.Queue(e.sql.lock)\n\tb.Queue(\"rollback\")\n"}},
		tests: []tests{{"storage/sqlkv", "TestUpdate_NoStandby"}},
	},
	{
		name:  "sqlkv: a client that waits for a standby in vain cancels the commit",
		edits: []edit{{"storage/sqlkv/failover.go", "\t\tif w.committing.Load() {\n", "\t\tif w.committing.Load() && false {\n"}},
		tests: []tests{{"storage/sqlkv", "TestUpdate_NoStandby"}},
	},
	{
		name:  "sqlkv: a server that lacks commits is used",
		edits: []edit{{"storage/sqlkv/failover.go", "err == nil && number < seen {", "err == nil && number < seen && false {"}},
		tests: []tests{{"storage/sqlkv", "TestEngine_ServerIsBehind"}},
	},
	{
		name:  "sqlkv: a server that does not answer gets all the time",
		edits: []edit{{"storage/sqlkv/failover.go", "\t\tconfig.ConnectTimeout = share\n", "\t\t_ = share\n"}},
		tests: []tests{{"storage/sqlkv", "TestOpen_SeveralHosts"}},
	},
	{
		name:  "sqlkv: messages have the password of the address",
		edits: []edit{{"storage/driver.go", "\tif n, is := d.(Namer); is {\n", "\tif n, is := d.(Namer); is && name == \"\" {\n"}},
		tests: []tests{{"storage/sqlkv", "TestJay_NoPassword"}},
	},
	{
		name: "shared: definitions that a transaction sees are published before they are committed",
		edits: []edit{{"internal/shared/engine.go", "\tif err := e.reload(); err != nil {\n\t\treturn 0, err\n\t}\n\tif e.known.Load().version != version {",
			"\tif found, err := e.at(tx); err != nil {\n\t\treturn 0, err\n\t} else {\n\t\te.use(found)\n\t}\n\tif e.known.Load().version != version {"}},
		tests: []tests{{"internal/shared", "TestFollow_Uncommitted"}},
	},
	{
		name:  "sqlkv: an iterator of the engine takes the place of a snapshot",
		edits: []edit{{"storage/sqlkv/engine.go", "s := e.snapshot(e.iterators)", "s := e.snapshot(e.snapshots)"}},
		tests: []tests{{"storage/sqlkv", "TestSnapshot_TooMany"}},
	},
}
