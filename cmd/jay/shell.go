package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jaydb/jay"
)

// shellCommand runs statements that are typed or are in a script.
type shellCommand struct {
	Yes bool   `short:"y" help:"Do not ask before documents that a query finds are changed."`
	Dir string `arg:"" optional:"" help:"Directory of the database; the default is that of --db."`
}

// Help is shown by jay shell --help.
func (*shellCommand) Help() string {
	return `A query may have several lines and ends with a semicolon or an empty line. Any other command ends with its line; "help" lists them. Tab completes commands, collections, fields and IDs, the arrow keys and Ctrl-R find what was typed before, Ctrl-C cancels what runs, and Ctrl-D leaves.

If standard input is not a terminal, it is a script: the shell stops at the first error, names its line, and exits with 1. Changes of what a query finds need --yes then.

What was typed is kept in ~/.local/state/jay/history, or in $JAY_HISTORY, for this user only.

Examples:

    jay shell shop.jay
    jay shell --json shop.jay < report.rql
    echo "from Orders where Total > 100;" | jay shell shop.jay`
}

// Run runs the shell.
func (c *shellCommand) Run(ctx context.Context, a *app) error {
	if c.Dir != "" {
		if a.dirGiven {
			return usageError{text: "the directory is named twice, by --db and as an argument"}
		}
		if err := directories(a.command, c.Dir); err != nil {
			return err
		}
		a.dir = c.Dir
	}
	in, isFile := a.stdin.(*os.File)
	out, isOut := a.output.(*os.File)
	interactive := isFile && isOut && a.isTerminal(in) && a.isTerminal(out)
	return a.withDatabase(false, func(db *jay.DB) (err error) {
		s := newShell(a, db, c.Yes)
		defer func() { err = andThen(err, s.closeOther(db)) }()
		if !interactive {
			return s.script(ctx, a.stdin)
		}
		h, err := openHistory(historyFile(a.getenv))
		if err != nil {
			a.note("what is typed is not kept: %v", err)
			h.file = ""
		}
		return s.converse(ctx, newConsole(in, out, h))
	})
}

// shell runs statements on a database. It is used by one goroutine.
type shell struct {
	app    *app
	db     *jay.DB
	params map[string]any
	yes    bool
	format outputFormat

	console *console // nil for a script
	paged   bool
}

// reconnect opens the database anew if the program that had it open has ended, and another one has it open now. A statement that
// has begun is not repeated.
func (s *shell) reconnect(ctx context.Context) error {
	if !s.app.looked {
		return nil
	}
	if _, err := s.db.Exists(ctx, "0"); !errors.Is(err, jay.ErrUnavailable) {
		return nil // another error is the statement's
	}
	db, err := s.app.lookInto(nil)
	if err != nil {
		return explained{fmt.Sprintf("the program that had the database open has ended, and no other one answers: the statement was not run; once a program has it open again, the next one is: %v", err), err}
	}
	old := s.db
	s.db = db
	s.app.note("the program that had the database open has ended: another one has it open now")
	return old.Close()
}

// closeOther closes the database, unless it is the one that the shell began with, which its caller closes.
func (s *shell) closeOther(first *jay.DB) error {
	if s.db == first {
		return nil
	}
	return s.db.Close()
}

// outputFormat is how results are printed.
type outputFormat string

const (
	showTable  outputFormat = "table"  // queries as a table, documents over several lines
	showJSON   outputFormat = "json"   // one line each
	showPretty outputFormat = "pretty" // over several lines
)

func newShell(a *app, db *jay.DB, yes bool) *shell {
	s := &shell{app: a, db: db, params: make(map[string]any), yes: yes, format: showTable}
	if a.json {
		s.format = showJSON
	}
	return s
}

// statementLimit is the greatest length of a statement, in bytes.
func (s *shell) statementLimit() int { return s.app.options.MaxDocumentBytes + maxQueryFile }

// script runs the statements of a reader, and stops at the first error.
func (s *shell) script(ctx context.Context, r io.Reader) error {
	split := &statements{limit: s.statementLimit()}
	ahead := newReadAhead(ctx, r)
	defer ahead.stop()
	lines := bufio.NewReaderSize(ahead, 64<<10)
	for {
		line, err := readScriptLine(lines, s.statementLimit())
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the script: %w", err)
		}
		atEnd := err != nil
		all, err := split.add(line)
		if err != nil {
			return err
		}
		if last, found := split.end(); atEnd && found {
			all = append(all, last)
		}
		for _, one := range all {
			if err := s.run(ctx, one); errors.Is(err, errLeave) {
				return nil
			} else if err != nil {
				return scriptError{one.line, err}
			}
		}
		if atEnd {
			return nil
		}
	}
}

// readScriptLine reads a line of at most limit bytes.
func readScriptLine(r *bufio.Reader, limit int) (string, error) {
	line, err := readLine(r, limit)
	if errors.Is(err, errLongLine) {
		return "", fmt.Errorf("a line of more than %d bytes: import large documents with jay import", limit)
	}
	return strings.TrimRight(string(line), "\r\n"), err
}

