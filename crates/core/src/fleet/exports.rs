//! The Services that members export: whether the copy of a ServiceExport is on a member, and where it is scheduled to.

use entourage_api::{
    keys::{annotation, label},
    names,
};

use crate::{
    fleet::{
        Fleet,
        identities::objection,
        wanted::{is_coming, wants},
    },
    kinds,
    object::{Gvk, NamespacedName, ResourceId, Str},
    observation::Watch,
};

/// The state of the export of a Service by a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Export {
    /// The copy of the ServiceExport is there, as last observed.
    Yes,
    /// It is proven not to be there.
    No,
    /// It was not observed, and the copies of the member are not synced.
    Unknown,
}

/// The longest name of a Service, and the longest value of the label that names it.
pub(crate) const LONGEST_NAME: usize = 63;

/// True if there may be a Service `derived-<name>`, and a label that names it. Cost: O(1).
pub(crate) const fn is_derivable(name: &str) -> bool {
    names::DERIVED_PREFIX.len() + name.len() <= LONGEST_NAME
}

/// The ServiceExport of a Service.
pub(crate) fn export_of(service: &NamespacedName) -> ResourceId {
    ResourceId::new(kinds::service_export(), &service.namespace, &service.name)
}

/// The template that an EndpointSlice of the hub is.
pub(crate) fn slice_id(fleet: &Fleet, name: &NamespacedName) -> ResourceId {
    ResourceId::new(
        fleet.watched(&kinds::endpoint_slice()),
        &name.namespace,
        &name.name,
    )
}

/// True if a kind is that of ServiceExports. Cost: O(1).
pub(crate) fn is_export(gvk: &Gvk) -> bool {
    *gvk.kind == *"ServiceExport" && *gvk == kinds::service_export()
}

/// The state of the export of a Service by a member. That the managed copy of its ServiceExport is not there proves nothing while one is to be there
/// ([`is_expected`]), or while an object with this hub's metadata is there that is not managed, or another
/// physical cluster responds. Cost: O(log resources); that of
/// [`is_coming`] while there is no copy.
pub(crate) fn export(fleet: &Fleet, cluster: &Str, service: &NamespacedName) -> Export {
    let id = export_of(service);
    let copy = fleet
        .resource(&id)
        .and_then(|resource| resource.copies.get(cluster));
    if copy.is_some_and(|copy| copy.live.is_some()) {
        return Export::Yes;
    }
    if objection(fleet, cluster).is_some() {
        return Export::Unknown;
    }
    let is_there = copy.is_some_and(|copy| copy.copied.is_some());
    let is_proven = match fleet
        .cache
        .watches
        .is_no_such_kind(&fleet.copies(cluster, &id.gvk))
    {
        true => true,
        false => fleet.copies_known(cluster, &id.gvk) && !is_there && !is_expected(fleet, cluster, service),
    };
    match is_proven {
        true => Export::No,
        false => Export::Unknown,
    }
}

/// True if the copy of the ServiceExport is to be on a member, or that is not known: it is scheduled there, or its binding is missing and
/// about to be created. False if it was evicted, or its propagation ended. Cost: O(clusters); that of [`is_coming`] without a binding.
pub(crate) fn is_expected(fleet: &Fleet, cluster: &Str, service: &NamespacedName) -> bool {
    let id = export_of(service);
    let is_listed = fleet.cache.watches.is_synced(&fleet.templates(&id.gvk));
    let Some(resource) = fleet.resource(&id) else {
        return !is_listed;
    };
    if is_listed && resource.standing().is_none() {
        return false;
    }
    match resource.binding {
        Some(_) => wants(fleet, &id, resource, cluster),
        None => !is_listed || is_coming(fleet, &id),
    }
}

/// True if an object is an EndpointSlice that stands for one of this member: its copy is not wanted there. Cost: O(log resources) for
/// an EndpointSlice, else O(1).
pub(crate) fn is_provided_by(fleet: &Fleet, id: &ResourceId, cluster: &str) -> bool {
    *id.gvk.kind == *"EndpointSlice" && provider(fleet, id).is_some_and(|provider| *provider == *cluster)
}

/// The member whose EndpointSlice an EndpointSlice of the hub stands for.
pub(crate) fn provider<'a>(fleet: &'a Fleet, id: &ResourceId) -> Option<&'a str> {
    if id.gvk != kinds::endpoint_slice() {
        return None;
    }
    let template = fleet.resource(id)?.template.as_ref()?;
    template.meta.annotation(annotation::PROVISION_CLUSTER)
}

/// The Service that such an EndpointSlice belongs to on its member.
pub(crate) fn exported(fleet: &Fleet, id: &ResourceId) -> Option<NamespacedName> {
    let template = fleet.resource(id)?.template.as_ref()?;
    let derived = template.meta.label(label::SERVICE_NAME)?;
    let name = derived.strip_prefix(names::DERIVED_PREFIX)?;
    Some(NamespacedName::new(&id.namespace, name))
}

impl Fleet {
    /// The Services whose endpoints are watched on a member. Cost: O(those).
    pub(crate) fn exported_by(&self, cluster: &Str) -> Vec<NamespacedName> {
        let services = self.endpoints_of(cluster).filter_map(|watch| match watch {
            Watch::Endpoints(_, service) => Some(service.clone()),
            _ => None,
        });
        services.collect()
    }

    /// The watches of endpoints on a member. Cost: O(log watches + those).
    pub(crate) fn endpoints_of(&self, cluster: &Str) -> impl Iterator<Item = &Watch> {
        let first = Watch::Endpoints(cluster.clone(), NamespacedName::new("", ""));
        let from = self.cache.watches.demanded().range(first..);
        from.take_while(move |watch| matches!(watch, Watch::Endpoints(of, _) if of == cluster))
    }
}
