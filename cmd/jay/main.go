// Command jay keeps JSON documents in a directory: it stores, reads, lists,
// queries, changes, imports and exports them, and inspects their IDs and the database.
//
// Each subcommand is in the file of its name. This file parses the command line
// and runs the subcommand. The exit code is 0 on success, 1 after an error, 2
// after wrong usage, also without arguments, and 130 after an interruption. Every error is one line on
// stderr that begins with "jay: ", or one JSON object with --json. A syntax error
// of a query is followed by two lines that show where it is.
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
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // of queries by time zone: an image from scratch has no files of its own

	"github.com/alecthomas/kong"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/schema/jsonschema"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// commandLine is what kong parses the arguments into.
type commandLine struct {
	DB               *string          `group:"every" name:"db" placeholder:"DIR" help:"Directory of the database, or postgres://USER@HOST/DATABASE; $$JAY_DB or else ${dir}."`
	URL              string           `group:"every" name:"url" placeholder:"URL" help:"A database of a running server, in place of a directory: http://HOST/databases/NAME."`
	Access           remoteFlags      `embed:""`
	Keys             keyFlags         `embed:""`
	JSON             bool             `group:"every" name:"json" help:"Print results and errors as JSON, for machines."`
	MaxDocumentBytes int              `group:"rare" placeholder:"N" default:"${bytes}" help:"Refuse documents of more bytes of JSON. The default is 32 MiB."`
	MaxDepth         int              `group:"rare" placeholder:"N" default:"${depth}" help:"Refuse documents with objects and arrays nested deeper. The default is ${depth}."`
	MaxMemory        byteSize         `group:"rare" name:"max-memory" placeholder:"SIZE" help:"Bound of the memory of the database, such as 256MiB; at least 32MiB. The default is a quarter of the memory of the machine or the container. For serve and studio it is for all databases and requests, and the least is 64MiB."`
	CopyTag          string           `group:"rare" placeholder:"TAG" help:"The directory is a copy: give it this node tag, once and for all."`
	NodeTag          string           `group:"rare" placeholder:"TAG" help:"Node tag of a new database; the default is A. For an existing database it must be the same."`
	IDSeparator      string           `group:"rare" name:"id-separator" placeholder:"S" help:"Separator of a new database; the default is /. For an existing database it must be the same."`
	Prefixes         string           `group:"rare" name:"prefix-collections" enum:"on,off," default:"" placeholder:"on|off" help:"Whether users/ann suggests the collection Users where none is named. It is stored in the database; the default of a new one is on."`
	ReadOnly         bool             `group:"rare" name:"read-only" help:"Change no file, and share the directory with other processes that only read it."`
	GroupReadable    bool             `group:"rare" name:"group-readable" help:"Let the group of this process read the files that are made; the default is their owner only."`
	HiLoMode         string           `group:"rare" name:"hilo-mode" enum:"4,2,2010" default:"4" help:"Generation of HiLo that makes IDs: 4, 2 (RavenDB 2.x and 3.x) or 2010. The default is 4."`
	HiLoCapacity     int64            `group:"rare" name:"hilo-capacity" placeholder:"N" help:"How many IDs a client of HiLo 2 or 2010 reserves at a time; needed for 2010, and wherever a document has a ServerHi."`
	ClusterFlags     clusterFlags     `embed:""`
	Version          kong.VersionFlag `group:"every" help:"Print the version and exit."`

	Put           putCommand           `cmd:"" help:"Store one document and print its ID."`
	Get           getCommand           `cmd:"" help:"Print documents, one JSON line each."`
	Delete        deleteCommand        `cmd:"" help:"Delete documents, by ID or by query."`
	List          listCommand          `cmd:"" help:"List documents in the order of their IDs."`
	Query         queryCommand         `cmd:"" help:"Ask for documents, as a table or as JSON."`
	Update        updateCommand        `cmd:"" help:"Change the documents that a query finds."`
	Changes       changesCommand       `cmd:"" help:"Show what has changed, in the order in which it was written."`
	Subscriptions subscriptionsCommand `cmd:"" help:"List and manage subscriptions, which send documents to workers."`
	Cmpxchg       cmpxchgCommand       `cmd:"" help:"Read and change compare-exchange values: names, locks, counters."`
	Index         indexCommand         `cmd:"" help:"Create, list and drop indexes, which make queries fast."`
	Schema        schemaCommand        `cmd:"" help:"Set, list, check and infer schemas, against which writes are checked."`
	Collections   collectionsCommand   `cmd:"" help:"List, rename and drop collections."`
	Attach        attachCommand        `cmd:"" help:"Store, read, list and remove attachments of documents."`
	Import        importCommand        `cmd:"" help:"Store a stream of documents."`
	Export        exportCommand        `cmd:"" help:"Write documents as a stream that import takes back."`
	Revisions     revisionsCommand     `cmd:"" help:"Show, configure and remove older versions of documents."`
	Expiration    expirationCommand    `cmd:"" help:"Show and change whether documents expire and are refreshed."`
	Revert        revertCommand        `cmd:"" help:"Write an older version of a document again."`
	Shell         shellCommand         `cmd:"" help:"Type queries and commands, with completion and history, or run a script of them."`
	Backup        backupCommand        `cmd:"" help:"Write everything to one file, or what has changed since another one."`
	Verify        verifyCommand        `cmd:"" help:"Check that backups are whole and follow each other."`
	Restore       restoreCommand       `cmd:"" help:"Make a database of backups."`
	Copy          copyCommand          `cmd:"" help:"Copy a database from one store to another, such as from a directory to PostgreSQL."`
	Checkpoint    checkpointCommand    `cmd:"" help:"Make a directory that is a copy of the database, by links."`
	Follow        followCommand        `cmd:"" help:"Keep a copy that follows a database that is open."`
	Promote       promoteCommand       `cmd:"" help:"Make a database of a copy that has followed one."`
	Stats         statsCommand         `cmd:"" help:"Show what the database holds."`
	Top           topCommand           `cmd:"" help:"Show what a running program does with its databases."`
	Cluster       clusterCommand       `cmd:"" help:"Show and change the nodes that agree on identities."`
	Serve         serveCommands        `cmd:"" help:"Answer requests over HTTP, of RavenDB's clients and of curl."`
	Studio        studioCommand        `cmd:"" help:"Show and change a database in the browser."`
	Compact       compactCommand       `cmd:"" help:"Free the space of deleted documents now."`
	IDs           idsCommand           `cmd:"" name:"ids" help:"Examine IDs and count identities."`
	HiLo          hiloCommand          `cmd:"" name:"hilo" help:"Grant HiLo ranges and take them back."`
	Check         checkCommand         `cmd:"" help:"Check everything that is stored, and list each damage."`
	Repair        repairCommand        `cmd:"" help:"Save what is left of a damaged database into a new directory."`
	Encrypt       encryptCommand       `cmd:"" help:"Encrypt the files of a database, or give them the newest key."`
	Decrypt       decryptCommand       `cmd:"" help:"Decrypt the files of a database."`
	Key           keyCommand           `cmd:"" help:"Make keys for encrypted databases."`
	Demo          demoCommand          `cmd:"" help:"Show it all, with real documents, in a few seconds."`
	Completion    completionCommand    `cmd:"" help:"Print the script with which bash, zsh or fish completes jay."`
	Complete      completeCommand      `cmd:"" name:"__complete" hidden:"" help:"Print what may stand at the cursor, for the script of completion."`
}

