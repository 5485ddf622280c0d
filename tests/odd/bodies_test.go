package odd_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// bodies make what endpoints expect, by method and path.
var bodies = map[string]func(o *odds) string{
	"PUT {D}/docs":       (*odds).document,
	"POST {J}/documents": (*odds).document,
	"POST {D}/docs":      func(o *odds) string { return `{"Ids":` + o.array(o.quotedID) + `}` },
	"PATCH {D}/docs": func(o *odds) string {
		return fmt.Sprintf(`{"Patch":%s,"PatchIfMissing":%s}`, o.patch(), o.pick("null", o.patch()))
	},
	"PATCH {D}/queries": (*odds).changeByQuery,
	"DELETE {D}/queries": func(o *odds) string {
		return fmt.Sprintf(`{"Query":%q}`, "from Odd where "+o.pick("M = 4", "U = 1", "false", "N = 1e400"))
	},
	"POST {J}/preview": func(o *odds) string {
		return o.pick(`{"query":"from Odd where M > $p update { this.M = args.p }","parameters":{"p":1},"first":2}`, `{"query":"from Odd","delete":true}`, `{"query":"from Odd update { `+strings.ReplaceAll(strings.ReplaceAll(o.script(), `"`, `'`), `\`, ``)+` }","first":100}`)
	},
	"POST {D}/bulk_docs": func(o *odds) string {
		return `{"Commands":` + o.array(o.command) + o.pick("", "", "", `,"TransactionMode":"ClusterWide"`) + `}`
	},
	"POST {D}/bulk_insert":     func(o *odds) string { return o.array(o.inserted) },
	"POST {D}/multi_get":       func(o *odds) string { return `{"Requests":` + o.array(o.one) + `}` },
	"POST {D}/queries":         func(o *odds) string { return o.options(o.garbled().body()) },
	"POST {D}/streams/queries": func(o *odds) string { return o.garbled().body() },
	"POST {J}/query": func(o *odds) string {
		return o.query().ownBody(o.pick("", `,"pageSize":1`, `,"pageSize":0`, `,"after":"x"`))
	},
	"POST {J}/explain": func(o *odds) string { return o.garbled().ownBody("") },
	"POST {J}/export": func(o *odds) string {
		return o.query().ownBody(`,"format":` + o.pick(`"csv"`, `"ndjson"`, `"x"`) + o.pick("", `,"exact":true`))
	},
	"PUT {D}/cmpxchg":       func(o *odds) string { return `{"Object":` + o.value(2) + `}` },
	"PUT {D}/indexes":       (*odds).definition,
	"PUT {D}/admin/indexes": (*odds).definition,
	"POST {D}/indexes/has-changed": func(o *odds) string {
		return `{"Name":"Odd/Computed","Maps":["from d in docs.Odd select new { d.B }"]}`
	},
	"POST {D}/indexes/set-lock": func(o *odds) string {
		return `{"IndexNames":["Odd/Computed"],"Mode":` + o.pick(`"Unlock"`, `"LockedIgnore"`, `"LockedError"`, `"x"`) + `}`
	},
	"POST {D}/indexes/set-priority": func(o *odds) string {
		return `{"IndexNames":["Odd/Fan"],"Priority":` + o.pick(`"Normal"`, `"High"`, `"x"`) + `}`
	},
	"PUT {J}/indexes": func(o *odds) string {
		return `{"collection":` + o.pick(`"Odd"`, `"Even"`, `"Nothing"`) + `,"index":` + o.pick(declared...) + o.pick("", `,"replace":true`) + `}`
	},
	"PUT {J}/indexes/computed":          func(o *odds) string { return o.computed(o.pick("", `,"replace":true`)) },
	"POST {J}/indexes/computed/preview": func(o *odds) string { return o.computed(o.pick("", `,"ids":["odd/1","odd/2"]`)) },
	"PUT {J}/schemas/rule":              func(o *odds) string { return o.value(2) },
	"POST {J}/schemas/check":            func(o *odds) string { return o.pick("", `{"required":["A"]}`, o.value(2)) },
	"POST {J}/schemas/validate":         (*odds).document,
	"POST {J}/counters": func(o *odds) string {
		return `{"hilo":{"odd":` + o.usual(15, "1", "64", "100") + `},"identities":{"odd|":` + o.usual(15, "1", "64", "100") + `}}`
	},
	"POST {J}/import": (*odds).imported,
	"POST {J}/collections/rename": func(o *odds) string {
		return `{"from":` + o.pick(`"Even"`, `"Nothing"`, `"Odd"`, `"@empty"`) + `,"to":` + o.pick(`"Even2"`, `"Even"`, `"@x"`, `""`) + `}`
	},
	"POST {J}/follow": func(o *odds) string { return o.scalar() },
	"PUT /admin/databases": func(o *odds) string {
		return `{"DatabaseName":` + o.pick(`"wild"`, `"other"`, `"../x"`, `""`) + `,"Settings":{},"Encrypted":false}`
	},
	"DELETE /admin/databases": func(o *odds) string {
		return `{"DatabaseNames":[` + o.pick(`"other"`, `"none"`, `""`, `null`) + `],"HardDelete":true}`
	},
	"POST /admin/compact": func(o *odds) string {
		return `{"DatabaseName":` + o.pick(`"wild"`, `"other"`, `"none"`) + `,"Documents":true}`
	},
	"POST /jay/v1/tokens":  func(o *odds) string { return `{"name":"ann","rights":{"wild":"write"}}` },
	"POST /jay/v1/session": func(o *odds) string { return `{"token":` + o.scalar() + `}` },
	"PUT {D}/admin/configuration/client": func(o *odds) string {
		return `{"Etag":0,"Disabled":` + o.pick("true", "false") + `,"MaxNumberOfRequestsPerSession":` + o.usual(15, "1", "100", "null") + `}`
	},
	"PUT {D}/attachments": func(o *odds) string { return o.scalar() },
	"POST {D}/attachments": func(o *odds) string {
		return o.pick(`{"Type":"Document"}`, `{"Type":"Revision","ChangeVector":"x"}`, `{}`)
	},
	"POST {D}/attachments/bulk": func(o *odds) string {
		return `{"Attachments":` + o.array(func() string { return `{"DocumentId":` + o.quotedID() + `,"Name":"note.txt"}` }) + `}`
	},
	"POST {D}/admin/revisions/config": func(o *odds) string {
		return `{"Default":null,"Collections":{"Odd":{"MinimumRevisionsToKeep":` + o.usual(15, "1", "2", "0", "null") + `,"MinimumRevisionAgeToKeep":` + o.pick(`"14.00:00:00"`, `"x"`, `null`) + `}}}`
	},
	"POST {D}/admin/revisions/config/enforce": func(o *odds) string { return o.pick(`{}`, ``, `{"IncludeForceCreated":true}`) },
	"POST {D}/admin/revisions/delete":         func(o *odds) string { return `{"DocumentIds":` + o.array(o.quotedID) + `}` },
	"POST {D}/revisions/revert/docs": func(o *odds) string {
		return `{"IdToChangeVector":{` + o.quotedID() + `:` + o.pick(`"A:1-x"`, `null`, `""`) + `}}`
	},
	"POST {D}/admin/expiration/config": func(o *odds) string {
		return `{"Disabled":false,"DeleteFrequencyInSec":` + o.usual(15, "1", "60", "null") + `}`
	},
	"POST {D}/admin/refresh/config": func(o *odds) string {
		return `{"Disabled":false,"RefreshFrequencyInSec":` + o.usual(15, "1", "60", "null") + `}`
	},
}

func (o *odds) quotedID() string { return `"` + o.id() + `"` }

func (o *odds) patch() string {
	return fmt.Sprintf(`{"Script":%s,"Values":{"x":%s}}`, quoted(o.script()), o.value(1))
}

func (o *odds) changeByQuery() string {
	q := o.query()
	text := fmt.Sprintf("%s where M = 3 update { %s }", o.pick("from Odd", "from Odd as d", "from Even", "from index 'Odd/Computed'"), o.script())
	if len(q.where) > 0 && o.chance(50) {
		text = fmt.Sprintf("from Odd as d where %s update { %s }", q.where[0], o.pick("d.M = 1", "this.N = 0", "throw 1"))
	}
	return fmt.Sprintf(`{"Query":{"Query":%s,"QueryParameters":%s}}`, quoted(text), q.parameters())
}

// quoted is text in JSON.
func quoted(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // it is text
	}
	return string(quoted)
}

