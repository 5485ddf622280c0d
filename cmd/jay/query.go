package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// queryCommand runs a query.
type queryCommand struct {
	File      string   `short:"f" placeholder:"FILE" help:"Read the query from this file, - for standard input."`
	Param     []string `placeholder:"NAME=VALUE" sep:"none" help:"Value of the parameter $$NAME: JSON if it is JSON, or else text. May be repeated."`
	Explain   bool     `xor:"explain" help:"Run the query and print how it was answered, not the answers."`
	NoScan    bool     `help:"Refuse a condition that no index serves, instead of looking at every document."`
	Live      bool     `xor:"explain" help:"Then print what enters, changes and leaves the answers, until interrupted."`
	Since     string   `placeholder:"TOKEN" help:"With --live: continue after this token, which was printed at the end of a group."`
	UntilDone bool     `name:"until-caught-up" help:"With --live: end with the first group."`
	IncludeTo string   `placeholder:"FILE" xor:"explain" help:"Write the documents that the query includes to this file, one a line."`
	Query     string   `arg:"" optional:"" help:"The query, in RavenDB's query language; - reads it from standard input."`
}

// Help is shown by jay query --help.
func (*queryCommand) Help() string {
	return `Answers come as a table, or with --json one a line: whole documents with their @metadata, or what the query selects. A table has a column for the ID and for each member that is a number, a text, a boolean or null in one of the first documents; long values are cut. How many answers there were and how long they took stands on stderr.

With --live each line has an event: enter, change or leave, the ID, and the answer; with --json as one object. The event current ends a group, after which the answers are those of one moment. It has a token for --since. Events of a group are printed by then. docs/live-queries.md says which queries can be live.

Text compares without regard to case, but for what is inside exact(). docs/queries/rql.md has the grammar.

Examples:

    jay query 'from Packages where Standard = true order by Name limit 5'
    jay query "from Users where Name = 'ann'" --json | jq .Name
    jay query "from Articles where search(Text, 'oak') order by score() include highlight(Text), explanations()"
    jay query "from Articles select suggest(Text, 'acron'), complete(Text, 'ac')"
    jay query 'from Orders where Total > $least select Company, Total' --param least=100
    jay query 'from Orders where Company in ($ids)' --param 'ids=["companies/1-A","companies/2-A"]'
    jay query --file report.rql --explain
    jay query "from Orders where Status = 'open'" --live --json`
}

// maxQueryFile is the greatest size of a file with a query, in bytes. No query may
// be so long.
const maxQueryFile = 1 << 20

// Run runs the query.
func (c *queryCommand) Run(ctx context.Context, a *app) error {
	if err := a.checkGlobals(); err != nil {
		return err
	}
	if !c.Live && (c.Since != "" || c.UntilDone) {
		return usageError{text: "--since and --until-caught-up need --live"}
	}
	params, err := parseParams(c.Param)
	if err != nil {
		return err
	}
	text, err := c.text(ctx, a)
	if err != nil {
		return err
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		q, err := db.RQL(text, params)
		if errors.Is(err, jay.ErrUpdateRQL) {
			return explained{"this text changes documents: give it to jay update", err}
		}
		if err != nil {
			return err
		}
		if c.NoScan {
			q = q.NoScan()
		}
		if c.Explain {
			return a.printExplanation(ctx, q)
		}
		if c.Live {
			return c.follow(ctx, a, q)
		}
		rows, err := c.answer(ctx, a, q)
		if err != nil || rows > 0 {
			return err
		}
		return a.noteEmptyCollection(ctx, db, collectionOf(q.String()))
	})
}

// text returns the query.
func (c *queryCommand) text(ctx context.Context, a *app) (string, error) {
	return a.queryText(ctx, c.File, c.Query, "from Users limit 5")
}

// queryText returns the query of a command, which it reads before the database is
// opened: a slow input must not keep it locked.
func (a *app) queryText(ctx context.Context, file, text, example string) (string, error) {
	if text == stdinName && file == "" { // as in other commands
		file, text = stdinName, ""
	}
	switch {
	case file != "" && text != "":
		return "", usageError{text: "a query comes from the command line or with --file, not from both"}
	case file == "" && text == "":
		return "", usageError{text: fmt.Sprintf("%s needs a text in quotes, such as '%s', or --file", strings.TrimPrefix(a.command, "jay "), example)}
	case file == "":
		return text, nil
	}
	name, read, err := a.input().read(ctx, file, "a query", maxQueryFile)
	if err == errLongInput {
		return "", fmt.Errorf("%s holds more than 1 MiB: that is no query", name)
	}
	return string(read), err
}

