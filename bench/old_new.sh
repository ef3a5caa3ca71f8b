#!/usr/bin/env bash
# Compares an older build with this one on this machine: the rows of p2p_bench, and the cells that bench/peers/run.sh
# --quick measures. The two take turns, so that other load on the machine affects both alike.
#
#   git worktree add ../old REVISION && (cd ../old && cmake --preset release && ninja -C build/release nexar_command p2p_bench)
#   bench/old_new.sh --old ../old/build/release/bin [OPTIONS]
#     --new DIR            the newer programs, default build/release/bin
#     --rounds N           number of measurements of each, default 7
#     --operations "..."   operations of `nexar bench`
#     --sizes "8 64KiB"    bytes
#     --ranks "2 4"        numbers of processes
#     --seconds S          time for the iterations of one cell in one round, default 0.1
#
# Prints name,old,new,unit,ratio with the medians of the rounds; a ratio above 1 means that the new build is faster. Run
# it on an idle machine.
set -euo pipefail
# shellcheck source=bench/options.sh
source "$(dirname "${BASH_SOURCE[0]}")/options.sh"

old=
# shellcheck disable=SC2034 # read by its name
new="$root/build/release/bin"
rounds=7
operations=$quick_operations
sizes=$quick_sizes
ranks=2
seconds=0.1
# shellcheck disable=SC2034 # for nexar_rows
warmup=2
read_options 'old new rounds operations sizes ranks seconds' "$@"
[ -n "$old" ] || fail "--old is missing; give the folder with the older nexar and p2p_bench"
rows=$(mktemp -d)
trap 'rm -rf "$rows"' EXIT

# Each prints "name side value unit".

# point_to_point SIDE DIR
point_to_point() {
  timeout 600 "$2/p2p_bench" --quick --json "$rows/p2p.json" >/dev/null 2>&1 || fail "$2/p2p_bench failed"
  sed -E 's/.*"name":"([^"]*)","value":([^,]*),"unit":"([^"]*)".*/p2p\/\1 '"$1"' \2 \3/' "$rows/p2p.json"
}

# operation SIDE DIR OPERATION RANKS
operation() {
  nexar_rows "$2/nexar" "$3" "$4" >"$rows/table" || fail "$2/nexar bench $3 failed"
  awk -v side="$1" -v name="$3/$4" '{ print name "/" $1, side, $2, "us" }' "$rows/table"
}

measure() {
  local round one world side sides operation_list rank_list
  read -ra operation_list <<<"$operations"
  read -ra rank_list <<<"$ranks"
  for ((round = 0; round < rounds; round++)); do
    say "round $((round + 1)) of $rounds" >&2
    sides='old new'
    [ $((round % 2)) -eq 0 ] || sides='new old'
    for side in $sides; do point_to_point "$side" "${!side}"; done
    for world in "${rank_list[@]}"; do
      for one in "${operation_list[@]}"; do
        for side in $sides; do operation "$side" "${!side}" "$one" "$world"; done
      done
    done
  done
}

measure >"$rows/all"
sort -s -k1,1 -k2,2 -k3,3g "$rows/all" | awk '
  function close_group() {
    if (n > 0) median[group] = (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
    n = 0
  }
  $4 == "ratio" { next }
  {
    if ($1 " " $2 != group) close_group()
    group = $1 " " $2
    v[++n] = $3
    if (!($1 in unit)) { names[++count] = $1; unit[$1] = $4 }
  }
  END {
    close_group()
    print "name,old,new,unit,ratio"
    for (i = 1; i <= count; i++) {
      one = names[i]
      old = median[one " old"]
      new = median[one " new"]
      if (old <= 0 || new <= 0) continue
      less_is_better = unit[one] ~ /^(us|ms|s)/
      printf "%s,%.4g,%.4g,%s,%.3f\n", one, old, new, unit[one], less_is_better ? old / new : new / old
    }
  }'
