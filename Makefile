# Two commands do everything on a fresh machine:
#
#   make demo    imports real JSON and shows every kind of ID
#   make test    runs the tests of the store
#
# make check is for every change, make ci for every push; make nightly is the rest.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck

# The modules of the repository: go.work names them all (TestModules). "go test ./..."
# in the root is the root's module and nothing else, so targets name the packages.
MODULES = . bench bench/cluster bench/postgres cluster/embedded cluster/etcd cmd/jay examples/postgres jayotel jayprometheus keys/passphrase schema/jsonschema server storage/sqlkv tests tests/browser tests/cluster tools transfer
PACKAGES = ./... ./cluster/embedded/... ./cluster/etcd/... ./cmd/jay/... ./examples/postgres/... ./jayotel/... ./jayprometheus/... ./keys/passphrase/... ./schema/jsonschema/... ./server/... ./storage/sqlkv/... ./tests/... ./tests/browser/... ./tests/cluster/... ./tools/release ./transfer/...

# The long suites, a module of their own.
SUITES = ./tests/...

# Short runs make samples of the cases of long tests, others each day; JAY_SEED repeats a day.
JAY_SEED ?= $(shell date -u +%Y%m%d)
export JAY_SEED

# Packages that are tested at once: many tests wait, for disks, elections and processes.
ATONCE = $$(( $$(getconf _NPROCESSORS_ONLN) + 1 ))

# Where short tests have their files, if TMPDIR does not say it: in memory, if the system has a
# folder of it with 4 GiB free in which programs may run. Files on a disk take half of their time.
FILES = $(shell { test -w /dev/shm && ! grep -q '^[^ ]* /dev/shm .*noexec' /proc/mounts \
	&& test "$$(df -Pk /dev/shm | awk 'NR == 2 { print $$4 }')" -ge 4194304 && echo /dev/shm; } 2>/dev/null || echo /tmp)
test test-short invariants race: export TMPDIR ?= $(FILES)

# The oldest Go that may compile package jay: that of the root's go.mod.
OLDEST = go$(shell sed -n 's/^go //p' go.mod)

# The other modules that it may compile. The rest require modules that need a newer one.
OLDER = schema/jsonschema server storage/sqlkv transfer

.PHONY: help fetch demo small test test-short test-full check ci nightly format vet lint invariants race race-full later engine encrypted bin/systems cross cross-full modules oldest oldest-types campaigns readme interop cluster postgres failover postgres-full browser release-try screenshots studio-million bench bench-full bench-smoke memory attachments backup standby crash kill-reads kill-changes storm simulation odd kinds revisions schemas places damage hunt hostile expiry feeds cluster-faults formats fuzz mutations build

