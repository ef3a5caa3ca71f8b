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

# show_steps LABEL: copies ninja's output to build/logs/LABEL.log and shows how far it is: one line that is
# rewritten on a terminal, otherwise one line per tenth.
show_steps() {
  local line step steps tenth=0
  while IFS= read -r line; do
    printf '%s\n' "$line"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (Building|Linking) ]] || continue
    step=${BASH_REMATCH[1]} steps=${BASH_REMATCH[2]}
    if [ -t 2 ]; then
      printf '\rnexar: step %d of %d ' "$step" "$steps" >&2
      [ "$step" -lt "$steps" ] || echo >&2
    elif [ $((10 * step / steps)) -gt "$tenth" ]; then
      tenth=$((10 * step / steps))
      printf 'nexar: step %d of %d\n' "$step" "$steps" >&2
    fi
  done >"$root/build/logs/$1.log"
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
  if ! NINJA_STATUS='[%f/%t] ' cmake --build --preset "$preset" "${targets[@]}" 2>&1 | show_steps "build-$preset"; then
    tail -n 40 "$root/build/logs/build-$preset.log" >&2
    fail "'build-$preset' failed; the complete output is in build/logs/build-$preset.log"
  fi
}