// Defaults of the global flags; the last two are those of jay.Options.
const (
	defaultDir              = "./jay.db"
	defaultMaxDocumentBytes = 32 << 20
	defaultMaxDepth         = 256
)

const description = `jay keeps JSON documents in a directory.

Examples:

    echo '{"Name":"Ann"}' | jay put --id users/ann      store under this ID
    echo '{"Name":"Bob"}' | jay put --collection Users  let jay make the ID
    jay get users/ann
    jay list --prefix users/ --ids-only
    jay query "from Users where Name = 'ann'"
    jay import --collection Orders orders.ndjson.gz
    jay export backup.ndjson.gz && jay --db copy.db import backup.ndjson.gz
    jay demo

It exits with 0 if all went well, 1 after an error, 2 after wrong usage.`

// app is the environment of a subcommand.
type app struct {
	stdin      io.Reader
	stdout     *bufio.Writer
	stderr     io.Writer
	dir        string // of the database
	store      store
	dirGiven   bool   // set by --db, not by the environment
	json       bool   // --json
	width      int    // of the terminal that stdout is, 0 if it is not a terminal
	raw        bool   // a line break on the terminal needs a carriage return
	command    string // the command as typed, such as "jay index create"
	isTerminal func(stream any) bool
	options    jay.Options
	cluster    clusterFlags
	access     remoteFlags
	failed     bool     // an error has been reported: exit with exitError
	secrets    []string // files with keys or passphrases, which no output may replace; "" for one that was not given

	output io.Writer           // what stdout writes to
	getenv func(string) string // of the environment
	opened *jay.DB             // the database of the shell that runs the command, or nil

	// looks opens the database of --url, to be read only; nil without --url. looked says that the database of the command belongs to
	// another program.
	looks  func(jay.Options) (*jay.DB, error)
	looked bool
}

