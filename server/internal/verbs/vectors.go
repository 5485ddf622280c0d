package verbs

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jaydb/jay/query"
)

// GivenVector has the options of a vector as clients send them. What only says how a graph is made may be anything, as there is none.
type GivenVector struct {
	SourceEmbeddingType           *string
	DestinationEmbeddingType      *string
	Dimensions                    *int
	NumberOfEdges                 *int
	NumberOfCandidatesForIndexing *int
}

// forms are the forms of vectors by the types of a definition, that of the documents and that in which RavenDB keeps them.
var forms = map[[2]string]string{
	{"single", "single"}: "f32", {"single", "int8"}: "f32", {"single", "binary"}: "f32_i1", {"int8", "int8"}: "i8", {"binary", "binary"}: "i1",
}

// form returns the form of the vectors, and how many numbers they have, 0 if that is not said. The error says what there is not.
func (g *GivenVector) form() (form string, dimensions int, err error) {
	source := cmp.Or(strings.ToLower(textOf(g.SourceEmbeddingType)), "single")
	kept := cmp.Or(strings.ToLower(textOf(g.DestinationEmbeddingType)), source)
	form, known := forms[[2]string{source, kept}]
	switch {
	case source == "text":
		err = fmt.Errorf("vectors of texts: a text has no vector without a model, which Jay does not run")
	case !known:
		err = fmt.Errorf("vectors of %.50s that are kept as %.50s: there are Single, kept as Single, Int8 or Binary, Int8 and Binary", source, kept)
	case g.Dimensions != nil && (*g.Dimensions < 0 || *g.Dimensions > query.MaxDimensions):
		err = fmt.Errorf("vectors of %d numbers, and not of up to %d", *g.Dimensions, query.MaxDimensions)
	case g.Dimensions != nil:
		dimensions = *g.Dimensions
	}
	return form, dimensions, err
}
