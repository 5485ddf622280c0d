package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// Ensure that no request of a campaign of hostile ones ends a jay serve that has a gigabyte
// of memory, alone and sixteen at once, and that the requests of another token, from the
// address of the attack and from another one, are answered with 2xx meanwhile: half of them within a
// second. JAY_HOSTILE=1 runs it, as root, with control groups of version 1: see make hostile.
// A program alone is -run 'TestHostile/NAME'. With CGO_ENABLED=0 it is the server of the Dockerfile.
//
// The attack runs on the processors of the server. What these take for the others when nothing
// attacks is printed, and on a slow machine half of the others have 20 times as long.
func TestHostile(t *testing.T) {
	if os.Getenv("JAY_HOSTILE") == "" {
		t.Skip("JAY_HOSTILE is not set: it takes minutes and a control group")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "jay")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/jay").CombinedOutput(); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	data, tokens := filepath.Join(dir, "data"), map[string]string{}
	for name, right := range map[string]string{"owner": "*=admin", "evil": "a=write", "watcher": "*=read"} {
		out, err := exec.Command(program, "serve", "token", "create", name, "--data", data, "--right", right).Output()
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = "Bearer " + string(bytes.TrimSpace(out))
	}
	attack(t, "", tokens, program, "serve", "--data", data, "--listen", "127.0.0.1:0", "--log-level", "error", "--authenticate")
}

// Ensure that the same holds for a program that has a handler of the server below a path of its mux, behind a sign-in of its own.
func TestHostile_Mounted(t *testing.T) {
	if os.Getenv("JAY_HOSTILE") == "" {
		t.Skip("JAY_HOSTILE is not set: it takes minutes and a control group")
	}
	t.Setenv("JAY_HOSTILE_DATA", filepath.Join(t.TempDir(), "data"))
	t.Setenv("GOMEMLIMIT", "600MiB")
	t.Setenv("MALLOC_MMAP_THRESHOLD_", "1048576")
	tokens := make(map[string]string)
	for name := range hostileRights {
		tokens[name] = name
	}
	attack(t, hostileBase, tokens, os.Args[0], "-test.run=^TestHostile_Program$", "-test.timeout=0")
}

// hostileBase is the path of the handler of TestHostile_Mounted, and hostileRights are those that its program gives, by the header Authorization.
const hostileBase = "/admin/db"

var hostileRights = map[string]server.Rights{"owner": {"*": server.AdminRight}, "evil": {"a": server.WriteRight}, "watcher": {"*": server.ReadRight}}