// command makes a command of a batch.
func (o *odds) command() string {
	vector := o.pick("null", "null", `""`, `"A:1-x"`, "1")
	switch o.IntN(9) {
	case 0, 1, 2:
		return fmt.Sprintf(`{"Type":"PUT","Id":%s,"ChangeVector":%s,"Document":%s}`, o.quotedID(), vector, o.document())
	case 3:
		return fmt.Sprintf(`{"Type":"DELETE","Id":%s,"ChangeVector":%s}`, o.quotedID(), vector)
	case 4:
		return fmt.Sprintf(`{"Type":"PATCH","Id":%s,"ChangeVector":%s,"Patch":%s}`, o.quotedID(), vector, o.patch())
	case 5:
		return fmt.Sprintf(`{"Type":"BatchPATCH","Ids":[{"Id":%s}],"Patch":%s}`, o.quotedID(), o.patch())
	case 6:
		return fmt.Sprintf(`{"Type":"ForceRevisionCreation","Id":%s,"ChangeVector":%s}`, o.quotedID(), vector)
	case 7:
		return fmt.Sprintf(`{"Type":%s,"Id":%s,"Name":"note.txt","DestinationId":%s,"DestinationName":"b","ChangeVector":%s}`, o.pick(`"AttachmentCOPY"`, `"AttachmentMOVE"`, `"AttachmentDELETE"`, `"AttachmentPUT"`), o.quotedID(), o.quotedID(), vector)
	default:
		return fmt.Sprintf(`{"Type":%s,"Id":%s}`, o.pick(`"Counters"`, `"TimeSeries"`, `"JsonPatch"`, `null`, `1`, `""`), o.quotedID())
	}
}

