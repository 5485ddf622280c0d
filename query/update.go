package query

import (
	"errors"

	"github.com/jaydb/jay/internal/jsonpath"
)

// ErrUpdate matches the [*SyntaxError] of [Parse] for a text that ends with update { }
// and so changes documents: it is one for [ParseUpdate].
var ErrUpdate = errors.New("query: the text changes documents")

// Bounds of the statements of an update, which its text bounds as well: see MaxText.
const (
	// MaxAssignments is the greatest number of statements between the braces of update.
	MaxAssignments = 256
	// MaxUpdateValues is how many values the statements of an update may hold, each
	// element and member of a literal counted.
	MaxUpdateValues = 10_000
	// MaxUpdateBytes is how many bytes of JSON the parameters in the statements of an
	// update may have in all; one that stands in several places counts in each.
	MaxUpdateBytes = 64 << 20
)

// Update is a parsed text with update { }: statements, and the query for the documents on which
// they run.
type Update struct {
	Query       *Query
	Assignments []Assignment // in their order; at least one
}

// Assignment is one statement of an update. All assignments are strict: an object or an array that
// is missing on the path is an error, as in JavaScript.
type Assignment struct {
	Op    AssignmentOp
	Path  jsonpath.Path // of the changed value
	Value []byte        // for AssignValue any JSON, for AssignAdd a number, for AssignPush an array of the values to push
	From  jsonpath.Path // of AssignPath
}

// AssignmentOp is the kind of an Assignment.
type AssignmentOp uint8

const (
	AssignValue  AssignmentOp = iota // this.A = 1: a value replaces the present value, if there is one
	AssignPath                       // this.A = this.B: a copy of a value, which must be there
	AssignAdd                        // this.A += 1: a number is added to one that must be there, or to null
	AssignPush                       // this.A.push(1): values become the last elements
	AssignPop                        // this.A.pop(): the last element is removed, if there is one
	AssignShift                      // this.A.shift(): the first element is removed, if there is one
	AssignDelete                     // delete this.A: the member is removed, if it is there
)

// ParseUpdate parses a query in RQL that ends with update { }, whose statements are a
// part of JavaScript:
//
//	from Orders as o where o.Total < $least
//	update {
//		this.Small = true;
//		o.Checks += 1;
//		this.Tags.push('small', $tag);
//		this.Address.City = this.City;
//		delete this.City;
//	}
//
// In the statements this and the alias are the document. docs/queries/updates.md lists the
// statements, and their differences from JavaScript. Parameters and errors are as for [Parse]; a
// value of a parameter in a statement is anything that encoding/json encodes.
func ParseUpdate(text string, params map[string]any) (*Update, error) {
	p, err := newParser(text, params)
	if err != nil {
		return nil, err
	}
	u, err := p.update()
	if err != nil {
		return nil, err
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return u, nil
}
