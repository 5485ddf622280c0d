// Command importing measures `jay import` of a large file beside a BulkWriter that gets
// the same documents from memory.
//
//	go run ./importing [-bytes N] [-rounds R] [-dir DIR] [-smoke]
//
// Both are processes of their own, in turns, each with a new database, and synced. A
// time is that of the process, from its start to its end. Printed are the medians, the
// ratio of each round, and the most memory that a process had resident.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/fixture"
	"github.com/jaydb/jay/bench/stats"
)

const (
	bodyBytes  = fixture.BodyBytes
	collection = "Orders"
)

func main() {
	var m measurement
	flag.Int64Var(&m.bytes, "bytes", 1<<30, "size of the file")
	flag.IntVar(&m.rounds, "rounds", 3, "imports and bulk loads, in turns")
	flag.StringVar(&m.parent, "dir", "", "where the file and the databases are; the default is the system's for temporary files")
	smoke := flag.Bool("smoke", false, "a small file, to see that it works")
	load := flag.String("load", "", "for the program itself: fill this database by a BulkWriter")
	flag.Parse()
	if *smoke {
		m.bytes, m.rounds = 2<<20, 1
	}
	m.docs = int(m.bytes / (bodyBytes + 1))
	err := error(nil)
	if *load != "" {
		err = bulkLoad(*load, m.docs)
	} else {
		err = m.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "importing:", err)
		os.Exit(1)
	}
}

// measurement is one run of the command.
type measurement struct {
	bytes  int64
	docs   int
	rounds int
	parent string

	dir string // removed at the end
	jay string // the command
}

func (m *measurement) run() (err error) {
	if m.dir, err = os.MkdirTemp(m.parent, "importing"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.dir)) }()
	m.jay = filepath.Join(m.dir, "jay")
	if out, err := exec.Command("go", "build", "-o", m.jay, "github.com/jaydb/jay/cmd/jay").CombinedOutput(); err != nil {
		return fmt.Errorf("build the command: %w\n%s", err, out)
	}
	file := filepath.Join(m.dir, "orders.ndjson")
	if err := m.writeFile(file); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	names := []string{"BulkWriter, from memory", "jay import"}
	times, most := make([][]float64, 2), make([]int64, 2)
	for round := range m.rounds {
		for i := range names {
			at := (round + i) % 2
			db := filepath.Join(m.dir, "db")
			command := exec.Command(self, "-bytes", strconv.FormatInt(m.bytes, 10), "-load", db)
			if at == 1 {
				command = exec.Command(m.jay, "--db", db, "import", "--collection", collection, file)
			}
			took, resident, err := m.time(command)
			if err == nil {
				err = m.check(db)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", names[at], err)
			}
			times[at], most[at] = append(times[at], took.Seconds()), max(most[at], resident)
		}
	}
	fmt.Printf("%d documents of %d bytes, %d rounds\n\n| | s | MB/s | resident, MB |\n|---|---|---|---|\n", m.docs, bodyBytes, m.rounds)
	for i, name := range names {
		s := stats.Median(times[i])
		fmt.Printf("| %s | %.2f | %.0f | %.0f |\n", name, s, float64(m.bytes)/1e6/s, float64(most[i])/1e6)
	}
	fmt.Printf("\nrate of jay import ÷ BulkWriter: %s\n", stats.SpreadOf(stats.Ratios(times[0], times[1])))
	return nil
}

// time runs a command to its end.
func (m *measurement) time(command *exec.Cmd) (took time.Duration, resident int64, err error) {
	start := time.Now()
	if out, err := command.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("%w\n%s", err, out)
	}
	return time.Since(start), mostResident(command.ProcessState), nil
}

// check opens a database, counts its documents, and removes it.
func (m *measurement) check(dir string) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	orders, err := jay.CollectionOf[fixture.Order](db, jay.Named(collection))
	if err != nil {
		return err
	}
	n, err := orders.Query().Count(context.Background())
	if err == nil && n != int64(m.docs) {
		err = fmt.Errorf("%d documents of %d are there", n, m.docs)
	}
	return err
}

func (m *measurement) writeFile(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = each(m.docs, func(body []byte) error {
		_, err := w.Write(append(body, '\n'))
		return err
	})
	return errors.Join(err, w.Flush(), f.Close())
}

// each calls fn with the documents, in memory that the next call uses again.
func each(n int, fn func(body []byte) error) error {
	source, err := fixture.NewSource(bodyBytes, n)
	if err != nil {
		return err
	}
	var body []byte
	for i := range n {
		body = source.Append(body[:0], i, fixture.FirstRevision)
		if err := fn(body); err != nil {
			return err
		}
	}
	return nil
}

// bulkLoad fills a database by a BulkWriter.
func bulkLoad(dir string, n int) (err error) {
	ctx := context.Background()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return each(n, func(body []byte) error {
		_, err := w.Store(ctx, collection, body)
		return err
	})
}
