package main

// coordinators are changes to the coordinator on etcd, and to how a database uses one.
var coordinators = []mutation{
	{
		name:  "documents of a commit with the coordinator are written as a caller writes, to whom some have expired",
		edits: []edit{{"internal/write/cluster.go", "\terr = c.w.Background(context.WithoutCancel(ctx), true, c.apply)\n", "\terr = c.w.Load(context.WithoutCancel(ctx), true, c.apply)\n"}},
		tests: []tests{{"tests/members", "TestCluster_CompareExchange_ExpiresMeanwhile$"}},
	},
	{
		name:  "the intent of a commit goes without a sync",
		edits: []edit{{"internal/write/cluster.go", "\terr = c.w.Background(context.WithoutCancel(ctx), true, c.apply)\n", "\terr = c.w.Background(context.WithoutCancel(ctx), c.w.Env.Synced, c.apply)\n"}},
		tests: []tests{{"tests/members", "TestCluster_CompareExchange_Relaxed$"}},
	},
	{
		name:  "an undecided deletion locks no collection",
		edits: []edit{{"internal/write/cluster.go", "\tif !o.Verb.Deletes() {\n\t\treturn \"\", nil\n", "\tif true {\n\t\treturn \"\", nil\n"}},
		tests: []tests{{"tests/members", "TestCluster_CompareExchange_UndecidedDeletion$"}},
	},
	{
		name:  "an intent forgets the revisions that its writes keep",
		edits: []edit{{"internal/write/cluster.go", "KeepRevision: slices.Contains(in.KeepRevision, len(ops))", "KeepRevision: false"}},
		tests: []tests{{"tests/members", "TestCluster_CompareExchange_KeepRevision$"}},
	},
	{
		name:  "a seed is answered from what this node remembers",
		edits: []edit{{"internal/accord/identity.go", "\t\tif !s.fresh {", "\t\tif false {"}},
		tests: []tests{{"tests/members", "TestCluster_SeedIdentity_OfAnotherNode$"}},
	},
	{
		name:  "the result of a commit whose caller has left is not kept",
		edits: []edit{{"internal/write/cluster.go", "\t\treturn keepIntended(w.Env, t.Tx, in.Request, ops, index)\n", "\t\treturn nil\n"}},
		tests: []tests{{"tests/members", "TestCluster_RequestID_CallerLeaves$"}, {"tests/members", "TestCluster_RequestID_Crash$"}},
	},
	{
		name:  "a repeated call does not wait for a commit whose caller has left",
		edits: []edit{{"internal/write/cluster.go", "\t*c.leave, c.leaves = func() {}, *c.leave //", "\tc.leaves = func() {} //"}},
		tests: []tests{{"tests/members", "TestCluster_RequestID_CallerLeaves$"}},
	},
	{
		name:  "a repeated call does not wait for a commit of an earlier run",
		edits: []edit{{"internal/write/cluster.go", "\tif r == nil {\n\t\treturn func() {}\n\t}\n\tc.mu.Lock()\n", "\tif true {\n\t\treturn func() {}\n\t}\n\tc.mu.Lock()\n"}},
		tests: []tests{{"tests/members", "TestCluster_RequestID_Crash$"}},
	},
	{
		name:  "a result that cannot be kept is found when the coordinator has committed",
		edits: []edit{{"internal/write/cluster.go", "\t\tif c.once != nil {\n\t\t\tif err := c.once.checkSize(c.w.Env); err != nil {", "\t\tif c.once != nil {\n\t\t\tif err := c.once.checkSize(c.w.Env); false && err != nil {"}},
		tests: []tests{{"tests/members", "TestCluster_RequestID_TooLarge$"}},
	},
	{
		name:  "a transaction fails over what a concurrent one with its request ID has written",
		edits: []edit{{"internal/txn/update.go", "requests.Repetition(again) != nil {\n\t\t\t\treturn nil", "requests.Repetition(again) != nil {\n\t\t\t\treturn err"}},
		tests: []tests{{".", "TestRequestID_UpdateMeetsItself$"}},
	},
	{
		name:  "a commit that may have happened is sent again",
		edits: []edit{{"cluster/etcd/call.go", "\t\tmaybe := write && sent && !what.noEffect\n", "\t\tmaybe := false\n"}},
		tests: []tests{{"cluster/embedded", "TestFaults_OnceAtMost$"}},
	},
	{
		name:  "a commit that may have happened is sent again, since what has left counts as unsent",
		edits: []edit{{"cluster/etcd/connect.go", "\t\t\tsent.Store(true)\n", "\t\t\tsent.Store(false)\n"}},
		tests: []tests{{"cluster/embedded", "TestFaults_OnceAtMost$"}},
	},
	{
		name:  "a revision that goes back is taken",
		edits: []edit{{"cluster/etcd/call.go", "\tif header.Revision < before {", "\tif false {"}},
		tests: []tests{{"cluster/embedded", "TestRestored$"}},
	},
	{
		name:  "the newest index is not kept with a number",
		edits: []edit{{"internal/write/identity.go", "\treturn t.Writer.Cluster.StageSeen(t.Tx)\n", "\treturn nil\n"}},
		tests: []tests{{"tests/members", "TestCluster_Restored_"}},
	},
	{
		name:  "the newest index is not kept with a heartbeat",
		edits: []edit{{"internal/accord/node.go", "\t\treturn n.keepSeen(ctx, false) // not synced", "\t\treturn nil // not synced"}},
		tests: []tests{{"tests/members", "TestCluster_Restored_"}},
	},
	{
		name:  "the newest index is not kept at Close",
		edits: []edit{{"internal/accord/node.go", "\t\tif err := n.keepSeen(ctx, true); err != nil {\n\t\t\tn.warn", "\t\tif err := error(nil); err != nil {\n\t\t\tn.warn"}},
		tests: []tests{{"tests/members", "TestCluster_Restored_"}},
	},
	{
		name:  "indexes that creep are taken",
		edits: []edit{{"internal/accord/restored.go", "\tcase result.Index <= newest, restoredAt > 0 && result.Index < restoredAt+leap:\n", "\tcase result.Index <= newest:\n"}},
		tests: []tests{{"tests/members", "TestCluster_Restored_"}},
	},
	{
		name: "answers of another etcd cluster are taken",
		edits: []edit{
			{"cluster/etcd/call.go", "; header.ClusterId != known {", "; false && header.ClusterId != known {"},
			{"cluster/etcd/connect.go", "\t\tif etcd != 0 && etcd != status.Header.ClusterId {", "\t\tif false {"},
			{"cluster/etcd/connect.go", "; known != 0 && known != etcd {", "; false && known != etcd {"},
		},
		tests: []tests{{"cluster/embedded", "TestRefused_TwoClusters$"}},
	},
	{
		name:  "indexes begin again after a restore",
		edits: []edit{{"cluster/etcd/format.go", "\treturn (c.epoch.Load()-1)<<epochBits + uint64(revision)\n", "\treturn uint64(revision)\n"}},
		tests: []tests{{"cluster/embedded", "TestRestored$"}},
	},
	{
		name:  "the further requests of a read ask for the newest revision",
		edits: []edit{{"cluster/etcd/coordinator.go", "clientv3.OpGet(c.recordKey(key), clientv3.WithRev(revision))", "clientv3.OpGet(c.recordKey(key), clientv3.WithRev(0))"}},
		tests: []tests{{"cluster/embedded", "TestCompaction$"}},
	},
	{
		name:  "the further requests of a page ask for the newest revision",
		edits: []edit{{"cluster/etcd/coordinator.go", "clientv3.WithLimit(int64(limit)), clientv3.WithRev(revision))", "clientv3.WithLimit(int64(limit)), clientv3.WithRev(0))"}},
		tests: []tests{{"cluster/embedded", "TestCompaction$"}},
	},
	{
		name:  "the client waits for connections itself",
		edits: []edit{{"cluster/etcd/connect.go", "grpc.WaitForReady(false)", "grpc.WaitForReady(true)"}},
		tests: []tests{{"cluster/etcd", "TestDial_FailsFast$"}},
	},
	{
		name: "identities are handed out before their commit",
		edits: []edit{{"internal/accord/identity.go", "\tresult, err := n.try(ctx, &s.slot, s.pending)\n", `	n.identities.mu.Lock()
	for _, d := range s.pendingDraws {
		if !d.left {
			d.finish(d.first, nil)
			d.left, d.numbers = true, 0
		}
	}
	n.identities.mu.Unlock()
	result, err := n.try(ctx, &s.slot, s.pending)
`}},
		tests: []tests{{"tests/members", "TestCluster_Identities_UnknownOutcome$|TestCluster_Identities_Crash$|TestCluster_Partition$"}, {"cluster/embedded", "TestDatabases_Faults$"}},
	},
	{
		name: "a reservation is tried again without its conditions",
		edits: []edit{{"internal/accord/call.go", "\tresult, err := n.c.Commit(ctx, a.conditions, a.changes)\n", `	conditions := a.conditions
	if a.inDoubt {
		conditions = nil
	}
	result, err := n.c.Commit(ctx, conditions, a.changes)
`}},
		tests: []tests{{"tests/members", "TestCluster_Identities|TestCluster_Tag|TestCluster_Copies|TestCluster_Join"}, {"cluster/embedded", "TestDatabases_Faults$"}},
	},
	{
		name:  "a tag whose database has left is given again",
		edits: []edit{{"internal/accord/node.go", "\tcase !m.Left.IsZero():\n", "\tcase false:\n"}},
		tests: []tests{{"tests/members", "TestCluster_Identities|TestCluster_Tag|TestCluster_Copies|TestCluster_Join"}, {"cluster/embedded", "TestDatabases_Tags$"}},
	},
	{
		name:  "a run does not ask whether another one lives",
		edits: []edit{{"internal/accord/join.go", "\t\t\talive, err := n.isAlive(ctx, f)\n", "\t\t\talive, err := false, error(nil)\n"}},
		tests: []tests{{"tests/members", "TestCluster_Identities|TestCluster_Tag|TestCluster_Copies|TestCluster_Join"}, {"cluster/embedded", "TestDatabases_Tags$"}},
	},
	{
		name:  "a heartbeat that meets another run goes on",
		edits: []edit{{"internal/accord/node.go", "\t\treturn nil\n\t}\n\treturn n.markCopied(ctx, b.Run)\n", "\t\treturn nil\n\t}\n\tn.beat, n.beatIndex = b, beat.Index\n\treturn nil\n"}},
		tests: []tests{{"tests/members", "TestCluster_Identities|TestCluster_Tag|TestCluster_Copies|TestCluster_Join"}, {"cluster/embedded", "TestDatabases_Tags$"}},
	},
}
