//! The address of the estimator of a member: that of its Service.
//!
//! Source: Karmada's `pkg/estimator/client/service.go`. The Service is read on the hub; where it is a virtual control plane, the
//! Service is in the cluster that this process runs in, and only its name is known.

use serde_json::Value;

/// The host and port of an estimator by its name, where the hub has no Service of it.
pub(super) fn by_name(namespace: &str, service: &str, port: u16) -> String {
    format!("{service}.{namespace}.svc:{port}")
}

/// The host and port that a Service of the hub stands for.
///
/// # Errors
/// The reason why it stands for none, and what to do.
pub(super) fn of_service(service: &Value, port: u16) -> Result<String, String> {
    let spec = &service["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    // The address of another kind of Service is one in the network of the hub, where no pods run.
    if text("type") != "ExternalName" {
        return Err(
            "it is not of type ExternalName; name the host of the estimator in spec.externalName".into(),
        );
    }
    let host = match text("externalName") {
        "" => return Err("it has no externalName; give it one".into()),
        host if host.contains(':') => format!("[{host}]"),
        host => host.to_owned(),
    };
    let mut ports = spec["ports"].as_array().into_iter().flatten();
    let Some(found) = ports.find(|each| each["port"].as_u64() == Some(u64::from(port))) else {
        return Err(format!(
            "it has no port {port}; add one with the targetPort of the estimator"
        ));
    };
    let target = match &found["targetPort"] {
        Value::Null => Some(u64::from(port)),
        target => target.as_u64(),
    };
    match target.and_then(|target| u16::try_from(target).ok()) {
        Some(target) if target > 0 => Ok(format!("{host}:{target}")),
        _ => Err(format!(
            "the targetPort of its port {port} is not a number; an ExternalName has no pods to look a name up in"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_of_the_hub_stands_for_its_external_name() {
        let of =
            |ports: Value| json!({"spec": {"type": "ExternalName", "externalName": "host", "ports": ports}});
        for (service, want) in [
            (
                of(json!([{"port": 10_352, "targetPort": 30_001}])),
                Ok("host:30001"),
            ),
            (of(json!([{"port": 1}, {"port": 10_352}])), Ok("host:10352")),
            (of(json!([])), Err("it has no port 10352")),
            (
                of(json!([{"port": 10_352, "targetPort": "grpc"}])),
                Err("the targetPort"),
            ),
            (
                of(json!([{"port": 10_352, "targetPort": 0}])),
                Err("the targetPort"),
            ),
            (
                of(json!([{"port": 10_352, "targetPort": 70_000}])),
                Err("the targetPort"),
            ),
            (
                json!({"spec": {"type": "ExternalName", "externalName": "fd00::1", "ports": [{"port": 10_352}]}}),
                Ok("[fd00::1]:10352"),
            ),
            (
                json!({"spec": {"type": "ExternalName"}}),
                Err("it has no externalName"),
            ),
            (
                json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 10_352}]}}),
                Err("it is not of type"),
            ),
        ] {
            match (of_service(&service, 10_352), want) {
                (Ok(found), Ok(want)) => assert_eq!(found, want, "{service}"),
                (Err(found), Err(want)) => assert!(found.starts_with(want), "{service}: {found}"),
                (found, _) => panic!("{service}: {found:?}"),
            }
        }
        let name = by_name("karmada-system", "karmada-scheduler-estimator-m1", 10_352);
        assert_eq!(name, "karmada-scheduler-estimator-m1.karmada-system.svc:10352");
    }
}
