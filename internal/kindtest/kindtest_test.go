package kindtest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/kindtest"
)

// body returns a document whose Name is of a few, in some spelling, or is no text at all.
func body(r *rand.Rand) string {
	name := []string{`"Ann"`, `"ann"`, `"Bob"`, `"Cyd"`, `7`, `7.0`, `null`, `true`, `["Ann","Bob","Ann"]`, `{"a":1}`}[r.IntN(10)]
	if r.IntN(10) == 0 {
		return fmt.Sprintf(`{"Age":%d}`, r.IntN(5))
	}
	return fmt.Sprintf(`{"Name":%s,"Age":%d}`, name, r.IntN(5))
}

// condition returns a condition on Name, Age or both.
func condition(r *rand.Rand) string {
	name := []string{"Name = 'ANN'", "Name = 'Bob'", "exact(Name = 'Ann')", "Name = 7", "Name = true", "Name = null", "Name in ('Ann', 'Cyd')", "Name > 'B'", "Name != 'Ann'"}[r.IntN(9)]
	if r.IntN(3) == 0 {
		return fmt.Sprintf("%s and Age = %d", name, r.IntN(5))
	}
	return name
}

// Ensure that the ordered index is a kind like any other.
func TestOrdered(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Index:     jay.Index{Fields: []string{"Name"}},
		Body:      body,
		Condition: condition,
		Explained: "one range",
		Invalid:   []jay.Index{{}, {Fields: []string{"Name", "Name"}}, {Fields: []string{"Name"}, Where: "id() = 'x'"}},
	})
}

// Ensure that an index with a condition of its own, and two fields, is one, too.
func TestOrdered_Partial(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Index:     jay.Index{Fields: []string{"-Name", "Age"}, Where: "Age < 4"},
		Body:      body,
		Condition: func(r *rand.Rand) string { return condition(r) + " and Age < 4" },
		Explained: "range",
	})
}