// scriptError is the error of a statement of a script.
type scriptError struct {
	line int // of the statement
	err  error
}

// Error returns the text with the line.
func (e scriptError) Error() string {
	return fmt.Sprintf("line %d: %s", e.place(), oneLine(e.err))
}

// place returns the line of the script.
func (e scriptError) place() int {
	if syntax, is := errors.AsType[*jay.SyntaxError](e.err); is {
		return e.line + syntax.Line - 1
	}
	return e.line
}

// Unwrap returns the error of the statement.
func (e scriptError) Unwrap() error { return e.err }

// Prompts of the shell, for the first and for the following lines of a statement.
const (
	shellPrompt     = "jay> "
	shellPromptMore = "...> "
)

// converse reads statements from a terminal and runs them until the user leaves. Errors
// are shown, and the shell continues.
func (s *shell) converse(parent context.Context, c *console) error {
	// An interruption cancels the running statement only. main takes it for the end of
	// the command and has ended parent, so the shell has a context of its own. Other
	// signals end the shell.
	ctx, end := context.WithCancel(context.WithoutCancel(parent))
	defer end()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(ends)
	go func() {
		select {
		case <-ends:
			end()
		case <-ctx.Done():
		}
	}()

	s.console, s.paged = c, true
	split := &statements{limit: s.statementLimit()}
	typed := "" // the statement so far
	c.complete = func(before string) completion { return s.complete(ctx, typed+before) }
	s.say("%s. A query ends with a semicolon or an empty line; help lists the commands; Ctrl-D leaves.\n", s.db.Dir())
	for {
		prompt := shellPrompt
		if split.open() {
			prompt = shellPromptMore
		}
		line, err := c.readLine(ctx, prompt)
		switch {
		case errors.Is(err, errInterrupt):
			split.reset()
			typed = ""
			continue
		case errors.Is(err, io.EOF):
			s.say("\n")
			return nil
		case ctx.Err() != nil:
			return interrupted{context.Canceled}
		case err != nil:
			s.complain(err)
			continue
		}
		typed += line + "\n"
		all, err := split.add(line)
		if err != nil {
			s.complain(err)
		}
		if !split.open() {
			s.remember(typed)
			typed = ""
		}
		for _, one := range all {
			err := s.runCancelable(ctx, interrupts, one)
			switch {
			case errors.Is(err, errLeave):
				return nil
			case ctx.Err() != nil:
				return interrupted{context.Canceled}
			case err != nil:
				s.complain(err)
			}
			if errors.Is(err, context.Canceled) {
				break // skip the statements after it, too
			}
		}
	}
}

// remember adds what was typed to the history.
func (s *shell) remember(typed string) {
	if err := s.console.history.save(strings.TrimSpace(typed)); err != nil {
		s.app.note("what is typed is not kept: %v", err)
		s.console.history.file = ""
	}
}

// runCancelable runs a statement, which an interruption cancels.
func (s *shell) runCancelable(ctx context.Context, interrupts <-chan os.Signal, one statement) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for drained := false; !drained; {
		select {
		case <-interrupts: // an interruption from before the statement
		default:
			drained = true
		}
	}
	go func() {
		select {
		case <-interrupts:
			cancel()
		case <-ctx.Done():
		}
	}()
	return andThen(s.run(ctx, one), s.app.stdout.Flush())
}

// complain prints an error.
func (s *shell) complain(err error) {
	if errors.Is(err, context.Canceled) {
		err = interrupted{context.Canceled} // the user has interrupted it
	}
	s.app.complain(err, kindOf(err))
}

// say prints a message on a terminal.
func (s *shell) say(format string, args ...any) {
	_ = s.app.print(fmt.Sprintf(format, args...))
	_ = s.app.stdout.Flush()
}

// errLeave is returned by the statement that ends the shell.
var errLeave = errors.New("leave the shell")

// run runs a statement.
func (s *shell) run(ctx context.Context, one statement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.reconnect(ctx); err != nil {
		return err
	}
	if shapes[one.word] == shapeQuery {
		return s.runQuery(ctx, one)
	}
	command, found := shellCommands[one.word]
	if !found {
		return unknownShellCommand(one.text)
	}
	rest := strings.TrimSpace(one.text[len(one.word):])
	if rest != "" && !startsWithSpace(one.text[len(one.word):]) {
		return unknownShellCommand(one.text)
	}
	return command.run(s, ctx, rest)
}

// startsWithSpace reports whether a text begins with white space.
func startsWithSpace(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsSpace(r)
}

// unknownShellCommand returns the error for a statement that is neither a command nor a
// query.
func unknownShellCommand(text string) error {
	word, _, _ := strings.Cut(text, " ")
	var near []string
	for _, name := range shellWords {
		if len(word) >= 2 && strings.HasPrefix(name, strings.ToLower(word[:2])) {
			near = append(near, name)
		}
	}
	hint := `a query begins with "from", and "help" lists the commands`
	if len(near) > 0 {
		hint = "is it " + strings.Join(near, " or ") + "? " + hint
	}
	return fmt.Errorf("there is no command %q: %s", fit(word, tableCell), hint)
}

