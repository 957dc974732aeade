#!/usr/bin/env bash
# Measures `entourage controllers` on real API servers of this machine: a hub and members, each with its own etcd, which
# are started for it and ended after it. Prints the table; the report as JSON lies in the build folder.
#
#   hack/bench.sh                                  # S1 to S7, three runs each
#   hack/bench.sh S1 S2 --runs 1                   # arguments go to `entourage bench`
#   hack/bench.sh --kill 20 --workloads 900        # 20 SIGKILLs spread over S1, end state compared
#
# MEMBERS      how many members (default 3)
# BENCH_PORT   port for the control plane's health endpoint (default 18080)
# FEATURES     what the control plane is given as --feature-gates; S8 needs ResourceDistributionGate=true
# FLAGS        further flags of the control plane, such as --eviction-rate=100
# CONTROLLERS  the program whose `controllers` are measured (default: built as for a container, without the embedded server)
# BENCH_JSON   the report (default <build folder>/bench/report.json)
# Needs KUBEBUILDER_ASSETS with a kube-controller-manager, or Debian bookworm (hack/real-apiserver.sh).
set -Eeuo pipefail
cd "$(dirname "$0")/.."

readonly MEMBERS="${MEMBERS:-3}"
readonly PORT="${BENCH_PORT:-18080}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/entourage/target}"
readonly OUT="$CARGO_TARGET_DIR/bench"
readonly JSON="${BENCH_JSON:-$OUT/report.json}"
CONTROLLERS="${CONTROLLERS:-}"
readonly BINARY="$CARGO_TARGET_DIR/release/entourage"

fleet=""
dir=""

main() {
    [[ $# -gt 0 ]] || set -- all
    KUBEBUILDER_ASSETS="$(hack/real-apiserver.sh)"
    export KUBEBUILDER_ASSETS
    say "building"
    mkdir -p "$OUT"
    if [[ -z "$CONTROLLERS" ]]; then
        cargo build --quiet --profile container --package entourage --no-default-features
        CONTROLLERS="$CARGO_TARGET_DIR/container/entourage"
    fi
    cargo build --quiet --release --package entourage
    cargo build --quiet --release --package entourage-e2e --example fleet
    mkdir -p "$(dirname "$JSON")"
    dir="$(mktemp -d)"
    trap stop EXIT
    start_fleet

    local hub="$dir/fleet/hub/kubeconfig" members=() number
    "$BINARY" crds --apply --kubeconfig "$hub" >&2
    for ((number = 1; number <= MEMBERS; number++)); do
        local member="$dir/fleet/member$number/kubeconfig"
        "$BINARY" join "member$number" --cluster-kubeconfig "$member" --kubeconfig "$hub" --wait 0s >&2
        members+=(--member "member$number=$member")
        members+=(--member-pid "member$number=$(<"$dir/fleet/member$number/apiserver.pid")")
    done
    rm -f "$OUT/controllers.log"
    "$BINARY" bench "$@" --kubeconfig "$hub" "${members[@]}" --json "$JSON" \
        --controllers "$(printf '%q ' "$CONTROLLERS" controllers --kubeconfig "$hub" --health-addr "127.0.0.1:$PORT" \
            ${FEATURES:+--feature-gates "$FEATURES"} ${FLAGS:+$FLAGS})" \
        --ready-url "http://127.0.0.1:$PORT/readyz" --controllers-log "$OUT/controllers.log"
    say "report: $JSON; output of the control plane: $OUT/controllers.log"
}

# The program itself and not `cargo run`, so that the signal at the end reaches it.
start_fleet() {
    say "starting a hub and $MEMBERS members"
    "$CARGO_TARGET_DIR/release/examples/fleet" "$MEMBERS" "$dir/fleet" >"$dir/fleet.log" 2>&1 &
    fleet=$!
    local deadline=$((SECONDS + 120))
    until grep -q '^Ctrl-C ends them' "$dir/fleet.log"; do
        if ! kill -0 "$fleet" 2>/dev/null || ((SECONDS > deadline)); then
            cat "$dir/fleet.log" >&2
            say "the clusters did not start"
            exit 1
        fi
        sleep 0.2
    done
}

stop() {
    if [[ -n "$fleet" ]]; then
        kill -TERM "$fleet" 2>/dev/null || true
        wait "$fleet" 2>/dev/null || true
    fi
    rm -rf "$dir"
}

say() {
    echo "bench.sh: $*" >&2
}

main "$@"
