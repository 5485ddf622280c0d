package look

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/jaydb/jay/storage"
)

// Ensure that another user is refused by the mode of the socket, and by its credentials if the mode lets it in.
func TestLook_OtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	dir, err := os.MkdirTemp("", "")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	o := own(t, dir, snapshotAge)
	as := func() error {
		failed := make(chan error)
		go func() {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			if _, _, no := syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534); no != 0 {
				failed <- no
				return
			}
			_, err := Driver{}.Open(dir, storage.OpenOptions{ReadOnly: true})
			failed <- err
		}()
		return <-failed
	}
	if err := as(); !errors.Is(err, storage.ErrUnavailable) || !errors.Is(err, os.ErrPermission) {
		t.Errorf("by the mode: %v", err)
	}
	must(t, os.Chmod(filepath.Join(o.dir, Name), 0o666))
	if err := as(); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "another user than 65534") {
		t.Errorf("by the credentials: %v", err)
	}
}