// parts makes the body of a batch with contents of attachments, and its type.
func (o *odds) parts() (body, kind string) {
	list := []string{`{"Commands":` + o.array(func() string {
		if o.chance(50) {
			return fmt.Sprintf(`{"Type":"AttachmentPUT","Id":%s,"Name":%s,"ContentType":"x/y","ChangeVector":null}`, o.quotedID(), o.pick(`"note.txt"`, `"b"`, `""`))
		}
		return o.command()
	}) + `}`}
	for range o.IntN(4) {
		list = append(list, o.pick("", "content", "\x00", "--x", strings.Repeat("y", 70_000)))
	}
	var b strings.Builder
	for i, part := range list {
		b.WriteString("--xyz\r\n" + o.pick("", "Content-Type: text/plain\r\n", "Command-Type: AttachmentStream\r\n") + "\r\n")
		if i == 0 {
			part = o.spoil(part)
		}
		b.WriteString(part + "\r\n")
	}
	if o.chance(90) {
		b.WriteString("--xyz--\r\n")
	}
	return b.String(), o.pick("multipart/form-data; boundary=xyz", "multipart/mixed; boundary=xyz")
}

// inserted makes an element of a bulk insert.
func (o *odds) inserted() string {
	switch o.IntN(6) {
	case 0:
		return `{"Type":"HeartBeat"}`
	case 1:
		if o.chance(30) {
			return o.value(2)
		}
		content := o.pick("", "x", "],[", `{"a":1}`, "\x00\xff")
		return fmt.Sprintf(`{"Id":%s,"Type":"AttachmentPUT","Name":%s,"ContentType":"text/plain","ContentLength":%s}%s`, o.quotedID(), o.pick(`"note.txt"`, `"b"`, `""`, "null"), o.pick(fmt.Sprint(len(content)), fmt.Sprint(len(content)), "100", "-1", "1e3"), content)
	default:
		return fmt.Sprintf(`{"Id":%s,"Type":"PUT","Document":%s}`, o.quotedID(), o.document())
	}
}

