package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that jay follow keeps a copy of a database of a server, with its token, that the copy is only read, and that jay promote makes a
// database of it.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	h, token := acornsServed(t, data)
	call := func(want int, says, stdin string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		getenv := func(name string) string { return map[string]string{"JAY_TOKEN": token}[name] }
		if got := run(context.Background(), args, strings.NewReader(stdin), &out, &errs, getenv); got != want || !strings.Contains(out.String()+errs.String(), says) {
			t.Fatalf("jay %s: exit %d, want %d and %q: %s%s", strings.Join(args, " "), got, want, says, &out, &errs)
		}
	}
	url, at := h.URL+"/databases/acorns", filepath.Join(dir, "copy")
	call(0, "users/ann", `{"Name":"Ann"}`, "--url", url, "put", "--id", "users/ann")
	call(0, " s behind", "", "follow", "--once", url, at)
	call(0, "users/bob", `{"Name":"Bob"}`, "--url", url, "put", "--id", "users/bob")
	call(0, `"connected":true`, "", "--json", "follow", "--once", url, at)
	call(0, "Bob", "", "--db", at, "--read-only", "get", "users/bob")
	call(1, "standby", "{}", "--db", at, "put", "--id", "x")
	call(1, "standby", "", "--json", "follow", url, filepath.Join(data, "system"))
	call(1, "standby", "", "follow", filepath.Join(data, "system"), filepath.Join(data, "system"))
	call(2, "--every", "", "follow", "--every", "0s", url, at)

	shop, copied := filepath.Join(dir, "shop"), filepath.Join(dir, "copied")
	db, err := jay.Open(shop, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Put(t.Context(), "users/cay", []byte(`{"Name":"Cay"}`)); err != nil {
		t.Fatal(err)
	}
	call(0, " s behind", "", "follow", "--once", shop, copied)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	call(0, "Cay", "", "--db", copied, "--read-only", "get", "users/cay")

	call(2, "--copy-tag TAG", "", "promote", at)
	call(2, "exclude", "", "promote", "--same-tag", "--copy-tag", "B", at)
	call(1, "floor", "", "promote", "--same-tag", at)
	call(0, "with node tag B, 2 documents", "", "promote", "--copy-tag", "B", at)
	call(0, "-B", `{}`, "--db", at, "put", "--collection", "Users")
	call(1, "standby", "", "promote", "--copy-tag", "C", at)
}