help:
	@echo "demo        imports real JSON and shows every kind of ID"
	@echo "test        tests of the store, of the longest a sample, another one each day; JAY_SEED repeats one"
	@echo "test-short  the same of everything: command, server, cluster, suites, rules of the repository"
	@echo "test-full   all tests in full, and the long suites with invariants"
	@echo "check       before every push: format vet lint test-short invariants race cross"
	@echo "ci          what CI runs: check with test-full, oldest-types small readme demo interop browser"
	@echo "nightly     the rest: modules oldest engine encrypted cross-full race-full bench-smoke cluster postgres-full release-try and campaigns, hours"
	@echo "cluster     nodes that agree through etcd, on a network that fails; installs etcd"
	@echo "postgres    the storage engine on PostgreSQL, which it installs; postgres-full: suites on it, kills of the server"
	@echo "failover    PostgreSQL that fails over, which it installs: FAILOVERS=20 kills, cuts and standstills of its primary server"
	@echo "engine      tests that say nothing about files, on another engine than Pebble's"
	@echo "encrypted   the same tests, with databases in encrypted files"
	@echo "later       the short tests with a clock that is ahead by AHEAD=400 days"
	@echo "build       bin/jay"
	@echo "release-try a release that is tagged in a clone, and taken by go get and go install"
	@echo "browser     the studio in Chromium; screenshots: the pictures of docs/studio.md"
	@echo "studio-million a million documents in the studio's list: time beside curl, memory"
	@echo "bench       the benchmarks, minutes; bench-full: hours; bench-smoke: does it run?"
	@echo "memory      the peak memory of processes with 64 MiB, 256 MiB and 1 GiB that use everything"
	@echo "attachments an attachment of 1 GiB in less than 64 MB of memory"
	@echo "backup      random chains of backups, 300 kills of one being made, and 200,000 documents: MB/s and memory"
	@echo "crash       500 processes killed while they write"
	@echo "standby     300 kills of a source and its standby, and 200 random histories of both"
	@echo "kill-reads  300 kills: what readers had seen must be there"
	@echo "kill-changes 300 kills: what feeds had shown, and what subscriptions had sent"
	@echo "storm       every verb at once for ten minutes, and five with the race detector"
	@echo "simulation  a million steps of a whole database in one thread, with what a machine does to it"
	@echo "odd         documents of odd shapes for ten minutes: queries with and without indexes, and every endpoint of the server"
	@echo "kinds       10,000 random histories of each kind of index, with power failures and restores"
	@echo "revisions   500 random histories of documents against a model of their revisions"
	@echo "schemas     a million documents validated beside writers: time, memory, writes per second"
	@echo "places      10,000 random histories of places, with crashes, against plain trigonometry"
	@echo "damage      every byte and file of databases damaged: what does a program see?"
	@echo "hunt        1,000 flipped bits in all files: found by jay check, or harmless"
	@echo "hostile     requests that want or hold much, against a server, and a handler in a program, that have a gigabyte"
	@echo "expiry      documents that expire: random histories, crashes, writers beside the sweeper"
	@echo "cluster-faults three members of etcd in one process, for two minutes of faults"
	@echo "feeds       change feeds: 16 writers and 8 readers for a minute"
	@echo "formats     a million documents through every format of import and export, and imports that are killed"
	@echo "fuzz        a minute for each fuzz target"
	@echo "mutations   changes to the code, one at a time: does a test notice each?"

# The command without what is long to compile: decision 0170. Without cgo, so that make test finds compiled
# what both need.
SMALL = nosqlite,nomember,nopostgres,noetcd
demo:
	CGO_ENABLED=0 $(GO) run -tags $(SMALL) ./cmd/jay demo

# What a user of package jay compiles, without cgo, as linking each test program with a compiler of C takes
# twice as long. Vet, the rules of the repository, the command, the server, the cluster and the suites are left to
# make test-short and make ci.
test:
	@echo "JAY_SEED=$(JAY_SEED) repeats the samples of this run; files of tests are in $(TMPDIR)"
	all=$$($(GO) list ./...) && CGO_ENABLED=0 $(GO) test -vet=off -short -p $(ATONCE) -timeout 20m $$(echo "$$all" | grep -v /internal/lint)

test-short:
	@echo "JAY_SEED=$(JAY_SEED) repeats the samples of this run; files of tests are in $(TMPDIR)"
	$(GO) test -short -vet=off -p $(ATONCE) -timeout 20m $(PACKAGES)

# Each test in full, once: the suites with checks of what the comments promise, but for those
# of memory, as such a build takes more, and one that it skips. make postgres has its own.
MEMORY = ./tests/bounds ./tests/idle
POSTGRES = ./storage/sqlkv/...
test-full:
	$(GO) test -vet=off -p $(ATONCE) -timeout 30m $(filter-out $(SUITES) $(POSTGRES),$(PACKAGES)) $(MEMORY)
	all=$$($(GO) list $(SUITES)) && \
		$(GO) test -vet=off -p $(ATONCE) -tags invariants -timeout 30m $$(echo "$$all" | grep -Ev '/tests/($(subst $() ,|,$(notdir $(MEMORY))))$$')
	$(GO) test -vet=off -run 'TestVerify_Hunt$$|TestView_KeepsNoReadSet$$|TestCluster_Allocations$$' -timeout 30m ./tests/verify ./tests/txn ./tests/members

build:
	$(GO) build -o bin/jay ./cmd/jay

# The version is not published: any that no release has.
release-try:
	$(GO) run ./tools/release -only-try v0.0.1

check: format vet lint test-short invariants race cross

