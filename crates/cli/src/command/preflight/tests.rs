//! Checks of scripted servers.

use serde_json::{Value, json};

use super::*;
use crate::mock::scripted;

/// A server on which every review is answered with `allowed`, and lists are empty.
fn server(allowed: bool) -> Client {
    scripted(move |call| {
        let body = match call {
            "GET /version" => json!({"major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "",
                "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
            "GET /metrics" => {
                return (
                    200,
                    "apiserver_storage_size_bytes{cluster=\"a\"} 1e+06\n".to_owned(),
                );
            }
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
                json!({"status": {"allowed": allowed}})
            }
            _ => json!({"metadata": {}, "items": []}),
        };
        (200, body.to_string())
    })
}

fn args(output: Option<Format>) -> PreflightArgs {
    PreflightArgs {
        role: Role::Hub,
        cluster: HubArgs::default(),
        rights_of: RightsOf::Admin,
        probe: false,
        store_quota: 2e9,
        strict: false,
        output,
    }
}

async fn checked(args: &PreflightArgs, allowed: bool) -> (String, ExitCode) {
    let mut out = Vec::new();
    let code = preflight(args, &server(allowed), &mut out).await.unwrap();
    (String::from_utf8(out).unwrap(), code)
}

#[tokio::test]
async fn a_table_has_a_line_for_each_finding_and_remedies_below() {
    let (text, code) = checked(&args(None), true).await;
    assert!(text.contains("OK    version"), "{text}");
    assert!(
        text.contains("WARN  definitions"),
        "no definition is there: {text}"
    );
    assert!(text.contains("-> run `entourage init`"), "{text}");
    assert!(text.ends_with(" 0 failed\n"), "{text}");
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
    let (text, code) = checked(&args(None), false).await;
    assert!(text.contains("FAIL  rights"), "{text}");
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(FAILED)));
}

#[tokio::test]
async fn rights_that_are_missing_are_named_as_json() {
    let (text, _) = checked(&args(Some(Format::Json)), false).await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["passed"], false);
    assert_eq!(report["role"], "hub");
    let findings = report["findings"].as_array().unwrap();
    let rights = findings
        .iter()
        .find(|finding| finding["check"] == "rights")
        .unwrap();
    assert_eq!(rights["level"], "FAIL");
    assert!(
        rights["message"]
            .to_string()
            .contains("customresourcedefinitions.apiextensions.k8s.io")
    );
}

#[tokio::test]
async fn the_rights_of_the_controllers_are_other_ones() {
    let of_controllers = PreflightArgs {
        rights_of: RightsOf::Controllers,
        ..args(None)
    };
    let (text, _) = checked(&of_controllers, false).await;
    assert!(text.contains("clusters/status"), "{text}");

    let member = PreflightArgs {
        role: Role::Member,
        ..of_controllers
    };
    let error = preflight(&member, &server(true), &mut Vec::<u8>::new())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("--rights-of controllers"), "{error}");
}

#[tokio::test]
async fn strict_fails_for_warnings() {
    let member = PreflightArgs {
        role: Role::Member,
        ..args(None)
    };
    let strict = PreflightArgs {
        strict: true,
        ..member.clone()
    };
    let passed = |code: ExitCode| format!("{code:?}") == format!("{:?}", ExitCode::SUCCESS);
    let (text, code) = checked(&member, true).await;
    assert!(passed(code), "{text}");
    assert!(text.contains("WARN  nodes"), "{text}");
    assert!(!passed(checked(&strict, true).await.1));
}
