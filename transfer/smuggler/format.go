package smuggler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// Format is a form that documents have outside of a database. The formats of this package
// are those of Formats; a program may add its own.
type Format struct {
	Name       string   // such as "csv"
	Extensions []string // of the names of files; an export gets the first
	MediaType  string   // of an export over HTTP

	// Whole is true if an export has everything that it can be asked for.
	Whole bool

	// Open opens an input. The documents of the source are stored as its records name
	// them.
	Open func(ctx context.Context, in Input, o *ImportOptions) (Source, error)

	// Write writes an export to a stream. It is nil for a format that needs a file.
	Write func(ctx context.Context, e *Exporter, w io.Writer) error

	// WriteFile writes an export to a file that is there, and empty. It is nil for a format
	// that is a stream.
	WriteFile func(ctx context.Context, e *Exporter, path string) error

	lines bool // records may be lines of an export that are no documents
	dump  bool // an input has more than documents
}

// Formats are the formats that a program knows. The first of them is that of a name that
// says nothing.
type Formats []*Format

// ErrFormat is returned when there is no format of a name.
var ErrFormat = errors.New("unknown format")

// Named returns the format of a name; the first one if the name is empty. Otherwise the
// error is ErrFormat and names all.
func (all Formats) Named(name string) (*Format, error) {
	if name == "" {
		return all[0], nil
	}
	var names []string
	for _, f := range all {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return nil, fmt.Errorf("%w: format is %s, not %.40q", ErrFormat, strings.Join(names, ", "), name)
}

// OfFile returns the format of the name of a file, which may have .gz or .zst behind its
// extension; the first one if the name says nothing.
func (all Formats) OfFile(name string) *Format {
	_, name = transfer.Compressed(name)
	for _, f := range all {
		for _, extension := range f.Extensions {
			if strings.EqualFold(filepath.Ext(name), extension) {
				return f
			}
		}
	}
	return all[0]
}

// Comma returns the byte between the cells of CSV that a text asks for: one ASCII character
// that is no quote, or tab. For an empty text it is a tab if the name of the file ends in
// .tsv, and else a comma. Any other text is jay.ErrUsage.
func Comma(asked, file string) (byte, error) {
	switch {
	case len(asked) == 1 && asked[0] >= ' ' && asked[0] < 0x7f && asked != `"`, asked == "\t":
		return asked[0], nil
	case asked == "tab", asked == `\t`:
		return '\t', nil
	case asked != "":
		return 0, fmt.Errorf("%w: the delimiter is one ASCII character that is no quote, or tab, not %.40q", jay.ErrUsage, asked)
	}
	_, file = transfer.Compressed(file)
	if strings.EqualFold(filepath.Ext(file), ".tsv") {
		return '\t', nil
	}
	return ',', nil
}
