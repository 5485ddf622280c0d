package jay_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// look opens what another DB of this process has open.
func look(t *testing.T, dir string) *jay.DB {
	t.Helper()
	db, err := jay.Look(dir, nil)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// owner opens a database that others can look into, whatever engine the tests use.
func owner(t *testing.T, dir string, o jay.Options) *jay.DB {
	t.Helper()
	db, err := jay.Open(dir, &o)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// Ensure that whoever looks into a database sees each write and each change of a definition with the next call, and
// that nothing it does writes.
func TestLook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db := owner(t, dir, jay.Options{})
	there := look(t, dir)
	for i := range 300 {
		_, err := db.Put(ctx, fmt.Sprintf("users/%03d", i), json.RawMessage(fmt.Sprintf(`{"n":%d}`, i%10)), jay.InCollection("Users"))
		must(t, err)
	}
	equal(t, dump(t, there), dump(t, db))

	count := func(q jay.Query[jay.Document]) int64 {
		t.Helper()
		n, err := q.Count(ctx)
		must(t, err)
		return n
	}
	equal(t, count(there.Query("Users").Where(jay.Eq("n", 3))), int64(30))
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"n"}}))
	equal(t, count(there.Query("Users").Where(jay.Eq("n", 3)).NoScan()), int64(30))
	must(t, db.DropIndex(ctx, "Users", "n"))
	_, err := db.Put(ctx, "users/new", json.RawMessage(`{"n":3}`), jay.InCollection("Users"))
	must(t, err)
	equal(t, count(there.Query("Users").Where(jay.Eq("n", 3))), int64(31))

	must(t, db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{Disabled: true}))
	here, err := db.Stats(ctx)
	must(t, err)
	seen, err := there.Stats(ctx)
	must(t, err)
	if !seen.Expiry.Disabled || seen.Engine.Commits != here.Engine.Commits || !reflect.DeepEqual(seen.Collections, here.Collections) || !reflect.DeepEqual(seen.Counters, here.Counters) {
		t.Errorf("its figures: %+v, want %+v", seen, here)
	}
	if len(here.Memory.Shares) == 0 || seen.Memory.Shares != nil || seen.Memory.BoundBytes != 0 {
		t.Errorf("its memory: %+v, of the owner %+v", seen.Memory, here.Memory)
	}
	usage, err := there.DiskUsage(ctx)
	must(t, err)
	if usage.TotalBytes == 0 || usage.FreeBytes <= 0 || len(usage.Collections) != 1 {
		t.Errorf("its disk usage: %+v", usage)
	}
	report, err := there.Verify(ctx, nil)
	must(t, err)
	if report.Found+report.Warned > 0 || report.Documents != 301 {
		t.Errorf("its check: %+v", report)
	}

	var backup bytes.Buffer
	_, err = there.Backup(ctx, &backup)
	must(t, err)
	whole, err := jay.VerifyBackup(ctx, nil, &backup)
	must(t, err)
	equal(t, whole[0].Documents, int64(301))

	_, err = there.Put(ctx, "a", json.RawMessage(`{}`))
	for name, err := range map[string]error{
		"Put": err, "Delete": there.Delete(ctx, "users/new"), "EnsureIndex": there.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"n"}}),
		"Compact": there.Compact(ctx),
	} {
		if !errors.Is(err, jay.ErrReadOnly) || !strings.Contains(err.Error(), "another program") {
			t.Errorf("%s: %v, want ErrReadOnly", name, err)
		}
	}
}

