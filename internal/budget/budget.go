// Package budget divides the memory of a database among its parts (Divide), and bounds the part that work draws on (Pool). It
// carries through a context who pays for the memory of a query, and of the documents that are read.
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
	ctx  context.Context // of the query whose memory draw holds
	draw Draw
	take Take // or nil
	paid int64
}

// NewPayer returns a Payer for the queries of a context.
func NewPayer(ctx context.Context) Payer { return Payer{take: Of(ctx)} }

// NewDrawing returns a Payer for a query, which draws on the pool besides. End gives that back.
func NewDrawing(ctx context.Context, pool *Pool) Payer {
	return Payer{ctx: ctx, draw: pool.NewDraw("query"), take: Of(ctx)}
}

// End gives back what was drawn on the pool.
func (p *Payer) End() { p.draw.End() }

// least is the least for which a Payer calls the function.
const least = 64 << 10

// Pay pays for what all parts together have grown by.
func (p *Payer) Pay(n int) error {
	if p.take == nil && p.draw.pool == nil || n <= 0 {
		return nil
	}
	if p.paid -= int64(n); p.paid >= 0 {
		return nil
	}
	more := max(-p.paid, least)
	if err := p.pay(more); err != nil {
		p.paid += int64(n)
		return err
	}
	p.paid += more
	return nil
}

// pay pays for n bytes, on both sides. What was drawn stays with the query, which ends if the other side refuses.
func (p *Payer) pay(n int64) error {
	if err := p.draw.Take(p.ctx, n); err != nil {
		return err
	}
	if p.take == nil {
		return nil
	}
	return p.take(n)
}

// namedBytes is what an element of a list or a map takes beside its name, about.
const namedBytes = 128

// PayNamed pays for one more element of a list or a map: its name, and what belongs to it.
func (p *Payer) PayNamed(name string) error { return p.Pay(len(name) + namedBytes) }
