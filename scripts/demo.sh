#!/usr/bin/env bash
# From a fresh machine to real work: installs what is missing, builds, and runs the main job, today the
# benchmark of the reduce kernels. Arguments go to the program, for example --json FILE.
set -euo pipefail
source "$(dirname "$0")/common.sh"

"$root/scripts/setup.sh" build
build release reduce_bench
say "running the main job: build/release/bin/reduce_bench --quick $*"
exec "$root/build/release/bin/reduce_bench" --quick "$@"