// Ensure that a database is looked into through a connection of the program's own, also one that is itself only looked into, or in
// memory, until the database is closed; and that options of the owner are refused.
func TestAnswerLook(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	must(t, err)
	put(t, db, "a", `{"n":1}`)
	through := func(db *jay.DB) (*jay.DB, chan error) {
		t.Helper()
		mine, theirs := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- jay.AnswerLook(ctx, db, theirs) }()
		there, err := jay.LookThrough(mine, "the other side", nil)
		must(t, err)
		t.Cleanup(func() { must(t, there.Close()) })
		return there, ended
	}
	there, ended := through(db)
	second, endedSecond := through(there)
	equal(t, body(t, there, "a"), `{"n":1}`)
	put(t, db, "a", `{"n":2}`)
	equal(t, body(t, second, "a"), `{"n":2}`)
	equal(t, second.Dir(), "the other side")
	report, err := second.Verify(ctx, nil)
	must(t, err)
	if report.Files == 0 || report.Documents != 1 || report.Found > 0 {
		t.Errorf("its check: %+v", report)
	}
	if _, err := second.Put(ctx, "a", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrReadOnly) {
		t.Errorf("a write: %v", err)
	}

	must(t, db.Close())
	must(t, <-ended)
	if _, err := second.Get(ctx, "a"); !errors.Is(err, jay.ErrUnavailable) {
		t.Errorf("after Close of the owner: %v", err)
	}
	must(t, there.Close())
	must(t, <-endedSecond)
	mine, theirs := net.Pipe()
	if err := jay.AnswerLook(ctx, db, theirs); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("an answer of a closed database: %v", err)
	}
	if _, err := jay.LookThrough(mine, "x", nil); !errors.Is(err, jay.ErrUnavailable) {
		t.Errorf("nobody answers: %v", err)
	}
	for _, o := range []*jay.Options{{FS: storagetest.NewDisk()}, {CacheBytes: 1 << 20}} {
		mine, theirs := net.Pipe()
		if _, err := jay.LookThrough(mine, "x", o); !errors.Is(err, jay.ErrOption) {
			t.Errorf("%+v: %v", o, err)
		}
		if _, err := theirs.Write([]byte("x")); err == nil {
			t.Error("the connection is open")
		}
	}
}

// Ensure that damage of a file of a database that a program has open is seen by one that looks into it.
func TestLook_DamagedFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db := owner(t, dir, jay.Options{})
	put(t, db, "a", `{"text":"`+strings.Repeat("x", 1<<16)+`"}`)
	must(t, db.Compact(ctx))
	there := look(t, dir)
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	must(t, err)
	if len(tables) == 0 {
		t.Fatal("there is no table")
	}
	for _, name := range tables {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // the compaction has replaced it
		}
		must(t, err)
		text[10] ^= 1
		must(t, os.WriteFile(name, text, 0o600))
	}
	report, _ := there.Verify(ctx, nil) // its records may be unreadable
	if report.Found == 0 || len(report.Damages) == 0 || report.Damages[0].File == "" || report.FileBytes == 0 {
		t.Errorf("the report: %+v", report)
	}
}

// Ensure that a program which looks into a damaged database finds what its owner finds, and goes on reading: what could not be read ended
// the connection, and everything after that was an ErrUnavailable.
func TestLook_VerifyDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("Pebble looks for the flipped bit of a damaged block, half a second for each read of it")
	}
	dir := filepath.Join(t.TempDir(), "db")
	db := owner(t, dir, jay.Options{})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		var b jay.Batch
		for j := range 200 {
			b.Insert(fmt.Sprintf("notes/%04d", 200*i+j), fmt.Appendf(nil, `{"text":"%x%x%x%x"}`, random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()), jay.InCollection("Notes"))
		}
		_, err := db.Apply(ctx, &b)
		must(t, err)
	}
	must(t, db.Compact(ctx))
	must(t, db.Close())
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	must(t, err)
	damaged := 0
	for _, name := range tables {
		text, err := os.ReadFile(name)
		must(t, err)
		if len(text) > 100_000 {
			text[50_000] ^= 0xff
			must(t, os.WriteFile(name, text, 0o600))
			damaged++
		}
	}
	if damaged == 0 {
		t.Fatal("no table is large")
	}

	db = owner(t, dir, jay.Options{})
	there := look(t, dir)
	want, err := db.Verify(ctx, nil)
	must(t, err)
	got, err := there.Verify(ctx, nil)
	must(t, err)
	if want.Found < 2 || got.Found != want.Found || got.Documents != want.Documents || want.Documents == 0 || want.Documents == 4000 {
		t.Errorf("got %d damages and %d documents, want %d and %d", got.Found, got.Documents, want.Found, want.Documents)
	}
	for i := range got.Damages {
		equal(t, got.Damages[i].Subject, want.Damages[i].Subject)
		equal(t, string(got.Damages[i].Key), string(want.Damages[i].Key))
	}
	down := 0
	for range there.Documents(ctx, jay.Scan{Reverse: true}) {
		down++
	}
	if down == 0 || down >= 4000 {
		t.Errorf("%d documents can be read from the end", down)
	}
	_, err = there.Get(ctx, "notes/0000")
	must(t, err)
}

