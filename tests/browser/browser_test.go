package browser_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// chromium is the browser of all tests: each opens tabs of its own in it, which share
// neither cookies nor storage.
var chromium context.Context

func TestMain(m *testing.M) {
	if os.Getenv("JAY_BROWSER") == "" {
		fmt.Println("The tests of the studio need Chromium: make browser installs it and runs them.")
		return
	}
	code, err := inChromium(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// inChromium runs fn while the browser runs.
func inChromium(fn func() int) (code int, err error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return 0, fmt.Errorf("there is no chromium: tests/browser/run.sh installs it: %w", err)
	}
	if os.Getenv("JAY_SCREENSHOTS") != "" {
		fonts, err := filepath.Abs("fonts.conf")
		if err == nil {
			err = os.Setenv("FONTCONFIG_FILE", fonts)
		}
		if err != nil {
			return 0, err
		}
	}
	profile, err := os.MkdirTemp("", "jay-browser-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(profile)) }()
	allocator, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(program),
		chromedp.UserDataDir(profile),
		chromedp.Flag("headless", true),
		chromedp.Flag("no-sandbox", true), // CI runs as root
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-background-timer-throttling", true),
		chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("disable-backgrounding-occluded-windows", true),
		chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("js-flags", "--expose-gc"),
		chromedp.Flag("lang", "en-US"),
		chromedp.WSURLReadTimeout(time.Minute),
	)
	defer stop()
	var end context.CancelFunc
	chromium, end = chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(chromium); err != nil {
		return 0, fmt.Errorf("start %s: %w", program, err)
	}
	return fn(), nil
}
