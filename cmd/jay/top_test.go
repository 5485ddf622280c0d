package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const firstLook = `
jay_up{database="shop"} 1
jay_documents{collection="Users",database="shop"} 3
jay_documents{collection="Orders",database="shop"} 1000
jay_disk_bytes{database="shop"} 2e+06
jay_log_bytes{database="shop"} 1000
# TYPE jay_commits_total counter
jay_commits_total{database="shop"} 100
# TYPE jay_log_syncs_total counter
jay_log_syncs_total{database="shop"} 50
# TYPE jay_log_sync_seconds_total counter
jay_log_sync_seconds_total{database="shop"} 1
# TYPE jay_cache_hits_total counter
jay_cache_hits_total{database="shop"} 10
# TYPE jay_cache_misses_total counter
jay_cache_misses_total{database="shop"} 10
jay_memory_share_bytes{database="shop",share="work"} 1e+06
jay_memory_share_bytes{database="shop",share="blocks"} 5e+06
jay_memory_share_bytes{database="shop",share="garbage"} 2e+06
jay_memory_share_bytes{database="other",share="blocks"} 9e+06
jay_memory_share_used_bytes{database="shop",share="work"} 2000
jay_memory_share_used_bytes{database="shop",share="blocks"} 3e+06
jay_memory_share_used_bytes{database="shop",share="garbage"} 0
# TYPE jay_operation_duration_seconds histogram
jay_operation_duration_seconds_bucket{database="shop",outcome="ok",verb="get",le="0.001"} 5
jay_operation_duration_seconds_bucket{database="shop",outcome="ok",verb="get",le="0.01"} 5
jay_operation_duration_seconds_bucket{database="shop",outcome="ok",verb="get",le="+Inf"} 5
jay_operation_duration_seconds_sum{database="shop",outcome="ok",verb="get"} 1
jay_operation_duration_seconds_count{database="shop",outcome="ok",verb="get"} 5
`

var secondLook = strings.NewReplacer(
	"jay_documents{collection=\"Orders\",database=\"shop\"} 1000", "jay_documents{collection=\"Orders\",database=\"shop\"} 995",
	"jay_documents{collection=\"Users\",database=\"shop\"} 3", "jay_documents{collection=\"Users\",database=\"shop\"} 8",
	"commits_total{database=\"shop\"} 100", "commits_total{database=\"shop\"} 300",
	"syncs_total{database=\"shop\"} 50", "syncs_total{database=\"shop\"} 70",
	"seconds_total{database=\"shop\"} 1", "seconds_total{database=\"shop\"} 1.04",
	"hits_total{database=\"shop\"} 10", "hits_total{database=\"shop\"} 100",
	"le=\"0.001\"} 5", "le=\"0.001\"} 15",
	"le=\"0.01\"} 5", "le=\"0.01\"} 25",
	"le=\"+Inf\"} 5", "le=\"+Inf\"} 25",
	"verb=\"get\"} 5", "verb=\"get\"} 25",
).Replace(firstLook)

