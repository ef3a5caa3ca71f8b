#!/usr/bin/env bash
# From a fresh machine to real work: installs what is missing, builds, and lets four processes find each other
# through a seed, connect all pairs over QUIC with mutual TLS and exchange checked data. Arguments go to the
# benchmark of the reduce kernels at the end, for example --json FILE.
set -euo pipefail
source "$(dirname "$0")/common.sh"

"$root/scripts/setup.sh" build
build release nexar_command example_seed_worker reduce_bench
bin="$root/build/release/bin"
say "a seed and four processes: build/release/bin/nexar run -n 4 -- build/release/bin/example_seed_worker"
"$bin/nexar" run -n 4 -- "$bin/example_seed_worker"
say "reducing arrays: build/release/bin/reduce_bench --quick $*"
"$bin/reduce_bench" --quick "$@"
cat <<'NEXT'

What to try next, from the project's root:
  build/release/bin/nexar seed --world 2        a seed of your own; then, in another shell:
  NEXAR_JOIN=$(build/release/bin/nexar token create --uses 2) \
    bash -c 'build/release/bin/example_seed_worker & build/release/bin/example_seed_worker; wait'
  build/release/bin/nexar peers                 who is connected with whom, by which address, and why
  build/release/bin/nexar --help                docs/start.md has the way to several machines
NEXT
