//! `entourage why`, `impact`, `tree` and `history` against a hub: what they say is what is there, and they write nothing.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser as _;
use entourage::command::{Cli, Command, history, impact, tree, why};
use entourage_e2e::{
    harness::{Canary, Scene, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    what_is_explained_is_what_is_there,
    what_keeps_a_workload_away_is_named,
    a_secret_is_explained_without_its_content,
];

/// An object as JSON, and the exit code.
struct Answer {
    value: Value,
    text: String,
    code: u8,
}

/// Runs a command of the line as a process would: `-n` and the hub are added, and text and JSON are asked for.
async fn ask(scene: &Scene, line: &str) -> Result<Answer> {
    let (text, code) = run(scene, line, "text").await?;
    let (value, again) = run(scene, line, "json").await?;
    ensure!(code == again, "{line}: exits with {code:?} and {again:?}");
    let value: Value = serde_json::from_str(&value).with_context(|| format!("{line}: {value}"))?;
    ensure!(value["schema"] == 1, "{line}: {value}");
    let code = [0, 1, 2]
        .into_iter()
        .find(|number| ExitCode::from(*number) == code)
        .context("another exit code")?;
    Ok(Answer { value, text, code })
}

async fn run(scene: &Scene, line: &str, format: &str) -> Result<(String, ExitCode)> {
    let hub = scene.bed.fleet.hub.kubeconfig_path();
    let mut words = vec!["entourage"];
    words.extend(line.split(' '));
    words.extend(["-n", &scene.ns, "-o", format]);
    words.extend(["--kubeconfig", hub.to_str().context("text")?]);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = match Cli::try_parse_from(words)?.command {
        Command::Explain(args) => why::run(*args, &mut out, &mut err).await?,
        Command::Impact(args) => impact::run(*args, &mut out, &mut err).await?,
        Command::Tree(args) => tree::run(*args, &mut out, &mut err).await?,
        Command::History(args) => history::run(args, &mut out, &mut err).await?,
        other => bail!("{other:?} explains nothing"),
    };
    ensure!(err.is_empty(), "{line}: {}", String::from_utf8_lossy(&err));
    Ok((String::from_utf8(out)?, code))
}

/// The state on a cluster, and its steps with this effect: `rule: message`.
fn on(answer: &Value, cluster: &str, effect: &str) -> Result<(String, Vec<String>)> {
    let all = answer["clusters"].as_array().context("no clusters")?;
    let found = all.iter().find(|each| each["cluster"] == cluster);
    let found = found.with_context(|| format!("{cluster} is missing"))?;
    let presence = found["presence"].as_str().context("no presence")?.to_owned();
    Ok((presence, steps(found, effect)))
}

fn steps(of: &Value, effect: &str) -> Vec<String> {
    let steps = of["steps"].as_array().into_iter().flatten();
    let of_it = steps.filter(|step| step["effect"] == effect);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of_it
        .map(|step| format!("{}: {}", text(&step["rule"]), text(&step["message"])))
        .collect()
}

async fn what_is_explained_is_what_is_there(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.quiet().await?;
    let before = scene.writes().len();
    let web = ask(scene, "why deploy/myapp").await?;
    ensure!(web.code == 0, "{}", web.text);
    for (cluster, wanted) in [
        ("member1", "Present"),
        ("member2", "Present"),
        ("member3", "Absent"),
    ] {
        let (presence, against) = on(&web.value, cluster, "against")?;
        ensure!(presence == wanted, "{}", web.text);
        ensure!(against.is_empty() == (wanted == "Present"), "{against:?}");
    }
    // Nothing is due in a quiet system.
    ensure!(!web.text.contains("is due"), "{}", web.text);

    let settings = ask(scene, "why configmap/my-config -C member1").await?;
    ensure!(settings.code == 0, "{}", settings.text);
    let (_, why) = on(&settings.value, "member1", "for")?;
    let referrer = format!(
        "dependency: Deployment {}/myapp is scheduled here and needs it",
        scene.ns
    );
    ensure!(why.contains(&referrer), "{why:?}");
    let elsewhere = ask(scene, "why configmap/my-config -C member3").await?;
    ensure!(elsewhere.code == 1, "{}", elsewhere.text);

    let tree = ask(scene, "tree deployment/myapp").await?;
    let below = &tree.value["dependencies"][0];
    ensure!(
        tree.code == 0 && below["object"]["name"] == "my-config",
        "{}",
        tree.text
    );
    ensure!(
        below["clusters"].as_array().map(Vec::len) == Some(2),
        "{}",
        tree.text
    );

    let impact = ask(scene, "impact cm/my-config").await?;
    let touched = impact.value["touched"].as_array().context("nothing touched")?;
    let relations: Vec<String> = touched
        .iter()
        .map(|each| format!("{} {}", each["cluster"], each["relation"]))
        .collect();
    let wanted = [
        "\"member1\" \"copy\"",
        "\"member1\" \"referrer\"",
        "\"member2\" \"copy\"",
        "\"member2\" \"referrer\"",
    ];
    ensure!(relations == wanted, "{}", impact.text);

    let history = ask(scene, "history deploy/myapp").await?;
    ensure!(history.code == 0, "{}", history.text);
    let entries = history.value["entries"].as_array().context("no entries")?;
    ensure!(
        entries.first().is_some_and(|each| each["what"] == "created"),
        "{}",
        history.text
    );
    ensure!(
        entries.iter().any(|each| each["source"] == "scheduling"),
        "{}",
        history.text
    );

    for line in [
        "why cm/absent",
        "tree cm/absent",
        "impact cm/absent",
        "history cm/absent",
    ] {
        let absent = ask(scene, line).await?;
        ensure!(absent.code == 1, "{line}: {}", absent.text);
    }
    ensure!(scene.writes().len() == before, "they wrote: {:?}", scene.writes());
    Ok(())
}

async fn what_keeps_a_workload_away_is_named(scene: &mut Scene) -> Result<()> {
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "my-config"}, "data": {"key": "theirs"}});
    scene.apply_on("member2", foreign).await?;
    scene
        .bed
        .taints(&["taint", "member3", "dedicated=gpu:NoSchedule"])
        .await?;
    scene.start().await?;
    scene.apply(manifests::config_map("my-config", "1")).await?;
    scene
        .apply(manifests::deployment("myapp", &["my-config"]))
        .await?;
    scene
        .apply(manifests::policy(&["member1", "member2", "member3"]))
        .await?;
    scene
        .until_condition(
            "my-config-configmap",
            "FullyApplied",
            "False",
            "is not managed by this hub",
        )
        .await?;
    scene.quiet().await?;

    let web = ask(scene, "why deploy/myapp -C member3").await?;
    ensure!(web.code == 1, "{}", web.text);
    let (presence, against) = on(&web.value, "member3", "against")?;
    let taint = "filter: leaves it out: with untolerated taint {dedicated=gpu:NoSchedule}";
    ensure!(presence == "Absent" && against == [taint], "{}", web.text);

    let settings = ask(scene, "why cm/my-config -C member2").await?;
    ensure!(settings.code == 1, "{}", settings.text);
    let (presence, against) = on(&settings.value, "member2", "against")?;
    let is_conflict = |step: &String| step.contains("is not managed by this hub");
    ensure!(
        presence == "KeptAway" && against.iter().any(is_conflict),
        "{}",
        settings.text
    );

    scene.apply(manifests::config_map("alone", "1")).await?;
    let alone = ask(scene, "why cm/alone").await?;
    let against = steps(&alone.value, "against");
    ensure!(
        alone.code == 1 && against == ["policy: no policy selects it"],
        "{}",
        alone.text
    );

    let cluster = ask(scene, "impact cluster/member1").await?;
    let touched = cluster.value["touched"].as_array().context("nothing touched")?;
    let of_web = touched.iter().find(|each| each["object"]["name"] == "myapp");
    ensure!(
        of_web.is_some_and(|each| each["relation"] == "leaves"),
        "{}",
        cluster.text
    );
    Ok(())
}

async fn a_secret_is_explained_without_its_content(scene: &mut Scene) -> Result<()> {
    let canary = Canary::new("explained");
    scene.start().await?;
    scene.apply(manifests::secret("keys", &canary.value)).await?;
    let pod = json!({"volumes": [{"name": "s", "secret": {"secretName": "keys"}}]});
    scene
        .apply(manifests::workload("Deployment", "myapp", &pod))
        .await?;
    scene.apply(manifests::policy(&["member1"])).await?;
    scene.until_copy("member1", "Secret", "keys", |_| Ok(())).await?;
    scene.quiet().await?;
    for line in [
        "why secret/keys",
        "impact secret/keys",
        "tree secret/keys",
        "tree deploy/myapp",
        "history secret/keys",
    ] {
        let answer = ask(scene, line).await?;
        ensure!(answer.code == 0, "{line}: {}", answer.text);
        let shown = format!("{}{}", answer.text, answer.value);
        ensure!(!canary.is_in(&shown), "{line} shows the content of the Secret");
    }
    Ok(())
}
