#!/usr/bin/env bash
# PostgreSQL that fails over, on one laptop: three machines, which are network namespaces of Linux, each with PostgreSQL,
# Patroni and a member of etcd; and three programs that write invoices to one store. The machine of the primary server is
# killed while they write. It needs Linux, root, Go and Debian's packages, which it installs, and takes some minutes.
# docs/beyond-one-machine.md explains it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
programs=(ann bob cyd)

pids=()
finish() {
	[ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
	[ -z "${to:-}" ] || exec {to}>&- # the servers end
	wait 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT

"$here/../../storage/sqlkv/install.sh" cluster >"$dir/install" 2>&1 || { cat "$dir/install"; exit 1; }
(cd "$here" && CGO_ENABLED=0 "${GO:-go}" build -o "$dir/invoices" . && CGO_ENABLED=0 "${GO:-go}" build -o "$dir/servers" ./servers)

# The servers: the first line is their address, and each further line answers one that they are told.
mkfifo "$dir/to" "$dir/from"
"$dir/servers" <"$dir/to" >"$dir/from" 2>"$dir/log" &
exec {to}>"$dir/to" {from}<"$dir/from"
tell() { # tell COMMAND, and set reply
	[ -z "$1" ] || echo "$1" >&"$to"
	read -r reply <&"$from" || { cat "$dir/log"; exit 1; }
}

tell ""
url=$reply
tell primary
echo "Three machines with PostgreSQL, Patroni and etcd. The primary server is $reply."

written() { wc -l <"$dir/$1.out"; }
more() { # more N: wait until each program has written N more invoices
	declare -A before
	for p in "${programs[@]}"; do before[$p]=$(written "$p"); done
	for p in "${programs[@]}"; do
		for _ in $(seq 3000); do
			[ "$(written "$p")" -ge $((before[$p] + $1)) ] && break
			sleep 0.1
		done
		[ "$(written "$p")" -ge $((before[$p] + $1)) ] || { echo "$p does not go on"; cat "$dir/$p.err" "$dir/log"; exit 1; }
	done
}

for p in "${programs[@]}"; do
	"$dir/invoices" write "$url" "$p" >"$dir/$p.out" 2>"$dir/$p.err" &
	pids+=($!)
done
more 10
echo "Three programs write invoices. Each insert has returned when its document is on two machines."

tell kill
echo "The machine of $reply is killed."
begun=$SECONDS
more 10
echo "All three programs go on, $((SECONDS - begun))s later. None was told where the server is now."
tell primary
echo "The primary server is $reply."
tell start
echo "The killed machine is back, as a standby."
more 10

for pid in "${pids[@]}"; do kill -TERM "$pid"; done
for pid in "${pids[@]}"; do wait "$pid"; done
pids=()
for p in "${programs[@]}"; do sed "s/^/$p /" "$dir/$p.out"; done >"$dir/acknowledged"
"$dir/invoices" check "$url" <"$dir/acknowledged"
echo "Done."
