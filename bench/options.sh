# shellcheck shell=bash
# What the scripts here share, beside scripts/common.sh. Sourced, never run.

# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

# read_options "NAME NAME ..." ARGUMENT...: sets the variable NAME to what follows --NAME; nothing else is understood.
read_options() {
  local known=" $1 "
  shift
  while [ $# -gt 0 ]; do
    case "$known" in
      *" ${1#--} "*) ;;
      *) fail "'$1' is not understood; the head of $0 says what is" ;;
    esac
    [ $# -ge 2 ] || fail "$1 wants a value"
    printf -v "${1#--}" '%s' "$2"
    shift 2
  done
}

# need_nexar: builds the command unless $nexar names one.
need_nexar() {
  [ -z "${nexar:-}" ] || return 0
  "$root/scripts/setup.sh" build
  build release nexar_command
  nexar="$root/build/release/bin/nexar"
}
