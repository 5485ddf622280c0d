// Package importing measures `jay import` of a large file beside a BulkWriter that gets
// the same documents from memory.
//
//	go run ./measure importing [-bytes N] [-rounds R] [-dir DIR] [-smoke]
//
// Both are processes of their own, in turns, each with a new database, and synced. A
// time is that of the process, from its start to its end. Printed are the medians, the
// ratio of each round, and the most memory that a process had resident.
package importing

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
	"github.com/jaydb/jay/bench/harness"
	"github.com/jaydb/jay/bench/stats"
)

const (
	bodyBytes  = fixture.BodyBytes
	collection = "Orders"
)

// Measurement is this one.
var Measurement = harness.Measurement{
	Name: "importing", About: "jay import of a large file beside a BulkWriter", Rounds: 3,
	New: func(flags *flag.FlagSet) func(*harness.Run) error {
		m := new(measurement)
		flags.Int64Var(&m.bytes, "bytes", 1<<30, "size of the file")
		return func(r *harness.Run) error {
			if m.Run = r; r.Smoke {
				m.bytes = 2 << 20
			}
			return m.run()
		}
	},
}

// The measurement runs its own program again as the process that a BulkWriter is in: with the directory of the database and the size of the file.
const loadEnv, bytesEnv = "JAY_MEASURE_LOAD", "JAY_MEASURE_BYTES"

// Load fills a database, if this process is the one that a BulkWriter is in. It returns false if it is not.
func Load() (is bool, err error) {
	dir := os.Getenv(loadEnv)
	if dir == "" {
		return false, nil
	}
	bytes, err := strconv.ParseInt(os.Getenv(bytesEnv), 10, 64)
	if err == nil {
		err = bulkLoad(dir, documentsIn(bytes))
	}
	return true, err
}

func documentsIn(bytes int64) int { return int(bytes / (bodyBytes + 1)) }

// measurement is one run of the command.
type measurement struct {
	*harness.Run
	bytes int64
	docs  int
	jay   string // the command
}

func (m *measurement) run() (err error) {
	m.docs = documentsIn(m.bytes)
	m.jay = filepath.Join(m.Dir, "jay")
	if out, err := exec.Command("go", "build", "-o", m.jay, "github.com/jaydb/jay/cmd/jay").CombinedOutput(); err != nil {
		return fmt.Errorf("build the command: %w\n%s", err, out)
	}
	file := filepath.Join(m.Dir, "orders.ndjson")
	if err := m.writeFile(file); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	names := []string{"BulkWriter, from memory", "jay import"}
	times, most := make([][]float64, 2), make([]int64, 2)
	err = m.Turns(len(names), func(_, at int) error {
		db := filepath.Join(m.Dir, "db")
		command := exec.Command(self)
		command.Env = append(os.Environ(), loadEnv+"="+db, bytesEnv+"="+strconv.FormatInt(m.bytes, 10))
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
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d documents of %d bytes, %d rounds\n\n| | s | MB/s | resident, MB |\n|---|---|---|---|\n", m.docs, bodyBytes, m.Rounds)
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
