package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// shellVerb is a command of the shell that is not a query.
type shellVerb struct {
	usage string
	help  string
	args  shellArgs
	run   func(s *shell, ctx context.Context, rest string) error
}

// shellArgs is the kind of a command's arguments, for completion.
type shellArgs uint8

const (
	argsNone shellArgs = iota
	argsIDs            // any number of IDs
	argsID             // one ID, and then a document
	argsCollection
	argsFormat
	argsOnOff
	argsCommand
)

// shellCommands are the commands by name. They are set by init, as some of them list the
// others.
var shellCommands map[string]shellVerb

// shellQueries are the statements that are no commands, with their help.
var shellQueries = [][2]string{
	{"from …;", "a query; docs/queries/rql.md has the language"},
	{"from … update { … };", "changes what the query finds"},
	{"explain from …;", "how a query is answered, and what it costs"},
}

// shellWords are the words that a statement can begin with.
var shellWords []string

func init() {
	shellCommands = map[string]shellVerb{
		"get":         {"get ID…", "prints documents", argsIDs, (*shell).get},
		"put":         {"put ID DOCUMENT", "stores a document; users/ makes a server-side ID, users| an identity, '' a GUID", argsID, (*shell).put},
		"insert":      {"insert ID DOCUMENT", "stores a document, if there is none with the ID", argsID, (*shell).insert},
		"store":       {"store COLLECTION DOCUMENT", "stores a document under the next HiLo ID of a collection", argsCollection, (*shell).store},
		"patch":       {"patch ID DOCUMENT", "merges an object into a document (RFC 7396), or applies an array of operations (RFC 6902)", argsID, (*shell).patch},
		"delete":      {"delete ID…", "deletes documents, all or none", argsIDs, (*shell).delete},
		"list":        {"list [PREFIX]", "lists the IDs that begin with a prefix", argsIDs, (*shell).list},
		"collections": {"collections", "lists collections with their numbers of documents", argsNone, (*shell).collections},
		"indexes":     {"indexes [COLLECTION]", "lists indexes", argsCollection, (*shell).indexes},
		"index":       {"index COLLECTION FIELD[,FIELD…]", "makes an index and waits until queries use it; jay index create has more", argsCollection, (*shell).index},
		"param":       {"param [NAME VALUE]", "sets the parameter $NAME of queries, to JSON or text; lists them", argsNone, (*shell).param},
		"format":      {"format table|json|pretty", "how results are printed", argsFormat, (*shell).setFormat},
		"pager":       {"pager on|off", "whether results stop after each page", argsOnOff, (*shell).setPager},
		"exit":        {"exit", "leaves, as quit and Ctrl-D do", argsNone, (*shell).leave},
		"quit":        {"quit", "leaves", argsNone, (*shell).leave},
		"help":        {"help [COMMAND]", "lists the commands, or explains one", argsCommand, (*shell).help},
	}
	shellWords = append(slices.Collect(maps.Keys(shellCommands)), "from", "explain")
	slices.Sort(shellWords)
}

// usage returns the error for wrong arguments of a command.
func (s *shell) usage(name string) error {
	return fmt.Errorf("%s: wrong arguments: write %s", name, shellCommands[name].usage)
}

// print prints a value as one line of JSON.
func (s *shell) print(v any) error { return writeLine(s.app.stdout, v) }

