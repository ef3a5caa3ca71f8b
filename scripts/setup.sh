#!/usr/bin/env bash
# Installs from Debian what nexar needs. Does nothing, without network, when all of it is there.
#
#   scripts/setup.sh [build] [test] [cross] [lint] [fuzz] [peers] [launchers]      default: build test
#
# Works as root, or as a user who may use sudo, on Debian 12 (bookworm) and Debian 13 (trixie).
set -euo pipefail
source "$(dirname "$0")/common.sh"

readonly ngtcp2_least=1.11

case "$(dpkg --print-architecture 2>/dev/null || true)" in
  amd64) foreign_compiler=g++-aarch64-linux-gnu ;;
  arm64) foreign_compiler=g++-x86-64-linux-gnu ;;
  *) foreign_compiler= ;;
esac

build_packages=(ca-certificates g++ cmake ninja-build ccache pkg-config libfmt-dev libhwy-dev
  libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev
  libgnutls28-dev libssl-dev nettle-dev libxxhash-dev libisal-dev libasio-dev)
ngtcp2_packages=(libngtcp2-dev libngtcp2-crypto-gnutls-dev)
# ssh and sshd: tests of `nexar run --host` start their own, see prepare_sshd.
test_packages=(iproute2 openssh-client openssh-server)
# The cross compiler and qemu run the kernels on the instruction sets that this machine lacks.
cross_packages=(googletest qemu-user ${foreign_compiler:+"$foreign_compiler"})
lint_packages=(git clang-format-19 clang-tidy-19 shellcheck)
# Also the compiler of the presets asan and tsan.
fuzz_packages=(clang-19 libclang-rt-19-dev)
# What bench/peers/run.sh compares with.
peers_packages=(openmpi-bin libopenmpi-dev libgloo-dev)
# What the tests with the label `launchers` start: 88 MB.
launchers_packages=(openmpi-bin mpich munge slurm-client slurmctld slurmd)

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

installed_version() { dpkg-query -W -f='${Version}' "$1" 2>/dev/null || true; }

ngtcp2_missing() {
  local package
  for package in "${ngtcp2_packages[@]}"; do
    installed "$package" && dpkg --compare-versions "$(installed_version "$package")" ge "$ngtcp2_least" || return 0
  done
  return 1
}

# Prints the names that are not installed yet.
missing() {
  local package
  for package in "$@"; do
    installed "$package" || printf '%s\n' "$package"
  done
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

check_system() {
  local id='' version=''
  if [ -r /etc/os-release ]; then
    id=$(. /etc/os-release && printf '%s' "${ID:-}")
    version=$(. /etc/os-release && printf '%s' "${VERSION_ID:-}")
  fi
  case "$id:$version" in
    debian:12 | debian:13) ;;
    *) fail "this is ${id:-an unknown system} ${version}; set-up knows Debian 12 and 13. Install by hand, then run again: $*" ;;
  esac
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "packages are missing ($*) and you are neither root nor have sudo; run as root once: scripts/setup.sh"
    sudo -n true 2>/dev/null || say "sudo may ask for your password, to install packages"
  fi
}

apt() { quietly "apt-$1" as_root apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"; }

# The newest version of a package that apt can install, among those >= $2; empty when there is none.
available() {
  local version
  apt-cache madison "$1" | awk -F'|' '{gsub(/ /, "", $2); print $2}' | while read -r version; do
    if dpkg --compare-versions "$version" ge "$2"; then
      printf '%s' "$version"
      break
    fi
  done
}

# Debian 12 itself has an ngtcp2 that is too old; its backports have the right one. They live on the
# mirror that this machine already uses, so no address is written down here.
add_backports() {
  local codename=$1 mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  # shellcheck disable=SC2016  # $(REPO_URI) is apt's own placeholder
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 'Created-By: Packages' |
    awk -v codename="$codename" '$2 == codename && $3 == "Debian" { print $1; exit }')
  [ -n "$mirror" ] || fail "apt on this machine has no mirror of Debian $codename to take $codename-backports from; add one to /etc/apt and run again"
  say "adding $codename-backports of the mirror in use, for ngtcp2 >= $ngtcp2_least"
  [ -r "$keyring" ] || keyring=
  printf 'deb %s%s %s-backports main\n' "${keyring:+[signed-by=$keyring] }" "$mirror" "$codename" |
    as_root tee /etc/apt/sources.list.d/nexar-backports.list >/dev/null
  apt update
}

install_ngtcp2() {
  local package version exact=()
  if [ -z "$(available libngtcp2-dev "$ngtcp2_least")" ]; then
    add_backports "$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")"
  fi
  for package in "${ngtcp2_packages[@]}"; do
    version=$(available "$package" "$ngtcp2_least")
    [ -n "$version" ] || fail "$package >= $ngtcp2_least cannot be had from this machine's Debian mirrors"
    exact+=("$package=$version")
  done
  apt install --no-install-recommends "${exact[@]}"
}

# Debian starts the ssh server as soon as it is installed. Nobody who runs tests asked for that, so
# this file, which Debian's service looks for, keeps it from starting. Tests do not need the service.
prepare_sshd() {
  local marker=/etc/ssh/sshd_not_to_be_run
  case " $* " in *' openssh-server '*) ;; *) return ;; esac
  as_root mkdir -p /etc/ssh
  as_root touch "$marker"
  say "the ssh server will be installed for tests and not be started; remove $marker if you want it to run"
}

main() {
  local wanted=() profile
  [ $# -gt 0 ] || set -- build test
  for profile in "$@"; do
    case "$profile" in
      build) wanted+=("${build_packages[@]}") ;;
      test) wanted+=("${test_packages[@]}") ;;
      cross) wanted+=("${cross_packages[@]}") ;;
      lint) wanted+=("${lint_packages[@]}") ;;
      fuzz) wanted+=("${fuzz_packages[@]}") ;;
      peers) wanted+=("${peers_packages[@]}") ;;
      launchers) wanted+=("${launchers_packages[@]}") ;;
      *) fail "unknown part '$profile'; the parts are build, test, cross, lint, fuzz, peers and launchers" ;;
    esac
  done

  local absent
  mapfile -t absent < <(missing "${wanted[@]}")
  if [ ${#absent[@]} -eq 0 ] && ! ngtcp2_missing; then
    return
  fi
  check_system "${absent[@]}" "${ngtcp2_packages[@]}"
  say "refreshing the package lists"
  apt update
  if [ ${#absent[@]} -gt 0 ]; then
    prepare_sshd "${absent[@]}"
    say "installing ${absent[*]}"
    apt install --no-install-recommends "${absent[@]}"
  fi
  if ngtcp2_missing; then
    say "installing ngtcp2 $ngtcp2_least or newer"
    install_ngtcp2
  fi
}

main "$@"
