//! The end-to-end tests, on two lanes: hub and members are embedded clusters, and real kube-apiservers.
//!
//! Run by `cargo test -p entourage-e2e --test e2e [FILTER]`; the filters `embedded::` and `real::` choose a lane. The real
//! one needs `KUBEBUILDER_ASSETS`, a directory with the servers' binaries (`hack/real-apiserver.sh` prepares one). It is one
//! process on purpose: real servers are shared by all tests, so no runner that starts a process per test.
//!
//! | variable | meaning |
//! |---|---|
//! | `KUBEBUILDER_ASSETS` | where real servers are; without it the real lane is not run, and that is reported |
//! | `ENTOURAGE_KUBECTL` | the kubectl of the tests `kubectl::` and `guides::`; without it the one on `PATH`, else that of `KUBEBUILDER_ASSETS` |
//! | `UPDATE_GOLDEN` | `1`: writes what kubectl printed, and the page about conformance, instead of only comparing |
//! | `ENTOURAGE_E2E_SEED` | the seed of sampled crashes and random faults; printed by what uses it |
//! | `ENTOURAGE_E2E_ORDER` | runs the tests in the order of this seed: finds a test that needs, or does not bear, what another one left behind |
//! | `ENTOURAGE_E2E_FAILOVERS` | how many seeds of failovers under faults are run, from that seed or the first on |
//! | `ENTOURAGE_E2E_EVERY_K` | `1`: a crash after every call of every scenario, not after a sample of them |
//! | `RUST_LOG` | prints the controllers' log as well |

use std::process::ExitCode;

use entourage_e2e::harness;

#[path = "e2e/adopt.rs"]
mod adopt;
#[path = "e2e/adopt_karmada.rs"]
mod adopt_karmada;
#[path = "e2e/adopt_pull.rs"]
mod adopt_pull;
#[path = "e2e/agent.rs"]
mod agent;
#[path = "e2e/autoscaling.rs"]
mod autoscaling;
#[path = "e2e/bad_input.rs"]
mod bad_input;
#[path = "e2e/chart.rs"]
mod chart;
#[path = "e2e/claims.rs"]
mod claims;
#[path = "e2e/cluster_policies.rs"]
mod cluster_policies;
#[path = "e2e/conflicts.rs"]
mod conflicts;
#[path = "e2e/conformance.rs"]
mod conformance;
#[path = "e2e/crash.rs"]
mod crash;
#[path = "e2e/crash_policies.rs"]
mod crash_policies;
#[path = "e2e/customizations.rs"]
mod customizations;
#[path = "e2e/definitions.rs"]
mod definitions;
#[path = "e2e/dependencies.rs"]
mod dependencies;
#[path = "e2e/disagreements.rs"]
mod disagreements;
#[path = "e2e/distribution.rs"]
mod distribution;
#[path = "e2e/distribution_conflicts.rs"]
mod distribution_conflicts;
#[path = "e2e/distribution_content.rs"]
mod distribution_content;
#[path = "e2e/distribution_crash.rs"]
mod distribution_crash;
#[path = "e2e/distribution_end.rs"]
mod distribution_end;
#[path = "e2e/distribution_faults.rs"]
mod distribution_faults;
#[path = "e2e/distribution_fights.rs"]
mod distribution_fights;
#[path = "e2e/distribution_members.rs"]
mod distribution_members;
#[path = "e2e/distribution_namespaces.rs"]
mod distribution_namespaces;
#[path = "e2e/distribution_patience.rs"]
mod distribution_patience;
#[path = "e2e/distribution_rights.rs"]
mod distribution_rights;
#[path = "e2e/distribution_scale.rs"]
mod distribution_scale;
#[path = "e2e/distribution_source.rs"]
mod distribution_source;
#[path = "e2e/distribution_travels.rs"]
mod distribution_travels;
#[path = "e2e/distribution_unguarded.rs"]
mod distribution_unguarded;
#[path = "e2e/drift.rs"]
mod drift;
#[path = "e2e/example.rs"]
mod example;
#[path = "e2e/explain.rs"]
mod explain;
#[path = "e2e/failover.rs"]
mod failover;
#[path = "e2e/failover_faults.rs"]
mod failover_faults;
#[path = "e2e/failover_return.rs"]
mod failover_return;
#[path = "e2e/faults.rs"]
mod faults;
#[path = "e2e/gate.rs"]
mod gate;
#[path = "e2e/governor.rs"]
mod governor;
#[path = "e2e/guides.rs"]
mod guides;
#[path = "e2e/hooks.rs"]
mod hooks;
#[path = "e2e/hooks_bad.rs"]
mod hooks_bad;
#[path = "e2e/hub_rights.rs"]
mod hub_rights;
#[path = "e2e/identity.rs"]
mod identity;
#[path = "e2e/init.rs"]
mod init;
#[path = "e2e/join.rs"]
mod join;
#[path = "e2e/kubectl.rs"]
mod kubectl;
#[path = "e2e/lazy.rs"]
mod lazy;
#[path = "e2e/members.rs"]
mod members;
#[path = "e2e/namespaces.rs"]
mod namespaces;
#[path = "e2e/native.rs"]
mod native;
#[path = "e2e/orphaned.rs"]
mod orphaned;
#[path = "e2e/overrides.rs"]
mod overrides;
#[path = "e2e/placement.rs"]
mod placement;
#[path = "e2e/plan.rs"]
mod plan;
#[path = "e2e/policies.rs"]
mod policies;
#[path = "e2e/promote.rs"]
mod promote;
#[path = "e2e/pull.rs"]
mod pull;
#[path = "e2e/pull_fleet.rs"]
mod pull_fleet;
#[path = "e2e/quotas.rs"]
mod quotas;
#[path = "e2e/rebalancer.rs"]
mod rebalancer;
#[path = "e2e/reference.rs"]
mod reference;
#[path = "e2e/registration.rs"]
mod registration;
#[path = "e2e/removal.rs"]
mod removal;
#[path = "e2e/restored.rs"]
mod restored;
#[path = "e2e/rights.rs"]
mod rights;
#[path = "e2e/rights_agent.rs"]
mod rights_agent;
#[path = "e2e/rights_denied.rs"]
mod rights_denied;
#[path = "e2e/rights_kinds.rs"]
mod rights_kinds;
#[path = "e2e/rights_life.rs"]
mod rights_life;
#[path = "e2e/rights_webhook.rs"]
mod rights_webhook;
#[path = "e2e/secret_lists.rs"]
mod secret_lists;
#[path = "e2e/secret_lists_pull.rs"]
mod secret_lists_pull;
#[path = "e2e/secrets.rs"]
mod secrets;
#[path = "e2e/services.rs"]
mod services;
#[path = "e2e/suspension.rs"]
mod suspension;
#[path = "e2e/taint_policies.rs"]
mod taint_policies;
#[path = "e2e/taints.rs"]
mod taints;
#[path = "e2e/takeover.rs"]
mod takeover;
#[path = "e2e/through_hub.rs"]
mod through_hub;
#[path = "e2e/volumes.rs"]
mod volumes;
#[path = "e2e/waits.rs"]
mod waits;
#[path = "e2e/webhook.rs"]
mod webhook;
#[path = "e2e/works.rs"]
mod works;

