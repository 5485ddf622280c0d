package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay"
)

// copyCommand copies a database from one store to another.
type copyCommand struct {
	From    string `arg:"" help:"A directory, or the address of a store on a server."`
	To      string `arg:"" help:"A directory to make, or the address of an empty store."`
	SameTag bool   `help:"The copy takes the place of the source, under its node tag. Do not write to the source afterwards."`
	floorFlags
}

// Help is shown by jay copy --help.
func (*copyCommand) Help() string {
	return `All is copied as it is: documents with their versions, revisions and attachments, changes, counters, compare-exchange values, subscriptions, definitions, and indexes with their entries. In the end both stores are read again and compared. A copy that was interrupted goes on when the command runs again. Until the copy is whole, it cannot be opened.

Nothing may write to the source meanwhile. What is longer than the target can store is listed before anything is written.

With --same-tag the database moves: all counters go on. If the source goes on, too, give the copy a node tag of its own with --copy-tag. --floor then names numbers that the source will not pass, as with jay restore.

Examples:

    jay copy --same-tag jay.db 'postgres://ada@db.example.com/app'
    jay copy --same-tag 'postgres://ada@db.example.com/app' back.db
    jay --copy-tag B copy jay.db second.db`
}

// copyResult is what copy prints with --json.
type copyResult struct {
	From string `json:"from"`
	To   string `json:"to"`
	jay.CopyInfo
	Seconds float64 `json:"seconds"`
}

// Run copies.
func (c *copyCommand) Run(ctx context.Context, a *app) error {
	if err := a.checkGlobals(); err != nil {
		return err
	}
	floors, err := c.floors()
	if err != nil {
		return err
	}
	options := a.options
	tag, err := chooseTag(&options, c.SameTag, "choose --same-tag if the copy takes the place of the source, or --copy-tag TAG if the source goes on")
	if err != nil {
		return err
	}
	r := copyResult{}
	o := jay.CopyOptions{CopyTag: tag, SameTag: c.SameTag, Floors: floors}
	if options.MaxMemory > 0 { // for both stores
		if options.Memory, err = jay.NewMemory(options.MaxMemory); err != nil {
			return err
		}
		limitHeap(options.MaxMemory, options.Memory.HeapBytes(), int64(options.MaxDocumentBytes))
		options.MaxMemory = 0
	}
	if r.From, o.From, err = copySide(c.From, options); err != nil {
		return err
	}
	if r.To, o.To, err = copySide(c.To, options); err != nil {
		return err
	}
	var bar *progress
	step := ""
	defer func() { bar.done() }()
	o.Progress = func(p jay.CopyProgress) {
		if p.Step != step {
			bar.done()
			total := p.TotalBytes
			if total == 0 {
				total = -1 // not known
			}
			step, bar = p.Step, a.newByteProgress(p.Step, total)
		}
		bar.set(p.Bytes)
	}
	start := time.Now()
	if r.CopyInfo, err = jay.Copy(ctx, c.From, c.To, o); err != nil {
		return err
	}
	bar.done()
	bar = nil
	if r.Seconds = time.Since(start).Seconds(); a.json {
		return a.printLine(r)
	}
	again := ""
	if r.Resumed {
		again = "; a copy that had been interrupted went on"
	}
	return a.print(fmt.Sprintf("copied %s, %s in all, to %s in %.1f s, with node tag %s, and compared all%s\n", count(r.Documents, "document"), size(r.Bytes), r.To, r.Seconds, r.NodeTag, again))
}

// copySide returns the name of a store, as messages have it, and the options to open it.
func copySide(name string, options jay.Options) (shown string, o *jay.Options, err error) {
	options.Engine, options.EncryptionKeys = nil, keysIn(options.EncryptionKeys, name)
	if shown = name; isStore(name) {
		shown, err = useEngine(&options, name)
	}
	return shown, &options, err
}
