package kindtest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/kindtest"
)

// referring returns a document of body that refers to one of the tests, to several, to itself, to none or to one that is not there.
func referring(r *rand.Rand) string {
	to := func() string { return fmt.Sprintf(`"%s/%d"`, oneOf(r, "things", "Things"), r.IntN(40)) }
	ref := oneOf(r, to(), to(), to(), `"nothing/1"`, `null`, `7`, "["+to()+","+to()+"]", `["things/1",null]`)
	text := body(r)
	return fmt.Sprintf(`%s,"Ref":%s}`, text[:len(text)-1], ref)
}

// Ensure that an index of what documents load is one like any other.
func TestOrdered_Loads(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Index: jay.Index{Fields: []string{"load(Ref).Name", "Age"}, Where: "load(load(Ref).Ref).Age != 1"},
		Body:  referring,
		Condition: func(r *rand.Rand) string {
			return oneOf(r, "load(Ref).Name = 'ANN'", "load(Ref).Name = 7", "load(Ref).Name = null", "load(Ref).Name in ('Ann', 'Cyd') and Age = 2", "load(Ref).Name > 'B'") + " and load(load(Ref).Ref).Age != 1"
		},
		Explained: "range",
	})
}
