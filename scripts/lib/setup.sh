# shellcheck shell=bash
# What scripts/run, scripts/test, scripts/install and scripts/package share: finding out what is missing, and installing it.
# Sourced, never run.
#
# Everything is looked for first. Where all is there, nothing is installed, no list of packages is fetched and no right to do
# so is asked for.

# The names of Debian packages to install, and why, one line each.
missing_packages=()
missing_reasons=()

say() {
    printf '== %s\n' "$*"
}

die() {
    printf '%s: %s\n' "scripts/${0##*/}" "$*" >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

# want REASON PACKAGE...: to be installed by the next install_packages.
want() {
    local reason=$1
    shift
    missing_packages+=("$@")
    missing_reasons+=("$* ($reason)")
}

install_packages() {
    local as_root=()
    if ((${#missing_packages[@]} == 0)); then
        return
    fi
    say "installing with apt-get: $(printf '%s; ' "${missing_reasons[@]}")"
    have apt-get || die "no apt-get here: install these by hand (they are Debian's names), then run this again"
    if (($(id -u) != 0)); then
        have sudo || die "apt-get needs root: run this as root, or install sudo"
        as_root=(sudo)
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
        "${missing_packages[@]}"
    missing_packages=()
    missing_reasons=()
}

# Installs what is wanted, and lets no package start a service of its own, by the file that Debian has for that.
install_packages_without_services() {
    local policy=/usr/sbin/policy-rc.d as_root=()
    if ((${#missing_packages[@]} == 0)); then
        return
    fi
    if (($(id -u) != 0)); then
        have sudo || die "installing needs root: run this as root, or install sudo"
        as_root=(sudo)
    fi
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod 755 "$policy"
        # shellcheck disable=SC2064 # What it is now is what to remove.
        trap "${as_root[*]} rm -f $policy" EXIT
    fi
    install_packages
}

has_rabbitmq() {
    [[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]]
}

# A Rust toolchain is the one thing that is not installed: how to have it is the user's choice.
check_rust() {
    local wanted
    have cargo || die "Rust is missing: install Rust (with rustup, for one) and see that cargo is in PATH"
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    local found
    found=$(rustc --version | cut -d' ' -f2)
    if [[ $(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1) != "$wanted" ]]; then
        die "Rust $found is too old: $wanted or newer is needed"
    fi
}

# What building the router takes besides Rust.
setup_build() {
    check_rust
    if ! have cc; then
        want "Rust links with it" gcc libc6-dev
    fi
    install_packages
}

has_headers() {
    "$1" -c 'import ensurepip, os, sys, sysconfig, venv
path = sysconfig.get_paths()["include"]
sys.exit(sys.version_info < (3, 9) or not os.path.exists(os.path.join(path, "Python.h")))' >/dev/null 2>&1
}

# Prints the first Python that can make virtual environments and build extensions; nothing if there is none.
find_python() {
    local python
    for python in python3 /usr/bin/python3; do
        if have "$python" && has_headers "$python"; then
            printf '%s\n' "$python"
            return
        fi
    done
}

# Cyrus SASL as Proton's extension is built with it, and its mechanisms.
has_cyrus() {
    have pkg-config && pkg-config --exists libsasl2 &&
        { compgen -G '/usr/lib*/*/sasl2/libscram.so*' || compgen -G '/usr/lib*/sasl2/libscram.so*'; } >/dev/null
}

has_node() {
    have node && node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 18 ? 0 : 1)'
}

# What the tests take besides what the build takes.
setup_tests() {
    setup_build
    cargo fmt --version >/dev/null 2>&1 || die "rustfmt is missing: rustup component add rustfmt"
    cargo clippy --version >/dev/null 2>&1 || die "clippy is missing: rustup component add clippy"
    if ! have c++; then
        want "the fuzzer is written in C++" g++
    fi
    if [[ -z $(find_python) ]]; then
        want "runs the client on Proton, whose extension is built here" python3 python3-venv python3-dev
    fi
    if ! has_cyrus; then
        want "gives the client on Proton every SASL mechanism" libsasl2-dev libsasl2-modules pkg-config
    fi
    if ! has_node; then
        want "runs the client on rhea" nodejs
    fi
    if ! have npm; then
        want "installs rhea" npm
    fi
    if ! have valgrind; then
        want "counts the instructions of the hot path" valgrind
    fi
    install_packages
    # Only Debian's layout of it is known. Elsewhere the test with a broker says that it is skipped.
    if [[ ${RINGMAIN_SKIP_INTEROP:-} != 1 ]] && ! has_rabbitmq && have apt-get; then
        want "the broker of a test, 35 MB with Erlang" rabbitmq-server
        install_packages_without_services
    fi
    # The newest one that our rust-version builds.
    setup_tool nextest 0.9.114 "runs the tests"
    setup_tool fuzz 0.13.2 "runs the fuzzers"
    # Elsewhere the test of the package says that it is skipped.
    if have dpkg-deb && have apt-get; then
        setup_package
    fi
    setup_proton
    setup_rhea
}

# setup_tool SUBCOMMAND VERSION REASON: a subcommand of cargo. What is there already is used, whatever its version; else it is
# built, for this project only and without optimizing, which takes a quarter of the time.
setup_tool() {
    local subcommand=$1 version=$2 reason=$3
    local tools
    tools=$(realpath -m "${CARGO_TARGET_DIR:-target}")/tools
    export PATH=$PATH:$tools/bin
    if ! cargo "$subcommand" --version >/dev/null 2>&1; then
        say "building cargo-$subcommand $version ($reason): a few minutes, once"
        cargo install --locked --quiet --debug --root "$tools" "cargo-$subcommand@$version"
    fi
}

# What makes a Debian package.
setup_package() {
    if ! have dpkg-shlibdeps; then
        want "finds the libraries that the package depends on" dpkg-dev
        install_packages
    fi
    setup_tool deb 3.8.0 "makes the Debian package"
}

# Qpid Proton for Python in .venv, as requirements.txt says; again whenever that changes.
setup_proton() {
    local wanted=router/tests/interop/peers/proton/requirements.txt done=.venv/requirements.txt
    local python
    local has_it='import sys, proton; sys.exit(not proton.SASL.extended())'
    if [[ -e $done ]] && cmp -s "$wanted" "$done" && .venv/bin/python -c "$has_it" 2>/dev/null; then
        return
    fi
    python=$(find_python)
    [[ -n $python ]] || die "no Python that can make virtual environments and has its C headers"
    say "installing Qpid Proton for Python in .venv: its C library is compiled, which takes half a minute"
    rm -rf .venv
    "$python" -m venv .venv
    # The build's own tools first, at the versions that the file says: with build isolation pip would take the newest ones.
    grep -E '^(setuptools|cffi|pycparser)==' "$wanted" |
        .venv/bin/pip install --quiet --disable-pip-version-check -r /dev/stdin
    # One that was built without Cyrus SASL may be in pip's cache.
    .venv/bin/pip install --quiet --disable-pip-version-check --no-build-isolation --no-cache-dir -r "$wanted"
    cp "$wanted" "$done"
}

# rhea in node_modules, as package-lock.json says; again whenever that changes.
setup_rhea() {
    local folder=router/tests/interop/peers/rhea
    if cmp -s "$folder/package-lock.json" "$folder/node_modules/installed-lock.json"; then
        return
    fi
    say "installing rhea"
    (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    cp "$folder/package-lock.json" "$folder/node_modules/installed-lock.json"
}
