package main

import (
	"context"
	"embed"
	"errors"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/jaydb/jay"
)

// completionCommand prints the script with which a command shell completes jay.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help is shown by jay completion --help.
func (*completionCommand) Help() string {
	return `The script asks jay itself what may stand at the cursor: commands, flags and their values, files, collections and IDs.

Examples:

    source <(jay completion bash)                                   in ~/.bashrc
    source <(jay completion zsh)                                    in ~/.zshrc, after compinit
    jay completion fish > ~/.config/fish/completions/jay.fish`
}

//go:embed completion
var completionScripts embed.FS

// Run prints the script.
func (c *completionCommand) Run(a *app) error {
	text, err := completionScripts.ReadFile("completion/jay." + c.Shell)
	if err != nil {
		return err
	}
	return a.print(string(text))
}

// completeCommand is the command that the completion scripts call. It prints a line
// with the kind of completion and then the candidates, one per line. After an error it
// prints nothing.
type completeCommand struct {
	Shell  string   `enum:"bash,zsh,fish" required:"" help:"The shell that asks."`
	Breaks string   `help:"Characters at which bash splits words."`
	Words  []string `arg:"" optional:"" help:"The words behind jay up to the cursor; for bash, the line in one word."`
}

// Kinds of completion.
const (
	completeWords   = ":words"   // complete with the candidates
	completeNoSpace = ":nospace" // likewise, without a blank after the word
	completeFiles   = ":files"   // complete with names of files
)