// page writes a result, in pages on a terminal. If the user quits the pager, that is no
// error.
func (s *shell) page(ctx context.Context, fn func(w io.Writer) error) error {
	if err := s.app.stdout.Flush(); err != nil {
		return err
	}
	var p *pager
	if s.paged {
		p = newPager(ctx, s.app.output, s.console)
	} else {
		p = newPager(ctx, s.app.stdout, nil)
	}
	err := fn(p)
	if stopped := errors.Is(err, errStopped); stopped {
		err = nil
	}
	return errors.Join(err, p.end())
}

// runQuery runs or explains a query, or changes its results.
func (s *shell) runQuery(ctx context.Context, one statement) error {
	text := one.text
	explain := one.word == "explain"
	if explain {
		text = strings.TrimLeft(text[len("explain"):], " \t") // keep line breaks, for the line numbers in errors
	}
	q, err := s.db.RQL(text, s.paramsOf(text))
	if errors.Is(err, jay.ErrUpdateRQL) && !explain {
		return s.update(ctx, text)
	}
	if err != nil {
		return err
	}
	if explain {
		e, err := q.Explain(ctx)
		if err != nil {
			return err
		}
		return s.page(ctx, func(w io.Writer) error {
			if s.format != showTable {
				return writeLine(w, e)
			}
			_, err := io.WriteString(w, e.String()+"\n")
			return err
		})
	}
	return s.answer(ctx, q)
}

// parameter matches parameters in a query, and texts or comments that look like one.
var parameter = regexp.MustCompile(`\$[\pL_][\pL\pN_]*`)

// paramsOf returns the values of the parameters in a query: a value without a parameter
// would be an error.
func (s *shell) paramsOf(query string) map[string]any {
	params := make(map[string]any)
	for _, name := range parameter.FindAllString(query, -1) {
		if v, found := s.params[name[1:]]; found {
			params[name[1:]] = v
		}
	}
	return params
}

// answer prints the results of a query.
func (s *shell) answer(ctx context.Context, q jay.Query[jay.Row]) error {
	start := time.Now()
	rows, table := int64(0), &answerTable{width: s.width()}
	err := s.page(ctx, func(w io.Writer) error {
		table.print = func(text string) error { _, err := io.WriteString(w, text); return err }
		for row, err := range q.Iter(ctx) {
			if err != nil {
				return err
			}
			rows++
			if s.format == showTable {
				err = table.add(row)
			} else {
				err = s.writeJSON(w, row)
			}
			if err != nil {
				return err
			}
		}
		return table.end()
	})
	if err != nil || s.format == showJSON {
		return err
	}
	note := fmt.Sprintf("%s, %s ms", countedRows(table, rows), thousands(time.Since(start).Milliseconds()))
	if text := table.notShown(); text != "" {
		note += "\nnot shown: " + text + ` (see "format pretty")`
	}
	if rows == 0 {
		if err := s.app.noteEmptyCollection(ctx, s.db, collectionOf(q.String())); err != nil {
			return err
		}
	}
	return s.remark(note)
}

// countedRows returns the number of results as text.
func countedRows(t *answerTable, rows int64) string {
	if t.rows > 0 || rows == 0 {
		return t.counted()
	}
	return count(rows, "row")
}

// remark prints a message about a result on stderr.
func (s *shell) remark(text string) error {
	if err := s.app.stdout.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.app.stderr, printable(text))
	return err
}

// width returns the width of the terminal, 0 for none.
func (s *shell) width() int {
	if s.console == nil {
		return 0
	}
	width, _ := s.console.size()
	return width
}

// update changes the results of a query, after a question on a terminal.
func (s *shell) update(ctx context.Context, text string) error {
	q, edits, err := s.db.UpdateRQL(text, s.paramsOf(text))
	if err != nil {
		return err
	}
	if !s.yes {
		if s.console == nil {
			return errors.New("a script cannot be asked before documents are changed: jay shell --yes changes them")
		}
		n, err := q.Count(ctx)
		if err != nil {
			return err
		}
		answer, err := s.console.readLine(ctx, fmt.Sprintf("change %s? [y/N] ", count(n, "document")))
		if err != nil && !errors.Is(err, errInterrupt) && !errors.Is(err, io.EOF) {
			return err
		}
		if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
			return errors.New("nothing was changed, as the answer was not yes")
		}
	}
	done, err := q.Patch(ctx, edits...)
	if err != nil {
		return err
	}
	if s.format == showJSON {
		return s.print(done)
	}
	result := "changed " + count(done.Documents, "document")
	if done.Unchanged > 0 {
		result += fmt.Sprintf(", %s already so", thousands(done.Unchanged))
	}
	if done.Overtaken > 0 {
		result += fmt.Sprintf(", %s left to others, who changed them meanwhile", thousands(done.Overtaken))
	}
	return s.app.print(result + "\n")
}