# What mostly compiles, downloads or waits is done two at a time, at the end. The suites have had
# their invariants in test-full.
ci: INVARIANTS = .
ci: format vet lint test-full invariants race
	$(MAKE) -j2 --output-sync=target postgres browser cross oldest-types small readme demo interop

nightly: modules oldest engine encrypted cross-full race-full bench-smoke cluster postgres-full release-try later campaigns

# The tests with a clock that is ahead: none may depend on the day on which it was written. An overlay changes time.Now of the standard
# library.
AHEAD = 400
later:
	mkdir -p bin/later
	sed 's/^\tsec, nsec, mono := runtimeNow()$$/&\n\tsec += $(AHEAD) * 86400/' "$$($(GO) env GOROOT)/src/time/time.go" > bin/later/time.go
	grep -q '^	sec += $(AHEAD) ' bin/later/time.go
	printf '{"Replace":{"%s":"%s"}}' "$$($(GO) env GOROOT)/src/time/time.go" "$(CURDIR)/bin/later/time.go" > bin/later/overlay.json
	$(GO) test -short -vet=off -timeout 60m -overlay bin/later/overlay.json $(PACKAGES)

# What later parts of ci need from others than Go's proxy. .ci/run fetches it while the first parts
# compile; a part that does not find it fetches it itself, or fails.
fetch:
	GOTOOLCHAIN=$(OLDEST) $(GO) version
	./tests/browser/run.sh install
	./server/interop/run.sh install
	./storage/sqlkv/install.sh

campaigns: simulation odd hostile crash kill-reads kill-changes storm kinds revisions schemas places expiry feeds backup standby attachments formats hunt cluster-faults fuzz damage mutations

format:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt these:"; echo "$$files"; exit 1; fi

# The benchmark, whose peers take minutes to compile, is vetted by modules.
vet:
	$(GO) vet $(PACKAGES)

lint:
	$(GO) tool $(STATICCHECK) $(PACKAGES)

# Short tests with checks of what the comments promise. The suites have them in test-full.
INVARIANTS = . ./tests/storm ./tests/index
invariants:
	$(GO) test -vet=off -tags invariants -short -timeout 20m $(INVARIANTS)

# Short tests with the race detector, but for two suites whose subject is how goroutines meet: they
# run in full. ONE are the packages that are left out, as nothing of theirs starts a goroutine
# (TestRace_LeavesOut has the exceptions); sample.OneGoroutine leaves out single tests.
ONE = /(examples|internal/lint)(/|$$)\
	|/jay/(index|jayotel|jayprometheus|jaytest|metadata|patch|query|storage|transfer)$$\
	|/internal/(agenda|attachments|codec|counters|docs|exchange|fold|format|heads|instant|jsonpath|keybytes)$$\
	|/internal/(pieces|plan|raven|recovery|requests|salvage|sample|script|settings|tally|text|txn|verbs)$$\
	|/(server/studio|tools/release)$$\
	|/tests/(browser|cluster|damage|edits|idle|language|mutations|readme|verify)$$
# The detector lets a process that ends wait a second for reports of other threads; here a twentieth of it.
race: export GORACE = atexit_sleep_ms=50
race:
	all=$$($(GO) list $(PACKAGES)) && $(GO) test -race -short -vet=off -p $(ATONCE) -timeout 20m \
		$$(echo "$$all" | grep -Ev '$(subst $() ,,$(ONE))|/tests/(txn|dialogue)$$')
	$(GO) test -race -vet=off -timeout 20m ./tests/txn ./tests/dialogue

# Tests that say nothing about files, with databases in a store of another engine than Pebble's, in
# which no document is remembered; and in one that others may write to, but for tests of what is
# not there: see ErrShared. tests/members is left out there, as Options.Cluster is ErrShared.
UNSHARED = Rename|Cached|Document_Scribbled|Refresh_Scribbled|DocumentCache|TestExpiry_Moved$$|RaiseCounters|RaisedMark|RaisedIsNotEdited|ExpiredAndRevisions
engine:
	JAY_ENGINE=memory $(GO) test -short -timeout 20m . ./tests/edits ./tests/members ./tests/model ./tests/query ./tests/storm ./tests/txn
	JAY_ENGINE=shared $(GO) test -short -timeout 20m -skip '$(UNSHARED)' .
	JAY_ENGINE=shared $(GO) test -short -timeout 20m ./tests/edits ./tests/model ./tests/query ./tests/storm ./tests/txn
	JAY_ENGINE=shared $(GO) test -short -timeout 20m -skip '$(UNSERVED)' ./tests/index

