#!/usr/bin/env bash
# The awk programs of bench/peers turn canned measurements into the expected rows, summary, bars and charts.
#
#   peers_test.sh SOURCE
#
# To accept a deliberate change, run it with NEXAR_PEERS_ACCEPT=1 and review the difference of tests/house/peers.
set -euo pipefail
export LC_ALL=C

source=$1
peers=$source/bench/peers
canned=$source/tests/house/peers
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

sort -s -k1,1 -k2,2n -k3,3n -k4,4 -k5,5g "$canned/raw.txt" | awk -f "$peers/rows.awk" >"$scratch/rows.csv"
awk -F, -f "$peers/summary.awk" "$scratch/rows.csv" | sort >"$scratch/summary.txt"
# The same rows on a machine where four ranks share two cores, and where each has its own.
awk -v cores=2 -f "$peers/bars.awk" "$peers/bars.txt" "$scratch/rows.csv" | grep -v 'not measured' >"$scratch/bars-2.txt"
awk -v cores=4 -f "$peers/bars.awk" "$peers/bars.txt" "$scratch/rows.csv" | grep -v 'not measured' >"$scratch/bars-4.txt"
"$peers/chart.sh" "$scratch/rows.csv" "$scratch" >/dev/null

if [ -n "${NEXAR_PEERS_ACCEPT:-}" ]; then
  cp "$scratch"/* "$canned/"
fi

failures=0
for file in "$scratch"/*; do
  diff -u "$canned/$(basename "$file")" "$file" >&2 || failures=$((failures + 1))
done
count=$(find "$scratch" -name '*.svg' | wc -l)
[ "$count" -eq 4 ] || { echo "there are $count charts instead of 4" >&2 && exit 1; }
[ "$failures" -eq 0 ] || { echo "$failures files differ from those in tests/house/peers" >&2 && exit 1; }

# Every bar has eight fields, and its bar is at most its aim.
awk '/^#/ || NF == 0 { next } NF != 8 || $7 > $8 { print "bars.txt:" FNR ": " $0; bad = 1 } END { exit bad }' "$peers/bars.txt"