// run parses args, runs the subcommand that they name, and returns the exit code.
// When ctx ends, the subcommand stops and the database is closed.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	a := &app{stdin: stdin, stdout: bufio.NewWriterSize(stdout, 64<<10), stderr: stderr, json: wantsJSON(args), width: terminalWidth(stdout), command: "jay", isTerminal: isTerminal, output: stdout, getenv: getenv}
	if a.width > 0 {
		a.stdout = bufio.NewWriterSize(&printableWriter{w: stdout}, 64<<10)
	}
	var line commandLine
	if len(args) == 0 { // print the help, but fail: a script that lost its arguments must notice
		if _, _, err := parse(&line, []string{"--help"}, stderr, stderr); err != nil {
			return a.report(err)
		}
		return exitUsage
	}
	command, exited, err := parse(&line, args, a.stdout, stderr)
	if err == nil && !exited {
		a.command = command.Selected().FullPath()
		if err := a.configure(&line, getenv); err != nil {
			return a.report(err)
		}
		command.BindTo(ctx, (*context.Context)(nil))
		if err = a.openCluster(); err != nil {
			return a.report(err)
		}
		if a.dir, err = a.store.use(a.dir, a.command, &a.options); err != nil {
			return a.report(err)
		}
		switch given := line.Access.given(); {
		case line.URL != "":
			err = a.runRemote(ctx, command, &line)
		case given != "" && a.command != "jay top" && a.command != "jay follow":
			err = usageError{text: given + " is for a server, which --url names"}
		default:
			err = command.Run(a)
		}
		err = andThen(err, a.closeCluster())
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = interrupted{err}
	}

	err = andThen(err, a.stdout.Flush())
	switch {
	case err != nil:
		return a.report(err)
	case a.failed:
		return exitError
	}
	return 0
}

// parse parses args into line. Exited is true if a flag such as --help has
// completed the command.
func parse(line *commandLine, args []string, stdout, stderr io.Writer) (command *kong.Context, exited bool, err error) {
	parser, err := kong.New(line,
		kong.Name("jay"),
		kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { panic(exit{}) }),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 100, NoAppDescFormat: true, FlagsLast: true}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "every", Title: "Flags of every command:"},
			{Key: "rare", Title: "Flags of every command, seldom needed:"},
			{Key: "cluster", Title: "Flags of databases in a cluster:"},
		}),
		kong.PostBuild(func(k *kong.Kong) error {
			k.Model.HelpFlag.Group = &kong.Group{Key: "every", Title: "Flags of every command:"}
			return nil
		}),
		kong.Vars{
			"version": version(),
			"dir":     defaultDir,
			"bytes":   fmt.Sprint(defaultMaxDocumentBytes),
			"depth":   fmt.Sprint(defaultMaxDepth),
		},
	)
	if err != nil {
		return nil, false, err
	}

	// After --help kong calls its Exit function, which must not return. Ours panics,
	// so that parse can return.
	defer func() {
		if r := recover(); r == (exit{}) {
			exited = true
		} else if r != nil {
			panic(r)
		}
	}()
	if command, err = parser.Parse(descendingFields(args)); err != nil {
		return nil, false, usageError{text: explainParse(err, args), command: calledCommand(err)}
	}
	return command, false, nil
}

