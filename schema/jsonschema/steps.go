package jsonschema

import (
	lib "github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of a validation. docs/limits.md has them.
const (
	baseSteps  = 100_000 // schemas that are applied to values, for any document
	stepsValue = 50      // and for each value in it

	// maxListed is the most values of a document whose violations are listed one by one. A larger one
	// that violates its schema is refused as a whole.
	maxListed = 100_000

	maxSampleSteps = 10_000
)

// steps counts how often schemas are applied to values, and ends a validation that takes too many.
// Of one goroutine at a time.
//
// The library offers no place for it. It checks the format of a schema before it applies what lies
// in the schema, so every schema gets a format: its own, or one that accepts everything.
type steps struct{ left int }

// tooMany is what a validation panics with that has no steps left.
type tooMany struct{}

func (s *steps) take() {
	if s.left--; s.left < 0 {
		panic(tooMany{})
	}
}

// countIn counts the uses of a schema.
func (s *steps) countIn(one *lib.Schema) {
	counted := &lib.Format{Validate: func(any) error {
		s.take()
		return nil
	}}
	if own := one.Format; own != nil {
		counted.Name, counted.Validate = own.Name, func(v any) error {
			s.take()
			return own.Validate(v)
		}
	}
	one.Format = counted
}

// run calls fn with some steps, and reports whether they were enough.
func (s *steps) run(most int, fn func() error) (err error, enough bool) {
	s.left = most
	defer func() {
		if p := recover(); p != nil {
			if _, is := p.(tooMany); !is {
				panic(p)
			}
			err, enough = nil, false
		}
	}()
	return fn(), true
}
