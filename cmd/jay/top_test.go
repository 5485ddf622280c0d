package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
# TYPE jay_operation_duration_seconds histogram
jay_operation_duration_seconds_bucket{database="shop",outcome="ok",verb="get",le="0.001"} 5
jay_operation_duration_seconds_bucket{database="shop",outcome="ok",verb="get",le="0.01"} 5
jay_operation_duration_seconds_bucket{database="shop",outcome="ok",verb="get",le="+Inf"} 5
jay_operation_duration_seconds_sum{database="shop",outcome="ok",verb="get"} 1
jay_operation_duration_seconds_count{database="shop",outcome="ok",verb="get"} 5
`

var secondLook = strings.NewReplacer(
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
		a := &app{stdout: bufio.NewWriter(&out), json: true}
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