# The same tests, with databases whose files are encrypted, on a disk in memory; but for tests of what a database in memory refuses, and
# of backups to files of the system, which a database with Options.FS does not write, and of estimates without tables.
UNFILED = TestCheckpoint_Refused|TestBackupStored|TestDB_BackupTo|TestQuery_GivesUp
encrypted:
	JAY_ENGINE=encrypted $(GO) test -short -timeout 20m -skip '$(UNFILED)' . ./tests/edits ./tests/members ./tests/model ./tests/query ./tests/txn

race-full:
	$(GO) test -race -timeout 120m $(PACKAGES)

# Without cgo, and for the other systems: types in seconds (0100), and in nightly builds. The benchmark,
# whose peers take minutes to compile, is checked so, and runs at night.
cross: bin/systems
	GOOS=linux bin/systems $(PACKAGES) ./bench/... ./bench/cluster/... ./bench/postgres/...
	GOOS=darwin GOARCH=arm64 bin/systems $(PACKAGES)
	GOOS=windows GOARCH=amd64 bin/systems $(PACKAGES)

cross-full:
	CGO_ENABLED=0 $(GO) build $(PACKAGES)
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) build $(PACKAGES)
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 $(GO) build $(PACKAGES)

bin/systems:
	$(GO) build -o $@ ./internal/lint/systems

# Each module as it is without the others: with the versions of its own go.mod. The
# linter's module has no package, only a tool.
modules:
	@for m in $(filter-out tools,$(MODULES)); do echo "vet $$m"; (cd $$m && GOWORK=off $(GO) vet ./...) || exit 1; done
	cd tools && GOWORK=off $(GO) tool $(STATICCHECK) -version

# The root with the oldest Go that its go.mod allows, and without go.work: its tests, and
# its types against that version's standard library. Go fetches that version as it fetches
# modules; if it cannot, this fails.
oldest:
	GOWORK=off GOTOOLCHAIN=$(OLDEST) $(GO) version | grep -F ' $(OLDEST) '
	GOWORK=off GOTOOLCHAIN=$(OLDEST) $(GO) test -short -timeout 20m ./...

# The command without its optional parts.
small:
	CGO_ENABLED=0 $(GO) vet -tags $(SMALL) ./cmd/jay
	CGO_ENABLED=0 $(GO) test -vet=off -tags $(SMALL) -run 'TestLeftOut$$' ./cmd/jay

oldest-types: bin/systems
	GOWORK=off GOTOOLCHAIN=$(OLDEST) $(GO) version | grep -F ' $(OLDEST) '
	GOWORK=off GOTOOLCHAIN=$(OLDEST) bin/systems ./...
	for m in $(OLDER); do (cd $$m && GOWORK=off GOTOOLCHAIN=$(OLDEST) "$(CURDIR)/bin/systems" ./...) || exit 1; done

# The program and the commands of README, in an empty module and in a clone.
readme:
	JAY_README=1 $(GO) test -count=1 -timeout 10m ./tests/readme

# RavenDB's client for Node against jay serve; installs Node and the client.
interop:
	GO="$(GO)" ./server/interop/run.sh

# Nodes that agree through etcd, embedded and that of the system, on a network whose lines
# are pulled, with what 16 clients saw checked; installs etcd. JAY_CLUSTER_ROUNDS=20 for a long run.
cluster:
	GO="$(GO)" ./tests/cluster/install.sh
	JAY_CLUSTER=1 JAY_NETNS=must $(GO) test -count=1 -timeout 120m -v ./tests/cluster

# The storage engine on PostgreSQL, which it installs, and what several processes share on it.
postgres: export JAY_NEED_POSTGRES = 1
postgres:
	./storage/sqlkv/install.sh
	$(GO) test -vet=off -count=1 -timeout 20m $(POSTGRES)
	JAY_ENGINE=postgres $(GO) test -vet=off -short -count=1 -timeout 20m ./tests/shared
	JAY_SQL_PROCESSES=20s $(GO) test -vet=off -run 'TestProcesses$$' -count=1 -timeout 10m -v ./tests/txn
	$(GO) test -vet=off -run 'TestStore$$|TestServe_Stores$$' -count=1 -timeout 10m ./cmd/jay

