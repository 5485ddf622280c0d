package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/jaytest"
)

// What the process that TestKillChanges kills gets: the directory of the database, and the
// tokens at which its feeds go on.
const (
	changesVariable = "JAY_KILL_CHANGES_DIR"
	tokensVariable  = "JAY_KILL_CHANGES_TOKENS"
)

const (
	changesFeeds   = 2
	changesWriters = 6
	changesIDs     = 60
)

// changesSubscriptions are the subscriptions that the process works on.
var changesSubscriptions = []jay.Subscription{
	{Name: "documents", Query: "from Docs where n >= 0"},
	{Name: "deletions", Query: "from Docs", Deletions: true},
}

// TestKillChanges_Process is that process.
func TestKillChanges_Process(t *testing.T) {
	dir := os.Getenv(changesVariable)
	if dir == "" {
		t.Skip("only in a process of TestKillChanges")
	}
	t.Fatal(followUntilKilled(dir, strings.Split(os.Getenv(tokensVariable), " ")))
}

// followUntilKilled writes and deletes with several goroutines, and prints in lines, whose
// words are separated by tabs, what readers come to know:
//
//	feed  number  etag  token  id  body       the body is "-" for a deletion
//	sent  name  etag
//	done  name  etag                          it was sent, and is acknowledged
func followUntilKilled(dir string, tokens []string) error {
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	print := func(words ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(strings.TrimSuffix(strings.ReplaceAll(fmt.Sprintf(strings.Repeat("%v\t", len(words)), words...), "\n", " "), "\t"))
	}
	failed := make(chan error, changesWriters+changesFeeds+len(changesSubscriptions))
	for i := range changesFeeds {
		go func() {
			for c, err := range db.Changes(ctx, tokens[i], jay.WithDocuments()) {
				if err != nil {
					failed <- err
					return
				}
				text := "-"
				if !c.Deleted {
					text = string(c.Document.Body())
				}
				print("feed", i, c.Etag, c.Token(), c.ID, text)
			}
		}()
	}
	for _, sub := range changesSubscriptions {
		if err := db.Subscriptions().Ensure(ctx, sub); err != nil {
			return err
		}
		go func() {
			var sent []uint64
			failed <- db.Subscriptions().Work(ctx, sub.Name, &jay.WorkOptions{BatchDocuments: 5}, func(_ context.Context, b *jay.SubscriptionBatch) error {
				for _, etag := range sent { // the acknowledgement has returned
					print("done", sub.Name, etag)
				}
				sent = nil
				for _, item := range b.Items {
					print("sent", sub.Name, item.Etag)
					sent = append(sent, item.Etag)
				}
				return nil
			})
		}()
	}
	for w := range changesWriters {
		go func() {
			random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(w)))
			for {
				id := fmt.Sprint("docs/", random.IntN(changesIDs))
				var err error
				if random.IntN(4) == 0 {
					err = db.Delete(ctx, id)
				} else {
					_, err = db.Put(ctx, id, fmt.Appendf(nil, `{"n":%d}`, random.Int64()), jay.InCollection("Docs"))
				}
				if err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// Ensure that kill -9 takes back nothing that a feed has shown, that its reader goes on
// behind its last token without a gap, in order and to the last state of each document,
// deleted ones too; and that a subscription sends nothing again that was acknowledged, and
// everything that was not. JAY_KILL_CHANGES is the number of kills.
func TestKillChanges(t *testing.T) {
	kills := 5
	if text := os.Getenv("JAY_KILL_CHANGES"); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		must(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	l := &changesLedger{t: t, dir: filepath.Join(t.TempDir(), "db")}
	for range changesFeeds {
		l.feeds = append(l.feeds, &keptCopy{t: t, bodies: make(map[string]string), etags: make(map[string]uint64)})
	}
	for range changesSubscriptions {
		l.done = append(l.done, make(map[uint64]bool))
	}
	shown := func() bool { return l.shown > 0 && l.acknowledged > 0 && l.deletions > 0 }
	more := jaytest.Patience()
	for kill := 0; kill < kills || more(shown()); kill++ {
		l.untilKilled(1 + random.IntN(3000))
		l.check()
		if t.Failed() {
			t.Fatalf("kill %d", kill)
		}
	}
	t.Logf("shown %d, %d of them deletions, acknowledged %d before a kill, %d in doubt", l.shown, l.deletions, l.acknowledged, l.doubtful)
}

// changesLedger is what the processes have printed.
type changesLedger struct {
	t     *testing.T
	dir   string
	feeds []*keptCopy
	last  []shownChange     // by feeds of the newest process
	done  []map[uint64]bool // by subscription, etags that were acknowledged, in all processes
	sent  []map[uint64]bool // those that the newest process has sent, and not acknowledged as far as is known

	shown, deletions, acknowledged, doubtful int
}

// shownChange is a change that a feed has shown.
type shownChange struct {
	id, body string // "-" for a deletion
	etag     uint64
}

// keptCopy is what the reader of a feed makes of the changes.
type keptCopy struct {
	t      *testing.T
	token  string
	etag   uint64
	bodies map[string]string
	etags  map[string]uint64
}

func (k *keptCopy) apply(c shownChange, token string) {
	k.t.Helper()
	if c.etag <= k.etag {
		k.t.Errorf("etag %d of %s comes after %d", c.etag, c.id, k.etag)
	}
	if k.etag, k.token = c.etag, token; c.body == "-" {
		delete(k.bodies, c.id)
		delete(k.etags, c.id)
		return
	}
	k.bodies[c.id], k.etags[c.id] = c.body, c.etag
}

func (l *changesLedger) untilKilled(lines int) {
	l.t.Helper()
	var tokens []string
	for _, f := range l.feeds {
		tokens = append(tokens, f.token)
	}
	l.last, l.sent = nil, nil
	for range changesSubscriptions {
		l.sent = append(l.sent, make(map[uint64]bool))
	}
	printed := 0
	child.Start(l.t, "TestKillChanges_Process", changesVariable+"="+l.dir, tokensVariable+"="+strings.Join(tokens, " ")).KillAt(func(line string) bool {
		l.note(strings.Split(line, "\t"))
		printed++
		return printed == lines
	})
}

// note takes over a line.
func (l *changesLedger) note(words []string) {
	l.t.Helper()
	if len(words) == 6 && words[0] == "feed" {
		feed, err := strconv.Atoi(words[1])
		must(l.t, err)
		c := shownChange{id: words[4], body: words[5]}
		c.etag, err = strconv.ParseUint(words[2], 10, 64)
		must(l.t, err)
		l.feeds[feed].apply(c, words[3])
		l.last = append(l.last, c)
		if l.shown++; c.body == "-" {
			l.deletions++
		}
		return
	}
	for i, sub := range changesSubscriptions {
		if len(words) != 3 || words[1] != sub.Name {
			continue
		}
		etag, err := strconv.ParseUint(words[2], 10, 64)
		must(l.t, err)
		switch {
		case words[0] == "done":
			l.done[i][etag] = true
			delete(l.sent[i], etag)
			l.acknowledged++
		case l.done[i][etag]:
			l.t.Errorf("subscription %s: etag %d came again, and was acknowledged", sub.Name, etag)
		case l.sent[i][etag]:
			l.t.Errorf("subscription %s: etag %d came twice to one worker", sub.Name, etag)
		default:
			l.sent[i][etag] = true
		}
		return
	}
	l.t.Fatalf("unreadable line %q", words)
}

// check opens the database after a kill, and compares.
func (l *changesLedger) check() {
	l.t.Helper()
	db := open(l.t, l.dir, &jay.Options{MustExist: true})
	defer closeDB(l.t, db)
	newest := make(map[string]shownChange)
	highest := uint64(0)
	for c, err := range db.Changes(ctx, "", jay.WithDocuments(), jay.UntilCaughtUp()) {
		must(l.t, err)
		newest[c.ID], highest = shownOf(c), c.Etag
	}
	for _, c := range l.last {
		now, found := newest[c.id]
		switch {
		case !found && c.etag+1000 < highest: // the record of its deletion may be gone
		case !found || now.etag < c.etag || now.etag == c.etag && now != c:
			l.t.Errorf("a feed showed %+v before the kill, and there is %+v", c, now)
		}
	}
	for i, f := range l.feeds {
		for c, err := range db.Changes(ctx, f.token, jay.WithDocuments(), jay.UntilCaughtUp()) {
			must(l.t, err)
			f.apply(shownOf(c), c.Token())
		}
		documents := 0
		for doc, err := range db.Documents(ctx, jay.Scan{}) {
			must(l.t, err)
			documents++
			if f.bodies[doc.ID()] != string(doc.Body()) || f.etags[doc.ID()] != doc.Metadata().Etag {
				l.t.Errorf("%s is %s at %d, and the reader of feed %d has %s at %d", doc.ID(), doc.Body(), doc.Metadata().Etag, i, f.bodies[doc.ID()], f.etags[doc.ID()])
			}
		}
		if len(f.bodies) != documents {
			l.t.Errorf("there are %d documents, and the reader of feed %d has %d", documents, i, len(f.bodies))
		}
	}
	for i, sub := range changesSubscriptions {
		must(l.t, db.Subscriptions().Ensure(ctx, sub))
		must(l.t, db.Subscriptions().Work(ctx, sub.Name, &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
			for _, item := range b.Items {
				if l.done[i][item.Etag] {
					l.t.Errorf("subscription %s: etag %d came after the kill, and was acknowledged before", sub.Name, item.Etag)
				}
				l.done[i][item.Etag] = true
			}
			return nil
		}))
		for _, c := range newest {
			if c.body == "-" && !sub.Deletions || l.done[i][c.etag] {
				continue
			}
			if !l.sent[i][c.etag] { // else it was acknowledged, and killed before it could say so
				l.t.Errorf("subscription %s: %+v was never sent", sub.Name, c)
			}
			l.done[i][c.etag] = true
			l.doubtful++
		}
	}
}

func shownOf(c jay.Change) shownChange {
	s := shownChange{id: c.ID, etag: c.Etag, body: "-"}
	if !c.Deleted {
		s.body = string(c.Document.Body())
	}
	return s
}
