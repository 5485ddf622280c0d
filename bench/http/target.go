package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// target is a server in a process of its own.
type target struct {
	name               string // in the tables
	kind, dir, address string
	next               atomic.Int64 // number of the next document
	loaded             int          // how many documents of the first bulk insert there are

	process *exec.Cmd
	stdin   io.Closer // its end is that of the process
}

// document returns document i. Ten of them are in a bucket.
func document(i int) []byte {
	return fmt.Appendf(nil, `{"Number":%09d,"Bucket":%d,"Company":"companies/%d-A","OrderedAt":"2026-03-05T14:00:00.0000000Z","Freight":12.5,"State":"shipped",`+
		`"ShipTo":{"Line1":"12 Oak Avenue","City":"Springfield","Country":"USA","Location":{"Latitude":47.6,"Longitude":-122.3}},`+
		`"Lines":[{"Product":"products/11-A","ProductName":"Oat Flakes","PricePerUnit":14.25,"Quantity":12,"Discount":0.05},{"Product":"products/42-A","ProductName":"Barley","PricePerUnit":9.75,"Quantity":10,"Discount":0}],`+
		`"Note":"%0100d"}`, 100_000_000+i, i/10, i%90, i)
}

// queryAnswer is in each reply of a query.
var queryAnswer = []byte(`"Bucket":`)

// startTarget starts a program, this one or the same of another commit, as a server, and waits until
// it listens.
func startTarget(program, name, kind, dir string) (_ *target, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	t := &target{name: name, kind: kind, dir: dir, process: exec.Command(program, "-serve", kind, "-dir", dir)}
	t.process.Stderr = os.Stderr
	if t.stdin, err = t.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := t.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.process.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, found := strings.CutPrefix(lines.Text(), "listens on "); found {
			t.address = address
			return t, nil
		}
	}
	return nil, errors.Join(errors.New("the server did not start"), t.stop())
}

// stop ends the process.
func (t *target) stop() error {
	return errors.Join(t.stdin.Close(), t.process.Wait())
}

// peak returns the most memory that the process has had, or 0 where the system does not say it.
func (t *target) peak() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", t.process.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	after, _, _ = strings.Cut(after, "kB")
	n, _ := strconv.ParseInt(strings.TrimSpace(after), 10, 64) // 0 if it is not there
	return n << 10
}

func (t *target) pocketbase() bool { return strings.HasPrefix(t.kind, "pocketbase") }

// replies are the files in which the bare handler finds what Jay has replied, by request.
var replies = []string{"GET", "PUT", "query"}

// prepare makes the database of Jay, and gives the bare handler its replies.
func (t *target) prepare(jay *target) error {
	if t.pocketbase() {
		c, err := dial(t.address)
		if err != nil {
			return err
		}
		defer c.Close()
		return c.do(t.make("PUT", 0)) // for the first GETs
	}
	if t.kind == "jay" {
		jay = t
	}
	c, err := dial(jay.address)
	if err != nil {
		return err
	}
	defer c.Close()
	if t.kind == "jay" {
		for _, one := range [][]byte{
			request("PUT", "/admin/databases?name=bench", []byte("{}")),
			request("PUT", "/databases/bench/admin/indexes", []byte(`{"Indexes":[{"Name":"Orders/ByBucket","Maps":["from o in docs.Orders select new { o.Bucket }"]}]}`)),
			t.make("PUT", 0),
		} {
			if err := c.do(one); err != nil {
				return err
			}
		}
		return nil
	}
	// The reply to a query has ten documents: a bucket that no run has otherwise.
	const bucket = 50_000_000
	for i := range 10 {
		if err := c.do(jay.make("PUT", bucket*10+i)); err != nil {
			return err
		}
	}
	for _, what := range replies {
		if err := c.do(jay.make(what, bucket*10)); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(t.dir, what), c.body, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// make returns a request that puts or gets a document, or queries its bucket.
func (t *target) make(what string, number int) []byte {
	if t.pocketbase() {
		const records = "/api/collections/orders/records"
		switch what {
		case "PUT":
			return request("POST", records, pocketRecord(number))
		case "GET":
			return request("GET", records+"/"+pocketID(number), nil)
		}
		return request("GET", records+"?skipTotal=1&perPage=10&filter=body.Bucket%3D"+strconv.Itoa(number/10), nil)
	}
	switch what {
	case "PUT":
		return request("PUT", fmt.Sprintf("/databases/bench/docs?id=orders/%d", number), withCollection(number))
	case "GET":
		return request("GET", fmt.Sprintf("/databases/bench/docs?id=orders/%d", number), nil)
	}
	return request("POST", "/databases/bench/queries", fmt.Appendf(nil, `{"Query":"from Orders where Bucket = $p0","QueryParameters":{"p0":%d},"PageSize":10}`, number/10))
}

// withCollection returns a document as RavenDB's clients send it.
func withCollection(number int) []byte {
	body := document(number)
	return append(body[:len(body)-1], `,"@metadata":{"@collection":"Orders"}}`...)
}

func pocketID(number int) string { return fmt.Sprintf("order%010d", number) }

func pocketRecord(number int) []byte {
	return fmt.Appendf(nil, `{"id":%q,"body":%s}`, pocketID(number), document(number))
}

// pocketBatch is how many documents one transaction of PocketBase inserts.
const pocketBatch = 1000

// bulkRequests returns the requests that insert some documents: one stream for Jay, batches for
// PocketBase.
func (t *target) bulkRequests(c *conn, from, to int) (all [][]byte, err error) {
	if t.pocketbase() {
		for ; from < to; from += pocketBatch {
			body := []byte(`{"requests":[`)
			for i := from; i < min(to, from+pocketBatch); i++ {
				if i > from {
					body = append(body, ',')
				}
				body = fmt.Appendf(body, `{"method":"POST","url":"/api/collections/orders/records","body":%s}`, pocketRecord(i))
			}
			all = append(all, request("POST", "/api/batch", append(body, "]}"...)))
		}
		return all, nil
	}
	number := struct{ Id int64 }{}
	if t.kind == "jay" {
		if err := c.do(request("GET", "/databases/bench/operations/next-operation-id", nil)); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(c.body, &number); err != nil {
			return nil, err
		}
	}
	body := []byte{'['}
	for i := from; i < to; i++ {
		if i > from {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"Id":"orders/%d","Type":"PUT","Document":%s}`, i, withCollection(i))
	}
	return [][]byte{request("POST", fmt.Sprintf("/databases/bench/bulk_insert?id=%d", number.Id), append(body, ']'))}, nil
}

// embedded runs bulk writers without a server, in a process of their own too, and returns how
// many documents were stored in a second.
func embedded(dir string, writers, documents int) (rate float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	out, err := exec.Command(self, "-serve", "embedded", "-dir", dir, "-writers", strconv.Itoa(writers), "-documents", strconv.Itoa(documents)).Output()
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(out), &rate)
	return rate, errors.Join(err, os.RemoveAll(dir))
}
