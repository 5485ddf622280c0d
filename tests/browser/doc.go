// Package browser tests the studio in a real browser: Debian's Chromium, which run.sh
// installs if it is not there, driven by chromedp. make browser runs it.
package browser
