#!/usr/bin/env bash
# Compares nexar with its peers on this machine: installs Open MPI and Gloo from Debian, builds one small program for
# each, and measures the same cells with all of them in turn, A B C A B C ..., --repetitions times.
#
#   bench/peers/run.sh [OPTIONS]
#     --quick              few cells and repetitions: about three minutes
#     --ranks "2 4"        numbers of processes
#     --operations "..."   operations of `nexar bench`
#     --sizes "8 64KiB"    bytes, as nccl-tests counts them
#     --repetitions N      repetitions of each cell, default 5
#     --seconds S          time for the iterations of one cell in one repetition, default 0.3
#     --csv FILE           output file for the rows, default build/peers/rows.csv
#     --nexar FILE         the nexar command to measure; built if not given
#
# Prints op,ranks,bytes,link,nexar_us,peer,peer_us,ratio and the spread of the repetitions in percent of their median.
# Times are medians of the repetitions' medians; ratio is peer_us / nexar_us, so above 1 nexar is faster. Then prints,
# for every link and number of ranks, the geometric mean and the worst cell, and the limits of memory, AES and the
# kernel's UDP on this machine.
#
# Link quic is encrypted, quic_none is not; the peers use unencrypted TCP on loopback. Run it on an idle machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/options.sh
source "$here/../options.sh"

readonly tree="$root/build/peers"
readonly patience=600 # timeout in seconds for a program that hangs
ranks='2 4'
operations='all_reduce reduce broadcast all_gather gather scatter reduce_scatter all_to_all scan barrier latency bandwidth'
sizes='8 1KiB 64KiB 1MiB 16MiB 64MiB'
repetitions=5
seconds=0.3
warmup=3
csv="$tree/rows.csv"
nexar=

set_quick() {
  ranks=2
  operations=$quick_operations
  sizes=$quick_sizes
  repetitions=3
  seconds=0.1
  warmup=2
}

parse_arguments() {
  # First, so that the other options override it.
  case " $* " in *' --quick '*) set_quick ;; esac
  local argument rest=()
  for argument in "$@"; do
    [ "$argument" = --quick ] || rest+=("$argument")
  done
  read_options 'ranks operations sizes repetitions seconds csv nexar' "${rest[@]}"
  local list
  read -ra list <<<"$sizes"
  sizes=$(in_bytes "${list[@]}")
}

# in_bytes SIZE...: prints the sizes as plain numbers, for programs that do not know units.
in_bytes() {
  local size plain=()
  for size in "$@"; do
    case "$size" in
      *KiB) plain+=($((${size%KiB} * 1024))) ;;
      *MiB) plain+=($((${size%MiB} * 1024 * 1024))) ;;
      *GiB) plain+=($((${size%GiB} * 1024 * 1024 * 1024))) ;;
      *) plain+=("$size") ;;
    esac
  done
  printf '%s' "${plain[*]}"
}

build_all() {
  "$root/scripts/setup.sh" build peers
  need_nexar
  mkdir -p "$tree"
  quietly build-openmpi-peer mpicxx.openmpi -std=c++20 -O3 "$here/openmpi_peer.cpp" -o "$tree/openmpi_peer"
  quietly build-floor g++ -std=c++20 -O3 "$here/floor.cpp" -o "$tree/floor" -lcrypto
  quietly build-gloo-peer g++ -std=c++20 -O3 "$here/gloo_peer.cpp" -o "$tree/gloo_peer" -lgloo -pthread
}

# Each of these, and nexar_rows, prints "bytes p50_us" for every size of one operation.

# openmpi_rows OPERATION RANKS
openmpi_rows() {
  local yield=()
  # With more ranks than cores, a rank that spins would keep others waiting for whole time slices.
  [ "$2" -le "$(nproc)" ] || yield=(--mca mpi_yield_when_idle 1)
  timeout "$patience" mpirun.openmpi --allow-run-as-root --oversubscribe --mca btl tcp,self --mca pml ob1 \
    --mca btl_tcp_if_include lo "${yield[@]}" -n "$2" "$tree/openmpi_peer" --operations "$1" \
    --sizes "$sizes" --seconds "$seconds" --warmup "$warmup" </dev/null | awk '{ print $2, $3 }'
}

# gloo_rows OPERATION RANKS
gloo_rows() {
  timeout "$patience" "$tree/gloo_peer" --ranks "$2" --operations "$1" --sizes "$sizes" \
    --seconds "$seconds" --warmup "$warmup" | awk '{ print $2, $3 }'
}