// one makes a request of several.
func (o *odds) one() string {
	switch o.IntN(6) {
	case 0:
		return `{"Url":"/databases/wild/docs","Query":"?id=odd/1&include=` + escaped(o.pick(usualValues["include"]...)) + `"}`
	case 1:
		return fmt.Sprintf(`{"Url":"/databases/wild/queries","Query":"","Method":"POST","Content":%s}`, o.query().body())
	case 2:
		return `{"Url":"/databases/wild/` + o.pick("cmpxchg", "stats", "collections/stats", "revisions", "docs", "queries", "none", "multi_get", "bulk_docs") + `","Query":"?` + o.pick("id=odd/1", "key=k", "query=from%20Odd", "startsWith=o", "%", "") + `","Headers":{"If-None-Match":"x"}}`
	case 3:
		return o.value(2)
	default:
		return fmt.Sprintf(`{"Url":%s,"Query":%s,"Method":%s,"Content":%s}`, o.pick(`"/docs"`, `"/databases/wild/docs"`, `"/databases/none/docs"`, `null`), o.pick(`"?id=odd/2"`, `null`, `"?&id=odd/1&id=odd/2"`), o.pick(`"GET"`, `"POST"`, `"DELETE"`, `null`), o.pick(`null`, `{"Ids":["odd/1"]}`, `"x"`))
	}
}

// garbled makes a query, half of them with words that are left out, doubled, or in another place.
func (o *odds) garbled() *rql {
	q := o.query()
	if o.chance(50) {
		return q
	}
	words := strings.Split(q.text(), " ")
	for range 1 + o.IntN(2) {
		i, j := o.IntN(len(words)), o.IntN(len(words))
		switch o.IntN(4) {
		case 0:
			words[i] = ""
		case 1:
			words[i] += " " + words[j]
		case 2:
			words[i], words[j] = words[j], words[i]
		default:
			words[i] = o.pick("select", "where", "*", "as", "limit 1", "null", "count()", "key()", "score()", "id()", "$p1", "[]", "(", ")", ",", "''", "-1", "o", "@metadata", "@metadata.@etag", "each", "distinct", "update { }", "load A as b", "include B", "order by", "desc", "@all_docs", "index", "and not", "1e400", "//", "/*")
		}
	}
	return &rql{from: strings.Join(words, " "), values: q.values}
}

// options adds members to the body of a query.
func (o *odds) options(body string) string {
	return strings.TrimSuffix(body, "}") + o.pick("", "", `,"Start":1,"PageSize":2`, `,"PageSize":0`, `,"Start":-1`, `,"WaitForNonStaleResults":true`, `,"SkipDuplicateChecking":true`, `,"ProjectionBehavior":"FromIndex"`, `,"Start":1e400`) + "}"
}

// definition makes a definition in the form of RavenDB's clients.
func (o *odds) definition() string {
	if o.chance(50) {
		d := definitions[o.IntN(len(definitions))]
		return fmt.Sprintf(`{"Indexes":[{"Name":%q,"Maps":[%s]%s}]}`, o.pick(d.name, "Odd/New"), d.maps, d.rest)
	}
	expression := o.pick("d.A.B.C", "d.A / d.N", "d.Tags.Count", "d.Lines.Select(l => l.P)", "d.N > 1 && d.M < 2", "d[\"x.y\"]", "LoadDocument(d.Ref, \"Odd\").A", "d.T.Substring(1, 2)", "d.At.Year", "CreateSpatialField(d.Lat, d.Lng)", "CreateVector(d.V)", "(int) d.N", "d.A ?? d.B", "d.A +", "", "CreateField(d.B, d.N)", "d.Lines.Any(l => l.P == 1)", "\"\"", "1e400", "-d.N")
	text := fmt.Sprintf("from d in docs.%s select new { X = %s }", o.pick("Odd", "Even", "Odd", ""), expression)
	return fmt.Sprintf(`{"Indexes":[{"Name":"Odd/%d","Maps":[%q]%s}]}`, o.IntN(6), text, o.pick("", `,"Fields":{"X":{"Indexing":"Search"}}`, `,"Fields":{"X":{"Indexing":"Exact","Storage":"Yes"}}`, `,"Fields":{"X":{"Analyzer":"NGramAnalyzer"}}`, `,"Reduce":"from r in results group r by r.X into g select new { X = g.Key }"`, `,"Fields":{"X":{"Suggestions":true}}`, `,"LockMode":"LockedError"`))
}

