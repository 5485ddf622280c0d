package main

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// completion is the effect of Tab on a line: it replaces the last bytes before the
// cursor, or shows candidates.
type completion struct {
	replace    int // number of bytes before the cursor to replace
	insert     string
	candidates []string
	more       string // line to show below the candidates
}

// Bounds of the search for candidates.
const (
	completionTime       = 300 * time.Millisecond
	completionCandidates = 100
	completionDocuments  = 40      // documents sampled for fields, at each end of a collection
	completionBytes      = 1 << 20 // bytes of documents after which sampling stops
	completionFields     = 300
	completionDepth      = 4 // of fields
)

// candidate is a text that may stand at the cursor.
type candidate struct {
	text string // as inserted, with quotes if it needs them
	ends bool   // complete: a blank may follow
	name string // the text without quotes, if it has any
}

// fits reports whether c may be a completion of the token.
func (c candidate) fits(token string) bool {
	return hasPrefixFold(cmp.Or(c.name, c.text), token)
}

// complete completes a statement before the cursor. An error of the database completes
// nothing.
func (s *shell) complete(ctx context.Context, before string) completion {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	text := currentStatement(before)
	word := firstWord(text)
	rest := text[len(word):]
	if rest == "" {
		return choose(word, "", plain(shellWords, true))
	}
	if shapes[word] == shapeQuery {
		return s.completeQuery(ctx, text)
	}
	command, found := shellCommands[word]
	if !found {
		return completion{}
	}
	token, quote, first := lastWord(rest)
	switch command.args {
	case argsIDs, argsID:
		if first || command.args == argsIDs {
			return choose(token, quote, quoted(s.idCandidates(ctx, token), quote))
		}
	case argsCollection:
		if first {
			return choose(token, quote, quoted(s.collectionCandidates(ctx), quote))
		}
	case argsFormat:
		return choose(token, quote, plain([]string{"json", "pretty", "table"}, true))
	case argsOnOff:
		return choose(token, quote, plain([]string{"off", "on"}, true))
	case argsCommand:
		return choose(token, quote, plain(shellWords, true))
	}
	return completion{}
}

// currentStatement returns the statement at the end of a text.
func currentStatement(text string) string {
	s := &statements{pending: []byte(text), lines: 1}
	for s.at < len(s.pending) {
		s.step()
	}
	if s.shape == shapeNone {
		return ""
	}
	return string(s.pending[s.start:])
}

// lastWord returns the last word of a command's arguments, its opening quote, and
// whether it is the first.
func lastWord(rest string) (token, quote string, first bool) {
	n := 0
	for {
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		if rest == "" {
			return "", "", n == 0
		}
		if q := rest[0]; q == '\'' || q == '"' {
			end := strings.IndexByte(rest[1:], q)
			if end < 0 {
				return rest[1:], string(q), n == 0
			}
			rest = rest[end+2:]
		} else {
			end := strings.IndexFunc(rest, unicode.IsSpace)
			if end < 0 {
				return rest, "", n == 0
			}
			rest = rest[end:]
		}
		n++
	}
}

// choose completes a token up to the longest common prefix of the candidates that begin
// with it. Case is ignored, and replaced by that of the candidate. If the token begins
// with a quote, so does the result.
func choose(token, quote string, all []candidate) completion {
	var fits []candidate
	for _, c := range all {
		if c.fits(token) {
			fits = append(fits, c)
		}
	}
	if len(fits) == 0 {
		return completion{}
	}
	common := fits[0].text
	for _, c := range fits[1:] {
		common = commonPrefix(common, c.text)
	}
	done := completion{replace: len(quote) + len(token), insert: common}
	switch {
	case len(fits) == 1:
		if fits[0].ends {
			done.insert += " "
		}
		return done
	case len(common) > len(quote)+len(token):
		return done
	}
	var names []string
	for _, c := range fits[:min(len(fits), completionCandidates)] {
		names = append(names, fit(c.text, tableCell))
	}
	shown := completion{candidates: names}
	if len(fits) > completionCandidates {
		shown.more = "… and more\n"
	}
	return shown
}

// hasPrefixFold reports whether s begins with prefix, ignoring case.
func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// commonPrefix returns the common prefix of a and b, ignoring case, in the case of a.
func commonPrefix(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) {
		r, size := utf8.DecodeRuneInString(a[i:])
		if !hasPrefixFold(b[i:], string(r)) {
			break
		}
		i += size
	}
	return a[:i]
}

