package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// Ensure that compare-exchange values are put and deleted under the index that they have,
// and that a reply has what is there if they are not.
func TestCompareExchange(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	const path = "/databases/a/cmpxchg"
	put := func(key, index, object string) answer {
		t.Helper()
		return h.want(200, "PUT", path+"?key="+key+"&index="+index, `{"Object":`+object+`}`)
	}
	a := put("users/ann", "0", `{"n":1.50,"s":"<b>"}`)
	first := a.text(t, "Index")
	equal(t, "successful", a.text(t, "Successful"), true)
	if !strings.Contains(a.body, `{"Object":{"n":1.50,"s":"<b>"}}`) {
		t.Errorf("got %s", a.body)
	}
	a = put("Users%2FANN", "0", `2`)
	equal(t, "successful", a.text(t, "Successful"), false)
	equal(t, "index", a.text(t, "Index"), first)
	equal(t, "value", a.text(t, "Value", "Object", "s"), "<b>")
	a = put("nothing", "17", `2`)
	equal(t, "body", a.body, `{"Index":0,"Value":null,"Successful":false}`)

	a = h.want(200, "GET", path+"?&key=users/ann&key=none", "")
	equal(t, "key", a.text(t, "Results", 0, "Key"), "users/ann")
	equal(t, "index", a.text(t, "Results", 0, "Index"), first)
	equal(t, "missing", a.text(t, "Results", 1), "map[Index:-1 Key:none Value:<nil>]")
	equal(t, "missing", h.want(200, "GET", path+"?key=x&key=none", "").body, `{"Results":[{"Key":"x","Index":-1,"Value":null},{"Key":"none","Index":-1,"Value":null}]}`)
	equal(t, "none", h.want(404, "GET", path+"?key=none", "").body, "")

	// Go's client does not escape keys.
	a = put("a+b&c=d", "0", `{"Object":1}`)
	equal(t, "raw", h.want(200, "GET", path+"?key=a%2Bb%26c%3Dd", "").text(t, "Results", 0, "Key"), "a+b&c=d")
	h.want(200, "DELETE", path+"?key=a+b&c=d&index="+a.text(t, "Index"), "")

	a = h.want(200, "DELETE", path+"?key=users/ann&index=1000", "")
	equal(t, "successful", a.text(t, "Successful"), false)
	equal(t, "index", a.text(t, "Index"), first)
	a = h.want(200, "DELETE", path+"?key=users/ann&index="+first, "")
	equal(t, "successful", a.text(t, "Successful"), true)
	equal(t, "was", a.text(t, "Value", "Object", "n"), "1.50")
	a = h.want(200, "DELETE", path+"?key=users/ann&index="+first, "")
	equal(t, "gone already", a.body, `{"Index":`+first+`,"Value":null,"Successful":true}`)

	h.want(200, "PUT", path+"?key=m&index=0", `{"Object":null,"@metadata":{"by":"Ann"}}`)
	equal(t, "metadata", h.want(200, "GET", path+"?key=m", "").text(t, "Results", 0, "Value", "@metadata", "by"), "Ann")

	for i := range 5 {
		put(fmt.Sprint("p/", i), "0", fmt.Sprint(i))
	}
	a = h.want(200, "GET", path+"?startsWith=P/&start=1&pageSize=2", "")
	equal(t, "page", a.text(t, "Results", 0, "Key")+a.text(t, "Results", 1, "Key"), "p/1p/2")
	equal(t, "size", len(a.json(t, "Results").([]any)), 2)
	equal(t, "all", len(h.want(200, "GET", path, "").json(t, "Results").([]any)), 6)
	equal(t, "behind all", h.want(200, "GET", path+"?start=7", "").body, `{"Results":[]}`)
	equal(t, "no page", h.want(200, "GET", path+"?pageSize=0", "").body, `{"Results":[]}`)
}