# take NAME OPERATION RANKS COMMAND...: runs the command and prints its rows as "op ranks bytes NAME p50_us".
take() {
  local name=$1 operation=$2 world=$3 rows
  shift 3
  rows=$("$@" 2>"$tree/errors.log") || {
    tail -n 20 "$tree/errors.log" >&2
    fail "$name failed at $operation with $world ranks, see above"
  }
  [ -z "$rows" ] || awk -v head="$operation $world" -v name="$name" '{ print head, $1, name, $2 }' <<<"$rows"
}

measure_all() {
  local repetition world operation operation_list rank_list
  read -ra operation_list <<<"$operations"
  read -ra rank_list <<<"$ranks"
  for world in "${rank_list[@]}"; do
    for operation in "${operation_list[@]}"; do
      say "$operation with $world ranks, $repetitions times" >&2
      for ((repetition = 0; repetition < repetitions; repetition++)); do
        take nexar/quic "$operation" "$world" nexar_rows "$nexar" "$operation" "$world" --protection full
        take openmpi_tcp "$operation" "$world" openmpi_rows "$operation" "$world"
        take nexar/quic_none "$operation" "$world" nexar_rows "$nexar" "$operation" "$world" --protection none
        take gloo_tcp "$operation" "$world" gloo_rows "$operation" "$world"
      done
    done
  done
}

# Turns lines of "op ranks bytes name p50_us" into the rows of the table, ordered by operation. A peer has no row for
# operations that it does not support.
make_rows() {
  sort -s -k1,1 -k2,2n -k3,3n -k4,4 -k5,5g "$1" | awk '
    function close_group() {
      if (n == 0) return
      median[group] = (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
      spread[group] = median[group] > 0 ? 100 * (v[n] - v[1]) / median[group] : 0
      n = 0
    }
    {
      cell = $1 "," $2 "," $3
      if (cell "/" $4 != group) close_group()
      group = cell "/" $4
      v[++n] = $5
      if (!(cell in seen)) { seen[cell] = 1; cells[++count] = cell }
    }
    END {
      close_group()
      print "op,ranks,bytes,link,nexar_us,peer,peer_us,ratio,nexar_spread,peer_spread"
      split("quic quic_none", links, " ")
      split("openmpi_tcp gloo_tcp", peers, " ")
      for (i = 1; i <= count; i++) for (l = 1; l <= 2; l++) for (p = 1; p <= 2; p++) {
        ours = cells[i] "/nexar/" links[l]
        theirs = cells[i] "/" peers[p]
        if (!(ours in median) || !(theirs in median) || median[ours] <= 0) continue
        printf "%s,%s,%.2f,%s,%.2f,%.3f,%.0f%%,%.0f%%\n", cells[i], links[l], median[ours], peers[p],
          median[theirs], median[theirs] / median[ours], spread[ours], spread[theirs]
      }
    }'
}

# Prints the geometric mean of the ratios and the worst cell, against each peer and against the better of both.
summarize() {
  awk -F, '
    function add(key, ratio, cell) {
      if (!(key in n)) order[++keys] = key
      n[key]++
      logs[key] += log(ratio)
      if (!(key in worst) || ratio < worst[key]) { worst[key] = ratio; where[key] = cell }
    }
    NR == 1 || $8 <= 0 { next }
    {
      cell = $1 " of " $3 " bytes"
      add(sprintf("%-10s %s ranks / %-12s", $4, $2, $6), $8, cell)
      best = $4 "," $2 "," $1 "," $3
      if (!(best in least) || $8 < least[best]) least[best] = $8
      if (!(best in label)) { label[best] = sprintf("%-10s %s ranks / %-12s", $4, $2, "best peer"); named[best] = cell }
    }
    END {
      for (one in least) add(label[one], least[one], named[one])
      for (i = 1; i <= keys; i++) {
        printf "%s  geometric mean %.3f, worst %.3f: %s\n", order[i], exp(logs[order[i]] / n[order[i]]),
          worst[order[i]], where[order[i]]
      }
    }' "$1" | sort
}

parse_arguments "$@"
build_all
measure_all >"$tree/raw.txt"
make_rows "$tree/raw.txt" >"$csv"
cat "$csv"
summarize "$csv"
"$tree/floor"
