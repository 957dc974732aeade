//! The commands: one variant and one file each.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::connect::{CallerArgs, set_caller};
#[cfg(feature = "commands")]
use crate::{crds, join};

#[cfg(feature = "commands")]
pub mod adopt;
pub mod agent;
#[cfg(feature = "commands")]
pub mod answer;
#[cfg(feature = "embedded")]
pub mod audit;
#[cfg(feature = "commands")]
pub mod bench;
#[cfg(feature = "commands")]
pub mod completion;
pub mod controllers;
#[cfg(feature = "commands")]
pub mod cordon;
#[cfg(feature = "embedded")]
pub mod demo;
#[cfg(feature = "commands")]
pub mod describe;
#[cfg(feature = "commands")]
pub mod drain;
#[cfg(feature = "embedded")]
pub mod drill;
#[cfg(feature = "commands")]
pub mod exec;
#[cfg(feature = "embedded")]
pub mod explained;
#[cfg(feature = "embedded")]
pub mod failover;
#[cfg(feature = "commands")]
pub mod get;
#[cfg(feature = "embedded")]
pub mod graph;
pub mod help;
#[cfg(feature = "commands")]
pub mod history;
#[cfg(feature = "embedded")]
pub mod impact;
#[cfg(feature = "commands")]
pub mod init;
#[cfg(feature = "commands")]
pub mod interpret;
#[cfg(feature = "commands")]
pub mod kustomize_generator;
#[cfg(feature = "commands")]
pub mod logs;
#[cfg(feature = "commands")]
pub mod man;
#[cfg(feature = "embedded")]
pub mod plan;
#[cfg(feature = "commands")]
mod pods;
#[cfg(feature = "commands")]
pub mod preflight;
#[cfg(feature = "embedded")]
pub mod promote;
pub mod proxy;
#[cfg(feature = "commands")]
pub mod register;
#[cfg(feature = "commands")]
mod resource;
#[cfg(feature = "commands")]
pub mod resume;
#[cfg(feature = "commands")]
pub mod support_bundle;
#[cfg(feature = "commands")]
pub mod taint;
#[cfg(feature = "commands")]
pub mod token;
#[cfg(feature = "commands")]
pub mod top;
#[cfg(feature = "embedded")]
pub mod tree;
#[cfg(feature = "embedded")]
pub mod ui;
#[cfg(feature = "commands")]
pub mod unjoin;
#[cfg(feature = "embedded")]
pub mod up;
#[cfg(feature = "commands")]
pub mod version;
pub mod webhook;
#[cfg(feature = "embedded")]
pub mod why;