// printHelp prints the help of a command with its own flags and those that every command
// has. The help of jay and of the commands that join a cluster has the others, too.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	command := ctx.Selected()
	if command == nil || strings.HasPrefix(command.FullPath(), "jay serve") || strings.HasPrefix(command.FullPath(), "jay cluster") {
		return kong.DefaultHelpPrinter(options, ctx)
	}
	for _, flag := range ctx.Model.Flags {
		if g := flag.Group; g != nil && (g.Key == "rare" || g.Key == "cluster") {
			flag.Hidden = true
		}
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintln(ctx.Stdout, "\nFlags that are seldom needed, and those of clusters: jay --help")
	return err
}

// calledCommand returns the command that an error of the parser is about, as far as
// the command line names one.
func calledCommand(err error) string {
	parse, is := errors.AsType[*kong.ParseError](err)
	if !is {
		return "jay"
	}
	called := "jay"
	for _, step := range parse.Context.Path {
		if step.Command != nil {
			called = step.Command.FullPath()
		}
	}
	return called
}

// explainParse returns the text of an error of the parser. The parser takes a
// negative number for a flag: then the text says what must not be negative.
func explainParse(err error, args []string) string {
	i := slices.IndexFunc(args, negative.MatchString)
	if i < 0 || !strings.HasPrefix(err.Error(), "unknown flag "+args[i][:2]) {
		return err.Error()
	}
	what := "a number"
	if parse, is := errors.AsType[*kong.ParseError](err); is {
		if command := parse.Context.Selected(); command != nil && command.Name == "seed" {
			what = "a seed"
		}
	}
	return fmt.Sprintf("%s is not negative, got %s", what, args[i])
}

var negative = regexp.MustCompile(`^-[0-9]+$`)

// exit is the panic value of the parser's Exit function.
type exit struct{}

// configure copies the global flags to a. The error is one of wrong usage.
func (a *app) configure(line *commandLine, getenv func(string) string) (err error) {
	a.json, a.cluster, a.access = line.JSON, line.ClusterFlags, line.Access
	a.dir, a.dirGiven = defaultDir, line.DB != nil
	if dir := getenv("JAY_DB"); dir != "" {
		a.dir = dir
	}
	if line.DB != nil {
		a.dir = *line.DB
	}
	a.options = jay.Options{
		MaxDocumentBytes:  line.MaxDocumentBytes,
		MaxDepth:          line.MaxDepth,
		MaxMemory:         int64(line.MaxMemory),
		CopyTag:           line.CopyTag,
		NodeTag:           line.NodeTag,
		Separator:         line.IDSeparator,
		HiLoMode:          hiloModes[line.HiLoMode],
		PrefixCollections: prefixCollections[line.Prefixes],
		HiLoCapacity:      line.HiLoCapacity,
		ReadOnly:          line.ReadOnly,
		GroupReadable:     line.GroupReadable,
		Schemas:           jsonschema.New(),
	}
	a.options.EncryptionKeys, err = line.Keys.keys(a)
	return err
}

// prefixCollections are the values of --prefix-collections.
var prefixCollections = map[string]jay.PrefixCollections{"on": jay.PrefixCollectionsOn, "off": jay.PrefixCollectionsOff}

// hiloModes are the values of --hilo-mode.
var hiloModes = map[string]jay.HiLoMode{"4": jay.HiLo4, "2": jay.HiLo2, "2010": jay.HiLo2010}

// wantsJSON reports whether --json is among args, also if they do not parse.
func wantsJSON(args []string) bool {
	return slices.Contains(args, "--json")
}

// version returns the version of the module, and that of Go.
func version() string {
	name := "(devel)"
	if info, found := debug.ReadBuildInfo(); found && info.Main.Version != "" {
		name = info.Main.Version
	}
	return fmt.Sprintf("jay %s %s %s/%s", name, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