// Ensure that the numbers of a database that reserves them ahead are those that it has used.
func TestLook_Relaxed(t *testing.T) {
	dir := t.TempDir()
	db := owner(t, dir, jay.Options{Durability: jay.Relaxed})
	for range 3 {
		put(t, db, "users|", `{}`)
	}
	want, err := db.Counters(ctx)
	must(t, err)
	got, err := look(t, dir).Counters(ctx)
	must(t, err)
	if !reflect.DeepEqual(got, want) || got.Identities["users|"] != 3 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Ensure that of two programs that open a directory at once, one has it, and each time others look into what that one has.
func TestLook_Race(t *testing.T) {
	dir := t.TempDir()
	for round := range 20 {
		opened := make(chan *jay.DB, 2)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				db, err := jay.Open(dir, nil)
				if err == nil {
					opened <- db
				} else if !errors.Is(err, jay.ErrLocked) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(opened) == 0 {
			t.Fatalf("round %d: no owner", round)
		}
		db := <-opened
		if len(opened) > 0 {
			t.Fatalf("round %d: two owners", round)
		}
		put(t, db, "a", fmt.Sprintf(`{"n":%d}`, round))
		there, err := jay.Look(dir, nil)
		must(t, err)
		equal(t, body(t, there, "a"), fmt.Sprintf(`{"n":%d}`, round))
		must(t, errors.Join(there.Close(), db.Close()))
	}
}

// TestLook_Process opens the directory of JAY_LOOK_RACER whenever it is told to, and prints what became of it.
func TestLook_Process(t *testing.T) {
	dir := os.Getenv("JAY_LOOK_RACER")
	if dir == "" {
		t.Skip("only in a process of TestLook_TwoProcesses")
	}
	me := strconv.Itoa(os.Getpid())
	var db *jay.DB
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var err error
		switch said := "done"; in.Text() {
		case "open":
			if db, err = jay.Open(dir, nil); err == nil {
				_, err = db.Put(ctx, "owner", json.RawMessage(`{"pid":`+me+`}`))
				said = "owner"
			} else if errors.Is(err, jay.ErrLocked) {
				said, err = "locked", nil
			}
			must(t, err)
			fmt.Println(said)
		case "look":
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // the owner may not have written yet
				there, err := jay.Look(dir, nil)
				if err == nil {
					doc, getErr := there.Get(ctx, "owner")
					if err = errors.Join(getErr, there.Close()); err == nil {
						_, locked := jay.Open(dir, nil)
						fmt.Println(string(doc.Body()), locked)
						break
					}
				}
				if time.Now().After(deadline) {
					t.Fatal(err)
				}
			}
		case "close":
			must(t, db.Close())
			fmt.Println("closed")
		}
	}
}

