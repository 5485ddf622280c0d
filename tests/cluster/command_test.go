//go:build unix

package cluster_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// buildJay builds the command and returns its path.
func buildJay(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "jay")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "../../cmd/jay").CombinedOutput(); err != nil {
		t.Fatalf("build jay: %v: %s", err, out)
	}
	return program
}

// Ensure that the example prints what it is known to print: three processes on one machine
// agree, go on alone as far as they can, and agree again.
func TestExample(t *testing.T) {
	isLong(t)
	var errors bytes.Buffer
	c := exec.Command("../../examples/cluster/run.sh")
	c.Env = append(os.Environ(), "JAY="+buildJay(t), "PORT="+strconv.Itoa(portsInARow(t, 9)))
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, &errors, out)
	}
	got := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).ReplaceAllString(string(out), "<GUID>")
	got = regexp.MustCompile(`logs/\d{19}-`).ReplaceAllString(got, "logs/<etag>-")
	got = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(got, "127.0.0.1:<port>")
	before, after, _ := strings.Cut(got, "answer again")
	after = regexp.MustCompile(`invoices/\d+`).ReplaceAllString(after, "invoices/<n>") // a number may be left out
	got = before + "answer again" + after
	const golden = "../../examples/cluster/output.txt"
	if os.Getenv("JAY_REWRITE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// portsInARow returns the first of n ports that are free.
func portsInARow(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		first, err := strconv.Atoi(freePorts(t, 1)[0])
		if err != nil {
			t.Fatal(err)
		}
		if first+n < 65536 && areFree(first+1, n-1) {
			return first
		}
	}
	t.Fatal("there are no ports in a row")
	return 0
}

// Ensure that the command joins databases, refuses a tag that another one has, lists members,
// counts with them, and retires a tag.
func TestCommand(t *testing.T) {
	isLong(t)
	members := startEmbedded(t)
	program, dir, list := buildJay(t), t.TempDir(), strings.Join(members.urls(), ",")
	run := func(ok bool, args ...string) string {
		t.Helper()
		c := exec.Command(program, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "JAY_CLUSTER="+list)
		out, err := c.CombinedOutput()
		if (err == nil) != ok {
			t.Fatalf("jay %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	want := func(got, part string) {
		t.Helper()
		if !strings.Contains(got, part) {
			t.Errorf("got %q, want %q in it", got, part)
		}
	}
	want(run(true, "cluster", "status"), "no database has joined")
	want(run(true, "--db", "a", "--node-tag", "A", "cluster", "join", "--cluster-address", "http://a.example"), "a has the node tag A, as one of 1 node")
	want(run(true, "--db", "b", "--node-tag", "B", "cluster", "join"), "as one of 2 nodes")
	want(run(false, "--db", "c", "--node-tag", "B", "cluster", "join"), "belongs to another database")
	status := run(true, "cluster", "status")
	want(status, "http://a.example")
	want(status, "closed")
	want(run(true, "cluster", "status", "--json"), `"tag":"B"`)

	if err := os.WriteFile(filepath.Join(dir, "doc.json"), []byte(`{}`), 0o644); err != nil {
		t.Fatal(err)
	}
	want(run(true, "--db", "a", "put", "--id", "invoices|", "doc.json"), "invoices/1")
	want(run(true, "--db", "b", "put", "--id", "invoices|", "doc.json"), "invoices/2")
	want(run(true, "--db", "a", "ids", "next", "invoices"), "3")
	want(run(true, "--db", "a", "cmpxchg", "put", "leader", `"a"`), "")
	want(run(true, "--db", "b", "cmpxchg", "get", "leader"), `"value":"a"`)
	want(run(false, "--db", "b", "cmpxchg", "put", "leader", `"b"`), "conflict")
	want(run(false, "--db", "a", "--cluster", "http://127.0.0.1:1", "--cluster-timeout", "300ms", "cluster", "status"), "http://127.0.0.1:1: ")

	want(run(true, "cluster", "leave", "B", "--yes"), "B: left on")
	want(run(true, "cluster", "status"), "left on")
	want(run(false, "--db", "b", "put", "--id", "invoices|", "doc.json"), "retired")
	want(run(false, "--db", "d", "--node-tag", "B", "cluster", "join"), "belongs to another database")
	want(run(true, "--db", "b", "--copy-tag", "D", "cluster", "join"), "node tag D")
	want(run(true, "cluster", "resolve", "A"), "A: closed")
	want(run(false, "cluster", "resolve", "Z"), "no database has it")
}
