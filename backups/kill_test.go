package backups_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
	"github.com/jaydb/jay/internal/child"
)

// killVariable is the directory that the processes of TestKill share.
const killVariable = "JAY_KILL_BACKUPS_IN"

// killKeep is how many backups stay.
const killKeep = 4

// killOptions are those of a Keeper of TestKill: a chain has a few links.
func killOptions(dir string) backups.Options {
	return backups.Options{Dir: filepath.Join(dir, "copies"), Full: 200 * time.Millisecond, Keep: killKeep}
}

// TestKill_Keeper is the process that is killed: a writer counts documents and says each, while a Keeper makes one backup after
// another, and says each with the number of documents that were acknowledged before it.
func TestKill_Keeper(t *testing.T) {
	dir := os.Getenv(killVariable)
	if dir == "" {
		t.Skip("only in a process of TestKill")
	}
	db, err := jay.Open(filepath.Join(dir, "db"), &jay.Options{MemTableBytes: 1 << 20, NoLook: true})
	if err != nil {
		t.Fatal(err)
	}
	first, err := db.Query("Docs").Count(ctx)
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := make(chan int)
	last := make(chan int, 1)
	last <- int(first)
	go func() {
		for n := int(first) + 1; ; n++ {
			if _, err := db.Put(ctx, fmt.Sprint("docs/", n), []byte(`{"text":"`+strings.Repeat("x", n%3000)+`"}`), jay.InCollection("Docs")); err != nil {
				fmt.Println("failed", err)
				close(acknowledged)
				return
			}
			<-last
			last <- n
			fmt.Println("ack", n)
			time.Sleep(200 * time.Microsecond)
		}
	}()
	o := killOptions(dir)
	o.Each = func(_ context.Context, b backups.Backup) error {
		fmt.Println("sent", b.Number)
		return nil
	}
	k, err := backups.Open(db, o)
	if err != nil {
		t.Fatal(err)
	}
	for {
		before := <-last
		last <- before
		b, err := k.Make(ctx)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("made", b.Number, before)
	}
}

// Ensure that kill -9 of a process that makes backups, at any time, leaves a directory in which every backup restores with what was acknowledged before it
// was begun, keeps those that are to stay, hands each over before it is marked, and goes on. JAY_KILL_BACKUPS is the number of kills.
func TestKill(t *testing.T) {
	kills := 4
	if testing.Short() {
		kills = 2
	}
	if text := os.Getenv("JAY_KILL_BACKUPS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for done := 0; done < kills; done += killsOfOne {
		killAgain(t, random, min(kills-done, killsOfOne))
	}
}

// killsOfOne is how many kills one database gets: its backups, each of which is restored after each kill, become larger.
const killsOfOne = 40

// killAgain kills the processes of one database.
func killAgain(t *testing.T, random *rand.Rand, kills int) {
	t.Helper()
	dir := t.TempDir()
	w := &killed{t: t, dir: dir, made: make(map[uint64]int64), sent: make(map[uint64]bool)}
	for range kills {
		p := child.Start(t, "TestKill_Keeper", killVariable+"="+dir)
		left := 1 + random.IntN(150)
		made := len(w.made)
		p.KillAt(func(line string) bool {
			w.take(line)
			left--
			return left <= 0 && (len(w.made) > made || random.IntN(4) == 0)
		})
		w.check()
	}

	// The next Keeper goes on, and has nothing left that is too old or was not finished.
	db, err := jay.Open(filepath.Join(dir, "db"), &jay.Options{NoLook: true})
	if err != nil {
		t.Fatal(err)
	}
	k, err := backups.Open(db, killOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	b, err := k.Make(ctx)
	if err := errors.Join(err, k.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	w.made[b.Number] = w.acknowledged
	chains := w.check()
	newer := 0
	for _, chain := range chains[1:] {
		newer += len(chain)
	}
	if newer >= killKeep {
		t.Errorf("the oldest of %d chains is left, and %d backups are newer: %d are to stay", len(chains), newer, killKeep)
	}
	left, err := filepath.Glob(filepath.Join(dir, "copies", "*unfinished*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	t.Logf("%d kills, %d backups that were said, %d documents, %d restores", kills, len(w.made), w.acknowledged, w.restores)
}

// killed is what the processes of TestKill have said.
type killed struct {
	t            *testing.T
	dir          string
	acknowledged int64
	made         map[uint64]int64 // by the number of a backup: the documents before it
	sent         map[uint64]bool
	restores     int
}

// take takes a line of a process.
func (w *killed) take(line string) {
	words := strings.Fields(line)
	if len(words) > 0 && words[0] == "failed" {
		w.t.Error(line)
	}
	var numbers []int64
	for _, word := range words[min(1, len(words)):] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return // a line of the test binary
		}
		numbers = append(numbers, n)
	}
	switch {
	case len(numbers) == 1 && words[0] == "ack":
		w.acknowledged = numbers[0]
	case len(numbers) == 1 && words[0] == "sent":
		w.sent[uint64(numbers[0])] = true
	case len(numbers) == 2 && words[0] == "made":
		w.made[uint64(numbers[0])] = numbers[1]
	}
}

// check restores every chain, and returns the names of the files of each, the oldest first.
func (w *killed) check() (chains [][]string) {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.dir, "copies", "*.jaybackup"))
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(names)
	there := make(map[uint64]bool)
	var newest uint64
	for _, name := range names {
		n, err := strconv.ParseUint(filepath.Base(name)[:8], 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		there[n], newest = true, max(newest, n)
		if strings.Contains(name, "-full") {
			chains = append(chains, nil)
		}
		if len(chains) == 0 {
			w.t.Fatalf("%s follows no full backup", name)
		}
		chains[len(chains)-1] = append(chains[len(chains)-1], name)
		if _, err := os.Stat(name + ".sent"); err == nil && !w.sent[n] {
			w.t.Errorf("%s is marked, and was not handed over", name)
		}
	}
	for n := range w.made {
		if n+killKeep > newest && !there[n] {
			w.t.Errorf("backup %d is gone, and %d is the newest", n, newest)
		}
	}
	for _, chain := range chains {
		info, err := backups.Drill(ctx, nil, filepath.Join(w.dir, "drill"), chain...)
		if err != nil {
			w.t.Fatalf("%v: %v", chain, err)
		}
		w.restores++
		last, err := strconv.ParseUint(filepath.Base(chain[len(chain)-1])[:8], 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		if info.Documents < w.made[last] {
			w.t.Errorf("backup %d has %d documents, and %d were acknowledged before it", last, info.Documents, w.made[last])
		}
	}
	return chains
}
