// Package budget carries through a context who pays for the memory of a query, and of the
// documents that are read.
package budget

import "context"

// Take is called before memory is taken, with a number of bytes.
type Take func(n int64) error

type key struct{}

// With returns a context with which queries call take.
func With(ctx context.Context, take Take) context.Context { return context.WithValue(ctx, key{}, take) }

// Of returns the function of a context, or nil.
func Of(ctx context.Context) Take {
	take, _ := ctx.Value(key{}).(Take)
	return take
}

type readingKey struct{}

// WithReading returns a context with which reads call need before they copy a document.
func WithReading(ctx context.Context, need Take) context.Context {
	return context.WithValue(ctx, readingKey{}, need)
}

// ReadingOf returns the function of a context for documents that are read, or nil.
func ReadingOf(ctx context.Context) Take {
	need, _ := ctx.Value(readingKey{}).(Take)
	return need
}

// LeastRead is the size of a record from which on its copy is paid for. Shorter ones are
// read often, and are little.
const LeastRead = 64 << 10

// Payer pays for memory that grows. The zero value pays for nothing.
type Payer struct {
	take Take
	paid int64
}

// NewPayer returns a Payer for the queries of a context.
func NewPayer(ctx context.Context) Payer { return Payer{take: Of(ctx)} }

// least is the least for which a Payer calls the function.
const least = 64 << 10

// Pay pays for what all parts together have grown by.
func (p *Payer) Pay(n int) error {
	if p.take == nil || n <= 0 {
		return nil
	}
	if p.paid -= int64(n); p.paid >= 0 {
		return nil
	}
	more := max(-p.paid, least)
	if err := p.take(more); err != nil {
		p.paid += int64(n)
		return err
	}
	p.paid += more
	return nil
}

// namedBytes is what an element of a list or a map takes beside its name, about.
const namedBytes = 128

// PayNamed pays for one more element of a list or a map: its name, and what belongs to it.
func (p *Payer) PayNamed(name string) error { return p.Pay(len(name) + namedBytes) }
