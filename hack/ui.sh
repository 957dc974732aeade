#!/usr/bin/env bash
# Tries the page of `entourage ui` in headless Chromium: hack/ui.sh [FOLDER]. Screenshots go to FOLDER (default target/ui).
#
# First the page's files with 10,000 objects that are made from recorded rows, then the page that `entourage up --ui` serves. Nothing
# is installed. Ends with 3 if this machine has no Chromium, or no python3.
#
# CHROMIUM    the browser (default: chromium, chromium-browser or google-chrome on PATH)
# ENTOURAGE   the binary (default target/debug/entourage); off: only the recorded rows
# RECORDED    off: only the page that the binary serves
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly FOLDER=${1:-${CARGO_TARGET_DIR:-target}/ui}

main() {
    CHROMIUM=${CHROMIUM:-$(type -P chromium chromium-browser google-chrome | head -n 1)} || true
    [[ -n "$CHROMIUM" ]] || stop 3 "chromium is missing: install it, or name one with CHROMIUM"
    type -P python3 >/dev/null || stop 3 "python3 is missing"
    export CHROMIUM PYTHONDONTWRITEBYTECODE=1
    [[ "${RECORDED:-}" == off ]] || python3 hack/ui/check.py recorded "$FOLDER"
    local entourage=${ENTOURAGE:-${CARGO_TARGET_DIR:-target}/debug/entourage}
    [[ "$entourage" != off ]] || return 0
    [[ -x "$entourage" ]] || stop 2 "$entourage is missing: cargo build -p entourage"
    serve "$entourage"
}

serve() {
    local output
    output=$(mktemp)
    "$1" up --members 3 --ui --apply config/samples/myapp >"$output" 2>&1 &
    UP=$!
    trap 'kill $UP 2>/dev/null || true; wait $UP 2>/dev/null || true; rm -f '"$output" EXIT
    local url="" tries=0
    until url=$(grep -o 'http://127.0.0.1:[0-9]*/#token=[0-9a-f]*' "$output"); do
        kill -0 $UP 2>/dev/null && ((tries++ < 3000)) || stop 1 "entourage up did not start: $(<"$output")"
        sleep 0.1
    done
    python3 hack/ui/check.py live "$FOLDER" "$url" $UP
}

stop() {
    echo "ui: ${*:2}" >&2
    exit "$1"
}

main "$@"
