package smuggler

import (
	"context"
	"errors"
	"io"

	"github.com/jaydb/jay/transfer"
)

func (o *ImportOptions) limits() limits {
	return limits{maxBytes: o.MaxBytes, maxDepth: o.MaxDepth, names: o.Names, room: o.Room}
}

func (o *ImportOptions) placing() transfer.Placing {
	return transfer.Placing{IDPrefix: o.IDPrefix, Collection: o.Collection}
}

// openLines reads JSON.
func openLines(_ context.Context, in Input, o *ImportOptions) (Source, error) {
	return newSplitter(in.Reader, o.limits()), nil
}

// csvSource reads a CSV file.
type csvSource struct {
	r   *transfer.CSVReader
	raw []byte // of the row that was refused
}

// openCSV reads CSV. If the types of columns are to be inferred and the input can be read
// twice, they are those of all rows.
func openCSV(_ context.Context, in Input, o *ImportOptions) (_ Source, err error) {
	options := transfer.CSVOptions{Placing: o.placing(), Comma: in.Comma, MaxBytes: o.MaxBytes, Infer: o.Infer, IDColumn: o.IDColumn}
	if o.Infer && in.Again != nil {
		first, err := in.Again()
		if err != nil {
			return nil, err
		}
		options.Kinds, err = transfer.ScanCSV(first, options)
		if err := errors.Join(err, first.Close()); err != nil {
			return nil, err
		}
	}
	return &csvSource{r: transfer.NewCSVReader(in.Reader, options)}, nil
}

// Next implements Source.
func (s *csvSource) Next() (Record, error) {
	r, err := s.r.Next()
	v := Record{Number: r.Number, Line: r.Line, Offset: r.Offset, Text: r.Text, Converted: true}
	var bad *transfer.Error
	if errors.As(err, &bad) {
		s.raw = bad.Raw
	}
	return v, refused(err)
}

// Skip implements Source.
func (s *csvSource) Skip(w io.Writer) error {
	_, err := w.Write(s.raw)
	return err
}

// extendedSource reads Extended JSON: values as a splitter finds them.
type extendedSource struct {
	values *splitter
	to     transfer.Placing
	text   []byte // the last document
	raw    []byte // of the document that was refused; nil if the splitter refused it
}

func openExtended(_ context.Context, in Input, o *ImportOptions) (Source, error) {
	return &extendedSource{values: newSplitter(in.Reader, o.limits()), to: o.placing()}, nil
}

// Next implements Source.
func (s *extendedSource) Next() (Record, error) {
	v, err := s.values.Next()
	if s.raw = nil; err != nil {
		return v, err
	}
	if cap(s.text) > 1<<20 {
		s.text = nil
	}
	s.text, err = transfer.FromExtended(s.text[:0], v.Text, s.to)
	var bad *transfer.Error
	if errors.As(err, &bad) {
		s.raw, bad.Raw = v.Text, v.Text
		return v, refused(bad)
	}
	v.Text, v.Converted = s.text, true
	return v, nil
}

// Skip implements Source.
func (s *extendedSource) Skip(w io.Writer) error {
	if s.raw == nil {
		return s.values.Skip(w)
	}
	_, err := w.Write(s.raw)
	return err
}
