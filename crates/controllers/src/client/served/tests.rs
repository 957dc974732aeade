//! The served versions of a kind, over scripted servers: the responses that prove that there are no objects of it, and those
//! that do not.

use entourage_core::observation::Server;
use serde_json::json;

use super::*;
use crate::client::tests::{Reply, api, gone, served_nothing, status};

/// The groups as a server lists them: name and versions, the preferred one first.
fn groups(all: &[(&str, &[&str])]) -> Reply {
    let version = |each: &&str| json!({"version": each});
    let groups: Vec<Value> = all
        .iter()
        .map(|(name, versions)| {
            let all: Vec<Value> = versions.iter().map(version).collect();
            json!({"name": name, "versions": all, "preferredVersion": all[0]})
        })
        .collect();
    Reply::Json(200, json!({"kind": "APIGroupList", "groups": groups}))
}

fn resources(kinds: &[&str]) -> Reply {
    let all: Vec<Value> = kinds
        .iter()
        .map(|kind| json!({"name": kind.to_lowercase(), "kind": kind}))
        .collect();
    Reply::Json(200, json!({"kind": "APIResourceList", "resources": all}))
}

fn definitions(names: &[&str]) -> Reply {
    let items: Vec<Value> = names
        .iter()
        .map(|name| json!({"metadata": {"name": name}}))
        .collect();
    Reply::Json(
        200,
        json!({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}),
    )
}

const DEFINITIONS: &str = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=500";

/// The result for `shop.example.com/v1 Mouse` on a server with these replies, and else a bare 404.
async fn served(replies: Vec<(&'static str, Reply)>) -> Result<Served, Failure> {
    let (api, _) = api(Server::Hub, move |asked| {
        let found = replies.iter().find(|(line, _)| *line == asked.line);
        found.map_or_else(|| status(404, "NotFound"), |(_, reply)| reply.clone())
    });
    api.served(&Gvk::new("shop.example.com/v1", "Mouse")).await
}

#[tokio::test]
async fn the_version_that_is_asked_for_goes_before_the_preferred_one() {
    let group = groups(&[("shop.example.com", &["v2", "v1"])]);
    let (v1, v2) = ("GET /apis/shop.example.com/v1", "GET /apis/shop.example.com/v2");
    let both = served(vec![
        ("GET /apis", group.clone()),
        (v1, resources(&["Mouse"])),
        (v2, resources(&["Mouse"])),
    ]);
    assert_eq!(both.await.ok(), Some(Served::In("v1".into())));
    let one = served(vec![
        ("GET /apis", group.clone()),
        (v1, resources(&[])),
        (v2, resources(&["Mouse"])),
    ]);
    assert_eq!(one.await.ok(), Some(Served::In("v2".into())));
    // A version that is listed and not found proves nothing, and does not hide another one.
    let begins = served(vec![("GET /apis", group), (v2, resources(&["Mouse"]))]);
    assert_eq!(begins.await.ok(), Some(Served::In("v2".into())));
}

#[tokio::test]
async fn a_kind_is_served_nowhere_when_neither_its_group_nor_its_definition_is_there() {
    let other = groups(&[("apps", &["v1"])]);
    let lacks = served(vec![
        ("GET /apis", other),
        (DEFINITIONS, definitions(&["mice.farm.example.com"])),
    ]);
    assert_eq!(lacks.await.ok(), Some(Served::Nowhere));
    let group = groups(&[("shop.example.com", &["v1"])]);
    let cat = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/cats.shop.example.com";
    let cats = Reply::Json(200, json!({"spec": {"names": {"kind": "Cat"}}}));
    let others = served(vec![
        ("GET /apis", group),
        ("GET /apis/shop.example.com/v1", resources(&["Cat"])),
        (
            DEFINITIONS,
            definitions(&["cats.shop.example.com", "dogs.shop.example.com"]),
        ),
        (cat, cats),
        (
            "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/dogs.shop.example.com",
            gone("customresourcedefinitions"),
        ),
    ]);
    assert_eq!(
        others.await.ok(),
        Some(Served::Nowhere),
        "one of the others went meanwhile"
    );
}

#[tokio::test]
async fn a_kind_whose_definition_stands_or_may_stand_is_withheld() {
    let none = groups(&[("apps", &["v1"])]);
    // Its plural is unknown, and not the regular one.
    let mouse = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/mice.shop.example.com";
    let of_mice = Reply::Json(200, json!({"spec": {"names": {"kind": "Mouse"}}}));
    let stands = served(vec![
        ("GET /apis", none.clone()),
        (DEFINITIONS, definitions(&["mice.shop.example.com"])),
        (mouse, of_mice),
    ]);
    assert_eq!(stands.await.ok(), Some(Served::Withheld));
    let refused = served(vec![("GET /apis", none), (DEFINITIONS, status(403, "Forbidden"))]);
    assert_eq!(refused.await.ok(), Some(Served::Withheld));
}

#[tokio::test]
async fn who_does_not_answer_as_an_api_server_does_proves_nothing() {
    let empty = Reply::Json(200, json!({}));
    let none = groups(&[("apps", &["v1"])]);
    let group = groups(&[("shop.example.com", &["v1"])]);
    let cases = [
        vec![],
        vec![("GET /apis", empty.clone())],
        vec![("GET /apis", status(503, "ServiceUnavailable"))],
        vec![("GET /apis", group.clone()), (DEFINITIONS, definitions(&[]))],
        vec![
            ("GET /apis", group),
            ("GET /apis/shop.example.com/v1", empty.clone()),
            (DEFINITIONS, definitions(&[])),
        ],
        vec![("GET /apis", none.clone())],
        vec![("GET /apis", none), (DEFINITIONS, empty)],
    ];
    for (at, replies) in cases.into_iter().enumerate() {
        let failure = served(replies).await.err();
        let failure = failure.unwrap_or_else(|| panic!("case {at} proves something"));
        assert!(
            matches!(failure.class(), Class::Unknown | Class::Busy),
            "case {at}: {failure:?}"
        );
    }
}

#[tokio::test]
async fn the_core_group_lacks_no_kind() {
    let (hub, log) = api(Server::Hub, |asked| match asked.line.as_str() {
        "GET /api/v1" => resources(&["Pod"]),
        _ => status(404, "NotFound"),
    });
    assert_eq!(
        hub.served(&Gvk::new("v1", "Mouse")).await.ok(),
        Some(Served::Withheld)
    );
    assert_eq!(log.lines(), ["GET /api/v1"]);
}

#[tokio::test]
async fn a_404_about_an_object_of_another_kind_proves_nothing_about_this_one() {
    let id = ResourceId::new(Gvk::new("shop.example.com/v1", "Mouse"), "ns", "a");
    // The proxy does not know the cluster.
    let proxy = |_: &crate::client::tests::Asked| gone("clusters");
    let (member, _) = api(Server::Member("m1".into()), proxy);
    let failure = member.get(&Path::object(&id), Form::Whole).await.unwrap_err();
    assert!(member.is_gone(&id, &failure).await.is_err());
    let (member, _) = api(Server::Member("m1".into()), |_| gone("mouses"));
    let failure = member.get(&Path::object(&id), Form::Whole).await.unwrap_err();
    assert_eq!(member.is_gone(&id, &failure).await.ok(), Some(true));
    let (member, _) = api(Server::Member("m1".into()), |asked| served_nothing(&asked.line));
    let failure = member.get(&Path::object(&id), Form::Whole).await.unwrap_err();
    assert_eq!(member.is_gone(&id, &failure).await.ok(), Some(true));
}
