//! The address of a Service reference. Source: Karmada reference 3.4 (ClusterIP, ExternalName, headless refused).

use serde_json::Value;

/// The host to connect to for a Service of the hub; the port is the reference's. The certificate must be for the Service's own
/// name.
///
/// # Errors
/// The reason why it has no address, and what to do.
pub fn host(service: &Value, port: u16) -> Result<&str, String> {
    let spec = &service["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    if text("type") == "ExternalName" {
        return match text("externalName") {
            "" => Err("the Service has no externalName; give it one".into()),
            name => Ok(name),
        };
    }
    let has_port = |each: &Value| each["port"].as_u64() == Some(u64::from(port));
    if !spec["ports"]
        .as_array()
        .is_some_and(|ports| ports.iter().any(has_port))
    {
        return Err(format!(
            "the Service has no port {port}; name one of its ports in the reference"
        ));
    }
    match text("clusterIP") {
        "None" => {
            Err("the Service is headless: it has no address of its own; give it one, or use a url".into())
        }
        "" => Err("the Service has no clusterIP yet; wait for it, or use a url".into()),
        address => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_leads_to_its_address_or_name_and_a_headless_one_nowhere() {
        let ports = json!([{"port": 80}, {"port": 443, "targetPort": 8443}]);
        let cases = [
            (
                json!({"clusterIP": "10.0.0.7", "ports": ports}),
                443,
                Ok("10.0.0.7"),
            ),
            (
                json!({"type": "NodePort", "clusterIP": "fd00::7", "ports": ports}),
                80,
                Ok("fd00::7"),
            ),
            (
                json!({"type": "LoadBalancer", "clusterIP": "10.0.0.7", "ports": ports}),
                444,
                Err("no port 444"),
            ),
            (json!({"clusterIP": "None", "ports": ports}), 443, Err("headless")),
            (json!({"ports": ports}), 443, Err("no clusterIP")),
            (
                json!({"type": "ExternalName", "externalName": "hooks.example.com"}),
                443,
                Ok("hooks.example.com"),
            ),
            (json!({"type": "ExternalName"}), 443, Err("no externalName")),
            (json!(null), 443, Err("no port")),
        ];
        for (spec, port, wanted) in cases {
            let service = json!({ "spec": spec });
            match (host(&service, port), wanted) {
                (Ok(got), Ok(wanted)) => assert_eq!(got, wanted, "{service}"),
                (Err(got), Err(wanted)) => assert!(got.contains(wanted), "{service}: {got}"),
                (got, wanted) => panic!("{service}: {got:?}, not {wanted:?}"),
            }
        }
    }
}