# PostgreSQL with two standbys that Patroni fails over, in network namespaces: the example of it, and so many failovers, while three
# processes write. It needs root.
FAILOVERS = 20
failover: export JAY_NEED_POSTGRES = 1
failover: export TMPDIR ?= $(FILES)
failover:
	./storage/sqlkv/install.sh cluster
	JAY_EXAMPLE_POSTGRES=1 $(GO) test -vet=off -count=1 -timeout 30m ./examples/postgres
	JAY_SQL_FAILOVERS=$(FAILOVERS) $(GO) test -vet=off -run 'TestFailover$$' -count=1 -timeout 120m -v ./tests/txn

# Suites that say nothing about files, on PostgreSQL; failovers; 100 kills of the server; and ten minutes of faults of processes, server and connections. Left out are what plans cost, which is what the
# planner finds out with an engine whose snapshots remember counts; builds by tables; and how much memory the engine takes for a long value. The root's module does not
# require a client of PostgreSQL: an overlay adds the file to its tests that links one.
UNSERVED = TestPlan_|TestTables_|TestTogether_WritersWin|TestTogether_OneViolated
postgres-full: postgres failover
	JAY_ENGINE=postgres $(GO) test -short -timeout 120m -p 1 -skip '$(UNSERVED)' ./tests/edits ./tests/index ./tests/model ./tests/query ./tests/storm ./tests/txn
	JAY_ENGINE=postgres $(GO) test -vet=off -short -timeout 120m -overlay tests/onpostgres/testdata/overlay.json -skip '$(UNSHARED)|TestCollections_LargeDocument' .
	JAY_SQL_KILLS=100 $(GO) test -run 'TestKill$$' -count=1 -timeout 60m -v ./storage/sqlkv
	JAY_SQL_PROCESSES=10m $(GO) test -run 'TestProcesses$$' -count=1 -timeout 60m -v ./tests/txn

# The studio in Chromium; installs it and Node.
browser:
	GO="$(GO)" ./tests/browser/run.sh

# The pictures of docs/studio.md, from the pages as they are.
screenshots:
	GO="$(GO)" JAY_SCREENSHOTS="$(CURDIR)/docs/images" ./tests/browser/run.sh -run 'TestScreenshots$$' -v

# A million documents in the studio's list: its ways beside those of curl, and its memory.
studio-million:
	GO="$(GO)" JAY_STUDIO_DOCUMENTS=1000000 ./tests/browser/run.sh -run 'TestMany_' -v

# The peaks of processes with bounds of 64 MiB, 256 MiB and 1 GiB that use everything. It fails if one is above the aim of docs/operations.md#size, and so it does for 64 MiB.
memory:
	cd bench && $(GO) run ./memory

# An attachment of 1 GiB, and the memory that it takes.
attachments:
	JAY_ATTACHMENT_BYTES=1073741824 $(GO) test -run 'TestAttachments_Memory$$' -count=1 -timeout 30m -v ./tests/bounds

# Random histories in chains of backups, compared key by key; kills of a process that keeps backups; then the speed and the memory of
# a backup of 200,000 documents and of its restore.
backup:
	JAY_BACKUP_ROUNDS=500 $(GO) test -run 'TestBackup_Chain_Exact$$' -count=1 -timeout 60m -v ./internal/recovery
	JAY_KILL_BACKUPS=300 $(GO) test -run 'TestKill$$' -count=1 -timeout 60m -v ./backups
	JAY_BACKUP_DOCUMENTS=200000 $(GO) test -run 'TestBackup_Speed$$' -count=1 -timeout 60m -v .

# 300 kills of a source and its standby, and 200 random histories of both.
standby:
	JAY_KILL_STANDBY_KILLS=300 JAY_STANDBY_HISTORIES=200 $(GO) test -run 'TestKill$$|TestStandby_History$$' -count=1 -timeout 60m -v ./standby

