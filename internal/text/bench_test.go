package text_test

import (
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/text"
)

// BenchmarkAnalyzer makes the tokens of a text of some 550 bytes.
func BenchmarkAnalyzer(b *testing.B) {
	for name, s := range map[string]string{
		"ascii":  strings.Repeat("The oaks drop their acorns, and a jay's cache is full; nobody counts them. ", 7),
		"german": strings.Repeat("Über den Häusern fliegt der Eichelhäher, größer als früher; keiner zählt. ", 7),
		"han":    strings.Repeat("松鸦把橡子藏在树林里，每个都记得。", 11),
	} {
		for _, analyzer := range []string{"standard", "english", "ngram"} {
			a, _ := text.Find(analyzer)
			b.Run(analyzer+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					a.Each(s, func(text.Token) bool { n++; return true })
				}
			})
		}
	}
}