// parseParams parses parameters of the form NAME=VALUE.
func parseParams(texts []string) (map[string]any, error) {
	params := make(map[string]any, len(texts))
	for _, text := range texts {
		name, value, found := strings.Cut(text, "=")
		name = strings.TrimPrefix(name, "$")
		if !found || name == "" {
			return nil, usageError{text: fmt.Sprintf("--param needs NAME=VALUE, got %q", text)}
		}
		if _, twice := params[name]; twice {
			return nil, usageError{text: fmt.Sprintf("--param %s is there twice", name)}
		}
		params[name] = paramValue(value)
	}
	return params, nil
}

// paramValue returns a parameter's value: JSON, with all digits of its numbers, if
// the text is JSON, and otherwise the text itself.
func paramValue(text string) any {
	if !json.Valid([]byte(text)) {
		return text
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return text
	}
	return v
}

// printExplanation prints the plan of a query.
func (a *app) printExplanation(ctx context.Context, q jay.Query[jay.Row]) error {
	e, err := q.Explain(ctx)
	if err != nil {
		return err
	}
	if !a.json {
		return a.print(e.String() + "\n")
	}
	return writeLine(a.stdout, e)
}

// answer prints the results and returns their number.
func (c *queryCommand) answer(ctx context.Context, a *app, q jay.Query[jay.Row]) (rows int64, err error) {
	if c.IncludeTo == stdinName {
		return 0, usageError{text: "--include-to needs a file: answers are on standard output"}
	}
	start := time.Now()
	var included includes
	var t *answerTable
	if c.IncludeTo == "" {
		t, err = a.printAnswers(ctx, q, &included)
	} else {
		err = a.writeFile(c.IncludeTo, func(w io.Writer) (err error) { // an existing file stays if the query fails
			included.w = w
			t, err = a.printAnswers(ctx, q, &included)
			return err
		})
	}
	if err != nil {
		return 0, err
	}
	if a.json {
		return t.rows, nil
	}
	var more []string
	if included.count > 0 && c.IncludeTo == "" {
		more = append(more, includedNote(included.count))
	}
	return t.rows, a.noteAnswers(t, start, more...)
}

// noteAnswers says below a table how many answers it has, how long they took since start, and what it
// does not show.
func (a *app) noteAnswers(t *answerTable, start time.Time, more ...string) error {
	if err := a.stdout.Flush(); err != nil { // the notes on stderr follow the table
		return err
	}
	took := time.Since(start)
	notes := []string{fmt.Sprintf("%s, %s ms", t.counted(), thousands(took.Milliseconds()))}
	if text := t.notShown(); text != "" {
		notes = append(notes, "not shown: "+text+" (see --json)")
	}
	notes = append(notes, more...)
	if note := slowNote(took); note != "" {
		notes = append(notes, note)
	}
	_, err := fmt.Fprintln(a.stderr, printable(strings.Join(notes, "\n")))
	return err
}

// slowNote returns the note about a query that took long, or "".
func slowNote(took time.Duration) string {
	if took < 500*time.Millisecond {
		return ""
	}
	return "to see how the query is answered, and whether an index would help: --explain"
}

// includedNote returns the note about included documents that are not printed.
func includedNote(n int) string {
	verb := "are"
	if n == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s not shown (see --include-to)", count(int64(n), "included document"), verb)
}

// printAnswers prints the results of q. It returns their table, which is empty with
// --json.
func (a *app) printAnswers(ctx context.Context, q jay.Query[jay.Row], included *includes) (*answerTable, error) {
	t := &answerTable{print: a.print, width: a.width}
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return nil, err
		}
		if err := included.add(row.Included); err != nil {
			return nil, err
		}
		if a.json {
			err = a.printRow(row)
		} else {
			err = t.add(row)
		}
		if err != nil {
			return nil, err
		}
	}
	return t, t.end()
}

// printRow prints a result as one line of JSON.
func (a *app) printRow(row *jay.Row) error {
	text, err := row.MarshalJSON()
	if err != nil {
		return err
	}
	if _, err := a.stdout.Write(text); err != nil {
		return err
	}
	return a.stdout.WriteByte('\n')
}

// includes receives included documents. Without a writer it only counts them.
type includes struct {
	w     io.Writer
	count int
}

// add writes the documents, one a line.
func (i *includes) add(docs []*jay.Document) error {
	i.count += len(docs)
	if i.w == nil {
		return nil
	}
	for _, doc := range docs {
		text, err := doc.MarshalJSON()
		if err != nil {
			return err
		}
		if _, err := i.w.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return nil
}
