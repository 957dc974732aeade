//! The golden cases of `entourage taint`, `cordon`, `uncordon` and `drain`: files in `testdata/taint`, each a command line
//! after `#`, its output, and its writes to the hub of `testdata/taint/hub.yaml`. `UPDATE_GOLDEN=1` rewrites the results.

use std::fmt::Write as _;

use entourage_core::object::Time;
use serde_json::Value;

use crate::{
    command::{Command, cordon, drain},
    golden, manifests,
    mock::Server,
};

/// 2026-01-01T01:00:00.999Z
const NOW: Time = Time(1_767_229_200_999);

#[test]
fn every_command_line_prints_and_writes_what_its_file_says() {
    golden::command_lines("taint", 30, |command| {
        // Time advances when all tasks wait.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(printed(command))
    });
}

async fn printed(command: Command) -> String {
    let (hub, mut out) = (hub(), Vec::new());
    let done = match command {
        Command::Taint(args) => super::taint(&args, hub.client(), NOW, &mut out).await,
        Command::Cordon(args) => cordon::cordon(&args, hub.client(), NOW, &mut out).await,
        Command::Uncordon(args) => cordon::uncordon(&args, hub.client(), NOW, &mut out).await,
        Command::Drain(args) => drain::drain(&args, hub.client(), NOW, &mut out).await,
        other => panic!("{other:?}"),
    };
    let mut text = String::from_utf8(out).unwrap();
    if let Err(error) = done {
        writeln!(text, "error: {error:#}").unwrap();
    }
    let writes = hub.take_writes();
    if writes.is_empty() {
        text.push_str("(nothing is written)\n");
    }
    for write in writes {
        let path = write.split(' ').nth(1).unwrap();
        writeln!(text, "({write})").unwrap();
        match hub.object(path).unwrap()["spec"].get("taints") {
            Some(Value::Array(taints)) => {
                let lines = taints.iter().map(|taint| format!("  {taint}\n"));
                text.extend(lines);
            }
            Some(other) => writeln!(text, "  {other}").unwrap(),
            None => text.push_str("  no taints\n"),
        }
    }
    text
}

/// The hub of the cases.
fn hub() -> Server {
    let hub = Server::new("hub-id");
    for object in manifests::read(&[golden::folder("taint").join("hub.yaml")]).unwrap() {
        let object = object.value().unwrap();
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let namespace = match text("/metadata/namespace") {
            "" => String::new(),
            namespace => format!("namespaces/{namespace}/"),
        };
        let (api, plural) = (text("/apiVersion"), text("/kind").to_lowercase());
        let path = format!("/apis/{api}/{namespace}{plural}s/{}", text("/metadata/name"));
        hub.put(&path, object);
    }
    hub
}
