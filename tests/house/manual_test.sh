#!/usr/bin/env bash
# Checks the man pages and the shell completions that the build generated.
#
#   manual_test.sh NEXAR MANUAL
#
# NEXAR is the command, MANUAL is the folder with man1/ and the completions.
set -euo pipefail

readonly nexar=$1 manual=$2
failures=0

complain() {
  printf 'FAILED: %s\n' "$*" >&2
  failures=$((failures + 1))
}

# Prints the options that the help of a command lists, one per line.
options_of() { "$nexar" "$@" --help | grep -E '^ +-' | sed -E 's/  +[^ -].*//' | grep -oE -- '--?[a-zA-Z][a-z-]*'; }

# Prints the subcommands that the help of a command lists.
commands_of() { "$nexar" "$@" --help | sed -n '/^Subcommands:/,/^$/{s/^  \([a-z-]*\) .*/\1/p}'; }

# plain PAGE: prints a page with roff's escaped hyphens replaced by plain ones.
plain() { sed 's/\\-/-/g' "$manual/man1/$1.1"; }

# check_page PAGE COMMAND...: checks that the page lists every option of the command.
check_page() {
  local page=$1 option count=0
  shift
  for option in $(options_of "$@"); do
    plain "$page" | grep -F -- "\\fB$option\\fR" >/dev/null || complain "$page.1 lacks $option of nexar $*"
    count=$((count + 1))
  done
  [ "$count" -gt 0 ] || complain "nexar $* --help lists no option"
}

check_page nexar
commands=$(commands_of)
[[ " ${commands//$'\n'/ } " == *" run "* ]] || complain "the help of nexar does not list run: $commands"
for command in $commands; do
  plain nexar | grep -F "nexar $command" >/dev/null || complain "nexar.1 lacks $command"
  check_page "nexar-$command" "$command"
done
for command in $(commands_of token); do check_page nexar-token token "$command"; done
for page in "$manual"/man1/*.1; do
  if grep -qE 'run.part|completion bash' "$page"; then complain "$page shows a hidden command"; fi
  # The argument parser's own terms; the pages describe arguments in words.
  if grep -qE 'UINT|TEXT|REQUIRED|Excludes| in \[' "$page"; then complain "$page shows terms of the argument parser"; fi
done

if command -v groff >/dev/null; then
  for page in "$manual"/man1/*.1; do
    warnings=$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null)
    [ -z "$warnings" ] || complain "groff on $page: $warnings"
  done
fi

# completed WORD...: prints what bash offers for the last word.
completed() {
  bash -c '
    set -u
    source "$1"
    shift
    COMP_WORDS=(nexar "$@")
    COMP_CWORD=$#
    _nexar
    printf "%s\n" "${COMPREPLY[@]}"' bash "$manual/nexar.bash" "$@" | tr '\n' ' '
}

# offers WANTED WORD...: checks that the completion of the last word is exactly WANTED.
offers() {
  local wanted=$1 got
  shift
  got=$(completed "$@")
  [ "$got" = "$wanted " ] || complain "completing 'nexar $*' gives '$got' instead of '$wanted'"
}

bash -n "$manual/nexar.bash" || complain "nexar.bash has a syntax error"
offers token to
offers create token cr
offers --host run -n 4 --ho
offers --uses token create --us
offers '--nexar-log-level=' run --nexar-log-le
[[ $(completed run -n 2 -- bas) == *bash\ * ]] || complain "the program name after nexar run -- is not completed"
if command -v zsh >/dev/null; then zsh -n "$manual/nexar.zsh" || complain "nexar.zsh has a syntax error"; fi
if command -v fish >/dev/null; then fish -n "$manual/nexar.fish" || complain "nexar.fish has a syntax error"; fi

[ "$failures" -eq 0 ] || exit 1
printf 'man pages and completion are complete\n'
