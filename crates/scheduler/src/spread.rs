//! The selection among the clusters that fit, so that every spread constraint holds.
//!
//! A constraint sorts the clusters into groups (each cluster by itself, or by region, zone, provider or a label) and limits the
//! number of groups used. As many groups as the limits allow are used, then as many clusters. Among several such selections the
//! one that keeps more of the current targets is taken, then the one with fewer clusters of overflow groups, then the one with
//! the heavier clusters, then the one with the smaller names. Source: Karmada reference 1.3 (Select); zones, providers and labels are ours.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use entourage_api::policy::{SpreadConstraint, SpreadField};

use crate::{affinity, request::Candidate};

/// The most attempts of a search. Constraints that contradict each other must not cost more than this.
const LONGEST_SEARCH: u32 = 1_000;

/// A cluster that fits, with its ranking.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked<'a> {
    /// The cluster.
    pub(super) candidate: &'a Candidate<'a>,
    /// True if it is a present target.
    pub(super) current: bool,
    /// Its tier: see [`affinity::tier`].
    pub(super) tier: usize,
    /// Its static weight; the same for all if weights do not apply.
    pub(super) weight: i64,
}

/// Selects clusters in the order of their ranking. A current selection is selected again from the same clusters.
///
/// # Errors
/// The constraint that cannot hold, and the remedy.
///
/// Cost: O(clusters × clusters taken × constraints) with constraints, else O(clusters).
pub(super) fn choose<'a>(
    constraints: &[SpreadConstraint],
    mut ranked: Vec<Ranked<'a>>,
) -> Result<Vec<Ranked<'a>>, String> {
    ranked.sort_by(|one, other| {
        (other.current, one.tier, other.weight, one.candidate.name).cmp(&(
            one.current,
            other.tier,
            one.weight,
            other.candidate.name,
        ))
    });
    let axes = axes(constraints, &ranked);
    if let Some(axis) = axes.iter().find(|axis| axis.groups < axis.min) {
        return Err(axis.too_few());
    }
    let mut choice = Choice::none(&axes, ranked.len());
    fill(&axes, &ranked, &mut choice);
    if choice.lacking(&axes).next().is_some() {
        let mut steps = LONGEST_SEARCH;
        let (none, all) = (Choice::none(&axes, ranked.len()), vec![true; ranked.len()]);
        let found = search(&axes, &none, &all, &mut steps);
        choice = found.ok_or_else(|| no_choice(ranked.len(), steps))?;
        fill(&axes, &ranked, &mut choice);
    }
    let taken = ranked.into_iter().zip(choice.taken);
    Ok(taken.filter(|(_, taken)| *taken).map(|(each, _)| each).collect())
}

