#!/usr/bin/env bash
# Checks charts/entourage, and the alerts that it carries: hack/chart.sh. UPDATE_GOLDEN=1 writes what is expected again.
# Ends with 3 if this machine can have no helm, or no promtool (hack/tools.sh).
#
# Cases are charts/testdata/NAME.values.yaml, with what is rendered in NAME.golden.yaml. Files of config/ that the chart passes on as they
# are (templates/rights.yaml, the definitions, alerts and dashboard) are compared with those files instead.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly CHART=charts/entourage CASES=charts/testdata
failed=0

main() {
    helm=$(hack/tools.sh helm)
    promtool=$(hack/tools.sh promtool)
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
    golden
    refused
    rights
    definitions
    monitoring
    arguments
    oldest
    versions
    ((failed == 0)) || exit 1
    echo "$(cases | wc -l) cases, $(find "$CASES/refused" -name '*.yaml' | wc -l) that are refused, $(grep -c 'alert:' config/monitoring/alerts.yaml) alerts"
}

golden() {
    local case name
    while read -r case; do
        name=${case%.values.yaml}
        check "$case: helm lint" "$helm" lint --quiet --strict -f "$case" "$CHART"
        render -f "$case" | without_rights >"$out/rendered"
        [[ -n "${UPDATE_GOLDEN:-}" ]] && cp "$out/rendered" "$name.golden.yaml"
        same "$case: $name.golden.yaml (UPDATE_GOLDEN=1 writes it)" "$name.golden.yaml" "$out/rendered"
    done < <(cases)
}