/// Propagates Kubernetes workloads, together with their dependencies, to many clusters.
#[derive(Debug, Parser)]
#[command(name = "entourage", version)]
pub struct Cli {
    /// The caller, for each command that connects by --kubeconfig.
    #[command(flatten)]
    pub caller: CallerArgs,

    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take over the copies of a former hub, of which this one is the successor, or of a Karmada
    ///
    /// A hub that is rebuilt has another id: copies on the members belong to the former one and are conflicts. Objects that this
    /// hub has and schedules to the member become its own; every other one is left alone, and nothing is deleted. With
    /// --from-karmada the same is done with the copies of a Karmada whose controllers are stopped; --undo gives them back,
    /// --confirm retires that Karmada. Without --yes nothing is written.
    #[cfg(feature = "commands")]
    Adopt(adopt::AdoptArgs),
    /// Run the agent of a cluster in Pull mode, inside that cluster
    ///
    /// It connects to the hub, applies the Works of its cluster and reports their state; the hub needs no connection to the
    /// cluster. In a pod, without --kubeconfig and --context, Works are applied on the cluster that the pod runs in.
    Agent(Box<agent::AgentArgs>),
    /// Show which Secret went to which cluster and namespace, and because of what
    #[cfg(feature = "embedded")]
    Audit(Box<audit::AuditArgs>),
    /// Measure a control plane on real API servers
    #[cfg(feature = "commands")]
    Bench(Box<bench::BenchArgs>),
    /// Print the completion script of a shell
    ///
    /// The script completes commands, flags and their values.
    #[cfg(feature = "commands")]
    Completion(completion::CompletionArgs),
    /// Run the controllers against a hub
    ///
    /// In a pod, without --kubeconfig and --context, the hub is the cluster that the pod runs in.
    Controllers(Box<controllers::ControllersArgs>),
    /// Prevent new bindings from being scheduled to clusters
    ///
    /// Sets the taint cluster.karmada.io/unschedulable:NoSchedule. Copies that are there already stay.
    #[cfg(feature = "commands")]
    Cordon(cordon::CordonArgs),
    /// Print the CustomResourceDefinitions, or apply them to a hub
    #[cfg(feature = "commands")]
    Crds(crds::CrdsArgs),
    /// Show propagation with dependencies on a hub and members in this process
    #[cfg(feature = "embedded")]
    Demo(demo::DemoArgs),
    /// Show an object of the hub with its policy, clusters, dependencies and events; or the object that a member has
    ///
    /// With --cluster it is read on that member, through the hub and as yourself; a hub that does not serve clusters/proxy is named by
    /// the address of `entourage proxy`. Values of Secrets are never read.
    #[cfg(feature = "commands")]
    Describe(describe::DescribeArgs),
    /// Cordon a cluster, evict its workloads, and wait for that
    ///
    /// Sets the taints cluster.karmada.io/unschedulable:NoSchedule and entourage.dev/drain:NoExecute; the controllers evict the
    /// bindings that do not tolerate the second one. `entourage uncordon` removes both.
    #[cfg(feature = "commands")]
    Drain(drain::DrainArgs),
    /// Cut off a member of clusters in this process, and report evictions, their times, and the cleanup
    ///
    /// With the sample workloads, or with -f your own. Ends with an error if a running copy was ever without a dependency, or
    /// if a copy is orphaned.
    #[cfg(feature = "embedded")]
    Drill(Box<drill::DrillArgs>),
    /// Run a command in a container on a member
    ///
    /// Through the hub and as yourself: you need `get` of clusters/proxy on the hub, and `get` and `create` of pods/exec on the member. The
    /// exit code is that of the command. A hub that does not serve clusters/proxy is named by the address of `entourage proxy`.
    #[cfg(feature = "commands")]
    Exec(exec::ExecArgs),
    /// Report evictions if a member failed, workloads without another cluster, and data that would remain there
    ///
    /// Makes the same decisions as the controllers, in a simulation: nothing is written.
    #[cfg(feature = "embedded")]
    Failover(failover::FailoverArgs),
    /// Show bindings, copies, clusters or policies, with their state and its causes
    ///
    /// Reads only the hub; its bindings record the copies on the members.
    #[cfg(feature = "commands")]
    Get(get::GetArgs),
    /// Draw references between objects, their clusters, and missing dependencies
    ///
    /// Of a hub, or with -f of files.
    #[cfg(feature = "embedded")]
    Graph(Box<graph::GraphArgs>),
    /// Show what is known of the changes of an object, in order of time
    ///
    /// From its metadata, its binding and the events of both, on the hub. Exits with 1 if the hub does not have the object, with 2 after an
    /// error. Values of Secrets are never read.
    #[cfg(feature = "commands")]
    History(history::HistoryArgs),
    /// Show what a change or the deletion of an object touches, cluster by cluster
    ///
    /// Of a template: its copies, referrers and dependencies; of a policy: its templates; of a Cluster: the workloads that leave or move.
    /// Exits with 0 if it touches anything, with 1 if it touches nothing, with 2 after an error. Nothing is written.
    #[cfg(feature = "embedded")]
    Impact(Box<impact::ImpactArgs>),
    /// Set a hub up: definitions, namespaces, accounts and rights
    ///
    /// By server-side apply; a second run changes nothing. Objects that somebody else manages, and that differ, end the command before
    /// anything is written; --take-over replaces their content. So do definitions of a newer version.
    #[cfg(feature = "commands")]
    Init(Box<init::InitArgs>),
    /// Check customizations and webhooks, list the interpreters of a kind, or interpret objects in files
    ///
    /// Reads files, and calls the webhooks among them. Without -f only the native and shipped rules apply.
    #[cfg(feature = "commands")]
    Interpret(Box<interpret::InterpretArgs>),
    /// Make a cluster a member of a hub
    #[cfg(feature = "commands")]
    Join(join::JoinArgs),
    /// Generate a ResourceDistribution from literals and files, for kustomize or standalone
    ///
    /// As an exec function of kustomize it reads a ResourceList from standard input. FILE, the configuration alone, or flags
    /// print the object by itself.
    #[cfg(feature = "commands")]
    KustomizeGenerator(Box<kustomize_generator::KustomizeGeneratorArgs>),
    /// Print the logs of a pod, or of all pods of a workload on all its clusters
    ///
    /// Through the hub and as yourself: you need `get` of clusters/proxy on the hub, and `pods/log` on the members. A hub
    /// that does not serve clusters/proxy is named by the address of `entourage proxy`.
    #[cfg(feature = "commands")]
    Logs(Box<logs::LogsArgs>),
    /// Write the manual pages of all commands to a directory
    #[cfg(feature = "commands")]
    #[command(hide = true)]
    Man(man::ManArgs),
    /// Show the objects that an apply would create, change and remove, and their clusters
    ///
    /// Makes the same decisions as the controllers, in a simulation: nothing is written. Without --kubeconfig and --context
    /// only the files are used; with a hub, its present state and that of the members are read.
    #[cfg(feature = "embedded")]
    Plan(Box<plan::PlanArgs>),
    /// Check whether a cluster can be a hub or a member
    ///
    /// Reads versions, definitions, controllers, admission, rights, clocks and the size of the store; nothing is written, except with
    /// --probe. The exit code is 2 if a check fails, and 1 after an error.
    #[cfg(feature = "commands")]
    Preflight(preflight::PreflightArgs),
    /// Make an object of a member a template on the hub, without recreating it there
    ///
    /// A policy for that member is created with it; the controllers take the object over as it is.
    #[cfg(feature = "embedded")]
    Promote(Box<promote::PromoteArgs>),
    /// Serve the API of a hub with clusters/NAME/proxy added, for hubs that do not serve that themselves
    ///
    /// Requests for a member are sent on to it as the user whose bearer token they have; all others go to the hub as they came.
    Proxy(proxy::ProxyArgs),
    /// Make a cluster a member in Pull mode, and start its agent there
    ///
    /// It obtains a client certificate of the agent with the kubeconfig that `entourage token create` printed on the hub. The hub needs
    /// no connection to the cluster.
    #[cfg(feature = "commands")]
    Register(Box<register::RegisterArgs>),
    /// Resume deletions on a member that the controllers have paused
    #[cfg(feature = "commands")]
    Resume(resume::ResumeArgs),
    /// Write a file with the state of a hub for support, without payloads
    ///
    /// Objects of the control plane, events, metrics and logs, as far as they can be read. Payloads of Secrets and ConfigMaps are not
    /// read; values of environment variables and overrides are redacted.
    #[cfg(feature = "commands")]
    SupportBundle(support_bundle::SupportBundleArgs),
    /// Set taints of clusters, or remove them
    ///
    /// kubectl taint supports only Nodes.
    #[cfg(feature = "commands")]
    #[command(
        override_usage = "entourage taint [OPTIONS] CLUSTER... [KEY[=VALUE]:EFFECT]... [KEY[:EFFECT]-]..."
    )]
    Taint(taint::TaintArgs),
    /// Create, show and delete bootstrap tokens, by which clusters in Pull mode are registered
    #[cfg(feature = "commands")]
    Token(token::TokenArgs),
    /// Show the use of CPU and memory of nodes or pods of all members, in one table
    ///
    /// Through the hub and as yourself, from the metrics server of each member. A hub that does not serve clusters/proxy is named by the
    /// address of `entourage proxy`.
    #[cfg(feature = "commands")]
    Top(top::TopArgs),
    /// Show a workload, its dependencies, and the clusters of each with the states of their copies
    ///
    /// Exits with 0 if the object is on any cluster, with 1 if it is on none, with 2 after an error.
    #[cfg(feature = "embedded")]
    Tree(Box<tree::TreeArgs>),
    /// Show the fleet on a page in the browser: members, workloads, their state and its causes
    ///
    /// Serves the page on the loopback address, and reads the hub as yourself; nothing is written. Values of Secrets are never read for
    /// it. Ctrl-C ends it.
    #[cfg(feature = "embedded")]
    Ui(Box<ui::UiArgs>),
    /// Allow new bindings to be scheduled to clusters again
    ///
    /// Removes the taints that `entourage cordon` and `entourage drain` set. Evicted workloads do not return by themselves.
    #[cfg(feature = "commands")]
    Uncordon(cordon::CordonArgs),
    /// Remove a member from a hub
    #[cfg(feature = "commands")]
    Unjoin(unjoin::UnjoinArgs),
    /// Start a hub, members and the controllers in this process, for evaluation
    #[cfg(feature = "embedded")]
    Up(up::UpArgs),
    /// Print the version of this binary and of its definitions; with --kubeconfig or --context also those of a hub
    #[cfg(feature = "commands")]
    Version(version::VersionArgs),
    /// Run the admission webhook: defaults, rules, protection from deletion
    ///
    /// Creates its own certificates and registers itself. In a pod, without --kubeconfig and --context, the hub is the cluster
    /// that the pod runs in.
    Webhook(webhook::WebhookArgs),
    /// Explain why an object is on its clusters, or what keeps it away, rule by rule
    ///
    /// Asks the planners of the controllers, in the state of the hub; nothing is written. Exits with 0 if the object is on the cluster that
    /// is named, or on any; with 1 if it is not; with 2 after an error.
    #[cfg(feature = "embedded")]
    #[command(name = "why")]
    Explain(Box<why::WhyArgs>),
}

