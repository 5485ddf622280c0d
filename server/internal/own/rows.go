package own

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// This file has documents as rows of a table, for a list that shows some fields of
// millions of documents. A row takes only a small part of a large document. A value is the
// text of its JSON, so that no reader changes a digit.

// rowRoutes has the endpoint of rows.
var rowRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/rows", Run: getRows, Timed: true, Takes: "after at collection column* from order pageSize reverse startsWith"},
}

// Bounds of a page of rows.
const (
	maxColumns      = 32
	maxRowFields    = 100 // whose names are collected
	maxFieldName    = 256 // bytes; longer ones are not collected
	maxValueBytes   = 256 // bytes of a value's text
	maxPreviewBytes = 512 // bytes of the text of a whole document
	firstColumns    = 6   // number of columns if the request names none
)

// previewColumn is the beginning of the whole document.
const previewColumn = "@preview"

// cutMark ends a text that was cut. No JSON ends so.
const cutMark = "…"

// row is a document in a table.
type row struct {
	ID           string    `json:"id"`
	Cursor       string    `json:"cursor,omitempty"` // value for after and from, if it is not the ID
	Collection   string    `json:"collection"`
	ChangeVector string    `json:"changeVector"`
	LastModified string    `json:"lastModified"`
	Bytes        int       `json:"bytes"`
	Values       []*string `json:"values"` // of the columns: the text of the JSON; nil if the document has no such field
}

