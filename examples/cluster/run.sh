#!/usr/bin/env bash
# A cluster on one laptop: three processes of jay serve, each with a database "shop", a node
# tag and a member of etcd. It shows what they agree on, then a partition, in which two of
# them do not answer, and what goes on behind it. It needs Go and curl, and takes some
# seconds. docs/agreement.md explains it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
port=${PORT:-4710} # the first of nine that are free

declare -A pid http
finish() {
	for tag in "${!pid[@]}"; do
		kill -CONT "${pid[$tag]}" 2>/dev/null || true
		kill -KILL "${pid[$tag]}" 2>/dev/null || true
	done
	wait 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT

jay=${JAY:-$dir/jay}
[ -n "${JAY:-}" ] || (cd "$here/../.." && "${GO:-go}" build -o "$jay" ./cmd/jay)

# The same three lists for each: where etcd's members answer Jay, and where each other.
clients="http://127.0.0.1:$port,http://127.0.0.1:$((port + 1)),http://127.0.0.1:$((port + 2))"
peers="A=http://127.0.0.1:$((port + 3)),B=http://127.0.0.1:$((port + 4)),C=http://127.0.0.1:$((port + 5))"
http=([A]="http://127.0.0.1:$((port + 6))" [B]="http://127.0.0.1:$((port + 7))" [C]="http://127.0.0.1:$((port + 8))")

start() { # start TAG
	"$jay" serve --data "$dir/$1" --node-tag "$1" --listen "${http[$1]#http://}" --log-level warn \
		--cluster "$clients" --cluster-member "$1" --cluster-peers "$peers" \
		--cluster-address "${http[$1]}" --cluster-timeout 3s >"$dir/$1.out" 2>"$dir/$1.log" &
	pid[$1]=$!
}

# put TAG ID stores a document at a server, and prints the ID that it got.
put() {
	printf '  %s: put %-12s ' "$1" "'$2'"
	reply=$(curl -sS -X PUT "${http[$1]}/databases/shop/docs?id=${2//|/%7C}" -d "{}")
	case $reply in
	*'"Id"'*) echo "$reply" | sed 's/.*"Id":"\([^"]*\)".*/\1/' ;;
	*) echo "$reply" | sed 's/.*"Message":"\([^"]*\)".*/\1/' ;;
	esac
}

echo "Three servers, three members of etcd."
for tag in A B C; do start $tag; done
for tag in A B C; do
	for _ in $(seq 600); do
		curl -sSf -X PUT "${http[$tag]}/admin/databases?name=shop" -d '{}' >"$dir/reply" 2>&1 && break
		sleep 0.1
	done
	grep -q '"Name":"shop"' "$dir/reply" || { cat "$dir/reply" "$dir/$tag.log"; exit 1; }
done
"$jay" cluster status --cluster "$clients" --cluster-database shop --json | sed 's/.*"tag":"\([A-Z]*\)".*"address":"\([^"]*\)".*/  \1 \2/'

echo "Identities are one sequence, whichever server is asked. Other IDs carry the server's tag."
for tag in A B C; do put $tag 'invoices|'; done
for tag in A B C; do put $tag 'logs/'; done

echo "A partition: B and C do not answer. A goes on with all but identities."
kill -STOP "${pid[B]}" "${pid[C]}"
put A 'users/ann'
put A 'logs/'
put A ''
put A 'invoices|'

echo "B and C answer again. Nothing is restarted."
kill -CONT "${pid[B]}" "${pid[C]}"
for tag in A B C; do
	for _ in $(seq 50); do
		line=$(put $tag 'invoices|')
		case $line in *invoices/*) break ;; esac
	done
	echo "$line"
done

for tag in A B C; do kill -TERM "${pid[$tag]}"; done
for tag in A B C; do
	wait "${pid[$tag]}" || { cat "$dir/$tag.log"; exit 1; }
	unset "pid[$tag]"
done
echo "Done."
