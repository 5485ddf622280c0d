package shared_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/schema"
)

// countingCompiler compiles every schema into a validator that finds nothing, and counts its calls. Those wait while wait is set.
type countingCompiler struct {
	validated atomic.Int64
	begun     chan struct{}
	wait      atomic.Pointer[chan struct{}]
}

// Compile implements schema.Compiler.
func (c *countingCompiler) Compile([]byte) (schema.Validator, error) { return c, nil }

// Validate implements schema.Validator.
func (c *countingCompiler) Validate([]byte, int) ([]schema.Violation, int) {
	c.validated.Add(1)
	time.Sleep(time.Millisecond) // several looks of other processes fall into a validation
	if wait := c.wait.Load(); wait != nil {
		select {
		case c.begun <- struct{}{}:
		default:
		}
		<-*wait
	}
	return nil, 0
}

// Ensure that one process at a time validates documents against a rule, whoever has set it and whoever waits for the report, and that another
// one does it when that stands still.
func TestValidating_OneProcess(t *testing.T) {
	defer checks.SetSchemaLook(5 * time.Millisecond)()
	driver := &cuttable{Driver: jaytest.SharedDriver(t)}
	open := func(o jay.Options, c *countingCompiler) *jay.DB {
		t.Helper()
		o.ClusterPeriod, o.Schemas = period, c
		return jaytest.Open(t, "db", &o)
	}
	const documents = 30
	var compilers [2]countingCompiler
	compilers[0].begun = make(chan struct{}, 1)
	first := open(jay.Options{Engine: driver}, &compilers[0])
	second := open(jay.Options{Engine: driver.Driver}, &compilers[1])
	for i := range documents {
		put(t, first, fmt.Sprint("orders/", i), `{}`, jay.InCollection("Orders"))
	}
	rules := 0
	set := func(db *jay.DB) {
		t.Helper()
		rules++ // another rule each time
		must(t, db.Definitions().Schemas().Set(ctx, schema.Rule{Collection: "Orders", Mode: schema.Warn, Schema: fmt.Appendf(nil, `{"title":"%d"}`, rules)}))
	}
	report := func(db *jay.DB) {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		got, err := db.Definitions().Schemas().Wait(ctx, "Orders")
		must(t, err)
		want(t, "documents", got.Documents, documents)
	}
	for i, set1 := range []*jay.DB{first, second, second, first} {
		set(set1)
		report([]*jay.DB{second, second, first, first}[i])
		want(t, "documents that were validated", compilers[0].validated.Load()+compilers[1].validated.Load(), int64(documents*(i+1)))
	}

	held := make(chan struct{})
	compilers[0].wait.Store(&held)
	for round := 0; ; round++ { // the first process takes the work at some time
		until(t, "no process has the work", func() bool {
			one, err := checks.Validates(first)
			must(t, err)
			other, err := checks.Validates(second)
			must(t, err)
			return !one && !other
		})
		set(first)
		select {
		case <-compilers[0].begun:
		case <-time.After(50 * time.Millisecond):
			if round > 1000 {
				t.Fatal("the first process never validates")
			}
			report(second)
			continue
		}
		break
	}
	resume := driver.cut()
	report(second)
	compilers[0].wait.Store(nil)
	close(held)
	resume()
	report(first)
	agree(t, second)
	must(t, first.Close())
	set(second)
	report(second)
	must(t, second.Close())
}
