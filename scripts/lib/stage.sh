# shellcheck shell=bash
# What scripts/install and scripts/package have in common: the files beside the program. Sourced, never run.

# The names of qdrouterd's programs by which ours behaves as they do.
# shellcheck disable=SC2034 # For those who source this.
dispatch_names=(qdrouterd qdstat qdmanage)

# stage_share BINARY DIR: documents, examples, manual pages and completions, as they lie below PREFIX/share.
stage_share() {
    local binary=$1 share=$2 doc=$2/doc/ringmain page
    mkdir -p "$doc/examples"
    cp README.md CHANGELOG.md docs/deploy.md docs/configuration.md docs/decisions.md docs/tuning.md "$doc"
    cp deploy/ringmain.conf deploy/production.conf "$doc/examples"
    cp deploy/sysctl.d/60-ringmain.conf "$doc/examples/sysctl.conf"
    cp deploy/limits.d/60-ringmain.conf "$doc/examples/limits.conf"
    # From the program itself, so that they say what it does.
    if "$binary" man --help >/dev/null 2>&1; then
        mkdir -p "$share/man/man1"
        "$binary" man "$share/man/man1" >/dev/null
        for page in "$share"/man/man1/*; do
            gzip -9nf "$page"
        done
    else
        say "no manual pages: this program doesn't make any"
    fi
    if "$binary" completions --help >/dev/null 2>&1; then
        mkdir -p "$share"/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
        "$binary" completions bash >"$share/bash-completion/completions/ringmain"
        "$binary" completions zsh >"$share/zsh/vendor-completions/_ringmain"
        "$binary" completions fish >"$share/fish/vendor_completions.d/ringmain.fish"
    else
        say "no completions for shells: this program doesn't make any"
    fi
}
