//! The caller of the hub: kubectl's `--as`, `--as-group`, `--as-uid`, and the deadline of its requests. They hold for the process.

use std::{sync::OnceLock, time::Duration};

use anyhow::{Result, bail, ensure};
use clap::Args;
use http::HeaderValue;
use kube::config::AuthInfo;

/// kubectl's global flags about the caller, for every command that connects by --kubeconfig and --context.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct CallerArgs {
    /// User to impersonate on the hub: jane, system:serviceaccount:NAMESPACE:NAME
    #[arg(
        id = "as",
        long = "as",
        value_name = "USER",
        global = true,
        hide_short_help = true,
        help_heading = "Global options"
    )]
    pub as_user: Option<String>,

    /// Group to impersonate, with --as; may be given several times
    #[arg(
        long,
        value_name = "GROUP",
        global = true,
        hide_short_help = true,
        help_heading = "Global options"
    )]
    pub as_group: Vec<String>,

    /// UID to impersonate, with --as
    #[arg(
        long,
        value_name = "UID",
        global = true,
        hide_short_help = true,
        help_heading = "Global options"
    )]
    pub as_uid: Option<String>,

    /// Time to wait for a response to a request: 30s, 1m; 0 for ever (default: 10s, and 80s through the hub)
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = timeout_of,
        global = true,
        hide_short_help = true,
        help_heading = "Global options"
    )]
    pub request_timeout: Option<Duration>,
}

/// The flags of this process.
static CALLER: OnceLock<CallerArgs> = OnceLock::new();

/// Sets the flags of this process, once, before the first connection.
///
/// # Errors
/// A group or a UID without a user, or a value that no header can have.
pub fn set_caller(args: &CallerArgs) -> Result<()> {
    if args.as_user.is_none() && !(args.as_group.is_empty() && args.as_uid.is_none()) {
        bail!("--as-group and --as-uid need --as: name the user, too");
    }
    let values = args.as_user.iter().chain(&args.as_group).chain(&args.as_uid);
    for value in values {
        let is_valid = !value.is_empty() && HeaderValue::from_str(value).is_ok();
        ensure!(is_valid, "{value:?} is no name of a user, a group or a UID");
    }
    let is_first = CALLER.set(args.clone()).is_ok();
    ensure!(
        is_first || CALLER.get() == Some(args),
        "the caller of this process is set already"
    );
    Ok(())
}

/// The deadline that was asked for.
pub(super) fn timeout() -> Option<Duration> {
    CALLER.get()?.request_timeout
}

/// Makes the credentials of a kubeconfig those of the user that was asked for; the user of the kubeconfig's own `as` is replaced.
pub(super) fn become_other(credentials: &mut AuthInfo) {
    if let Some(caller) = CALLER.get() {
        apply(caller, credentials);
    }
}

fn apply(caller: &CallerArgs, credentials: &mut AuthInfo) {
    if caller.as_user.is_none() {
        return;
    }
    credentials.impersonate.clone_from(&caller.as_user);
    credentials.impersonate_uid.clone_from(&caller.as_uid);
    credentials.impersonate_groups = Some(caller.as_group.clone());
    credentials.impersonate_user_extra = None;
}

/// Reads a deadline as kubectl does: a number alone is of seconds, and 0 is none.
fn timeout_of(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u32>().map(u64::from).map(Duration::from_secs);
    let given = seconds.or_else(|_| crate::args::duration(text))?;
    // Half the range: a time that far away can be added to any other.
    Ok(if given.is_zero() {
        Duration::from_secs(u64::from(u32::MAX))
    } else {
        given
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_read_as_kubectl_reads_them() {
        for (text, wanted) in [
            ("30s", Some(30)),
            ("2m", Some(120)),
            ("15", Some(15)),
            ("0", Some(u64::from(u32::MAX))),
            ("soon", None),
            ("-1", None),
        ] {
            assert_eq!(timeout_of(text).ok(), wanted.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn the_user_that_is_asked_for_replaces_the_one_of_the_kubeconfig() {
        let mut credentials = AuthInfo {
            impersonate: Some("old".to_owned()),
            impersonate_uid: Some("1".to_owned()),
            ..AuthInfo::default()
        };
        apply(&CallerArgs::default(), &mut credentials);
        assert_eq!(credentials.impersonate.as_deref(), Some("old"));
        let caller = CallerArgs {
            as_user: Some("jane".to_owned()),
            as_group: vec!["devs".to_owned(), "ops".to_owned()],
            ..CallerArgs::default()
        };
        apply(&caller, &mut credentials);
        assert_eq!(credentials.impersonate.as_deref(), Some("jane"));
        assert_eq!(credentials.impersonate_uid, None);
        assert_eq!(credentials.impersonate_groups, Some(caller.as_group));
    }
}
