//! `entourage demo` as a newcomer runs it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::process::Command;

#[test]
fn every_claim_of_the_demo_holds_within_five_seconds_and_reads_well_in_a_log() {
    let nowhere = std::env::temp_dir().join(format!("entourage-demo-test-{}", std::process::id()));
    std::fs::create_dir(&nowhere).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_entourage"))
        .arg("demo")
        .env("TMPDIR", &nowhere)
        .output()
        .unwrap();
    let reported = String::from_utf8(done.stdout).unwrap();
    let errors = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{reported}\n{errors}");
    assert_eq!(errors, "");
    assert!(!reported.contains('\u{1b}'), "no colour without a terminal");
    for step in 1..=8 {
        assert!(reported.contains(&format!("\n{step}. ")), "{reported}");
    }
    let held = reported
        .lines()
        .filter(|line| line.trim_start().starts_with('✓'))
        .count();
    let last = reported.lines().last().unwrap();
    assert!(
        last.starts_with(&format!("done: {held} checks held, in ")),
        "{last}"
    );
    let seconds = last.split(" in ").nth(1).and_then(|rest| rest.split(' ').next());
    let seconds: f64 = seconds.unwrap().parse().unwrap();
    assert!(seconds < 5.0, "{last}");
    for line in [
        "   Deployment myapp",
        "   └─ needs ConfigMap my-config",
        "requiredBy:",
        "   kind: ClusterTaintPolicy",
        "member3 does not respond any more; it counts as dead after 500 ms here, after 30 s by default",
        "✓ Deployment myapp is there, too, and came after its ConfigMap",
        "✓ member3 may run the Deployment still: it is accounted for, with its ConfigMap",
        "✓ the stale Deployment is deleted there, and then its ConfigMap",
        "✓ member3 is ready; both are settled on member1 and member2, and nowhere else",
    ] {
        assert!(reported.contains(line), "{line} is missing in {reported}");
    }
    assert_eq!(
        std::fs::read_dir(&nowhere).unwrap().count(),
        0,
        "it leaves nothing"
    );
    std::fs::remove_dir(nowhere).unwrap();
}
