package fulltext_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/fulltext"
	"github.com/jaydb/jay/internal/kindtest"
)

var vocabulary = []string{"oak", "Oak", "acorn", "leaf", "leaves", "fallen", "tree", "日本語", "本", "a", "x1", "\\u0000q"}

// sentence returns some words as the content of a text of JSON.
func sentence(r *rand.Rand) string {
	var words []string
	for range r.IntN(6) {
		words = append(words, vocabulary[r.IntN(len(vocabulary))])
	}
	return strings.Join(words, []string{" ", ", ", "-"}[r.IntN(3)])
}

// Ensure that an index of words is a kind of index, and finds what a scan finds.
func TestText(t *testing.T) {
	t.Cleanup(fulltext.Quickly())
	bytes, texts := fulltext.KeptBytes, fulltext.KeptTexts
	fulltext.KeptBytes, fulltext.KeptTexts = 3000, 30
	t.Cleanup(func() { fulltext.KeptBytes, fulltext.KeptTexts = bytes, texts })
	kindtest.Run(t, kindtest.Subject{
		Name:  fulltext.Name,
		Kind:  catalog.Kind{Options: fulltext.Kind.Options},
		Index: jay.Index{Fields: []string{"Title", "Text"}},
		Body: func(r *rand.Rand) string {
			var members []string
			if r.IntN(4) > 0 {
				members = append(members, fmt.Sprintf(`"Title":"%s"`, sentence(r)))
			}
			switch r.IntN(5) {
			case 0:
				members = append(members, []string{`"Text":null`, `"Text":5`, `"Text":{"a":"oak"}`, `"Text":[]`}[r.IntN(4)])
			case 1:
				members = append(members, fmt.Sprintf(`"Text":["%s",7,"%s"]`, sentence(r), sentence(r)))
			default:
				members = append(members, fmt.Sprintf(`"Text":"%s"`, sentence(r)))
			}
			return "{" + strings.Join(members, ",") + "}"
		},
		Condition: func(r *rand.Rand) string {
			field := []string{"Title", "Text"}[r.IntN(2)]
			search := []string{"oak", "oak acorn", "fallen leaves", `"fallen leaves"`, `"leaves oak"~2`, "lea*", "?ak -tree", "+acorn tree", "-oak", "本", "日本", "fallem~", "*", "nothing", "a"}[r.IntN(15)]
			one := fmt.Sprintf("search(%s, '%s'%s)", field, search, []string{"", ", and"}[r.IntN(2)])
			switch r.IntN(5) {
			case 0:
				return one + " and search(Title, 'oak tree')"
			case 1:
				return one + " or Title = 'oak'"
			case 2:
				return "(" + one + " or search(Title, 'leaf acorn', and)) and not search(Text, 'tree')"
			}
			return one
		},
		Explained: "words",
		Invalid:   []jay.Index{{}, {Fields: []string{"-Text"}}, {Fields: []string{"At as date"}}},
		Settles:   true,
		Trails:    true,
	})
}
