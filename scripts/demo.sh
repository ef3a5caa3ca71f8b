#!/usr/bin/env bash
# From a fresh machine to real work: installs what is missing, builds, and runs what there is today: ranks
# that pass a token around over encrypted QUIC, then the benchmark of the reduce kernels. Arguments go to
# the benchmark, for example --json FILE.
set -euo pipefail
source "$(dirname "$0")/common.sh"

"$root/scripts/setup.sh" build
build release example_local_cluster reduce_bench
say "four ranks, a token, mutual TLS between them: build/release/bin/example_local_cluster 4"
"$root/build/release/bin/example_local_cluster" 4
say "reducing arrays: build/release/bin/reduce_bench --quick $*"
exec "$root/build/release/bin/reduce_bench" --quick "$@"
