package report

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/stats"
)

// Machine says where, when and with what a report was made.
type Machine struct {
	Date       string `json:"date"`
	Commit     string `json:"commit"` // of the working tree; ends in "+changes" if it has any
	Go         string `json:"go"`
	System     string `json:"system"`
	Kernel     string `json:"kernel,omitempty"`
	CPU        string `json:"cpu,omitempty"`
	Cores      int    `json:"cores"`
	Memory     string `json:"memory,omitempty"`
	FileSystem string `json:"fileSystem,omitempty"` // of the data
	// SyncMicros is the median time of a write of 4 KiB and its sync.
	SyncMicros float64 `json:"syncMicros"`
	// Versions are those of the engines' modules, by path.
	Versions map[string]string `json:"versions"`
}

// ThisMachine describes the machine; dir is where the data will be.
func ThisMachine(dir string) (Machine, error) {
	m := Machine{
		Date:       time.Now().UTC().Format(time.RFC3339),
		Commit:     commit(),
		Go:         runtime.Version(),
		System:     runtime.GOOS + "/" + runtime.GOARCH,
		Kernel:     strings.TrimSpace(read("/proc/sys/kernel/osrelease")),
		CPU:        field("/proc/cpuinfo", "model name"),
		Cores:      runtime.NumCPU(),
		Memory:     field("/proc/meminfo", "MemTotal"),
		FileSystem: fileSystem(dir),
		Versions:   versions(),
	}
	var err error
	m.SyncMicros, err = syncMicros(dir)
	return m, err
}

func versions() map[string]string {
	all := make(map[string]string)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, m := range info.Deps {
		for _, maker := range engine.Makers() {
			if m.Path == maker.Module && m.Replace == nil {
				all[m.Path] = m.Version
			}
		}
	}
	return all
}

// commit names the commit of the working tree. `go run` doesn't stamp it.
func commit() string {
	head, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(head))
	changes, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", "--", ":/").Output()
	if err != nil || len(bytes.TrimSpace(changes)) > 0 {
		name += "+changes"
	}
	return name
}

func read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(text)
}

// field returns the value of the first "name: value" line of a file.
func field(file, name string) string {
	for line := range strings.Lines(read(file)) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// fileSystem returns the kind of the file system that dir is on.
func fileSystem(dir string) (kind string) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	longest := -1
	for line := range strings.Lines(read("/proc/mounts")) {
		fields := strings.Fields(line)
		if len(fields) < 3 || len(fields[1]) <= longest {
			continue
		}
		point := strings.TrimSuffix(fields[1], "/") + "/"
		if strings.HasPrefix(dir+"/", point) {
			longest, kind = len(fields[1]), fields[2]
		}
	}
	return kind
}

// syncMicros measures what it costs to write 4 KiB durably.
func syncMicros(dir string) (median float64, err error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4<<10)
	var took []float64
	for range 50 {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(start))/1e3)
	}
	return stats.Median(took), nil
}

// String describes the machine in two lines.
func (m *Machine) String() string {
	return fmt.Sprintf("%s, commit %s, %s, %s %s\n%d cores of %s, %s of memory, %s, a durable write of 4 KiB %s µs",
		m.Date, m.Commit, m.Go, m.System, m.Kernel, m.Cores, m.CPU, m.Memory, m.FileSystem, stats.Short(m.SyncMicros))
}
