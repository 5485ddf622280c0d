// Package pgtest starts a PostgreSQL server for tests, with files of its own.
package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// URL and need are environment variables. With URL, tests use that server, and those that stop a server are skipped. With need, tests fail where there is none.
const (
	URL  = "JAY_SQL_URL"
	need = "JAY_NEED_POSTGRES"
)

// Server is a server for tests.
type Server struct {
	url string // of one that does not belong to the tests; or empty
	bin string
	dir string // its data directory, and its socket

	process *exec.Cmd
	stop    io.Closer
}

// ErrNone is returned when there is no PostgreSQL on this machine, and need be none: the test is skipped.
var ErrNone = errors.New(none)

const none = "no PostgreSQL: install it (make postgres), or point " + URL + " at a server"

// Start starts a server, whose files are in a directory that Stop removes.
func Start() (*Server, error) {
	if url := os.Getenv(URL); url != "" {
		return &Server{url: url}, nil
	}
	bin, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "jay-postgres-")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir}
	if err := s.init(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := s.Restart(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// find returns the directory with the programs of the newest version.
func find() (string, error) {
	if file, err := exec.LookPath("initdb"); err == nil {
		file, err = filepath.EvalSymlinks(file)
		return filepath.Dir(file), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	switch {
	case err != nil:
		return "", err
	case len(found) == 0 && os.Getenv(need) != "":
		return "", errors.New(none + "; " + need + " is set")
	case len(found) == 0:
		return "", ErrNone
	}
	version := func(file string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(file))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

func (s *Server) init() error {
	data := filepath.Join(s.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := giveAway(s.dir, data); err != nil {
		return err
	}
	out, err := s.command(filepath.Join(s.bin, "initdb"), "--no-sync", "--username=jay", "--auth=trust", "--encoding=UTF8", "--locale=C", data).CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// command returns a command that runs as a user who may run a server.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = s.dir
	asOther(c)
	return c
}

// A server ends, and its files go, when the process of the tests does, however that ends.
const guard = `"$@" & read _; kill -INT $!; wait $!; test -e "$JAY_KEEP" || rm -rf "$JAY_DIR"`

// Restart starts the server again, after Kill.
func (s *Server) Restart() error {
	s.release()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c := s.command("/bin/sh", "-c", guard, "sh", filepath.Join(s.bin, "postgres"), "-D", filepath.Join(s.dir, "data"), "-k", s.dir, "-c", "listen_addresses=",
		"-c", "max_connections=800", "-c", "fsync=on")
	c.Env = append(os.Environ(), "JAY_DIR="+s.dir, "JAY_KEEP="+s.keep())
	c.Stdout, c.Stderr = log, log
	stop, err := c.StdinPipe()
	if err != nil {
		return err
	}
	os.Remove(s.keep())
	if err := c.Start(); err != nil {
		return err
	}
	s.process, s.stop = c, stop
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if s.command(filepath.Join(s.bin, "pg_isready"), "-q", "-h", s.dir).Run() == nil {
			return nil
		}
		if time.Now().After(until) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("the server does not answer: %s", text)
		}
	}
}

// keep is a file that says that the directory stays when the server has ended.
func (s *Server) keep() string { return filepath.Join(s.dir, "keep") }

// Own reports whether the server belongs to the tests, so that they may stop it.
func (s *Server) Own() bool { return s.url == "" }

// URL returns the address of a database, with parameters such as "a=b".
func (s *Server) URL(parameters ...string) string {
	url := s.url
	if url == "" {
		url = "postgres://jay@/postgres?host=" + s.dir
	}
	for _, p := range parameters {
		if strings.Contains(url, "?") {
			url += "&" + p
		} else {
			url += "?" + p
		}
	}
	return url
}

// Kill ends the server as a failure of its machine would: without a chance to write anything. Its files stay.
func (s *Server) Kill() error {
	text, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.keep(), nil, 0o600); err != nil {
		return err
	}
	if err := killAll(pid); err != nil {
		return err
	}
	s.release()
	return nil
}

// release ends the guard.
func (s *Server) release() {
	if s.process == nil {
		return
	}
	s.stop.Close()
	s.process.Wait()
	s.process = nil
}

// Stop ends the server and removes its files.
func (s *Server) Stop() error {
	if !s.Own() {
		return nil
	}
	s.release()
	return os.RemoveAll(s.dir)
}
