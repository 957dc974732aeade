//! The rules of admission: one row each, the one place to add one.

use entourage_model::problem::Problem;
use serde_json::Value;

use crate::{
    cluster, distribution, failover, hooks, interpreter, overrides, placement, policy, protection, quota,
    readable,
    request::{Around, Operation, Request},
    scripts, spread, stored, taints, warnings,
};

/// A kind with rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Name of the resource.
    pub plural: &'static str,
}

const fn kind(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group, kind, plural }
}

const POLICY: Kind = kind("policy.karmada.io", "PropagationPolicy", "propagationpolicies");
const CLUSTER_POLICY: Kind = kind(
    "policy.karmada.io",
    "ClusterPropagationPolicy",
    "clusterpropagationpolicies",
);
const OVERRIDE: Kind = kind("policy.karmada.io", "OverridePolicy", "overridepolicies");
const CLUSTER_OVERRIDE: Kind = kind(
    "policy.karmada.io",
    "ClusterOverridePolicy",
    "clusteroverridepolicies",
);
const TAINTS: Kind = kind("policy.karmada.io", "ClusterTaintPolicy", "clustertaintpolicies");
const QUOTA: Kind = kind(
    "policy.karmada.io",
    "FederatedResourceQuota",
    "federatedresourcequotas",
);
const CUSTOMIZATION: Kind = kind(
    "config.karmada.io",
    "ResourceInterpreterCustomization",
    "resourceinterpretercustomizations",
);
const INTERPRETER_WEBHOOK: Kind = kind(
    "config.karmada.io",
    "ResourceInterpreterWebhookConfiguration",
    "resourceinterpreterwebhookconfigurations",
);
const EXPLORING_WEBHOOK: Kind = kind(
    "config.karmada.io",
    "ResourceExploringWebhookConfiguration",
    "resourceexploringwebhookconfigurations",
);
const CLUSTER: Kind = kind("cluster.karmada.io", "Cluster", "clusters");
/// ResourceDistribution, in every version.
pub(crate) const DISTRIBUTION: Kind = kind("apps.kruise.io", "ResourceDistribution", "resourcedistributions");
/// The kinds with rules of their own. Users write all of them: objects that only the control plane writes, bindings above all,
/// must not wait for a webhook, not even for one that hangs.
pub const KINDS: &[Kind] = &[
    POLICY,
    CLUSTER_POLICY,
    OVERRIDE,
    CLUSTER_OVERRIDE,
    TAINTS,
    QUOTA,
    CUSTOMIZATION,
    INTERPRETER_WEBHOOK,
    EXPLORING_WEBHOOK,
    DISTRIBUTION,
    CLUSTER,
];

/// The kinds of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// These.
    These(&'static [Kind]),
    /// All kinds.
    All,
}

const POLICIES: Kinds = Kinds::These(&[POLICY, CLUSTER_POLICY]);
const READ: Kinds = Kinds::These(&[
    POLICY,
    CLUSTER_POLICY,
    OVERRIDE,
    CLUSTER_OVERRIDE,
    TAINTS,
    CUSTOMIZATION,
]);
const OVERRIDES: Kinds = Kinds::These(&[OVERRIDE, CLUSTER_OVERRIDE]);
const WEBHOOKS: Kinds = Kinds::These(&[INTERPRETER_WEBHOOK, EXPLORING_WEBHOOK]);
const DISTRIBUTIONS: Kinds = Kinds::These(&[DISTRIBUTION]);