// TestHostile_Program is the program of TestHostile_Mounted.
func TestHostile_Program(t *testing.T) {
	data := os.Getenv("JAY_HOSTILE_DATA")
	if data == "" {
		t.Skip("only in a process of TestHostile_Mounted")
	}
	o := server.Options{Data: data, MaxMemory: 1 << 30, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	o.Database.Loads = jay.NewLoads(4)
	s, err := server.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.Handler(hostileBase, func(r *http.Request) (string, server.Rights) {
		name := r.Header.Get("Authorization")
		return name, hostileRights[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(hostileBase+"/", handler)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("http://" + l.Addr().String())
	program := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute} // what it holds of connections is its own affair
	t.Fatal(program.Serve(l))
}

// attack runs the campaign against a program, which prints its address. base is the path of the API.
func attack(t *testing.T, base string, tokens map[string]string, program string, args ...string) {
	group := fmt.Sprintf("/sys/fs/cgroup/memory/jay-hostile-%d", os.Getpid())
	if err := os.Mkdir(group, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(group)
	if err := os.WriteFile(group+"/memory.limit_in_bytes", []byte("1073741824"), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command("sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group, program}, args...)...)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	line := make([]byte, 4096)
	n, err := out.Read(line)
	url := regexp.MustCompile(`http://[0-9.:]+`).FindString(string(line[:n]))
	if url == "" {
		t.Fatalf("the server said %q, %v", line[:n], err)
	}
	go func() { ended <- process.Wait() }()
	defer func() { _ = process.Process.Kill(); <-ended }()

	host := strings.TrimPrefix(url, "http://")
	// from returns a client whose connections come from an address of this machine.
	from := func(address string) *http.Client {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: dialer.DialContext}, Timeout: time.Minute}
	}
	ask := func(client *http.Client, token, method, path, body string, headers ...string) (int, string) {
		r, err := http.NewRequest(method, url+base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", tokens[token])
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		reply, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer reply.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(reply.Body, 1<<20))
		_, _ = io.Copy(io.Discard, reply.Body)
		return reply.StatusCode, string(text)
	}
	evil := from("127.0.0.1")
	send := func(method, path, body string, headers ...string) (int, string) {
		return ask(evil, "evil", method, path, body, headers...)
	}
	// hold sends bytes on n connections of an address, and leaves them as they are for a while.
	hold := func(n int, address, text string) {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		for range n {
			conn, err := dialer.Dial("tcp", host)
			if err != nil {
				break
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, text)
		}
		time.Sleep(3 * time.Second) // the attack is to hold them
	}
	head := func(token, method, path string, headers ...string) string {
		return method + " " + base + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + tokens[token] + "\r\n" + strings.Join(append(headers, "\r\n"), "\r\n")
	}
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = 'a' + byte(rand.N(16))
		}
		return string(b)
	}
	large := text(20 << 20)
	const lots = 48 // more large documents than fit in memory at a time
	puts := [][2]string{{"/admin/databases?name=a", "{}"}, {"/admin/databases?name=o", "{}"}, {"/databases/o/docs?id=v/1", `{"n":1}`}, {"/databases/a/docs?id=x/1", `{"n":1,"@metadata":{"@collection":"X"}}`},
		{"/databases/a/attachments?id=x/1&name=f", text(256 << 10)}}
	for i := range 16 {
		puts = append(puts, [2]string{fmt.Sprintf("/databases/a/docs?id=big/%d", i), fmt.Sprintf(`{"i":%d,"t":"%s","@metadata":{"@collection":"Big"}}`, i, large)})
	}
	for i := range lots {
		puts = append(puts, [2]string{fmt.Sprintf("/databases/a/docs?id=lots/%d", i), fmt.Sprintf(`{"i":%d,"t":"%s","@metadata":{"@collection":"Lots"}}`, i, large)})
	}
	for i := range 40 {
		puts = append(puts, [2]string{fmt.Sprintf("/databases/a/docs?id=s/%d", i), `{"s":"` + text(500<<10) + `","@metadata":{"@collection":"S"}}`})
	}
	for i := range 90 {
		puts = append(puts, [2]string{fmt.Sprintf("/admin/databases?name=many%d", i), "{}"})
	}
	for i, put := range puts {
		if status, reply := ask(evil, "owner", "PUT", put[0], put[1]); status != 201 {
			t.Fatalf("%s: %d %.300s", put[0], status, reply)
		}
		if i == 0 {
			if status, reply := ask(evil, "owner", "POST", "/databases/a/admin/revisions/config", `{"Collections":{"Big":{}}}`); status != 200 {
				t.Fatalf("revisions: %d %.300s", status, reply)
			}
		}
	}
	gzipped := func(head, unit, tail string, size int) string {
		return pack(t, head+strings.Repeat(unit+",", size/(len(unit)+1))+unit+tail)
	}
	const packed = "Content-Encoding"
	// Bodies are packed once, before anything is measured: that takes the processors of the server.
	zeros := gzipped(`{"a":[`, "0", `]}`, 15<<20)
	insertedZeros := gzipped(`[{"Id":"z/1","Type":"PUT","Document":{"a":[`, "0", "]}}]", 15<<20)
	parameters := gzipped(`{"Query":"from X where a in ($p)","QueryParameters":{"p":[`, "0", "]}}", 15<<20)
	unended := pack(t, `{"Query":"`+strings.Repeat(" ", 15<<20))
	lists := make(map[string]string)
	for _, unit := range []string{"0", "{}"} {
		lists["Requests"+unit] = gzipped(`{"Requests":[`, unit, "]}", 15<<20)
		lists["Commands"+unit] = gzipped(`{"Commands":[`, unit, "]}", 64<<20)
	}
	programs := map[string]func(){
		"multi_get of zeros": func() {
			send("POST", "/databases/a/multi_get", lists["Requests0"], packed, "gzip")
		},
		"multi_get of objects": func() {
			send("POST", "/databases/a/multi_get", lists["Requests{}"], packed, "gzip")
		},
		"bulk_docs of zeros": func() {
			send("POST", "/databases/a/bulk_docs", lists["Commands0"], packed, "gzip")
		},
		"bulk_docs of objects": func() {
			send("POST", "/databases/a/bulk_docs", lists["Commands{}"], packed, "gzip")
		},
		"a parameter": func() {
			send("POST", "/databases/a/queries", parameters, packed, "gzip")
		},
		"a preview of long IDs": func() {
			send("POST", "/jay/v1/databases/a/preview", `{"query":"from X update { var s='x'.repeat(20000000); for (var i=0;i<20;i++) put(s, {}); }","first":100}`)
		},
		"a preview of numbers": func() {
			send("POST", "/jay/v1/databases/a/preview", pack(t, `{"query":"from X update { var a = []; for (var i = 0; i < 2000; i++) a.push($n); this.a = a }","first":1,"parameters":{"n":`+strings.Repeat("1", 1_000_000)+`}}`), packed, "gzip")
		},
		"a page of one document": func() { send("POST", "/jay/v1/databases/a/query", `{"query":"from Big"}`) },
		"a sorted stream that nobody reads": func() {
			body := `{"Query":"from S order by s"}`
			hold(1, "127.0.0.1", head("evil", "POST", "/databases/a/streams/queries", fmt.Sprintf("Content-Length: %d", len(body)))+body)
		},
		"attachments": func() {
			send("POST", "/databases/a/attachments/bulk", `{"Attachments":[`+strings.TrimSuffix(strings.Repeat(`{"DocumentId":"x/1","Name":"f"},`, 1024), ",")+`]}`)
		},
		"a bulk insert that compares": func() {
			send("PUT", "/databases/a/docs?id=z/1", zeros, packed, "gzip")
			_, reply := send("GET", "/databases/a/operations/next-operation-id", "")
			id := regexp.MustCompile(`"Id":(\d+)`).FindStringSubmatch(reply)
			if id != nil {
				send("POST", "/databases/a/bulk_insert?skipOverwriteIfUnchanged=true&id="+id[1], insertedZeros, packed, "gzip")
			}
		},
		"many operations": func() {
			for range 50 {
				send("PATCH", "/databases/a/queries?details=true", `{"Query":{"Query":"from X update { this.n = 1 }`+strings.Repeat(" ", 60_000)+`"}}`)
			}
			send("GET", "/databases/a/operations", "")
		},
		"bodies whose end does not come": func() {
			part := unended
			hold(32, "127.0.0.1", head("evil", "POST", "/databases/a/queries", "Content-Encoding: gzip", fmt.Sprintf("Content-Length: %d", len(part)+100))+part[:len(part)-8])
		},
		"bodies that do not come": func() {
			hold(300, "127.0.0.1", head("evil", "POST", "/databases/a/queries", "Content-Length: 100"))
		},
		"feeds": func() { hold(64, "127.0.0.1", head("evil", "GET", "/jay/v1/databases/a/changes")) },
		"idle connections": func() {
			hold(300, "127.0.0.3", "GET "+base+"/studio/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
		},
		"headers that do not end": func() {
			hold(300, fmt.Sprintf("127.0.1.%d", 1+rand.N(32)), "G")
		},
		"bodies for the health": func() {
			hold(300, fmt.Sprintf("127.0.1.%d", 1+rand.N(32)), "GET "+base+"/healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
		},
		"operations that do not end": func() {
			var ids []string
			for range 64 {
				_, reply := send("PATCH", "/databases/a/queries?maxOpsPerSec=1", `{"Query":{"Query":"from S update { this.k = 1 }"}}`)
				if id := regexp.MustCompile(`"OperationId":(\d+)`).FindStringSubmatch(reply); id != nil {
					ids = append(ids, id[1])
				}
			}
			for _, id := range ids {
				send("POST", "/databases/a/operations/kill?id="+id, "")
			}
		},
		"sessions": func() {
			for range 1000 {
				send("POST", "/jay/v1/session", "")
			}
		},
		"a query of 500 regular expressions": func() {
			var or []string
			for i := range 500 {
				or = append(or, fmt.Sprintf("regex(s, 'a.*b.*c%d.*d.*e')", i))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // it may run for minutes
			defer cancel()
			body := fmt.Sprintf(`{"Query":%q}`, "from S where "+strings.Join(or, " or "))
			r, _ := http.NewRequestWithContext(ctx, "POST", url+base+"/databases/a/streams/queries", strings.NewReader(body))
			r.Header.Set("Authorization", tokens["evil"])
			if reply, err := evil.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, reply.Body)
				reply.Body.Close()
			}
		},
		"queries": func() {
			for _, q := range []string{"from @all_docs order by t", "from Big where regex(t, '^(a|b|aa)*c$')", "from S group by s select s, count()", "from S select distinct s",
				"from X where " + strings.Repeat("not (", 240) + "n = 1" + strings.Repeat(")", 240)} {
				send("POST", "/jay/v1/databases/a/query", fmt.Sprintf(`{"query":%q}`, q))
			}
		},
		"readers of many databases": func() {
			for i := range 90 {
				ask(evil, "watcher", "GET", fmt.Sprintf("/databases/many%d/stats", i), "")
			}
		},
	}

	// lookInto opens the database a through a look of the attacker.
	lookInto := func() (*jay.DB, error) {
		status, _, conn, err := upgrade(host, base, "a", append([]string{"Authorization", tokens["evil"]}, asksForLook...)...)
		if err == nil && status != http.StatusSwitchingProtocols {
			err = errors.Join(fmt.Errorf("status %d", status), conn.Close())
		}
		if err != nil {
			return nil, err
		}
		return jay.LookThrough(conn, "a", nil)
	}
	programs["looks that ask nothing"] = func() {
		hold(64, "127.0.0.1", head("evil", "GET", "/jay/v1/databases/a/look", "Connection: Upgrade", "Upgrade: jay-look"))
	}
	programs["looks that take nothing"] = func() { // 10,000 pages are asked for on each
		pages := strings.Repeat("\x00\x00\x00\x07\x04\x00\x02\xff\x1f\x00\x00", 10_000)
		hold(16, "127.0.0.1", head("evil", "GET", "/jay/v1/databases/a/look", "Connection: Upgrade", "Upgrade: jay-look")+"jaylook\x01"+pages)
	}
	programs["looks with all snapshots"] = func() {
		db, err := lookInto()
		if err != nil {
			return // there are too many
		}
		defer db.Close()
		for range 300 {
			next, stop := iter.Pull2(db.Documents(t.Context(), jay.Scan{Prefix: "s/"}))
			defer stop()
			if _, err, _ := next(); err != nil {
				return
			}
		}
	}
	programs["large documents by looks"] = func() {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				db, err := lookInto()
				if err != nil {
					return // there are too many
				}
				defer db.Close()
				for _, i := range rand.Perm(lots) {
					_, _ = db.Get(t.Context(), fmt.Sprintf("lots/%d", i)) // it may be refused
				}
			})
		}
		all.Wait()
	}

	// The large documents, read by each route that reads some.
	var ids []string
	for i := range 16 {
		ids = append(ids, fmt.Sprintf("id=big/%d", i))
	}
	for route, path := range map[string]string{"docs": "/databases/a/docs?", "document": "/jay/v1/databases/a/document?", "revisions": "/databases/a/revisions?", "own revisions": "/jay/v1/databases/a/revisions?"} {
		programs["large documents by "+route] = func() {
			for _, id := range ids {
				send("GET", path+id, "")
			}
		}
	}
	programs["large documents by docs in one"] = func() { send("GET", "/databases/a/docs?"+strings.Join(ids, "&"), "") }
	programs["large documents by rows"] = func() {
		send("GET", "/jay/v1/databases/a/rows?collection=Big&from=0&column=t", "")
		send("GET", "/jay/v1/databases/a/rows?collection=Big&order=newest", "")
	}
	programs["large documents by query"] = func() {
		send("POST", "/jay/v1/databases/a/query", `{"query":"from Big order by t"}`)
	}
	programs["large documents by preview"] = func() {
		send("POST", "/jay/v1/databases/a/preview", `{"query":"from Big update { this.n = this.t.length }","first":16}`)
	}

	var byRoute []func()
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if strings.HasPrefix(name, "large documents by ") {
			byRoute = append(byRoute, programs[name])
		}
	}
	programs["large documents by all routes"] = func() { // at the same time: each has its own way to memory
		var all sync.WaitGroup
		for _, run := range byRoute {
			all.Go(run)
		}
		all.Wait()
	}

	programs["large documents, many at a time"] = func() { // eight requests for each program, and each for another document
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for _, i := range rand.Perm(lots) {
					send("GET", fmt.Sprintf("/databases/a/docs?id=lots/%d", i), "")
				}
			})
		}
		all.Wait()
	}

	// own returns the memory of the server, without files that the kernel keeps for it.
	own := func() int {
		stat, _ := os.ReadFile(group + "/memory.stat")
		_, rest, _ := strings.Cut("\n"+string(stat), "\nrss ")
		line, _, _ := strings.Cut(rest, "\n")
		n, _ := strconv.Atoi(line)
		return n
	}

	// others asks as the owner until stop is closed, from the address of the attack on a
	// connection that stays, and from another address on new ones.
	type counts struct {
		took  []time.Duration
		worst map[string]time.Duration // by method
		own   int                      // the most memory of the server that was seen
	}
	others := func(t *testing.T, stop chan struct{}) (found counts) {
		found.worst = make(map[string]time.Duration)
		var both sync.WaitGroup
		var mu sync.Mutex
		for _, address := range []string{"127.0.0.1", "127.0.0.2"} {
			client := from(address)
			client.Transport.(*http.Transport).DisableKeepAlives = address != "127.0.0.1"
			both.Go(func() {
				defer client.CloseIdleConnections()
				for i := 0; ; i++ {
					began := time.Now()
					method, path, body, want := "GET", "/databases/o/docs?id=v/1", "", 200
					if i%2 == 1 {
						method, path, body, want = "PUT", "/databases/o/docs?id=w/"+address, `{"n":1}`, 201
					}
					status, reply := ask(client, "owner", method, path, body)
					took := time.Since(began)
					if status != want {
						t.Errorf("%s %s from %s got %d after %s: %.200s", method, path, address, status, took, reply)
					}
					mu.Lock()
					found.took, found.own = append(found.took, took), max(found.own, own())
					found.worst[method] = max(found.worst[method], took.Round(time.Millisecond))
					mu.Unlock()
					select {
					case <-stop:
						return
					case <-time.After(50 * time.Millisecond):
					}
				}
			})
		}
		both.Wait()
		slices.Sort(found.took)
		return found
	}
	stop := make(chan struct{})
	time.AfterFunc(3*time.Second, func() { close(stop) })
	calm := others(t, stop)
	limit := max(time.Second, 20*calm.took[len(calm.took)/2])
	t.Logf("without an attack: others %d, median %s, worst %v; their limit is %s", len(calm.took), calm.took[len(calm.took)/2].Round(time.Millisecond), calm.worst, limit.Round(time.Millisecond))
	names, gone := slices.Sorted(maps.Keys(programs)), false
	for _, at := range []int{1, 16} {
		for _, name := range names {
			t.Run(fmt.Sprintf("%s/%d", name, at), func(t *testing.T) {
				if gone {
					t.Skip("the server has ended at an earlier program")
				}
				stop := make(chan struct{})
				var all sync.WaitGroup
				for range at {
					all.Go(programs[name])
				}
				go func() { all.Wait(); close(stop) }()
				found := others(t, stop)
				median := found.took[len(found.took)/2]
				t.Logf("%-34s %2d at once: others %d, median %s, worst %v; the server had up to %d MiB", name, at, len(found.took), median.Round(time.Millisecond), found.worst, found.own>>20)
				select {
				case err := <-ended:
					ended <- err
					gone = true
					t.Fatalf("%s, %d at once: the server has ended: %v", name, at, err)
				default:
				}
				if median > limit {
					t.Errorf("%s, %d at once: half of the other requests took more than %s", name, at, median)
				}
			})
		}
	}
}
