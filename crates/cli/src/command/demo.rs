//! `entourage demo`: propagation on embedded clusters, step by step, each verified on the members.

use std::{io::Write, time::Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::drill;
use crate::{
    fleet::{Fleet, Place},
    logging::{self, LogArgs, LogFormat},
    manifests,
    style::Style,
};

mod cluster;
mod failover;
mod tree;

use cluster::{CONFIG_MAP, Clients, DEPLOYMENT, POLICY};

/// The example of docs/concepts.md, from `config/samples/myapp`.
const SAMPLE: [&str; 3] = [
    include_str!("../../../../config/samples/myapp/deployment.yaml"),
    include_str!("../../../../config/samples/myapp/policy.yaml"),
    include_str!("../../../../config/samples/myapp/configmap.yaml"),
];

/// The number of members.
const MEMBERS: usize = 3;

/// Flags of `entourage demo`.
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {}

/// Runs the demo; ends with an error if any check failed.
///
/// # Errors
/// The failed check and the cluster.
pub async fn run(_: DemoArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    logging::init(&LogArgs {
        log_format: LogFormat::default(),
        // In the last step a member fails, which the controllers log as a warning.
        log_level: "error".to_owned(),
    })?;
    play(Style::of_stdout(), out).await
}

/// The state of a demo.
struct Demo<'a> {
    fleet: Fleet,
    style: Style,
    out: &'a mut (dyn Write + Send),
    checks: usize,
    step: usize,
}

async fn play(style: Style, out: &mut (dyn Write + Send)) -> Result<()> {
    let begin = Instant::now();
    writeln!(
        out,
        "{}\n",
        style.bold(
            "A workload with its dependencies: a Deployment, and the ConfigMap it mounts, on two of three clusters."
        )
    )?;
    let fleet = Fleet::start(MEMBERS, &Place::Nowhere, drill::options()).await?;
    let mut demo = Demo {
        fleet,
        style,
        out,
        checks: 0,
        step: 0,
    };
    demo.step(&format!(
        "A hub and {MEMBERS} members in this process: up after {} ms",
        begin.elapsed().as_millis()
    ))?;
    demo.arrives().await?;
    demo.moves().await?;
    demo.edits().await?;
    demo.drops().await?;
    demo.deletes_a_copy().await?;
    demo.restarts().await?;
    demo.fails().await?;
    let Demo {
        fleet, out, checks, ..
    } = demo;
    fleet.end().await?;
    writeln!(
        out,
        "\n{} {checks} checks held, in {:.1} s. The same by hand, with kubectl: entourage up",
        style.good("done:"),
        begin.elapsed().as_secs_f32()
    )?;
    out.flush()?;
    Ok(())
}

