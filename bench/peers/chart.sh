#!/usr/bin/env bash
# Draws the rows of run.sh: peers-LINK-RANKS.svg for every link and number of ranks.
#
#   bench/peers/chart.sh [ROWS [DIR]]      default: build/peers/rows.csv docs/images
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
rows=${1:-$here/../../build/peers/rows.csv}
dir=${2:-$here/../../docs/images}

tail -n +2 "$rows" | awk -F, '$8 > 0 { print $4, $2 }' | sort -u | while read -r link ranks; do
  awk -F, -v link="$link" -v ranks="$ranks" -f "$here/chart.awk" "$rows" >"$dir/peers-$link-$ranks.svg"
  printf '%s\n' "$dir/peers-$link-$ranks.svg"
done
