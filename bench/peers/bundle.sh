# shellcheck shell=bash disable=SC2154
# run.sh --bundle DIR: everything that run.sh needs on another machine of the same architecture, where nothing can be
# installed. Sourced, never run.
#
#   run.sh         starts bench/peers/run.sh, with the same options
#   bin            one script per program, which starts it with the libraries of the bundle
#   programs, lib  the programs, and all shared libraries that they need, with the loader and the C library
#   bench, scripts the scripts, and mpi_peer.cpp, which run.sh compiles for the MPI of the other machine
#   source.tar.gz  the source, to build on a machine of another architecture

# libraries PROGRAM...: prints the paths of the shared libraries that they need.
libraries() { ldd "$@" | awk '/=> \// { print $3 } /^[[:space:]]*\/.*ld-linux/ { print $1 }' | sort -u; }

# replace_loader PROGRAM: lets it name the loader of the bundle instead of the system's.
replace_loader() {
  local program=$1 old new=$loader_home/ld.so place
  old=$(ldd "$program" | awk '/^[[:space:]]*\/.*ld-linux/ { print $1 }')
  [ ${#new} -le ${#old} ] || fail "the path $new is longer than $old, which it replaces in $program"
  place=$(grep -abo -m1 "$old" "$program" | head -n 1)
  { printf '%s' "$new" && head -c $((${#old} - ${#new})) /dev/zero; } |
    dd of="$program" bs=1 seek="${place%%:*}" conv=notrunc status=none
}

# add_program FILE: copies a program with its libraries, and writes the script that starts it.
add_program() {
  local name library
  name=$(basename "$1")
  cp "$1" "$bundle/programs/$name"
  libraries "$1" | while read -r library; do cp -L "$library" "$bundle/lib/"; done
  replace_loader "$bundle/programs/$name"
  # shellcheck disable=SC2016 # for the script
  printf '#!/bin/sh\nhere=$(cd "$(dirname "$0")/.." && pwd)\nexec env LD_LIBRARY_PATH="$here/lib" "$here/programs/%s" "$@"\n' \
    "$name" >"$bundle/bin/$name"
  chmod +x "$bundle/bin/$name"
}

# write_source: the tracked files, with changes that are not committed.
write_source() {
  local revision
  revision=$(git -C "$root" stash create 2>/dev/null || true)
  git -C "$root" archive --format=tar.gz -o "$bundle/source.tar.gz" "${revision:-HEAD}" ||
    fail "--bundle needs a git checkout for the source archive, and $root is not one"
}

write_bundle() {
  local name
  [ ! -e "$bundle" ] || [ -z "$(ls -A "$bundle")" ] || fail "$bundle is not empty; give --bundle a new directory"
  mkdir -p "$bundle"/{bin,programs,lib,bench/peers,scripts}
  bundle=$(cd "$bundle" && pwd)
  for name in "$nexar" "$gloo_peer" "$floor"; do add_program "$name"; done
  mv "$bundle"/lib/ld-linux* "$bundle/lib/ld.so"
  # These run with the MPI library and the loader of the other machine.
  for name in openmpi mpich; do
    [ ! -x "$tree/mpi_peer.$name" ] || cp "$tree/mpi_peer.$name" "$bundle/bin/"
  done
  cp "$here"/* "$bundle/bench/peers/"
  cp "$root/bench/options.sh" "$bundle/bench/"
  cp "$root/scripts/common.sh" "$bundle/scripts/"
  # shellcheck disable=SC2016 # for the script
  printf '#!/bin/sh\nexec "$(dirname "$0")/bench/peers/run.sh" "$@"\n' >"$bundle/run.sh"
  chmod +x "$bundle/run.sh"
  write_source
  uname -m >"$bundle/architecture"
  say "$bundle is complete ($(du -sh "$bundle" | cut -f1)); copy it to the other machine and start its run.sh there"
}
