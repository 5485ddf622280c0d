package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// processes are the scripts whose commands are processes in short runs, too: those that run in
// the background and end by a signal, the demo, which runs the go command, and one that
// sees the command as the system sees it, with a database that another process holds.
var processes = []string{"backup_every", "demo", "open", "serve", "studio"}

// meeting are the scripts that a short run with the race detector makes: in their commands
// goroutines meet, which answer, watch, read ahead or wait for a signal.
var meeting = []string{"backup_every", "changes", "cluster", "demo", "import_forms", "open", "serve", "shell", "studio", "subscriptions"}

// inThisProcess finds what stands in the lines of a script that start the command or give it
// its input.
var inThisProcess = regexp.MustCompile(`(?m)^((?:\[[^\]]*\] )?(?:! )?)(?:(fails \d+ )|exec )jay\b`)

// scripts returns the scripts of testdata: in a short run half of them, the other half the day
// after, but for those that -run names. In a short run those that need no process have
// lines that begin with run and input in place of exec and stdin: the test binary takes longer
// to start than most commands to end. In full each command is a process.
func scripts(t *testing.T) (files []string, here map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	here = make(map[string]bool)
	if !testing.Short() {
		return files, here
	}
	if jaytest.Race {
		files = nil
		for _, name := range meeting {
			files = append(files, filepath.Join("testdata", name+".txtar"))
		}
	}
	if named := flag.Lookup("test.run").Value.String(); !jaytest.Race && !strings.Contains(named, "/") {
		today, all := sample.Of(t, 2), files
		files = nil
		for i, file := range all {
			if today.Has(i) {
				files = append(files, file)
			}
		}
	}
	for _, name := range processes {
		if _, err := os.Stat(filepath.Join("testdata", name+".txtar")); err != nil {
			t.Errorf("a script that needs processes: %v", err)
		}
	}
	dir := t.TempDir()
	for i, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if slices.Contains(processes, name) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, archive, _ := strings.Cut(string(text), "\n-- ")
		script = inThisProcess.ReplaceAllString(script, "${1}${2}run jay")
		script = strings.ReplaceAll(script, "\nstdin ", "\ninput ")
		files[i] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(files[i], []byte(script+"\n-- "+archive), 0o666); err != nil {
			t.Fatal(err)
		}
		here[name] = true
	}
	return files, here
}

// inTurn is the T of scripts: one after the other if they run in this process, whose working
// directory they change, else side by side.
type inTurn struct {
	*testing.T
	here  map[string]bool // the scripts that run in this process
	alone bool
}

func (t inTurn) Run(name string, fn func(testscript.T)) {
	t.T.Run(name, func(sub *testing.T) { fn(inTurn{sub, t.here, t.here[name]}) })
}

func (t inTurn) Parallel() {
	if !t.alone {
		t.T.Parallel()
	}
}

func (t inTurn) Verbose() bool { return testing.Verbose() }

// inputs is the key of what the next command of a script finds on its standard input.
type inputs struct{}

// input FILE makes a file the standard input of the next command that runs in this process.
func scriptInput(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: input file")
	}
	*ts.Value(inputs{}).(*string) = ts.ReadFile(args[0])
}

// run jay ARGUMENT... runs the command in this process.
func scriptRun(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || args[0] != "jay" {
		ts.Fatalf("usage: run jay argument...")
	}
	code, _ := runHere(ts, args[1:])
	if (code != 0) != neg {
		ts.Fatalf("exit code %d", code)
	}
}

// runHere runs the command in this process, with the script's directory, environment and
// input, and returns its exit code and what it says on standard error.
func runHere(ts *testscript.TestScript, args []string) (code int, complaints string) {
	input := ts.Value(inputs{}).(*string)
	stdin := strings.NewReader(*input)
	*input = ""
	back, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	defer func() { ts.Check(os.Chdir(back)) }()
	var said strings.Builder
	code = run(context.Background(), args, stdin, ts.Stdout(), &said, ts.Getenv)
	_, err = ts.Stderr().Write([]byte(said.String()))
	ts.Check(err)
	return code, said.String()
}
