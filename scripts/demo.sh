#!/usr/bin/env bash
# From a fresh machine to the main job: installs what is missing, builds, and starts four processes that find
# each other, time collectives on data that they check, and show what happens when one calls another
# collective than the rest.
set -euo pipefail
source "$(dirname "$0")/common.sh"

"$root/scripts/setup.sh" build
build release nexar_command example_demo
cd "$root"
say "build/release/bin/nexar run -n 4 -- build/release/bin/example_demo"
echo
build/release/bin/nexar run -n 4 -- build/release/bin/example_demo
cat <<'NEXT'

What to try next:
  examples/demo.cpp                                        the program that you have just seen
  build/release/bin/nexar bench all_reduce -n 4            time any collective, with the columns of nccl-tests
  build/release/bin/nexar explain all_reduce --world 8 --bytes 64MiB
                                                           which algorithm runs, why, and step by step what it does
  docs/start.md                                            several machines, and Slurm, torchrun, Kubernetes
NEXT