# The long ones, for a quiet evening.
crash:
	JAY_CRASH_ROUNDS=500 $(GO) test -run 'TestKill$$' -count=1 -timeout 60m -v ./tests/crash

# What readers saw before each of 300 kills must be there behind it.
kill-reads:
	JAY_KILL_READS=300 $(GO) test -run 'TestKillReads$$' -count=1 -timeout 60m -v ./tests/crash

# What feeds had shown before each of 300 kills must be there behind it, and subscriptions
# send again what was not acknowledged, and nothing else.
kill-changes:
	JAY_KILL_CHANGES=300 $(GO) test -run 'TestKillChanges$$' -count=1 -timeout 60m -v ./tests/crash

# Every verb at once, for ten minutes, and with the race detector for another five.
storm:
	JAY_STORM=10m $(GO) test -run 'TestStorm$$' -count=1 -timeout 30m -v ./tests/storm
	JAY_STORM=5m $(GO) test -race -run 'TestStorm$$' -count=1 -timeout 30m -v ./tests/storm

# A whole database in one thread, from seeds: docs/simulation.md.
simulation:
	JAY_SIMULATION=1000000 $(GO) test -run 'TestSimulation$$|TestSimulation_Thresholds|TestSimulation_FourGiB' -count=1 -timeout 0 -v ./tests/simulation

# Documents of odd shapes: the answers of queries with and without indexes, and random requests to every endpoint.
odd:
	CGO_ENABLED=0 JAY_ODD=10m $(GO) test -vet=off -run 'TestOdd$$' -count=1 -timeout 0 -v ./tests/odd

# Random histories of documents against a model of their revisions.
KINDS = ./internal/kindtest ./internal/fulltext ./internal/groups ./internal/places ./internal/vectors
kinds:
	JAY_KIND_HISTORIES=10000 $(GO) test -run '/Campaign' -count=1 -timeout 0 $(KINDS)
	JAY_GROUP_HISTORIES=100 $(GO) test -run 'TestGroups_History$$' -count=1 -timeout 0 ./internal/groups
	JAY_KIND_HISTORIES=10000 $(GO) test -run 'TestScores_Histories' -count=1 -timeout 0 ./internal/score

revisions:
	JAY_REVISION_ROUNDS=500 $(GO) test -run 'TestRevisions_Model$$' -count=1 -timeout 60m -v ./tests/model

# Random histories of documents with places, and crashes, against an oracle that is not S2.
places:
	JAY_PLACES=10000 $(GO) test -run 'TestPlaces_Oracle$$' -count=1 -timeout 120m -v ./internal/places

# A million documents, validated against a schema in the background while others write.
schemas:
	cd schema/jsonschema && JAY_SCHEMA_DOCUMENTS=1000000 $(GO) test -run 'TestPass_BesideWriters$$' -count=1 -timeout 60m -v .

# Documents that expire: random histories, crashes, and writers beside the sweeper.
expiry:
	JAY_EXPIRY_ROUNDS=50 $(GO) test -run 'TestExpiry_' -count=1 -timeout 60m .
	JAY_EXPIRY_ROUNDS=20 $(GO) test -race -run 'TestExpiry_Stress' -count=1 -timeout 60m .

# Databases with a flipped byte, a missing file and the like: what a program
# sees of them. It fails if data vanishes in silence after a close. Then encrypted databases,
# of which no change may be silent.
damage:
	$(GO) run ./tests/damage -out damage.json
	JAY_SEALED_ROUNDS=10000 $(GO) test -run 'TestSealed_Damage$$|TestSealed_LostAndMixedKeys$$' -count=1 -timeout 60m -v ./storage/lsm

# Change feeds: 16 writers and 8 readers for a minute, and with the race detector.
feeds:
	JAY_FEEDS=1m $(GO) test -run 'TestChanges_WritersAndReaders$$' -count=1 -timeout 10m -v ./tests/model
	JAY_FEEDS=20s $(GO) test -race -run 'TestChanges_WritersAndReaders$$' -count=1 -timeout 10m -v ./tests/model

# Databases on three members of etcd, while leaders are killed and connections cut.
cluster-faults:
	cd cluster/embedded && JAY_CLUSTER_FAULTS=2m $(GO) test -run 'TestDatabases_Faults$$' -count=1 -timeout 15m -v .

