// Package dialogue_test plays the dialogues of testdata: commands to a database
// on a disk in memory, with what it answers. They are for what has a history:
// IDs over failures and restarts, transactions between one another, indexes that
// are built beside writes.
//
//	go test ./tests/dialogue -rewrite
//
// writes the answers anew. Commit a change of them only if you can say why each
// line has changed.
package dialogue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that every dialogue goes as it is written down.
func TestDialogues(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		d := &dialogue{
			disk: storagetest.NewDisk(), clock: jaytest.NewClock(), random: rand.NewChaCha8([32]byte{}),
			txs: make(map[string]*transaction),
		}
		d.open(t)
		defer func() { _ = d.db.Close() }() // it may have failed, or be closed
		datadriven.RunTest(t, path, func(t *testing.T, line *datadriven.TestData) string {
			var args []string
			for _, a := range line.CmdArgs {
				args = append(args, a.String())
			}
			return d.command(t, line.Cmd, args, line.Input)
		})
		for name := range d.txs {
			t.Errorf("%s: transaction %s has not ended", path, name)
		}
	})
}

// dialogue is a database and those who talk to it.
type dialogue struct {
	disk  *storagetest.Disk
	opts  jay.Options
	clock *jaytest.Clock
	db    *jay.DB
	txs   map[string]*transaction
	build *build

	// random goes on over restarts: a process distinguishes its own reservations from
	// those of the process before by a random number.
	random *rand.ChaCha8
}

func (d *dialogue) open(t *testing.T) {
	t.Helper()
	d.opts.FS, d.opts.Now, d.opts.Rand = d.disk, d.clock.Now, d.random
	d.db = jaytest.Open(t, "db", &d.opts)
}

// command does one command of a dialogue and returns the answer:
//
//	open [option...]         closes the database and opens it with these options
//	restart                  closes the database and opens it again
//	power-failure            loses what was not synced, and opens what is left
//	fail-disk                makes every sync of the log fail from now on
//	put, insert ID JSON [collection=NAME] [if=none]; "" stands for the empty ID
//	store COLLECTION JSON    a document under a HiLo ID
//	delete ID, get ID, list [PREFIX]
//	batch                    the lines of the input in one commit: put, insert, store
//	next-range TAG [SIZE], return-range TAG LAST END
//	seed NAME VALUE [force]
//	counters
//	begin NAME               starts a transaction
//	in NAME COMMAND...       does a command in it: put, insert, get, list, delete
//	commit NAME, give-up NAME
//	ensure COLLECTION NAME [unique] FIELD...
//	hold-ensure N …          the same, but holds the build at its Nth sync of the log
//	release                  lets the build end and says how
//	drop COLLECTION NAME
//	indexes                  the indexes and their states
//	query RQL                the IDs of the answer, and how they were found
func (d *dialogue) command(t *testing.T, name string, args []string, input string) string {
	ctx := t.Context()
	switch name {
	case "open":
		d.opts = jay.Options{}
		for _, a := range args {
			d.option(t, a)
		}
		return d.restart(t)
	case "restart":
		return d.restart(t)
	case "power-failure":
		found := d.disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
		d.finishBuild()
		_ = d.db.Close() // of a world that is gone
		d.disk = found
		d.open(t)
		return ""
	case "fail-disk":
		d.disk.FailAfter(0)
		return ""
	case "next-range":
		return d.nextRange(ctx, args)
	case "return-range":
		var last, end int64
		scan(t, args[1], &last)
		scan(t, args[2], &end)
		back, err := d.db.ReturnRange(ctx, args[0], last, end)
		if err != nil {
			return failure(err)
		}
		return fmt.Sprintf("returned: %v", back)
	case "seed":
		var value int64
		scan(t, args[1], &value)
		last, err := d.db.SeedIdentity(ctx, args[0], value, slices.Contains(args, "force"))
		return answer(fmt.Sprint("last ", last), err)
	case "counters":
		c, err := d.db.Counters(ctx)
		if err != nil {
			return failure(err)
		}
		text, err := json.Marshal(c)
		return answer(string(text), err)
	case "batch":
		return d.batch(ctx, input)
	case "store":
		m, err := d.db.Store(ctx, args[0], []byte(args[1]))
		return answer(m.ID, err)
	case "begin", "in", "commit", "give-up":
		return d.transaction(t, name, args)
	case "ensure", "hold-ensure", "release", "drop", "indexes":
		return d.index(ctx, name, args)
	case "query":
		return d.query(ctx, strings.TrimSpace(input))
	default:
		return document(ctx, t, d.db, name, args)
	}
}

