#!/usr/bin/env bash
# Looks for cliffs: sizes from which on an operation is faster with twice as much, t(2n) < 0.9 t(n), which means that
# the smaller size takes a bad way.
#
#   bench/cliffs.sh [--ranks "2 4"] [--operations "..."] [--begin 8] [--end 16MiB] [--seconds 0.2] [--nexar FILE]
#
# Prints op,ranks,bytes,us,next_us,ratio for every pair of sizes that is one. A size counts only when it is one in both of
# two runs. Exits with 1 when there is any. Run it on an idle machine.
set -euo pipefail
# shellcheck source=bench/options.sh
source "$(dirname "$0")/options.sh"

ranks='2 4'
operations='all_reduce reduce broadcast all_gather gather scatter reduce_scatter all_to_all scan'
begin=8
end=16MiB
seconds=0.2
nexar=

read_options "ranks operations begin end seconds nexar" "$@"
need_nexar

# times OPERATION RANKS: "bytes p50_us" of every size.
times() {
  timeout 600 "$nexar" bench "$1" -n "$2" -b "$begin" -e "$end" -f 2 --iters 0 --seconds "$seconds" --check 0 \
    --nexar-log-level=error | awk '!/^#/ { print $1, $(NF - 2) }'
}

found=0
echo 'op,ranks,bytes,us,next_us,ratio'
for world in $ranks; do
  for operation in $operations; do
    # One after the other: they must not disturb each other.
    first=$(times "$operation" "$world")
    second=$(times "$operation" "$world")
    cliffs=$(paste -d ' ' <(printf '%s\n' "$first") <(printf '%s\n' "$second") | awk -v head="$operation,$world" '
      NR > 1 && $2 < 0.9 * first && $4 < 0.9 * second {
        printf "%s,%s,%.1f,%.1f,%.2f\n", head, bytes, first, $2, $2 / first
      }
      { bytes = $1; first = $2; second = $4 }')
    [ -z "$cliffs" ] || { printf '%s\n' "$cliffs"; found=1; }
  done
done
exit "$found"