// Ensure that two looks become rates, and that a counter which has fallen begins at 0.
func TestTop_Rates(t *testing.T) {
	began := time.Now()
	before, err := parseMetrics([]byte(firstLook), began)
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseMetrics([]byte(secondLook), began.Add(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &app{stdout: bufio.NewWriter(&out)}
	if err := a.printTop(ratesOf(before, after)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"shop: 1,003 documents, 2.0 MB on disk, log 1.0 kB\n",
		"Commits 100/s, syncs 10/s of 2 ms, written 0 B/s, cache hits 100.0 %\n",
		"\nMemory 3.0 MB of 8.0 MB: blocks 3.0 MB of 5.0 MB, work 2.0 kB of 1.0 MB\n",
		"│ Orders     │       995 │",
		"│ Users      │         8 │",
		"│ get       │         10 │        0 │ ≤ 1 ms │ ≤ 10 ms │",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwithout %q", out.String(), want)
		}
	}
	if r := ratesOf(after, metrics{began.Add(4 * time.Second), before.families})[0]; r.Commits != 50 || len(r.Operations) != 1 || r.Operations[0].PerSecond != 2.5 {
		t.Errorf("after a restart: %+v", r)
	}
}

// Ensure that of many collections those that change are shown, each in its place by name, and that
// all of them are in the JSON.
func TestTop_Collections(t *testing.T) {
	look := func(at time.Time, busy int) metrics {
		var b strings.Builder
		b.WriteString("jay_up{database=\"\"} 1\n")
		for i := range 20 {
			fmt.Fprintf(&b, "jay_documents{collection=\"C%02d\",database=\"\"} %d\n", i, 1000-i)
		}
		fmt.Fprintf(&b, "jay_documents{collection=\"Busy\",database=\"\"} %d\n", busy)
		m, err := parseMetrics([]byte(b.String()), at)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	began := time.Now()
	r := ratesOf(look(began, 30), look(began.Add(2*time.Second), 10))[0]
	var names []string
	for _, c := range shown(r.Collections) {
		names = append(names, c.Collection)
	}
	if got := strings.Join(names, " "); got != "Busy C00 C01 C02 C03 C04 C05 C06" {
		t.Errorf("shown are %s", got)
	}
	if len(r.Collections) != 21 || r.Collections[0] != (topCollection{"Busy", 10, -10}) {
		t.Errorf("all are %v", r.Collections)
	}
	var b strings.Builder
	r.write(&b, 0)
	if out := b.String(); !strings.Contains(out, "│ −10") && !strings.Contains(out, "−10 │") || !strings.Contains(out, "and 13 more") {
		t.Errorf("got\n%s", out)
	}
}

// Ensure that a collection which was there, but had no figure of its own, has not grown by all its
// documents: one of a database that was not open, and one that was among the others.
func TestTop_CollectionsThatAppear(t *testing.T) {
	began := time.Now()
	rates := func(before, after string) []topCollection {
		var looks [2]metrics
		for i, text := range []string{before, after} {
			var err error
			if looks[i], err = parseMetrics([]byte("jay_up{database=\"\"} 1\n"+text), began.Add(time.Duration(i)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		return ratesOf(looks[0], looks[1])[0].Collections
	}
	orders := func(n int) string { return fmt.Sprintf("jay_documents{collection=\"Orders\",database=\"\"} %d\n", n) }
	const others = "jay_documents{collection=\"@others\",database=\"\"} 5\n"
	for what, c := range map[string]struct {
		before, after string
		grows         float64
	}{
		"a database that was not open": {"", orders(900), 0},
		"one of the others":            {others, others + orders(900), 0},
		"a new one":                    {"jay_documents{collection=\"Users\",database=\"\"} 1\n", orders(7), 7},
	} {
		all := rates(c.before, c.after)
		if got := all[len(all)-1]; got.Collection != "Orders" || got.PerSecond != c.grows {
			t.Errorf("%s: %+v", what, all)
		}
	}
}

// Ensure that top asks the program again and again, and that it says what is wrong with
// answers that are no metrics of a database.
func TestTop_Bounds(t *testing.T) {
	answer := firstLook
	looks := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		looks++
		if answer == "" {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	top := func() (string, error) {
		var out bytes.Buffer
		a := &app{stdout: bufio.NewWriter(&out), json: true, getenv: func(string) string { return "" }}
		c := topCommand{URL: server.URL, Interval: 10 * time.Millisecond, Count: 2}
		err := c.Run(context.Background(), a)
		return out.String(), err
	}
	out, err := top()
	if err != nil || looks != 3 || strings.Count(out, "\n") != 2 || !strings.Contains(out, `"database":"shop","up":true`) {
		t.Errorf("%d looks, %v: %s", looks, err, out)
	}
	for _, c := range []struct{ answer, want string }{
		{"", "418"},
		{"go_goroutines 1\n", "no jay_up"},
		{"{}", "no metrics"},
		{strings.Repeat("# \n", maxMetricsBytes/3+1), "more than"},
	} {
		answer = c.answer
		if _, err := top(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: got %v, want an error with %q", c.answer, err, c.want)
		}
	}
}

// Ensure that top shows its token to a server that asks for one, from the flag and from the
// environment, and that it trusts the authorities and shows the certificate that are named.
func TestTop_TokenIgnored(t *testing.T) {
	asked := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer jay_t" && (r.TLS == nil || len(r.TLS.PeerCertificates) == 0) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, firstLook)
	}
	plain := httptest.NewServer(http.HandlerFunc(asked))
	defer plain.Close()
	encrypted := httptest.NewUnstartedServer(http.HandlerFunc(asked))
	encrypted.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	encrypted.StartTLS()
	defer encrypted.Close()
	ca, cert, key := pemFiles(t, encrypted.TLS.Certificates[0])

	for _, c := range []struct {
		name   string
		env    string
		args   []string
		exit   int
		stderr string
	}{
		{"no token", "", []string{"top", plain.URL}, exitError, "it asks for a token"},
		{"a flag", "", []string{"top", plain.URL, "--token=jay_t"}, 0, ""},
		{"the environment", "jay_t", []string{"top", plain.URL}, 0, ""},
		{"another token", "jay_t", []string{"top", plain.URL, "--token=jay_u"}, exitError, "401"},
		{"in the open", "jay_t", []string{"top", "http://jay.example/metrics"}, exitUsage, "without TLS"},
		{"an unknown authority", "jay_t", []string{"top", encrypted.URL}, exitError, "certificate"},
		{"an authority of one's own", "jay_t", []string{"top", encrypted.URL, "--url-ca", ca}, 0, ""},
		{"a certificate", "", []string{"top", encrypted.URL, "--url-ca", ca, "--url-cert", cert, "--url-key", key}, 0, ""},
		{"no key", "", []string{"top", encrypted.URL, "--url-ca", ca, "--url-cert", cert}, exitUsage, "belong together"},
		{"no authority", "", []string{"top", encrypted.URL, "--url-ca", key}, exitError, "no certificate"},
		{"--url", "", []string{"top", plain.URL, "--url", plain.URL + "/databases/x"}, exitUsage, "not both"},
		{"no address", "", []string{"top", "metrics"}, exitUsage, "the address of metrics"},
		{"a directory", "", []string{"stats", "--token=jay_t"}, exitUsage, "--token is for a server"},
	} {
		var out, errs bytes.Buffer
		args := c.args
		if args[0] == "top" {
			args = append(args, "--count=1", "--interval=10ms")
		}
		got := run(context.Background(), args, strings.NewReader(""), &out, &errs, func(name string) string {
			if name == "JAY_TOKEN" {
				return c.env
			}
			return ""
		})
		if got != c.exit || !strings.Contains(errs.String(), c.stderr) || c.exit == 0 && !strings.Contains(out.String(), "shop: ") {
			t.Errorf("%s: exit %d, want %d: %s%s", c.name, got, c.exit, &out, &errs)
		}
	}
}

// pemFiles writes a certificate and its key into files. It is its own authority.
func pemFiles(t *testing.T, pair tls.Certificate) (ca, cert, key string) {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, cert, key
}

// Ensure that the row of a verb keeps its place when another verb becomes the more frequent
// one.
func TestTop_RowsChangePlaces(t *testing.T) {
	look := func(get, put int) metrics {
		text := "jay_up 1\n# TYPE jay_operation_duration_seconds histogram\n"
		for verb, n := range map[string]int{"get": get, "put": put} {
			text += fmt.Sprintf("jay_operation_duration_seconds_bucket{outcome=\"ok\",verb=%q,le=\"+Inf\"} %d\njay_operation_duration_seconds_count{outcome=\"ok\",verb=%q} %d\n", verb, n, verb, n)
		}
		m, err := parseMetrics([]byte(text), time.Unix(int64(get+put), 0))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, after := range []metrics{look(9, 5), look(5, 9)} {
		if got := ratesOf(look(1, 1), after)[0].Operations; len(got) != 2 || got[0].Verb != "get" || got[1].Verb != "put" {
			t.Errorf("got %+v, want get before put", got)
		}
	}
}

// Ensure that q leaves, and that other keys do not.
func TestTop_QuitKey(t *testing.T) {
	typed := strings.NewReader("x\x1b[Aq and more than one read takes")
	awaitKey(iotest.OneByteReader(typed))
	if rest, err := io.ReadAll(typed); err != nil || string(rest) != " and more than one read takes" {
		t.Errorf("left %q, %v", rest, err)
	}
}