/// The action of a rule, and its inputs.
#[derive(Clone, Copy)]
pub enum Act {
    /// Changes an object that is created or updated.
    Fill(fn(&mut Value, &Request<'_>)),
    /// Validates a state.
    Check(fn(&Value, &mut Vec<Problem>)),
    /// Validates a state by its request, or by the settings.
    CheckIn(fn(&Value, &Request<'_>, &mut Vec<Problem>)),
    /// Validates a state among other objects of its kind, if a request needs any: the objects needed, and the check.
    Compare(
        fn(&Request<'_>) -> Option<Around>,
        fn(&Value, &Request<'_>, &mut Vec<Problem>),
    ),
    /// Validates a change: the new state and the old one.
    Freeze(fn(&Value, &Value, &mut Vec<Problem>)),
    /// Validates a deletion.
    Keep(fn(&Value, &mut Vec<Problem>)),
    /// Warns the author of a possible mistake; the write is accepted.
    Warn(fn(&Value, &mut Vec<Problem>)),
}

/// One rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name, also that of its golden cases.
    pub name: &'static str,
    /// The kinds it applies to.
    pub on: Kinds,
    /// Its action.
    pub act: Act,
    /// Its text, for the documentation.
    pub says: &'static str,
    /// Its reason.
    pub reason: &'static str,
}

impl Rule {
    /// True if the rule applies to the kind and operation of a request.
    pub(super) fn is_about(&self, request: &Request<'_>) -> bool {
        let kind = match self.on {
            Kinds::All => true,
            Kinds::These(kinds) => kinds
                .iter()
                .any(|kind| kind.group == request.group && kind.kind == request.kind),
        };
        kind && matches!(self.act, Act::Keep(_)) == (request.operation == Operation::Delete)
    }

    /// True if it changes objects.
    #[must_use]
    pub const fn fills(&self) -> bool {
        matches!(self.act, Act::Fill(_))
    }
}

const fn rule(name: &'static str, on: Kinds, act: Act, says: &'static str, reason: &'static str) -> Rule {
    Rule {
        name,
        on,
        act,
        says,
        reason,
    }
}

/// All rules: first the defaults, in this order, then the checks, then the warnings. Source: Karmada reference 6.1, 6.2,
/// ResourceDistribution reference 2, 6.2, 6.3 and 6.5.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    rule("fill-selector-namespace", Kinds::These(&[POLICY, OVERRIDE]), Act::Fill(policy::fill_namespaces),
        "a resource selector without a namespace gets the policy's", "it can mean no other"),
    rule("fill-spread", POLICIES, Act::Fill(spread::fill),
        "a spread constraint spreads by cluster, over at least 1 group", "the shortest constraint means that"),
    rule("fill-propagate-deps", POLICIES, Act::Fill(policy::fill_propagate_deps),
        "a policy that selects a ServiceImport has propagateDeps: true", "the endpoints are what it refers to"),
    rule("fill-preference", POLICIES, Act::Fill(placement::fill_preference),
        "Divided without a preference is Weighted", "every reader then divides alike"),
    rule("fill-grace", POLICIES, Act::Fill(failover::fill_grace),
        "application failover that is Gracefully has gracePeriodSeconds 600", "an evicted copy does not wait for its replacement forever"),
    rule("drop-grace", POLICIES, Act::Fill(failover::drop_grace),
        "gracePeriodSeconds is removed when purgeMode stops being Gracefully and no other number is given", "kubectl \
         apply leaves what was filled in, and it would be refused"),
    rule("keep-id", POLICIES, Act::Fill(policy::keep_id),
        "the permanent id of a policy is restored when a write omits it", "kubectl replace drops labels that the controllers set"),

    rule("readable", READ, Act::CheckIn(readable::check),
        "the object can be decoded as its apiVersion and kind", "it would be skipped, and only a log line would report it"),
    rule("id-immutable", POLICIES, Act::Freeze(policy::same_id),
        "the permanent id of a policy does not change", "templates and bindings refer to it"),
    rule("scheduler-immutable", POLICIES, Act::Freeze(policy::same_scheduler),
        "schedulerName does not change", "two schedulers would write one binding"),
    rule("selector-namespace", Kinds::These(&[POLICY, OVERRIDE]), Act::CheckIn(policy::own_namespaces),
        "a resource selector names the policy's own namespace", "an author with rights in one namespace must not reach into another"),
    rule("selectors-per-policy", Kinds::These(&[POLICY]), Act::CheckIn(policy::selectors),
        "a PropagationPolicy has at most 1,000 resource selectors (--selectors-per-policy)", "each object of the namespace is compared with all of them"),
    rule("kinds-per-namespace", Kinds::These(&[POLICY]), Act::Compare(policy::names_more, policy::kinds),
        "the PropagationPolicies of a namespace name at most 100 custom kinds (--kinds-per-namespace)", "each is discovered on the hub and on every member"),
    rule("preemption-names", POLICIES, Act::Check(policy::preemption),
        "preemption Always needs a name in every selector", "taking everything from every policy is a mistake"),
    rule("suspension", POLICIES, Act::Check(policy::suspension),
        "suspension is of all clusters or of some that are named", "the two contradict each other"),
    rule("one-affinity", POLICIES, Act::Check(placement::one_affinity),
        "clusterAffinity and clusterAffinities are mutually exclusive", "it would be undefined which one counts"),
    rule("affinity-names", POLICIES, Act::Check(placement::affinity_names),
        "clusterAffinities have names of their own, and overflowAffinities others than their group and each other", "status and events name them"),
    rule("overflow", POLICIES, Act::Check(placement::overflow),
        "overflowAffinities need a group that selects, and division by room", "otherwise nothing ever overflows"),
    rule("field-selector", POLICIES, Act::Check(placement::field_selectors),
        "field selectors look at provider, region and zone with In and NotIn", "clusters have no other fields to select by"),
    rule("toleration-operator", POLICIES, Act::Check(placement::tolerations),
        "tolerations do not use Lt and Gt", "values of cluster taints are not numbers"),
    rule("workload-affinity", POLICIES, Act::Check(placement::workload_affinity),
        "workloadAffinity names two different labels", "one label cannot mean both affinity and anti-affinity"),
    rule("spread-by-one", POLICIES, Act::Check(spread::by_one),
        "a constraint spreads by a field or by a label", "one constraint makes one kind of group"),
    rule("spread-sizes", POLICIES, Act::Check(spread::sizes),
        "minGroups and maxGroups are not negative, and in order", "no choice of clusters could satisfy them"),
    rule("spread-once", POLICIES, Act::Check(spread::once),
        "each field and each label is spread by once", "two constraints about one thing contradict each other"),
    rule("failover-times", POLICIES, Act::Check(failover::times),
        "tolerationSeconds is not negative; gracePeriodSeconds is positive and goes with Gracefully", "other times mean nothing"),
    rule("state-alias", POLICIES, Act::Check(failover::aliases),
        "each rule of statePreservation has a label name and a path", "its value becomes a label"),
    rule("fail-back", POLICIES, Act::Check(failover::fail_back),
        "the annotation entourage.dev/fail-back is a duration of at most a year", "the workload would not fail back, without any message"),
    rule("wait-for-data", POLICIES, Act::Check(failover::wait_for_data),
        "the annotation entourage.dev/wait-for-data is true or false", "the workload would not wait, without any message"),
    rule("override-form", OVERRIDES, Act::Check(overrides::one_form),
        "overrideRules and the deprecated overriders are mutually exclusive", "their order would be undefined"),
    rule("override-field-selector", OVERRIDES, Act::Check(overrides::field_selectors),
        "field selectors look at provider, region and zone with In and NotIn", "clusters have no other fields to select by"),
    rule("override-fields", OVERRIDES, Act::Check(overrides::field_overriders),
        "a fieldOverrider is JSON or YAML, by pointers", "a text cannot be both"),
    rule("override-paths", OVERRIDES, Act::Check(overrides::paths),
        "paths of plaintext and of image predicates are JSON pointers", "any other path matches nothing"),
    rule("taint-no-execute", Kinds::These(&[TAINTS]), Act::CheckIn(taints::no_execute),
        "NoExecute taints need --allow-no-execute-taint-policy", "one policy could empty a fleet"),
    rule("taint-once", Kinds::These(&[TAINTS]), Act::Check(taints::once),
        "a taint is in the list once", "a cluster has a taint of one key and effect once"),
    rule("quota-resources", Kinds::These(&[QUOTA]), Act::Check(quota::resources),
        "a quota limits what a ResourceQuota can limit, by amounts that are not negative", "members would refuse the ResourceQuota"),
    rule("quota-assignments", Kinds::These(&[QUOTA]), Act::Check(quota::assigned),
        "assignments are of limits in overall, add up to them at most, and name a cluster once", "two limits would contradict each other"),
    rule("customization-alone", Kinds::These(&[CUSTOMIZATION]), Act::Compare(|_| Some(Around::Everywhere), interpreter::alone),
        "one customization decides on an operation of a kind", "it would be undefined which one wins"),
    rule("customization-declarative", Kinds::These(&[CUSTOMIZATION]), Act::Check(interpreter::declarative_rules),
        "the declarative rules of a customization can be followed", "a path with a mistake finds nothing"),
    rule("customization-scripts", Kinds::These(&[CUSTOMIZATION]), Act::CheckIn(scripts::compile),
        "the scripts of a customization compile", "one that does not compile fails every operation of its kind"),
    rule("sync-mode", Kinds::These(&[CLUSTER]), Act::Freeze(cluster::same_mode),
        "syncMode of a Cluster does not change", "what was written in one mode is neither removed nor managed in the other"),
    rule("interpreter-names", WEBHOOKS, Act::Check(interpreter::names),
        "interpreter webhooks have full names of their own", "errors and events name them"),
    rule("interpreter-clients", WEBHOOKS, Act::CheckIn(interpreter::clients),
        "interpreter webhooks have one address, 1 to 30 seconds and a supported version", "they could not be called"),
    rule("interpreter-operations", WEBHOOKS, Act::CheckIn(hooks::operations),
        "rules of interpreter webhooks name existing operations, or * alone", "a webhook with another operation is never called"),
    rule("distribution-name", DISTRIBUTIONS, Act::Check(distribution::name),
        "the name of a distribution is a DNS name", "the ownership metadata of copies contains it"),
    rule("distribution-source", DISTRIBUTIONS, Act::Check(distribution::source),
        "exactly one of resource and resourceFrom is set", "it would be undefined which one counts"),
    rule("distribution-resource", DISTRIBUTIONS, Act::Check(distribution::resource),
        "the distributed object is a valid v1 ConfigMap or Secret", "it would fail in every namespace"),
    rule("distribution-targets", DISTRIBUTIONS, Act::Check(distribution::targets),
        "targets have valid namespace names and selectors, and do not both name and exclude a namespace", "it \
         would be undefined which namespaces are selected"),
    rule("distribution-identity", DISTRIBUTIONS, Act::Freeze(distribution::same_identity),
        "apiVersion, kind and name of the distributed object do not change", "copies under the old name would be \
         orphaned"),
    rule("distribution-emptied", DISTRIBUTIONS, Act::Freeze(distribution::not_emptied),
        "targets that selected a namespace are not emptied, unless the annotation entourage.dev/allow-empty-targets allows it", "a mistake would delete every copy"),

    rule("deletion-protection", Kinds::All, Act::Keep(protection::protected),
        "an object with the label resourcetemplate.karmada.io/deletion-protected: Always is not deleted", "a namespace or a Secret deleted by mistake takes a fleet down"),

    rule("failover-dependencies", POLICIES, Act::Warn(failover::with_dependencies),
        "application failover is used with propagateDeps: true", "a workload moved without its Secrets does not start"),
    rule("data-without-claims", POLICIES, Act::Warn(failover::data_without_claims),
        "waiting for data is used with propagateDeps: true", "claims that are not propagated are not known as \
         dependencies"),
    rule("state-path", POLICIES, Act::Warn(failover::paths),
        "the paths of statePreservation are supported", "a workload that relies on another path \
         would start without its state"),
    rule("override-nothing", OVERRIDES, Act::Warn(stored::override_nothing),
        "an override policy without overriders, or with a rule that excludes all of its clusterNames, is named", "it changes no copy"),
    rule("excluded-all", POLICIES, Act::Warn(stored::excluded),
        "an exclusion that leaves none of clusterNames is named", "nothing is propagated"),
    rule("distribution-means-nothing", DISTRIBUTIONS, Act::Warn(warnings::means_nothing),
        "targets that select no namespace are named as such: no target, an empty selector, or excluded namespaces \
         alone", "elsewhere they select all"),
    rule("distribution-flat-selector", DISTRIBUTIONS, Act::Warn(warnings::flat_selectors),
        "labels beside matchLabels are read as matchLabels", "OpenKruise drops them"),
    rule("distribution-protected", DISTRIBUTIONS, Act::Warn(warnings::protected),
        "namespaces of the system are no targets, also if they are named", "nothing else reports why they have no copy"),
    rule("distribution-taken-over", DISTRIBUTIONS, Act::Warn(warnings::taken_over),
        "objects taken over by writePolicy overwrite are deleted with the distribution, unless deletionPolicy is Orphan", "they existed before it"),
];