impl Cli {
    /// The number of threads for the command.
    #[must_use]
    pub fn worker_threads(&self) -> usize {
        match &self.command {
            Command::Controllers(args) => args.worker_threads.into(),
            Command::Agent(args) => args.worker_threads.into(),
            _ => 2,
        }
    }

    /// Runs the command. Returns the exit code.
    ///
    /// # Errors
    /// The cause and the remedy, for the user of the command.
    pub async fn run(self) -> Result<ExitCode> {
        set_caller(&self.caller)?;
        #[cfg(feature = "commands")]
        let out = &mut std::io::stdout();
        let done = match self.command {
            #[cfg(feature = "commands")]
            Command::Adopt(args) => adopt::run(args, out).await,
            Command::Agent(args) => agent::run(*args).await,
            #[cfg(feature = "embedded")]
            Command::Audit(args) => return audit::run(*args, out, &mut std::io::stderr()).await,
            #[cfg(feature = "commands")]
            Command::Bench(args) => bench::run(*args, out).await,
            #[cfg(feature = "commands")]
            Command::Completion(args) => completion::run(&args, out),
            Command::Controllers(args) => controllers::run(*args).await,
            #[cfg(feature = "commands")]
            Command::Cordon(args) => cordon::run(args, out).await,
            #[cfg(feature = "commands")]
            Command::Crds(args) => crds::run(args, out).await,
            #[cfg(feature = "embedded")]
            Command::Demo(args) => demo::run(args, out).await,
            #[cfg(feature = "commands")]
            Command::Describe(args) => describe::run(args, out).await,
            #[cfg(feature = "commands")]
            Command::Drain(args) => drain::run(args, out).await,
            #[cfg(feature = "embedded")]
            Command::Drill(args) => drill::run(*args, out).await,
            #[cfg(feature = "commands")]
            Command::Exec(args) => return exec::run(args, out, &mut std::io::stderr()).await,
            #[cfg(feature = "embedded")]
            Command::Failover(args) => failover::run(args, out).await,
            #[cfg(feature = "commands")]
            Command::Get(args) => get::run(args, out).await,
            #[cfg(feature = "embedded")]
            Command::Graph(args) => graph::run(*args, out).await,
            #[cfg(feature = "commands")]
            Command::History(args) => return history::run(args, out, &mut std::io::stderr()).await,
            #[cfg(feature = "embedded")]
            Command::Impact(args) => return impact::run(*args, out, &mut std::io::stderr()).await,
            #[cfg(feature = "commands")]
            Command::Init(args) => init::run(*args, out).await,
            #[cfg(feature = "commands")]
            Command::Interpret(args) => return interpret::run(&args, out, &mut std::io::stderr()).await,
            #[cfg(feature = "commands")]
            Command::Join(args) => join::run(args, out).await,
            #[cfg(feature = "commands")]
            Command::KustomizeGenerator(args) => kustomize_generator::run(*args, out).await,
            #[cfg(feature = "commands")]
            Command::Logs(args) => logs::run(*args, out, &mut std::io::stderr()).await,
            #[cfg(feature = "commands")]
            Command::Man(args) => man::run(&args),
            #[cfg(feature = "embedded")]
            Command::Plan(args) => return plan::run(*args, out).await,
            #[cfg(feature = "commands")]
            Command::Preflight(args) => return preflight::run(args, out).await,
            #[cfg(feature = "embedded")]
            Command::Promote(args) => promote::run(*args, out).await,
            Command::Proxy(args) => proxy::run(args).await,
            #[cfg(feature = "commands")]
            Command::Register(args) => register::run(*args, out).await,
            #[cfg(feature = "commands")]
            Command::Resume(args) => resume::run(args, out).await,
            #[cfg(feature = "commands")]
            Command::SupportBundle(args) => support_bundle::run(args, out).await,
            #[cfg(feature = "commands")]
            Command::Taint(args) => taint::run(args, out).await,
            #[cfg(feature = "commands")]
            Command::Token(args) => token::run(args, out, &mut std::io::stderr()).await,
            #[cfg(feature = "commands")]
            Command::Top(args) => top::run(args, out, &mut std::io::stderr()).await,
            #[cfg(feature = "embedded")]
            Command::Tree(args) => return tree::run(*args, out, &mut std::io::stderr()).await,
            #[cfg(feature = "embedded")]
            Command::Ui(args) => ui::run(*args, out).await,
            #[cfg(feature = "commands")]
            Command::Uncordon(args) => cordon::run_uncordon(args, out).await,
            #[cfg(feature = "commands")]
            Command::Unjoin(args) => unjoin::run(args, out).await,
            #[cfg(feature = "embedded")]
            Command::Up(args) => up::run(args, out).await,
            #[cfg(feature = "commands")]
            Command::Version(args) => version::run(args, out).await,
            Command::Webhook(args) => webhook::run(args).await,
            #[cfg(feature = "embedded")]
            Command::Explain(args) => return why::run(*args, out, &mut std::io::stderr()).await,
        };
        done.map(|()| ExitCode::SUCCESS)
    }
}

