#!/usr/bin/env bash
# Compares nexar with its peers on this machine: installs Open MPI, MPICH and Gloo from Debian, builds one small program
# for each, and measures the same cells with all of them in turn, A B C A B C ..., --repetitions times.
#
#   bench/peers/run.sh [OPTIONS]
#     --quick              few cells and short measurements: about three minutes
#     --ranks "2 4"        numbers of processes
#     --links "shm quic"   links of nexar: shm, shm_buffers, quic, quic_none; default "shm shm_buffers quic quic_none"
#     --peers "..."        peers: openmpi_shm, mpich_shm, openmpi_tcp, gloo_tcp; default: all
#     --operations "..."   operations of `nexar bench`
#     --sizes "8 64KiB"    bytes, as nccl-tests counts them
#     --repetitions N      repetitions of each cell, default 5
#     --seconds S          time for the iterations of one cell in one repetition, default 0.3
#     --csv FILE           output file for the rows, default build/peers/rows.csv
#     --nexar FILE         the nexar command to measure; built if not given
#     --bundle DIR         measures nothing; makes a directory to measure with on another machine, see bundle.sh
#
# Prints op,ranks,bytes,link,nexar_us,peer,peer_us,ratio and the spread of the repetitions in percent of their median.
# Times are medians of the repetitions' medians; ratio is peer_us / nexar_us, so above 1 nexar is faster. A peer that
# fails or does not finish in time has rows without a value. Then prints, for every link and number of ranks, the
# geometric mean and the worst cell; for every bar of bars.txt whether it was reached; and the limits of memory, AES and
# the kernel's UDP on this machine. chart.sh draws the rows.
#
# Link shm is compared with shared memory and with Gloo; shm_buffers is the same with all-reduces in memory from
# Node::allocate; quic is encrypted and quic_none is not, and their peers use unencrypted TCP on loopback. Run it on an
# idle machine.
set -euo pipefail
export LC_ALL=C # for sort and awk
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/options.sh
source "$here/../options.sh"

readonly tree="$root/build/peers"
crowded_patience=30 # timeout in seconds for a peer that spins on too few cores
ranks='2 4'
links='shm shm_buffers quic quic_none'
peers='openmpi_shm mpich_shm openmpi_tcp gloo_tcp'
operations='all_reduce reduce broadcast all_gather gather scatter reduce_scatter all_to_all scan barrier latency bandwidth'
sizes='8 1KiB 64KiB 1MiB 16MiB 64MiB'
repetitions=5
seconds=0.3
warmup=3
csv="$tree/rows.csv"
nexar=
bundle=
gloo_peer="$tree/gloo_peer"
floor="$tree/floor"

# shellcheck source=bench/peers/programs.sh
source "$here/programs.sh"
# shellcheck source=bench/peers/bundle.sh
source "$here/bundle.sh"

set_quick() {
  ranks=2
  operations=$quick_operations
  sizes=$quick_sizes
  seconds=0.04
  warmup=2
  crowded_patience=10
}

parse_arguments() {
  # First, so that the other options override it.
  case " $* " in *' --quick '*) set_quick ;; esac
  local argument rest=()
  for argument in "$@"; do
    [ "$argument" = --quick ] || rest+=("$argument")
  done
  read_options 'ranks links peers operations sizes repetitions seconds csv nexar bundle' "${rest[@]}"
  local list
  read -ra list <<<"$sizes"
  sizes=$(in_bytes "${list[@]}")
  ! bundled || { gloo_peer="$root/bin/gloo_peer" && floor="$root/bin/floor"; }
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

# The sizes that are left for "NAME OPERATION RANKS" after a peer failed or took too long.
declare -A left=()

# take NAME OPERATION RANKS: measures one operation and prints "op ranks bytes NAME p50_us" for each size. If a peer
# fails or takes too long, prints that, and later calls measure only the sizes that it finished.
take() {
  local name=$1 rows status=0 why=failed
  local sizes=${left[$*]-$sizes} # for the functions that are called here
  [ -n "$sizes" ] || return 0
  rows=$(rows_of "$@" 2>"$tree/errors.log") || status=$?
  [ -z "$rows" ] || awk -v head="$2 $3" -v name="$name" '{ print head, $1, name, $2 }' <<<"$rows"
  [ "$status" -ne 0 ] || return 0
  case "$name" in
    nexar/*)
      tail -n 20 "$tree/errors.log" >&2
      fail "$name failed at $2 with $3 ranks, see above"
      ;;
  esac
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then why=timeout; else tail -n 5 "$tree/errors.log" >&2; fi
  say "$name has no value for some sizes of $2 with $3 ranks: $why" >&2
  echo "$2 $3 any $name $why"
  local list finished
  finished=$(printf '%s' "$rows" | grep -c . || true)
  read -ra list <<<"$sizes"
  left[$*]="${list[*]:0:finished}"
}

# alternating: prints the names to measure, nexar's links and the peers in turn.
alternating() {
  local i names ours theirs
  read -ra ours <<<"$links"
  read -ra theirs <<<"$peers"
  for ((i = 0; i < ${#ours[@]} || i < ${#theirs[@]}; i++)); do
    [ "$i" -ge "${#ours[@]}" ] || names+=" nexar/${ours[i]}"
    [ "$i" -ge "${#theirs[@]}" ] || names+=" ${theirs[i]}"
  done
  printf '%s' "$names"
}

measure_all() {
  local repetition world operation name
  for world in $ranks; do
    for operation in $operations; do
      say "$operation with $world ranks, $repetitions times" >&2
      for ((repetition = 0; repetition < repetitions; repetition++)); do
        for name in $(alternating); do
          [ "$name" != nexar/shm_buffers ] || [ "$operation" = all_reduce ] || continue
          take "$name" "$operation" "$world"
        done
      done
    done
  done
}

# warn_if_busy: a busy machine distorts programs that spin more than others.
warn_if_busy() {
  local load
  read -r load _ </proc/loadavg
  awk -v load="$load" -v cores="$(nproc)" 'BEGIN { exit !(load > cores / 2) }' || return 0
  say "the load of this machine is $load on $(nproc) cores; ratios that are measured now mean little" >&2
}

parse_arguments "$@"
[ -n "$bundle" ] || warn_if_busy
build_programs
if [ -n "$bundle" ]; then
  write_bundle
  exit
fi
check_links
measure_all >"$tree/raw.txt"
sort -s -k1,1 -k2,2n -k3,3n -k4,4 -k5,5g "$tree/raw.txt" | awk -f "$here/rows.awk" >"$csv"
cat "$csv"
awk -F, -f "$here/summary.awk" "$csv" | sort
awk -v cores="$(nproc)" -f "$here/bars.awk" "$here/bars.txt" "$csv"
"$floor"