// Ensure that of two processes that race for a directory one has it, whether the last owner has closed it or was killed, and that the
// other one looks into what that one has, and is told which process it is.
func TestLook_TwoProcesses(t *testing.T) {
	dir := t.TempDir()
	racer := func() *child.Process { return child.Start(t, "TestLook_Process", "JAY_LOOK_RACER="+dir) }
	tell := func(p *child.Process, what string) {
		t.Helper()
		_, err := io.WriteString(p.In, what+"\n")
		must(t, err)
	}
	racers := [2]*child.Process{racer(), racer()}
	for round := range sample.Of(t, 8).Rounds(40) {
		for _, p := range racers {
			tell(p, "open")
		}
		said := [2]string{racers[0].Line(), racers[1].Line()}
		if said != [2]string{"owner", "locked"} && said != [2]string{"locked", "owner"} {
			t.Fatalf("round %d: %q", round, said)
		}
		owner := slices.Index(said[:], "owner")
		tell(racers[1-owner], "look")
		line := racers[1-owner].Line()
		var pid int
		if _, err := fmt.Sscanf(line, `{"pid":%d}`, &pid); err != nil || !strings.Contains(line, fmt.Sprintf("it is process %d,", pid)) {
			t.Fatalf("round %d: the other one sees %s, %v", round, line, err)
		}
		if round%2 == 0 {
			racers[owner].Kill()
			racers[owner] = racer()
			continue
		}
		tell(racers[owner], "close")
		equal(t, racers[owner].Line(), "closed")
	}
	for _, p := range racers {
		p.Wait()
	}
}

// BenchmarkLook is what a program's own inserts and gets take: with NoLook, with a socket that nobody uses, and while
// another one lists all documents again and again.
func BenchmarkLook(b *testing.B) {
	for _, name := range []string{"noLook", "listening", "looked"} {
		dir := b.TempDir()
		db, err := jay.Open(dir, &jay.Options{Durability: jay.Relaxed, NoLook: name == "noLook"})
		must(b, err)
		for i := range 10_000 {
			_, err := db.Put(ctx, fmt.Sprintf("users/%d", i), json.RawMessage(`{"Name":"Ann","n":1}`))
			must(b, err)
		}
		done, stop := make(chan error, 1), make(chan struct{})
		go func() { done <- nil }()
		if name == "looked" {
			there, err := jay.Look(dir, nil)
			must(b, err)
			<-done
			go func() { done <- errors.Join(listAgain(there, stop), there.Close()) }()
		}
		b.Run(name+"/insert", func(b *testing.B) {
			for b.Loop() {
				_, err := db.Put(ctx, "", json.RawMessage(`{"Name":"Ann","n":1}`))
				must(b, err)
			}
		})
		b.Run(name+"/get", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				_, err := db.Get(ctx, fmt.Sprintf("users/%d", i%10_000))
				must(b, err)
			}
		})
		close(stop)
		must(b, errors.Join(<-done, db.Close()))
	}
}

// listAgain lists all documents again and again until stop is closed.
func listAgain(db *jay.DB, stop chan struct{}) error {
	for {
		for _, err := range db.Documents(ctx, jay.Scan{}) {
			select {
			case <-stop:
				return nil
			default:
			}
			if err != nil {
				return err
			}
		}
	}
}

// Ensure that a feed through the socket follows what the owner writes.
func TestLook_Changes(t *testing.T) {
	dir := t.TempDir()
	db := owner(t, dir, jay.Options{})
	put(t, db, "a", `{}`)
	var ids []string
	for change, err := range look(t, dir).Changes(ctx, "") {
		must(t, err)
		if ids = append(ids, change.ID); change.ID == "b" {
			break
		}
		put(t, db, "b", `{}`)
	}
	equal(t, fmt.Sprint(ids), "[a b]")
}

