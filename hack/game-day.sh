#!/usr/bin/env bash
# Plays the game day of docs/game-day.md on embedded clusters: what would happen, by `entourage failover --dry-run` against a fleet of
# `entourage up`; a drain and the way back on that fleet; then `entourage drill`. Ends the fleet. Needs no cluster and no kubectl.
#
#   hack/game-day.sh                               # with config/samples/failover
#   hack/game-day.sh manifests                     # with the files of a directory, for members member1 to member3
#
# MEMBER       the member that is drained and drilled (default member1)
# ENTOURAGE    the binary (default: built here, without optimisation)
set -Eeuo pipefail
cd "$(dirname "$0")/.."

readonly FILES="${1:-config/samples/failover}"
readonly MEMBER="${MEMBER:-member1}"

binary="${ENTOURAGE:-}"
fleet=""
dir=""

main() {
    if [[ -z "$binary" ]]; then
        cargo build --quiet --package entourage
        binary="${CARGO_TARGET_DIR:-target}/debug/entourage"
    fi
    trap finish EXIT
    dir="$(mktemp -d)"
    step "A fleet of three members with $FILES"
    "$binary" up --members 3 --data-dir "$dir/fleet" --apply "$FILES" >"$dir/log" 2>&1 &
    fleet=$!
    export KUBECONFIG="$dir/fleet/kubeconfig"
    until_true "the fleet is not up" grep -q 'Ctrl-C ends them' "$dir/log"
    until_true "the workloads are not applied everywhere" settled
    "$binary" get bindings
    step "1. What would happen if $MEMBER failed"
    "$binary" failover --dry-run "$MEMBER" --taint example.com/dead
    step "2. Cordon $MEMBER: what is there stays"
    "$binary" cordon "$MEMBER"
    "$binary" get copies
    step "3. Drain $MEMBER; a workload without another cluster stays, and the drain says so"
    "$binary" drain "$MEMBER" --timeout 10s || echo "(not everything has left: see above)"
    "$binary" get bindings
    step "4. Give $MEMBER back"
    "$binary" uncordon "$MEMBER"
    until_true "the workloads are not settled again" settled
    "$binary" get bindings
    step "5. A drill, in clusters of its own: $MEMBER does not respond any more, and comes back"
    env -u KUBECONFIG "$binary" drill "$MEMBER" --members 3 -f "$FILES"
    step "The game day is over: every step did what docs/game-day.md says."
}

step() {
    printf '\n== %s\n\n' "$1"
}

# Whether there are copies, all are applied, and none came or went for a second.
settled() {
    local before after
    before="$(copies)"
    awk '{ if ($5 != "Applied") exit 1 } END { exit !NR }' <<<"$before" || return 1
    sleep 1
    after="$(copies)"
    [[ "$before" == "$after" ]]
}

copies() {
    "$binary" get copies -A | tail -n +2
}

until_true() {
    local what="$1" _
    shift
    for _ in {1..100}; do
        if "$@"; then return; fi
        sleep 0.2
    done
    echo "error: $what in time; the fleet said:" >&2
    cat "$dir/log" >&2
    exit 1
}

finish() {
    if [[ -n "$fleet" ]]; then
        kill -TERM "$fleet" 2>/dev/null || true
        wait "$fleet" 2>/dev/null || true
    fi
    [[ -z "$dir" ]] || rm -rf "$dir"
}

main