// Ensure that bad requests about compare-exchange values are refused, and change nothing.
func TestCompareExchange_Refused(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	const path = "/databases/a/cmpxchg"
	long := strings.Repeat("k", 513)
	for _, test := range []struct{ method, query, body, kind string }{
		{"GET", "?key=", "", "BadRequestException"},
		{"GET", "?key=a&startsWith=a", "", "BadRequestException"},
		{"GET", "?key=" + long, "", "CompareExchangeKeyTooBigException"},
		{"GET", "?key=%00", "", "BadRequestException"},
		{"GET", "?start=-1", "", "BadRequestException"},
		{"GET", "?" + strings.Repeat("key=a&", 1025), "", "BadRequestException"},
		{"PUT", "?index=0", `{"Object":1}`, "BadRequestException"},
		{"PUT", "?key=a", `{"Object":1}`, "BadRequestException"},
		{"PUT", "?key=a&index=x", `{"Object":1}`, "BadRequestException"},
		{"PUT", "?key=a&index=-1", `{"Object":1}`, "BadRequestException"},
		{"PUT", "?key=a&index=9223372036854775808", `{"Object":1}`, "BadRequestException"},
		{"PUT", "?key=" + long + "&index=0", `{"Object":1}`, "CompareExchangeKeyTooBigException"},
		{"PUT", "?key=a&index=0", ``, "BadRequestException"},
		{"PUT", "?key=a&index=0", `1`, "BadRequestException"},
		{"PUT", "?key=a&index=0", `{}`, "BadRequestException"},
		{"PUT", "?key=a&index=0", `{"Object":1}]`, "BadRequestException"},
		{"PUT", "?key=a&index=0", `{"Object":1,"Other":2}`, "BadRequestException"},
		{"PUT", "?key=a&index=0", `{"Object":"\ud800"}`, "BadRequestException"},
		{"PUT", "?key=a&index=0", `{"Object":1,"@metadata":{"@expires":"2026-01-01T00:00:00Z"}}`, "BadRequestException"},
		{"PUT", "?key=a&index=0", `{"Object":"` + strings.Repeat("x", 1<<20) + `"}`, "BadRequestException"},
		{"DELETE", "?key=a&index=", "", "BadRequestException"},
		{"DELETE", "?key=" + long + "&index=1", "", "CompareExchangeKeyTooBigException"},
	} {
		h.checkProblem(h.do(test.method, path+test.query, test.body), 400, test.kind)
	}
	equal(t, "values", h.want(200, "GET", path, "").body, `{"Results":[]}`)
}

// batch sends a batch of a cluster-wide session.
func (h *host) clusterBatch(status int, commands string) answer {
	h.t.Helper()
	return h.want(status, "POST", "/databases/a/bulk_docs?disableAtomicDocumentWrites=false", `{"TransactionMode":"ClusterWide","Commands":[`+commands+`]}`)
}

