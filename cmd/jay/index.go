package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// indexCommand creates, lists and drops indexes.
type indexCommand struct {
	Create   createIndexCommand `cmd:"" help:"Create an index, and wait until queries use it."`
	List     listIndexesCommand `cmd:"" help:"List indexes."`
	Drop     dropIndexCommand   `cmd:"" help:"Remove an index."`
	Computed computedCommand    `cmd:"" help:"Create, preview, list, show and drop computed indexes: members, counts and sums of several collections under one name."`
	Errors   indexErrorsCommand `cmd:"" help:"List documents for which an expression of an index fails."`
	Terms    indexTermsCommand  `cmd:"" help:"List the words that an index of kind text has."`
}

// createIndexCommand creates an index.
type createIndexCommand struct {
	Name       string   `placeholder:"NAME" help:"Name of the index. The default is its fields."`
	Unique     bool     `help:"Refuse documents that have the values of another one."`
	Where      string   `placeholder:"CONDITION" help:"Enter only documents of which this is true, such as \"Status = 'open'\"."`
	Kind       string   `placeholder:"KIND" help:"Kind of the index: groups keeps counts and sums for group by. The default is an ordered one."`
	Option     []string `sep:"none" placeholder:"NAME=VALUE" help:"An option of the kind, such as \"sums=Total, Price * Quantity\"; may be repeated."`
	Place      string   `placeholder:"LAT,LNG|FIELD" help:"Index the place that two fields are, or that a field with WKT or GeoJSON has, in place of fields."`
	Collection string   `arg:"" help:"The collection."`
	Fields     *string  `arg:"" optional:"" name:"field[,field...]" help:"Paths such as Name or Lines.Product, or expressions such as 'Price * Quantity', most significant first; -Name is descending, and 'At as date' holds instants, 'At as utc' those of text without an offset, too."`
}

// Help is shown by jay index create --help.
func (*createIndexCommand) Help() string {
	return `Queries use an index as soon as it is ready; jay query --explain shows which. If the index exists already, nothing changes and jay exits with 0; an index of the same name with another declaration must be dropped first. If documents break the uniqueness that is asked for, no index is made, and jay names two of them.

A build that is interrupted goes on whenever the database is open: run the command again to wait for it.

Examples:

    jay index create Orders Company
    jay index create Orders Status,-Total
    jay index create Orders -Total                   a field in descending order
    jay index create Orders -- -h                    one whose name is a flag
    jay index create Events "At as date"             instants: texts of RFC 3339, by time
    jay index create Orders "Price * Quantity,-year(At)"    what queries compute
    jay index create Orders "Total / Count" --option strict=yes
    jay index create Users Email --unique
    jay index create Orders ShipTo.City --where "Status = 'open'" --name open-by-city
    jay index create Shops --place Lat,Lng           by where they are
    jay index create Shops --place Area              the same, of texts of WKT and objects of GeoJSON
    jay index create Notes Embedding --kind vectors --option dimensions=768    by what they are like
    jay index create Orders "Company,month(OrderedAt)" --kind groups --option "sums=Total, Total - Discount"`
}

// indexResult is what index create prints with --json.
type indexResult struct {
	jay.IndexInfo
	Created   bool    `json:"created"`
	Documents int64   `json:"documents"` // read by the build, including before this command
	Seconds   float64 `json:"seconds"`
}

// Run creates the index and prints a summary.
func (c *createIndexCommand) Run(ctx context.Context, a *app) error {
	fields, err := c.fields()
	if err != nil {
		return err
	}
	ix := jay.Index{Name: c.Name, Fields: splitFields(fields), Unique: c.Unique, Where: c.Where, Kind: c.Kind}
	for _, option := range c.Option {
		name, value, found := strings.Cut(option, "=")
		if !found || name == "" {
			return usageError{text: fmt.Sprintf("--option %q: it is NAME=VALUE", option)}
		}
		if ix.Options == nil {
			ix.Options = make(map[string]string)
		}
		ix.Options[name] = value
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		before, err := db.Indexes(ctx, c.Collection)
		if err != nil {
			return err
		}
		start := time.Now()
		documents, err := a.buildIndex(ctx, db, c.Collection, ix)
		if err != nil {
			return err
		}
		after, err := db.Indexes(ctx, c.Collection)
		if err != nil {
			return err
		}
		r := indexResult{Seconds: time.Since(start).Seconds()}
		r.IndexInfo, r.Created = findBuilt(before, after, ix)
		if r.Documents, err = documentsRead(ctx, db, before, r.IndexInfo, documents); err != nil {
			return err
		}
		if r.Documents == 0 {
			if err := a.noteEmptyCollection(ctx, db, c.Collection); err != nil {
				return err
			}
		}
		if a.json {
			return a.printLine(r)
		}
		if !r.Created {
			return a.print(fmt.Sprintf("index %q of %s is there already\n", r.Name, r.Collection))
		}
		if err := a.print(fmt.Sprintf("created index %q of %s: %s in %.1f s\n", r.Name, r.Collection, count(r.Documents, "document"), r.Seconds)); err != nil || r.Documents == 0 {
			return err
		}
		names, read, err := missingFields(ctx, db, c.Collection, ix.Fields)
		for _, name := range names {
			a.note("the first %s of %s have no field %q", count(read, "document"), c.Collection, name)
		}
		return err
	})
}

