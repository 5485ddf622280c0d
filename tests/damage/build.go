package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/jaydb/jay"
)

// buildCommand makes this program a writer: the arguments are the directory,
// the session's number, the durability and what ends it.
const buildCommand = "build"

// How a session ends.
const (
	endQuiet  = "closed"            // Close, when all writers are done
	endLoaded = "closed under load" // Close, while the writers go on
	endKilled = "killed under load" // kill -9
)

const (
	writers     = 8
	sessions    = 6  // each but the first writes the log before it into a table
	sessionOps  = 64 // in a session that ends quietly
	loadedAcks  = 240
	memTable    = 1 << 20
	collection  = "Docs"
	otherImages = 3 // copies taken while the last session runs
)

// image is a database as the campaign damages it, with what must be in it.
type image struct {
	name    string
	dir     string
	older   []string // directories with earlier states of its files, oldest first
	killed  bool
	relaxed bool
	want    *state
}

// entry is a line of the ledger that a writer prints: an operation that
// begins, or its acknowledgement.
type entry struct {
	Begin  bool   `json:"begin,omitempty"`
	G      int    `json:"g"` // the goroutine
	N      int    `json:"n"` // its number, which is in the body
	ID     string `json:"id,omitempty"`
	Delete bool   `json:"delete,omitempty"`
}

// body is what the documents hold.
type body struct {
	G, N int
	City string
	Tags []string
	Mail string
	Pad  string
}

func newBody(g, n int) json.RawMessage {
	text, err := json.Marshal(body{
		G: g, N: n,
		City: "city" + strconv.Itoa(n%7),
		Tags: []string{"tag" + strconv.Itoa(n%5), "tag" + strconv.Itoa(5+g%3)},
		Mail: fmt.Sprintf("%d.%d@example.org", g, n),
		Pad:  strings.Repeat(strconv.Itoa(n%10), 100+n%150),
	})
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	return text
}

func options(relaxed, mustExist bool) *jay.Options {
	o := &jay.Options{MemTableBytes: memTable, CacheBytes: 4 << 20, MustExist: mustExist, NoLook: true} // a socket cannot be copied
	if relaxed {
		o.Durability = jay.Relaxed
	}
	return o
}

// indexes are those of the collection.
var indexes = []jay.Index{
	{Fields: []string{"City"}},
	{Fields: []string{"Tags"}},
	{Fields: []string{"Mail"}, Unique: true},
}

// buildChild is one session of writers. It prints the ledger.
func buildChild(args []string) error {
	if len(args) != 4 {
		return errors.New("build takes a directory, a session, a durability and an end")
	}
	dir, end := args[0], args[3]
	session, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	db, err := jay.Open(dir, options(args[2] == "relaxed", false))
	if err != nil {
		return err
	}
	ctx := context.Background()
	for _, ix := range indexes {
		if err := db.EnsureIndex(ctx, collection, ix); err != nil {
			return err
		}
	}

	var mu sync.Mutex
	say := func(e entry) {
		mu.Lock()
		defer mu.Unlock()
		text, _ := json.Marshal(e) // strings and numbers always encode
		fmt.Printf("%s\n", text)
	}
	acks := make(chan struct{}, 1<<20)
	var wg sync.WaitGroup
	failures := make([]error, writers)
	for g := range writers {
		wg.Go(func() {
			failures[g] = write(ctx, db, g, session, end, func(e entry) {
				say(e)
				if !e.Begin {
					acks <- struct{}{}
				}
			})
		})
	}
	if end == endLoaded {
		for range loadedAcks {
			<-acks
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
	wg.Wait()
	for _, err := range failures {
		if err != nil && !(end == endLoaded && errors.Is(err, jay.ErrClosed)) {
			return err
		}
	}
	return db.Close()
}

// write is one goroutine of a session. Only it writes its named documents, so
// that the ledger says what each must hold.
func write(ctx context.Context, db *jay.DB, g, session int, end string, note func(entry)) error {
	var own []string // documents with made IDs
	for i := 0; end != endQuiet || i < sessionOps/writers; i++ {
		n := session*1_000_000 + i
		e := entry{Begin: true, G: g, N: n}
		var m jay.Metadata
		var err error
		switch in := jay.InCollection(collection); i % 5 {
		case 0:
			note(e)
			m, err = db.Put(ctx, "users|", newBody(g, n), in)
		case 1:
			note(e)
			m, err = db.Insert(ctx, "orders/", newBody(g, n), in)
		case 2:
			note(e)
			m, err = db.Store(ctx, collection, newBody(g, n))
		case 3:
			e.ID = fmt.Sprintf("things/%d-%d", g, i%4)
			note(e)
			m, err = db.Put(ctx, e.ID, newBody(g, n), in)
		case 4:
			if i%10 == 4 {
				e.ID, own = own[0], own[1:]
			} else {
				e.ID = fmt.Sprintf("things/%d-%d", g, i%4)
			}
			e.Delete = true
			note(e)
			m, err = jay.Metadata{ID: e.ID}, db.Delete(ctx, e.ID)
			if errors.Is(err, jay.ErrNotFound) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
		if i%5 < 3 {
			own = append(own, m.ID)
		}
		note(entry{G: g, N: n, ID: m.ID, Delete: e.Delete})
	}
	return nil
}

// buildImage builds a database below dir.
func buildImage(dir, end string, relaxed bool) (*image, error) {
	durability := "synced"
	if relaxed {
		durability = "relaxed"
	}
	im := &image{
		name:    end + ", " + durability,
		dir:     filepath.Join(dir, "image"),
		killed:  end == endKilled,
		relaxed: relaxed,
	}
	ledger := newLedger()
	keep := func() error {
		older := filepath.Join(dir, "older"+strconv.Itoa(len(im.older)))
		im.older = append(im.older, older)
		return copyDir(older, im.dir)
	}
	for session := range sessions {
		last := session == sessions-1
		how := endQuiet
		if last {
			how = end
		}
		cmd := exec.Command(os.Args[0], buildCommand, im.dir, strconv.Itoa(session), durability, how)
		cmd.Env = childEnv()
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		err = follow(cmd, out, ledger, how == endKilled, func() error {
			if last {
				return keep()
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s, session %d: %w", im.name, session, err)
		}
		if !last {
			if err := keep(); err != nil {
				return nil, err
			}
		}
	}

	want, err := ledger.state(im)
	if err != nil {
		return nil, fmt.Errorf("%s, undamaged: %w", im.name, err)
	}
	im.want = want
	return im, nil
}

// follow reads the ledger of a session to its end. It calls keep a few times
// on the way, and kills a session that is to be killed.
func follow(cmd *exec.Cmd, out io.Reader, l *ledger, kill bool, keep func() error) error {
	lines := bufio.NewReader(out)
	acks, killed := 0, false
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // an incomplete line was not acknowledged
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		l.add(e)
		if e.Begin {
			continue
		}
		acks++
		if acks%(loadedAcks/(otherImages+1)) == 0 && acks < loadedAcks && !killed {
			if err := keep(); err != nil {
				return err
			}
		}
		if kill && acks == loadedAcks {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				return err
			}
		}
	}
	if err := cmd.Wait(); err != nil && !killed {
		return err
	}
	return nil
}

// copyDir copies the files of a directory, which may vanish meanwhile.
func copyDir(to, from string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(from, f.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, f.Name()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