# A million documents through every format, with MB/s and memory; imports that are killed;
# and the memory of an import of 1 GiB.
formats:
	JAY_FORMATS=1000000 $(GO) test -run 'TestFormats_RoundTrip$$' -count=1 -timeout 60m -v ./cmd/jay
	JAY_IMPORT_KILLS=30 $(GO) test -run 'TestFormats_ResumeAfterKill$$' -count=1 -timeout 30m -v ./cmd/jay

# A thousand flipped bits in all files: found by Verify, or harmless.
hunt:
	JAY_HUNT=1000 $(GO) test -run 'TestVerify_Hunt$$' -count=1 -timeout 120m -v ./tests/verify

hostile:
	JAY_HOSTILE=1 $(GO) test -run 'TestHostile$$|TestHostile_Mounted$$' -count=1 -timeout 120m -v ./server
	CGO_ENABLED=0 JAY_HOSTILE=1 $(GO) test -run 'TestHostile$$' -count=1 -timeout 60m -v ./server

fuzz:
	$(GO) test -run xxx -fuzz FuzzScan -fuzztime 60s ./metadata
	$(GO) test -run xxx -fuzz FuzzDecode -fuzztime 60s ./metadata
	$(GO) test -run xxx -fuzz FuzzStored -fuzztime 60s ./internal/groups
	$(GO) test -run xxx -fuzz FuzzRules -fuzztime 60s ./ids
	$(GO) test -run xxx -fuzz FuzzExtract -fuzztime 60s ./internal/jsonpath
	$(GO) test -run xxx -fuzz FuzzApply -fuzztime 60s ./patch
	$(GO) test -run xxx -fuzz FuzzAppendKey -fuzztime 60s ./tests/language
	$(GO) test -run xxx -fuzz FuzzParse -fuzztime 60s ./query
	$(GO) test -run xxx -fuzz FuzzCSV -fuzztime 60s ./transfer
	$(GO) test -run xxx -fuzz FuzzBodies -fuzztime 60s ./transfer
	$(GO) test -run xxx -fuzz FuzzFromExtended -fuzztime 60s ./transfer
	$(GO) test -run xxx -fuzz FuzzDump -fuzztime 60s ./transfer
	$(GO) test -run xxx -fuzz FuzzServeHTTP -fuzztime 60s ./server
	$(GO) test -run xxx -fuzz FuzzElements -fuzztime 60s ./server/internal/raven
	$(GO) test -run xxx -fuzz FuzzDefinition -fuzztime 60s ./server/internal/raven
	$(GO) test -run xxx -fuzz FuzzSplitUpdate -fuzztime 60s ./server/internal/verbs
	$(GO) test -run xxx -fuzz FuzzParse -fuzztime 60s ./internal/script

# Changes to the code, one at a time, each of which named tests must notice, in full; and how many of
# them short tests notice. The tests of a package are built once, with all changes in them.
mutations:
	./storage/sqlkv/install.sh
	$(GO) run ./tests/mutations -once -both

# bench takes minutes, bench-full hours; both write tables, JSON and plots into
# docs/benchmarks.
bench:
	cd bench && $(GO) run . -out ../docs/benchmarks
	cd bench && $(GO) run ./ids

bench-full:
	cd bench && $(GO) run . -full -out ../docs/benchmarks
	cd bench && $(GO) run . -growth -out ../docs/benchmarks
	cd bench && $(GO) run ./ids

bench-smoke:
	cd bench && $(GO) test ./...
	cd bench && $(GO) run ./ids -smoke
	cd bench && $(GO) run ./measure -smoke
	cd bench && $(GO) run ./sums -smoke
	cd bench && $(GO) run ./search -smoke
	cd bench && $(GO) run ./standbys -smoke
	cd bench && $(GO) run ./encrypted -smoke
	cd bench && $(GO) run ./disk -smoke
	cd bench && $(GO) run ./looked -smoke
	cd bench && $(GO) run ./plans -smoke
	cd bench && $(GO) run ./http -smoke
	cd bench && $(GO) run . -smoke
	cd bench/cluster && $(GO) run . -smoke
	./storage/sqlkv/install.sh
	cd bench/postgres && $(GO) run . -smoke
