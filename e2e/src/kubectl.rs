//! kubectl as a test: commands that people type, played against a cluster of either lane, and everything they print
//! compared with a golden transcript.
//!
//! `e2e/kubectl/<theme>.txt` is a script ([`Script`]): one command after the other, run by a shell with the real kubectl in
//! a namespace of its own. `e2e/kubectl/golden/<minor>/<theme>.txt` is what they print ([`Golden`]): stdout, stderr and exit
//! code, after ages, uids, times and their like were replaced by placeholders. Both lanes must print the same. Where a real
//! API server of an old release has reasons to answer differently, `e2e/kubectl/differences.txt` has a line with the reason,
//! and the golden has that lane's own answer below the common one. A difference without a line fails, and so does a line
//! without a difference. `UPDATE_GOLDEN=1` writes the transcripts anew; it never adds a line to the list. The answers listed
//! are those of a kube-apiserver 1.20, which `hack/real-apiserver.sh` prepares: one of another release is held to everything
//! but the listed commands.
//!
//! # Which kubectl
//!
//! [`Client::find`]: `ENTOURAGE_KUBECTL`, else `kubectl` on `PATH`, else the one of `KUBEBUILDER_ASSETS`. Much of what kubectl
//! prints is its own and changes with its release (`describe`, `explain`, help, the wording of errors), so a golden belongs
//! to one minor release: `golden/1.32` to a current one, `golden/1.20` to the one that comes with `hack/real-apiserver.sh`,
//! which is what the pipeline has for certain. With a kubectl of another release every command is run all the same, and exit
//! codes are compared with those of the nearest golden: what a command achieves does not depend on the client's release,
//! what it prints does. Without any kubectl the tests are reported as ignored, with the reason.

mod client;
mod comparison;
mod differences;
mod golden;
mod normal;
mod play;
mod script;

pub use client::Client;
pub use comparison::{Files, Server, check_files, compare};
pub use differences::{Difference, differences};
pub use golden::{Golden, Transcript};
pub use play::{Seat, play};
pub use script::Script;
