package jay

import (
	"errors"
	"fmt"

	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/query"
)

// RemoveWhere removes the elements that meet a condition from the array at the path.
// Its fields are those of one element: with the path "Lines", Lt("Qty", 1) is about
// the member Qty of each line. "@value" is the element itself where that is no object,
// such as the texts of RemoveWhere("Tags", StartsWith("@value", "old-")). Elements have
// no metadata. An element whose field is missing meets Ne and Not, as documents do.
// There is none to remove from null.
func RemoveWhere(path string, c Condition) PatchOption {
	return edit(patch.RemoveWhere(path, newElementCondition(c)))
}

// elementCondition is a Condition on the elements of an array. It implements
// patch.Condition.
type elementCondition struct {
	matcher *query.Matcher // cloned for each patch
	work    int            // units for each element, beside those that the matcher counts
	err     error
}

// Work of an element, in units of patch.Limits.MaxWork.
const (
	workPerMatch     = 64
	workPerCondition = 32
)

var errElementMetadata = errors.New("an element has no id and no metadata")

func newElementCondition(c Condition) *elementCondition {
	if c.err != nil {
		return &elementCondition{err: c.err}
	}
	expr := c.orTrue()
	for _, f := range query.Fields(expr) {
		if f.Meta != query.MetaNone {
			return &elementCondition{err: fmt.Errorf("%w: %s", errElementMetadata, f)}
		}
	}
	m, err := query.Compile(expr)
	return &elementCondition{matcher: m, work: workPerMatch + workPerCondition*c.sizeOrTrue().Conditions, err: err}
}

// Err implements patch.Condition.
func (c *elementCondition) Err() error { return c.err }

// Begin implements patch.Condition.
func (c *elementCondition) Begin(spend func(n int) error) func(element []byte) (bool, error) {
	m, pace := c.matcher.Clone(), new(query.Pace)
	pace.Charge(spend)
	m.SetPace(pace)
	var wrapped []byte
	return func(element []byte) (bool, error) {
		if err := spend(c.work); err != nil {
			return false, err
		}
		if element[0] != '{' {
			if err := spend(len(element)); err != nil {
				return false, err
			}
			wrapped = append(append(append(wrapped[:0], `{"@value":`...), element...), '}')
			element = wrapped
		}
		meets := m.Match(query.Doc{Body: element})
		return meets, pace.Settle()
	}
}