// plain converts words to candidates.
func plain(all []string, ends bool) []candidate {
	out := make([]candidate, len(all))
	for i, w := range all {
		out[i] = candidate{text: w, ends: ends}
	}
	return out
}

// quoted adds quotes to words of commands: the one that the user has typed, or where a
// word needs them.
func quoted(all []candidate, quote string) []candidate {
	for i, c := range all {
		q := quote
		if q == "" && (strings.IndexAny(c.text, `'"`) == 0 || strings.ContainsFunc(c.text, func(r rune) bool { return unicode.IsSpace(r) || r == ';' })) {
			q = "'"
		}
		if q == "" {
			continue
		}
		all[i].text, all[i].name = q+strings.ReplaceAll(c.text, q, q+q), c.text
		if c.ends {
			all[i].text += q
		}
	}
	return all
}

// idCandidates returns the IDs that begin with a prefix. IDs with a separator after the
// prefix are cut there, like paths at a directory. Each candidate costs one seek.
func (s *shell) idCandidates(ctx context.Context, prefix string) []candidate {
	separator := s.app.options.Separator
	if separator == "" {
		separator = "/"
	}
	hides := !(&listCommand{Prefix: prefix}).asksForSystem() && prefix != ""
	var all []candidate
	after := ""
	for len(all) <= completionCandidates {
		id := ""
		for doc, err := range s.db.Documents(ctx, jay.Scan{Prefix: prefix, After: after, Limit: 1}) {
			if err != nil {
				return all
			}
			if after = doc.ID(); !hides || !isSystem(doc) {
				id = after
			}
		}
		if id == "" {
			return all
		}
		c := candidate{text: id, ends: true}
		if len(id) >= len(prefix) {
			if i := strings.Index(id[len(prefix):], separator); i >= 0 && len(prefix)+i+len(separator) < len(id) {
				c = candidate{text: id[:len(prefix)+i+len(separator)]}
				after = c.text + string(unicode.MaxRune)
			}
		}
		all = append(all, c)
	}
	return all
}

// collectionCandidates returns the names of all collections but @hilo.
func (s *shell) collectionCandidates(ctx context.Context) []candidate {
	all, err := s.db.Collections(ctx)
	if err != nil {
		return nil
	}
	var out []candidate
	for _, c := range all {
		if c.Name != "@hilo" {
			out = append(out, candidate{text: c.Name, ends: true})
		}
	}
	return out
}

var (
	queryHead  = regexp.MustCompile(`(?is)^(?:explain\s+)?from\s+('(?:[^']|'')*'?|"(?:[^"]|"")*"?|[^\s]*)(\s+(?:as\s+)?([\pL_][\pL\pN_]*)\s)?`)
	queryStart = regexp.MustCompile(`(?is)^explain\s+(\pL*)$`)
	queryToken = regexp.MustCompile(`[\pL\pN_@.$\[\]]*$`)
	idText     = regexp.MustCompile(`(?is)id\(\)\s*(?:=|==|!=|<|>|<=|>=|in\s*\([^)]*)\s*(['"])([^'"]*)$`)
)

// queryWords are the keywords and functions of a query after its collection.
var queryWords = []string{
	"all in (", "and", "as", "between", "boost(", "complete(", "contains(", "count()", "desc", "distinct", "elemMatch(", "endsWith(", "exact(", "exists(", "explanations()", "false", "fuzzy(", "group by", "highlight(", "id()",
	"in (", "include", "limit", "lucene(", "moreLikeThis(", "not", "null", "offset", "or", "order by", "proximity(", "rank.fuse(", "regex(", "score()", "search(", "select", "size(", "spatial.circle(", "spatial.contains(", "spatial.disjoint(", "spatial.distance(", "spatial.intersects(", "spatial.point(", "spatial.within(", "spatial.wkt(", "startsWith(", "suggest(", "sum(", "true", "type(", "update {", "use index", "use no index", "vector.distance(", "vector.search(", "where",
}

