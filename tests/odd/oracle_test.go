package odd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fault returns what is wrong with a reply to any request, whatever it asks for.
func (a reply) fault(r request) string {
	switch {
	case a.status == 0:
		return "no status"
	case a.status == http.StatusNotImplemented:
	case a.status == http.StatusServiceUnavailable && a.header.Get("Database-Missing") != "":
	case a.status == http.StatusInsufficientStorage:
	case a.status >= http.StatusInternalServerError:
		return "a status that no request may cause"
	}
	if a.status < http.StatusBadRequest || r.method == http.MethodHead {
		return ""
	}
	if a.status == http.StatusNotFound { // RavenDB's clients read a null, or nothing
		return ""
	}
	var problem struct{ Type, Message, Error string }
	if err := json.Unmarshal([]byte(a.body), &problem); err != nil {
		return "an error that is no JSON: " + err.Error()
	}
	if problem.Type == "" || problem.Message == "" || problem.Error == "" {
		return "an error without Type, Message or Error"
	}
	for _, secret := range []string{".go:", "goroutine ", "runtime error", "panic: "} {
		if strings.Contains(problem.Message, secret) && !strings.Contains(r.path+r.body, secret) {
			return "an error that shows the inside of the server"
		}
	}
	return ""
}

// volatile are members of metadata that differ between databases with the same documents.
var volatile = regexp.MustCompile(`"@(change-vector|last-modified|flags)":"[^"]*",?|"(changeVector|lastModified|elapsedNs|etag)":("[^"]*"|[0-9]+),?`)

// stable leaves out what differs between databases with the same documents.
func stable(text string) string {
	return strings.ReplaceAll(volatile.ReplaceAllString(text, ""), ",}", "}")
}

// answers are what a query finds, in a form that two databases can be compared by.
type answers struct {
	status int
	kind   string   // of an error
	rows   []string // in the order in which they came
	rest   []string // what is said of all rows, such as their number
	beside []string // the included documents
	note   string   // an error's message, which is shown and not compared
}

// compare returns how two answers to a query differ, or "".
func compare(q *rql, a, b answers) string {
	switch {
	case q.needsIndex():
		return ""
	case a.status != b.status || a.kind != b.kind:
		return "the status differs"
	case a.status >= http.StatusBadRequest:
		return ""
	case len(a.rows) != len(b.rows):
		return "the number of answers differs"
	case !slices.Equal(a.rest, b.rest):
		return "what is said of all answers differs"
	case (q.ordered() || q.whole() && !q.distinct) && !slices.Equal(a.beside, b.beside): // of documents with one distinct row, any brings what it includes
		return "the included documents differ"
	case q.ordered():
		if !slices.Equal(a.rows, b.rows) {
			return "the answers, or their order, differ"
		}
	case q.whole() && q.distinct:
		// Of rows that are equal the first one comes, and which one is first is not decided.
		if !slices.Equal(sorted(alike(a.rows)), sorted(alike(b.rows))) {
			return "the distinct answers differ"
		}
	case q.whole():
		if !slices.Equal(sorted(a.rows), sorted(b.rows)) {
			return "the answers differ"
		}
	}
	return ""
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// alike returns rows in which equal values are written in one way.
func alike(rows []string) []string {
	list := make([]string, len(rows))
	for i, row := range rows {
		decoder := json.NewDecoder(strings.NewReader(row))
		decoder.UseNumber()
		var v any
		if err := decoder.Decode(&v); err != nil {
			panic(err) // the reply was decoded
		}
		text, err := json.Marshal(evenly(v))
		if err != nil {
			panic(err)
		}
		list[i] = string(text)
	}
	return list
}

// evenly writes the numbers of a value in one way.
func evenly(v any) any {
	switch v := v.(type) {
	case json.Number:
		return evenNumber(string(v))
	case []any:
		for i := range v {
			v[i] = evenly(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = evenly(v[name])
		}
	}
	return v
}

// evenNumber writes a number as its digits without zeros at the ends, and an exponent.
func evenNumber(text string) string {
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	digits, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	n, _ := strconv.ParseInt(exponent, 10, 64)
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	n -= int64(len(fraction))
	short := strings.TrimRight(digits, "0")
	n += int64(len(digits) - len(short))
	if short == "" {
		return "number 0"
	}
	return fmt.Sprintf("number %s%se%d", sign, short, n)
}
