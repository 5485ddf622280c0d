package text

import (
	"bytes"
	"embed"
	"strings"

	snowball "github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
)

// stemmers are Snowball's algorithms, by language. They never change for a version of the module.
var stemmers = map[string]func(string) string{
	"arabic":     by(arabic.Stem),
	"danish":     by(danish.Stem),
	"dutch":      by(dutch.Stem),
	"english":    by(english.Stem),
	"finnish":    by(finnish.Stem),
	"french":     by(french.Stem),
	"german":     by(german.Stem),
	"hungarian":  by(hungarian.Stem),
	"irish":      by(irish.Stem),
	"italian":    by(italian.Stem),
	"norwegian":  by(norwegian.Stem),
	"portuguese": by(portuguese.Stem),
	"romanian":   by(romanian.Stem),
	"russian":    by(russian.Stem),
	"spanish":    by(spanish.Stem),
	"swedish":    by(swedish.Stem),
	"tamil":      by(tamil.Stem),
	"turkish":    by(turkish.Stem),
}

func by(stem func(*snowball.Env) bool) func(string) string {
	return func(word string) string {
		env := snowball.NewEnv(word)
		stem(env)
		if env.Current() == "" {
			return word // a stem of nothing would be found by nothing
		}
		return env.Current()
	}
}

//go:embed stopwords
var stopFiles embed.FS

// stopWords returns the words of a language that are left out, folded; nil for a language without a list.
func stopWords(language string) map[string]bool {
	list, err := stopFiles.ReadFile("stopwords/" + language + ".txt")
	if err != nil {
		return nil
	}
	stops := make(map[string]bool)
	for w := range strings.FieldsSeq(string(list)) {
		stops[string(appendFolded(nil, w))] = true
	}
	return stops
}

// elisions are the words of a language that lose their vowel before another one, which belongs to the word with
// its apostrophe by the rules of Unicode.
var elisions = map[string]map[string]bool{
	"french":  set("l d j m t s n c qu jusqu lorsqu puisqu quoiqu"),
	"italian": set("l d un c m t s v all dall dell nell sull coll quell quest sant bell"),
	"irish":   set("d b m"),
	"english": nil,
}

func set(list string) map[string]bool {
	all := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		all[w] = true
	}
	return all
}

// elide returns a folded word without what it begins with, if that is one of the elisions and an apostrophe.
func elide(term []byte, elisions map[string]bool) []byte {
	if before, after, found := bytes.Cut(term, []byte{'\''}); found && len(after) > 0 && elisions[string(before)] {
		return after
	}
	return term
}
