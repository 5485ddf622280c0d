package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer/smuggler"
)

// demoCommand demonstrates jay.
type demoCommand struct{}

// Help is shown by jay demo --help.
func (*demoCommand) Help() string {
	return `It stores what "go list -json std" says about Go's own packages in a new database, and one document under each kind of ID. The database is in a temporary directory, or where --db says, which must be new. It stays there, to be played with.`
}

// demoHiLoID is the ID of the document from which the demo's HiLo numbers come.
const demoHiLoID = "Raven/HiLo/users"

// Run runs the demo.
func (c *demoCommand) Run(ctx context.Context, a *app) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New(`demo needs the go command on the PATH: it imports the output of "go list -json std"`)
	}
	if err := a.chooseDemoDir(); err != nil {
		return err
	}
	return a.withDatabase(true, func(db *jay.DB) error {
		// Flush after each step, so that the output keeps up with the work.
		for _, step := range []func(context.Context, *jay.DB) error{a.demoImport, a.demoIDs, a.demoHiLo, a.demoRead, a.demoQuery} {
			if err := errors.Join(step(ctx, db), a.stdout.Flush()); err != nil {
				return err
			}
		}
		return a.demoGoOn()
	})
}

// chooseDemoDir sets the directory to a temporary one, unless --db names one,
// which must be new.
func (a *app) chooseDemoDir() error {
	if a.dirGiven {
		names, err := os.ReadDir(a.dir)
		if len(names) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("demo needs a new directory, and %q is there already", a.dir)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "jay-demo-")
	a.dir = filepath.Join(dir, "jay.db")
	return err
}

func (a *app) heading(text string) error {
	return a.print("\n" + text + "\n" + strings.Repeat("─", len([]rune(text))) + "\n")
}

// demoImport imports the go command's descriptions of the packages of the standard
// library.
func (a *app) demoImport(ctx context.Context, db *jay.DB) error {
	if err := a.heading("1. Import: go list -json std | jay import --collection Packages"); err != nil {
		return err
	}
	if err := a.stdout.Flush(); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "list", "-json", "std")
	command.Dir = os.TempDir() // outside of the user's module
	var stderr strings.Builder
	command.Stderr = &stderr
	packages, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("go list: %w", err)
	}

	start := time.Now()
	im := smuggler.NewImporter(db, smuggler.ImportOptions{Collection: "Packages", MaxBytes: a.options.MaxDocumentBytes, MaxDepth: a.options.MaxDepth, Ahead: true})
	loadErr := im.Load(ctx, smuggler.NDJSON, smuggler.Input{Name: "go list", Reader: packages})
	_, drainErr := io.Copy(io.Discard, packages) // else Wait could block
	if err := command.Wait(); err != nil && loadErr == nil {
		return fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	if loadErr != nil {
		return loadErr
	}
	return errors.Join(drainErr, a.printSummary(summaryOf(im.Progress(), time.Since(start))))
}

// demoStrategies are the five strategies, each with its request and flags.
var demoStrategies = []struct {
	name, request, flags string
	hilo                 bool
}{
	{name: "semantic", request: "users/ann", flags: "--id users/ann"},
	{name: "GUID", request: "", flags: "--id ''"},
	{name: "server-side", request: "users/", flags: "--id users/"},
	{name: "identity", request: "users|", flags: "--id 'users|'"},
	{name: "HiLo", hilo: true, flags: "(no --id)"},
}

// demoIDs stores one document by each strategy.
func (a *app) demoIDs(ctx context.Context, db *jay.DB) error {
	if err := a.heading("2. Five ways to an ID: jay put --collection Users …"); err != nil {
		return err
	}
	results := newFigures("Strategy", "Asked for with", "Final ID")
	results.words = true
	for _, s := range demoStrategies {
		body, err := json.Marshal(map[string]string{"Name": "Ann", "Strategy": s.name})
		if err != nil {
			return err
		}
		var m jay.Metadata
		if s.hilo {
			m, err = db.Store(ctx, "Users", body)
		} else {
			m, err = db.Put(ctx, s.request, body, jay.InCollection("Users"))
		}
		if err != nil {
			return err
		}
		results.add(s.name, s.flags, m.ID)
	}
	return a.print(results.render(a.width) + "\n")
}

// demoHiLo shows the document that the HiLo numbers come from.
func (a *app) demoHiLo(ctx context.Context, db *jay.DB) error {
	if err := a.heading("3. Where HiLo numbers come from: jay get " + demoHiLoID); err != nil {
		return err
	}
	doc, err := db.Get(ctx, demoHiLoID)
	if err != nil {
		return err
	}
	if err := a.printDocument(doc); err != nil {
		return err
	}
	return a.print("Max is the end of the range that this process reserved. When it closes the\ndatabase, it gives back the numbers that it has not used.\n")
}

// demoRead reads a document back.
func (a *app) demoRead(ctx context.Context, db *jay.DB) error {
	if err := a.heading("4. Read back: jay get users/ann"); err != nil {
		return err
	}
	doc, err := db.Get(ctx, "USERS/ann") // case does not matter
	if err != nil {
		return err
	}
	return a.printDocument(doc)
}

// demoQuery queries the imported packages.
func (a *app) demoQuery(ctx context.Context, db *jay.DB) error {
	const text = "from Packages where startsWith(ImportPath, 'encoding/') order by ImportPath select ImportPath, Doc limit 5"
	if err := a.heading("5. Ask: jay query …"); err != nil {
		return err
	}
	if err := a.print(text + "\n"); err != nil {
		return err
	}
	q, err := db.RQL(text, nil)
	if err != nil {
		return err
	}
	_, err = a.printAnswers(ctx, q, &includes{})
	return err
}

// demoGoOn prints commands to try next.
func (a *app) demoGoOn() error {
	if err := a.heading("6. Go on"); err != nil {
		return err
	}
	remove := a.dir
	if !a.dirGiven {
		remove = filepath.Dir(a.dir)
	}
	return a.print(strings.NewReplacer("<jay>", ownName(), "<dir>", shellQuoted(a.dir), "<remove>", shellQuoted(remove)).Replace(`export JAY_DB=<dir>

<jay> stats
<jay> list --collection Users
<jay> list --collection Packages --ids-only --limit 5
<jay> get packages/1-A
<jay> query 'from Packages where Standard = true order by Name limit 5'
<jay> index create Packages Name
echo '{"Name":"Bob"}' | <jay> put --collection Users
<jay> export backup.ndjson.gz

The database stays until you remove it:

rm -r <remove>
`))
}

// ownName returns the command line that starts this program again.
func ownName() string {
	if _, err := exec.LookPath("jay"); err == nil {
		return "jay"
	}
	self, err := os.Executable()
	if err != nil || strings.Contains(self, "go-build") {
		return "go run ./cmd/jay" // its executable is temporary
	}
	return shellQuoted(self)
}

// shellQuoted returns s as one word for a shell.
func shellQuoted(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
