#!/usr/bin/env bash
# Fuzzes the decoders: builds the preset `fuzz` (clang, libFuzzer, ASan, UBSan) and runs each harness
# from its committed corpus. New inputs go to build/fuzz/corpus, findings to build/fuzz/findings.
#
#   scripts/fuzz.sh [--runs N] [--seconds N] [--jobs N] [harness...]
#
# --runs     executions per harness: 200000 by default (as in CI), 10000000 for the long run
# --seconds  time limit per harness, even if it has not reached --runs; none by default
# --jobs     number of harnesses that run at the same time, 1 by default
#
# Prints one line per harness. Exits with 1 if any harness has a finding.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$root"

readonly tree=build/fuzz

# Short traces and a small quarantine: most of the cost of a rejected input is its allocations.
export ASAN_OPTIONS=malloc_context_size=4:quarantine_size_mb=32:${ASAN_OPTIONS:-}

runs=200000
seconds=0
jobs=1
harnesses=()
known=()

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

# number OPTION VALUE: prints the value if it is a number above 0, and fails otherwise.
number() {
  [[ $2 =~ ^[1-9][0-9]*$ ]] || fail "fuzz.sh: $1 needs a number above 0, not '$2'"
  printf '%s' "$2"
}

while [ $# -gt 0 ]; do
  case $1 in
    --runs)
      runs=$(number "$1" "${2:-}")
      shift 2
      ;;
    --seconds)
      seconds=$(number "$1" "${2:-}")
      shift 2
      ;;
    --jobs)
      jobs=$(number "$1" "${2:-}")
      shift 2
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*) fail "fuzz.sh: unknown option '$1'; see scripts/fuzz.sh --help" ;;
    *)
      harnesses+=("$1")
      shift
      ;;
  esac
done

for folder in fuzz/corpus/*/; do known+=("$(basename "$folder")"); done
[ ${#harnesses[@]} -gt 0 ] || harnesses=("${known[@]}")
for name in "${harnesses[@]}"; do
  [[ " ${known[*]} " == *" $name "* ]] || fail "fuzz.sh: there is no harness '$name'; the harnesses are: ${known[*]}"
done

"$root/scripts/setup.sh" build fuzz
build fuzz fuzz_harnesses

# longest_input NAME: prints the size of the decoder's largest frame plus some bytes, so that inputs that
# are too long occur as well. Not for the largest welcomes, views and files: their entries all look alike.
longest_input() {
  case $1 in
    preamble) echo 32 ;;
    heartbeat | credit | withdraw | confirm | eager | bulk | collective | proof) echo 264 ;;
    grant) echo 520 ;;
    join_string) echo 1032 ;;
    error_report | abort | collective_mismatch | collective_abort | formation | renewal | link_report) echo 2056 ;;
    admission) echo 8200 ;;
    quic_datagram) echo 1600 ;;
    quic_pair) echo 301 ;;
    engine) echo 400 ;;
    shm_handshake) echo 136 ;;
    shm_ring) echo 600 ;;
    *) echo 4608 ;;
  esac
}

# leak_check NAME: prints whether libFuzzer checks for leaks after each input. Off for harnesses that keep
# an endpoint or a link for the next input, which would look like a leak each time. All harnesses check
# at the end.
leak_check() {
  case $1 in
    quic_* | shm_*) echo 0 ;;
    *) echo 1 ;;
  esac
}

# run_harness NAME: runs one harness to its end and prints its result line; fails on a finding.
run_harness() {
  local name=$1 log=$tree/$1.log verdict='no finding' status=0 executed speed reached
  mkdir -p "$tree/corpus/$name" "$tree/findings"
  NEXAR_FUZZ_HARNESS=$name "$tree/bin/fuzz_harnesses" -runs="$runs" -max_total_time="$seconds" -max_len="$(longest_input "$name")" -timeout=10 -rss_limit_mb=1024 \
    -detect_leaks="$(leak_check "$name")" \
    -print_final_stats=1 -artifact_prefix="$tree/findings/$name-" \
    "$tree/corpus/$name" "fuzz/corpus/$name" >"$log" 2>&1 || status=$?
  [ $status -eq 0 ] || verdict="FINDING, see $log"
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  speed=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
  reached=$(sed -n 's/.* \(cov: [0-9]* ft: [0-9]*\) .*/\1/p' "$log" | tail -n 1)
  printf '%-13s %9s executions %7s/s  %-18s %s\n' "$name" "${executed:-no}" "${speed:-0}" \
    "${reached:-cov: none}" "$verdict"
  return $status
}

failed=0
running=0
for name in "${harnesses[@]}"; do
  if [ "$running" -eq "$jobs" ]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  run_harness "$name" &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || failed=1
  running=$((running - 1))
done
exit $failed
