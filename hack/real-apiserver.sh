#!/usr/bin/env bash
# Prepares real API servers for the end-to-end tests from Debian bookworm's packages alone, for machines that reach
# nothing but their own package mirror. Elsewhere `setup-envtest` and a downloaded kube-controller-manager do the same.
#
# Prints one line on stdout: a directory with etcd, kube-apiserver, kube-controller-manager and kubectl, that is, what
# KUBEBUILDER_ASSETS points to. Progress goes to stderr.
#
#   export KUBEBUILDER_ASSETS="$(hack/real-apiserver.sh)"
#
# KUBEBUILDER_ASSETS   when set to a complete directory, it is printed and nothing else happens
# ENTOURAGE_CACHE      where the result is kept (default ~/.cache/entourage)
#
# Needs no root and installs nothing: packages are fetched with apt's own client into a private state directory and
# unpacked there, so neither apt's configuration nor the machine's packages change. In particular no etcd service is
# started, which installing etcd-server would do. First run: about four minutes on two cores and 3 GB of disk while it
# works (260 MB afterwards); every other run: nothing.
set -Eeuo pipefail

readonly VERSION=1.20.2
readonly SUITE=bookworm
readonly BINARIES=(etcd kube-apiserver kube-controller-manager kubectl)
readonly CACHE="${ENTOURAGE_CACHE:-$HOME/.cache/entourage}/real-apiserver"
readonly TARGET="$CACHE/$VERSION"
readonly WORK="$CACHE/$VERSION.work"
readonly LOG="$CACHE/$VERSION.log"

step="starting"

main() {
    if [[ -n "${KUBEBUILDER_ASSETS:-}" ]]; then
        if complete "$KUBEBUILDER_ASSETS"; then
            echo "$KUBEBUILDER_ASSETS"
            return
        fi
        say "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS lacks one of: ${BINARIES[*]}; preparing another directory"
    fi
    if ! complete "$TARGET"; then
        trap 'failed' ERR
        mkdir -p "$CACHE"
        # Two callers at once: the second waits and then finds the work done.
        exec 9>"$CACHE/$VERSION.lock"
        flock 9
        complete "$TARGET" || prepare
    fi
    echo "$TARGET"
}

prepare() {
    begin "checking the machine"
    grep -qxE "VERSION_CODENAME=\"?$SUITE\"?" /etc/os-release ||
        stop "this needs Debian $SUITE; elsewhere point KUBEBUILDER_ASSETS to envtest assets plus kube-controller-manager"
    for tool in apt-get dpkg-deb tar gzip flock; do
        command -v "$tool" >/dev/null || stop "$tool is missing"
    done
    rm -rf "$WORK"
    mkdir -p "$WORK"/{apt,debs,root,bin,tmp}
    : >"$LOG"

    fetch_packages
    unpack_source
    generate_openapi
    build_binaries

    begin "installing into $TARGET"
    mkdir -p "$TARGET"
    cp "$WORK/root/usr/bin/etcd" "$WORK/root/usr/bin/kubectl" "$WORK/bin/"
    "$WORK/bin/etcd" --version >>"$LOG" 2>&1
    "$WORK/bin/kubectl" version --client >>"$LOG" 2>&1
    "$WORK/bin/kube-apiserver" --version >>"$LOG" 2>&1
    "$WORK/bin/kube-controller-manager" --version >>"$LOG" 2>&1
    # Renames are atomic: whoever sees all four names has four whole files.
    for binary in "${BINARIES[@]}"; do
        mv "$WORK/bin/$binary" "$TARGET/$binary"
    done
    chmod -R u+w "$WORK"
    rm -rf "$WORK"
    say "done in ${SECONDS} s"
}

# Packages and the kubernetes source package, from the mirror that the machine's own apt sources name.
fetch_packages() {
    begin "finding the package mirror"
    local uri
    uri="$(mirror "")"
    if [[ -z "$uri" ]]; then
        # A slim image has no lists yet: read the machine's sources once into a private place.
        mkdir -p "$WORK/apt/machine/partial"
        local own=(-o "Dir::State::Lists=$WORK/apt/machine" -o "Dir::Cache=$WORK/apt" -o "APT::Sandbox::User=")
        logged apt-get "${own[@]}" -o Debug::NoLocking=1 update || say "some of the machine's apt sources did not answer"
        uri="$(mirror "$WORK/apt/machine")"
    fi
    [[ -n "$uri" ]] || stop "no apt source of this machine serves $SUITE main"

    begin "fetching the package lists"
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg options=""
    [[ -r "$keyring" ]] && options="[signed-by=$keyring] "
    printf '%s\n' "deb $options$uri $SUITE main" "deb-src $options$uri $SUITE main" >"$WORK/apt/sources.list"
    private_apt update

    begin "fetching the packages"
    cd "$WORK/debs"
    private_apt download etcd-server kubernetes-client golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev
    private_apt source --download-only "kubernetes"
    local deb
    for deb in ./*.deb; do
        logged dpkg-deb -x "$deb" "$WORK/root"
    done
}

# Where the module tree is expected: GOPATH mode, because the source's go.mod is older than the toolchain.
unpack_source() {
    begin "unpacking the kubernetes source"
    local archives=("$WORK"/debs/kubernetes_*.orig.tar.*)
    [[ -r "${archives[0]}" && "${archives[0]}" =~ (_|really)"$VERSION" ]] ||
        stop "expected the source of kubernetes $VERSION, found ${archives[0]##*/}"
    mkdir -p "$WORK/go/src/k8s.io/kubernetes"
    logged tar -xf "${archives[0]}" -C "$WORK/go/src/k8s.io/kubernetes" --strip-components=1
    # Go 1.18 made the runtime's map iterator larger than the vendored reflect2 believes it to be. A server built so runs
    # until it encodes a map in the wrong moment (custom resources do) and then dies of memory faults. The packaged
    # release knows both iterators.
    local vendored="$WORK/go/src/k8s.io/kubernetes/vendor/github.com/modern-go/reflect2"
    rm -r "$vendored"
    cp -r "$WORK/root/usr/share/gocode/src/github.com/modern-go/reflect2" "$vendored"
}