// fields returns the fields, or that of --place, and sets the kind for it.
func (c *createIndexCommand) fields() (string, error) {
	switch {
	case c.Place == "" && c.Fields == nil:
		return "", usageError{text: "index create: the fields are missing, or --place"}
	case c.Place == "":
		return *c.Fields, nil
	case c.Fields != nil || c.Kind != "" && c.Kind != "places":
		return "", usageError{text: "--place is in place of fields, and makes an index of the kind places"}
	}
	c.Kind = "places"
	place := strings.TrimSpace(c.Place)
	if lat, lng, two := strings.Cut(place, ","); two && !strings.HasPrefix(strings.ToLower(place), "spatial.") {
		place = "spatial.point(" + strings.TrimSpace(lat) + ", " + strings.TrimSpace(lng) + ")"
	}
	return place, nil
}

// buildIndex ensures that an index exists and is ready. It shows the progress and
// returns the number of documents that the build has read.
func (a *app) buildIndex(ctx context.Context, db *jay.DB, collection string, ix jay.Index) (documents int64, err error) {
	total := int64(-1)
	if a.showsProgress() { // count only for a progress bar
		if total, err = db.Query(collection).Count(ctx); err != nil {
			return 0, err
		}
	}
	bar := a.newCountProgress("index "+collection, total)
	defer bar.done()
	err = db.EnsureIndex(ctx, collection, ix, jay.IndexProgress(func(n int64) {
		documents = n
		bar.set(n)
	}))
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("index %s: %w after %s: the build goes on when the database is open again", collection, err, count(documents, "document"))
	}
	return documents, err
}

// documentsRead returns how many documents the build of an index has read. If an
// earlier command began the build, the reported number counts only from the opening of
// the database; then the documents of the collection are counted instead.
func documentsRead(ctx context.Context, db *jay.DB, before []jay.IndexInfo, built jay.IndexInfo, reported int64) (int64, error) {
	resumed := slices.ContainsFunc(before, func(b jay.IndexInfo) bool {
		return b.Name == built.Name && b.State == jay.IndexBuilding
	})
	if !resumed {
		return reported, nil
	}
	return db.Query(built.Collection).Count(ctx)
}

// findBuilt returns the index that was created or has changed its state, or else
// the existing one that ix declares.
func findBuilt(before, after []jay.IndexInfo, ix jay.Index) (info jay.IndexInfo, created bool) {
	for _, i := range after {
		old := slices.IndexFunc(before, func(b jay.IndexInfo) bool { return b.Name == i.Name })
		if old < 0 || before[old].State != i.State {
			return i, true
		}
	}
	name := ix.Name
	if name == "" {
		name = strings.Join(ix.Fields, ",")
		if ix.Where != "" {
			name += " where " + ix.Where
		}
	}
	i := slices.IndexFunc(after, func(a jay.IndexInfo) bool { return strings.EqualFold(a.Name, strings.TrimSpace(name)) })
	if i < 0 { // the paths are not in canonical form
		i = slices.IndexFunc(after, func(a jay.IndexInfo) bool {
			return len(a.Fields) == len(ix.Fields) && a.Unique == ix.Unique && a.Where == ix.Where && a.Kind == ix.Kind
		})
	}
	return after[max(i, 0)], false
}