// Ensure that a cluster-wide session writes documents, their guards and values together,
// and that of two that have read the same guard one saves.
func TestClusterWide(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	a := h.clusterBatch(201, `{"Type":"PUT","Id":"users/1","Document":{"n":1,"@metadata":{"@collection":"Users"}}},{"Type":"CompareExchangePUT","Id":"names/ann","Index":0,"Document":{"Object":"users/1"}}`)
	equal(t, "type", a.text(t, "Results", 1, "Type"), "CompareExchangePUT")
	index := a.text(t, "Results", 1, "Index")
	if index == "0" || a.text(t, "TransactionIndex") < index {
		t.Errorf("got %s", a.body)
	}
	written := a.text(t, "Results", 0, "@change-vector")
	if !strings.Contains(written, ", TRXN:") {
		t.Errorf("the change vector has no guard: %s", written)
	}
	equal(t, "guard", h.want(200, "GET", "/databases/a/cmpxchg?key=rvn-atomic/users/1", "").text(t, "Results", 0, "Value", "Object", "Id"), "users/1")

	// A read of such a session has the guard; others do not.
	a = h.want(200, "GET", "/databases/a/docs?id=users/1&txMode=ClusterWide", "")
	equal(t, "read", a.text(t, "Results", 0, "@metadata", "@change-vector"), written)
	if tag := a.header.Get("ETag"); strings.Contains(tag, ",") {
		t.Errorf("the ETag %s has a comma", tag)
	}
	h.want(304, "GET", "/databases/a/docs?id=users/1&txMode=ClusterWide", "", "If-None-Match", a.header.Get("ETag"))
	plain := h.want(200, "GET", "/databases/a/docs?id=users/1", "").text(t, "Results", 0, "@metadata", "@change-vector")
	equal(t, "plain", plain, strings.Split(written, ",")[0])

	change := func(vector string) string {
		return `{"Type":"PUT","Id":"users/1","ChangeVector":null,"OriginalChangeVector":"` + vector + `","Document":{"n":2}}`
	}
	next := h.clusterBatch(201, change(written)).text(t, "Results", 0, "@change-vector")
	a = h.clusterBatch(409, change(written)+`,{"Type":"PUT","Id":"users/2","Document":{}}`)
	h.checkProblem(a, 409, "ClusterTransactionConcurrencyException")
	if !strings.Contains(a.text(t, "Message"), "Guard compare exchange value 'rvn-atomic/users/1' index does not match the transaction index's") {
		t.Errorf("got %s", a.body)
	}
	equal(t, "violation", a.text(t, "ConcurrencyViolations", 0, "Type"), "Document")
	h.want(404, "GET", "/databases/a/docs?id=users/2", "")

	// What was not loaded must be new; a version without a guard is compared itself.
	h.checkProblem(h.clusterBatch(409, `{"Type":"PUT","Id":"users/1","Document":{}}`), 409, "ClusterTransactionConcurrencyException")
	h.checkProblem(h.clusterBatch(409, change(plain)), 409, "ClusterTransactionConcurrencyException")
	now := h.want(200, "GET", "/databases/a/docs?id=users/1", "").text(t, "Results", 0, "@metadata", "@change-vector")
	last := h.clusterBatch(201, change(now)).text(t, "Results", 0, "@change-vector")
	if last == next {
		t.Error("the guard has not changed")
	}

	// A session of one node takes such a vector for its version.
	h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"users/1","ChangeVector":"`+last+`","Document":{"n":4}}]}`)
	a = h.want(200, "GET", "/databases/a/docs?id=users/1&txMode=ClusterWide", "")
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{"n":5}`, "If-Match", `"`+a.text(t, "Results", 0, "@metadata", "@change-vector")+`"`)

	a = h.clusterBatch(409, `{"Type":"CompareExchangeDELETE","Id":"names/ann","Index":1000},{"Type":"DELETE","Id":"users/1"}`)
	if !strings.Contains(a.text(t, "Message"), "Concurrency check failed for deleting the key 'names/ann'. Requested index: 1000, actual index: "+index) {
		t.Errorf("got %s", a.body)
	}
	a = h.clusterBatch(201, `{"Type":"CompareExchangeDELETE","Id":"names/ann","Index":`+index+`},{"Type":"DELETE","Id":"users/1","ChangeVector":null}`)
	equal(t, "key", a.text(t, "Results", 0, "Key"), "names/ann")
	equal(t, "nothing left", h.want(200, "GET", "/databases/a/cmpxchg", "").body, `{"Results":[]}`)
	a = h.clusterBatch(201, `{"Type":"DELETE","Id":"users/1"}`)
	if a.text(t, "TransactionIndex") == "0" {
		t.Errorf("got %s", a.body)
	}

	a = h.want(201, "POST", "/databases/a/bulk_docs?disableAtomicDocumentWrites=true", `{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":"users/3","Document":{}}]}`)
	equal(t, "unguarded", h.want(200, "GET", "/databases/a/cmpxchg", "").body, `{"Results":[]}`)
	if strings.Contains(a.body, "TRXN") {
		t.Errorf("got %s", a.body)
	}
}