# The one generated file that the source package lacks.
generate_openapi() {
    begin "generating the OpenAPI definitions"
    cd "$WORK/go/src/k8s.io/kubernetes"
    go build -o "$WORK/bin/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
    local packages
    packages="$(
        grep -rl --include='*.go' '+k8s:openapi-gen=true' pkg staging/src/k8s.io vendor/k8s.io/kube-openapi |
            grep -v -E '/testdata/|/test/|sample|/examples?/|/code-generator/' |
            xargs -n1 dirname | sort -u |
            sed -E 's#^staging/src/#vendor/#; s#^#k8s.io/kubernetes/#' | paste -sd,
    )"
    logged with_go "$WORK/bin/openapi-gen" --input-dirs "$packages" \
        --output-package k8s.io/kubernetes/pkg/generated/openapi --output-base "$WORK/go/src" \
        -O zz_generated.openapi -h hack/boilerplate/boilerplate.generatego.txt -r "$WORK/tmp/openapi-violations"
    [[ -s pkg/generated/openapi/zz_generated.openapi.go ]] || stop "openapi-gen wrote nothing"
}

build_binaries() {
    local binary
    for binary in kube-apiserver kube-controller-manager; do
        begin "building $binary"
        go build -o "$WORK/bin/$binary" "./cmd/$binary"
    done
}

# The URI of the mirror that serves the suite, as apt understood the machine's sources. $1: another lists directory.
mirror() {
    local lists=()
    [[ -n "$1" ]] && lists=(-o "Dir::State::Lists=$1")
    # shellcheck disable=SC2016 # the format's variables are apt's
    apt-get "${lists[@]}" indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk -v suite="$SUITE" '$2 == suite && $3 == "main" { print $1; exit }'
}

# apt with configuration, lists and cache of its own. The sandbox user could not write into the cache directory.
private_apt() {
    mkdir -p "$WORK/apt/lists/partial" "$WORK/apt/archives/partial"
    logged apt-get -y \
        -o "Dir::Etc::SourceList=$WORK/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State::Lists=$WORK/apt/lists" -o "Dir::Cache=$WORK/apt" \
        -o APT::Sandbox::User= -o Debug::NoLocking=1 "$@"
}

# go build with the release in both places that hold it: one answers --version, the other /version.
go() {
    local verb="$1" package flags="-s -w"
    shift
    for package in component-base/version client-go/pkg/version; do
        package="k8s.io/kubernetes/vendor/k8s.io/$package"
        flags+=" -X $package.gitVersion=v$VERSION -X $package.gitMajor=1 -X $package.gitMinor=20"
    done
    logged with_go "$WORK/root/usr/lib/go-1.19/bin/go" "$verb" -ldflags "$flags" "$@"
}

with_go() {
    env -u GOFLAGS GOENV=off GO111MODULE=off CGO_ENABLED=0 GOROOT="$WORK/root/usr/lib/go-1.19" GOPATH="$WORK/go" \
        GOCACHE="$WORK/gocache" TMPDIR="$WORK/tmp" PATH="$WORK/root/usr/lib/go-1.19/bin:$PATH" nice -n 10 "$@"
}

complete() {
    local binary
    for binary in "${BINARIES[@]}"; do
        [[ -x "$1/$binary" ]] || return 1
    done
}

logged() { "$@" >>"$LOG" 2>&1; }

begin() {
    step="$1"
    say "$step"
}

say() { printf 'real-apiserver: [%3d s] %s\n' "$SECONDS" "$*" >&2; }

stop() {
    trap - ERR
    say "failed while $step: $*"
    exit 1
}

failed() {
    trap - ERR
    say "failed while $step; the last lines of $LOG:"
    tail -n 20 "$LOG" >&2 || true
    exit 1
}

main "$@"
