package main

import "time"

// transactions are changes to transactions, sessions, bulk writers and patches.
var transactions = []mutation{
	{
		name:  "the commit does not compare versions",
		edits: []edit{{"internal/txn/readset.go", "; now != seen {", "; false && now != seen {"}},
		tests: []tests{{"tests/txn", "TestTx_History$|TestTx_WriteSkew$|TestTx_Counter$"}},
	},
	{
		name: "walks are not checked",
		edits: []edit{
			{"internal/txn/readset.go", "\treturn f.checkWalks(t.Writer.Env, t.Tx)\n", "\treturn nil\n"},
			{"internal/txn/readset.go", "\treturn errs.First(f.checkWalks(e, latest), latest.Close())\n", "\treturn latest.Close()\n"},
		},
		tests: []tests{{"tests/txn", "TestTx_PhantomSkew$"}},
	},
	{
		name:  "walks are only checked before the commit",
		edits: []edit{{"internal/txn/readset.go", "\treturn f.checkWalks(t.Writer.Env, t.Tx)\n", "\treturn nil\n"}},
		tests: []tests{{"tests/txn", "TestTx_LastMoment$"}},
	},
	{
		name:  "Get of a transaction reads the engine, not the snapshot",
		edits: []edit{{"internal/txn/txn.go", "t.docs.ReadFrom(t.ahead, t.snapshot, folded)", "t.docs.ReadFrom(t.ahead, t.db.Env.Engine, folded)"}},
		tests: []tests{{"tests/txn", "TestTx_History$|TestTx_OneMoment$"}},
	},
	{
		name:  "Documents of a transaction reads the engine, not the snapshot",
		edits: []edit{{"internal/txn/scan.go", "t.docs.NewCursor(over, t.snapshot)", "t.docs.NewCursor(over, t.db.Env.Engine)"}},
		tests: []tests{{"tests/txn", "TestTx_History$|TestTx_OneMoment$"}},
	},
	{
		name:  "the caller gets its result before the commit",
		edits: []edit{{"internal/txn/write.go", "\tstaged := *o // the commit writes its results here, and the caller reads those in o\n", "\tt.db.Writer.Publish([]*write.Op{o})\n\tstaged := *o\n"}},
		tests: []tests{{"tests/txn", "TestTx_Identities_NoHole$"}},
	},
	{
		name: "a commit in two halves",
		edits: []edit{{"internal/txn/update.go", "\t} else {\n\t\terr = commit()\n\t}\n", `	} else if half := len(t.ops) / 2; half > 0 {
		all := t.ops
		t.ops = all[:half]
		if err = commit(); err == nil {
			err = t.db.Writer.Transact(ctx, t.db.Env.Synced, func(in *write.Txn) error { return in.Run(all[half:]) })
		}
		t.ops = all
	} else {
		err = commit()
	}
`}},
		tests: []tests{{"tests/txn", "TestTx_History$"}},
	},
	{
		name:  "the commit of a transaction does not wait for the disk",
		edits: []edit{{"internal/txn/update.go", "t.db.Env.Synced && !inTurn && !t.lazy", "false"}},
		tests: []tests{{"tests/crash", "TestTx_Crash$"}},
	},
	{
		name:  "an in-doubt save always counts as saved",
		edits: []edit{{"internal/session/doubt.go", "\thappened, err := s.happened(ctx, s.inDoubt)\n", "\thappened, err := s.happened(ctx, s.inDoubt)\n\thappened = true\n"}},
		tests: []tests{{"tests/model", "TestSession_Model$"}, {".", "TestSession_UnknownOutcome"}},
	},
	{
		name:  "an in-doubt save always counts as lost",
		edits: []edit{{"internal/session/doubt.go", "\thappened, err := s.happened(ctx, s.inDoubt)\n", "\thappened, err := s.happened(ctx, s.inDoubt)\n\thappened = false\n"}},
		tests: []tests{{"tests/model", "TestSession_Model$"}, {".", "TestSession_UnknownOutcome"}},
	},
	{
		name: "a deletion that survived is made again",
		edits: []edit{
			{"internal/session/doubt.go", "\tif !s.db.Env.Engine.Shared() && a.db != s.db {", "\tif !s.db.Env.Engine.Shared() && a.db != s.db && !a.onlyDeletes() {"},
			{"internal/session/doubt.go", "\t\tif !found {\n\t\t\tdone = append(done, w)", "\t\tif !found && false {\n\t\t\tdone = append(done, w)"},
		},
		tests: []tests{{".", "TestSession_.*Delet"}},
	},
	{
		name:  "what is asked for while a save is in doubt is done with the save",
		edits: []edit{{"internal/session/doubt.go", "\ta.forced -= done.forced\n", "\ta.forced = 0\n"}},
		tests: []tests{{"internal/session", "TestDoubt_AskedForMeanwhile$"}},
	},
	{
		name:  "a cluster-wide save in doubt goes on with the versions of its rehearsal",
		edits: []edit{{"internal/session/doubt.go", "\t\t\tw.op.Header = d.Writes[i]\n", "\t\t\t_ = i\n"}},
		tests: []tests{{"tests/members", "TestSession_ClusterWide_Left$"}},
	},
	{
		name:  "a commit of which the coordinator knows nothing more counts as one that has not happened",
		edits: []edit{{"internal/write/undecided.go", "\tcase !known || index > 0 && u.intent.Writes > 0:", "\tcase known && !known:"}},
		tests: []tests{{"tests/members", "TestSession_ClusterWide_Left$"}},
	},
	{
		name:  "Refresh keeps the guard of an earlier Load",
		edits: []edit{{"internal/session/session.go", "\ts.cluster.forget(e.foldedID)\n", ""}},
		tests: []tests{{"internal/session", "TestClusterWide_ReadAnew$"}},
	},
	{
		name:  "a session that has put an attachment writes back the metadata that it loaded",
		edits: []edit{{"internal/session/save.go", "\t\tbody, header.Custom, header.Timed = e.doc.JSON(), e.doc.Header().Custom, e.doc.Header().Timed\n", "\t\tbody = e.doc.JSON()\n"}},
		tests: []tests{{"internal/session", "TestAttachments_MetadataOfOthers$"}},
	},
	{
		name:  "a flush does not wait for the disk",
		edits: []edit{{"internal/bulk/bulk.go", "sync := b.flush != nil || w.pace.slow()", "sync := w.pace.slow()"}},
		tests: []tests{{".", "TestBulkWriter_Flush_PowerLoss$|TestBulkWriter_DiskFails$"}},
	},
	{
		name:  "a BulkWriter that waits ignores its context",
		edits: []edit{{"internal/bulk/bulk.go", "\t\tcase <-filled:\n\t\tcase <-ctx.Done():\n\t\t\treturn ctx.Err()\n", "\t\tcase <-filled:\n"}},
		tests: []tests{{".", "TestBulkWriter_.*Context"}},
		hangs: 30 * time.Second,
	},
	{
		name:  "the speculative result of a patch is not validated",
		edits: []edit{{"internal/write/patch_speculate.go", "\tif g.watch != nil && t.Tx.Unchanged(g.watch, t.key) {", "\tif g.watch != nil {"}},
		tests: []tests{{"tests/model", "TestPatch_Model$|TestPatch_Concurrent"}, {".", "TestPatch_Concurrent$"}},
	},
	{
		name:  "the shop's stock is changed outside of its transaction",
		edits: []edit{{"examples/orders/shop/shop.go", "s.products.In(tx).Patch(ctx, id, jay.Increment(\"Stock\", pieces))", "s.products.Patch(ctx, id, jay.Increment(\"Stock\", pieces))"}},
		tests: []tests{{"examples/orders/shop", "TestShop_"}},
	},
}
