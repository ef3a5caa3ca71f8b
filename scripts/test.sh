#!/usr/bin/env bash
# From a fresh machine to a tested build: installs what is missing, builds everything and runs the whole
# test suite. Arguments go to ctest, for example -R wire.
set -euo pipefail
source "$(dirname "$0")/common.sh"

"$root/scripts/setup.sh" build test
build release
cd "$root"
exec ctest --preset release --parallel "$(nproc)" "$@"
