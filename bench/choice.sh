#!/usr/bin/env bash
# Checks how good the choice of algorithms is on this machine: measures each operation with every algorithm, forced by
# collective_algorithm, and with the one that nexar chooses, in turn. Prints how much slower the chosen one is than the
# best, and how far its time is from the prediction (nexar explain).
#
#   bench/choice.sh [OPTIONS]
#     --ranks "2 4 8"      numbers of processes
#     --operations "..."   operations of `nexar bench`
#     --sizes "8 64KiB"    bytes, as nccl-tests counts them
#     --repetitions N      repetitions of each cell, default 3; medians are compared
#     --seconds S          time for the iterations of one cell in one repetition, default 0.1
#     --nexar FILE         the nexar command to measure; built if not given
#
# Prints op,ranks,bytes,chosen,chosen_us,best,best_us,slower,predicted_us,predicted/measured for every cell, then a
# summary for each number of ranks.
# Run it on an idle machine.
set -euo pipefail
# shellcheck source=bench/options.sh
source "$(dirname "$0")/options.sh"

ranks='2 4 8'
operations='all_reduce reduce broadcast all_gather gather scatter reduce_scatter all_to_all scan'
sizes='64 4KiB 64KiB 1MiB 16MiB'
repetitions=3
seconds=0.1
nexar=

read_options "ranks operations sizes repetitions seconds nexar" "$@"
need_nexar

# algorithms OPERATION WORLD: prints the names of the algorithms.
algorithms() {
  "$nexar" explain "$1" --world "$2" --all | awk '/^algorithm +predicted/ { table = 1; next } table && NF { print $1 }'
}

# bench OPERATION WORLD [ALGORITHM]: prints "bytes p50_us algorithm" for every size.
bench() {
  local forced=()
  [ -z "${3:-}" ] || forced=("--nexar-collective-algorithm=$1=$3")
  timeout 600 "$nexar" bench "$1" -n "$2" --sizes "$sizes" --iters 0 --seconds "$seconds" --check 0 \
    --nexar-log-level=error "${forced[@]}" | awk '!/^#/ { print $1, $10, $NF }'
}

# ranks_per_core WORLD: prints the value that nexar bench sets.
ranks_per_core() {
  awk -v ranks="$1" -v cores="$(nproc)" 'BEGIN { print (ranks > cores ? ranks / cores : 1) }'
}

# predicted OPERATION WORLD BYTES: prints the predicted time in us.
predicted() {
  "$nexar" explain "$1" --world "$2" --bytes "$3" "--nexar-fabric-ranks-per-core=$(ranks_per_core "$2")" | awk 'NR == 1 {
    unit["us"] = 1; unit["ms"] = 1000; unit["s"] = 1000000; unit["ns"] = 0.001
    print $(NF - 1) * unit[$NF]
  }'
}

measure() {
  local world operation algorithm repetition bytes
  for world in $ranks; do
    for operation in $operations; do
      say "$operation with $world ranks, $repetitions times" >&2
      for ((repetition = 0; repetition < repetitions; repetition++)); do
        bench "$operation" "$world" | awk -v head="$operation $world" '{ print "chosen", head, $0 }'
        for algorithm in $(algorithms "$operation" "$world"); do
          bench "$operation" "$world" "$algorithm" | awk -v head="$operation $world" '{ print "forced", head, $0 }'
        done
      done
      for bytes in $sizes; do
        printf 'model %s %s %s %s\n' "$operation" "$world" "$bytes" "$(predicted "$operation" "$world" "$bytes")"
      done
    done
  done
}

# Turns lines of "kind op ranks bytes us algorithm" into the rows of the table.
rows() {
  awk '
    function bytes_of(text) {
      if (text ~ /KiB$/) return text * 1024
      if (text ~ /MiB$/) return text * 1048576
      return text + 0
    }
    function median(key, i, j, t, n, v) {
      n = split(times[key], v, " ")
      for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
      return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
    }
    $1 == "model" { model[$2 "," $3 "," bytes_of($4)] = $5; next }
    {
      cell = $2 "," $3 "," $4
      if (!(cell in seen)) { seen[cell] = 1; cells[++count] = cell }
      key = $1 "/" cell "/" $6
      if (!(key in times) && $1 == "forced") names[cell] = names[cell] " " $6
      if ($1 == "chosen") chosen[cell] = $6
      times[key] = times[key] " " $5
    }
    END {
      print "op,ranks,bytes,chosen,chosen_us,best,best_us,slower,predicted_us,predicted/measured"
      for (i = 1; i <= count; i++) {
        cell = cells[i]
        own = median("chosen/" cell "/" chosen[cell])
        best = own; by = chosen[cell]
        n = split(names[cell], all, " ")
        for (k = 1; k <= n; k++) {
          t = median("forced/" cell "/" all[k])
          # The chosen algorithm was measured twice; it must not count as slower than itself.
          if (all[k] == chosen[cell] && t < own) own = t
        }
        best = own
        for (k = 1; k <= n; k++) {
          t = median("forced/" cell "/" all[k])
          if (t < best) { best = t; by = all[k] }
        }
        part = (cell in model) && own > 0 ? model[cell] / own : 0
        printf "%s,%s,%.1f,%s,%.1f,%.0f%%,%.1f,%.2f\n", cell, chosen[cell], own, by, best, 100 * (own / best - 1), model[cell], part
      }
    }'
}

summarize() {
  awk -F, 'NR > 1 {
    slower = $8 + 0
    cells[$2]++
    if (slower <= 15) near[$2]++
    if ($10 >= 0.75 && $10 <= 1.25) right[$2]++
    if (slower >= worst[$2] + 0) { worst[$2] = slower; where[$2] = $1 " of " $3 " bytes" }
  }
  END {
    for (n in cells)
      printf "%s ranks: the choice is within 15 %% of the best in %d of %d cells; the worst is %d %% slower: %s; the prediction is within 25 %% in %d cells\n",
        n, near[n], cells[n], worst[n], where[n], right[n]
  }' | sort -n
}

measured=$(measure)
table=$(rows <<<"$measured")
printf '%s\n' "$table"
summarize <<<"$table"