// Run prints the candidates.
func (c *completeCommand) Run(ctx context.Context, k *kong.Context, a *app) error {
	given, raw := c.Words, ""
	if c.Shell == "bash" {
		given, raw = bashWords(strings.Join(c.Words, " "))
		given = given[min(1, len(given)):]
	}
	if len(given) == 0 {
		given = []string{""}
	}
	w := &commandWords{app: a, node: k.Model.Node, last: given[len(given)-1]}
	w.walk(given[:len(given)-1])
	directive, all := w.candidates(ctx)
	if err := a.print(directive + "\n"); err != nil {
		return err
	}
	for _, one := range all {
		text := one.value
		switch c.Shell {
		case "bash":
			text = bashCandidate(text, raw, c.Breaks)
		case "fish":
			text += "\t" + one.help
		}
		if strings.ContainsAny(text, "\n\r\x00") {
			continue // candidates must be single lines
		}
		if err := a.print(text + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// commandWords walks over the words of a command line.
type commandWords struct {
	app  *app
	node *kong.Node // the command so far
	last string     // the typed part of the word at the cursor

	arguments int        // number of words before it that are not flags
	flag      *kong.Flag // flag whose value it is, or nil
	literal   bool       // there is a -- before it
}

// walk interprets the words before the cursor.
func (w *commandWords) walk(words []string) {
	for _, word := range words {
		switch {
		case w.flag != nil:
			w.note(w.flag, word)
			w.flag = nil
		case w.literal || word == "-" || !strings.HasPrefix(word, "-"):
			w.argument(word)
		case word == "--":
			w.literal = true
		default:
			name, value, assigned := strings.Cut(word, "=")
			f := w.find(name)
			switch {
			case f == nil || f.IsBool() && !assigned:
			case assigned:
				w.note(f, value)
			default:
				w.flag = f
			}
		}
	}
}

// argument descends into a command, or counts an argument.
func (w *commandWords) argument(word string) {
	if w.arguments == 0 && !w.literal {
		for _, child := range w.node.Children {
			if child.Name == word || slices.Contains(child.Aliases, word) {
				w.node = child
				return
			}
		}
	}
	if w.arguments == 0 && w.node.DefaultCmd != nil {
		w.node = w.node.DefaultCmd
	}
	w.arguments++
}

// note records which database a flag names.
func (w *commandWords) note(f *kong.Flag, value string) {
	if f.Name == "db" {
		w.app.dir = value
	}
}

// flags returns the flags of the command and of those above it.
func (w *commandWords) flags() (all []*kong.Flag) {
	for n := w.node; n != nil; n = n.Parent {
		for _, f := range n.Flags {
			if !f.Hidden {
				all = append(all, f)
			}
		}
	}
	return all
}

// find returns the flag --name or -n, or nil.
func (w *commandWords) find(name string) *kong.Flag {
	for _, f := range w.flags() {
		if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

// described is a candidate with its description.
type described struct{ value, help string }

// candidates returns the candidates at the cursor.
func (w *commandWords) candidates(ctx context.Context) (directive string, all []described) {
	switch {
	case w.flag != nil:
		return w.values(ctx, w.flag.Value, "", w.last)
	case !w.literal && strings.HasPrefix(w.last, "-"):
		name, typed, assigned := strings.Cut(w.last, "=")
		if assigned {
			if f := w.find(name); f != nil {
				return w.values(ctx, f.Value, name+"=", typed)
			}
			return completeWords, nil
		}
		for _, f := range w.flags() {
			all = append(all, described{"--" + f.Name, f.Help})
		}
	case w.arguments == 0 && len(w.node.Children) > 0:
		for _, child := range w.node.Children {
			if !child.Hidden {
				all = append(all, described{child.Name, child.Help})
			}
		}
		if len(filter(all, w.last)) == 0 && w.node.DefaultCmd != nil {
			w.node = w.node.DefaultCmd
			return w.candidates(ctx)
		}
	default:
		return w.positional(ctx)
	}
	return completeWords, filter(all, w.last)
}

// positional returns the candidates for a positional argument.
func (w *commandWords) positional(ctx context.Context) (directive string, all []described) {
	if len(w.node.Positional) == 0 {
		return completeWords, nil
	}
	at := min(w.arguments, len(w.node.Positional)-1)
	v := w.node.Positional[at]
	if w.arguments > at && !v.IsSlice() {
		return completeWords, nil
	}
	return w.values(ctx, v, "", w.last)
}

// values returns the values of a flag or an argument that begin with typed, each after
// prefix.
func (w *commandWords) values(ctx context.Context, v *kong.Value, prefix, typed string) (directive string, all []described) {
	var found []candidate
	switch {
	case v.Enum != "":
		found = plain(slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" }), true)
	case v.Name == "collection" || strings.HasPrefix(v.Help, "The collection"):
		found = w.app.fromDatabase(func(s *shell) []candidate { return s.collectionCandidates(ctx) })
	case v.Name == "id" && v.Flag == nil:
		found = w.app.fromDatabase(func(s *shell) []candidate { return s.idCandidates(ctx, typed) })
	case slices.Contains(fileValues, v.Name):
		if prefix == "" || w.last != "" {
			return completeFiles, nil
		}
	}
	directive = completeWords
	for _, c := range found {
		if c.fits(typed) {
			all = append(all, described{prefix + c.text, ""})
			if !c.ends {
				directive = completeNoSpace
			}
		}
	}
	return directive, all
}

// fileValues are the flags and arguments that are names of files or directories.
var fileValues = []string{"db", "data", "dir", "dst", "file", "include-to", "rejects", "src"}

// filter returns the candidates that begin with a prefix.
func filter(all []described, prefix string) []described {
	return slices.DeleteFunc(all, func(d described) bool { return !strings.HasPrefix(d.value, prefix) })
}

// fromDatabase returns candidates from the database, which it opens read-only or looks into; none if
// that fails.
func (a *app) fromDatabase(look func(s *shell) []candidate) (found []candidate) {
	options := a.options
	options.ReadOnly, options.CopyTag, options.PrefixCollections = true, "", jay.PrefixCollectionsStored // completion must change nothing
	db, err := a.store.open(a.dir, &options)
	if errors.Is(err, jay.ErrLocked) {
		db, err = lookInto(a.dir, options, err)
	}
	if err != nil {
		return nil
	}
	defer db.Close()
	return look(newShell(a, db, false))
}

// bashWords splits a line as bash does, as far as the quotes ' and " and the backslash
// go. The last word is the one at the cursor, "" after a blank; raw is its text in the
// line.
func bashWords(line string) (words []string, raw string) {
	var word strings.Builder
	start, inWord, quote := 0, false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		if quote == 0 && (c == ' ' || c == '\t' || c == '\n') {
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
			continue
		}
		if !inWord {
			start, inWord = i, true
		}
		switch {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		default:
			word.WriteByte(c)
		}
	}
	if inWord {
		raw = line[start:]
	}
	return append(words, word.String()), raw
}

// bashCandidate returns a candidate in the form that bash needs: without what precedes
// the last character at which bash splits words, and quoted as in a command line.
func bashCandidate(text, raw, breaks string) string {
	if raw != "" && (raw[0] == '\'' || raw[0] == '"') {
		return text // readline adds the quote
	}
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune(" \t!\"#$&'()*;<>?[\\]^`{|}~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	cut := 0
	for _, r := range ":=@" {
		if strings.ContainsRune(breaks, r) {
			cut = max(cut, strings.LastIndexByte(raw, byte(r))+1)
		}
	}
	if written := b.String(); cut <= len(written) && strings.EqualFold(written[:cut], raw[:cut]) {
		return written[cut:]
	}
	return b.String()
}
