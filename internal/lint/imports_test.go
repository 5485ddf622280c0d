package lint_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/jaydb/jay"

// Ensure that the leaves do not know one another, that Pebble stays in
// storage/lsm and in the disks of storagetest, that the command, the examples, the benchmarks and the campaigns
// under tests use the public API alone, and that nothing but the standard library and the field's
// dependencies reaches those who import package jay. The files are parsed,
// not listed, as a cached test would not see them change.
func TestImports(t *testing.T) {
	leaf := func(name string) string { return module + "/" + name }
	type rule struct {
		dir     string
		allowed []string // beside the standard library
	}
	rules := []rule{
		{".", []string{
			leaf("cluster"),
			leaf("ids"),
			leaf("index"),
			leaf("internal/accord"),
			leaf("internal/attachments"),
			leaf("internal/backup"),
			leaf("internal/budget"),
			leaf("internal/builder"),
			leaf("internal/bulk"),
			leaf("internal/calls"),
			leaf("internal/catalog"),
			leaf("internal/computed"),
			leaf("internal/copier"),
			leaf("internal/codec"),
			leaf("internal/collections"),
			leaf("internal/core"),
			leaf("internal/counts"),
			leaf("internal/definitions"),
			leaf("internal/docs"),
			leaf("internal/env"),
			leaf("internal/errs"),
			leaf("internal/exchange"),
			leaf("internal/exec"),
			leaf("internal/feed"),
			leaf("internal/files"),
			leaf("internal/format"),
			leaf("internal/hilo"),
			leaf("internal/indexer"),
			leaf("internal/inspect"),
			leaf("internal/instant"),
			leaf("internal/live"),
			leaf("internal/look"),
			leaf("internal/native"),
			leaf("internal/observe"),
			leaf("internal/parallel"),
			leaf("internal/parts"),
			leaf("internal/recovery"),
			leaf("internal/relay"),
			leaf("internal/requests"),
			leaf("internal/revisions"),
			leaf("internal/schemas"),
			leaf("internal/sealed"),
			leaf("internal/session"),
			leaf("internal/settings"),
			leaf("internal/shared"),
			leaf("internal/subs"),
			leaf("internal/txn"),
			leaf("internal/write"),
			leaf("metadata"),
			leaf("patch"),
			leaf("query"),
			leaf("schema"),
			leaf("storage"),
			leaf("storage/lsm"),
			"github.com/tidwall/gjson",
		}},
		{"ids", []string{leaf("internal/fold"), leaf("internal/relay"), "github.com/google/uuid", "github.com/go-openapi/inflect"}},
		{"internal/jsonpath", nil},
		{"index", []string{leaf("internal/errs"), leaf("internal/spelling")}},
		{"schema", []string{leaf("internal/errs")}},
		{"schema/jsonschema", []string{leaf("schema"), leaf("internal/codec"), leaf("internal/errs"), "github.com/santhosh-tekuri/jsonschema/v6", "golang.org/x/text"}}, // a module of its own
		{"internal/schemas", []string{leaf("metadata"), leaf("schema"), leaf("storage"), leaf("internal/background"), leaf("internal/definitions"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/files", []string{leaf("ids"), leaf("storage/lsm")}},
		{"internal/fold", nil},
		{"internal/native", nil},
		{"internal/spelling", nil},
		{"internal/text", []string{"github.com/blevesearch/snowballstem", "github.com/clipperhouse/uax29/v2/words", "golang.org/x/text/unicode/norm"}},
		{"internal/pieces", nil},
		{"internal/relay", nil},
		{"internal/agenda", nil},
		{"internal/shared", []string{leaf("ids"), leaf("storage"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/background", nil},
		{"internal/look", []string{leaf("storage")}},
		{"internal/ask", []string{leaf("schema"), leaf("cluster"), leaf("ids"), leaf("index"), leaf("metadata"), leaf("patch"), leaf("query"), leaf("storage"), leaf("internal/errs"), leaf("internal/requests"), leaf("internal/shared")}},
		{"internal/calls", []string{leaf("ids"), leaf("internal/ask"), leaf("internal/builder"), leaf("internal/collections"), leaf("internal/core"), leaf("internal/errs"), leaf("internal/indexer"), leaf("internal/rekey"), leaf("internal/requests"), leaf("internal/write")}},
		{"internal/rekey", []string{leaf("internal/ask"), leaf("internal/core"), leaf("storage")}},
		{"internal/expiry", []string{leaf("metadata"), leaf("storage"), leaf("internal/background"), leaf("internal/agenda"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/settings"), leaf("internal/write")}},
		{"internal/backup", []string{leaf("ids"), leaf("index"), leaf("metadata"), leaf("storage"), leaf("internal/attachments"), leaf("internal/catalog"), leaf("internal/counters"), leaf("internal/counts"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/sealed"), leaf("internal/settings"), "github.com/klauspost/compress/zstd"}},
		{"internal/accord", []string{leaf("internal/budget"), leaf("cluster"), leaf("ids"), leaf("storage"), leaf("internal/background"), leaf("internal/counters"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/exchange"), leaf("internal/format"), leaf("internal/requests")}},
		{"internal/definitions", []string{leaf("metadata"), leaf("ids"), leaf("storage"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/exchange", []string{leaf("ids"), leaf("metadata"), leaf("storage"), leaf("internal/docs"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/requests", []string{leaf("ids"), leaf("metadata"), leaf("storage"), leaf("internal/docs"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/instant", []string{"github.com/go-json-experiment/json"}},
		{"internal/errs", nil},
		{"internal/sealed", []string{leaf("internal/errs")}},
		{"internal/script", nil},
		{"internal/knobs", nil},
		{"internal/sample", nil},
		{"internal/pgtest", nil}, // without a client of PostgreSQL: the root's module has none
		{"internal/lint", nil},
		{"internal/lint/house", nil},
		{"internal/lint/systems", nil},
		{"internal/child", nil},
		{"keys", []string{module, leaf("internal/parts"), leaf("internal/rekey"), leaf("storage/lsm")}},
		{"standby", []string{module, leaf("internal/budget"), leaf("internal/sealed"), leaf("internal/follow"), leaf("internal/look"), leaf("internal/format"), leaf("internal/parts"), leaf("internal/recovery"), leaf("storage"), leaf("storage/lsm")}},
		{"internal/follow", []string{leaf("storage"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/knobs"), leaf("internal/settings")}},
		{"backups", []string{module, leaf("internal/files"), leaf("internal/parts"), leaf("internal/sealed"), leaf("storage/lsm")}},
		{"jaytest", []string{module, leaf("storage/storagetest")}},
		{"internal/jaytest", []string{leaf("jaytest"), leaf("internal/sample"), leaf("storage"), leaf("storage/memory"), leaf("storage/storagetest"), leaf("internal/checks"), leaf("internal/format"), leaf("internal/parts"), "github.com/jaydb/jay", leaf("keys")}},
		{"internal/querytest", []string{module, leaf("query"), leaf("internal/jaytest"), leaf("internal/jsonpath")}},
		{"internal/salvage", []string{leaf("internal/schemas"), leaf("ids"), leaf("index"), leaf("metadata"), leaf("storage"), leaf("internal/catalog"), leaf("internal/definitions"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/revisions"), leaf("internal/subs"), leaf("internal/verify")}},
		{"internal/verify", []string{leaf("internal/schemas"), leaf("internal/knobs"), leaf("ids"), leaf("index"), leaf("metadata"), leaf("query"), leaf("storage"), leaf("internal/catalog"), leaf("internal/definitions"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/revisions"), leaf("internal/subs"), leaf("internal/loads")}},
		{"internal/copier", []string{leaf("storage"), leaf("internal/backup"), leaf("internal/catalog"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/knobs"), leaf("internal/settings"), leaf("internal/verify")}},
		{"internal/recovery", []string{leaf("ids"), leaf("index"), leaf("storage"), leaf("internal/backup"), leaf("internal/catalog"), leaf("internal/copier"), leaf("internal/core"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/follow"), leaf("internal/format"), leaf("internal/horizon"), leaf("internal/salvage"), leaf("internal/sealed"), leaf("internal/settings"), leaf("internal/verify")}},
		{"internal/builder", []string{leaf("internal/live"), leaf("storage"), leaf("ids"), leaf("metadata"), leaf("patch"), leaf("query"), leaf("internal/ask"), leaf("internal/look"), leaf("internal/budget"), leaf("internal/bulk"), leaf("internal/catalog"), leaf("index"), leaf("internal/codec"), leaf("internal/core"), leaf("internal/counts"), leaf("internal/docs"), leaf("internal/errs"), leaf("internal/exec"), leaf("internal/jsonpath"), leaf("internal/observe"), leaf("internal/spelling"), leaf("internal/txn"), leaf("internal/write")}},
		{"internal/collections", []string{leaf("internal/ask"), leaf("ids"), leaf("index"), leaf("metadata"), leaf("storage"), leaf("internal/builder"), leaf("internal/bulk"), leaf("internal/catalog"), leaf("internal/core"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/indexer"), leaf("internal/shared")}},
		{"internal/kindtest", []string{module, leaf("storage"), leaf("storage/memory"), leaf("storage/storagetest"), leaf("jaytest"), leaf("internal/catalog"), leaf("internal/checks"), leaf("internal/jaytest"), leaf("internal/sample")}},
		{"internal/standbytest", []string{leaf("standby")}},
		{"internal/parts", []string{leaf("internal/codec"), leaf("internal/core"), leaf("internal/sealed"), leaf("internal/write")}},
		{"internal/checks", []string{leaf("index"), leaf("metadata"), leaf("storage"), leaf("internal/catalog"), leaf("internal/counts"), leaf("internal/expiry"), leaf("internal/format"), leaf("internal/indexer"), leaf("internal/loads"), leaf("internal/parts"), leaf("internal/revisions"), leaf("internal/schemas")}},
		{"internal/keybytes", nil},
		{"internal/parallel", []string{leaf("internal/relay")}},
		{"internal/env", []string{leaf("internal/budget"), leaf("ids"), leaf("metadata"), leaf("storage"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/room")}},
		{"internal/observe", nil},
		{"internal/room", []string{leaf("storage")}},
		{"internal/catalog", []string{leaf("index"), leaf("metadata"), leaf("query"), leaf("storage"), leaf("internal/codec"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/jsonpath"), leaf("internal/score"), leaf("internal/text"), leaf("internal/computed"), leaf("internal/loads"), leaf("internal/spelling")}},
		{"internal/score", []string{leaf("query"), leaf("internal/errs"), leaf("internal/text")}},
		{"internal/vocabulary", []string{leaf("query"), leaf("storage"), leaf("internal/catalog"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/text")}},
		{"internal/vectors", []string{leaf("index"), leaf("metadata"), leaf("query"), leaf("storage"), leaf("internal/catalog"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/vector"), "golang.org/x/sys/cpu"}},
		{"internal/places", []string{leaf("query"), leaf("storage"), leaf("internal/catalog"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/geo"), "github.com/golang/geo/s2"}},
		{"internal/fulltext", []string{leaf("query"), leaf("storage"), leaf("internal/catalog"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/text"), leaf("internal/score"), leaf("index")}},
		{"internal/loads", []string{leaf("ids"), leaf("metadata"), leaf("query"), leaf("storage"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/jsonpath")}},
		{"internal/computed", []string{leaf("index"), leaf("metadata"), leaf("query"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/jsonpath"), leaf("internal/spelling")}},
		{"internal/groups", []string{leaf("index"), leaf("metadata"), leaf("query"), leaf("storage"), leaf("internal/catalog"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/jsonpath")}},
		{"internal/plan", []string{leaf("ids"), leaf("index"), leaf("metadata"), leaf("query"), leaf("storage"), leaf("internal/catalog"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/jsonpath"), leaf("internal/score")}},
		{"internal/counters", []string{leaf("ids"), leaf("storage"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/indexer", []string{leaf("internal/budget"), leaf("index"), leaf("metadata"), leaf("storage"), leaf("internal/background"), leaf("internal/catalog"), leaf("internal/computed"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/keybytes"), leaf("internal/knobs"), leaf("internal/parallel"), leaf("internal/sorter"), leaf("internal/write")}},
		{"internal/sorter", []string{leaf("storage"), leaf("internal/keybytes")}},
		{"internal/leases", []string{leaf("ids"), leaf("storage"), leaf("internal/background"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/horizon", []string{leaf("storage"), leaf("internal/background"), leaf("internal/counters"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/feed", []string{leaf("ids"), leaf("metadata"), leaf("storage"), leaf("internal/counters"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/horizon")}},
		{"internal/live", []string{leaf("ids"), leaf("query"), leaf("storage"), leaf("internal/budget"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/exec"), leaf("internal/feed"), leaf("internal/format"), leaf("internal/relay")}},
		{"internal/subs", []string{leaf("query"), leaf("storage"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/exec"), leaf("internal/feed"), leaf("internal/format"), leaf("internal/horizon"), leaf("internal/leases"), leaf("internal/shared")}},
		{"internal/attachments", []string{leaf("ids"), leaf("metadata"), leaf("storage"), leaf("internal/background"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/counts", []string{leaf("internal/budget"), leaf("metadata"), leaf("storage"), leaf("internal/background"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/revisions", []string{leaf("internal/budget"), leaf("ids"), leaf("metadata"), leaf("storage"), leaf("internal/background"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format")}},
		{"internal/hilo", []string{leaf("ids"), leaf("metadata"), leaf("storage"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/write"), "github.com/tidwall/gjson", "github.com/tidwall/sjson"}},
		{"internal/settings", []string{leaf("ids"), leaf("storage"), leaf("internal/counts"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/shared")}},
		{"internal/turns", nil},
		{"internal/heads", nil},
		{"internal/write", []string{leaf("schema"), leaf("internal/schemas"), leaf("internal/budget"), leaf("cluster"), leaf("internal/accord"), leaf("ids"), leaf("index"), leaf("metadata"), leaf("patch"), leaf("storage"), leaf("internal/agenda"), leaf("internal/attachments"), leaf("internal/catalog"), leaf("internal/codec"), leaf("internal/counters"), leaf("internal/counts"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/exchange"), leaf("internal/format"), leaf("internal/heads"), leaf("internal/horizon"), leaf("internal/jsonpath"), leaf("internal/parallel"), leaf("internal/requests"), leaf("internal/revisions"), leaf("internal/turns"), leaf("internal/loads")}},
		{"internal/core", []string{leaf("internal/live"), leaf("schema"), leaf("internal/schemas"), leaf("internal/loads"), leaf("internal/ask"), leaf("internal/budget"), leaf("ids"), leaf("index"), leaf("metadata"), leaf("query"), leaf("storage"), leaf("internal/accord"), leaf("internal/agenda"), leaf("internal/attachments"), leaf("internal/backup"), leaf("internal/catalog"), leaf("internal/codec"), leaf("internal/counters"), leaf("internal/counts"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/exchange"), leaf("internal/exec"), leaf("internal/expiry"), leaf("internal/feed"), leaf("internal/follow"), leaf("internal/look"), leaf("internal/leases"), leaf("internal/format"), leaf("internal/fulltext"), leaf("internal/groups"), leaf("internal/heads"), leaf("internal/hilo"), leaf("internal/horizon"), leaf("internal/indexer"), leaf("internal/observe"), leaf("internal/relay"), leaf("internal/requests"), leaf("internal/revisions"), leaf("internal/room"), leaf("internal/settings"), leaf("internal/subs"), leaf("internal/tally"), leaf("internal/write"), leaf("internal/shared"), leaf("internal/computed"), leaf("internal/vocabulary"), leaf("internal/places"), leaf("internal/vectors")}},
		{"internal/bulk", []string{leaf("internal/budget"), leaf("ids"), leaf("metadata"), leaf("storage"), leaf("internal/core"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/observe"), leaf("internal/relay"), leaf("internal/write")}},
		{"internal/txn", []string{leaf("internal/budget"), leaf("ids"), leaf("metadata"), leaf("query"), leaf("storage"), leaf("internal/attachments"), leaf("internal/catalog"), leaf("internal/core"), leaf("internal/counters"), leaf("internal/counts"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/exchange"), leaf("internal/exec"), leaf("internal/format"), leaf("internal/horizon"), leaf("internal/observe"), leaf("internal/requests"), leaf("internal/turns"), leaf("internal/write")}},
		{"internal/inspect", []string{leaf("ids"), leaf("metadata"), leaf("storage"), leaf("internal/core"), leaf("internal/counters"), leaf("internal/docs"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/hilo"), leaf("internal/settings"), leaf("internal/write"), "github.com/tidwall/gjson"}},
		{"internal/session", []string{leaf("ids"), leaf("metadata"), leaf("patch"), leaf("query"), leaf("storage"), leaf("internal/attachments"), leaf("internal/codec"), leaf("internal/core"), leaf("internal/docs"), leaf("internal/errs"), leaf("internal/exchange"), leaf("internal/exec"), leaf("internal/format"), leaf("internal/jsonpath"), leaf("internal/parallel"), leaf("internal/requests"), leaf("internal/txn"), leaf("internal/write")}},
		{"internal/budget", []string{leaf("storage")}},
		{"internal/exec", []string{leaf("index"), leaf("internal/knobs"), leaf("internal/parallel"), leaf("metadata"), leaf("query"), leaf("storage"), leaf("internal/budget"), leaf("internal/catalog"), leaf("internal/counts"), leaf("internal/docs"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/jsonpath"), leaf("internal/plan"), leaf("internal/tally"), leaf("internal/score"), leaf("internal/computed"), leaf("internal/text"), leaf("internal/vocabulary"), leaf("internal/loads")}},
		{"internal/tally", []string{leaf("storage"), leaf("internal/errs"), leaf("internal/keybytes"), leaf("internal/parallel")}},
		{"internal/codec", []string{leaf("metadata"), leaf("internal/errs"), leaf("internal/instant"), leaf("internal/jsonpath"), "github.com/go-json-experiment/json"}},
		{"internal/docs", []string{leaf("internal/budget"), leaf("internal/pieces"), leaf("ids"), leaf("metadata"), leaf("storage"), leaf("internal/env"), leaf("internal/errs"), leaf("internal/format"), leaf("internal/jsonpath")}},
		{"internal/format", []string{leaf("ids"), leaf("metadata"), leaf("internal/errs"), leaf("internal/instant")}},
		{"patch", []string{leaf("internal/pieces"), leaf("internal/instant"), leaf("internal/jsonpath"), "github.com/evanphx/json-patch/v5"}},
		{"internal/geo", []string{"github.com/golang/geo/s1", "github.com/golang/geo/s2", "github.com/tidwall/gjson"}},
		{"internal/vector", []string{leaf("internal/jsonpath")}},
		{"query", []string{leaf("internal/geo"), leaf("internal/native"), leaf("internal/vector"), leaf("internal/instant"), leaf("internal/jsonpath"), leaf("internal/fold"), leaf("internal/script"), leaf("internal/spelling"), leaf("internal/text")}},
		{"metadata", []string{leaf("internal/errs"), leaf("internal/instant"), leaf("internal/jsonpath"), "github.com/tidwall/gjson", "github.com/tidwall/sjson"}},
		{"storage", []string{leaf("internal/errs")}},
		{"cluster", []string{leaf("storage")}}, // for ErrUnknownOutcome and ErrTooLarge
		{"cluster/clustertest", []string{leaf("cluster")}},
		{"storage/enginetest", []string{leaf("storage")}}, // without Pebble: for the authors of other engines
		{"storage/storagetest", []string{leaf("storage"), "github.com/cockroachdb/pebble/v2/vfs"}},
		{"storage/memory", []string{leaf("storage")}},                                     // for tests of what is written for stores that several have open
		{"keys/passphrase", []string{module, leaf("keys"), "golang.org/x/crypto/argon2"}}, // a module of its own
		{"storage/sqlkv", []string{leaf("storage"), "github.com/jackc/pgx/v5"}},           // a module of its own
		{"storage/lsm", []string{leaf("internal/keybytes"), leaf("internal/pieces"), leaf("internal/sealed"), leaf("storage"), "github.com/cockroachdb/crlib/fifo", "github.com/cockroachdb/pebble/v2", "github.com/prometheus/client_model/go"}},
		{"transfer", []string{"github.com/klauspost/compress/gzip", "github.com/klauspost/compress/zstd"}}, // without a database
		{"transfer/smuggler", []string{module, leaf("transfer"), "github.com/tidwall/gjson", "github.com/tidwall/sjson"}},
		{"server", []string{"github.com/prometheus/client_golang/prometheus", module, leaf("cluster"), leaf("standby"), leaf("server/internal/own"), leaf("server/internal/raven"), leaf("server/internal/serve")}},
		{"server/internal/own", []string{module, leaf("schema"), leaf("cluster"), leaf("ids"), leaf("index"), leaf("standby"), leaf("transfer"), leaf("transfer/smuggler"), leaf("server/internal/serve"), leaf("server/internal/verbs"), "github.com/tidwall/gjson"}},
		{"server/internal/raven", []string{module, leaf("ids"), leaf("index"), leaf("query"), leaf("server/internal/algebra"), leaf("server/internal/serve"), leaf("server/internal/verbs"), "github.com/coder/websocket", "github.com/tidwall/gjson"}},
		{"server/internal/algebra", []string{leaf("index"), leaf("query")}},
		{"server/internal/verbs", []string{module, leaf("ids"), leaf("index"), leaf("internal/script"), leaf("query"), leaf("server/internal/serve")}},
		{"server/internal/serve", []string{module, leaf("schema"), leaf("cluster"), leaf("standby"), leaf("internal/script"), leaf("server/studio"), "github.com/coder/websocket", "github.com/klauspost/compress/zstd", "github.com/prometheus"}},
	}
	anywhere := []string{leaf("internal/invariants"), leaf("internal/knobs")} // checks, and what tests set
	for _, rule := range rules {
		eachImport(t, rule.dir, false, func(file, path string) {
			if !standard(path) && !underAny(path, anywhere) && !underAny(path, rule.allowed) {
				t.Errorf("%s imports %s; package %s may import only %v", file, path, rule.dir, rule.allowed)
			}
		})
	}

	packages, err := filepath.Glob("internal/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range packages {
		dir = filepath.ToSlash(dir)
		free := underAny(module+"/"+dir, anywhere) || dir == "internal/fixture" // a program
		if !free && !slices.ContainsFunc(rules, func(r rule) bool { return r.dir == dir }) {
			t.Errorf("%s has no row: say what it may import", dir)
		}
	}

	// Programs see the root, and public packages for what they are about.
	public := []string{leaf("backups"), leaf("keys"), leaf("keys/passphrase"), leaf("standby"), leaf("server"), leaf("transfer"), leaf("transfer/smuggler"), leaf("ids"), leaf("index"), leaf("query"), leaf("schema"), leaf("schema/jsonschema"), leaf("storage/sqlkv")}
	inner := map[string]string{
		"server":        leaf("internal/script"), // which has no state, and sees no database
		"jayprometheus": leaf("backups"),         // whose figures it shows
	}
	onServers := map[string][]string{ // the store on PostgreSQL, and who starts the servers
		"examples/postgres":         {leaf("storage/sqlkv")},
		"examples/postgres/servers": {leaf("internal/pgtest")},
		"bench/postgres":            {leaf("internal/pgtest")},
	}
	outsiders := 0
	for _, dir := range []string{"cmd", "examples", "bench", "jayotel", "jayprometheus", "server", "tests", "transfer"} {
		eachImport(t, dir, true, func(file, path string) {
			outsiders++
			if underAny(path, []string{leaf("cluster")}) {
				return // what Options.Cluster takes, and its implementations
			}
			if path == inner[dir] {
				return
			}
			if strings.HasPrefix(filepath.ToSlash(file), "tests/onpostgres/") {
				return // what suites share
			}
			if dir == "examples" && path == leaf("index") {
				return // what a Computed is made of
			}
			if of := filepath.ToSlash(filepath.Dir(file)); slices.Contains(onServers[of], path) {
				return
			}
			if strings.HasPrefix(path, module+"/") && path != module+"/"+dir && !strings.HasPrefix(path, module+"/"+dir+"/") && !(slices.Contains([]string{"cmd", "server", "bench"}, dir) && slices.Contains(public, path)) {
				t.Errorf("%s imports %s: programs use the public API; if they need more, the API is wrong", file, path)
			}
		})
	}
	if outsiders == 0 {
		t.Error("no program was looked at")
	}

	// SQLite is for the command only: whoever compiles the server compiles no other database.
	drivers := 0
	eachImport(t, ".", true, func(file, path string) {
		if !strings.HasPrefix(path, "modernc.org/") {
			return
		}
		if drivers++; !strings.HasPrefix(filepath.ToSlash(file), "cmd/jay/") && !strings.HasPrefix(filepath.ToSlash(file), "bench/") {
			t.Errorf("%s imports %s, which is for cmd/jay", file, path)
		}
	})
	if drivers == 0 {
		t.Error("no file imports SQLite")
	}

	// The suites see what users see, and helpers for tests.
	suites := 0
	seen := []string{module, leaf("ids"), leaf("metadata"), leaf("patch"), leaf("query"), leaf("schema"), leaf("storage"), leaf("storage/lsm"), leaf("storage/storagetest"),
		leaf("internal/child"), leaf("internal/jaytest"), leaf("internal/knobs"), leaf("internal/querytest"), leaf("internal/sample"), leaf("jaytest"), leaf("tests/onpostgres")}
	inside := map[string][]string{ // what single suites see besides
		"tests/index":      {leaf("internal/checks")},                                                                                                                                                                              // the entries as they are stored
		"tests/simulation": {leaf("server"), leaf("cluster/clustertest"), leaf("storage/memory"), leaf("standby"), leaf("keys"), leaf("internal/look"), leaf("internal/parts"), leaf("internal/shared"), leaf("internal/vectors")}, // the server of its clients, the members of its cluster, the store that two databases share, the standby, a look without a socket, and small partitions
		"tests/live":       {leaf("internal/checks"), leaf("standby"), leaf("storage/memory")},                                                                                                                                     // when expiry sweeps; a standby; snapshots that expire
		"tests/storm":      {leaf("internal/checks")},                                                                                                                                                                              // likewise
		"tests/shared":     {leaf("cluster/clustertest"), leaf("storage/memory"), leaf("internal/checks")},                                                                                                                         // the store that several share; likewise
		"tests/txn":        {leaf("internal/checks"), leaf("internal/pgtest"), leaf("storage/sqlkv")},                                                                                                                              // how many have a turn or wait for one; the server that processes share
		"tests/query":      {leaf("internal/checks"), leaf("internal/jsonpath"), leaf("internal/plan")},                                                                                                                            // the entries, the evaluator's paths, the planner's limits
		"tests/crash":      {leaf("internal/checks")},                                                                                                                                                                              // what is stored
		"tests/model":      {leaf("internal/checks")},                                                                                                                                                                              // likewise
		"tests/bounds":     {leaf("internal/checks")},                                                                                                                                                                              // likewise
		"tests/language":   {leaf("internal/jsonpath")},                                                                                                                                                                            // the paths of a naive evaluator
		"tests/verify":     {leaf("internal/checks"), leaf("internal/format"), leaf("internal/invariants")},                                                                                                                        // what it damages in an open database
		"tests/members":    {leaf("cluster"), leaf("cluster/clustertest"), leaf("internal/checks"), leaf("internal/invariants")},
		"tests/edits":      {leaf("internal/jsonpath")}, // the paths of a naive model
		"tests/browser":    {leaf("server")},            // what the browser shows
		"tests/odd":        {leaf("server")},            // what it asks
		"tests/cluster":    {leaf("cluster"), leaf("cluster/etcd"), leaf("cluster/embedded")},
	}
	eachTestImport(t, "tests", func(file, path string) {
		suites++
		if strings.HasPrefix(path, module) && !slices.Contains(seen, path) && !slices.Contains(inside[filepath.ToSlash(filepath.Dir(file))], path) {
			t.Errorf("%s imports %s; a suite may import only %v of this module", file, path, seen)
		}
	})
	if suites == 0 {
		t.Error("no suite was looked at")
	}
}

// eachImport calls fn with the imports of every file of a directory that is no
// test.
func eachImport(t *testing.T, dir string, deep bool, fn func(file, path string)) {
	t.Helper()
	eachImportOf(t, dir, deep, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }, fn)
}

// eachTestImport calls fn with the imports of every test file below a directory.
func eachTestImport(t *testing.T, dir string, fn func(file, path string)) {
	t.Helper()
	eachImportOf(t, dir, true, func(name string) bool { return strings.HasSuffix(name, "_test.go") }, fn)
}

func eachImportOf(t *testing.T, dir string, deep bool, wanted func(name string) bool, fn func(file, path string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != dir && !deep {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || !wanted(path) {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			fn(path, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// standard reports whether an import path is of the standard library: its first
// element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// underAny reports whether a path is one of the roots or below it. The module itself stands
// for package jay alone.
func underAny(path string, roots []string) bool {
	for _, root := range roots {
		if path == root || root != module && strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// Ensure that only packages that carry out whole calls enter the gate: a package below that entered it
// again, on behalf of a call that is inside, would wait for Close, which waits for the call.
func TestGate_EnteredByCallsOnly(t *testing.T) {
	calls := []string{
		"bulk",
		"checks", // whole calls of tests
		"collections",
		"core",
		"inspect",
		"recovery",
		"rekey",
		"session",
		"txn",
		"indexer", // its tasks run on goroutines of their own
		"live",    // so does its dispatcher, and a reader lives longer than a call
	}
	looked := 0
	err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		looked++
		whole := slices.Contains(calls, filepath.Base(filepath.Dir(path)))
		enters := strings.Contains(string(text), "nv."+"Enter(") || strings.Contains(string(text), "."+"Inside(")
		if !whole && enters {
			t.Errorf("%s enters the gate", path)
		}
		return nil
	})
	if err != nil || looked == 0 {
		t.Errorf("looked at %d files: %v", looked, err)
	}
}