/// Returns true for each selected cluster that needs a replica so that every lower bound holds among the clusters with
/// replicas; false for all if the shares already ensure that.
///
/// `chosen` is in the order of [`choose`]; `shares` has the number of `seats` that each would get.
///
/// # Errors
/// The constraint that requires more groups than the replicas can cover.
///
/// Cost: that of [`choose`].
pub(super) fn reserved(
    constraints: &[SpreadConstraint],
    chosen: &[Ranked<'_>],
    shares: &[i64],
    seats: i64,
) -> Result<Vec<bool>, String> {
    let mut axes = axes(constraints, chosen);
    let mut choice = Choice::none(&axes, chosen.len());
    for place in (0..chosen.len()).filter(|place| shares[*place] > 0) {
        choice.take(&axes, place);
    }
    let Some(lacking) = choice.lacking(&axes).next() else {
        return Ok(vec![false; chosen.len()]);
    };
    let by_seat = SpreadConstraint {
        max_groups: seats,
        ..SpreadConstraint::default()
    };
    axes.push(Axis::of(axes.len(), &by_seat, chosen));
    let mut steps = LONGEST_SEARCH;
    let (none, all) = (Choice::none(&axes, chosen.len()), vec![true; chosen.len()]);
    let found = search(&axes, &none, &all, &mut steps);
    found.map(|choice| choice.taken).ok_or_else(|| {
        let Axis {
            position, noun, min, ..
        } = &axes[lacking];
        let s = if seats == 1 { "" } else { "s" };
        format!(
            "placement.spreadConstraints[{position}].minGroups asks for {min} {noun}, each with a replica, and there is \
             no way to do that with {seats} replica{s}: lower it, or scale up"
        )
    })
}

/// The message for a search that found nothing, with the number of steps left.
fn no_choice(clusters: usize, steps: u32) -> String {
    let found = if steps > 0 {
        format!("no choice among the {clusters} clusters that fit meets")
    } else {
        format!(
            "in {LONGEST_SEARCH} attempts no choice among the {clusters} clusters that fit was found that meets"
        )
    };
    format!(
        "{found} all of placement.spreadConstraints: raise maxGroups, lower minGroups, or let more clusters fit"
    )
}

fn axes(constraints: &[SpreadConstraint], ranked: &[Ranked<'_>]) -> Vec<Axis> {
    let constraints = constraints.iter().enumerate();
    constraints
        .map(|(position, constraint)| Axis::of(position, constraint, ranked))
        .collect()
}

/// Succeeds if the constraints are valid.
pub(super) fn check(constraints: &[SpreadConstraint]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (position, constraint) in constraints.iter().enumerate() {
        let at = |why: &str| Err(format!("placement.spreadConstraints[{position}]: {why}"));
        if constraint.spread_by_field.is_some() && !constraint.spread_by_label.is_empty() {
            return at("it has both spreadByField and spreadByLabel: give one of them");
        }
        if constraint.min_groups < 0 || constraint.max_groups < 0 {
            return at("minGroups and maxGroups cannot be negative");
        }
        if constraint.max_groups != 0 && constraint.max_groups < constraint.min_groups {
            return at(&format!(
                "maxGroups is {} and minGroups {}: raise the one or lower the other",
                constraint.max_groups, constraint.min_groups
            ));
        }
        if !seen.insert((field(constraint), &constraint.spread_by_label)) {
            return at("an earlier constraint spreads by the same: put them together");
        }
    }
    Ok(())
}

/// The property that a cluster lacks to belong to a group of the constraint; `None` if it belongs to one.
pub(super) fn lacks(constraint: &SpreadConstraint, candidate: &Candidate<'_>) -> Option<String> {
    if !groups(constraint, candidate).is_empty() {
        return None;
    }
    Some(match field(constraint) {
        Some(field) => noun(field).0.into(),
        None => format!("label {}", constraint.spread_by_label),
    })
}

/// The groups of a cluster. Several only for zones: a cluster that spans two is in both.
pub(super) fn groups<'a>(constraint: &'a SpreadConstraint, candidate: &Candidate<'a>) -> Vec<&'a str> {
    let spec = &candidate.cluster.spec;
    let single = |value: &'a str| {
        if value.is_empty() { Vec::new() } else { vec![value] }
    };
    match field(constraint) {
        Some(SpreadField::Cluster) => vec![candidate.name],
        Some(SpreadField::Region) => single(&spec.region),
        Some(SpreadField::Provider) => single(&spec.provider),
        Some(SpreadField::Zone) => affinity::zones(candidate.cluster)
            .iter()
            .map(String::as_str)
            .filter(|zone| !zone.is_empty())
            .collect(),
        None => candidate
            .labels
            .get(constraint.spread_by_label.as_str())
            .map(|value| vec![&**value])
            .unwrap_or_default(),
    }
}

/// The field that a constraint spreads by; `None` for a label. With neither it is the cluster (Karmada reference 6.1).
pub(super) fn field(constraint: &SpreadConstraint) -> Option<SpreadField> {
    match constraint.spread_by_field {
        None if !constraint.spread_by_label.is_empty() => None,
        field => Some(field.unwrap_or(SpreadField::Cluster)),
    }
}

/// The name of a field's groups, singular and plural.
fn noun(field: SpreadField) -> (&'static str, &'static str) {
    match field {
        SpreadField::Cluster => ("cluster", "clusters"),
        SpreadField::Region => ("region", "regions"),
        SpreadField::Zone => ("zone", "zones"),
        SpreadField::Provider => ("provider", "providers"),
    }
}

/// One constraint, applied to the clusters that fit.
struct Axis {
    /// Its position in the policy.
    position: usize,
    /// The name of its groups.
    noun: String,
    /// True if each cluster is a group of its own.
    is_by_cluster: bool,
    min: usize,
    max: usize,
    /// The number of groups.
    groups: usize,
    /// The groups of each cluster, by number.
    of: Vec<Vec<usize>>,
}

impl Axis {
    fn of(position: usize, constraint: &SpreadConstraint, ranked: &[Ranked<'_>]) -> Self {
        let field = field(constraint);
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let of = ranked.iter().map(|each| {
            let mut all: Vec<usize> = groups(constraint, each.candidate)
                .into_iter()
                .map(|group| {
                    let next = numbers.len();
                    *numbers.entry(group).or_insert(next)
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        });
        let of: Vec<Vec<usize>> = of.collect();
        let bound = |groups: i64| usize::try_from(groups).unwrap_or(0);
        Self {
            position,
            noun: match field {
                Some(field) => noun(field).1.into(),
                None => format!("values of the label {}", constraint.spread_by_label),
            },
            is_by_cluster: field == Some(SpreadField::Cluster),
            min: bound(constraint.min_groups).max(1),
            max: match bound(constraint.max_groups) {
                0 => usize::MAX,
                max => max,
            },
            groups: numbers.len(),
            of,
        }
    }

    fn too_few(&self) -> String {
        let Self {
            position,
            noun,
            min,
            groups,
            ..
        } = self;
        let found = if self.is_by_cluster {
            format!("{groups} fit")
        } else {
            format!("the clusters that fit have {groups}")
        };
        format!(
            "placement.spreadConstraints[{position}].minGroups asks for {min} {noun} and {found}: lower it, or let more \
             fit"
        )
    }
}

/// The clusters taken so far, by their position in the ranking, and their groups.
#[derive(Clone)]
struct Choice {
    taken: Vec<bool>,
    used: Vec<Vec<bool>>,
    counts: Vec<usize>,
}

impl Choice {
    fn none(axes: &[Axis], clusters: usize) -> Self {
        Self {
            taken: vec![false; clusters],
            used: axes.iter().map(|axis| vec![false; axis.groups]).collect(),
            counts: vec![0; axes.len()],
        }
    }

    /// The number of groups of an axis that the cluster would add.
    fn opens(&self, axes: &[Axis], axis: usize, cluster: usize) -> usize {
        let groups = &axes[axis].of[cluster];
        groups.iter().filter(|group| !self.used[axis][**group]).count()
    }

    /// The number of axes to which the cluster would add a group; `None` if it is taken or would exceed an upper bound.
    fn gain(&self, axes: &[Axis], cluster: usize) -> Option<usize> {
        if self.taken[cluster] {
            return None;
        }
        let mut gain = 0;
        for (axis, bounds) in axes.iter().enumerate() {
            let opens = self.opens(axes, axis, cluster);
            if self.counts[axis] + opens > bounds.max {
                return None;
            }
            gain += usize::from(opens > 0);
        }
        Some(gain)
    }

    fn take(&mut self, axes: &[Axis], cluster: usize) {
        self.taken[cluster] = true;
        for (axis, bounds) in axes.iter().enumerate() {
            self.counts[axis] += self.opens(axes, axis, cluster);
            for group in &bounds.of[cluster] {
                self.used[axis][*group] = true;
            }
        }
    }

    /// The number of clusters that may still be taken.
    fn room(&self, axes: &[Axis]) -> usize {
        let by_cluster = axes
            .iter()
            .zip(&self.counts)
            .filter(|(axis, _)| axis.is_by_cluster);
        by_cluster
            .map(|(axis, count)| axis.max.saturating_sub(*count))
            .min()
            .unwrap_or(usize::MAX)
    }

    /// The least number of further clusters that an axis requires: each adds the most groups possible.
    fn needed(&self, axes: &[Axis], axis: usize) -> usize {
        let most = axes[axis].of.iter().map(Vec::len).max().unwrap_or(0);
        let lacking = axes[axis].min.saturating_sub(self.counts[axis]);
        lacking.div_ceil(most.max(1))
    }

    /// The constraints that require more groups.
    fn lacking(&self, axes: &[Axis]) -> impl Iterator<Item = usize> {
        let counts = axes.iter().zip(&self.counts).enumerate();
        counts
            .filter(|(_, (axis, count))| **count < axis.min)
            .map(|(position, _)| position)
    }
}

/// Takes clusters while the upper bounds allow it: current ones before others, those that open groups before others.
///
/// A cluster that exceeds a bound once always does, and at the end no more can be taken: therefore a current selection is
/// selected again, complete and without an addition.
fn fill(axes: &[Axis], ranked: &[Ranked<'_>], choice: &mut Choice) {
    if axes.iter().all(|axis| axis.is_by_cluster) {
        let room = axes.iter().map(|axis| axis.max).min().unwrap_or(usize::MAX);
        let mut room = room.saturating_sub(choice.taken.iter().filter(|taken| **taken).count());
        for cluster in 0..ranked.len() {
            if room > 0 && !choice.taken[cluster] {
                choice.take(axes, cluster);
                room -= 1;
            }
        }
        return;
    }
    let current = ranked.iter().take_while(|each| each.current).count();
    for end in [current, ranked.len()] {
        let mut open: Vec<usize> = (0..end).collect();
        loop {
            let mut best: Option<(usize, usize)> = None;
            open.retain(|cluster| {
                let gain = choice.gain(axes, *cluster);
                if let Some(gain) = gain
                    && best.is_none_or(|(most, _)| gain > most)
                {
                    best = Some((gain, *cluster));
                }
                gain.is_some()
            });
            let Some((_, cluster)) = best else { break };
            choice.take(axes, cluster);
        }
    }
}

/// Searches a choice that meets every lower bound within the upper ones: clusters that open most of the missing groups first,
/// then in the order of the ranking. It finds one if there is one and the steps suffice: for any lower bound that is not met,
/// each valid choice has a cluster that opens one of its missing groups. The search branches on the bound that the fewest
/// clusters can help. `open` are the clusters that may still be taken: once all choices with a cluster are visited, the others
/// are searched without it, so that no choice is visited twice.
fn search(axes: &[Axis], choice: &Choice, open: &[bool], steps: &mut u32) -> Option<Choice> {
    let lacking: Vec<usize> = choice.lacking(axes).collect();
    if lacking.is_empty() {
        return Some(choice.clone());
    }
    *steps = steps.checked_sub(1)?;
    let room = choice.room(axes);
    if lacking.iter().any(|axis| room < choice.needed(axes, *axis)) {
        return None;
    }
    let possible: Vec<usize> = (0..choice.taken.len())
        .filter(|cluster| open[*cluster] && choice.gain(axes, *cluster).is_some())
        .collect();
    let helpers = |axis: usize| {
        let all = possible.iter().copied();
        all.filter(move |cluster| choice.opens(axes, axis, *cluster) > 0)
    };
    if lacking.iter().any(|axis| {
        let groups = helpers(*axis).flat_map(|cluster| &axes[*axis].of[cluster]);
        let reachable: BTreeSet<&usize> = groups.filter(|group| !choice.used[*axis][**group]).collect();
        choice.counts[*axis] + reachable.len() < axes[*axis].min
    }) {
        return None;
    }
    let axis = lacking
        .iter()
        .copied()
        .min_by_key(|axis| helpers(*axis).count())?;
    let help = |cluster: &usize| -> usize {
        let of = |axis: &usize| {
            let missing = axes[*axis].min - choice.counts[*axis];
            choice.opens(axes, *axis, *cluster).min(missing)
        };
        lacking.iter().map(of).sum()
    };
    let mut candidates: Vec<usize> = helpers(axis).collect();
    candidates.sort_by_key(|cluster| Reverse(help(cluster)));
    // Clusters in the same groups are equivalent: only one of them is tried.
    let mut tried: BTreeSet<Vec<&[usize]>> = BTreeSet::new();
    let mut open = open.to_vec();
    for cluster in candidates {
        if *steps == 0 {
            return None;
        }
        let kind = axes.iter().filter(|axis| !axis.is_by_cluster);
        if tried.insert(kind.map(|axis| axis.of[cluster].as_slice()).collect()) {
            let mut next = choice.clone();
            next.take(axes, cluster);
            if let Some(found) = search(axes, &next, &open, steps) {
                return Some(found);
            }
        }
        open[cluster] = false;
    }
    None
}
