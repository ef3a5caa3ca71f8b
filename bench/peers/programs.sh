# shellcheck shell=bash disable=SC2154
# The programs that run.sh measures: builds or finds them, and starts them. Sourced, never run.

# A bundle (see bundle.sh) has a file that names its architecture, and finished programs in bin/.
bundled() { [ -f "$root/architecture" ]; }

# need_architecture: fails on a machine that cannot run the programs of this bundle.
need_architecture() {
  local made_for
  made_for=$(cat "$root/architecture")
  [ "$made_for" = "$(uname -m)" ] ||
    fail "this bundle is for $made_for, and this machine is $(uname -m). To build and measure here from the same source:
  mkdir nexar && tar -xzf $root/source.tar.gz -C nexar && nexar/bench/peers/run.sh OPTIONS"
}

# The programs of a bundle name this path as their loader, so that they run with the C library that the bundle brings;
# it fits into the space of the original path.
readonly loader_home=/tmp/nexar_peers

# place_loader: makes the bundle's loader available under the name that its programs expect.
place_loader() {
  if [ -e "$loader_home" ] || [ -L "$loader_home" ]; then
    { [ -L "$loader_home" ] && [ "$(stat -c %u "$loader_home")" = "$(id -u)" ]; } ||
      fail "$loader_home exists and is not a link of yours; it must be removed before a bundle can run"
  fi
  ln -sfn "$root/lib" "$loader_home"
}

# compile LABEL SOURCE PROGRAM COMPILER [OPTION...]: unless the program is newer than its sources.
compile() {
  local label=$1 source=$here/$2 program=$3
  shift 3
  [ "$program" -nt "$source" ] && [ "$program" -nt "$here/peer.hpp" ] && return
  quietly "build-$label" "$1" -std=c++20 -O3 "$source" -o "$program" "${@:2}"
}

# mpi_command NAME KIND: prints the command mpirun or mpicxx (KIND) of openmpi or mpich (NAME).
mpi_command() {
  local says
  command -v "$2.$1" && return
  command -v "$2" >/dev/null || return 1
  case "$1" in
    openmpi) says='open.?mpi|open.?rte' ;;
    mpich) says='hydra|mpich' ;;
  esac
  [[ $({ "$2" --version; "$2" -show; } 2>&1 | tr '[:upper:]' '[:lower:]') =~ $says ]] && command -v "$2"
}

# need_mpi openmpi|mpich: provides $tree/mpi_peer.NAME for the MPI of this machine. Says why and fails if it cannot.
need_mpi() {
  local name=$1 compiler launcher
  launcher=$(mpi_command "$name" mpirun) || {
    say "this machine has no mpirun of $name; there are no rows for it" >&2
    return 1
  }
  if compiler=$(mpi_command "$name" mpicxx); then
    (compile "$name-peer" mpi_peer.cpp "$tree/mpi_peer.$name" "$compiler") && return
  fi
  # A program that was compiled elsewhere runs if the library here has the same interface.
  if [ -x "$root/bin/mpi_peer.$name" ]; then
    cp "$root/bin/mpi_peer.$name" "$tree/mpi_peer.$name"
    [ -z "$(mpi_rows "${name}_shm" barrier 1 2>/dev/null)" ] || return 0
  fi
  say "$launcher is installed but mpicxx is not, or cannot compile mpi_peer.cpp; there are no rows for $name" >&2
  return 1
}

# build_programs: sets $nexar, $gloo_peer and $floor, and removes peers that are not available from $peers.
build_programs() {
  mkdir -p "$tree"
  if bundled; then
    need_architecture
    place_loader
    nexar=${nexar:-$root/bin/nexar}
  else
    "$root/scripts/setup.sh" build peers
    need_nexar
    compile floor floor.cpp "$floor" g++ -lcrypto
    compile gloo-peer gloo_peer.cpp "$gloo_peer" g++ -lgloo -pthread
  fi
  local name
  for name in openmpi mpich; do
    case "$peers" in *"${name}_"*) need_mpi "$name" || drop_peers "${name}_*" ;; esac
  done
}

# drop_peers PATTERN: removes the peers that match it from $peers.
drop_peers() {
  local peer kept=()
  for peer in $peers; do
    # shellcheck disable=SC2254 # a pattern
    case "$peer" in $1) ;; *) kept+=("$peer") ;; esac
  done
  peers="${kept[*]}"
}