// writeJSON writes a document or a row, on one line or several.
func (s *shell) writeJSON(w io.Writer, v json.Marshaler) error {
	line, err := v.MarshalJSON()
	if err != nil {
		return err
	}
	if s.format != showJSON {
		var b bytes.Buffer
		if err := json.Indent(&b, line, "", "  "); err != nil {
			return err
		}
		line = b.Bytes()
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// get prints documents. A missing one is an error, once the others are printed.
func (s *shell) get(ctx context.Context, rest string) error {
	ids, err := words(rest)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return s.usage("get")
	}
	var missing error
	err = s.page(ctx, func(w io.Writer) error {
		for _, id := range ids {
			doc, err := s.db.Get(ctx, id)
			if errors.Is(err, jay.ErrNotFound) {
				missing = errors.Join(missing, explained{fmt.Sprintf("no document %q: list shows the IDs that begin with a prefix", id), err})
				continue
			}
			if err != nil {
				return err
			}
			if err := s.writeJSON(w, doc); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, missing)
}

// document returns the first argument of a command and the document that follows.
func (s *shell) document(command, rest string) (first string, body json.RawMessage, err error) {
	given := rest != ""
	first, text, err := cutWord(rest)
	if err != nil {
		return "", nil, err
	}
	if !given || text == "" {
		return "", nil, s.usage(command)
	}
	return first, json.RawMessage(text), nil
}

func (s *shell) put(ctx context.Context, rest string) error {
	id, body, err := s.document("put", rest)
	if err != nil {
		return err
	}
	return s.stored(s.db.Put(ctx, id, body))
}

func (s *shell) insert(ctx context.Context, rest string) error {
	id, body, err := s.document("insert", rest)
	if err != nil {
		return err
	}
	return s.stored(s.db.Insert(ctx, id, body))
}

func (s *shell) store(ctx context.Context, rest string) error {
	collection, body, err := s.document("store", rest)
	if err != nil {
		return err
	}
	return s.stored(s.db.Store(ctx, collection, body))
}

// stored prints what was stored.
func (s *shell) stored(m jay.Metadata, err error) error {
	if err != nil {
		return err
	}
	if s.format != showJSON {
		return s.app.print(m.ID + "\n")
	}
	return s.print(putResult{ID: m.ID, Collection: m.Collection, ChangeVector: m.ChangeVector, Etag: m.Etag, LastModified: m.LastModified, Metadata: m.Custom})
}

func (s *shell) patch(ctx context.Context, rest string) error {
	id, body, err := s.document("patch", rest)
	if err != nil {
		return err
	}
	edit := jay.MergePatch(body)
	if strings.HasPrefix(string(body), "[") {
		edit = jay.JSONPatch(body)
	}
	r, err := s.db.Patch(ctx, id, edit)
	switch {
	case err != nil:
		return err
	case r.Status == jay.PatchNotFound:
		return explained{fmt.Sprintf("no document %q: put stores one", id), jay.ErrNotFound}
	case s.format == showJSON:
		return s.print(struct {
			ID     string          `json:"id"`
			Status jay.PatchStatus `json:"status"`
		}{r.Metadata.ID, r.Status})
	case r.Status == jay.PatchNotModified:
		return s.app.print("already so\n")
	}
	return s.app.print("patched\n")
}

func (s *shell) delete(ctx context.Context, rest string) error {
	ids, err := words(rest)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return s.usage("delete")
	}
	var batch jay.Batch
	for _, id := range ids {
		batch.Delete(id)
	}
	metas, err := s.db.Apply(ctx, &batch)
	if err != nil {
		return err
	}
	deleted := int64(0)
	for _, m := range metas {
		if m.Etag > 0 {
			deleted++
		}
	}
	if s.format == showJSON {
		return s.print(struct {
			Deleted int64 `json:"deleted"`
		}{deleted})
	}
	text := "deleted " + count(deleted, "document")
	if gone := int64(len(ids)) - deleted; gone > 0 {
		text += fmt.Sprintf("; %s not there", thousands(gone))
	}
	return s.app.print(text + "\n")
}

// list prints IDs. Those of system documents are left out, unless the prefix asks for
// them.
func (s *shell) list(ctx context.Context, rest string) error {
	all, err := words(rest)
	if err != nil {
		return err
	}
	if len(all) > 1 {
		return s.usage("list")
	}
	c := listCommand{IDsOnly: true}
	if len(all) == 1 {
		c.Prefix = all[0]
	}
	hides := !c.asksForSystem()
	return s.page(ctx, func(w io.Writer) error {
		for doc, err := range s.db.Documents(ctx, jay.Scan{Prefix: c.Prefix}) {
			if err != nil {
				return err
			}
			if hides && isSystem(doc) {
				continue
			}
			if s.format == showJSON {
				err = writeLine(w, doc.ID())
			} else {
				_, err = io.WriteString(w, doc.ID()+"\n")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// onThis runs a command of jay on the open database.
func (s *shell) onThis(ctx context.Context, run func(ctx context.Context, a *app) error) error {
	return s.page(ctx, func(w io.Writer) error {
		inner := *s.app
		inner.opened, inner.json, inner.width = s.db, s.format == showJSON, s.width()
		inner.stdout = bufio.NewWriter(w)
		return errors.Join(run(ctx, &inner), inner.stdout.Flush())
	})
}

func (s *shell) collections(ctx context.Context, rest string) error {
	if rest != "" {
		return s.usage("collections")
	}
	return s.onThis(ctx, (&listCollectionsCommand{}).Run)
}

func (s *shell) indexes(ctx context.Context, rest string) error {
	all, err := words(rest)
	if err != nil {
		return err
	}
	if len(all) > 1 {
		return s.usage("indexes")
	}
	c := &listIndexesCommand{}
	if len(all) == 1 {
		c.Collection = all[0]
	}
	return s.onThis(ctx, c.Run)
}

// index makes an index. The fields are the rest of the line, as 'At as date' has blanks.
func (s *shell) index(ctx context.Context, rest string) error {
	collection, fields, err := cutWord(rest)
	if err != nil {
		return err
	}
	if collection == "" || fields == "" {
		return s.usage("index")
	}
	return s.onThis(ctx, (&createIndexCommand{Collection: collection, Fields: &fields}).Run)
}

func (s *shell) param(_ context.Context, rest string) error {
	if rest == "" {
		for _, name := range slices.Sorted(maps.Keys(s.params)) {
			text, err := json.Marshal(s.params[name])
			if err != nil {
				return err
			}
			if err := s.app.print(fmt.Sprintf("$%s = %s\n", name, text)); err != nil {
				return err
			}
		}
		return nil
	}
	name, value, err := cutWord(rest)
	if err != nil {
		return err
	}
	name = strings.TrimPrefix(name, "$")
	if name == "" || value == "" {
		return s.usage("param")
	}
	s.params[name] = paramValue(value)
	return nil
}

func (s *shell) setFormat(_ context.Context, rest string) error {
	switch f := outputFormat(strings.ToLower(rest)); f {
	case showTable, showJSON, showPretty:
		s.format = f
		return nil
	}
	return s.usage("format")
}

func (s *shell) setPager(_ context.Context, rest string) error {
	switch strings.ToLower(rest) {
	case "on":
		s.paged = s.console != nil
	case "off":
		s.paged = false
	default:
		return s.usage("pager")
	}
	return nil
}

func (s *shell) leave(_ context.Context, rest string) error {
	if rest != "" {
		return s.usage("exit")
	}
	return errLeave
}

func (s *shell) help(ctx context.Context, rest string) error {
	if rest != "" {
		if c, found := shellCommands[strings.ToLower(rest)]; found {
			return s.app.print(fmt.Sprintf("%s\n    %s\n", c.usage, c.help))
		}
		known := false
		for _, line := range shellQueries {
			if word, _, _ := strings.Cut(line[0], " "); strings.EqualFold(word, rest) {
				known = true
				if err := s.app.print(fmt.Sprintf("%s\n    %s\n", line[0], line[1])); err != nil {
					return err
				}
			}
		}
		if !known {
			return unknownShellCommand(rest)
		}
		return nil
	}
	return s.page(ctx, func(w io.Writer) error {
		for _, line := range shellQueries {
			if _, err := fmt.Fprintf(w, "%-26s %s\n", line[0], line[1]); err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(shellCommands)) {
			c := shellCommands[name]
			if _, err := fmt.Fprintf(w, "%-26s %s\n", c.usage, c.help); err != nil {
				return err
			}
		}
		return nil
	})
}
