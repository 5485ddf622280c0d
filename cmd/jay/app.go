package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/jaydb/jay"
)

// withDatabase opens the database, calls fn and closes the database, also if fn
// fails. If create is false, a missing database is an error. A command that the shell runs
// gets the shell's database, which stays open.
func (a *app) withDatabase(create bool, fn func(db *jay.DB) error) error {
	if a.opened != nil {
		return fn(a.opened)
	}
	db, err := a.open(create)
	if err != nil {
		return err
	}
	return andThen(fn(db), db.Close())
}

// andThen returns err, joined with the error of a clean-up that err does not wrap
// already.
func andThen(err, cleanup error) error {
	if cleanup == nil || err != nil && errors.Is(err, cleanup) {
		return err
	}
	return errors.Join(err, cleanup)
}

// open opens the database with the options of the command line. If another program has it open, it looks into it: then
// what would write fails.
func (a *app) open(create bool) (*jay.DB, error) {
	if err := a.checkGlobals(); err != nil {
		return nil, err
	}
	if a.looks != nil {
		return a.lookInto(nil)
	}
	options := a.options
	options.MustExist = true
	db, err := a.store.open(a.dir, &options)
	if create && errors.Is(err, jay.ErrNoDatabase) {
		options.MustExist = false
		if options.PrefixCollections == jay.PrefixCollectionsStored {
			options.PrefixCollections = jay.PrefixCollectionsOn // takes effect only in a new database
		}
		db, err = a.store.open(a.dir, &options)
	}
	if errors.Is(err, jay.ErrLocked) {
		return a.lookInto(err)
	}
	if err != nil {
		return nil, a.explainOpen(err)
	}
	if a.options.MaxMemory > 0 { // the process has one database
		of, err := db.Stats(context.Background())
		if err != nil {
			return nil, andThen(err, db.Close())
		}
		limitHeap(a.options.MaxMemory, of.Memory.HeapBytes, int64(a.options.MaxDocumentBytes))
	}
	return db, nil
}

// lookInto opens the database that another program has open, to be read only: that of --url, or of the directory. locked is the error of
// opening the directory here, or nil.
func (a *app) lookInto(locked error) (db *jay.DB, err error) {
	if a.looks != nil {
		db, err = a.looks(a.options)
	} else {
		db, err = lookInto(a.dir, a.options, locked)
	}
	if err != nil {
		return nil, a.explainOpen(err)
	}
	a.looked = true
	return db, nil
}

// lookInto opens the database that another program has open, to be read only. locked is the error of opening
// it here, or nil.
func lookInto(dir string, options jay.Options, locked error) (*jay.DB, error) {
	if options.Cluster != nil && locked != nil {
		return nil, locked // a member is to be opened
	}
	db, err := jay.Look(dir, ofOwner(options))
	if errors.Is(err, jay.ErrUnavailable) {
		err = errors.Join(locked, err)
	}
	return db, err
}

// ofOwner returns the options without those that are of the program that has the database open.
func ofOwner(options jay.Options) *jay.Options {
	options.CacheBytes, options.MemTableBytes, options.GroupReadable, options.EncryptionKeys = 0, 0, false, nil
	return &options
}

// checkGlobals refuses zero values of flags: in jay.Options they would mean the
// default.
func (a *app) checkGlobals() error {
	switch {
	case a.dir == "":
		return usageError{text: "--db must name a directory, or a store on a server"}
	case a.options.MaxDocumentBytes == 0:
		return usageError{text: "--max-document-bytes must not be 0"}
	case a.options.MaxDepth == 0:
		return usageError{text: "--max-depth must not be 0"}
	}
	return nil
}

// printLine prints v as one line of JSON.
func (a *app) printLine(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.print(string(text) + "\n")
}

// writeLine writes a value as one line of JSON, in which <, > and & are as they are.
func writeLine(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

func (a *app) print(text string) error {
	_, err := a.stdout.WriteString(text)
	return err
}

// printDocument prints a document with its @metadata as one line of JSON.
func (a *app) printDocument(doc *jay.Document) error {
	text, err := doc.MarshalJSON()
	if err != nil {
		return err
	}
	if _, err := a.stdout.Write(text); err != nil {
		return err
	}
	return a.stdout.WriteByte('\n')
}

// eachDocument calls fn with every document of a scan.
func eachDocument(ctx context.Context, db *jay.DB, s jay.Scan, fn func(*jay.Document) error) error {
	for doc, err := range db.Documents(ctx, s) {
		if err != nil {
			return err
		}
		if err := fn(doc); err != nil {
			return err
		}
	}
	return nil
}