func (d *dialogue) restart(t *testing.T) string {
	d.finishBuild()
	if err := d.db.Close(); err != nil {
		return failure(err)
	}
	d.open(t)
	return ""
}

func (d *dialogue) option(t *testing.T, text string) {
	key, value, _ := strings.Cut(text, "=")
	switch key {
	case "relaxed":
		d.opts.Durability = jay.Relaxed
	case "hilo":
		d.opts.HiLoMode = map[string]jay.HiLoMode{"2": jay.HiLo2, "2010": jay.HiLo2010}[value]
	case "capacity":
		scan(t, value, &d.opts.HiLoCapacity)
	default:
		t.Fatalf("there is no option %q", text)
	}
}

// documents is what a database and a transaction have in common.
type documents interface {
	Put(ctx context.Context, id string, body json.RawMessage, opts ...jay.WriteOption) (jay.Metadata, error)
	Insert(ctx context.Context, id string, body json.RawMessage, opts ...jay.WriteOption) (jay.Metadata, error)
	Delete(ctx context.Context, id string, opts ...jay.WriteOption) error
	Get(ctx context.Context, id string) (*jay.Document, error)
	Documents(ctx context.Context, s jay.Scan) iter.Seq2[*jay.Document, error]
}

// document does a command that a database and a transaction know.
func document(ctx context.Context, t *testing.T, to documents, name string, args []string) string {
	switch name {
	case "put", "insert":
		write := to.Put
		if name == "insert" {
			write = to.Insert
		}
		var opts []jay.WriteOption
		for _, a := range args[2:] {
			opts = append(opts, writeOption(t, a))
		}
		m, err := write(ctx, strings.Trim(args[0], `"`), []byte(args[1]), opts...)
		return answer(m.ID, err)
	case "delete":
		return answer("deleted", to.Delete(ctx, args[0]))
	case "get":
		doc, err := to.Get(ctx, args[0])
		if err != nil {
			return failure(err)
		}
		return string(doc.Body())
	case "list":
		var b strings.Builder
		s := jay.Scan{}
		if len(args) > 0 {
			s.Prefix = args[0]
		}
		for doc, err := range to.Documents(ctx, s) {
			if err != nil {
				return failure(err)
			}
			fmt.Fprintf(&b, "%s %s\n", doc.ID(), doc.Body())
		}
		if b.Len() == 0 {
			return "none"
		}
		return b.String()
	}
	t.Fatalf("there is no command %q", name)
	return ""
}

func writeOption(t *testing.T, text string) jay.WriteOption {
	key, value, _ := strings.Cut(text, "=")
	switch key {
	case "collection":
		return jay.InCollection(value)
	case "if":
		if value == "none" {
			return jay.IfMatch("")
		}
	}
	t.Fatalf("there is no option %q", text)
	return nil
}

// batch writes the lines of the input in one commit.
func (d *dialogue) batch(ctx context.Context, input string) string {
	var b jay.Batch
	for line := range strings.Lines(input) {
		words := strings.Fields(line)
		switch words[0] {
		case "put":
			b.Put(words[1], []byte(words[2]))
		case "insert":
			b.Insert(words[1], []byte(words[2]))
		case "store":
			b.Store(words[1], []byte(words[2]))
		}
	}
	metas, err := d.db.Apply(ctx, &b)
	if err != nil {
		return failure(err)
	}
	var ids []string
	for _, m := range metas {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, "\n")
}

func (d *dialogue) nextRange(ctx context.Context, args []string) string {
	r, err := d.db.NextRange(ctx, jay.RangeRequest{Tag: args[0]})
	if err != nil {
		return failure(err)
	}
	d.clock.Advance(time.Hour) // ranges do not grow by the pace of this test
	return fmt.Sprintf("%s%d to %d, node %s", r.Prefix, r.Low, r.High, r.NodeTag)
}

// query answers with IDs, and with the first step of the plan.
func (d *dialogue) query(ctx context.Context, text string) string {
	q, err := d.db.RQL(text, nil)
	if err != nil {
		return failure(err)
	}
	var b strings.Builder
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return failure(err)
		}
		fmt.Fprintln(&b, row.Document.ID())
	}
	explain, err := q.Explain(ctx)
	if err != nil {
		return failure(err)
	}
	fmt.Fprintf(&b, "by: %s", explain.Plan[0])
	return b.String()
}

// transaction is an Update under way. Its function does what comes in.
type transaction struct {
	calls chan func(*jay.Tx) error // an error that one returns ends the function
	ended chan error
}

