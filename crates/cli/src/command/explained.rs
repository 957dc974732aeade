//! The common parts of `why`, `impact` and `tree`: the object that is named, and the engine in the state of its hub.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_core::{
    Engine,
    object::{ResourceId, Time},
};
use kube::Client;

use super::{
    answer::Output,
    controllers::features::{self, FeatureGates},
    plan::{FileArgs, objects},
    pods,
    resource::{self, is_kind},
};
use crate::{
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect::{self, explain, is_not_found, within},
    lists::api,
    simulate::{
        Assumed, Simulated, interpreters,
        live::{self, LiveOptions, MembersFrom},
        offline,
    },
};

#[cfg(test)]
mod golden;

/// The object, and where it is looked for.
#[derive(Args, Clone, Debug)]
pub struct LookArgs {
    /// Kind, as for kubectl, and name of the object: deploy/web, cluster/member1
    #[arg(value_name = "KIND/NAME")]
    pub target: String,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Files instead of a hub: the answer for the state after they were applied.
    #[command(flatten)]
    pub files: FileArgs,

    /// For files without Clusters: the members to assume, ready and empty
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = args::cluster_name, requires = "FileArgs")]
    pub clusters: Vec<String>,

    /// Namespace (default: that of the context, else default)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// The features that the hub's controllers run with: NAME=true,NAME=false
    #[arg(long, value_name = "NAME=BOOL,…", value_parser = features::parse, default_value = "",
        hide_default_value = true, long_help = features::help())]
    pub feature_gates: FeatureGates,

    /// Namespaces that the hub's controllers leave alone besides kube-*, karmada-* and karmada-cluster: that of their Lease
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    pub reserved_namespaces: Vec<String>,

    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t)]
    pub output: Output,
}

/// The engine in the state of a hub, and the object in it.
pub struct Looked {
    simulated: Simulated,
    /// The object.
    pub id: ResourceId,
    /// True if the hub has it.
    pub exists: bool,
}

impl Looked {
    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        self.simulated.simulation.engine()
    }

    /// The time for which the engine answers.
    #[must_use]
    pub fn now(&self) -> Time {
        self.simulated.simulation.now()
    }

    /// Assumptions, and errors of reading.
    #[must_use]
    pub fn remarks(&self) -> &[String] {
        &self.simulated.remarks
    }
}

/// Looks at the hub, or at the files.
///
/// # Errors
/// The hub or a file cannot be read, or no kind has this name.
pub async fn look(args: &LookArgs) -> Result<Looked> {
    if !args.files.is_empty() {
        return of_files(args);
    }
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let namespace = args.namespace.clone().unwrap_or(config.default_namespace.clone());
    of_hub(args, &connect::client(config)?, &namespace).await
}

async fn of_hub(args: &LookArgs, hub: &Client, namespace: &str) -> Result<Looked> {
    let (kind, name) = target(args)?;
    let (gvk, served) = resource::find(hub, kind, "the hub").await?;
    let namespace = if served.namespaced { namespace } else { "" };
    // The metadata alone: the object may be a Secret.
    let exists = match within(api(hub, &served, namespace).get_metadata(name)).await {
        Ok(_) => true,
        Err(error) if is_not_found(&error) => false,
        Err(error) => {
            return Err(explain(error))
                .with_context(|| format!("cannot read {} {name} of the hub", gvk.kind));
        }
    };
    let assumptions = Assumptions::of(args);
    let simulated = observe(hub, namespace, &assumptions).await?;
    Ok(Looked {
        simulated,
        id: ResourceId::new(gvk, namespace, name),
        exists,
    })
}

/// The assumptions about the hub's controllers.
#[derive(Clone, Debug, Default)]
pub struct Assumptions {
    /// Their features.
    pub feature_gates: FeatureGates,
    /// The namespaces that they leave alone.
    pub reserved_namespaces: Vec<String>,
}

impl Assumptions {
    fn of(args: &LookArgs) -> Self {
        Self {
            feature_gates: args.feature_gates.clone(),
            reserved_namespaces: args.reserved_namespaces.clone(),
        }
    }
}

