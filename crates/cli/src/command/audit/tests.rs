//! Secrets that are chosen by their labels, which the hub is asked for.

use clap::Parser as _;

use super::*;
use crate::{
    command::{Cli, Command},
    golden,
    mock::scripted,
};

#[tokio::test]
async fn the_hub_chooses_by_labels_and_is_asked_for_metadata_alone() {
    let hub = scripted(|asked| match asked {
        "GET /api/v1" => {
            let secrets = json!({"name": "secrets", "singularName": "secret", "namespaced": true, "kind": "Secret", "verbs": ["list"]});
            let list = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [secrets]});
            (200, list.to_string())
        }
        _ if asked.starts_with("GET /api/v1/namespaces/shop/secrets?")
            && asked.contains("labelSelector=app%3Dweb") =>
        {
            let metadata = json!({"namespace": "shop", "name": "login", "labels": {"app": "web"}});
            let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {},
                "items": [{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}]});
            (200, list.to_string())
        }
        _ => (
            404,
            json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": asked}).to_string(),
        ),
    });
    let chosen = labelled(&hub, "shop", "app=web").await.unwrap();
    assert_eq!(chosen, BTreeSet::from([secret("shop", "login")]));
}

#[test]
fn the_places_of_those_that_have_the_labels_are_left() {
    let line = "entourage audit secrets -A --no-headers -f";
    let file = golden::folder("audit").join("shop.yaml");
    let line = line.split(' ').chain([file.to_str().unwrap()]);
    let Command::Audit(args) = Cli::try_parse_from(line).unwrap().command else {
        panic!("audits nothing");
    };
    let AuditSubject::Secrets(args) = args.subject;
    let mut audited = of_files(&args).unwrap();
    for (labelled, wanted) in [
        (
            secret("shop", "login"),
            (true, "shop/login   east   shop   present   Deployment shop/web\n"),
        ),
        (secret("shop", "other"), (false, "No Secret is on a cluster.\n")),
    ] {
        audited.labelled = Some([labelled].into());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let found = answered(&args, &audited, Style::default(), &mut out, &mut err).unwrap();
        assert_eq!((found, String::from_utf8(out).unwrap().as_str()), wanted);
    }
}

fn secret(namespace: &str, name: &str) -> ResourceId {
    ResourceId::new(Gvk::new("v1", "Secret"), namespace, name)
}