var errGivenUp = errors.New("given up")

func (d *dialogue) transaction(t *testing.T, name string, args []string) string {
	if name == "begin" {
		tx := &transaction{calls: make(chan func(*jay.Tx) error), ended: make(chan error, 1)}
		d.txs[args[0]] = tx
		begun := make(chan struct{}, 1)
		db := d.db
		go func() {
			tx.ended <- db.Update(context.Background(), func(inner *jay.Tx) error {
				begun <- struct{}{}
				for call := range tx.calls {
					if err := call(inner); err != nil {
						return err
					}
				}
				return nil
			})
		}()
		<-begun
		return ""
	}
	tx := d.txs[args[0]]
	if tx == nil {
		t.Fatalf("there is no transaction %q", args[0])
	}
	switch name {
	case "commit":
		delete(d.txs, args[0])
		close(tx.calls)
		return answer("committed", jaytest.Within(t, tx.ended, "the transaction"))
	case "give-up":
		delete(d.txs, args[0])
		tx.calls <- func(*jay.Tx) error { return errGivenUp }
		return answer("committed", jaytest.Within(t, tx.ended, "the transaction"))
	}
	said := make(chan string, 1)
	tx.calls <- func(inner *jay.Tx) error {
		said <- document(t.Context(), t, inner, args[1], args[2:])
		return nil
	}
	return <-said
}

// build is an EnsureIndex that a sync of the log holds up.
type build struct {
	release chan struct{} // closed to let the sync go on
	ended   chan error
}

func (d *dialogue) index(ctx context.Context, name string, args []string) string {
	switch name {
	case "ensure":
		collection, ix := declaration(args)
		return answer("ready", d.db.EnsureIndex(ctx, collection, ix))
	case "hold-ensure":
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return failure(err)
		}
		collection, ix := declaration(args[1:])
		return d.holdBuild(n, collection, ix)
	case "release":
		return answer("ready", d.finishBuild())
	case "drop":
		return answer("dropped", d.db.DropIndex(ctx, args[0], args[1]))
	}
	infos, err := d.db.Indexes(ctx, "")
	if err != nil {
		return failure(err)
	}
	var b strings.Builder
	for _, info := range infos {
		fmt.Fprintf(&b, "%s %s %v %s\n", info.Collection, info.Name, info.Fields, info.State)
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

// holdBuild begins to build an index, and returns when the nth sync of the log
// is held.
func (d *dialogue) holdBuild(n int, collection string, ix jay.Index) string {
	b := &build{release: make(chan struct{}), ended: make(chan error, 1)}
	met := make(chan struct{})
	var syncs atomic.Int64
	d.disk.OnSync(func() {
		if syncs.Add(1) == int64(n) {
			close(met)
			<-b.release
		}
	})
	db := d.db
	go func() { b.ended <- db.EnsureIndex(context.Background(), collection, ix) }()
	<-met
	d.build = b
	return "held"
}

// declaration reads COLLECTION NAME [unique] FIELD...
func declaration(args []string) (collection string, ix jay.Index) {
	ix = jay.Index{Name: args[1]}
	for _, a := range args[2:] {
		if a == "unique" {
			ix.Unique = true
		} else {
			ix.Fields = append(ix.Fields, a)
		}
	}
	return args[0], ix
}

// finishBuild releases the build that is held, if there is one, and returns
// what its caller was answered.
func (d *dialogue) finishBuild() error {
	if d.build == nil {
		return nil
	}
	close(d.build.release)
	err := <-d.build.ended
	d.disk.OnSync(func() {})
	d.build = nil
	return err
}

func answer(text string, err error) string {
	if err != nil {
		return failure(err)
	}
	return text
}

// failures are the errors of the dialogues. The text of an error is tested
// elsewhere.
var failures = []error{
	jay.ErrUnknownOutcome, jay.ErrFailed, jay.ErrConflict, jay.ErrExists, jay.ErrNotFound, jay.ErrUnique,
	jay.ErrIndexExists, jay.ErrIndex, jay.ErrInvalidID, jay.ErrClosed, jay.ErrUsage, errGivenUp,
}

// failure names an error.
func failure(err error) string {
	for _, sentinel := range failures {
		if errors.Is(err, sentinel) {
			return "error: " + sentinel.Error()
		}
	}
	return "error: " + err.Error()
}

func scan(t *testing.T, text string, to *int64) {
	t.Helper()
	if _, err := fmt.Sscan(text, to); err != nil {
		t.Fatal(err)
	}
}