// completeQuery completes a query.
func (s *shell) completeQuery(ctx context.Context, text string) completion {
	if m := queryStart.FindStringSubmatch(text); m != nil && firstWord(text) == "explain" {
		return choose(m[1], "", plain([]string{"from"}, true))
	}
	head := queryHead.FindStringSubmatch(text)
	if head == nil {
		return completion{}
	}
	name := head[1]
	if len(head[0]) == len(text) && head[2] == "" && (name == "" || !startsWithSpace(text[len(text)-1:])) { // the collection is being typed
		quote := ""
		if name != "" && (name[0] == '\'' || name[0] == '"') {
			quote, name = name[:1], name[1:]
		}
		return choose(name, quote, queryNames(append(s.collectionCandidates(ctx), candidate{text: "@all_docs", ends: true}), quote))
	}
	if m := idText.FindStringSubmatch(text); m != nil {
		return choose(m[2], m[1], queryTexts(s.idCandidates(ctx, m[2]), m[1]))
	}
	if openText(text) {
		return completion{}
	}
	token := queryToken.FindString(text)
	if strings.HasPrefix(token, "$") {
		var names []candidate
		for name := range s.params {
			names = append(names, candidate{text: "$" + name, ends: true})
		}
		slices.SortFunc(names, func(a, b candidate) int { return strings.Compare(a.text, b.text) })
		return choose(token, "", names)
	}
	if alias := head[3]; alias != "" && !slices.Contains(queryWords, strings.ToLower(alias)) && strings.HasPrefix(token, alias+".") {
		token = token[len(alias)+1:]
	}
	all := plain(s.fields(ctx, strings.Trim(name, `'"`)), false)
	for _, w := range queryWords {
		all = append(all, candidate{text: w, ends: !strings.HasSuffix(w, "(")})
	}
	return choose(token, "", all)
}

// openText reports whether a quoted text is unfinished.
func openText(query string) bool {
	quote := rune(0)
	for _, r := range query {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		}
	}
	return quote != 0
}

var queryName = regexp.MustCompile(`^@?[\pL_][\pL\pN_]*$`)

// queryNames quotes names of a query where they need it.
func queryNames(all []candidate, quote string) []candidate {
	for i, c := range all {
		if quote == "" && queryName.MatchString(c.text) {
			continue
		}
		q := quote
		if q == "" {
			q = "'"
		}
		all[i].text, all[i].name = q+strings.ReplaceAll(strings.ReplaceAll(c.text, `\`, `\\`), q, q+q)+q, c.text
	}
	return all
}

// queryTexts quotes texts of a query.
func queryTexts(all []candidate, quote string) []candidate {
	for i, c := range all {
		all[i].text, all[i].name = quote+strings.ReplaceAll(strings.ReplaceAll(c.text, `\`, `\\`), quote, quote+quote), c.text
		if c.ends {
			all[i].text += quote
		}
	}
	return all
}

// fields returns the fields of the indexes of a collection, and those of a few of its
// documents: the first and the last ones.
func (s *shell) fields(ctx context.Context, collection string) []string {
	found := make(map[string]bool)
	if infos, err := s.db.Indexes(ctx, collection); err == nil {
		for _, ix := range infos {
			for _, field := range ix.Fields {
				found[strings.TrimPrefix(field, "-")] = true
			}
		}
	}
	if collection == "@all_docs" {
		collection = ""
	}
	read := 0
	for _, reverse := range []bool{false, true} {
		for doc, err := range s.db.Documents(ctx, jay.Scan{Collection: collection, Reverse: reverse, Limit: completionDocuments}) {
			if err != nil || read > completionBytes || len(found) >= completionFields {
				break
			}
			read += len(doc.Body())
			if len(doc.Body()) <= completionBytes {
				fieldsOf(gjson.ParseBytes(doc.Body()), "", 1, found)
			}
		}
	}
	out := make([]string, 0, len(found))
	for name := range found {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// fieldsOf adds the paths of the members of a value to found. Names that a query would
// have to quote are left out.
func fieldsOf(v gjson.Result, path string, depth int, found map[string]bool) {
	v.ForEach(func(key, value gjson.Result) bool {
		if !queryName.MatchString(key.Str) {
			return true
		}
		full := path + key.Str
		found[full] = true
		if value.IsArray() {
			if first := value.Get("0"); first.IsObject() && depth < completionDepth {
				fieldsOf(first, full+"[].", depth+1, found)
			}
		} else if value.IsObject() && depth < completionDepth {
			fieldsOf(value, full+".", depth+1, found)
		}
		return len(found) < completionFields
	})
}
