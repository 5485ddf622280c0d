//go:build !nopostgres

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/pgtest"
	"github.com/jaydb/jay/storage/sqlkv"
)

// storeServer is the environment of the processes of TestServe_Stores: the arguments of jay serve, as JSON.
const storeServer = "JAY_STORE_SERVER"

// storeSecret is the password in the address of the store. No server prints it.
const storeSecret = "s3cret-p4ss"

// TestServe_Stores_Server runs jay serve until it is killed, or its input ends.
func TestServe_Stores_Server(t *testing.T) {
	text := os.Getenv(storeServer)
	if text == "" {
		t.Skip("only in a process of TestServe_Stores")
	}
	var args []string
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	log := new(lockedBuffer)
	code := run(ctx, args, strings.NewReader(""), os.Stdout, log, os.Getenv)
	if strings.Contains(log.String(), storeSecret) {
		t.Errorf("the log has the password: %s", log)
	}
	if code != 0 {
		t.Errorf("exit %d: %s", code, log)
	}
}

// storeClient asks the servers of a store.
type storeClient struct {
	t    *testing.T
	http http.Client
}

// ask sends a request, and returns the status and the members of the reply, or an error if there is none.
func (c *storeClient) ask(method, address, body string, headers ...string) (status int, reply map[string]any, err error) {
	q, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	a, err := c.http.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, nil, err
	}
	if strings.Contains(string(text), storeSecret) {
		c.t.Errorf("%s %s: the reply has the password", method, address)
	}
	if len(text) > 0 {
		err = json.Unmarshal(text, &reply)
	}
	return a.StatusCode, reply, err
}

// Ensure that several jay serve processes serve one store in PostgreSQL: what one has written the others read at once, versions, compare exchange,
// identities and ranges of HiLo hold across them, and when one is killed, nothing that it has acknowledged is lost, no ID comes twice, and the others
// go on.
func TestServe_Stores(t *testing.T) {
	postgres, err := pgtest.Start()
	if errors.Is(err, pgtest.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Stop()
	u, err := url.Parse(postgres.URL(fmt.Sprintf("jay_schema=serve_%d", os.Getpid())))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), storeSecret)
	client := &storeClient{t: t, http: http.Client{Timeout: time.Minute}}
	begin := func() (process *child.Process, address string) {
		t.Helper()
		args, err := json.Marshal([]string{"serve", "--store", "shop=" + u.String(), "--data", t.TempDir(), "--listen", "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		process = child.Start(t, "TestServe_Stores_Server", storeServer+"="+string(args))
		_, address, found := strings.Cut(process.Line(), "Serving ")
		if !found {
			t.Fatal("the server does not say where it is")
		}
		return process, address + "/databases/shop"
	}
	one, first := begin()
	_, second := begin()
	want := func(status int, method, address, body string, headers ...string) map[string]any {
		t.Helper()
		got, reply, err := client.ask(method, address, body, headers...)
		if err != nil || got != status {
			t.Fatalf("%s %s: status %d, want %d: %v, %v", method, address, got, status, reply, err)
		}
		return reply
	}
	stored := want(201, "PUT", first+"/docs?id=users/1", `{"Name":"Ann"}`)
	seen := want(200, "GET", second+"/docs?id=users/1", "")
	if name := seen["Results"].([]any)[0].(map[string]any)["Name"]; name != "Ann" {
		t.Errorf("the second server reads %v", seen)
	}
	version := fmt.Sprintf("%q", stored["ChangeVector"])
	want(201, "PUT", second+"/docs?id=users/1", `{"Name":"Bob"}`, "If-Match", version)
	want(409, "PUT", first+"/docs?id=users/1", `{"Name":"Cyd"}`, "If-Match", version)

	// Two writers at each server, until the first server is killed.
	var mu sync.Mutex
	ids, ranges := make(map[string]bool), make(map[string]bool)
	acknowledged := make(map[string]int) // by server
	note := func(at string, all map[string]bool, what string) {
		mu.Lock()
		defer mu.Unlock()
		if all[what] {
			t.Errorf("%s came twice", what)
		}
		all[what] = true
		acknowledged[at]++
	}
	enough, stop := make(chan struct{}), make(chan struct{})
	var reached sync.Once
	var writers sync.WaitGroup
	write := func(at string) error {
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			for _, request := range []string{"orders|", "orders/"} {
				status, reply, err := client.ask("PUT", at+"/docs?id="+url.QueryEscape(request), `{"@metadata":{"@collection":"Orders"}}`)
				if err != nil {
					return err // it was killed
				}
				if status != 201 {
					t.Errorf("status %d: %v", status, reply)
					return nil
				}
				note(at, ids, fmt.Sprint(reply["Id"]))
			}
			status, reply, err := client.ask("GET", at+"/hilo/next?tag=users&lastBatchSize=2&identityPartsSeparator=/&lastMax=0", "")
			if err != nil {
				return err
			}
			if status != 201 {
				t.Errorf("status %d: %v", status, reply)
				return nil
			}
			for i := reply["Low"].(float64); i <= reply["High"].(float64); i++ {
				note(at, ranges, fmt.Sprint("users/", i))
			}
			mu.Lock()
			some := acknowledged[first]
			mu.Unlock()
			if some > 500 {
				reached.Do(func() { close(enough) })
			}
		}
	}
	for range 2 {
		for _, at := range []string{first, second} {
			writers.Go(func() {
				if err := write(at); err != nil && at != first {
					t.Errorf("the server that was not killed: %v", err)
				}
			})
		}
	}
	select {
	case <-enough:
	case <-time.After(2 * time.Minute):
		t.Error("the servers are too slow")
	}
	one.Kill()
	mu.Lock()
	before := acknowledged[second]
	mu.Unlock()
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		goesOn := acknowledged[second] > before+100
		mu.Unlock()
		if goesOn {
			break
		}
		if time.Now().After(until) {
			t.Error("the other server does not go on")
			break
		}
	}
	close(stop)
	writers.Wait()

	third, again := begin() // in the place of the first
	for id := range ids {
		want(200, "GET", again+"/docs?id="+url.QueryEscape(id), "")
	}
	want(201, "PUT", again+"/docs?id=orders%7C", `{}`)
	third.Wait()
	for _, flag := range []string{"--follow=http://x/databases/y", "--idle-after=1m", "--min-free-bytes=1", "--copy-tag=B", "--store=" + u.String() + "&a=b", "--store=/dir"} {
		got := runJay(t.Context(), strings.NewReader(""), "serve", "--store", "postgres="+u.String(), "--data", t.TempDir(), "--listen", "127.0.0.1:0", flag)
		if got.code != exitUsage || strings.Contains(got.stderr+got.stdout, storeSecret) {
			t.Errorf("%s: %+v, want exit code %d", strings.SplitN(flag, "=", 2)[0], got, exitUsage)
		}
	}
	db, err := jay.Open(u.String(), &jay.Options{Engine: new(sqlkv.Driver)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	report, err := db.Verify(t.Context(), nil)
	if err != nil || report.Found != 0 {
		t.Errorf("%d damages, %v", report.Found, err)
	}
	t.Logf("%d IDs, %d numbers of ranges, %v acknowledged", len(ids), len(ranges), acknowledged)
}
