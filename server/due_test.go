package server_test

import (
	"encoding/json"
	"testing"
)

// sweep does all that is due for the documents of a database.
func (h *host) sweep(database string) {
	h.t.Helper()
	if err := h.s.Sweep(h.t.Context(), database); err != nil {
		h.t.Fatal(err)
	}
}

// wantJSON checks the body of a reply.
func (h *host) wantJSON(path, body string) {
	h.t.Helper()
	equal(h.t, path, h.want(200, "GET", path, "").body, body)
}

const pastDocument = `{"@metadata":{"@expires":"2023-12-12T00:00:00.000Z"}}`

// Ensure that a document whose @expires has passed stays as long as no expiration is
// configured, goes when it is, and that a configuration with Disabled stops that.
func TestExpiration_NotConfigured(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(404, "GET", "/databases/a/expiration/config", "")
	h.want(201, "PUT", "/databases/a/docs?id=e/1", pastDocument)
	vector := h.want(201, "PUT", "/databases/a/docs?id=r/1", `{"@metadata":{"@refresh":"2023-12-12T00:00:00.000Z"}}`).text(t, "ChangeVector")
	h.sweep("a")
	h.want(200, "GET", "/databases/a/docs?id=e/1", "")
	equal(t, "change vector", h.want(200, "GET", "/databases/a/docs?id=r/1", "").text(t, "Results", 0, "@metadata", "@change-vector"), vector)

	h.want(200, "POST", "/databases/a/admin/expiration/config", `{"Disabled":true,"DeleteFrequencyInSec":7,"MaxItemsToProcess":9}`)
	h.sweep("a")
	h.want(200, "GET", "/databases/a/docs?id=e/1", "")
	h.wantJSON("/databases/a/expiration/config", `{"DeleteFrequencyInSec":7,"Disabled":true,"MaxItemsToProcess":9}`)

	h.want(200, "POST", "/databases/a/admin/expiration/config", `{"Disabled":false}`)
	h.sweep("a")
	h.want(404, "GET", "/databases/a/docs?id=e/1", "")
	h.wantJSON("/databases/a/expiration/config", `{"Disabled":false}`)
	h.want(404, "GET", "/databases/a/refresh/config", "")

	h.want(200, "POST", "/databases/a/admin/expiration/config", `{"Disabled":true}`)
	h.want(201, "PUT", "/databases/a/docs?id=e/1", pastDocument)
	h.sweep("a")
	h.want(200, "GET", "/databases/a/docs?id=e/1", "")
}

// Ensure that the configurations in a database record are those that the database begins
// with, and that a wrong one refuses the creation.
func TestExpiration_InDatabaseRecord(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.want(201, "PUT", "/admin/databases?name=a", `{"DatabaseName":"a","Expiration":{"Disabled":false,"DeleteFrequencyInSec":60},"Refresh":{"Disabled":true}}`)
	h.wantJSON("/databases/a/expiration/config", `{"DeleteFrequencyInSec":60,"Disabled":false}`)
	h.wantJSON("/databases/a/refresh/config", `{"Disabled":true}`)
	h.want(201, "PUT", "/databases/a/docs?id=e/1", pastDocument)
	h.sweep("a")
	h.want(404, "GET", "/databases/a/docs?id=e/1", "")
	for _, record := range []string{`{"Expiration":{"Disabled":7}}`, `{"Refresh":[]}`} {
		h.checkProblem(h.do("PUT", "/admin/databases?name=b", record), 400, "BadRequestException")
	}
}

// Ensure that the record of a database has the configuration of expiration and of refresh as
// it is, not as it was given when the database was made.
func TestExpiration_RecordAsConfiguredSince(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.want(201, "PUT", "/admin/databases?name=A", `{"DatabaseName":"A","Expiration":{"Disabled":false,"DeleteFrequencyInSec":60},"Refresh":{"Disabled":true}}`)
	h.want(200, "POST", "/databases/A/admin/expiration/config", `{"Disabled":true,"DeleteFrequencyInSec":30}`)
	var record struct{ Expiration, Refresh map[string]any }
	if err := json.Unmarshal([]byte(h.want(200, "GET", "/admin/databases?name=A", "").body), &record); err != nil {
		t.Fatal(err)
	}
	if e := record.Expiration; e["Disabled"] != true || e["DeleteFrequencyInSec"] != 30.0 || record.Refresh["Disabled"] != true {
		t.Errorf("the record has %v", record)
	}
}
