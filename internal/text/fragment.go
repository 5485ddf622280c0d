package text

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tags are what is written around the marks of a fragment.
type Tags struct {
	Before, After []string // of equal lengths; the clauses of searches have the pairs in turn
	Plain         bool     // the text is not escaped for HTML
}

// Fragment is a part of a text with its marks.
type Fragment struct {
	Text       int // which of the texts of the field
	Start, End int // its bytes in this text
	Marks      []Mark
}

// Fragments returns the parts of texts with the best marks, at most count of them, in the order of the texts. A fragment has at most length
// characters, begins and ends where a word does if it can, and overlaps no other one. Those with the marks of the most clauses are the best,
// then those with the most marks, then the first ones. The marks are sorted.
func Fragments(texts []string, marks []Mark, length, count int) []Fragment {
	marks = joinMarks(marks)
	chosen := chooseWindows(windowsOf(texts, marks, length), count)
	fragments := make([]Fragment, len(chosen))
	for i, w := range chosen {
		first, last := marks[w.first], marks[w.last]
		text := texts[first.Text]
		low, high := 0, len(text)
		if i > 0 && fragments[i-1].Text == first.Text {
			low = fragments[i-1].End
		}
		if i+1 < len(chosen) && marks[chosen[i+1].first].Text == first.Text {
			high = marks[chosen[i+1].first].Start
		}
		e := extent{text, first.Start, last.End}
		e.widen(low, high, length)
		fragments[i] = Fragment{Text: first.Text, Start: e.start, End: e.end}
		fragments[i].take(marks)
	}
	return fragments
}

// take takes the marks that are within a fragment.
func (f *Fragment) take(marks []Mark) {
	for _, m := range marks {
		if m.Text == f.Text && m.Start >= f.Start && m.Start < f.End {
			m.End = min(m.End, f.End)
			f.Marks = append(f.Marks, m)
		}
	}
}

// Append appends a fragment with tags around its marks.
func (f *Fragment) Append(dst []byte, text string, tags *Tags) []byte {
	write := func(s string) {
		if !tags.Plain {
			s = escaper.Replace(s)
		}
		dst = append(dst, s...)
	}
	at := f.Start
	for _, m := range f.Marks {
		write(text[at:m.Start])
		pair := m.Clause % len(tags.Before)
		dst = append(dst, tags.Before[pair]...)
		write(text[m.Start:m.End])
		dst = append(dst, tags.After[pair]...)
		at = m.End
	}
	write(text[at:f.End])
	return dst
}

// window is a run of marks that a fragment has room for.
type window struct {
	first, last int // places of the first and the last mark
	score       int
}

// clauseScore is what a mark of another clause counts more than one of the same.
const clauseScore = MaxMarks

// windowsOf returns the window that begins with each mark.
func windowsOf(texts []string, marks []Mark, length int) []window {
	starts, ends := characters(texts, marks)
	windows := make([]window, len(marks))
	clauses := make(map[int]int) // of the marks from i up to, not including, next
	next := 0
	for i := range marks {
		for next < len(marks) && (next == i || marks[next].Text == marks[i].Text && ends[next]-starts[i] <= length) {
			clauses[marks[next].Clause]++
			next++
		}
		windows[i] = window{i, next - 1, clauseScore*len(clauses) + next - i}
		if clauses[marks[i].Clause]--; clauses[marks[i].Clause] == 0 {
			delete(clauses, marks[i].Clause)
		}
	}
	return windows
}

// characters returns where marks begin and end, counted in characters of their texts.
func characters(texts []string, marks []Mark) (starts, ends []int) {
	at, n, text := 0, 0, -1
	for _, m := range marks {
		if m.Text != text {
			at, n, text = 0, 0, m.Text
		}
		n += utf8.RuneCountInString(texts[text][at:m.Start])
		starts = append(starts, n)
		n += utf8.RuneCountInString(texts[text][m.Start:m.End])
		ends = append(ends, n)
		at = m.End
	}
	return starts, ends
}

// chooseWindows returns the best windows that share no mark, in the order of the texts.
func chooseWindows(windows []window, count int) (chosen []window) {
	slices.SortStableFunc(windows, func(a, b window) int { return cmp.Compare(b.score, a.score) })
	for _, w := range windows {
		if len(chosen) == count {
			break
		}
		if !slices.ContainsFunc(chosen, func(c window) bool { return w.first <= c.last && c.first <= w.last }) {
			chosen = append(chosen, w)
		}
	}
	slices.SortFunc(chosen, func(a, b window) int { return cmp.Compare(a.first, b.first) })
	return chosen
}

// extent is a part of a text.
type extent struct {
	text       string
	start, end int
}

// widen adds what is around the extent, within low and high, up to length characters: as much in front as behind if there is enough. A longer
// one is cut.
func (e *extent) widen(low, high, length int) {
	room := length - utf8.RuneCountInString(e.text[e.start:min(e.end, e.start+utf8.UTFMax*(length+1))])
	if room <= 0 {
		e.end = e.forward(e.start, length, e.end)
		return
	}
	first, last := e.start, e.end
	behind := e.forward(last, room, high)
	spare := room - utf8.RuneCountInString(e.text[last:behind]) // that cannot be behind
	e.start = e.backward(first, max(spare, room/2), low)
	for e.start < first && !isBorder(e.text, e.start) && e.start > low {
		e.start += firstSize(e.text[e.start:])
	}
	leftOut := unicode.IsSpace
	if e.start > 0 {
		leftOut = isBehindWords
	}
	e.start = first - len(strings.TrimLeftFunc(e.text[e.start:first], leftOut))

	e.end = e.forward(last, room-utf8.RuneCountInString(e.text[e.start:first]), high)
	for e.end > last && !isBorder(e.text, e.end) && e.end < high {
		e.end -= lastSize(e.text[:e.end])
	}
	e.end = last + len(strings.TrimRightFunc(e.text[last:e.end], unicode.IsSpace))
}

// isBehindWords reports whether a character belongs to what is in front of it: no fragment begins with it.
func isBehindWords(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.Pe, unicode.Pf) || strings.ContainsRune(".,;:!?…、。，；：！？", r)
}

// forward returns the place n characters behind another one, at most limit.
func (e *extent) forward(at, n, limit int) int {
	for ; n > 0 && at < limit; n-- {
		at += firstSize(e.text[at:])
	}
	return min(at, limit)
}

// backward returns the place n characters in front of another one, at least limit.
func (e *extent) backward(at, n, limit int) int {
	for ; n > 0 && at > limit; n-- {
		at -= lastSize(e.text[:at])
	}
	return max(at, limit)
}

func firstSize(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

func lastSize(s string) int {
	_, n := utf8.DecodeLastRuneInString(s)
	return n
}

// isBorder reports whether no word is cut in two at a place of a text: of scripts without spaces between words, each character is one.
func isBorder(text string, at int) bool {
	if at == 0 || at == len(text) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	switch {
	case unicode.IsMark(after) || before == '\u200d' || after == '\u200d':
		return false
	case isJoined(before) || isJoined(after):
		return true
	}
	return !inWord(before) || !inWord(after)
}

// inWord reports whether a character is a part of words.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '_' || r == '\'' || r == '’'
}

// isJoined reports whether a character is of a script without spaces between words.
func isJoined(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}
