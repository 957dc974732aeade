//! The client certificates of agents: which CertificateSigningRequests are those of agents, the right that approves each, and the
//! time at which a certificate is renewed.
//!
//! The contract is Karmada's: an agent is the user [`names::agent_user`] of the group [`names::AGENTS`], signed by
//! [`SIGNER`]. Who may have such a certificate is decided by the hub's authorizer: the sender of a request must have the right to
//! create the subresource [`Right::subresource`] of `certificatesigningrequests`, for the name of the cluster. Karmada asks for that
//! right without a name, so that one who may register a cluster gets the certificate, and with it the Secrets, of every other; a
//! grant for one name is enough here, and one for all names still counts.

use entourage_api::names;

use crate::object::Time;

/// The signer of client certificates of an API server.
pub const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// The uses that a certificate of an agent may have. The last one is optional.
const USAGES: [&str; 3] = ["digital signature", "client auth", "key encipherment"];

/// A CertificateSigningRequest, with the content of its PKCS#10 request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SigningRequest {
    /// `spec.username`: its sender.
    pub username: String,
    /// `spec.signerName`.
    pub signer: String,
    /// `spec.usages`.
    pub usages: Vec<String>,
    /// The common names of the subject.
    pub common_names: Vec<String>,
    /// The organizations of the subject.
    pub organizations: Vec<String>,
    /// True if it asks for anything else: further attributes of the subject, alternative names, other extensions.
    pub has_more: bool,
    /// True if it is approved, denied, failed or signed.
    pub is_settled: bool,
}

/// A right by which a request is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// An agent renews its own certificate.
    Renewal,
    /// A cluster is registered.
    Registration,
}

impl Right {
    /// The subresource of `certificatesigningrequests` that the sender must be permitted to create.
    #[must_use]
    pub const fn subresource(self) -> &'static str {
        match self {
            Self::Renewal => "selfclusteragent",
            Self::Registration => "clusteragent",
        }
    }
}

/// The cluster whose agent the certificate would be for, and the rights of which its sender must have one; `None` if nothing is to
/// be done about the request.
///
/// O(1).
#[must_use]
pub fn review(request: &SigningRequest) -> Option<(&str, &'static [Right])> {
    let [user] = &request.common_names[..] else {
        return None;
    };
    let cluster = names::cluster_of_agent(user)?;
    let is_of_agent = !request.is_settled
        && request.signer == SIGNER
        && request.organizations == [names::AGENTS]
        && !request.has_more
        && has_usages(&request.usages);
    let rights: &[Right] = if request.username == *user {
        &[Right::Renewal, Right::Registration]
    } else {
        &[Right::Registration]
    };
    is_of_agent.then_some((cluster, rights))
}

fn has_usages(usages: &[String]) -> bool {
    let has = |wanted: &str| usages.iter().any(|usage| usage == wanted);
    USAGES[..2].iter().all(|wanted| has(wanted))
        && usages.iter().all(|usage| USAGES.contains(&usage.as_str()))
}

/// The time at which a certificate that is valid from `start` to `end` is renewed: when no more than this share of its time is left.
#[must_use]
pub fn renewed_at(start: Time, end: Time, remaining: f64) -> Time {
    // Years in milliseconds are exact in 53 bits.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "see above"
    )]
    let left = ((end.0 - start.0) as f64 * remaining.clamp(0.0, 1.0)) as i64;
    Time(end.0 - left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> SigningRequest {
        SigningRequest {
            username: "system:bootstrap:abcdef".into(),
            signer: SIGNER.into(),
            usages: vec!["client auth".into(), "digital signature".into()],
            common_names: vec!["system:karmada:agent:edge1".into()],
            organizations: vec!["system:karmada:agents".into()],
            has_more: false,
            is_settled: false,
        }
    }

    #[test]
    fn a_request_of_an_agent_is_reviewed_for_its_cluster() {
        let first = request();
        assert_eq!(review(&first), Some(("edge1", &[Right::Registration][..])));
        let mut own = request();
        own.username.clone_from(&own.common_names[0]);
        own.usages.push("key encipherment".into());
        let rights = &[Right::Renewal, Right::Registration][..];
        assert_eq!(review(&own), Some(("edge1", rights)));
        // The user as which karmadactl grants rights is that of a cluster whose name no cluster has.
        let mut generator = request();
        generator.common_names = vec!["system:karmada:agent:rbac-generator".into()];
        assert_eq!(
            review(&generator),
            Some(("rbac-generator", &[Right::Registration][..]))
        );
        // Another agent's certificate is no renewal.
        own.username = "system:karmada:agent:edge2".into();
        assert_eq!(review(&own), Some(("edge1", &[Right::Registration][..])));
    }

    #[test]
    fn every_other_request_is_left_alone() {
        type Change = fn(&mut SigningRequest);
        let changes: [(&str, Change); 14] = [
            ("settled", |it| it.is_settled = true),
            ("other signer", |it| {
                it.signer = "kubernetes.io/kube-apiserver-client-kubelet".into()
            }),
            ("more", |it| it.has_more = true),
            ("no name", |it| it.common_names.clear()),
            ("two names", |it| it.common_names.push("system:admin".into())),
            ("no agent", |it| it.common_names = vec!["system:admin".into()]),
            ("no cluster", |it| {
                it.common_names = vec!["system:karmada:agent:".into()]
            }),
            ("not a name", |it| {
                it.common_names = vec!["system:karmada:agent:a/b".into()]
            }),
            ("no group", |it| it.organizations.clear()),
            ("another group", |it| {
                it.organizations = vec!["system:masters".into()]
            }),
            ("two groups", |it| it.organizations.push("system:masters".into())),
            ("no client", |it| it.usages = vec!["digital signature".into()]),
            ("no signature", |it| it.usages = vec!["client auth".into()]),
            ("server", |it| it.usages.push("server auth".into())),
        ];
        for (what, change) in changes {
            let mut request = request();
            change(&mut request);
            assert_eq!(review(&request), None, "{what}");
        }
    }

    #[test]
    fn a_certificate_is_renewed_when_this_share_of_its_time_is_left() {
        for (remaining, at) in [
            (0.2, 900),
            (0.5, 600),
            (0.0, 1100),
            (1.0, 100),
            (7.0, 100),
            (-1.0, 1100),
        ] {
            assert_eq!(
                renewed_at(Time(100), Time(1100), remaining),
                Time(at),
                "{remaining}"
            );
        }
    }
}