// splitFields splits a list at the commas outside of quotes and parentheses.
func splitFields(list string) []string {
	var fields []string
	start, quoted, depth := 0, false, 0
	for i := 0; i < len(list); i++ {
		switch {
		case quoted && list[i] == '\\':
			i++
		case list[i] == '\'':
			quoted = !quoted
		case quoted:
		case list[i] == '(':
			depth++
		case list[i] == ')':
			depth--
		case list[i] == ',' && depth <= 0:
			fields = append(fields, strings.TrimSpace(list[start:i]))
			start = i + 1
		}
	}
	return append(fields, strings.TrimSpace(list[start:]))
}

// listIndexesCommand lists indexes.
type listIndexesCommand struct {
	Collection string `arg:"" optional:"" help:"Only those of this collection."`
}

// Help is shown by jay index list --help.
func (*listIndexesCommand) Help() string {
	return `An index that is building is not used yet. It is built whenever the database is open.

Examples:

    jay index list
    jay index list Orders --json | jq .fields`
}

// Run prints the indexes.
func (c *listIndexesCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		indexes, err := db.Indexes(ctx, c.Collection)
		if err != nil {
			return err
		}
		return a.printIndexes(indexes)
	})
}

// printIndexes prints indexes.
func (a *app) printIndexes(indexes []jay.IndexInfo) error {
	if a.json {
		for _, i := range indexes {
			if err := a.printLine(i); err != nil {
				return err
			}
		}
		return nil
	}
	if len(indexes) == 0 {
		return a.print("no indexes\n")
	}
	t := newFigures("Collection", "Name", "Fields", "Kind", "Where", "State")
	t.words = true
	for _, i := range indexes {
		state := string(i.State)
		if i.Errors > 0 {
			state += ", " + count(i.Errors, "error")
		}
		t.add(fit(i.Collection, tableCell), fit(i.Name, tableCell), fit(strings.Join(i.Fields, ","), tableCell), indexKind(i), fit(i.Where, tableCell), state)
	}
	return a.print(t.render(a.width) + "\n")
}

// indexKind returns the kind of an index with its options, or what else there is to say about it.
func indexKind(i jay.IndexInfo) string {
	switch {
	case i.Kind != "":
		return fit(strings.Join(append([]string{i.Kind}, i.OptionTexts()...), " "), tableCell)
	case i.Unique:
		return strings.Join(append([]string{"unique"}, i.OptionTexts()...), " ")
	case len(i.Options) > 0:
		return strings.Join(i.OptionTexts(), " ")
	case i.Automatic:
		return "automatic"
	}
	return ""
}

// indexErrorsCommand lists errors of documents.
type indexErrorsCommand struct {
	After      string `placeholder:"ID" help:"Only documents behind this ID, which may be the last one of another list."`
	Limit      int    `default:"100" placeholder:"N" help:"At most so many documents, up to 10,000."`
	Collection string `arg:"" help:"The collection."`
	Name       string `arg:"" help:"Name of the index, as jay index list shows it."`
}

// Help is shown by jay index errors --help.
func (*indexErrorsCommand) Help() string {
	return `An expression fails for a document with a text in the place of a number, with several values for one operand, or with a zero below the line. The document has no value there, as in a query, until it is changed. Where an operand is missing or null, nothing fails.

Examples:

    jay index errors Orders "Price / Quantity"
    jay index errors Orders each --json | jq -r .id`
}

// Run prints the errors.
func (c *indexErrorsCommand) Run(ctx context.Context, a *app) error {
	if c.Limit < 1 {
		return usageError{text: fmt.Sprintf("--limit %d: it is a number from 1 to 10,000", c.Limit)}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		list, err := jay.IndexOf(db, c.Collection, strings.TrimSpace(c.Name)).Errors(ctx, c.After, c.Limit)
		if err != nil {
			return err
		}
		if a.json {
			for _, e := range list {
				if err := a.printLine(e); err != nil {
					return err
				}
			}
			return nil
		}
		if len(list) == 0 {
			return a.print("no errors\n")
		}
		t := newFigures("Document", "Expression", "Reason")
		t.words = true
		for _, e := range list {
			t.add(fit(e.ID, tableCell), fit(e.Field, tableCell), fit(e.Reason, 2*tableCell))
		}
		return a.print(t.render(a.width) + "\n")
	})
}

// indexTermsCommand lists the terms of an index of words.
type indexTermsCommand struct {
	Field      string `placeholder:"FIELD" help:"Field of the index. The default is its first one."`
	Prefix     string `placeholder:"TEXT" help:"Only words that begin so."`
	After      string `placeholder:"WORD" help:"Only words behind this one, which may be the last one of another list."`
	Limit      int    `default:"100" placeholder:"N" help:"At most so many words, up to 10,000."`
	Collection string `arg:"" help:"The collection."`
	Name       string `arg:"" help:"Name of the index, as jay index list shows it."`
}