#[cfg(feature = "embedded")]
#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{} {}",
                    command.get_name(),
                    argument.get_id()
                );
            }
        }
    }

    /// A page that shows how it is run, and a line below that parses.
    #[test]
    fn every_command_is_on_a_page_and_tried_below() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let pages: String = [
            "commands.md",
            "reference/flags.md",
            "getting-started.md",
            "performance.md",
        ]
        .map(|page| std::fs::read_to_string(docs.join(page)).unwrap())
        .concat();
        for command in Cli::command().get_subcommands() {
            let line = format!("entourage {}", command.get_name());
            let is_tried = LINES
                .iter()
                .any(|each| *each == line || each.starts_with(&format!("{line} ")));
            assert!(
                is_tried,
                "add a line of `{line}` to LINES (crates/cli/src/command.rs)"
            );
            assert!(
                pages.contains(&line),
                "docs/commands.md: add a section on `{line}`"
            );
        }
    }

    /// Command lines that the documentation shows, or might.
    const LINES: &[&str] = &[
        "entourage adopt --kubeconfig hub.yaml",
        "entourage adopt --former-hub 8e34b4e6-08ff-4b04-8b94-5c02d1a3aee5 --cluster m1 --member m2=m2.yaml --yes",
        "entourage adopt --kubeconfig hub.yaml --from-karmada karmada.yaml",
        "entourage adopt --from-karmada karmada.yaml --karmada-context karmada-apiserver --cluster m1 --allow-restarts --allow-unknown --yes",
        "entourage adopt --from-karmada karmada.yaml --undo --yes",
        "entourage adopt --from-karmada karmada.yaml --confirm --yes",
        "entourage agent --cluster-name member1 --hub-kubeconfig hub.yaml",
        "entourage agent --cluster-name m1 --hub-kubeconfig hub.yaml --hub-context pull --kubeconfig m1.yaml --health-addr off",
        "entourage bench all --kubeconfig hub.yaml --member m1=m1.yaml --member m2=m2.yaml --json report.json",
        "entourage controllers --controllers=*,hpaScaleTargetMarker,deploymentReplicasSyncer",
        "entourage controllers --controllers=*,serviceExport,endpointSlice,serviceImport --endpoints-per-member 100",
        "entourage up --controllers *,-deploymentReplicasSyncer",
        "entourage controllers --kubeconfig hub.yaml --feature-gates PropagateDeps=false --health-addr off",
        "entourage controllers --leader-elect true --log-format json --log-level debug",
        "entourage completion bash",
        "entourage man --dir man",
        "entourage crds --for v1.20.2",
        "entourage crds --apply --kubeconfig hub.yaml",
        "entourage join m1 --kubeconfig hub.yaml --cluster-kubeconfig m1.yaml --labels env=prod,tier=a",
        "entourage join m1 --cluster-kubeconfig m1.yaml --region eu --zone a --zone b --wait 1m --dry-run",
        "entourage describe deploy/web -n shop",
        "entourage describe secret/login -C member1 --kubeconfig hub.yaml",
        "entourage exec web-1 --cluster member1 -- env",
        "entourage exec deploy/web -C m1 -n shop -c app -it -- sh -c date",
        "entourage failover --dry-run member1 -o json",
        "entourage failover --dry-run member1 -o yaml",
        "entourage drill",
        "entourage drill member2 --members 5 -f a.yaml manifests -R --timeout 2m -o json",
        "entourage get bindings -A",
        "entourage get bindings -A -o jsonpath={range.items[*]}{.name}{end}",
        "entourage get copies -C member1 --field-selector state!=Applied -w --no-headers",
        "entourage get copies -A -l app=web -o custom-columns=NAME:.name,ON:.cluster,STATE:.state",
        "entourage get rb -n shop --as jane --as-group devs --as-group ops --request-timeout 1m",
        "entourage --as jane get clusters",
        "entourage plan -k overlays/prod",
        "entourage plan -f https://example.com/app.yaml --clusters m1",
        "entourage tree deploy/web -k overlays/prod --clusters m1",
        "entourage get copies myapp -n shop -o wide",
        "entourage get clusters -o json --kubeconfig hub.yaml",
        "entourage get policies -o name",
        "entourage graph -A -o mermaid",
        "entourage graph -n shop -o yaml",
        "entourage graph -f chart.yaml --kind Deployment --name web -o dot",
        "entourage history deploy/web -n shop -o json",
        "entourage impact configmap/settings -n shop",
        "entourage impact cluster/member1 -o json --kubeconfig hub.yaml",
        "entourage impact configmap/settings -C m1 --cluster m2",
        "entourage impact secret/login -n shop --feature-gates PropagateDeps=false --reserved-namespaces entourage-system",
        "entourage init --kubeconfig hub.yaml",
        "entourage init --parts controllers,webhook,distribution --dry-run",
        "entourage init --print --for 1.20 --parts controllers",
        "entourage init --webhook-url https://hooks.example.com:8443 --webhook-ca-file ca.crt --take-over",
        "entourage init --webhook-service karmada-system/entourage-webhook --webhook-ca-file ca.crt --allow-downgrade",
        "entourage interpret -f shops.yaml --check",
        "entourage interpret -f shops.yaml hooks.yaml --operation InterpretHealth --observed-file copy.yaml",
        "entourage interpret -f - --layers --desired-file shop.yaml",
        "entourage interpret -f a.yaml --operation Retain --desired-file b --observed-file c --hook-url a/b=https://d:1",
        "entourage kustomize-generator",
        "entourage kustomize-generator generator.yaml",
        "entourage kustomize-generator --name rd --kind Secret --resource-name x --from-literal a=b --all-namespaces",
        "entourage kustomize-generator --name rd --kind Secret --resource-name x --type kubernetes.io/tls \
             --from-file tls.key --from-file tls.crt=a/b --from-env-file e --namespace a b --exclude-namespace c",
        "entourage logs deploy/web -n shop -f",
        "entourage logs web-1 -C member1 -c app --tail 20 --since 1h --previous --timestamps",
        "entourage logs -l app=web -C m1 -C m2 --all-containers --tail -1 --max-log-requests 50",
        "entourage plan -f config/samples/myapp",
        "entourage plan -f config/samples/myapp -o yaml",
        "entourage plan -f a.yaml b.yaml -f - -R --clusters m1,m2 --diff",
        "entourage plan -f chart.yaml --kubeconfig hub.yaml --members recorded -o json --exit-code",
        "entourage preflight --kubeconfig hub.yaml",
        "entourage preflight member --kubeconfig m1.yaml --strict -o json",
        "entourage preflight hub --probe --rights-of controllers --store-quota 8Gi",
        "entourage promote deployment web -n shop --cluster m1 --deps --dry-run",
        "entourage promote clusterrole viewer -C m1 --auto-create-policy=false --cluster-kubeconfig m1.yaml",
        "entourage promote deploy web -C m1 --policy-name web --kubeconfig hub.yaml",
        "entourage proxy --kubeconfig hub.yaml --tls-cert-file tls.crt --tls-private-key-file tls.key",
        "entourage proxy --kubeconfig h --tls-cert-file t --tls-private-key-file k --health-addr 127.0.0.1:8080",
        "entourage join m1 --cluster-kubeconfig m1.yaml --impersonate user:jane,group:devs",
        "entourage register --bootstrap-kubeconfig edge1.kubeconfig --image registry.example/entourage:1 --wait 30m",
        "entourage register --bootstrap-kubeconfig b --kubeconfig edge1.yaml --hub-kubeconfig hub.kubeconfig",
        "entourage register hub:6443 --cluster-name edge1 --token abcdef.0123456789abcdef --image registry.example/entourage:1 \
             --discovery-token-ca-cert-hash sha256:9e9e0e8f3e5ba7a6e8e9d1f2c3b4a5968778695a4b3c2d1e0f9e8d7c6b5a4938",
        "entourage token create edge1 --print-register-command --region eu",
        "entourage token create --print-register-command",
        "entourage controllers --controllers=*,bootstrapsigner",
        "entourage token create edge1 --region eu --server https://hub:6443 --output edge1-bootstrap.kubeconfig",
        "entourage token list -o json",
        "entourage token list -o wide -l app=x --field-selector cluster=edge1 --no-headers",
        "entourage token list -o jsonpath={.items[*].id}",
        "entourage token delete abc123",
        "entourage controllers --controllers=*,agentcsrapproving",
        "entourage unjoin m1 --kubeconfig hub.yaml --remove-copies --wait 5m",
        "entourage resume m1 --kubeconfig hub.yaml --wait 0s",
        "entourage controllers --removal-budget 100",
        "entourage controllers --eviction-rate 0.5 --eviction-rate-per-region 10 --eviction-rate-per-cluster 20",
        "entourage unjoin m1 --force",
        "entourage support-bundle --kubeconfig hub.yaml",
        "entourage support-bundle --host-kubeconfig host.yaml --host-context prod --output bundle.tar.gz --logs-since 1h",
        "entourage version -o json",
        "entourage version --kubeconfig hub.yaml",
        "entourage demo",
        "entourage top nodes",
        "entourage top nodes -l zone=a -o yaml",
        "entourage top pods -l app=web --field-selector name!=web-1 --no-headers",
        "entourage tree deploy/web -n shop",
        "entourage tree deploy/web -C m1",
        "entourage audit secrets -A -C m1 -o json --kubeconfig hub.yaml",
        "entourage audit secrets -n shop -o wide -f shop.yaml --clusters m1,m2",
        "entourage audit secrets -A -l env=prod --field-selector presence=KeptAway -o custom-columns=S:.secret.name --no-headers",
        "entourage audit secrets -A -C m1 -C m2 -o name",
        "entourage audit secrets -A -o jsonpath={.secrets[*].cluster}",
        "entourage tree deployment/web -f a.yaml b.yaml -R --clusters m1,m2 -o json",
        "entourage top pods -A --sort-by memory -C m1 -C m2",
        "entourage taint m1 m2 dedicated=gpu:NoSchedule maintenance:NoExecute old- older:NoSchedule- --overwrite --dry-run",
        "entourage cordon m1 m2 --kubeconfig hub.yaml",
        "entourage uncordon m1 --dry-run",
        "entourage drain m1 --timeout 30m",
        "entourage drain m1 --wait=false",
        "entourage drain --wait m1",
        "entourage webhook --kubeconfig hub.yaml",
        "entourage webhook --service karmada-system/entourage-webhook --bind-address 0.0.0.0 --remove-on-exit false",
        "entourage webhook --url https://hooks.example.com:8443 --allow-no-execute-taint-policy",
        "entourage why deploy/web -n shop",
        "entourage why deploy/web -c member2 -o json --kubeconfig hub.yaml",
        "entourage why deploy/web -C member2 -o yaml --context hub",
        "entourage why deployment/web -f chart.yaml --clusters m1,m2",
        "entourage ui",
        "entourage ui --kubeconfig hub.yaml --context hub -n shop --port 8446 --no-open",
        "entourage up --members 5 --ui",
        "entourage up --members 100 --data-dir fleet --apply config/samples/myapp",
    ];

    #[test]
    fn command_lines_of_the_documentation_parse() {
        for line in LINES {
            Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        for line in [
            "entourage",
            "entourage adopt --yes",
            "entourage adopt --former-hub a/b",
            "entourage adopt --member m1",
            "entourage agent --cluster-name m1",
            "entourage agent --hub-kubeconfig hub.yaml",
            "entourage agent --cluster-name M1 --hub-kubeconfig hub.yaml",
            "entourage join",
            "entourage join M1 --cluster-kubeconfig m1.yaml",
            "entourage join m1",
            "entourage join m1 --cluster-kubeconfig m1.yaml --impersonate devs",
            "entourage proxy --kubeconfig hub.yaml",
            "entourage crds --for new",
            "entourage crds --apply --for 1.20",
            "entourage controllers --feature-gates Levitation=true",
            "entourage controllers --controllers=*,-binding",
            "entourage controllers --health-addr 8080",
            "entourage controllers --eviction-rate 0",
            "entourage describe",
            "entourage exec web-1 -- env",
            "entourage exec web-1 -C m1",
            "entourage exec web-1 -C m1 -t -- sh",
            "entourage failover member1",
            "entourage drill m1 m2",
            "entourage drill --members 0",
            "entourage get",
            "entourage get pods",
            "entourage get bindings -o jsonpath={.items",
            "entourage get bindings -o custom-columns=NAME",
            "entourage get copies --field-selector state",
            "entourage get copies --request-timeout soon",
            "entourage completion csh",
            "entourage man",
            "entourage plan -k a -f b",
            "entourage get bindings -A -n shop",
            "entourage graph -o svg",
            "entourage graph -o wide",
            "entourage history",
            "entourage impact",
            "entourage impact deploy/web --clusters m1",
            "entourage tree",
            "entourage audit",
            "entourage audit secrets -A -n shop",
            "entourage audit secrets -o text,wide",
            "entourage tree deploy/web -o wide",
            "entourage why",
            "entourage why deploy/web -C M1",
            "entourage logs",
            "entourage logs web-1 -l app=web",
            "entourage logs web-1 -c app --all-containers",
            "entourage logs web-1 --tail -2",
            "entourage promote deployment web",
            "entourage promote deployment -C m1",
            "entourage promote deployment web -C m1 --cluster-context x",
            "entourage taint",
            "entourage taint m1 dedicated=gpu:Never",
            "entourage cordon",
            "entourage cordon M1",
            "entourage uncordon",
            "entourage drain",
            "entourage drain m1 m2",
            "entourage drain m1 --timeout 10",
            "entourage init --parts nothing",
            "entourage init --print --dry-run",
            "entourage init --for 1.20",
            "entourage init --webhook-url https://a",
            "entourage init --webhook-url https://a --webhook-service b/c --webhook-ca-file d",
            "entourage preflight node",
            "entourage preflight --store-quota much",
            "entourage support-bundle --logs-since 5",
            "entourage version -o text",
            "entourage interpret -f shops.yaml",
            "entourage interpret --check",
            "entourage interpret -f shops.yaml --check --layers",
            "entourage interpret -f shops.yaml --check --hook-url a=https://b",
            "entourage interpret --operation InterpretHealth --hook-url a/b=https://c",
            "entourage kustomize-generator a.yaml b.yaml",
            "entourage kustomize-generator a.yaml --name rd",
            "entourage kustomize-generator --name rd --kind Secret --resource-name x",
            "entourage kustomize-generator --name rd --kind Pod --resource-name x --all-namespaces",
            "entourage kustomize-generator --name rd --kind Secret --all-namespaces",
            "entourage kustomize-generator --from-literal a=b",
            "entourage plan -o wide -f a.yaml",
            "entourage token list -o table",
            "entourage token list -n shop",
            "entourage audit secrets -o text",
            "entourage impact deploy/web -C M1",
            "entourage top",
            "entourage top services",
            "entourage top pods -A -n shop",
            "entourage ui --port 70000",
            "entourage webhook --url http://hooks.example.com",
            "entourage webhook --url https://a --service b/c",
            "entourage webhook --service entourage-webhook",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