/// Every test, in the order in which they run: the main job first, then what takes minutes, most of them waiting, so that the
/// others run beside it and none of it is left at the end alone.
fn main() -> ExitCode {
    if let Some(code) = entourage_e2e::servers::play_command() {
        return code;
    }
    let typed = match kubectl::tests() {
        Ok(tests) => tests,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let guides = match guides::trials() {
        Ok(trials) => trials,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let subjects = [
        example::tests(),
        takeover::tests(),
        crash::tests(),
        crash_policies::tests(),
        failover_faults::tests(),
        distribution_faults::tests(),
        distribution_crash::tests(),
        typed,
        definitions::tests(),
        dependencies::tests(),
        reference::tests(),
        removal::tests(),
        orphaned::tests(),
        through_hub::tests(),
        volumes::tests(),
        policies::tests(),
        placement::tests(),
        pull::tests(),
        pull_fleet::tests(),
        quotas::tests(),
        rebalancer::tests(),
        registration::tests(),
        cluster_policies::tests(),
        claims::tests(),
        lazy::tests(),
        suspension::tests(),
        taints::tests(),
        namespaces::tests(),
        overrides::tests(),
        plan::tests(),
        explain::tests(),
        conflicts::tests(),
        customizations::tests(),
        hooks::tests(),
        hooks_bad::tests(),
        hub_rights::tests(),
        disagreements::tests(),
        drift::tests(),
        native::tests(),
        autoscaling::tests(),
        services::tests(),
        gate::tests(),
        governor::tests(),
        restored::tests(),
        plain(rights::tests()),
        plain(rights_agent::tests()),
        plain(rights_denied::tests()),
        rights_webhook::tests(),
        secret_lists::tests(),
        secret_lists_pull::tests(),
        secrets::tests(),
        bad_input::tests(),
        chart::tests(),
        distribution_patience::tests(),
        distribution_scale::tests(),
        distribution::tests(),
        distribution_conflicts::tests(),
        distribution_content::tests(),
        distribution_namespaces::tests(),
        distribution_source::tests(),
        distribution_members::tests(),
        distribution_travels::tests(),
        distribution_end::tests(),
        distribution_fights::tests(),
        distribution_unguarded::tests(),
        distribution_rights::tests(),
        failover::tests(),
        failover_return::tests(),
        faults::tests(),
        conformance::tests(),
        members::tests(),
        identity::tests(),
        init::tests(),
        join::tests(),
        taint_policies::tests(),
        waits::tests(),
        works::tests(),
        adopt::tests(),
        adopt_karmada::tests(),
        adopt_pull::tests(),
        promote::tests(),
        agent::tests(),
        webhook::tests(),
    ];
    let tests: Vec<harness::Test> = subjects.into_iter().flatten().collect();
    let mut more = conformance::trials();
    more.extend(kubectl::trials());
    more.extend(guides);
    harness::main(&tests, more)
}

/// The same without controllers at their end: they leave objects behind, and their servers end with them.
fn plain(tests: Vec<harness::Test>) -> Vec<harness::Test> {
    tests.into_iter().map(harness::Test::plain).collect()
}
