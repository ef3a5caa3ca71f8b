# shellcheck shell=bash
# Functions shared by the scripts. Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Makes cached objects independent of the path, so that all checkouts on this machine share them.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1

say() { printf 'nexar: %s\n' "$*"; }

# fail SENTENCE...: prints what went wrong and what to do next, and ends the script.
fail() {
  printf 'nexar: %s\n' "$*" >&2
  exit 1
}

# quietly LABEL COMMAND...: runs the command with its output in build/logs/LABEL.log, and prints the end
# of that file only if the command fails.
quietly() {
  local label=$1
  shift
  local log="$root/build/logs/$label.log"
  mkdir -p "$root/build/logs"
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "'$label' failed; the complete output is in build/logs/$label.log"
  fi
}

# build PRESET [TARGET...]: configures and builds a preset. Returns quickly if the tree is up to date.
build() {
  local preset=$1
  shift
  local targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  cd "$root" || fail "cannot enter $root"
  [ -f "build/$preset/build.ninja" ] || say "configuring and building '$preset'; the first build takes several minutes"
  quietly "configure-$preset" cmake --preset "$preset"
  quietly "build-$preset" cmake --build --preset "$preset" "${targets[@]}"
}
