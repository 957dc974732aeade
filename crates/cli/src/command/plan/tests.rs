//! The servers that a plan reads.

use std::ffi::OsStr;

use clap::Parser as _;

use super::is_hub_meant;
use crate::command::{Cli, Command};

#[test]
fn a_hub_is_read_where_a_flag_or_the_environment_names_one() {
    let cases: [(&[&str], Option<&str>, bool); 8] = [
        (&[], None, false),
        (&[], Some(""), false),
        (&[], Some("/a:/b"), true),
        (&["--offline"], Some("/a"), false),
        (&["--clusters", "a,b"], Some("/a"), false),
        (&["--kubeconfig", "/x"], None, true),
        (&["--context", "hub"], None, true),
        (&["--clusters", "a", "--context", "hub"], None, true),
    ];
    for (flags, environment, wanted) in cases {
        let line = ["entourage", "plan", "-f", "-"].iter().chain(flags);
        let Command::Plan(args) = Cli::try_parse_from(line).unwrap().command else {
            panic!("not a plan");
        };
        let is_meant = is_hub_meant(&args, environment.map(OsStr::new));
        assert_eq!(is_meant, wanted, "{flags:?} {environment:?}");
    }
    let both = ["entourage", "plan", "-f", "-", "--offline", "--context", "hub"];
    assert!(Cli::try_parse_from(both).is_err());
}
