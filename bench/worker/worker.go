// Package worker runs each engine in a process of its own. The process is the
// same program, started again with a hidden subcommand; it reads requests from
// its standard input and answers on its standard output, one line of JSON
// each.
package worker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/workload"
)

// Subcommand is the first argument of a worker process.
const Subcommand = "worker"

// Spec says what a worker is for.
type Spec struct {
	// Program is the file of the program to start, "" for the one that runs. It
	// may be built from another commit that has this protocol.
	Program  string          `json:"-"`
	Engine   string          `json:"engine"`
	Workload string          `json:"workload"`
	Params   workload.Params `json:"params"`
	// Dir is empty, or, with Reuse, as an earlier process left it.
	Dir   string `json:"dir"`
	Reuse bool   `json:"reuse,omitempty"`
	// ProfileDir, if not empty, gets a CPU profile of every round.
	ProfileDir string `json:"profileDir,omitempty"`
}

// The things that a worker can be asked to do.
const (
	doStart  = "start" // comes first, with a Spec
	doRound  = "round"
	doFinish = "finish" // comes last
)

type request struct {
	Do   string `json:"do"`
	Spec *Spec  `json:"spec,omitempty"`
}

type response struct {
	Error   string            `json:"error,omitempty"`
	Result  *workload.Result  `json:"result,omitempty"`
	Summary *workload.Summary `json:"summary,omitempty"`
}

// Main is what a worker process does instead of everything else. What engines
// print goes to the standard error.
func Main() error {
	runtime.UnlockOSThread() // of DieWithParent, which is for the other program: a goroutine with a thread of its own is slow to wake
	out := os.Stdout
	os.Stdout = os.Stderr
	return Serve(os.Stdin, out)
}

// Serve answers requests until the last one, or until in ends.
func Serve(in io.Reader, out io.Writer) error {
	requests, responses := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	var s server
	for {
		var req request
		err := requests.Decode(&req)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		res, err := s.answer(&req)
		if err != nil {
			res = &response{Error: err.Error()}
		}
		if err := responses.Encode(res); err != nil {
			return err
		}
		if req.Do == doFinish {
			return nil
		}
	}
}

// server is the state of a worker process.
type server struct {
	spec  *Spec
	run   *workload.Run
	round int
}

func (s *server) answer(req *request) (*response, error) {
	if s.run == nil && req.Do != doStart {
		return nil, fmt.Errorf("asked to %s before the start", req.Do)
	}
	switch req.Do {
	case doStart:
		s.spec = req.Spec
		return &response{}, s.start()
	case doRound:
		result, err := s.profiled()
		return &response{Result: &result}, err
	case doFinish:
		summary, err := s.run.Finish()
		return &response{Summary: &summary}, err
	}
	return nil, fmt.Errorf("asked to %q", req.Do)
}

func (s *server) start() error {
	maker, ok := engine.ByName(s.spec.Engine)
	if !ok {
		return fmt.Errorf("no engine %q", s.spec.Engine)
	}
	w, err := workload.ByName(s.spec.Params, s.spec.Workload)
	if err != nil {
		return err
	}
	if s.run, err = workload.NewRun(w, s.spec.Params, maker, s.spec.Dir); err != nil {
		return err
	}
	return s.run.Start(s.spec.Reuse)
}

// profiled runs a round, with a CPU profile of it if one is asked for. The
// profile has the round's check in it too.
func (s *server) profiled() (_ workload.Result, err error) {
	s.round++
	if s.spec.ProfileDir == "" {
		return s.run.Round()
	}
	name := fmt.Sprintf("%s-%s-%d.pprof", fileName(s.spec.Workload), s.spec.Engine, s.round)
	f, err := os.Create(filepath.Join(s.spec.ProfileDir, name))
	if err != nil {
		return workload.Result{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return workload.Result{}, err
	}
	defer pprof.StopCPUProfile()
	return s.run.Round()
}

// fileName makes a file's name of a workload's.
func fileName(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, name), "-")
}
