#!/usr/bin/env bash
# Looks for cliffs: sizes at which an operation on twice as many bytes is faster, t(2n) < 0.9 t(n). Then the smaller
# size uses a bad algorithm.
#
#   bench/cliffs.sh [--ranks "2 4"] [--operations "..."] [--begin 8] [--end 16MiB] [--seconds 0.2] [--nexar FILE]
#
# Prints op,ranks,bytes,us,next_us,ratio for every cliff. A cliff counts only if two runs show it. Exits with 1 if there
# is any. Run it on an idle machine.
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

# times OPERATION RANKS: prints "bytes p50_us" for every size.
times() {
  timeout 600 "$nexar" bench "$1" -n "$2" -b "$begin" -e "$end" -f 2 --iters 0 --seconds "$seconds" --check 0 \
    --nexar-log-level=error | awk '!/^#/ { print $1, $10 }'
}

found=0
echo 'op,ranks,bytes,us,next_us,ratio'
for world in $ranks; do
  for operation in $operations; do
    # Run them one after the other, so that they do not disturb each other.
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
