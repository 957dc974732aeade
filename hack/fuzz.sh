#!/usr/bin/env bash
# Runs every fuzz target for a while, one after another: hack/fuzz.sh [TARGET..]. Ends with 1 if one of them found something.
#
# SECONDS_EACH  how long each target runs (default 300)
# MEMORY        limit of each target in MiB (default 2048)
# CORPUS        where inputs are kept between runs (default <build folder>/fuzz/corpus)
# TOOLCHAIN     a nightly toolchain (default nightly)
#
# The targets are the [[bin]]s of fuzz/Cargo.toml. What is found lies in fuzz/artifacts/TARGET; `cargo fuzz run TARGET FILE` repeats it. Ends with
# 3 if this machine has no cargo-fuzz, or no nightly toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SECONDS_EACH="${SECONDS_EACH:-300}" MEMORY="${MEMORY:-2048}" TOOLCHAIN="${TOOLCHAIN:-nightly}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/entourage/target}"
readonly CORPUS="${CORPUS:-$CARGO_TARGET_DIR/fuzz/corpus}"

main() {
    if [[ "${1:-}" == --list ]]; then
        targets
        return
    fi
    need cargo "+$TOOLCHAIN" --version
    need cargo "+$TOOLCHAIN" fuzz --version
    local target found=() all
    all=$(targets)
    for target in "$@"; do
        grep -qxF -- "$target" <<<"$all" || { echo "fuzz.sh: fuzz/Cargo.toml has no target $target" >&2; exit 2; }
    done
    (($# > 0)) || mapfile -t list <<<"$all"
    (($# == 0)) || list=("$@")
    for target in "${list[@]}"; do
        echo "fuzz.sh: $target for $SECONDS_EACH s"
        mkdir -p "$CORPUS/$target"
        local seeds=()
        [[ ! -d "fuzz/seeds/$target" ]] || seeds=("fuzz/seeds/$target")
        # An own limit beside libFuzzer's: a target that hangs outside of an input ends, too.
        timeout --kill-after=10 $((SECONDS_EACH * 2 + 1800)) \
            cargo "+$TOOLCHAIN" fuzz run "$target" "$CORPUS/$target" "${seeds[@]}" -- \
            -max_total_time="$SECONDS_EACH" -rss_limit_mb="$MEMORY" -timeout=30 -print_final_stats=1 || found+=("$target")
    done
    if ((${#found[@]} > 0)); then
        echo "fuzz.sh: found something, see fuzz/artifacts: ${found[*]}" >&2
        exit 1
    fi
}

# The names of the [[bin]]s.
targets() {
    awk '/^\[/ { bin = /^\[\[bin\]\]$/ } bin && $1 == "name" { gsub(/"/, "", $3); print $3 }' fuzz/Cargo.toml
}

need() {
    "$@" >/dev/null 2>&1 || { echo "fuzz.sh: $* does not run: install it (rustup toolchain install $TOOLCHAIN; cargo install cargo-fuzz)" >&2; exit 3; }
}

main "$@"
