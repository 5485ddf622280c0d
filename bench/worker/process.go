package worker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/jaydb/jay/bench/workload"
)

// Process is a worker process, seen from the one that started it. Between two
// requests it is stopped, where the operating system can do that, so that the
// background work of one engine never runs on another one's clock.
type Process struct {
	spec      Spec
	cmd       *exec.Cmd
	in        io.WriteCloser
	requests  *json.Encoder
	responses *json.Decoder
}

// live are the worker processes that have not ended.
var live sync.Map // *Process → struct{}

// KillAll ends all worker processes.
func KillAll() {
	live.Range(func(p, _ any) bool {
		_ = p.(*Process).cmd.Process.Kill() // it may have ended
		return true
	})
}

// Start starts a worker process and has it prepare for the first round. If the
// workload wants the process killed once it is prepared, Start does so, and
// goes on with a second one.
func Start(spec Spec, killed bool) (*Process, error) {
	p, err := start(spec)
	if err != nil || !killed {
		return p, err
	}
	if err := p.Kill(); err != nil {
		return nil, err
	}
	spec.Reuse = true
	return start(spec)
}

func start(spec Spec) (*Process, error) {
	p, err := launch(spec)
	if err != nil {
		return nil, err
	}
	if _, err := p.ask(request{Do: doStart, Spec: &spec}); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// launch starts the process.
func launch(spec Spec) (*Process, error) {
	var err error
	program := spec.Program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	p := &Process{spec: spec, cmd: exec.Command(program, Subcommand)}
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = DieWithParent()
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.requests, p.responses = json.NewEncoder(p.in), json.NewDecoder(bufio.NewReader(out))
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	live.Store(p, struct{}{})
	return p, nil
}

// ask sends a request and waits for the response.
func (p *Process) ask(req request) (*response, error) {
	if err := resume(p.cmd.Process); err != nil {
		return nil, err
	}
	var res response
	err := p.requests.Encode(req)
	if err == nil {
		err = p.responses.Decode(&res)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, %s: the process is gone: %w", p.spec.Engine, p.spec.Workload, err)
	}
	if res.Error != "" {
		return nil, fmt.Errorf("%s, %s: %s", p.spec.Engine, p.spec.Workload, res.Error)
	}
	if req.Do == doFinish {
		return &res, nil // it exits without being killed
	}
	return &res, pause(p.cmd.Process)
}

// Round runs the next round.
func (p *Process) Round() (workload.Result, error) {
	res, err := p.ask(request{Do: doRound})
	if err != nil {
		return workload.Result{}, err
	}
	return *res.Result, nil
}

// CPU returns how long the process has been on a processor so far, 0 where that
// cannot be found out.
func (p *Process) CPU() time.Duration { return cpuTime(p.cmd.Process.Pid) }

// Finish has the data checked, and returns when the process has ended.
func (p *Process) Finish() (workload.Summary, error) {
	res, err := p.ask(request{Do: doFinish})
	if err != nil {
		return workload.Summary{}, err
	}
	defer live.Delete(p)
	return *res.Summary, errors.Join(p.in.Close(), p.cmd.Wait())
}

// Kill ends the process as `kill -9` does.
func (p *Process) Kill() error {
	defer live.Delete(p)
	err := p.cmd.Process.Kill()
	// It cannot have ended well, and says so.
	_ = p.cmd.Wait()
	return err
}