// Ensure that a database that is closed is told from one that lets none look, and that Close leaves neither a goroutine nor
// a file.
func TestLook_Closed(t *testing.T) {
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	db := owner(t, dir, jay.Options{})
	put(t, db, "a", `{}`)
	there := look(t, dir)
	must(t, db.Close())
	if _, err := there.Get(ctx, "a"); !errors.Is(err, jay.ErrUnavailable) {
		t.Errorf("a get after Close of the owner: %v, want ErrUnavailable", err)
	}
	must(t, there.Close())
	for deadline := time.Now().Add(jaytest.HangGuard); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
	owner(t, dir, jay.Options{NoLook: true})
	if _, err := os.Lstat(filepath.Join(dir, "LOOK")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket: %v", err)
	}
	if _, err := jay.Look(dir, nil); !errors.Is(err, jay.ErrUnavailable) || !strings.Contains(err.Error(), dir) {
		t.Errorf("NoLook: %v, want ErrUnavailable", err)
	}
}

// Ensure that ErrLocked says who has the database open, if that lets others look, and that options which are the owner's are
// refused.
func TestLook_Refused(t *testing.T) {
	dir := t.TempDir()
	owner(t, dir, jay.Options{})
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("a second Open: %v", err)
	}
	for name, o := range map[string]jay.Options{
		"FS":         {FS: storagetest.NewDisk()},
		"CacheBytes": {CacheBytes: 1 << 20},
		"CopyTag":    {CopyTag: "B"},
		"AcceptLoss": {AcceptLoss: func(*jay.DamageError) {}},
	} {
		if _, err := jay.Look(dir, &o); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want ErrOption", name, err)
		}
	}
	if _, err := jay.Look(dir, &jay.Options{DocumentCacheBytes: 1}); !errors.Is(err, jay.ErrShared) {
		t.Errorf("DocumentCacheBytes: %v, want ErrShared", err)
	}
	if _, err := jay.Look(filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v, want fs.ErrNotExist", err)
	}
}

// Ensure that what a killed owner has left does not hinder a check, a reader or the next owner.
func TestLook_LeftOver(t *testing.T) {
	dir := t.TempDir()
	must(t, owner(t, dir, jay.Options{}).Close())
	name := filepath.Join(dir, "LOOK")
	must(t, os.WriteFile(name, []byte("/run/user/1/jay-1/0"), 0o600))
	report, err := jay.VerifyDir(ctx, dir, nil, nil)
	must(t, err)
	equal(t, report.Found+report.Warned, int64(0))
	must(t, owner(t, dir, jay.Options{ReadOnly: true}).Close())
	if _, err := os.Lstat(name); err != nil {
		t.Errorf("a reader has changed it: %v", err)
	}
	db := owner(t, dir, jay.Options{})
	put(t, db, "a", `{}`)
	equal(t, dump(t, look(t, dir)), dump(t, db))
	must(t, db.Checkpoint(ctx, filepath.Join(t.TempDir(), "copy")))
}

// countingConn counts what is sent.
type countingConn struct {
	net.Conn
	sent atomic.Int64
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(p)
}

// Ensure that a query reads documents together from a database that is far away: each question is a round trip.
func TestLookThrough_RoundTrips(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	must(t, err)
	defer db.Close()
	must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Fields: []string{"n"}}))
	for i := range 5000 { // those that the query finds lie far apart
		put(t, db, fmt.Sprintf("notes/%08x", uint32(i)*2654435761), fmt.Sprintf(`{"n":%d}`, i%2500), jay.InCollection("Notes"))
	}
	mine, theirs := net.Pipe()
	go jay.AnswerLook(ctx, db, theirs)
	conn := &countingConn{Conn: mine}
	there, err := jay.LookThrough(conn, "far away", nil)
	must(t, err)
	defer there.Close()

	before := conn.sent.Load()
	found, err := there.Query("Notes").Where(jay.Ge("n", 2450)).All(ctx)
	must(t, err)
	equal(t, len(found), 100)
	if asked := conn.sent.Load() - before; asked > 25 {
		t.Errorf("%d questions for %d documents", asked, len(found))
	}
}
