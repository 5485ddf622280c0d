package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// corpus returns up to n different paragraphs of the Markdown files, and of the comments of Go files, below a directory.
func corpus(dir string, n int) (texts []string, err error) {
	if dir == "" {
		out, err := exec.Command("go", "env", "GOMODCACHE").Output()
		if err != nil {
			return nil, err
		}
		dir = strings.TrimSpace(string(out))
	}
	seed, seen := maphash.MakeSeed(), make(map[uint64]bool)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		isGo := strings.HasSuffix(path, ".go")
		if err != nil || d.IsDir() || !isGo && !strings.HasSuffix(path, ".md") {
			return err
		}
		file, err := os.ReadFile(path)
		if err != nil || !utf8.Valid(file) {
			return err
		}
		if isGo {
			file = comments(file)
		}
		for _, paragraph := range paragraphs(string(file)) {
			if h := maphash.String(seed, paragraph); !seen[h] {
				seen[h] = true
				texts = append(texts, paragraph)
			}
		}
		if len(texts) >= n {
			return fs.SkipAll
		}
		return nil
	})
	if len(texts) < 500 {
		return nil, fmt.Errorf("%s has %d paragraphs, which are too few: %w", dir, len(texts), err)
	}
	return mixed(texts, n), err
}

// mixed returns n texts: the given ones, and, if they are too few, others whose first half is that of one of them and whose second half
// is that of another one.
func mixed(texts []string, n int) []string {
	given := len(texts)
	r := rand.New(rand.NewPCG(1, 2))
	for len(texts) < n {
		a, b := strings.Fields(texts[r.IntN(given)]), strings.Fields(texts[r.IntN(given)])
		texts = append(texts, strings.Join(append(a[:len(a)/2:len(a)/2], b[len(b)/2:]...), " "))
	}
	return texts[:min(n, len(texts))]
}

// comments returns the lines of a Go file that are comments, with an empty line for others.
func comments(file []byte) (text []byte) {
	for line := range bytes.Lines(file) {
		if rest, is := bytes.CutPrefix(bytes.TrimSpace(line), []byte("//")); is {
			text = append(append(text, rest...), '\n')
		} else if !bytes.HasSuffix(text, []byte("\n\n")) {
			text = append(text, '\n')
		}
	}
	return text
}

// paragraphs returns the parts of a text of some 500 bytes, cut at empty lines, with letters of ASCII only, of which both
// engines make the same words.
func paragraphs(text string) (parts []string) {
	var part strings.Builder
	for block := range strings.SplitSeq(text, "\n\n") {
		block = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '\n' {
				return r
			}
			return ' '
		}, block)
		part.WriteString(strings.Join(strings.Fields(block), " ") + " ")
		if part.Len() >= 500 {
			parts = append(parts, part.String()[:min(part.Len(), 4000)])
			part.Reset()
		}
	}
	return parts
}

// queries returns what is asked: words of different frequency in the texts, and what stands side by side there.
func queries(texts []string) []asked {
	documents := make(map[string]int)
	for _, text := range texts {
		seen := make(map[string]bool)
		for _, word := range strings.Fields(strings.ToLower(text)) {
			if !seen[word] && len(word) > 3 {
				seen[word] = true
				documents[word]++
			}
		}
	}
	words := slices.SortedFunc(maps.Keys(documents), func(a, b string) int {
		return cmp.Or(documents[b]-documents[a], strings.Compare(a, b))
	})
	near := func(share float64) string { // the word of which so many documents have one
		return words[slices.IndexFunc(words, func(w string) bool { return documents[w] <= int(share*float64(len(texts))) })]
	}
	common, usual, other, third, rare := near(0.3), near(0.03), near(0.025), near(0.02), near(0.001)
	pair := ""
	for _, text := range texts {
		fields := strings.Fields(strings.ToLower(text))
		if i := slices.Index(fields, usual); i > 0 && len(fields[i-1]) > 2 {
			pair = fields[i-1] + " " + usual
			break
		}
	}
	return []asked{
		{name: "one common word", jay: common, fts5: common},
		{name: "one word", jay: usual, fts5: usual},
		{name: "one rare word", jay: rare, fts5: rare},
		{name: "three words, one of them", jay: usual + " " + other + " " + third, fts5: usual + " OR " + other + " OR " + third},
		{name: "three words, all of them", jay: common + " " + usual + " " + other, fts5: common + " " + usual + " " + other, all: true},
		{name: "a phrase", jay: `"` + pair + `"`, fts5: `"` + pair + `"`},
		{name: "a prefix", jay: usual[:4] + "*", fts5: usual[:4] + "*"},
	}
}

func body(text string) []byte {
	body, err := json.Marshal(note{text})
	if err != nil {
		panic(err) // text always marshals
	}
	return body
}