// Ensure that what a cluster-wide transaction cannot do is refused whole.
func TestClusterWide_Refused(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, test := range []struct{ command, kind string }{
		{`{"Type":"PUT","Id":"users|","Document":{}}`, "BadRequestException"},
		{`{"Type":"PUT","Id":"users/","Document":{}}`, "BadRequestException"},
		{`{"Type":"PUT","Id":" ","Document":{}}`, "BadRequestException"},
		{`{"Type":"PUT","Document":{}}`, "BadRequestException"},
		{`{"Type":"PUT","Id":"a"}`, "BadRequestException"},
		{`{"Type":"PATCH","Id":"a"}`, "BadRequestException"},
		{`{"Type":"AttachmentDELETE","Id":"a"}`, "BadRequestException"},
		{`{"Type":"CompareExchangePUT","Id":"a","Document":{"Object":1}}`, "BadRequestException"},
		{`{"Type":"CompareExchangePUT","Id":"a","Index":-1,"Document":{"Object":1}}`, "BadRequestException"},
		{`{"Type":"CompareExchangePUT","Id":"a","Index":0,"Document":1}`, "BadRequestException"},
		{`{"Type":"CompareExchangePUT","Id":"a","Index":0}`, "BadRequestException"},
		{`{"Type":"CompareExchangePUT","Id":"RVN-atomic/a","Index":0,"Document":{"Object":1}}`, "CompareExchangeInvalidKeyException"},
		{`{"Type":"CompareExchangePUT","Id":"` + strings.Repeat("k", 513) + `","Index":0,"Document":{"Object":1}}`, "CompareExchangeKeyTooBigException"},
		{`{"Type":"CompareExchangeDELETE","Id":"a","Index":0}`, "BadRequestException"},
	} {
		h.checkProblem(h.clusterBatch(400, `{"Type":"PUT","Id":"first","Document":{}},`+test.command), 400, test.kind)
	}
	a := h.do("POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"CompareExchangePUT","Id":"a","Index":0,"Document":{"Object":1}}]}`)
	h.checkProblem(a, 501, "NotSupportedException")
	h.want(404, "GET", "/databases/a/docs?id=first", "")
	equal(t, "values", h.want(200, "GET", "/databases/a/cmpxchg", "").body, `{"Results":[]}`)
}

// Ensure that a reply brings along the values that documents name.
func TestCompareExchange_Includes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=u/1", `{"Name":"ann","Names":["bob","none",null,7]}`)
	for _, key := range []string{"ann", "bob"} {
		h.want(200, "PUT", "/databases/a/cmpxchg?key="+key+"&index=0", `{"Object":"`+key+`"}`)
	}
	a := h.want(200, "GET", "/databases/a/docs?id=u/1&cmpxchg=Name&cmpxchg=Names", "")
	equal(t, "values", len(a.json(t, "CompareExchangeValueIncludes").(map[string]any)), 2)
	equal(t, "value", a.text(t, "CompareExchangeValueIncludes", "bob", "Value", "Object"), "bob")
	h.want(304, "GET", "/databases/a/docs?id=u/1&cmpxchg=Name&cmpxchg=Names", "", "If-None-Match", a.header.Get("ETag"))
	h.want(200, "PUT", "/databases/a/cmpxchg?key=bob&index="+a.text(t, "CompareExchangeValueIncludes", "bob", "Index"), `{"Object":"new"}`)
	h.want(200, "GET", "/databases/a/docs?id=u/1&cmpxchg=Name&cmpxchg=Names", "", "If-None-Match", a.header.Get("ETag"))

	var names []string
	for i := range 1024 {
		names = append(names, fmt.Sprintf(`"none%d"`, i))
	}
	h.want(201, "PUT", "/databases/a/docs?id=u/2", `{"Names":[`+strings.Join(names, ",")+`],"Other":"none1024"}`)
	h.want(200, "GET", "/databases/a/docs?id=u/2&cmpxchg=Names", "")
	h.checkProblem(h.do("GET", "/databases/a/docs?id=u/2&cmpxchg=Names&cmpxchg=Other", ""), 413, "RequestTooLargeException")
}
