#!/usr/bin/env bash
# Installs the Debian packages that nexar needs. Does nothing, and needs no network, if all are installed.
#
#   scripts/setup.sh [build] [test] [cross] [lint] [fuzz] [peers] [launchers]      default: build test
#
# Run it as root or as a user with sudo, on Debian 12 (bookworm) or Debian 13 (trixie).
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
# Tests of `nexar run --host` start their own sshd; see prepare_sshd.
test_packages=(iproute2 openssh-client openssh-server)
# The cross compiler and qemu test the kernels for instruction sets that this machine lacks.
cross_packages=(googletest qemu-user ${foreign_compiler:+"$foreign_compiler"})
lint_packages=(git clang-format-19 clang-tidy-19 shellcheck)
# clang is also the compiler of the presets asan and tsan.
fuzz_packages=(clang-19 libclang-rt-19-dev)
# The libraries that bench/peers/run.sh compares with.
peers_packages=(openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev)
# The launchers that the tests with the label `launchers` start: 88 MB.
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

# missing PACKAGE...: prints the packages that are not installed yet.
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
    *) fail "this is ${id:-an unknown system} ${version}; setup.sh supports only Debian 12 and 13. Install these packages by hand, then run it again: $*" ;;
  esac
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "packages are missing ($*), and you are not root and have no sudo; run scripts/setup.sh once as root"
    sudo -n true 2>/dev/null || say "sudo may ask for your password to install packages"
  fi
}

apt() { quietly "apt-$1" as_root apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"; }

# available PACKAGE LEAST: prints the newest version >= LEAST that apt can install; empty if there is none.
available() {
  local version
  apt-cache madison "$1" | awk -F'|' '{gsub(/ /, "", $2); print $2}' | while read -r version; do
    if dpkg --compare-versions "$version" ge "$2"; then
      printf '%s' "$version"
      break
    fi
  done
}

# The ngtcp2 of Debian 12 is too old; its backports have a newer one. They are on the mirror that this
# machine already uses, so this script contains no address.
add_backports() {
  local codename=$1 mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  # shellcheck disable=SC2016  # $(REPO_URI) is apt's own placeholder
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 'Created-By: Packages' |
    awk -v codename="$codename" '$2 == codename && $3 == "Debian" { print $1; exit }')
  [ -n "$mirror" ] || fail "apt on this machine has no Debian $codename mirror that could provide $codename-backports; add one to /etc/apt and run this again"
  say "adding $codename-backports from the configured mirror, for ngtcp2 >= $ngtcp2_least"
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
    [ -n "$version" ] || fail "this machine's Debian mirrors do not have $package >= $ngtcp2_least"
    exact+=("$package=$version")
  done
  apt install --no-install-recommends "${exact[@]}"
}

# Debian starts the ssh server as soon as it is installed, which people who run tests did not ask for.
# Debian's service does not start if this file exists. The tests do not need the service.
prepare_sshd() {
  local marker=/etc/ssh/sshd_not_to_be_run
  case " $* " in *' openssh-server '*) ;; *) return ;; esac
  as_root mkdir -p /etc/ssh
  as_root touch "$marker"
  say "installing the ssh server for tests without starting it; remove $marker if you want it to run"
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