/// Reads the hub as its controllers do. `namespace` is that of objects that name none.
///
/// # Errors
/// The hub cannot be read.
pub(super) async fn observe(hub: &Client, namespace: &str, assumptions: &Assumptions) -> Result<Simulated> {
    let options = LiveOptions {
        members: MembersFrom::Recorded,
        namespace: namespace.to_owned(),
        cluster_namespace: CLUSTER_NAMESPACE.to_owned(),
        assumed: assumed(assumptions),
        adopted: BTreeMap::new(),
    };
    let mut simulated = live::observe(hub, &options).await?;
    let hooks = interpreters::hooks_of_hub(hub, &mut crate::kinds::Kinds::default()).await;
    simulated.remarks.extend(hooks);
    Ok(simulated)
}

/// The state after the files were applied.
///
/// # Errors
/// A file cannot be read, or has no object of this name.
pub fn of_files(args: &LookArgs) -> Result<Looked> {
    if args.hub.kubeconfig.is_some() || args.hub.context.is_some() {
        bail!("-f answers for files alone: leave out --kubeconfig and --context, or -f");
    }
    let (kind, name) = target(args)?;
    let manifests = args.files.read()?;
    let objects = objects(&manifests)?;
    let namespace = args.namespace.as_deref().unwrap_or("default");
    let hooks = interpreters::hooks(&objects);
    let mut simulated = offline::simulate(
        objects,
        &args.clusters,
        namespace,
        &assumed(&Assumptions::of(args)),
    )?;
    simulated.remarks.extend(hooks);
    let is_it = |id: &&ResourceId| {
        let here = id.namespace.is_empty() || *id.namespace == *namespace;
        here && *id.name == *name && is_kind(kind, id)
    };
    let found = simulated.simulation.hub().map(|(id, _)| id).find(is_it).cloned();
    let Some(id) = found else {
        bail!("the files have no {kind} {name} in namespace {namespace}");
    };
    Ok(Looked {
        simulated,
        id,
        exists: true,
    })
}

fn target(args: &LookArgs) -> Result<(&str, &str)> {
    match pods::named(&args.target)? {
        (Some(kind), name) => Ok((kind, name)),
        (None, _) => bail!(
            "{:?} names no kind: give KIND/NAME, such as deploy/web",
            args.target
        ),
    }
}

/// The controllers that the answer is for.
fn assumed(args: &Assumptions) -> Assumed {
    controllers(&args.feature_gates, &args.reserved_namespaces)
}

/// Controllers with these features, which leave these namespaces alone.
pub(super) fn controllers(gates: &FeatureGates, reserved: &[String]) -> Assumed {
    Assumed {
        distribute: gates.given(features::RESOURCE_DISTRIBUTION).unwrap_or(true),
        propagate_deps: gates.is_on(features::PROPAGATE_DEPS),
        multiple_pod_templates: gates.is_on(features::MULTIPLE_POD_TEMPLATES_SCHEDULING),
        enforce_quotas: gates.is_on(features::FEDERATED_QUOTA_ENFORCEMENT),
        failover: gates.is_on(features::FAILOVER),
        reserved: reserved.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use entourage_core::{inspection::explanation::RULES, object::Gvk};

    use super::*;

    #[test]
    fn a_kind_of_a_file_has_its_singular_and_plural() {
        let id = |api_version: &str, kind: &str| ResourceId::new(Gvk::new(api_version, kind), "", "x");
        for (word, api_version, kind, wanted) in [
            ("Deployment", "apps/v1", "Deployment", true),
            ("deployments", "apps/v1", "Deployment", true),
            ("deployment.apps", "apps/v1", "Deployment", true),
            ("deployment.extensions", "apps/v1", "Deployment", false),
            ("deploy", "apps/v1", "Deployment", true),
            ("deploy.apps", "apps/v1", "Deployment", true),
            ("ingresses", "networking.k8s.io/v1", "Ingress", true),
            ("sts", "apps/v1", "Deployment", false),
            (
                "propagationpolicies",
                "policy.karmada.io/v1alpha1",
                "PropagationPolicy",
                true,
            ),
            ("configmap", "v1", "Secret", false),
        ] {
            assert_eq!(is_kind(word, &id(api_version, kind)), wanted, "{word}");
        }
    }

    #[test]
    fn every_rule_is_on_the_page_of_the_commands() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let page = std::fs::read_to_string(docs.join("commands.md")).unwrap();
        for (name, _) in RULES {
            assert!(
                page.contains(&format!("| `{name}` |")),
                "docs/commands.md: add a row on the rule {name} of `entourage why`"
            );
        }
    }
}