// getRows replies with a page of documents as rows, in the order of IDs or in reverse. The
// page begins after the ID after, at the ID from (or its place, if there is no such
// document), or at about a fraction of all, as in at=0.5. With order=newest documents come
// in the order of their last writes, the newest first, and cursors take the place of IDs.
func getRows(c *serve.Call) error {
	scan, size, err := pageScan(c)
	if err != nil {
		return err
	}
	columns := c.Params.All("column")
	if len(columns) > maxColumns {
		return serve.BadRequest("a page has at most %d columns, not %d", maxColumns, len(columns))
	}
	from, at := c.Params.Get("from"), c.Params.Get("at")
	if scan.After != "" && from != "" || scan.After != "" && at != "" || from != "" && at != "" {
		return serve.BadRequest("after, from and at exclude one another")
	}
	var where float64
	if at != "" {
		if where, err = strconv.ParseFloat(at, 64); err != nil || !(where >= 0 && where <= 1) {
			return serve.BadRequest("at must be between 0 and 1, not %.100q", at)
		}
	}
	ctx := c.Reading(c.Ctx, 2)
	order := cmp.Or(c.Params.Get("order"), "id")
	if order != "id" && order != "newest" {
		return serve.BadRequest("order must be id or newest, not %.100q", order)
	}
	var page documentPage
	reply := make(map[string]any)
	err = c.DB.View(c.Ctx, func(tx *jay.Tx) error {
		if order == "newest" {
			list := newestList{ctx: ctx, tx: tx, scan: scan}
			about, err := list.page(&page, from, at != "", where, size)
			if about >= 0 {
				reply["about"] = about
			}
			return err
		}
		places := idPlaces{ctx: c.Ctx, tx: tx, scan: scan, exact: c.Server.Options.Database.CaseSensitive}
		if at != "" {
			if from, err = places.at(where); err != nil {
				return err
			}
		}
		if from != "" {
			scan.After = from
			if page, err = placed(ctx, tx, scan, from); err != nil {
				return err
			}
		}
		if err := page.read(tx.Documents(c.Ctx, scan), size, c); err != nil {
			return err
		}
		if from != "" && len(page.docs) > 0 {
			about, err := places.of(page.docs[0].ID())
			if err != nil {
				return err
			}
			reply["about"] = about
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.Take(2 * pageBytes); err != nil { // the most that the reply takes
		return err
	}
	fields, members, err := fieldsOf(page.docs)
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		columns = someColumns(fields, members)
	}
	rows, sum, n := make([]row, 0, len(page.docs)), 0, 0
	for i, doc := range page.docs {
		r := row{ID: doc.ID(), Collection: doc.Collection(), ChangeVector: doc.ChangeVector(), LastModified: doc.Metadata().LastModified.UTC().Format(serve.RavenTime), Bytes: len(doc.Body())}
		if order == "newest" {
			r.Cursor = strconv.FormatUint(doc.Metadata().Etag, 10)
		}
		if r.Values, n, err = valuesOf(doc, columns, members[i]); err != nil {
			return err
		}
		if sum += n + len(r.ID); sum > pageBytes && i > 0 {
			page.more = true
			break
		}
		rows = append(rows, r)
	}
	reply["fields"], reply["columns"], reply["rows"] = fields, columns, rows
	if page.more {
		last := rows[len(rows)-1]
		reply["next"] = cmp.Or(last.Cursor, last.ID)
	}
	return c.JSON(http.StatusOK, reply)
}

// pageScan parses which documents a page has, and their greatest number. The scan has one
// more, to show whether another page follows.
func pageScan(c *serve.Call) (scan jay.Scan, size int, err error) {
	if size, err = c.Params.Count("pageSize", defaultPageSize); err == nil {
		err = checkPageSize(size)
	}
	if err != nil {
		return scan, 0, err
	}
	scan = jay.Scan{Collection: c.Params.Get("collection"), Prefix: c.Params.Get("startsWith"), After: c.Params.Get("after"), Limit: size + 1}
	scan.Reverse, err = c.Params.Flag("reverse")
	return scan, size, err
}

// documentPage is a page of documents, which ends early with pageBytes.
type documentPage struct {
	docs []*jay.Document
	sum  int
	more bool
}

// read adds documents up to size, for which the call pays twice: as read, and in the reply.
func (p *documentPage) read(all iter.Seq2[*jay.Document, error], size int, c *serve.Call) error {
	for doc, err := range all {
		if err != nil {
			return err
		}
		if len(p.docs) == size || p.sum > pageBytes {
			p.more = true
			return nil
		}
		if err := c.Take(2 * int64(len(doc.Body()))); err != nil {
			return err
		}
		p.docs, p.sum = append(p.docs, doc), p.sum+len(doc.Body())
	}
	return nil
}

// placed returns a page that begins with the document of an ID, if the scan has it.
func placed(ctx context.Context, tx *jay.Tx, scan jay.Scan, id string) (page documentPage, err error) {
	one := jay.Scan{Collection: scan.Collection, Prefix: id, Limit: 1}
	for doc, err := range tx.Documents(ctx, one) {
		if err != nil {
			return page, err
		}
		if strings.EqualFold(doc.ID(), id) && hasPrefixFold(id, scan.Prefix) {
			page.docs, page.sum = append(page.docs, doc), len(doc.Body())
		}
	}
	return page, nil
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// newestList is a scan in the order of the last writes, from the newest to the oldest. Its
// cursors are etags.
type newestList struct {
	ctx  context.Context
	tx   *jay.Tx
	scan jay.Scan
}

const etagField = "@metadata.@etag"

// query returns the query of the list, or with reverse of the reversed list.
func (l *newestList) query(reverse bool, bounds ...jay.Condition) jay.Query[jay.Document] {
	q := l.tx.Query(l.scan.Collection).Where(bounds...)
	if reverse {
		return q.OrderBy(etagField)
	}
	return q.OrderBy("-" + etagField)
}

// page reads a page after scan.After, at a cursor, or at about a fraction of all. about is
// the fraction of all documents before the page, estimated by etags; negative if it was
// not requested.
func (l *newestList) page(page *documentPage, from string, atPart bool, where float64, size int) (about float64, err error) {
	if l.scan.Prefix != "" {
		return -1, serve.BadRequest("order=newest and startsWith exclude one another")
	}
	var newest, oldest int64
	if from != "" || atPart {
		if newest, err = l.end(false); err == nil {
			oldest, err = l.end(true)
		}
		if err != nil {
			return -1, err
		}
	}
	q := l.query(l.scan.Reverse)
	switch {
	case atPart:
		from = strconv.FormatInt(newest-int64(where*float64(newest-oldest)), 10)
		fallthrough
	case from != "":
		etag, err := etagOf(from)
		if err != nil {
			return -1, err
		}
		if l.scan.Reverse {
			q = q.Where(jay.Ge(etagField, etag))
		} else {
			q = q.Where(jay.Le(etagField, etag))
		}
	case l.scan.After != "":
		etag, err := etagOf(l.scan.After)
		if err != nil {
			return -1, err
		}
		if l.scan.Reverse {
			q = q.Where(jay.Gt(etagField, etag))
		} else {
			q = q.Where(jay.Lt(etagField, etag))
		}
	}
	found, err := q.Limit(size).PageBytes(pageBytes).Page(l.ctx)
	if err != nil {
		return -1, err
	}
	page.docs, page.more = found.Items, found.Next != ""
	if from == "" || len(page.docs) == 0 {
		return -1, nil
	}
	return float64(newest-int64(page.docs[0].Metadata().Etag)) / float64(max(1, newest-oldest)), nil
}

// end returns the newest or the oldest etag; 0 if there are none.
func (l *newestList) end(oldest bool) (int64, error) {
	doc, err := l.query(oldest).First(l.ctx)
	if errors.Is(err, jay.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int64(doc.Metadata().Etag), nil
}

func etagOf(cursor string) (int64, error) {
	etag, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || etag < 0 {
		return 0, serve.BadRequest("%.100q is no cursor of order=newest", cursor)
	}
	return etag, nil
}

// fieldsOf returns the names of the fields of some documents in the order in which they
// are first seen, and the texts of the fields of each document.
func fieldsOf(all []*jay.Document) (names []string, members []map[string][]byte, err error) {
	names, seen := []string{}, make(map[string]bool)
	for _, doc := range all {
		texts := make(map[string][]byte)
		err := serve.EachMember(doc.Body(), func(written, value []byte) error {
			if len(written) > maxFieldName {
				return nil
			}
			name := string(written)
			if strings.Contains(name, `\`) {
				if err := json.Unmarshal([]byte(`"`+name+`"`), &name); err != nil {
					return err
				}
			}
			texts[name] = value
			if !seen[name] && len(names) < maxRowFields {
				seen[name] = true
				names = append(names, name)
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		members = append(members, texts)
	}
	return names, members, nil
}

// someColumns chooses the first fields that are neither objects nor arrays, or the
// beginning of the document if there are none.
func someColumns(fields []string, members []map[string][]byte) []string {
	columns := []string{}
	for _, name := range fields {
		simple := slices.ContainsFunc(members, func(texts map[string][]byte) bool {
			value := texts[name]
			return len(value) > 0 && value[0] != '{' && value[0] != '['
		})
		if simple && len(columns) < firstColumns {
			columns = append(columns, name)
		}
	}
	if len(columns) == 0 {
		return []string{previewColumn}
	}
	return columns
}

// valuesOf returns the texts of the columns, which are field names or paths such as
// Address.City, and their number of bytes.
func valuesOf(doc *jay.Document, columns []string, members map[string][]byte) (values []*string, n int, err error) {
	values = make([]*string, len(columns))
	for i, name := range columns {
		text, found := members[name]
		most := maxValueBytes
		switch {
		case name == previewColumn:
			text, found, most = doc.Body(), true, maxPreviewBytes
		case !found && strings.ContainsAny(name, ".["):
			if text, found, err = doc.Path(name); err != nil {
				return nil, 0, serve.BadRequest("the column %.100q is no field and no path: %v", name, err)
			}
		}
		if found {
			value := cutText(text, most)
			values[i] = &value
			n += len(value)
		}
	}
	return values, n, nil
}

// cutText returns a text, or the beginning of a long one, with cutMark.
func cutText(text []byte, most int) string {
	text = bytes.TrimSpace(text)
	if len(text) <= most {
		return string(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return string(text[:most]) + cutMark
}

// idPlaces estimates the position of an ID among all IDs of a scan, and the ID at a
// position. There are no counts per range of IDs. So it looks at the characters that
// follow the common prefix of IDs, and estimates the number of IDs under each from one
// path below it. The estimate is good for GUIDs and for numbers of equal length, and may
// be off by a fifth otherwise. It grows with the IDs, and both directions agree. It costs
// some hundred seeks, however many documents there are.
type idPlaces struct {
	ctx   context.Context
	tx    *jay.Tx
	scan  jay.Scan
	exact bool // IDs are case-sensitive
}

// Bounds of an estimate.
const (
	placeLevels   = 4  // depth: characters at which IDs differ
	placeChildren = 64 // different characters at one place
)

func (p *idPlaces) fold(id string) string {
	if p.exact {
		return id
	}
	return strings.ToLower(id)
}

// first returns the first ID, or with reverse the last, that has a prefix and comes after
// an ID; "" if there is none.
func (p *idPlaces) first(prefix, after string, reverse bool) (string, error) {
	for doc, err := range p.tx.Documents(p.ctx, jay.Scan{Collection: p.scan.Collection, Prefix: prefix, After: after, Reverse: reverse, Limit: 1}) {
		if err != nil {
			return "", err
		}
		return p.fold(doc.ID()), nil
	}
	return "", nil
}

// common returns the longest common prefix of all IDs that have a prefix. one reports that
// there is a single ID.
func (p *idPlaces) common(prefix string) (shared string, one bool, err error) {
	least, err := p.first(prefix, "", false)
	if err != nil {
		return "", false, err
	}
	most, err := p.first(prefix, "", true)
	if err != nil {
		return "", false, err
	}
	n := 0
	for n < len(least) && n < len(most) && least[n] == most[n] {
		n++
	}
	for n > 0 && n < len(least) && !utf8.RuneStart(least[n]) {
		n--
	}
	return least[:n], least == most, nil
}

// children returns the characters that follow a prefix, in their order.
func (p *idPlaces) children(prefix string) (all []string, err error) {
	after := prefix // the ID that equals the prefix has no next character
	for len(all) < placeChildren {
		id, err := p.first(prefix, after, false)
		if err != nil {
			return nil, err
		}
		if len(id) <= len(prefix) {
			return all, nil
		}
		_, n := utf8.DecodeRuneInString(id[len(prefix):])
		child := id[len(prefix) : len(prefix)+n]
		all, after = append(all, child), prefix+child+string(utf8.MaxRune)
	}
	return all, nil
}

// weight estimates the number of IDs with a prefix, as if all branches were like the
// middle one.
func (p *idPlaces) weight(prefix string) (float64, error) {
	weight := 1.0
	for range placeLevels {
		shared, one, err := p.common(prefix)
		if err != nil || one {
			return weight, err
		}
		children, err := p.children(shared)
		if err != nil || len(children) == 0 {
			return weight, err
		}
		weight *= float64(len(children))
		prefix = shared + children[len(children)/2]
	}
	return weight, nil
}

// part is a character that follows a prefix, with the fraction of the prefix's IDs before
// it and the fraction that it has.
type part struct {
	text          string
	before, width float64
}

// parts returns the characters that follow a prefix, with their fractions.
func (p *idPlaces) parts(prefix string, weighed bool) ([]part, error) {
	children, err := p.children(prefix)
	if err != nil {
		return nil, err
	}
	parts, sum := make([]part, len(children)), 0.0
	for i, child := range children {
		weight := 1.0
		if weighed {
			if weight, err = p.weight(prefix + child); err != nil {
				return nil, err
			}
		}
		parts[i] = part{child, sum, weight}
		sum += weight
	}
	for i := range parts {
		parts[i].before /= sum
		parts[i].width /= sum
	}
	return parts, nil
}

// walk descends from the common prefix of all IDs. At each place choose selects the next
// part, or ends the walk. It returns the common prefix of the IDs at its end.
func (p *idPlaces) walk(choose func(prefix string, parts []part) (next int, goOn bool)) (prefix string, err error) {
	prefix, one, err := p.common(p.scan.Prefix)
	for level := 0; err == nil && !one && level < placeLevels; level++ {
		var parts []part
		// Only the first level is weighed; below it all parts count alike.
		if parts, err = p.parts(prefix, level == 0); err != nil || len(parts) == 0 {
			break
		}
		next, goOn := choose(prefix, parts)
		if !goOn {
			break
		}
		prefix, one, err = p.common(prefix + parts[next].text)
	}
	return prefix, err
}

// at returns an ID, or a prefix of one, at about a fraction of all.
func (p *idPlaces) at(where float64) (string, error) {
	return p.walk(func(_ string, parts []part) (int, bool) {
		next := len(parts) - 1
		for next > 0 && parts[next].before > where {
			next--
		}
		where = (where - parts[next].before) / parts[next].width
		return next, true
	})
}

// of returns the estimated fraction of all IDs that are before an ID.
func (p *idPlaces) of(id string) (float64, error) {
	id = p.fold(id)
	before, width := 0.0, 1.0
	_, err := p.walk(func(prefix string, parts []part) (int, bool) {
		rest, found := strings.CutPrefix(id, prefix)
		if !found {
			return 0, false
		}
		for i, one := range parts {
			if strings.HasPrefix(rest, one.text) {
				before, width = before+width*one.before, width*one.width
				return i, true
			}
		}
		if rest > parts[len(parts)-1].text { // there are more characters than placeChildren
			before += width
		}
		return 0, false
	})
	return before, err
}