impl Demo<'_> {
    async fn arrives(&mut self) -> Result<()> {
        self.step("Apply config/samples/myapp to the hub: a policy sends myapp to member1 and member2, propagateDeps: true")?;
        let hub = self.fleet.hub.client();
        let begin = Instant::now();
        for text in SAMPLE {
            for object in manifests::parse(text, "config/samples/myapp")? {
                let line = manifests::apply(&hub, &object).await?;
                self.say(&format!("hub: {line}"))?;
            }
        }
        self.until(
            begin,
            "Deployment myapp is on member1 and member2, and nowhere else",
            async |clients| {
                clients
                    .is_exactly_on(&DEPLOYMENT, "myapp", &["member1", "member2"])
                    .await
            },
        )
        .await?;
        self.until(
            begin,
            "ConfigMap my-config was propagated with it: no policy names it",
            async |clients| {
                clients
                    .is_exactly_on(&CONFIG_MAP, "my-config", &["member1", "member2"])
                    .await
            },
        )
        .await?;
        self.until(begin, "the status on the hub shows both", async |clients| {
            clients.is_settled(2).await
        })
        .await?;
        let clients = Clients::new(&self.fleet);
        let tree = tree::of(&clients, "myapp-deployment", "my-config-configmap").await?;
        writeln!(self.out, "\n{tree}")?;
        let attached = clients.binding("my-config-configmap").await?;
        writeln!(
            self.out,
            "{}\n",
            self.style.dim(&indented(&format!(
                "# kubectl get resourcebinding my-config-configmap -o yaml (shortened)\n{}",
                serde_saphyr::to_string(&tree::shortened(&attached))?
            )))
        )?;
        Ok(())
    }

    async fn moves(&mut self) -> Result<()> {
        self.step("Move the policy from member1 to member3")?;
        let patch =
            json!({"spec": {"placement": {"clusterAffinity": {"clusterNames": ["member2", "member3"]}}}});
        let begin = self.patch(&POLICY, "myapp-propagation", &patch).await?;
        self.until(
            begin,
            "Deployment myapp is on member2 and member3",
            async |clients| {
                clients
                    .is_exactly_on(&DEPLOYMENT, "myapp", &["member2", "member3"])
                    .await
            },
        )
        .await?;
        self.until(begin, "ConfigMap my-config moved with it", async |clients| {
            clients
                .is_exactly_on(&CONFIG_MAP, "my-config", &["member2", "member3"])
                .await
        })
        .await
    }

    async fn edits(&mut self) -> Result<()> {
        self.step("Edit the ConfigMap on the hub")?;
        let patch = json!({"data": {"nginx.properties": "proxy-connect-timeout: \"20s\"\n"}});
        let begin = self.patch(&CONFIG_MAP, "my-config", &patch).await?;
        self.until(begin, "both copies have the new data", async |clients| {
            for member in ["member2", "member3"] {
                let copy = clients.copy(member, &CONFIG_MAP, "my-config").await?;
                let copy = copy.with_context(|| format!("{member} has no my-config"))?;
                if copy["data"] != patch["data"] {
                    bail!("{member} has {}", copy["data"]);
                }
            }
            Ok(())
        })
        .await
    }

    async fn drops(&mut self) -> Result<()> {
        self.step("Take the reference out of the Deployment: nothing depends on the ConfigMap any more")?;
        let patch = json!({"spec": {"template": {"spec": {"volumes": null, "containers": [
            {"name": "nginx", "image": "nginx"}]}}}});
        let begin = self.patch(&DEPLOYMENT, "myapp", &patch).await?;
        self.until(begin, "ConfigMap my-config left both members", async |clients| {
            clients.is_exactly_on(&CONFIG_MAP, "my-config", &[]).await
        })
        .await?;
        self.until(
            begin,
            "and stayed on the hub; the Deployment runs on",
            async |clients| {
                clients
                    .template(&CONFIG_MAP, "my-config")
                    .await?
                    .context("the hub lost my-config")?;
                clients
                    .is_exactly_on(&DEPLOYMENT, "myapp", &["member2", "member3"])
                    .await
            },
        )
        .await
    }

    async fn deletes_a_copy(&mut self) -> Result<()> {
        self.step("Delete the Deployment on member2 by hand, as a user there may")?;
        let uid = async |clients: &Clients| -> Result<Value> {
            let copy = clients.copy("member2", &DEPLOYMENT, "myapp").await?;
            Ok(copy.context("member2 has no myapp")?["metadata"]["uid"].clone())
        };
        let clients = Clients::new(&self.fleet);
        let before = uid(&clients).await?;
        let begin = Instant::now();
        clients.delete_copy("member2", &DEPLOYMENT, "myapp").await?;
        self.until(begin, "it is back, as a new object", async |clients| {
            if uid(clients).await? == before {
                bail!("member2 still has the old one");
            }
            Ok(())
        })
        .await
    }

    /// The controllers have no state beyond the objects on the servers.
    async fn restarts(&mut self) -> Result<()> {
        self.step("Restart the controllers, and change the Deployment while none run")?;
        self.until(Instant::now(), "everything is settled", async |clients| {
            clients.is_settled(2).await
        })
        .await?;
        self.fleet.stop_controllers().await?;
        let before = Clients::new(&self.fleet).versions().await?;
        let note = json!({"metadata": {"annotations": {"demo": "while none ran"}}});
        self.patch(&DEPLOYMENT, "myapp", &note).await?;
        let begin = Instant::now();
        self.fleet.start_controllers(drill::options());
        self.until(begin, "the change is delivered", async |clients| {
            for member in ["member2", "member3"] {
                let copy = clients
                    .copy(member, &DEPLOYMENT, "myapp")
                    .await?
                    .context("no copy")?;
                if copy["metadata"]["annotations"]["demo"] != "while none ran" {
                    bail!("{member} has the old one");
                }
            }
            Ok(())
        })
        .await?;
        self.until(
            begin,
            "policy, clusters and ConfigMap were not written; the copies are those of before",
            async |clients| {
                let after = clients.versions().await?;
                if after != before {
                    bail!("was {before:?}, is {after:?}");
                }
                Ok(())
            },
        )
        .await
    }

    /// Prints the heading of the next step.
    fn step(&mut self, text: &str) -> Result<()> {
        self.step += 1;
        writeln!(
            self.out,
            "{} {}",
            self.style.bold(&format!("{}.", self.step)),
            self.style.bold(text)
        )?;
        self.out.flush()?;
        Ok(())
    }

    fn say(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "   {}", self.style.dim(text))?;
        Ok(())
    }

    /// Patches an object on the hub. Returns the time before the request.
    async fn patch(&mut self, kind: &cluster::Kind, name: &str, patch: &Value) -> Result<Instant> {
        let begin = Instant::now();
        Clients::new(&self.fleet).patch(kind, name, patch).await?;
        Ok(begin)
    }

    /// Waits until a check succeeds, and prints its time since `begin`.
    async fn until(
        &mut self,
        begin: Instant,
        claim: &str,
        holds: impl AsyncFn(&Clients) -> Result<()>,
    ) -> Result<()> {
        let clients = Clients::new(&self.fleet);
        if let Err(error) = cluster::eventually(async || holds(&clients).await).await {
            writeln!(self.out, "   {} {claim}", self.style.bad("✗"))?;
            self.out.flush()?;
            return Err(error.context(format!("failed: {claim}")));
        }
        self.checks += 1;
        let after = format!("{:.0} ms", begin.elapsed().as_secs_f64() * 1000.0);
        writeln!(
            self.out,
            "   {} {claim:<76} {}",
            self.style.good("✓"),
            self.style.dim(&after)
        )?;
        self.out.flush()?;
        Ok(())
    }
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("   {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}
