//! The end of a command as the member's status tells it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use crate::plain::plain;

/// The end of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With code 0.
    Succeeded,
    /// With another code.
    Exited(i32),
    /// The command did not run, or nothing is known of its end.
    Unknown(String),
}

/// Source: Kubernetes `remotecommand`: a failure of the reason NonZeroExitCode has the code as a cause `ExitCode`.
pub(super) fn of(status: &Status) -> Outcome {
    if status.status.as_deref() == Some("Success") {
        return Outcome::Succeeded;
    }
    let causes = status
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .flatten();
    let message = || status.message.as_deref().map(plain);
    let code = causes
        .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .find_map(|cause| cause.message.as_deref()?.parse().ok());
    match code {
        Some(0) => Outcome::Succeeded,
        Some(code) => Outcome::Exited(code),
        None => Outcome::Unknown(
            message().unwrap_or_else(|| "the command failed, and the member does not say why".to_owned()),
        ),
    }
}

/// The end of a connection before that of the command. `is_cut`: the end of the input ended it.
pub(super) fn lost(why: Option<String>, is_cut: bool) -> Outcome {
    let why = why.map(|why| format!(" ({})", plain(&why))).unwrap_or_default();
    let remedy = if is_cut {
        "; this member speaks v4.channel.k8s.io, in which the end of the input ends the connection: without -i it does not"
    } else {
        ""
    };
    Outcome::Unknown(format!(
        "the connection ended before the command did: its exit code is not known{why}{remedy}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_exit_code_is_that_of_the_command() {
        let exit = |code: &str| {
            json!({"status": "Failure", "reason": "NonZeroExitCode", "message": "command terminated with non-zero exit code",
                "details": {"causes": [{"reason": "Other", "message": "7"}, {"reason": "ExitCode", "message": code}]}})
        };
        let cases = [
            (json!({"metadata": {}, "status": "Success"}), Outcome::Succeeded),
            (exit("3"), Outcome::Exited(3)),
            (exit("137"), Outcome::Exited(137)),
            (exit("0"), Outcome::Succeeded),
            (
                json!({"status": "Failure", "reason": "InternalError", "message": "container not found\r"}),
                Outcome::Unknown("container not found\\r".into()),
            ),
            (
                exit("x"),
                Outcome::Unknown("command terminated with non-zero exit code".into()),
            ),
        ];
        for (mut status, wanted) in cases {
            status["metadata"] = json!({});
            let status: Status = serde_json::from_value(status).unwrap();
            assert_eq!(of(&status), wanted, "{status:?}");
        }
    }

    #[test]
    fn what_is_known_of_a_lost_connection_is_told() {
        for (why, is_cut, says) in [
            (None, false, "its exit code is not known"),
            (Some("reset\n"), false, "is not known (reset\\n)"),
            (None, true, "this member speaks v4.channel.k8s.io"),
        ] {
            let lost = lost(why.map(str::to_owned), is_cut);
            assert!(
                matches!(&lost, Outcome::Unknown(text) if text.contains(says)),
                "{lost:?}"
            );
        }
    }
}
