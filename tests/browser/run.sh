#!/usr/bin/env bash
# Runs the tests of the studio: those of its modules in Node, and those in a browser. It
# installs Node and Debian's Chromium, with fonts, if they are not there, and fails if it
# cannot. make browser calls it; its arguments go to go test. With "install" it only installs.
set -euo pipefail
cd "$(dirname "$0")"

missing=()
command -v node >/dev/null || missing+=(nodejs)
command -v chromium >/dev/null || missing+=(chromium fonts-inter fonts-jetbrains-mono)
if [ ${#missing[@]} -gt 0 ]; then
	apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 update -q
	apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 install -qy --no-install-recommends "${missing[@]}"
fi
node --version
chromium --version
if [ "${1:-}" = install ]; then
	exit
fi

node --test ../../server/studio/test/*.test.mjs
JAY_BROWSER=1 "${GO:-go}" test -count=1 -timeout 20m "$@" .