# patience NAME RANKS: prints the timeout in seconds of a peer for all sizes of one operation. With more ranks than
# cores, MPICH spins for whole time slices.
patience() {
  case "$1" in
    mpich_*) if [ "$2" -gt "$(nproc)" ]; then echo "$crowded_patience"; else echo 300; fi ;;
    *) echo 300 ;;
  esac
}

# Each of these, and nexar_rows, prints "bytes p50_us" for every size of one operation.

# only_rows OPERATION: of the peer's output; launchers print there too, for instance when a timeout ends them.
only_rows() { awk -v operation="$1" '$1 == operation && NF == 4 && $3 > 0 { print $2, $3 }'; }

# mpi_rows openmpi_shm|openmpi_tcp|mpich_shm OPERATION RANKS
mpi_rows() {
  local launch program=$tree/mpi_peer.${1%_*}
  launch=("$(mpi_command "${1%_*}" mpirun)")
  [ "$1" = mpich_shm ] || launch+=(--allow-run-as-root --oversubscribe --mca pml ob1)
  case "$1" in
    openmpi_shm) launch+=(--mca btl 'vader,self') ;;
    openmpi_tcp) launch+=(--mca btl 'tcp,self' --mca btl_tcp_if_include lo) ;;
    mpich_shm) launch+=(-launcher fork) ;; # neither ssh nor a host name that resolves
  esac
  # As nexar bench does, ranks that have a core each stay there.
  [ "$3" -gt "$(nproc)" ] || launch+=("$([ "$1" = mpich_shm ] && echo -bind-to || echo --bind-to)" core)
  # With more ranks than cores, a rank that spins would keep others waiting for whole time slices.
  [ "$3" -le "$(nproc)" ] || [ "$1" = mpich_shm ] || launch+=(--mca mpi_yield_when_idle 1)
  timeout -k 5 "$(patience "$1" "$3")" "${launch[@]}" -n "$3" "$program" --operations "$2" --sizes "$sizes" \
    --seconds "$seconds" --warmup "$warmup" </dev/null | only_rows "$2"
}

# gloo_rows OPERATION RANKS
gloo_rows() {
  timeout -k 5 "$(patience gloo_tcp "$2")" "$gloo_peer" --ranks "$2" --operations "$1" --sizes "$sizes" \
    --seconds "$seconds" --warmup "$warmup" | only_rows "$1"
}

# rows_of NAME OPERATION RANKS: the same for nexar/LINK or a peer.
rows_of() {
  case "$1" in
    nexar/shm) nexar_rows "$nexar" "$2" "$3" --link shm ;;
    nexar/shm_buffers) nexar_rows "$nexar" "$2" "$3" --link shm --memory shared ;;
    nexar/quic) nexar_rows "$nexar" "$2" "$3" --link quic --protection full ;;
    nexar/quic_none) nexar_rows "$nexar" "$2" "$3" --link quic --protection none ;;
    gloo_tcp) gloo_rows "$2" "$3" ;;
    *) mpi_rows "$1" "$2" "$3" ;;
  esac
}

# check_links: removes the links from $links that this nexar does not have, says so, and removes the peers that are
# compared with none of the others.
check_links() {
  local link kept=()
  for link in $links; do
    case "$link" in
      shm | quic | quic_none) ;;
      shm_buffers)
        case "$("$nexar" bench --help)" in
          *--memory*) ;;
          *)
            say "this nexar bench has no option --memory; there are no rows for shm_buffers" >&2
            continue
            ;;
        esac
        ;;
      *) fail "unknown link '$link'; the links are shm, shm_buffers, quic and quic_none" ;;
    esac
    if (sizes=8 seconds=0.001 rows_of "nexar/$link" all_reduce 2) >/dev/null 2>"$tree/errors.log"; then
      kept+=("$link")
    else
      say "there are no rows for $link, because nexar bench fails with it: $(head -n 1 "$tree/errors.log")" >&2
    fi
  done
  links="${kept[*]}"
  [ -n "$links" ] || fail "none of the links can be measured"
  case "$links" in *shm*) ;; *) drop_peers '*_shm' ;; esac
  case "$links" in *quic*) ;; *) drop_peers openmpi_tcp ;; esac
}
