//! kubectl on both lanes, held to golden transcripts: see the module `kubectl` of the harness.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use entourage_apiserver::workloads;
use entourage_e2e::{
    harness::{Lane, Scene, Test},
    kubectl::{Client, Files, Seat, Server, compare, play},
    servers::TestCluster,
};
use libtest_mimic::{Failed, Trial};
use serde_json::json;

/// Set to `1`, transcripts are written instead of only compared.
const UPDATE: &str = "UPDATE_GOLDEN";

macro_rules! themes {
    ($($name:literal),* $(,)?) => {
        [$(($name, Test::new(
            concat!(module_path!(), "::", $name),
            |scene| Box::pin(holds(scene, $name)),
        ))),*]
    };
}

/// Every script of `e2e/kubectl`, in order. That of workloads needs Pods that run: on the real lane there are no kubelets,
/// and no controllers of Deployments.
const THEMES: [(&str, Test); 15] = themes![
    "admin",
    "apply",
    "auth",
    "crd",
    "create",
    "delete",
    "describe",
    "diff",
    "discovery",
    "edit",
    "get",
    "nodes",
    "set",
    "wait",
    "workloads",
];

/// A test a theme; ignored, with the reason, where there is no kubectl.
pub(crate) fn tests() -> Result<Vec<Test>> {
    let ignored = Client::find()?.err().map(|reason| {
        eprintln!("tests of kubectl are ignored: {reason}");
        "no kubectl"
    });
    let tests = THEMES.into_iter().map(|(theme, test)| match theme {
        "workloads" => test.only(&[Lane::Embedded]),
        _ => test,
    });
    Ok(tests.map(|test| test.plain().unless(ignored)).collect())
}

/// The tests that need no kubectl: the table and the scripts are the same.
pub(crate) fn trials() -> Vec<Trial> {
    let check = || {
        let themes = files().themes().map_err(|error| format!("{error:#}"))?;
        let tested: Vec<&str> = THEMES.iter().map(|(theme, _)| *theme).collect();
        match themes == tested {
            true => Ok(()),
            false => Err(Failed::from(format!("scripts {themes:?}, tests {tested:?}"))),
        }
    };
    vec![Trial::test("kubectl::every_script_is_a_test", check)]
}

fn files() -> Files {
    Files::of(Path::new(env!("CARGO_MANIFEST_DIR")).join("kubectl"))
}

async fn holds(scene: &mut Scene, theme: &str) -> Result<()> {
    let files = files();
    let script = files.script(theme)?;
    let client = Client::find()?.map_err(|reason| anyhow::anyhow!(reason))?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": theme}});
    scene.member("member1")?.create(&namespace).await?;
    // Deleted with the test.
    scene.space_of(theme);
    let cluster = scene.bed.cluster("member1")?;
    let (lane, version) = match cluster {
        TestCluster::Embedded(cluster) => {
            if theme == "workloads" {
                workloads::start(cluster.cluster(), workloads::Stages::default());
            }
            (Lane::Embedded, None)
        }
        TestCluster::Real(cluster) => (Lane::Real, Some(cluster.version())),
    };
    let server = Server {
        lane: lane.name(),
        version,
    };
    let scratch = scene.bed.dir().join("kubectl").join(theme);
    let seat = Seat::at(client, cluster, theme, files.manifests(), scratch)?;
    let played = play(&script, &seat)
        .await
        .with_context(|| format!("the script {theme}"))?;
    let update = std::env::var_os(UPDATE).is_some_and(|value| value == "1");
    let complaints = compare(&files, &script, server, client, &played, update)?;
    ensure!(
        complaints.is_empty(),
        "kubectl {} printed something else in {} places: a defect, or a line for differences.txt, or {UPDATE}=1\n{}",
        client.version,
        complaints.len(),
        complaints.join("\n")
    );
    Ok(())
}
