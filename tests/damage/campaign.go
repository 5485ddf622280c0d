package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// childEnv is the environment of children.
func childEnv() []string { return append(os.Environ(), childVariable+"=1") }

// childVariable says to a test binary that it is such a child.
const childVariable = "JAY_DAMAGE_CHILD"

// campaign builds the images and judges every case. What it is doing goes to
// progress.
func campaign(c config, progress io.Writer) (*report, error) {
	dir, err := os.MkdirTemp(c.dir, "jay-damage-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	start := time.Now()
	random := rand.New(rand.NewPCG(c.seed, 0))
	var images []*image
	ends := []string{endQuiet, endLoaded, endKilled}
	for _, end := range ends {
		for _, relaxed := range []bool{false, true} {
			below := filepath.Join(dir, strconv.Itoa(len(images)))
			im, err := buildImage(below, end, relaxed)
			if err != nil {
				return nil, err
			}
			if err := im.want.save(im.dir + ".json"); err != nil {
				return nil, err
			}
			images = append(images, im)
		}
	}
	each := c
	each.images = len(images)
	each.random = (c.random + len(images) - 1) / len(images)
	var cases []testCase
	for i, im := range images {
		all, err := casesOf(i, im, each, random)
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			if c.share <= 1 || random.IntN(c.share) == 0 {
				cases = append(cases, one)
			}
		}
	}
	fmt.Fprintf(progress, "%d databases in %s, %d cases\n", len(images), time.Since(start).Round(time.Second), len(cases))

	outcomes := make([]outcome, len(cases))
	var next, done atomic.Int64
	var wg sync.WaitGroup
	failures := make([]error, c.parallel)
	for worker := range c.parallel {
		wg.Go(func() {
			j := &judging{timeout: c.timeout}
			defer j.stop()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(cases) {
					return
				}
				one := cases[i]
				im := images[one.image]
				o, err := j.judge(task{
					Image:   im.dir,
					State:   im.dir + ".json",
					Work:    filepath.Join(dir, "work"+strconv.Itoa(worker)),
					Relaxed: im.relaxed,
					Must:    i%2 == 0,
					Damage:  one.damage,
				})
				if err != nil {
					failures[worker] = err
					return
				}
				outcomes[i] = *o
				if n := done.Add(1); n%1000 == 0 {
					fmt.Fprintf(progress, "%d of %d cases, %s\n", n, len(cases), time.Since(start).Round(time.Second))
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return newReport(c, images, cases, outcomes, time.Since(start)), nil
}

// judging is a child that judges cases, and its successors: one that panics
// or hangs is replaced.
type judging struct {
	timeout time.Duration
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  *bytes.Buffer
}

func (j *judging) start() error {
	j.cmd = exec.Command(os.Args[0], judgeCommand)
	j.cmd.Env = childEnv()
	j.stderr = new(bytes.Buffer)
	j.cmd.Stderr = j.stderr
	var err error
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	j.out = bufio.NewReader(out)
	return j.cmd.Start()
}

// stop ends the child and returns what it had to say.
func (j *judging) stop() string {
	if j.cmd == nil {
		return ""
	}
	_ = j.in.Close()
	_ = j.cmd.Process.Kill()
	_ = j.cmd.Wait()
	j.cmd = nil
	return j.stderr.String()
}

// judge has one case judged.
func (j *judging) judge(t task) (*outcome, error) {
	if j.cmd == nil {
		if err := j.start(); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	hangs := make(chan struct{})
	process := j.cmd.Process
	timer := time.AfterFunc(j.timeout, func() { close(hangs); _ = process.Kill() })
	defer timer.Stop()
	_, err = fmt.Fprintf(j.in, "%s\n", text)
	var line []byte
	if err == nil {
		line, err = j.out.ReadBytes('\n')
	}
	if err == nil {
		var o outcome
		return &o, json.Unmarshal(line, &o)
	}

	said := j.stop()
	select {
	case <-hangs:
		return &outcome{Class: hung, Text: "no answer after " + j.timeout.String()}, nil
	default:
	}
	if strings.HasPrefix(said, "damage:") { // the judge itself failed
		return nil, fmt.Errorf("%+v: %s", t.Damage, said)
	}
	if len(said) > 4000 {
		said = said[:4000]
	}
	return &outcome{Class: panicked, Text: said}, nil
}
