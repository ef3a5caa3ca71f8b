#!/usr/bin/env bash
# From a fresh machine to the main job: installs what is missing, builds, and starts four processes that find
# each other, time collectives on data that they check, and show what happens when one calls another
# collective than the rest. Then one of four processes is killed, the others go on, and a new one joins.
set -euo pipefail
source "$(dirname "$0")/common.sh"

"$root/scripts/setup.sh" build
build release nexar_command example_demo example_elastic
cd "$root"
say "build/release/bin/nexar run -n 4 -- build/release/bin/example_demo"
echo
build/release/bin/nexar run -n 4 -- build/release/bin/example_demo
echo
say "build/release/bin/nexar run -n 4 --on-failure restart -- build/release/bin/example_elastic"
echo
build/release/bin/nexar run -n 4 --on-failure restart -- build/release/bin/example_elastic
cat <<'NEXT'

What to try next:
  examples/demo.cpp, examples/elastic.cpp                  the programs that you have just seen
  build/release/bin/nexar bench all_reduce -n 4            time any collective, with the columns of nccl-tests
  build/release/bin/nexar explain all_reduce --world 8 --bytes 64MiB
                                                           which algorithm runs, why, and step by step what it does
  docs/membership.md                                       processes that die, and processes that join later
  docs/start.md                                            several machines, and Slurm, torchrun, Kubernetes
NEXT
