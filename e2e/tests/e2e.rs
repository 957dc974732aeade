//! The end-to-end tests, on two lanes: hub and members are embedded clusters, and real kube-apiservers.
//!
//! Run by `cargo test -p entourage-e2e --test e2e [FILTER]`; the filters `embedded::` and `real::` choose a lane. The real
//! one needs `KUBEBUILDER_ASSETS`, a directory with the servers' binaries (`hack/real-apiserver.sh` prepares one). It is one
//! process on purpose: real servers are shared by all tests, so no runner that starts a process per test.
//!
//! | variable | meaning |
//! |---|---|
//! | `KUBEBUILDER_ASSETS` | where real servers are; without it the real lane is not run, and that is said |
//! | `ENTOURAGE_KUBECTL` | the kubectl of the tests `kubectl::`; without it the one on `PATH`, else that of `KUBEBUILDER_ASSETS` |
//! | `UPDATE_GOLDEN` | `1`: writes what kubectl printed, and the page about conformance, instead of only comparing |
//! | `ENTOURAGE_E2E_SEED` | the seed of sampled crashes and random faults; printed by what uses it |
//! | `ENTOURAGE_E2E_EVERY_K` | `1`: a crash after every call of every scenario, not after a sample of them |
//! | `RUST_LOG` | prints the controllers' log as well |

use std::process::ExitCode;

use entourage_e2e::harness;

#[path = "e2e/bad_input.rs"]
mod bad_input;
#[path = "e2e/conflicts.rs"]
mod conflicts;
#[path = "e2e/conformance.rs"]
mod conformance;
#[path = "e2e/crash.rs"]
mod crash;
#[path = "e2e/dependencies.rs"]
mod dependencies;
#[path = "e2e/drift.rs"]
mod drift;
#[path = "e2e/example.rs"]
mod example;
#[path = "e2e/faults.rs"]
mod faults;
#[path = "e2e/gate.rs"]
mod gate;
#[path = "e2e/join.rs"]
mod join;
#[path = "e2e/kubectl.rs"]
mod kubectl;
#[path = "e2e/members.rs"]
mod members;
#[path = "e2e/policies.rs"]
mod policies;
#[path = "e2e/removal.rs"]
mod removal;
#[path = "e2e/secrets.rs"]
mod secrets;

/// Every test, in the order in which they run: the main job first, then what keeps processors busy, what breaks
/// members and waits for their deadlines last.
fn main() -> ExitCode {
    let typed = match kubectl::tests() {
        Ok(tests) => tests,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let subjects = [
        example::tests(),
        typed,
        dependencies::tests(),
        removal::tests(),
        policies::tests(),
        conflicts::tests(),
        drift::tests(),
        gate::tests(),
        secrets::tests(),
        bad_input::tests(),
        crash::tests(),
        faults::tests(),
        conformance::tests(),
        members::tests(),
        join::tests(),
    ];
    let tests: Vec<harness::Test> = subjects.into_iter().flatten().collect();
    let mut more = conformance::trials();
    more.extend(kubectl::trials());
    harness::main(&tests, more)
}