// Help is shown by jay index terms --help.
func (*indexTermsCommand) Help() string {
	return `Words are as the analyzer of the field makes them: in lower case, and of a language the stems. Beside each stands how many documents have it now. They come in the order of their bytes.

Examples:

    jay index terms Articles Words --prefix oak
    jay index terms Articles Words --field Title --limit 10000 --json | jq -r .term`
}

// Run prints the terms.
func (c *indexTermsCommand) Run(ctx context.Context, a *app) error {
	if c.Limit < 1 {
		return usageError{text: fmt.Sprintf("--limit %d: it is a number from 1 to 10,000", c.Limit)}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		list, err := jay.IndexOf(db, c.Collection, strings.TrimSpace(c.Name)).Terms(ctx, jay.IndexTermList{Field: c.Field, Prefix: c.Prefix, After: c.After, Limit: c.Limit})
		if err != nil {
			return err
		}
		if a.json {
			for _, term := range list {
				if err := a.printLine(term); err != nil {
					return err
				}
			}
			return nil
		}
		if len(list) == 0 {
			return a.print("no words\n")
		}
		t := newFigures("Word", "Documents")
		for _, term := range list {
			t.add(fit(term.Text, tableCell), thousands(term.Documents))
		}
		return a.print(t.render(a.width) + "\n")
	})
}

// dropIndexCommand removes an index.
type dropIndexCommand struct {
	Collection string `arg:"" help:"The collection."`
	Name       string `arg:"" help:"Name of the index, as jay index list shows it."`
}

// Help is shown by jay index drop --help.
func (*dropIndexCommand) Help() string {
	return `Documents stay as they are. An index that is being built is finished first.

Examples:

    jay index drop Orders Company
    jay index drop Orders Status,-Total`
}

// Run removes the index.
func (c *dropIndexCommand) Run(ctx context.Context, a *app) error {
	name := strings.TrimSpace(c.Name) // see descendingFields
	return a.withDatabase(false, func(db *jay.DB) error {
		if err := a.finishIndex(ctx, db, c.Collection, name); err != nil {
			return err
		}
		if err := c.check(ctx, db, name); err != nil {
			return err
		}
		if err := db.DropIndex(ctx, c.Collection, name); err != nil {
			return err
		}
		if a.json {
			return a.printLine(map[string]string{"dropped": name, "collection": c.Collection})
		}
		return a.print(fmt.Sprintf("dropped index %q of %s\n", name, c.Collection))
	})
}

// check returns an error that lists the existing indexes, if none has the name.
func (c *dropIndexCommand) check(ctx context.Context, db *jay.DB, name string) error {
	indexes, err := db.Indexes(ctx, c.Collection)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(indexes))
	for _, i := range indexes {
		if strings.EqualFold(i.Name, name) {
			return nil
		}
		names = append(names, i.Name)
	}
	there := "it has none"
	if len(names) > 0 {
		there = fmt.Sprintf("it has %q", names)
	}
	return explained{fmt.Sprintf("%s has no index %q; %s", c.Collection, name, there), jay.ErrNotFound}
}

// finishIndex waits for the build of an index that an earlier command has left
// unfinished: an index that is building cannot be dropped.
func (a *app) finishIndex(ctx context.Context, db *jay.DB, collection, name string) error {
	indexes, err := db.Indexes(ctx, collection)
	if err != nil {
		return err
	}
	for _, i := range indexes {
		if !strings.EqualFold(i.Name, name) || i.State != jay.IndexBuilding {
			continue
		}
		// A build that finds duplicate values removes the index itself.
		if _, err := a.buildIndex(ctx, db, collection, i.Index); !errors.Is(err, jay.ErrUnique) {
			return err
		}
	}
	return nil
}

// descendingFields makes "jay index create Orders -Total" parse. It puts a blank in
// front of descending fields and of the names of their indexes, so that the parser
// does not take them for flags. Fields and names are trimmed later.
func descendingFields(args []string) []string {
	i := slices.Index(args, "index")
	if i < 0 || i+1 == len(args) || args[i+1] != "create" && args[i+1] != "drop" && args[i+1] != "errors" {
		return args
	}
	args = slices.Clone(args)
	for j, arg := range args {
		if j > i && len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && arg != "-h" {
			args[j] = " " + arg
		}
	}
	return args
}
