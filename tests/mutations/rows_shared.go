package main

// sharing are changes to what a database does on a store that others may write to.
var sharing = []mutation{
	{
		name:  "shared: documents and heads are remembered",
		edits: []edit{{"internal/core/shared.go", "\town.Shares.Documents, own.Shares.Heads = -1, 0\n", ""}},
		tests: []tests{{"tests/shared", "TestDocuments$|TestStorm$"}},
	},
	{
		name:  "shared: heads are remembered",
		edits: []edit{{"internal/core/open.go", "heads.New(o.Shares.Heads)", "heads.New(8 << 20)"}},
		tests: []tests{{"tests/shared", "TestDocuments$|TestStorm$"}},
	},
	{
		name:  "shared: a transaction does not follow the catalog",
		edits: []edit{{"internal/core/shared.go", "\tdb.Indexes.Replace(d.catalog)\n", "\tif db.Indexes.Load() == nil || len(db.Indexes.Load().All) > 0 {\n\t\tdb.Indexes.Replace(d.catalog)\n\t}\n"}},
		tests: []tests{{"tests/shared", "TestIndexes$"}},
	},
	{
		name:  "shared: a query takes the catalog that is known, not that of its snapshot",
		edits: []edit{{"internal/shared/engine.go", "if k := e.known.Load(); k != nil && k.version == version {", "if k := e.known.Load(); k != nil {"}},
		tests: []tests{{"tests/shared", "TestIndexes$|TestStorm$"}},
	},
	{
		name:  "shared: rules of revisions are not followed",
		edits: []edit{{"internal/core/shared.go", "\tdb.Revisions.Replace(d.rules)\n", ""}},
		tests: []tests{{"tests/shared", "TestRevisions$"}},
	},
	{
		name:  "shared: settings are not followed",
		edits: []edit{{"internal/core/shared.go", "\tdb.Env.ExpirationDisabled.Store(d.settings.ExpirationDisabled)\n", ""}},
		tests: []tests{{"tests/shared", "TestExpiry$"}},
	},
	{
		name:  "shared: a write is refused by definitions that another process has removed",
		edits: []edit{{"internal/write/prepare.go", "\t\tif refusal == nil || again {", "\t\tif again = true; again {"}},
		tests: []tests{{"tests/shared", "TestRefusals_Followed$"}},
	},
	{
		name:  "shared: a read does not follow whether expired documents are hidden",
		edits: []edit{{"internal/env/env.go", "\tif e.ExactExpiry {\n\t\treturn e.Enter()\n\t}\n", ""}},
		tests: []tests{{"tests/shared", "TestReads_FollowExpiry$"}},
	},
	{
		name:  "shared: a call does not look at the version first",
		edits: []edit{{"internal/core/shared.go", "\tdb.Env.Fresh = db.shared.Refresh\n", ""}},
		tests: []tests{{"tests/shared", "TestExpiry$|TestIndexes_BuiltByBoth$"}},
	},
	{
		name:  "shared: a change of definitions does not raise their version",
		edits: []edit{{"internal/shared/engine.go", "\tif t.changes {\n", "\tif false && t.changes {\n"}},
		tests: []tests{{"tests/shared", "TestIndexes$"}},
	},
	{
		name:  "shared: etags come from memory",
		edits: []edit{{"internal/shared/engine.go", "\t\tt.etag, t.drawn = max(last, t.engine.least.Load()), true\n", "\t\tif known := t.engine.least.Load(); known > 0 {\n\t\t\tlast = known\n\t\t}\n\t\tdefer func() { t.engine.StartSequence(t.etag) }()\n\t\tt.etag, t.drawn = last, true\n"}},
		tests: []tests{{"tests/shared", "TestNumbers$"}},
	},
	{
		name:  "shared: identities are reserved",
		edits: []edit{{"internal/counters/counters.go", "\tcase t.Reserved.env.Engine.Shared():\n\t\tt.Tx.RequireSync() // to the other processes, numbers up to a reservation would count as used\n", ""}},
		tests: []tests{{"tests/shared", "TestNumbers_Durable$"}},
	},
	{
		name:  "shared: the last etag is the one that this process knows",
		edits: []edit{{"internal/counters/counters.go", "if err == nil && c.env.Engine.Shared() {", "if false && c.env.Engine.Shared() {"}},
		tests: []tests{{"tests/shared", "TestRaised$|TestStorm$"}},
	},
	{
		name:  "shared: the agenda is trusted",
		edits: []edit{{"internal/core/open.go", "\tdb.Writer.Agenda.Shared = db.shared != nil\n", ""}},
		tests: []tests{{"tests/shared", "TestExpiry$"}},
	},
	{
		name:  "shared: chunks are removed",
		edits: []edit{{"internal/attachments/sweep.go", "\tif !s.env.Engine.Shared() {\n\t\ts.worker.Wake()\n\t}\n", "\ts.worker.Wake()\n"}},
		tests: []tests{{"tests/shared", "TestAttachments$"}},
	},
	{
		name:  "shared: a build writes entries of an index that is gone",
		edits: []edit{{"internal/indexer/build.go", "\t\tcase now == nil || now.Info.State == index.Dropping:\n\t\t\treturn droppedError(ix.Info.Name) // by another process, which would not find these entries\n\t\tcase now.Info.State == index.Ready:", "\t\tcase now != nil && now.Info.State == index.Ready:"}},
		tests: []tests{{"tests/shared", "TestIndexes_BuiltByBoth$"}},
	},
	{
		name:  "shared: a list of indexes replaces the one that another has written",
		edits: []edit{{"internal/indexer/indexer.go", "\t\tif in.indexes.Load() != old {\n", "\t\tif false && in.indexes.Load() != old {\n"}},
		tests: []tests{{"tests/shared", "TestIndexes_DeclaredByBoth$|TestStorm$"}},
	},
	{
		name:  "shared: an index that another has declared is declared again",
		edits: []edit{{"internal/indexer/task.go", "\tif found, err := adopt(r, t); found || err != nil {\n\t\treturn err\n\t}\n", ""}},
		tests: []tests{{"tests/shared", "TestIndexes_DeclaredByBoth$|TestStorm$"}},
	},
	{
		name:  "shared: settings are made anew by whoever opens a new store",
		edits: []edit{{"internal/settings/settings.go", "\t\tif err == nil { // another process was quicker\n", "\t\tif false && err == nil {\n"}},
		tests: []tests{{"tests/shared", "TestOpen_TogetherWithOtherSettings$"}},
	},
	{
		name:  "shared: a definition changes, and those who look into the store go on with the old one",
		edits: []edit{{"internal/shared/owner.go", "\t\t\to.version++\n", "\t\t\to.version = 1\n"}},
		tests: []tests{{"internal/shared", "TestOwner$"}},
	},
	{
		name:  "calls: an owner without the option carries out the calls of a client that lies",
		edits: []edit{{"internal/look/call.go", "; s.Call == nil || s.Only != nil &&", "; s.Only != nil &&"}},
		tests: []tests{{"internal/look", "TestCall_Refused$"}},
	},
	{
		name:  "calls: a client may have any number of calls",
		edits: []edit{{"internal/look/call.go", "case len(c.calls.running) >= maxCalls:", "case false:"}},
		tests: []tests{{"internal/look", "TestCall_Bounds$"}},
	},
	{
		name:  "calls: a connection that ends in a call says that nothing was changed",
		edits: []edit{{"internal/look/call.go", "\tif err != nil && e.broken != nil {", "\tif false {"}},
		tests: []tests{{"internal/look", "TestCall_Ends$"}, {"internal/calls", "TestCalls_Kill$"}},
	},
	{
		name:  "calls: a member of the arguments that is not known is ignored",
		edits: []edit{{"internal/ask/ask.go", "\td.DisallowUnknownFields()\n", ""}},
		tests: []tests{{"internal/calls", "TestCalls_Hostile$"}},
	},
	{
		name:  "calls: the condition of a write is left out on the way",
		edits: []edit{{"internal/write/carried.go", "\t\tExpected: c.Expected, Body: c.Body", "\t\tBody: c.Body"}},
		tests: []tests{{"internal/calls", "TestCalls$"}},
	},
	{
		name:  "calls: the socket writes without the option",
		edits: []edit{{"internal/core/open.go", "if !o.LookWrites {", "if false {"}},
		tests: []tests{{"internal/calls", "TestCalls_Refused$"}},
	},
	{
		name:  "calls: the owner carries out any call that a client sends without the option",
		edits: []edit{{"internal/look/call.go", "s.Call == nil || s.Only != nil && !slices.Contains(s.Only, name)", "s.Call == nil"}},
		tests: []tests{{"internal/look", "TestCall_Only$"}},
	},
	{
		name:  "keys: a rotation through the socket does not compare the newest key",
		edits: []edit{{"storage/lsm/rotate.go", "if expected != \"\" && key.ID != expected {", "if false {"}},
		tests: []tests{{"keys", "TestRotate_Look$"}},
	},
	{
		name:  "look: the credentials of another user are not compared",
		edits: []edit{{"internal/look/peer_linux.go", "case peer.Uid != 0 &&", "case false &&"}},
		tests: []tests{{"internal/look", "TestLook_OtherUser$"}},
	},
	{
		name:  "look: an old snapshot stays open",
		edits: []edit{{"internal/look/answer.go", "\t\t_ = h.Snapshot.Close() // of a reader: nothing is lost\n\t\th.Snapshot = nil\n", ""}},
		tests: []tests{{"internal/look", "TestLook_SnapshotExpires$"}},
	},
	{
		name:  "look: a client that takes nothing is waited for",
		edits: []edit{{"internal/look/wire.go", "w.conn.SetWriteDeadline(time.Now().Add(stall))", "w.conn.SetWriteDeadline(time.Time{})"}},
		tests: []tests{{"internal/look", "TestLook_StuckClient$"}},
	},
	{
		name:  "look: a page goes on behind the key that follows",
		edits: []edit{{"internal/look/iterator.go", "append(bytes.Clone(it.page[it.i].key), 0)", "append(bytes.Clone(it.page[it.i].key), 0, 0)"}},
		tests: []tests{{"internal/look", "TestLook_SameAsEngine$"}},
	},
	{
		name:  "look: a client has another file checked than it names",
		edits: []edit{{"internal/look/files.go", "if f.Name == name {", "if f.Name == name || f.Bytes > 0 {"}},
		tests: []tests{{"internal/look", "TestLook_Files$"}},
	},
	{
		name:  "look: large values are sent without being paid for",
		edits: []edit{{"internal/look/listen.go", "if c.need == nil || len(value) < leastNeeded {", "if true {"}},
		tests: []tests{{"internal/look", "TestAnswerer$"}},
	},
	{
		name:  "look: files of a database that is looked into are not checked",
		edits: []edit{{"internal/recovery/check.go", "db.OnDisk().(storage.FileChecker)", "db.Env.Engine.(storage.FileChecker)"}},
		tests: []tests{{".", "TestLook_DamagedFile$"}},
	},
	{
		name:  "leases: a process that has lost its lease commits",
		edits: []edit{{"internal/shared/engine.go", "\t\t\tif e.Guard != nil {\n", "\t\t\tif false && e.Guard != nil {\n"}},
		tests: []tests{{"tests/shared", "TestTags_Fenced$"}},
	},
	{
		name:  "leases: a tag that a live process has is taken over",
		edits: []edit{{"internal/leases/leases.go", "\t\tif now != before {\n", "\t\tif before = now; false {\n"}},
		tests: []tests{{"tests/shared", "TestTags$"}},
	},
	{
		name:  "leases: those of dead processes stay",
		edits: []edit{{"internal/leases/leases.go", "\t\tif o.same++; o.same < h.missed(holder) {\n", "\t\tif true {\n"}},
		tests: []tests{{"tests/shared", "TestTags_Over$"}},
	},
	{
		name:  "leases: a lost one is never taken again",
		edits: []edit{{"internal/leases/leases.go", "\t\t\ttx.RequireSync()\n\t\t\treturn h.set(tx, h.tag, h.next)\n", "\t\t\ttaken = false\n\t\t\treturn nil\n"}},
		tests: []tests{{"tests/shared", "TestTags_Over$|TestTags_Fenced$"}},
	},
	{
		name:  "leases: Close keeps the tag",
		edits: []edit{{"internal/leases/leases.go", "\t\ttx.Delete(h.key)\n\t\ttx.Delete(format.LeaseKey(format.LeaseRenewal, h.tag))\n\t\treturn nil\n", "\t\treturn nil\n"}},
		tests: []tests{{"tests/shared", "TestTags$"}},
	},
	{
		name:  "leases: two processes work on a subscription",
		edits: []edit{{"internal/leases/work.go", "\tif holder.Session == \"\" {\n\t\treturn false, nil\n\t}\n", "\tif true || holder.Session == \"\" {\n\t\treturn false, nil\n\t}\n"}},
		tests: []tests{{"tests/shared", "TestSubscriptions$"}},
	},
	{
		name:  "leases: a worker does not notice that another process has its subscription",
		edits: []edit{{"internal/subs/claim.go", "\t\t\tgo w.watch()\n", ""}},
		tests: []tests{{"tests/shared", "TestSubscriptions$"}},
	},
	{
		name:  "leases: every process deletes what expires",
		edits: []edit{{"internal/expiry/expiry.go", "\t\tif err == nil && !mine { // another process does it\n", "\t\tif false && !mine {\n"}},
		tests: []tests{{"tests/shared", "TestExpiry_OneWorker$"}},
	},
	{
		name:  "server: a store is closed when it is idle",
		edits: []edit{{"server/internal/serve/standbys.go", " || d.standby != nil || d.address != \"\" }", " || d.standby != nil }"}},
		tests: []tests{{"server", "TestStores_Idle$"}},
	},
	{
		name:  "server: a store whose node tag is that of another process stays so",
		edits: []edit{{"server/internal/serve/stores.go", "\treturn d.taken >= patience\n", "\treturn false\n"}},
		tests: []tests{{"server", "TestStores_TagTaken$"}},
	},
	{
		name:  "server: each server of a store makes up an ID of the database",
		edits: []edit{{"server/internal/serve/stores.go", "\tif err := stored.Decode(&own); err != nil {\n", "\tif own.ID = NewID(); stored == nil {\n"}},
		tests: []tests{{"server", "TestStores_SameDatabase$"}},
	},
	{
		name:  "server: the configuration of clients is read once",
		edits: []edit{{"server/internal/serve/databases.go", "\tif !d.InStore() {\n\t\treturn nil\n", "\tif true || !d.InStore() {\n\t\treturn nil\n"}},
		tests: []tests{{"server", "TestStores_Definitions$"}},
	},
	{
		name:  "leases: every process settles indexes",
		edits: []edit{{"internal/indexer/settle.go", "\tif works == nil {\n\t\treturn true, nil\n", "\tif true || works == nil {\n\t\treturn true, nil\n"}},
		tests: []tests{{"tests/shared", "TestSettling_OneWorker$"}},
	},
	{
		name:  "leases: what other processes have written is not settled",
		edits: []edit{{"internal/indexer/settle.go", "\t\ts.looks.Every(SettleLook, s.wakeForWork)\n", ""}},
		tests: []tests{{"tests/shared", "TestSettling_OneWorker$"}},
	},
	{
		name:  "leases: a worker gives back a subscription that the next one of its process has",
		edits: []edit{{"internal/subs/slot.go", "\t\tcase at.leaving:\n", "\t\tcase false:\n"}, {"internal/subs/slot.go", "\t\tat.leaving = true\n\t\ts.mu.Unlock()\n", "\t\tat.remove()\n\t\ts.mu.Unlock()\n"}, {"internal/subs/slot.go", "\t\tat.leaving = false\n\t}\n\tat.remove()\n", "\t} else {\n\t\tat.remove()\n\t}\n"}},
		tests: []tests{{"tests/shared", "TestSubscriptions_Turns$"}},
	},
	{
		name:  "leases: IDs of other processes are of another database to a report",
		edits: []edit{{"internal/inspect/inspect.go", "\t\t\tin.nodeTags[in.db.Env.Rules.Fold(tag)] = true\n", "\t\t\t_ = tag\n"}},
		tests: []tests{{"tests/shared", "TestTags_IDs$"}},
	},
	{
		name:  "leases: IDs of other processes are of another database to Verify",
		edits: []edit{{"internal/verify/leases.go", "\t\t\tv.nodeTags[v.rules.Fold(name)] = true\n", ""}},
		tests: []tests{{"tests/shared", "TestTags_IDs$"}},
	},
	{
		name:  "indexes of two processes: one that replaces is refused as another process was first",
		edits: []edit{{"internal/indexer/ensure.go", "if a.What == IsMade && !(o.Replace && errors.Is(a.Task.BuildErr, errs.ErrIndexExists)) {", "if a.What == IsMade {"}},
		tests: []tests{{"tests/shared", "TestIndexes_ReplacedByBoth$"}},
	},
	{
		name:  "indexes of two processes: a number of a run that was overtaken stays",
		edits: []edit{{"internal/indexer/team.go", "\t\t\tt.Number = 0 // of a run", "\t\t\t// of a run"}},
		tests: []tests{{"tests/shared", "TestIndexes_DeclaredOtherwise$"}},
	},
	{
		name:  "indexes of two processes: who helps to drop an index drops those of its name",
		edits: []edit{{"internal/indexer/task.go", "Number: ix.Number, drop: drop}", "Number: ix.Number, drop: drop, all: drop}"}},
		tests: []tests{{"tests/shared", "TestIndexes_DeclaredAfterDrop$"}},
	},
	{
		name:  "indexes of two processes: one that is to replace an index that is gone still names it",
		edits: []edit{{"internal/catalog/catalog.go", "\t\t\tr.release(number)\n", ""}},
		tests: []tests{{"tests/shared", "TestIndexes_ReplacedIsRefused$"}},
	},
	{
		name:  "shared: a cursor goes on with one iterator after the other one has failed",
		edits: []edit{{"internal/docs/cursor.go", "return w.failed == nil && (w.clusteredOK || w.othersOK)", "return w.clusteredOK || w.othersOK"}},
		tests: []tests{{"tests/shared", "TestSnapshots_ExpireInBuild$|TestSnapshots_ExpireInScan$"}},
	},
	{
		name:  "shared: an attachment is entered into indexes with the body that an earlier run has found",
		edits: []edit{{"internal/write/stage_attachments.go", "\to.indexed, o.entries, o.refused = nil, nil, nil // those of", "\t// those of"}},
		tests: []tests{{"tests/shared", "TestIndexes_AttachedWhileBuilt$"}},
	},
}
