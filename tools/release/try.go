package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// user is a machine of a user who has nothing of Jay: modules come from the proxy, and those of others from the cache
// of this machine or from where they come otherwise.
type user struct {
	dir string   // what the user has
	env []string // of Go's command
}

// newUser returns a user of a proxy who works in a folder.
func newUser(proxy, dir string) *user {
	cache := filepath.Join(goEnv("GOMODCACHE"), "cache", "download")
	return &user{dir: dir, env: append(os.Environ(),
		"GOPROXY="+fileURL(proxy)+","+fileURL(cache)+","+goEnv("GOPROXY"),
		"GONOSUMDB=github.com/jaydb/*", "GOWORK=off", "GOBIN=", "GOTOOLCHAIN=local",
		"GOFLAGS=-modcacherw", "CGO_ENABLED=0",
		"GOPATH="+filepath.Join(dir, "go"), "GOMODCACHE="+filepath.Join(dir, "mod"))}
}

// fileURL is the URL of a folder.
func fileURL(dir string) string { return "file://" + filepath.ToSlash(dir) }

// goEnv returns a variable of Go's command.
func goEnv(name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// run runs a command in a folder of the user, and returns what it prints.
func (u *user) run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = filepath.Join(u.dir, dir), append(u.env, env...)
	return printed(c)
}

// module makes an empty module with a program, and gets another module for it.
func (u *user) module(ctx context.Context, name, program, path, version string) error {
	dir := filepath.Join(u.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"mod", "init", "example.com/" + name}, {"get", path + "@" + version}, {"mod", "tidy"}} {
		if _, err := u.run(ctx, name, nil, "go", args...); err != nil {
			return err
		}
	}
	return nil
}

// try takes the modules as users do.
func (r *release) try(ctx context.Context, u *user) error {
	for i := range r.modules {
		m := &r.modules[i]
		if m.dir == commandDir {
			continue
		}
		r.say("go get %s@%s", m.path(), r.version)
		if err := r.tryModule(ctx, u, m); err != nil {
			return err
		}
	}
	r.say("go install %s/%s@%s", r.modules[0].path(), commandDir, r.version)
	return r.tryCommand(ctx, u)
}

// commandDir is the folder of the module that users install.
const commandDir = "cmd/jay"

// tryModule compiles a program that imports each package of a module that is not internal; of the root it runs
// README's program.
func (r *release) tryModule(ctx context.Context, u *user, m *module) error {
	name := "uses-" + strings.ReplaceAll(path.Join("jay", m.dir), "/", "-")
	program, err := r.program(ctx, m)
	if err != nil {
		return err
	}
	if err := u.module(ctx, name, program, m.path(), r.version); err != nil {
		return err
	}
	if m.dir != "." {
		_, err := u.run(ctx, name, nil, "go", "build", "-o", os.DevNull, ".")
		return err
	}
	out, err := u.run(ctx, name, nil, "go", "run", ".")
	if err == nil && strings.TrimSpace(out) == "" {
		return fmt.Errorf("README's program prints nothing")
	}
	return err
}

// program is what a user of a module writes first.
func (r *release) program(ctx context.Context, m *module) (string, error) {
	if m.dir == "." {
		text, err := os.ReadFile(filepath.Join(r.tree, "README.md"))
		if err != nil {
			return "", err
		}
		return readmeProgram(string(text))
	}
	c := exec.CommandContext(ctx, "go", "list", "-find", "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, "./...")
	c.Dir = filepath.Join(r.tree, filepath.FromSlash(m.dir))
	var why strings.Builder
	c.Stderr = &why
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w: %s", c, err, strings.TrimSpace(why.String()))
	}
	text := "package main\n\n"
	for _, path := range strings.Fields(string(out)) {
		if !strings.Contains(path+"/", "/internal/") {
			text += fmt.Sprintf("import _ %q\n", path)
		}
	}
	return text + "\nfunc main() {}\n", nil
}

// readmeProgram returns the first whole program of a page.
func readmeProgram(page string) (string, error) {
	for part := range strings.SplitSeq(page, "```go\n") {
		if text, _, closed := strings.Cut(part, "\n```"); closed && strings.Contains(text, "package main\n") {
			return text + "\n", nil
		}
	}
	return "", fmt.Errorf("README has no program")
}

// tryCommand installs the command and runs it.
func (r *release) tryCommand(ctx context.Context, u *user) error {
	if err := os.MkdirAll(filepath.Join(u.dir, "demo"), 0o755); err != nil {
		return err
	}
	binary, err := r.install(ctx, u, runtime.GOOS+"/"+runtime.GOARCH)
	if err != nil {
		return err
	}
	out, err := u.run(ctx, "demo", nil, binary, "--version")
	if err != nil {
		return err
	}
	if !strings.Contains(out, " "+r.version+" ") {
		return fmt.Errorf("jay --version prints %q, without %s", out, r.version)
	}
	r.say("jay demo")
	_, err = u.run(ctx, "demo", nil, binary, "demo")
	return err
}

// install installs the command for a system, and returns the name of its file.
func (r *release) install(ctx context.Context, u *user, target string) (string, error) {
	goos, goarch, found := strings.Cut(target, "/")
	if !found {
		return "", fmt.Errorf("%q is no system such as linux/amd64", target)
	}
	env := []string{"GOOS=" + goos, "GOARCH=" + goarch}
	path := r.modules[0].path() + "/" + commandDir + "@" + r.version
	if _, err := u.run(ctx, "", env, "go", "install", "-trimpath", "-ldflags=-s -w", path); err != nil {
		return "", err
	}
	name := filepath.Join(u.dir, "go", "bin")
	if goos != runtime.GOOS || goarch != runtime.GOARCH {
		name = filepath.Join(name, goos+"_"+goarch)
	}
	name = filepath.Join(name, "jay")
	if goos == "windows" {
		name += ".exe"
	}
	_, err := os.Stat(name)
	return name, err
}
