#!/usr/bin/env bash
# Tests hack/release.sh in a clone, without what takes minutes (binaries, the recorded state, the SBOM, the chart's package): a few seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly WITHOUT=state,build,chart,sbom
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
export DATE=2026-12-01

main() {
    git clone --quiet --shared . "$work/clone"
    # The script as it is here, committed or not.
    cp hack/release.sh "$work/clone/hack/"
    cd "$work/clone"
    git config user.name test
    git config user.email test@localhost
    git tag | xargs -r git tag --delete >/dev/null
    git commit --quiet --all --allow-empty --message script
    dry_run
    refusals
    executed
    echo "hack/release.sh: a dry run, an executed one, and 9 refusals"
}

# It leaves the checkout as it is, and shows the commit.
dry_run() {
    local head
    head=$(git rev-parse HEAD)
    release 99.0.0 >"$work/printed"
    grep -q '^dry run' "$work/printed" || fail "it does not say that it is a dry run"
    grep -q '^not done: build' "$work/printed" || fail "it does not name what was left out"
    [[ $(git rev-parse HEAD) == "$head" && -z $(git status --porcelain) && -z $(git tag) ]] || fail "a dry run changed the checkout"
    sed '1,/^---$/d' "$out/release.patch" >"$work/dry.patch"
    rm -r "$out"
}

executed() {
    release --execute 99.0.0 >/dev/null
    [[ $(git tag) == v99.0.0 && $(git log -1 --format=%s) == "Release 99.0.0" ]] || fail "no commit or no tag"
    sed '1,/^---$/d' "$out/release.patch" | diff "$work/dry.patch" - >&2 || fail "the dry run showed another commit"
    grep -A 2 '^## Unreleased$' CHANGELOG.md | grep -qx '## 99.0.0 - 2026-12-01' || fail "CHANGELOG.md has no section of the version"
    head -n 1 "$out/notes.md" | grep -q '^### ' || fail "notes.md does not begin with the section"
    local file
    for file in Cargo.toml Cargo.lock hack/krew.yaml charts/entourage/Chart.yaml config/manager/kustomization.yaml docs/guides/install.md; do
        grep -qF 99.0.0 "$file" || fail "$file does not name the version"
    done
    # The page about upgrades names the versions whose states are tested.
    if git grep --line-number --fixed-strings --word-regexp "$version" -- charts config docs/guides ':!docs/guides/upgrade.md' >&2; then
        fail "these name the version before"
    fi
}

refusals() {
    refused "give a version"
    refused "1.2 is not a version" 1.2
    refused "give one version" 1.2.3 1.2.4
    refused "is older than" 0.0.1
    refused "no flag --fast" --fast 1.2.3
    refused "no step everything" --without everything 1.2.3
    git tag v99.0.0
    refused "the tag v99.0.0 exists" 99.0.0
    git tag --delete v99.0.0 >/dev/null
    cp CHANGELOG.md "$work/changelog"
    printf '# Changelog\n\n## Unreleased\n\n## 0.0.1 - 2026-01-01\n\n- One.\n' >CHANGELOG.md
    refused "changes that are not committed" 99.0.0
    git commit --quiet --all --message "nothing to release"
    refused "nothing under Unreleased" 99.0.0
    git reset --quiet --hard HEAD~1
}

release() {
    hack/release.sh --without "$WITHOUT" --out "$out" "$@" 2>"$work/errors"
}

refused() { # a part of the message, arguments
    local wanted=$1
    shift
    ! release "$@" >/dev/null || fail "it accepts: $*"
    grep -qF -- "$wanted" "$work/errors" || fail "the message to \"$*\" has no \"$wanted\": $(cat "$work/errors")"
    [[ ! -e $out ]] || fail "it was refused and wrote $out: $*"
}

fail() {
    echo "error: $1" >&2
    exit 1
}

main
