package main

import "time"

// storing are changes to groups of transactions in the engine.
var storing = []mutation{
	{
		name:  "what a failed transaction of a group staged is not rolled back",
		edits: []edit{{"storage/lsm/queue.go", "\t\tif r.err != nil {\n\t\t\te.staged.rollback(before)\n", "\t\tif false {\n\t\t\te.staged.rollback(before)\n"}},
		tests: []tests{{"storage/lsm", "TestGroup_|TestStaging_"}},
	},
	{
		name:  "a rollback leaves what was looked for in the map",
		edits: []edit{{"storage/lsm/staging.go", "\t\t\tdelete(s.newest, h)\n", "\t\t\t_ = h\n"}},
		tests: []tests{{"storage/lsm", "TestGroup_|TestStaging_"}},
	},
	{
		name:  "a rollback loses the older entry of a key",
		edits: []edit{{"storage/lsm/staging.go", "\t\t\ts.newest[h] = older\n", "\t\t\tdelete(s.newest, h)\n"}},
		tests: []tests{{"storage/lsm", "TestGroup_|TestStaging_"}},
	},
	{
		name:  "numbers of a failed transaction are kept",
		edits: []edit{{"storage/lsm/queue.go", "\terr := r.fn(tx)\n", "\terr := r.fn(tx)\n\tg.sequence = tx.sequence\n"}},
		tests: []tests{{"storage/lsm", "TestGroup_"}},
	},
	{
		name:  "an iterator in a group sees only what is committed",
		edits: []edit{{"storage/lsm/transaction.go", "\tif t.before > maxPassed || t.stagedWithin(t.before, lo, hi) {\n\t\tt.rerun = true", "\tif false {\n\t\tt.rerun = true"}},
		tests: []tests{{"storage/lsm", "TestGroup_"}},
	},
	{
		name:  "a look-up in a group sees only what is committed",
		edits: []edit{{"storage/lsm/transaction.go", "\tif i := t.find(key); i >= 0 {\n\t\tif t.entries[i].added", "\tif i := t.find(key); i >= 0 && false {\n\t\tif t.entries[i].added"}},
		tests: []tests{{"storage/lsm", "TestGroup_"}},
	},
	{
		name:  "what was read before a group counts as unchanged, though the group has written it",
		edits: []edit{{"storage/lsm/transaction.go", " && t.find(key) < 0\n", "\n"}},
		tests: []tests{{"storage/lsm", "TestGroup_"}},
	},
	{
		name:  "a failed sync is not reported to the transactions that it was for",
		edits: []edit{{"storage/lsm/commit.go", "\tcase failure != nil:\n", "\tcase false:\n"}},
		tests: []tests{{"storage/lsm", "TestGroup_"}},
	},
	{
		name:  "a batch goes to the log without its sync",
		edits: []edit{{"storage/lsm/commit.go", "\t\tif sync {\n\t\t\treturn e.db.ApplyNoSyncWait", "\t\tif false {\n\t\t\treturn e.db.ApplyNoSyncWait"}},
		tests: []tests{{"storage/lsm", "TestGroup_"}},
	},
	{
		name:  "a transaction without writes is answered before what it has read is on disk",
		edits: []edit{{"storage/lsm/commit.go", "\t\t\tcase inDoubt && e.dependsOnDisk(r):\n", "\t\t\tcase inDoubt && false:\n"}},
		tests: []tests{{"storage/lsm", "TestGroup_"}},
	},
	{
		name:  "a group has no leader after the one before it",
		edits: []edit{{"storage/lsm/queue.go", "\tmore := e.queue.endLead(g.small)\n", "\tmore := e.queue.endLead(g.small) && false\n"}},
		tests: []tests{{"storage/lsm", "TestGroup_"}},
		hangs: 30 * time.Second,
	},
	{
		name:  "a feature is used though the format could not be raised",
		edits: []edit{{"storage/lsm/commit.go", "\t\terr = e.uses.raise(g.needs, e.controlFS.FS, e.path, e.log)\n", "\t\t_ = e.uses.raise(g.needs, e.controlFS.FS, e.path, e.log)\n"}},
		tests: []tests{{"storage/lsm", "TestFeatures_DiskFails"}},
	},
	{
		name:  "a feature that is used later replaces those in the file of the format",
		edits: []edit{{"storage/lsm/features.go", "\tformat := u.known.Format(before | needs | u.files)\n", "\tformat := u.known.Format(needs | u.files)\n"}},
		tests: []tests{{"storage/lsm", "TestFeatures_FirstUse"}},
	},
	{
		name:  "the header of a backup names no features",
		edits: []edit{{"internal/recovery/backup.go", "Features: format.Features, ", ""}},
		tests: []tests{{"internal/recovery", "TestFeatures_Kept"}},
	},
	{
		name:  "a repaired database has the lowest format",
		edits: []edit{{"internal/salvage/salvage.go", "\t\t{\"format\", c.raiseFormat},\n", ""}},
		tests: []tests{{"internal/recovery", "TestFeatures_Kept"}},
	},
}
