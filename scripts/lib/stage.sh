# shellcheck shell=bash
# What scripts/install and scripts/package have in common: the files beside the program. Sourced, never run.

# The names of qdrouterd's programs by which ours behaves as they do.
# shellcheck disable=SC2034 # For those who source this.
dispatch_names=(qdrouterd qdstat qdmanage)

# stage_share BINARY DIR ZSH: documents, examples, manual pages and completions, as they lie below PREFIX/share; ZSH is
# where zsh looks for functions there.
stage_share() {
    local binary=$1 share=$2 zsh=$2/zsh/$3 doc=$2/doc/ringmain name
    mkdir -p "$doc/examples" "$share/man"
    cp README.md CHANGELOG.md docs/deploy.md docs/configuration.md docs/decisions.md docs/security.md docs/tools.md docs/tuning.md "$doc"
    cp deploy/ringmain.conf deploy/production.conf "$doc/examples"
    cp deploy/sysctl.d/60-ringmain.conf "$doc/examples/sysctl.conf"
    cp deploy/limits.d/60-ringmain.conf "$doc/examples/limits.conf"
    # From the program itself, so that they say what it does.
    # Into man8 and man5.
    "$binary" man "$share/man" >/dev/null
    # The packages that have these programs have pages of these names, too.
    for name in "${dispatch_names[@]}"; do
        rm -f "$share"/man/man?/"$name".?
    done
    gzip -9nf "$share"/man/man?/*
    mkdir -p "$zsh" "$share"/{bash-completion/completions,fish/vendor_completions.d}
    "$binary" completions bash >"$share/bash-completion/completions/ringmain"
    "$binary" completions zsh >"$zsh/_ringmain"
    "$binary" completions fish >"$share/fish/vendor_completions.d/ringmain.fish"
}
