package jay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that Matches and Exclude choose what RavenDB chooses.
func TestDocuments_Globs(t *testing.T) {
	db := memory(t, nil)
	for _, id := range []string{"ayende", "ayend", "RavenDB", "raven", "customers/1/orders/123", "customers/1/orders", "customers/1/invoices", "übung/é", "a*b"} {
		put(t, db, id, `{}`)
	}
	tests := []struct{ prefix, matches, exclude, want string }{
		{"", "ay?nde", "", "ayende"},
		{"", "AY?NDE", "", "ayende"},
		{"", "rav*b", "", "RavenDB"},
		{"", "*orders*", "", "customers/1/orders customers/1/orders/123"},
		{"", "*orders", "", "customers/1/orders"},
		{"", "*orders|*invoices", "", "customers/1/invoices customers/1/orders"},
		{"", "||*invoices|", "", "customers/1/invoices"},
		{"CUSTOMERS/1/", "orders", "", "customers/1/orders"}, // behind the prefix
		{"customers/1/", "*", "orders*", "customers/1/invoices"},
		{"customers/1/", "", "orders*|x", "customers/1/invoices"},
		{"customers/", "", "*", ""},
		{"customers/1/orders", "?*", "", "customers/1/orders/123"},
		{"customers/1/orders", "", "?*", "customers/1/orders"},
		{"", "?bung/?", "", "übung/é"}, // a character, not a byte
		{"", "ÜBUNG/*", "", "übung/é"},
		{"", "a*b", "", "a*b"},
		{"", "|", "", "a*b ayend ayende customers/1/invoices customers/1/orders customers/1/orders/123 raven RavenDB übung/é"},
		{"r", "", "|", "raven RavenDB"},
		{"", "none", "", ""},
	}
	for _, test := range tests {
		s := jay.Scan{Prefix: test.prefix, Matches: test.matches, Exclude: test.exclude}
		var got []string
		for doc, err := range db.Documents(ctx, s) {
			must(t, err)
			got = append(got, doc.ID())
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%+v: got %v", s, got)
		}
	}
	for _, s := range []jay.Scan{{Matches: strings.Repeat("x", 1025)}, {Exclude: strings.Repeat("x", 1025)}} {
		for doc, err := range db.Documents(ctx, s) {
			if doc != nil || !errors.Is(err, jay.ErrUsage) {
				t.Errorf("a long pattern: %v, %v", doc, err)
			}
		}
	}
}

// Ensure that pages of a walk with patterns, in collections at home and away,
// and in a transaction over its own writes, hold what a plain filter by a
// regular expression chooses.
func TestDocuments_Globs_AgainstRegexp(t *testing.T) {
	t.Parallel()
	for _, caseSensitive := range []bool{false, true} {
		db := memory(t, &jay.Options{CaseSensitive: caseSensitive})
		random := rand.New(rand.NewPCG(1, 2))
		text := func(alphabet string, n int) string {
			out := make([]rune, random.IntN(n))
			for i := range out {
				letters := []rune(alphabet)
				out[i] = letters[random.IntN(len(letters))]
			}
			return string(out)
		}
		type document struct{ id, folded, collection string }
		var all []document
		rules := ids.Rules{CaseSensitive: caseSensitive}
		insert := func(put func(id, collection string) error) {
			for range 150 {
				d := document{id: "u/" + text("aAbBé/", 7) + "x", collection: []string{"u", "V"}[random.IntN(2)]}
				d.folded = rules.Fold(d.id)
				if put(d.id, d.collection) == nil {
					all = append(all, d)
				}
			}
		}
		insert(func(id, collection string) error {
			_, err := db.Insert(ctx, id, []byte(`{}`), jay.InCollection(collection))
			return err
		})
		err := db.Update(ctx, func(tx *jay.Tx) error {
			insert(func(id, collection string) error {
				_, err := tx.Insert(ctx, id, []byte(`{}`), jay.InCollection(collection))
				return err
			})
			slices.SortFunc(all, func(a, b document) int { return strings.Compare(a.folded, b.folded) })
			for range 500 {
				s := jay.Scan{Prefix: []string{"", "u/", "U/a", "u/b"}[random.IntN(4)], Limit: random.IntN(10)}
				s.Matches, s.Exclude = text("aAbé/x*?|*", 8), text("aAbé/x*?|*", 6)
				s.Collection = []string{"", "U", "v"}[random.IntN(3)]
				if random.IntN(2) == 0 {
					s.After = all[random.IntN(len(all))].id
				}
				matches, exclude := globRegexp(rules.Fold(s.Matches)), globRegexp(rules.Fold(s.Exclude))
				var want, got []string
				for _, d := range all {
					rest, ok := strings.CutPrefix(d.folded, rules.Fold(s.Prefix))
					if ok && (s.Collection == "" || ids.EqualFold(s.Collection, d.collection)) && d.folded > rules.Fold(s.After) && (matches == nil || matches.MatchString(rest)) &&
						(exclude == nil || !exclude.MatchString(rest)) && (s.Limit == 0 || len(want) < s.Limit) {
						want = append(want, d.id)
					}
				}
				for doc, err := range tx.Documents(ctx, s) {
					if err != nil {
						return err
					}
					got = append(got, doc.ID())
				}
				if !slices.Equal(got, want) {
					return fmt.Errorf("%+v: got %v, want %v", s, got, want)
				}
			}
			return nil
		})
		must(t, err)
	}
}

// globRegexp translates a pattern, or returns nil for none.
func globRegexp(pattern string) *regexp.Regexp {
	var alternatives []string
	for a := range strings.SplitSeq(pattern, "|") {
		if a != "" {
			a = regexp.QuoteMeta(a)
			a = strings.ReplaceAll(strings.ReplaceAll(a, `\*`, `.*`), `\?`, `.`)
			alternatives = append(alternatives, a)
		}
	}
	if alternatives == nil {
		return nil
	}
	return regexp.MustCompile(`^(?s:` + strings.Join(alternatives, "|") + `)$`)
}

// Ensure that no pattern explodes: the worst ones, over the longest ID, do not take
// for ever, as they would by trying all ways.
func TestDocuments_Globs_Time(t *testing.T) {
	db := memory(t, nil)
	put(t, db, strings.Repeat("a", 2025), `{}`)
	start := time.Now()
	for _, pattern := range []string{strings.Repeat("*a", 500) + "*b", strings.Repeat("*?a", 300) + "*b", strings.Repeat("*a*a*b|", 140), strings.Repeat("*", 1000) + "b", "*" + strings.Repeat("a?", 500) + "b"} {
		for range 20 {
			for doc, err := range db.Documents(ctx, jay.Scan{Matches: pattern}) {
				t.Errorf("%.20s: found %v, %v", pattern, doc, err)
			}
		}
	}
	if took := time.Since(start); took > jaytest.HangGuard {
		t.Errorf("100 walks took %v", took)
	}
}
