#!/usr/bin/env bash
# Fuzzes the decoders: builds the preset `fuzz` (clang, libFuzzer, ASan, UBSan) and runs each harness
# from its committed corpus. New inputs go to build/fuzz/corpus, findings to build/fuzz/findings.
#
#   scripts/fuzz.sh [--runs N] [--jobs N] [harness...]
#
# --runs  executions per harness: 200000 by default (what CI does), 10000000 for the long run
# --jobs  harnesses that run at the same time, 1 by default
#
# Prints one line per harness. Exit 1 when any has a finding.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=200000
jobs=1
harnesses=()

number() {
    [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "fuzz.sh: $1 takes a number above 0, given: '${2:-}'" >&2; exit 2; }
    echo "$2"
}

while (($# > 0)); do
    case $1 in
        --runs) runs=$(number "$1" "${2:-}") && shift 2 ;;
        --jobs) jobs=$(number "$1" "${2:-}") && shift 2 ;;
        -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" && exit 0 ;;
        -*) echo "fuzz.sh: unknown option $1; see scripts/fuzz.sh --help" >&2 && exit 2 ;;
        *) harnesses+=("$1") && shift ;;
    esac
done

known=()
for folder in fuzz/corpus/*/; do known+=("$(basename "$folder")"); done
((${#harnesses[@]} > 0)) || harnesses=("${known[@]}")
for name in "${harnesses[@]}"; do
    [[ " ${known[*]} " == *" $name "* ]] ||
        { echo "fuzz.sh: no harness '$name'; there are: ${known[*]}" >&2; exit 2; }
done

build=build/fuzz
mkdir -p "$build"
if ! { cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_harnesses; } >"$build/build.log" 2>&1; then
    tail -n 40 "$build/build.log" >&2
    echo "fuzz.sh: the harnesses do not build; the whole log is in $build/build.log" >&2
    exit 1
fi

# One harness to its end; prints its line, fails on a finding.
run_harness() {
    local name=$1 log=$build/$1.log status=0 executed speed reached
    mkdir -p "$build/corpus/$name" "$build/findings"
    "$build/bin/fuzz_$name" -runs="$runs" -max_len=4608 -timeout=10 -rss_limit_mb=1024 \
        -print_final_stats=1 -artifact_prefix="$build/findings/$name-" \
        "$build/corpus/$name" "fuzz/corpus/$name" >"$log" 2>&1 || status=$?
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    speed=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    reached=$(sed -n 's/.* \(cov: [0-9]* ft: [0-9]*\) .*/\1/p' "$log" | tail -n 1)
    printf '%-13s %10s executions %8s/s  %s  %s\n' "$name" "${executed:-?}" "${speed:-?}" \
        "${reached:-cov: ?}" "$( ((status == 0)) && echo 'no finding' || echo "FINDING, see $log")"
    return "$status"
}

failed=0
running=0
for name in "${harnesses[@]}"; do
    if ((running == jobs)); then
        wait -n || failed=1
        running=$((running - 1))
    fi
    run_harness "$name" &
    running=$((running + 1))
done
while ((running > 0)); do
    wait -n || failed=1
    running=$((running - 1))
done
exit "$failed"
