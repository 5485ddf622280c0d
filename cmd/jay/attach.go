package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jaydb/jay"
)

// attachCommand puts, reads, lists and removes attachments.
type attachCommand struct {
	Put  putAttachmentCommand    `cmd:"" help:"Store a file as an attachment of a document."`
	Get  getAttachmentCommand    `cmd:"" help:"Write an attachment to standard output or a file."`
	List listAttachmentsCommand  `cmd:"" help:"List the attachments of a document."`
	Rm   removeAttachmentCommand `cmd:"" name:"rm" help:"Remove attachments of a document."`
}

// putAttachmentCommand stores a file as an attachment.
type putAttachmentCommand struct {
	Type    string  `placeholder:"TYPE" help:"Content type, such as image/png."`
	IfMatch *string `placeholder:"CV" help:"Only if the document has this change vector."`
	ID      string  `arg:"" name:"id" help:"ID of the document."`
	Name    string  `arg:"" help:"Name of the attachment."`
	File    string  `arg:"" optional:"" help:"File to read, - or none for standard input."`
}

// Help is shown by jay attach put --help.
func (*putAttachmentCommand) Help() string {
	return `The file takes the place of an attachment of this name. It is not held in memory. The document must be there; its change vector becomes another one.

Examples:

    jay attach put users/ann photo.png ann.png --type image/png
    tar c docs | jay attach put backups/1 docs.tar`
}

// Run stores the file.
func (c *putAttachmentCommand) Run(ctx context.Context, a *app) error {
	from := a.stdin
	if c.File != "" && c.File != stdinName {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer f.Close()
		from = f
	} else {
		a.input().prompt("bytes")
	}
	var options []jay.WriteOption
	if c.Type != "" {
		options = append(options, jay.ContentType(c.Type))
	}
	if c.IfMatch != nil {
		options = append(options, jay.IfMatch(*c.IfMatch))
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		stored, err := db.Attachments(c.ID).Put(ctx, c.Name, from, options...)
		if err != nil {
			return err
		}
		return a.printLineIf(stored)
	})
}

// printLineIf prints v with --json.
func (a *app) printLineIf(v any) error {
	if a.json {
		return a.printLine(v)
	}
	return nil
}

// getAttachmentCommand writes an attachment.
type getAttachmentCommand struct {
	Offset int64  `placeholder:"N" help:"Leave out the first N bytes."`
	Length *int64 `placeholder:"N" help:"Write at most N bytes."`
	ID     string `arg:"" name:"id" help:"ID of the document."`
	Name   string `arg:"" help:"Name of the attachment."`
	File   string `arg:"" optional:"" help:"File to write, - or none for standard output."`
}

// Help is shown by jay attach get --help.
func (*getAttachmentCommand) Help() string {
	return `A file is there when it is complete: it is written under another name first. The name of the attachment is never taken for that of a file.

Examples:

    jay attach get users/ann photo.png ann.png
    jay attach get backups/1 docs.tar | tar t
    jay attach get logs/1 log --offset 1000000 --length 80`
}

// Run writes the attachment.
func (c *getAttachmentCommand) Run(ctx context.Context, a *app) error {
	if c.Offset < 0 || c.Length != nil && *c.Length < 0 {
		return usageError{text: "--offset and --length are not negative"}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		r, err := db.Attachments(c.ID).Get(ctx, c.Name)
		if err != nil {
			return err
		}
		if c.File == "" || c.File == stdinName {
			return andThen(c.write(ctx, a.stdout, r), r.Close())
		}
		err = a.replaceFile(c.File, "", func(w io.Writer) error { return c.write(ctx, w, r) })
		if err := andThen(err, r.Close()); err != nil {
			return err
		}
		return a.printLineIf(r.Info())
	})
}

// write writes the requested part of r.
func (c *getAttachmentCommand) write(ctx context.Context, w io.Writer, r *jay.AttachmentReader) error {
	if c.Offset > 0 {
		if _, err := r.Seek(c.Offset, io.SeekStart); err != nil {
			return err
		}
	}
	var from io.Reader = r
	if c.Length != nil {
		from = io.LimitReader(r, *c.Length)
	}
	_, err := io.Copy(endingWriter{ctx, w}, from)
	return err
}

// endingWriter is a writer that ends with a context.
type endingWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w endingWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// listAttachmentsCommand lists attachments.
type listAttachmentsCommand struct {
	ID string `arg:"" name:"id" help:"ID of the document."`
}

// Run prints the attachments.
func (c *listAttachmentsCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		all, err := db.Attachments(c.ID).List(ctx)
		if err != nil {
			return err
		}
		if a.json {
			for _, one := range all {
				if err := a.printLine(one); err != nil {
					return err
				}
			}
			return nil
		}
		if len(all) == 0 {
			return a.print("no attachments\n")
		}
		t := newFigures("Name", "Type", "Size", "SHA-256")
		t.words = true
		for _, one := range all {
			t.add(fit(one.Name, tableCell), fit(one.ContentType, tableCell), size(one.Size), one.Hash)
		}
		return a.print(t.render(a.width) + "\n")
	})
}

// removeAttachmentCommand removes attachments.
type removeAttachmentCommand struct {
	ID    string   `arg:"" name:"id" help:"ID of the document."`
	Names []string `arg:"" name:"name" help:"Names of the attachments."`
}

// Help is shown by jay attach rm --help.
func (*removeAttachmentCommand) Help() string {
	return `All are removed, or after an error none. If the document has no attachment of a name, jay says so and exits with 1.`
}

// Run removes the attachments in one transaction.
func (c *removeAttachmentCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			all := tx.Attachments(c.ID)
			for _, name := range c.Names {
				if _, err := all.Stat(ctx, name); errors.Is(err, jay.ErrNoAttachment) {
					return explained{fmt.Sprintf("document %q has no attachment %q", c.ID, name), err}
				} else if err != nil {
					return err
				}
				if err := all.Delete(ctx, name); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
