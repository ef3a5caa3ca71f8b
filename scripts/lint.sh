#!/usr/bin/env bash
# The checks that do not run the code: format, layers, file lengths, shell scripts, clang-tidy.
#
#   scripts/lint.sh          clang-tidy with the fast checks on files changed since origin/main, or in
#                            the last 20 commits if HEAD is origin/main
#   scripts/lint.sh --all    clang-tidy on all files, with every check of .clang-tidy
#   NEXAR_LINT_BASE=REV      compare with this revision instead
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$root"

"$root/scripts/setup.sh" build lint

readonly format=clang-format-19
# These checks take more than half of clang-tidy's time; only --all runs them.
slow_checks='-clang-analyzer-*,-modernize-*,-misc-*,-portability-*,-bugprone-reserved-identifier'
slow_checks+=',-performance-unnecessary-value-param,-bugprone-standalone-empty,-bugprone-stringview-nullptr'
slow_checks+=',-bugprone-undelegated-constructor,-bugprone-suspicious-string-compare'
readonly slow_checks
failures=0

# stage NAME COMMAND...: runs one check and counts its failure; the script continues either way.
stage() {
  local name=$1
  shift
  if "$@"; then
    say "lint: $name ok"
  else
    say "lint: $name FAILED" >&2
    failures=$((failures + 1))
  fi
}

cpp_files() { git ls-files '*.cpp' '*.hpp'; }

shell_files() { git ls-files '*.sh' '.ci/run'; }

check_format() { cpp_files | xargs --no-run-if-empty "$format" --dry-run --Werror; }

check_shell() { shell_files | xargs --no-run-if-empty shellcheck -x -P scripts; }

check_lengths() {
  local file lines long=0
  while read -r file; do
    lines=$(wc -l <"$file")
    if [ "$lines" -gt 800 ]; then
      printf '%s has %d lines; the limit is 800, split it by idea\n' "$file" "$lines" >&2
      long=1
    elif [ "$lines" -gt 400 ]; then
      printf 'note: %s has %d lines; aim for at most 400\n' "$file" "$lines"
    fi
  done < <(cpp_files; shell_files)
  return $long
}

# The revision to compare with; empty if all files count as changed.
lint_base() {
  if [ -n "${NEXAR_LINT_BASE:-}" ]; then
    printf '%s' "$NEXAR_LINT_BASE"
    return
  fi
  local head upstream
  head=$(git rev-parse HEAD)
  upstream=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -n "$upstream" ] && [ "$upstream" != "$head" ]; then
    printf '%s' "$upstream"
  else
    git rev-parse --verify --quiet HEAD~20 || true
  fi
}

# The .cpp files to check. A changed header is checked through the first .cpp file that includes it.
tidy_files() {
  local base changed header
  base=$(lint_base)
  if [ "${1:-}" = --all ] || [ -z "$base" ]; then
    cpp_files | grep '\.cpp$'
    return
  fi
  changed=$(git diff --name-only --diff-filter=d "$base" -- '*.cpp' '*.hpp')
  {
    grep '\.cpp$' <<<"$changed" || true
    for header in $(grep '\.hpp$' <<<"$changed" || true); do
      git grep -lF "$(sed -E 's#^(include|src|tests|bench)/##' <<<"$header")" -- '*.cpp' | head -1 || true
    done
  } | sort -u
}

# Reads units of compilation, one per line. Prints each one with each source in it; a unity source includes many.
sources_of_units() {
  local unit
  while read -r unit; do
    if [[ $unit == */Unity/unity_* ]]; then
      sed -n "s#^\#include \"$root/\(.*\)\"\$#$unit \1#p" "$root/$unit"
    else
      printf '%s %s\n' "$unit" "$unit"
    fi
  done
}

check_tidy() {
  # clang-tidy spends most of its time on the headers, so it checks the unity sources, which share them.
  quietly configure-release cmake --preset release
  local checks=-bugprone-suspicious-include # of the .cpp files of a unity source
  [ "${1:-}" = --all ] || checks+=,$slow_checks
  # Only files of the build have a compile command; the tests' sources with deliberate errors do not.
  sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/release/compile_commands.json | sed "s#^$root/##" |
    sources_of_units |
    awk 'NR == FNR { wanted[$0]; next } $2 in wanted && !($2 in found) { found[$2]; print $1 }' <(tidy_files "$@") - |
    sort -u | xargs --no-run-if-empty -P "$(nproc)" -I '{}' scripts/tidy_file.sh '{}' "$checks"
}

stage format check_format
stage layers "$root/scripts/check_layers.sh"
stage lengths check_lengths
stage shell check_shell
stage clang-tidy check_tidy "$@"
[ "$failures" -eq 0 ] || fail "lint: $failures of 5 checks failed, see above"
