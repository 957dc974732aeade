//! The next write of this hub to each copy that it would adopt: a simulation against the hub and its members, in which they are
//! adopted already.

use std::collections::BTreeMap;

use entourage_core::{
    adoption::{Decision, karmada::Next},
    object::{ResourceId, Str},
};

use super::{Fleet, Plans};

/// The next write to each copy that would be adopted.
pub(super) type Nexts = BTreeMap<(Str, ResourceId), Next>;

/// Each copy that would be adopted, by its member.
fn adopted(plans: &Plans) -> impl Iterator<Item = (&Str, &ResourceId)> {
    plans.iter().flat_map(|(cluster, plan)| {
        let adopted = plan.iter().filter(|(_, decision)| *decision == Decision::Adopt);
        adopted.map(move |(id, _)| (cluster, id))
    })
}

/// The Works of Karmada are no copies of this hub.
const PULLED: &str = "of a cluster in Pull mode a plan reads the Works of this hub alone";

/// A build without the simulation knows nothing.
#[cfg(not(feature = "embedded"))]
pub(super) async fn nexts(fleet: &Fleet<'_>, plans: &Plans) -> (Nexts, Vec<String>) {
    let unknown = |(cluster, id): (&Str, &ResourceId)| {
        let is_pulled = fleet.pulled.contains(cluster);
        let why = if is_pulled {
            PULLED
        } else {
            "this build has no plan"
        };
        ((cluster.clone(), id.clone()), Next::Unknown(why.to_owned()))
    };
    (adopted(plans).map(unknown).collect(), Vec::new())
}

#[cfg(feature = "embedded")]
pub(super) use simulated::nexts;

#[cfg(feature = "embedded")]
mod simulated {
    use std::collections::BTreeSet;

    use entourage_core::{adoption::karmada::next, object::Gvk};
    use entourage_simulation::{Fate, Outcome, Place, Report};

    use super::{BTreeMap, Fleet, Next, Nexts, PULLED, Plans, ResourceId, Str, adopted};
    use crate::simulate::{
        Assumed,
        live::{self, LiveOptions, MembersFrom},
    };

    /// The next writes, and remarks of the simulation.
    pub(in super::super) async fn nexts(fleet: &Fleet<'_>, plans: &Plans) -> (Nexts, Vec<String>) {
        let mut nexts = Nexts::new();
        let mut seen: BTreeMap<Str, BTreeSet<ResourceId>> = BTreeMap::new();
        for (cluster, id) in adopted(plans) {
            if fleet.pulled.contains(cluster) {
                nexts.insert((cluster.clone(), id.clone()), Next::Unknown(PULLED.to_owned()));
            } else {
                seen.entry(cluster.clone()).or_default().insert(id.clone());
            }
        }
        if seen.is_empty() {
            return (nexts, Vec::new());
        }
        let options = LiveOptions {
            members: MembersFrom::Fromhub,
            namespace: "default".to_owned(),
            cluster_namespace: fleet.args.cluster_namespace.clone(),
            assumed: Assumed::default(),
            adopted: seen.clone(),
        };
        let mut remarks = Vec::new();
        let report = match live::simulate(fleet.hub, Vec::new(), &options).await {
            Ok(simulated) => {
                remarks = simulated.remarks;
                let report = simulated.simulation.report();
                doubt(simulated.is_settled, &simulated.unread).map_or(Ok(report), Err)
            }
            Err(error) => Err(format!("{error:#}")),
        };
        let no_templates = report.as_ref().map(unread_templates).unwrap_or_default();
        for (cluster, ids) in seen {
            let outcomes = report.as_ref().map(|report| outcomes_of(report, &cluster));
            for id in ids {
                let next = match &outcomes {
                    _ if no_templates.contains(id.to_string().as_str()) => {
                        Next::Unknown("its template cannot be read on the hub".to_owned())
                    }
                    Ok(Ok(outcomes)) => of_outcome(outcomes.get(&id).copied()),
                    Ok(Err(why)) => Next::Unknown((*why).clone()),
                    Err(why) => Next::Unknown((*why).clone()),
                };
                nexts.insert((cluster.clone(), id), next);
            }
        }
        (nexts, remarks)
    }

    /// The reason why a whole simulation shows nothing: it was given up with plans that were not carried out, or without objects of
    /// the hub that may change any of them.
    fn doubt(is_settled: bool, unread: &BTreeSet<Gvk>) -> Option<String> {
        if !is_settled {
            return Some("the plan did not settle".to_owned());
        }
        let kinds: Vec<&str> = unread.iter().map(|gvk| &*gvk.kind).collect();
        (!kinds.is_empty()).then(|| format!("the hub's objects cannot be read: {}", kinds.join(", ")))
    }

