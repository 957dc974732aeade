#!/usr/bin/env bash
# Makes a release: hack/release.sh [--execute] [--out DIR] [--without STEP[,STEP]] VERSION
#
# Without --execute it is a dry run: all of it happens in a temporary clone, and what it made is left in DIR. With --execute the
# commit and the tag are made in this checkout. Nothing is pushed or uploaded: docs/releasing.md has what follows.
#
#   bump       the version in Cargo.toml, Cargo.lock, the chart, config/ and the pages that name an image
#   changelog  "Unreleased" becomes "VERSION - DATE"
#   state      records the state that this version leaves, for the upgrade test of later ones
#   build      a binary for each Linux target that rustup has installed, the whole command and one for containers
#   chart      the package of charts/entourage (hack/tools.sh helm)
#   krew       the manifest of the kubectl plug-in, with the sums of the archives
#   sbom       cargo xtask sbom
#
# Steps that this machine cannot do are named at the end. DATE=YYYY-MM-DD sets the date (default: today, UTC).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

readonly STEPS=(bump changelog state build chart krew sbom)
# Files that name the version; each occurrence of the former one is replaced.
readonly NAMED=(hack/krew.yaml charts/entourage/Chart.yaml charts/testdata/*.golden.yaml config/*/kustomization.yaml config/*/*/kustomization.yaml
    config/samples/*/*/kustomization.yaml docs/guides/install.md docs/guides/pull.md docs/commands.md Dockerfile)
readonly KREW=hack/krew.yaml

execute='' out='' without='' version=''
lacking=()

main() {
    arguments "$@"
    cd "$root"
    local before
    before=$(workspace_version)
    check "$before"
    out=${out:-$root/target/release-$version}
    mkdir -p "$out"
    out=$(cd "$out" && pwd)
    [[ -z $(ls -A "$out") ]] || stop "$out is not empty: remove it, or give another folder with --out"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    if [[ -z $execute ]]; then
        git clone --quiet --shared . "$work/entourage"
        export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
        cd "$work/entourage"
        git config user.name "$(git -C "$root" config user.name)"
        git config user.email "$(git -C "$root" config user.email)"
    fi
    local each
    for each in bump changelog state; do
        step "$each" "$before"
    done
    git add --all
    git diff --cached --quiet || git commit --quiet --message "Release $version"
    git tag --annotate "v$version" --message "Entourage $version"
    notes >"$out/notes.md"
    git format-patch --quiet -1 --stdout >"$out/release.patch"
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
    export SOURCE_DATE_EPOCH
    for each in build chart krew sbom; do
        step "$each" "$before"
    done
    (cd "$out" && find . -type f ! -name release.patch ! -name notes.md -printf '%P\n' | LC_ALL=C sort | xargs -r sha256sum) >"$work/sums"
    mv "$work/sums" "$out/SHA256SUMS"
    report
}