# Values that are refused, with a part of the message in the first line.
refused() {
    local case wanted
    for case in "$CASES"/refused/*.values.yaml; do
        wanted=$(sed -n '1s/^# refused: //p' "$case")
        if "$helm" template entourage "$CHART" -f "$case" >"$out/rendered" 2>"$out/errors"; then
            fail "$case: it is not refused"
        elif ! grep -qF -- "$wanted" "$out/errors"; then
            fail "$case: the message has no \"$wanted\": $(grep '^Error\|^- ' "$out/errors")"
        fi
    done
}

# The rights that are rendered are those of config/, of every folder with rights, each line of them and no other.
rights() {
    local kinds
    kinds=$(cd config/rbac-kinds && echo * | tr ' ' ,)
    render --set target=hub --set "hub.rights.kinds={$kinds}" \
        --set hub.rights.distribution=true,hub.rights.registration=true,hub.rights.discovery=true,hub.rights.services=true,hub.rights.proxy=true -s templates/rights.yaml |
        plain >"$out/rendered"
    find config/rbac config/rbac-* config/webhook/hub config/proxy -name '*.yaml' -not -name kustomization.yaml -exec cat {} + |
        plain >"$out/wanted"
    same "the rights on the hub" "$out/wanted" "$out/rendered"

    render -f "$CASES/member.values.yaml" -n karmada-system -s templates/rights.yaml | plain >"$out/rendered"
    cat config/agent/member/{role,role_binding,service_account}.yaml | plain >"$out/wanted"
    same "the rights of an agent" "$out/wanted" "$out/rendered"
}

# Every definition, and nothing in it but the policy that keeps it.
definitions() {
    render -n karmada-system --set target=hub -s templates/hub.yaml >"$out/rendered"
    local wanted found
    wanted=$(find crds -name '*.yaml' | wc -l)
    found=$(grep -c '^kind: CustomResourceDefinition$' "$out/rendered")
    [[ "$found" == "$wanted" ]] || fail "$found of $wanted definitions are rendered"
    # Each of them, and the namespace that the release does not create.
    [[ "$(grep -c 'helm.sh/resource-policy: keep' "$out/rendered")" == $((wanted + 1)) ]] ||
        fail "a definition or a namespace is deleted with the release"
    grep -v 'helm.sh/resource-policy\|^  annotations:$' "$out/rendered" | sed '/^kind: Namespace$/,/^---$/d' | plain >"$out/definitions"
    cat crds/*.yaml | grep -v '^  annotations:$' | plain >"$out/wanted"
    comm -13 "$out/definitions" "$out/wanted" >"$out/missing"
    [[ ! -s "$out/missing" ]] || fail "the definitions lack lines of crds/: $(head -n 3 "$out/missing")"
}

monitoring() {
    check "alerts" "$promtool" check rules config/monitoring/alerts.yaml
    check "tests of alerts" "$promtool" test rules "$CASES/alerts.test.yaml"
    render --set image.repository=r,monitoring.rules.enabled=true,monitoring.rules.runbooks=docs/runbooks.md -s templates/monitoring.yaml |
        sed -n '/^spec:$/,$p' | sed -n 's/^  //p' >"$out/rendered"
    same "the PrometheusRule" config/monitoring/alerts.yaml "$out/rendered"
    render --set image.repository=r,monitoring.dashboard.enabled=true -s templates/monitoring.yaml |
        sed -n '/^  entourage.json: |$/,$p' | sed -n 's/^    //p' >"$out/rendered"
    same "the dashboard" config/monitoring/dashboard.json "$out/rendered"
    check "the dashboard is JSON" python3 -m json.tool config/monitoring/dashboard.json "$out/json"
    python3 - >"$out/dashboard.yaml" <<'END'
import json
panels = json.load(open("config/monitoring/dashboard.json"))["panels"]
expressions = [target["expr"] for panel in panels for target in panel.get("targets", [])]
rules = [{"record": f"panel:{n}", "expr": text.replace("$__rate_interval", "5m")} for n, text in enumerate(expressions)]
print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
END
    check "expressions of the dashboard" "$promtool" check rules "$out/dashboard.yaml"
}

# Without values the Deployments start what those of config/ do.
arguments() {
    local component file
    for component in controllers:config/manager webhook:config/webhook agent:config/agent/member; do
        file=${component#*:}/deployment.yaml
        case ${component%:*} in
            agent) render -n karmada-system -f "$CASES/member.values.yaml" --set agent.hub.renew=false,agent.clusterName=member1 ;;
            *) render -n karmada-system -f "$CASES/host.values.yaml" ;;
        esac | flags "entourage-${component%:*}" >"$out/rendered"
        flags "entourage-${component%:*}" <"$file" >"$out/wanted"
        same "the arguments in $file" "$out/wanted" "$out/rendered"
    done
}

# The oldest Kubernetes that the chart names serves what is rendered for it.
oldest() {
    local version
    version=$(sed -n 's/^kubeVersion: ">=\(.*\)-0"$/\1/p' "$CHART/Chart.yaml")
    render --kube-version "$version" -f "$CASES/host.values.yaml" >"$out/rendered"
    [[ "$(grep '^apiVersion: policy/' "$out/rendered" | sort -u)" == "apiVersion: policy/v1beta1" ]] ||
        fail "Kubernetes $version does not serve: $(grep '^apiVersion: policy/' "$out/rendered" | sort -u)"
}

# The chart, the image that kustomizations name, and the binary have one version; the image is built by the compiler of the checkout.
versions() {
    local version file rust
    rust=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
    grep -qxF "ARG RUST_VERSION=$rust" Dockerfile || fail "Dockerfile has no line \"ARG RUST_VERSION=$rust\""
    version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
    for file in "$CHART/Chart.yaml:version: $version" "$CHART/Chart.yaml:appVersion: $version" \
        config/{manager,webhook,agent/member,default/host}/kustomization.yaml:"    newTag: $version"; do
        grep -qxF -- "${file#*:}" "${file%%:*}" || fail "${file%%:*} has no line \"${file#*:}\""
    done
}

# === helpers ===

cases() {
    find "$CASES" -maxdepth 1 -name '*.values.yaml' | sort
}

# Standard error has a line for each link below files/, which is meant.
render() {
    "$helm" template entourage "$CHART" --namespace fleet "$@" 2>"$out/errors" ||
        { grep -v 'found symbolic link' "$out/errors" >&2 && fail "helm template $*"; }
}

without_rights() {
    awk '/^---$/ { held = $0; next } held { skip = /templates\/rights.yaml$/; if (!skip) print held; held = "" } !skip'
}

# Lines of YAML in an order of their own: the documents are the same in another order.
plain() {
    grep -v '^---$\|^ *#\|^$' | sort
}

# The arguments of the one Deployment of a name.
flags() {
    awk -v name="$1" '/^kind:/ { deployment = /Deployment$/ } deployment && $1 == "name:" && !named { named = 1; mine = $2 == name }
        /^---$/ { named = 0; deployment = 0 } deployment && mine && $1 == "-" && $2 ~ /^"?--/ { print $2 }' | tr -d '"' | sort
}

check() {
    local what=$1
    shift
    "$@" >"$out/log" 2>&1 || fail "$what: $(grep -v 'found symbolic link' "$out/log")"
}

same() {
    diff -u "$2" "$3" >"$out/diff" || fail "$1 differs: $(head -n 40 "$out/diff")"
}

fail() {
    echo "chart: $*" >&2
    failed=1
}

main