// computed makes the declaration of a computed index.
func (o *odds) computed(more string) string {
	n := -1
	members := o.array(func() string {
		n++
		return fmt.Sprintf(`{"name":"C%d","expression":%q}`, n, o.pick(append(expressions, "B", "N", "1")...))
	})
	reduce := o.pick("", "", `,"reduce":{"groupBy":["C0"],"select":[{"name":"C0"},{"name":"N","expression":"`+o.pick("count()", "sum(C1)", "min(C1)", "list(distinct C1)", "first(C1 order by C2)", "sum(C1) / count()")+`"}]}`)
	each := o.pick("", "", `,"each":"Lines","as":"line"`, `,"each":"Tags","as":"x"`, `,"where":"M > 1"`)
	return fmt.Sprintf(`{"index":{"name":"Own/%d","maps":[{"collection":%s,"select":%s%s}]%s}%s}`, o.IntN(5), o.pick(`"Odd"`, `"Even"`, `""`, `"@all_docs"`), members, each, reduce, more)
}

// imported makes a file of some format.
func (o *odds) imported() string {
	switch o.IntN(6) {
	case 0:
		return o.pick("@id,@collection,A,N:number\nodd/1,Odd,a,1\nodd/2,Odd,\"x\"\"y\",1.0\n", "A;B\n1;2\n3\n", "A,A\n1,2\n", "\xef\xbb\xbfA\n\"", "@id\n\n", "A,,B\n1,2,3\n", "A.B,A\n1,2\n", "A[],A[0]\n1,2\n")
	case 1:
		return `{"BuildVersion":54000,"Docs":` + o.array(o.document) + o.pick("", `,"CompareExchange":[{"Key":"k","Value":"{\"Object\":1}"}]`, `,"Identities":[{"Key":"odd|","Value":"5"}]`, `,"Indexes":[1]`, `,"RevisionDocuments":[{}]`) + `}`
	case 2:
		return `{"_id":` + o.pick(`3`, `{"$oid":"507f1f77bcf86cd799439011"}`, `[4]`, `{"$numberLong":"9"}`, `null`) + `,"A":` + o.pick(`{"$numberDecimal":"19.50"}`, `{"$numberDouble":"NaN"}`, `{"$date":"2026-01-01T00:00:00Z"}`, `{"$date":{"$numberLong":"x"}}`, `{"$binary":{"base64":"!","subType":"04"}}`, `{"$regularExpression":{}}`, `{"$minKey":1}`) + `}`
	case 3:
		return o.array(o.document)
	default:
		var list []string
		for range 1 + o.IntN(3) {
			list = append(list, strings.Replace(o.document(), `"@metadata":{`, `"@metadata":{"@id":`+o.quotedID()+`,`, 1))
		}
		return strings.Join(list, o.pick("\n", "\n", " ", "\r\n", ",", ""))
	}
}

var scalarOfJSON = regexp.MustCompile(`"[^"\\]*"|-?[0-9.]+|true|false|null`)

// spoil changes a body a little.
func (o *odds) spoil(body string) string {
	switch n := o.IntN(100); {
	case n < 60 || body == "":
		return body
	case n < 84:
		at := scalarOfJSON.FindAllStringIndex(body, -1)
		if len(at) == 0 {
			return body
		}
		i := at[o.IntN(len(at))]
		value := o.value(2)
		if o.chance(4) {
			n := []int{200, 255, 256, 1000, 2500, 9000, 20_000}[o.IntN(7)]
			value = strings.Repeat("[", n) + strings.Repeat("]", n)
			if o.chance(50) {
				value = strings.Repeat(`{"A":`, n) + "1" + strings.Repeat("}", n)
			}
		}
		return body[:i[0]] + value + body[i[1]:]
	case n < 86:
		return body[:o.IntN(len(body))]
	case n < 90:
		i := o.IntN(len(body))
		return body[:i] + o.pick(refused...) + body[i:]
	case n < 93:
		return o.pick("["+body+"]", body+body, "  "+body+"\n", "\xef\xbb\xbf"+body, body+"x")
	case n < 96:
		return o.value(3)
	case n < 98:
		return strings.Repeat(o.pick("[", `{"a":`), 20_000)
	default:
		return ""
	}
}
