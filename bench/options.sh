# shellcheck shell=bash
# Functions shared by the scripts in this folder, in addition to scripts/common.sh. Sourced, never run.

# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

# read_options "NAME NAME ..." ARGUMENT...: sets the variable NAME to the value after --NAME; fails on other arguments.
read_options() {
  local known=" $1 "
  shift
  while [ $# -gt 0 ]; do
    case "$known" in
      *" ${1#--} "*) ;;
      *) fail "unknown option '$1'; the comment at the top of $0 lists the options" ;;
    esac
    [ $# -ge 2 ] || fail "$1 needs a value"
    printf -v "${1#--}" '%s' "$2"
    shift 2
  done
}

# The cells of a quick measurement.
# shellcheck disable=SC2034 # for the scripts
readonly quick_operations='all_reduce broadcast all_gather all_to_all barrier latency' quick_sizes='8 64KiB 1MiB 16MiB'

# nexar_rows NEXAR OPERATION RANKS [OPTION...]: prints "bytes p50_us" for each of $sizes; uses $seconds and $warmup.
nexar_rows() {
  local command=$1 operation=$2 world=$3
  shift 3
  # shellcheck disable=SC2154 # the scripts set them
  timeout 600 "$command" bench "$operation" -n "$world" --sizes "$sizes" --iters 0 --seconds "$seconds" \
    --warmup "$warmup" --nexar-log-level=error "$@" | awk '!/^#/ { print $1, $10 }'
}

# need_nexar: builds the command unless $nexar names one.
need_nexar() {
  [ -z "${nexar:-}" ] || return 0
  "$root/scripts/setup.sh" build
  build release nexar_command
  nexar="$root/build/release/bin/nexar"
}