arguments() {
    while (($#)); do
        case $1 in
            --execute) execute=yes ;;
            --dry-run) execute='' ;;
            --out) out=${2:?--out needs a folder} && shift ;;
            --without) without+=",${2:?--without needs steps}" && shift ;;
            -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit ;;
            -*) stop "no flag $1; --help lists them" ;;
            *)
                [[ -z $version ]] || stop "give one version"
                version=$1
                ;;
        esac
        shift
    done
    [[ -n $version ]] || stop "give a version, such as 0.2.0"
    version=${version#v}
    [[ $version =~ ^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$ ]] ||
        stop "$version is not a version: give MAJOR.MINOR.PATCH, such as 0.2.0 or 0.2.0-rc.1"
    local each
    for each in ${without//,/ }; do
        [[ " ${STEPS[*]} " == *" $each "* ]] || stop "no step $each; steps: ${STEPS[*]}"
    done
}

# The state of the checkout from which a release is made.
check() { # the version so far
    local before=$1
    [[ -z $(git status --porcelain) ]] || stop "the checkout has changes that are not committed: commit them, or stash them"
    ! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null || stop "the tag v$version exists: give the next version"
    if [[ $version == "$before" ]]; then
        [[ -z $(git tag --list 'v*') ]] || stop "$version is the version of the checkout, and not its first: give the next version"
    # A ~ sorts before the end of a version: 0.2.0-rc.1 comes before 0.2.0.
    elif [[ $(printf '%s\n' "${before/-/\~}" "${version/-/\~}" | sort --version-sort | tail -n 1) != "${version/-/\~}" ]]; then
        stop "$version is older than $before, the version of the checkout"
    fi
    [[ -n $(section Unreleased) ]] || stop "CHANGELOG.md has nothing under Unreleased: write what users notice"
}

step() { # name, the version so far
    if [[ ",$without," == *",$1,"* ]]; then
        lacking+=("$1: left out")
        return
    fi
    echo "=== $1" >&2
    "step_$1" "$2"
}

step_bump() {
    local before=$1 file
    sed -i "/^\[workspace.package\]/,/^\[/s/^version = \".*\"$/version = \"$version\"/" Cargo.toml
    for file in "${NAMED[@]}"; do
        if [[ -f $file && ! -L $file ]]; then
            sed -i -E "s/(^|[^0-9.])${before//./\\.}($|[^0-9.])/\1$version\2/g" "$file"
        fi
    done
    # Of the crates of the workspace alone: other versions stay as they are locked.
    awk -v version="$version" '
        /^\[\[package\]\]/ { name = "" }
        /^name = / { name = $3 }
        /^version = / && (name ~ /^"entourage/ || name == "\"xtask\"") { print "version = \"" version "\""; next }
        { print }' Cargo.lock >Cargo.lock.new
    mv Cargo.lock.new Cargo.lock
    [[ $(workspace_version) == "$version" ]] || stop "Cargo.toml has no version in [workspace.package]"
}

step_changelog() {
    sed -i "s/^## Unreleased$/## Unreleased\n\n## $version - ${DATE:-$(date -u +%F)}/" CHANGELOG.md
}

step_state() {
    ENTOURAGE_RECORD=$version cargo test --quiet --locked --package entourage-simulation --test scenarios upgrade:: >&2
}

step_build() {
    local target found=''
    while read -r target; do
        found=yes
        cargo build --locked --release --package entourage --target "$target" >&2
        archive "entourage-$version-$target" "target/$target/release/entourage"
        cargo build --locked --profile container --package entourage --no-default-features --target "$target" >&2
        archive "entourage-controllers-$version-$target" "target/$target/container/entourage"
    done < <(rustup target list --installed | grep -- '-linux-' | grep -v android)
    [[ -n $found ]] || stop "rustup has no Linux target: rustup target add x86_64-unknown-linux-gnu"
}

# The same bytes for the same binary, whenever and by whom it is packed.
archive() { # name, binary
    local folder
    folder=$(mktemp -d)
    mkdir "$folder/$1"
    install -m 755 "${CARGO_TARGET_DIR:-target}/${2#target/}" "$folder/$1/entourage"
    install -m 644 LICENSE CHANGELOG.md "$folder/$1/"
    tar --create --directory "$folder" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner "$1" |
        gzip --no-name --best >"$out/$1.tar.gz"
    rm -r "$folder"
}

step_chart() {
    local helm
    if ! helm=$(hack/tools.sh helm); then
        lacking+=("chart: no helm on this machine")
        return
    fi
    "$helm" package charts/entourage --version "$version" --app-version "$version" --destination "$out" >&2
}

# Its checksums are of the archives that were built. An entry without an archive is left out, and is named.
step_krew() {
    local manifest="$out/entourage.krew.yaml" name sum
    cp "$KREW" "$manifest"
    while read -r name; do
        if [[ -f $out/$name ]]; then
            sum=$(sha256sum "$out/$name" | cut -d ' ' -f 1)
            sed -i "/\/$name\$/{n;s/[0-9a-f]\{64\}/$sum/}" "$manifest"
        else
            # An entry is the line of its selector, of its address, of its checksum and two more.
            awk -v name="/$name" '
                /^  - selector:/ { held = $0; next }
                held != "" { if (substr($0, length($0) - length(name) + 1) == name) { skip = 5 } else { print held }; held = "" }
                skip > 0 && --skip > 0 { next }
                { print }' "$manifest" >"$manifest.new"
            mv "$manifest.new" "$manifest"
            lacking+=("krew: no $name")
        fi
    done < <(sed -n 's|^ *uri: .*/||p' "$KREW")
}

step_sbom() {
    cargo run --quiet --locked --package xtask -- sbom "$out/entourage-$version.sbom.json" >&2
}

# The text below a heading of the changelog, without empty lines around it.
section() { # the beginning of the heading
    awk -v heading="## $1" 'index($0, "## ") == 1 { held = index($0, heading) == 1; next } held && (NF || started) { started = 1; print }' CHANGELOG.md |
        sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}

notes() {
    section "$version"
}

workspace_version() {
    sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml
}

report() {
    local each
    echo "$out:"
    (cd "$out" && find . -type f -printf '%P %s bytes\n' | LC_ALL=C sort)
    for each in "${lacking[@]}"; do
        echo "not done: $each"
    done
    if [[ -z $execute ]]; then
        echo "dry run: nothing of this checkout has changed; release.patch is the commit that --execute makes"
    else
        echo "made: the commit \"Release $version\" and the tag v$version; next: docs/releasing.md"
    fi
}

stop() {
    echo "error: $1" >&2
    exit 1
}

main "$@"
