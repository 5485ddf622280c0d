package write

import "testing"

// VerbCount is how many verbs there are, for the tests outside the package.
const VerbCount = verbCount

// Ensure that each verb has a row, with an answer to everything. The rows are not exported.
func TestVerb_Rows(t *testing.T) {
	names, operations := make(map[string]bool), make(map[string]bool)
	for v, row := range verbs {
		if row.name == "" || row.operation == "" || row.body == 0 || row.document == 0 || row.request == 0 {
			t.Errorf("verb %d has no answer in %+v", v, row)
		}
		if names[row.name] || operations[row.operation] {
			t.Errorf("verb %d has the name of another one: %+v", v, row)
		}
		names[row.name], operations[row.operation] = true, true
	}
}
