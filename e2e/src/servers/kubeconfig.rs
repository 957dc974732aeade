//! The kubeconfig of a cluster: one cluster, one user with a token, one context, self-contained.

use k8s_openapi::ByteString;

/// The text of a kubeconfig whose only context has the name of the cluster.
pub(super) fn render(cluster: &str, endpoint: &str, ca_pem: &str, token: &str) -> String {
    // ByteString serialises to base64, which is what the field holds.
    let authority = serde_json::json!(ByteString(ca_pem.as_bytes().to_vec()));
    format!(
        "apiVersion: v1
kind: Config
current-context: {cluster}
clusters:
- name: {cluster}
  cluster:
    server: {endpoint}
    certificate-authority-data: {authority}
users:
- name: admin
  user:
    token: {token}
contexts:
- name: {cluster}
  context:
    cluster: {cluster}
    user: admin
"
    )
}

#[cfg(test)]
mod tests {
    use kube::config::Kubeconfig;

    use super::*;

    #[test]
    fn clients_read_what_is_written() {
        let text = render("member1", "https://127.0.0.1:6443", "a PEM", "a-token");
        let config = Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(config.current_context.as_deref(), Some("member1"));
        let cluster = config.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("YSBQRU0="));
        assert!(config.auth_infos[0].auth_info.as_ref().unwrap().token.is_some());
    }
}