    /// The templates that could not be read, by their titles: their copies are as they were only because nothing was planned.
    fn unread_templates(report: &Report) -> BTreeSet<&str> {
        let notes = report.notes.iter().filter(|note| note.reason == "Unreadable");
        notes.map(|note| note.object.as_str()).collect()
    }

    /// The outcomes on a member; an error if it was not read.
    fn outcomes_of<'a>(
        report: &'a Report,
        cluster: &Str,
    ) -> Result<BTreeMap<&'a ResourceId, &'a Outcome>, &'a String> {
        if let Some(why) = report.unread.get(cluster) {
            return Err(why);
        }
        let place = Place::Member(cluster.clone());
        let outcomes = report.outcomes.iter().filter(|outcome| outcome.place == place);
        Ok(outcomes.map(|outcome| (&outcome.object, outcome)).collect())
    }

    fn of_outcome(outcome: Option<&Outcome>) -> Next {
        let Some(outcome) = outcome else {
            return Next::Unknown("no plan shows it".to_owned());
        };
        match (outcome.fate, &outcome.before, &outcome.after) {
            (Fate::Unchanged, ..) => Next::Metadata,
            (Fate::Changed, Some(before), Some(after)) => next(before, after),
            (Fate::Removed | Fate::Released, ..) => Next::Removal,
            (fate, ..) => Next::Unknown(format!("{}: {}", fate.word(), outcome.message)),
        }
    }

    #[cfg(test)]
    mod tests {
        use entourage_simulation::Note;
        use serde_json::{Value, json};

        use super::*;

        fn outcome(fate: Fate, before: Option<Value>, after: Option<Value>) -> Outcome {
            Outcome {
                place: Place::Member("m1".into()),
                object: ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", "conf"),
                fate,
                message: "why".to_owned(),
                before,
                after,
            }
        }

        #[test]
        fn what_is_not_known_is_not_taken_for_nothing() {
            let config =
                |value: &str| Some(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": value}}));
            for (outcome, expected) in [
                (None, Next::Unknown("no plan shows it".into())),
                (Some(outcome(Fate::Unchanged, None, None)), Next::Metadata),
                (
                    Some(outcome(Fate::Changed, config("a"), config("b"))),
                    Next::Content("data".into()),
                ),
                (
                    Some(outcome(Fate::Changed, None, None)),
                    Next::Unknown("changed: why".into()),
                ),
                (Some(outcome(Fate::Removed, config("a"), None)), Next::Removal),
                (
                    Some(outcome(Fate::Refused, None, None)),
                    Next::Unknown("refused: why".into()),
                ),
                (
                    Some(outcome(Fate::Created, None, config("a"))),
                    Next::Unknown("created: why".into()),
                ),
            ] {
                assert_eq!(of_outcome(outcome.as_ref()), expected, "{outcome:?}");
            }
        }

        #[test]
        fn a_plan_that_was_given_up_or_not_read_shows_nothing() {
            let unread = BTreeSet::from([Gvk::new("policy.karmada.io/v1alpha1", "OverridePolicy")]);
            for (is_settled, unread, says) in [
                (true, BTreeSet::new(), None),
                (false, BTreeSet::new(), Some("did not settle")),
                (true, unread, Some("cannot be read: OverridePolicy")),
            ] {
                let doubt = doubt(is_settled, &unread);
                assert_eq!(doubt.is_some(), says.is_some(), "{doubt:?}");
                assert!(doubt.unwrap_or_default().contains(says.unwrap_or_default()));
            }
            let note = |object: &str, reason: &str| Note {
                object: object.to_owned(),
                condition: "Propagated".to_owned(),
                reason: reason.to_owned(),
                message: String::new(),
            };
            let report = Report {
                notes: vec![
                    note("Secret shop/login", "Unreadable"),
                    note("Deployment shop/web", "NotScheduled"),
                ],
                ..Report::default()
            };
            assert_eq!(unread_templates(&report), BTreeSet::from(["Secret shop/login"]));
        }

        #[test]
        fn a_member_that_was_not_read_has_no_outcomes() {
            let mut report = Report {
                outcomes: vec![outcome(Fate::Unchanged, None, None)],
                ..Report::default()
            };
            assert_eq!(outcomes_of(&report, &"m1".into()).map(|all| all.len()), Ok(1));
            assert_eq!(outcomes_of(&report, &"m2".into()).map(|all| all.len()), Ok(0));
            report.unread.insert("m1".into(), "no response".to_owned());
            assert!(outcomes_of(&report, &"m1".into()).is_err());
        }
    }
}
