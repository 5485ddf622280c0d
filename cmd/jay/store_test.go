//go:build !nopostgres

package main

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/pgtest"
	"github.com/jaydb/jay/storage/sqlkv"
)

// fetch returns the status and the body of an address.
func fetch(client *http.Client, address string) (status int, body string, err error) {
	response, err := client.Get(address)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// Ensure that the commands that can work on a store on a server do, that others say that they cannot, and that none prints the password.
func TestStore(t *testing.T) {
	server, err := pgtest.Start()
	if errors.Is(err, pgtest.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	const secret = "s3cret-p4ss"
	u, err := url.Parse(server.URL("jay_schema=command"))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), secret)
	file := filepath.Join(t.TempDir(), "file")

	tested := make(map[string]bool)
	for _, step := range []struct {
		code        int
		input, args string
		want        string // in what it prints
	}{
		{0, `{"Name":"Ann","N":1}`, "put --id users/ann", "users/ann"},
		{0, `{"Name":"Bob","N":2}` + "\n" + `{"Name":"Cyd","N":3}`, "import --collection Users -", ""},
		{0, "", "get users/ann", `"Ann"`},
		{0, "", "list --prefix users/", `"Ann"`},
		{0, "", "index create Users N", ""},
		{0, "", "index list", "N"},
		{0, "", "query --json from+Users+where+N+>=+1", "Cyd"},
		{0, "", "update from+Users+where+N+=+1+update+{+this.N+=+9+} --yes", ""},
		{0, "", "index drop Users N", ""},
		{0, "", "collections list", "Users"},
		{0, "", "revisions configure Users --keep 3", ""},
		{0, `{"Name":"Ann","N":2}`, "put --id users/ann", ""},
		{0, "", "revisions list users/ann", "Ann"},
		{0, "contents", "attach put users/ann x.txt -", ""},
		{0, "", "attach list users/ann", "x.txt"},
		{0, "", "attach get users/ann x.txt", "contents"},
		{0, "", "attach rm users/ann x.txt", ""},
		{0, "", `cmpxchg put k {"a":1}`, ""},
		{0, "", "cmpxchg get k", `{"a":1}`},
		{0, "", "cmpxchg list", "k"},
		{0, "", "ids next invoices|", "1"},
		{0, "", "ids list", "invoices"},
		{0, "", "ids show", "users"},
		{0, "", "changes", "users/ann"},
		{0, "", "stats", ""},
		{0, "", "export " + file + ".ndjson", ""},
		{0, "", "backup " + file + ".backup", ""},
		{0, "", "copy --same-tag STORE " + file + ".db", "copied"},
		{0, "", "copy --same-tag --json " + file + ".db STORE2", `"resumed":false`},
		{1, "", "copy --same-tag STORE2 STORE", "empty target"},
		{2, "", "copy STORE STORE2", "--same-tag"},
		{0, "", "delete users/ann", ""},
		{1, "", "get users/ann", "users/ann"},
		{2, "", "compact", "not on a store on a server"},
		{0, "", "check", "not compared: the files"},
		{0, "", "check --json --skip-files", `"found":0`},
		{0, "", "check " + file + ".db", "no damage"},
		{2, "", "check STORE", "--db"},
		{2, "", "checkpoint " + file, "not on a store on a server"},
	} {
		var args []string
		for _, arg := range strings.Fields(step.args) {
			switch {
			case arg == "STORE":
				arg = u.String()
			case arg == "STORE2":
				arg = u.String() + "2"
			default:
				arg = strings.ReplaceAll(arg, "+", " ")
			}
			args = append(args, arg)
		}
		got := runJay(t.Context(), strings.NewReader(step.input), append([]string{"--db", u.String()}, args...)...)
		printed := got.stdout + got.stderr
		if got.code != step.code || !strings.Contains(printed, step.want) || strings.Contains(printed, secret) {
			t.Errorf("%s: %+v, want exit code %d and %q", step.args, got, step.code, step.want)
		}
		if got.code == 0 {
			tested["jay "+args[0]] = true
			if len(args) > 1 {
				tested["jay "+args[0]+" "+args[1]] = true
			}
		}
	}
	studio := startStudio(t, &studioCommand{Dir: u.String()}, "", jay.Options{})
	page := studio.address()
	client := browser(t)
	if _, _, err := fetch(client, page.String()); err != nil {
		t.Fatal(err)
	}
	name := databaseName(new(sqlkv.Driver).Shown(u.String()))
	for path, want := range map[string]string{"/databases": name, "/databases/" + name + "/stats": "CountOfDocuments"} {
		_, body, err := fetch(client, page.Scheme+"://"+page.Host+path)
		if err != nil || !strings.Contains(body, want) || strings.Contains(body, secret) {
			t.Errorf("%s: %.300s, %v; want %q", path, body, err, want)
		}
	}
	tested["jay studio"] = true
	for _, command := range onStores {
		if !tested[command] && command != "jay cmpxchg delete" { // which asks for an index
			t.Errorf("%s is not tested", command)
		}
	}
}
