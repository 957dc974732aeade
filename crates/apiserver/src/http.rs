//! HTTP: reads a request, authenticates and routes it, and writes the response in the requested form.
//!
//! The order is that of a kube-apiserver, and visible to clients: authentication (401), impersonation, authorization (403), the
//! route of the path (404, 405), the accepted form (406), and only then the body.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header, request::Parts};
use http_body_util::{BodyExt as _, Limited};

use crate::{
    auth::{self, User, about::About},
    call::Call,
    connection::Connection,
    discovery,
    endpoint::{self, Answer},
    json, openapi,
    query::{Query, percent_decoded},
    selector::Selection,
    server::Server,
    status::{Result, Status},
};

pub(crate) mod accept;
mod documents;
mod duration;
mod fixed;
mod pieces;
mod protobuf;
mod route;
mod stream;
mod write;
pub(crate) mod yaml;

pub(crate) use crate::connection::Body;
use accept::{Offer, Transform};
use fixed::Fixed;

use route::{Miss, Route};
use write::Form;

/// The largest body that is read, in bytes.
const LARGEST: usize = 3 << 20;

/// The number of bytes of a larger body that are read and dropped, so that its sender reads the refusal.
const DRAINED: usize = 8 << 20;

/// The same for the body of a request that is refused by its headers.
const DRAINED_UNREAD: usize = 256 << 10;

/// The time limit of both.
const DRAINING: Duration = Duration::from_secs(1);

/// The time limit of a request other than a watch, its body included.
const LONGEST: Duration = Duration::from_secs(60);

/// The user of the client certificate of the connection, as a request extension. Set it only behind a verified handshake.
#[derive(Clone, Debug)]
pub(crate) struct Certified(pub User);

/// Answers one request; never fails, never panics.
pub(crate) async fn answer<B>(cluster: &Arc<Server>, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let mut body = Some(body);
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let mut response = match handled(cluster, &parts, &query, &mut body).await {
        Ok(response) => response,
        Err(Miss::Page) => write::text(404, "404 page not found\n"),
        Err(Miss::Status(status)) => refusal(&parts, &query, &status),
    };
    if let Some(body) = body
        && response.status().as_u16() >= 400
    {
        drain(&parts.headers, body).await;
    }
    common_headers(cluster, &parts, &mut response);
    response
}

/// Reads the part of a refused request's body that is on its way. A connection that is closed before that is reset, and the
/// reset overtakes the refusal. A client that waits for `100-continue` before its body gets the response instead.
async fn drain<B>(headers: &HeaderMap, body: B)
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if body.is_end_stream() || headers.contains_key(header::EXPECT) {
        return;
    }
    let mut body = std::pin::pin!(Limited::new(body, DRAINED_UNREAD));
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    // The part that has not arrived by then is lost to the sender.
    let _ = tokio::time::timeout(DRAINING, all).await;
}

/// The answer that an error is.
fn refusal(parts: &Parts, query: &Query, status: &Status) -> Response<Body> {
    if status.code == 504 && status.message == TIMED_OUT {
        return write::text(
            504,
            format!(
                "{{\"metadata\":{{}},\"status\":\"Failure\",\"message\":\"{TIMED_OUT}\",\"reason\":\"Timeout\",\"details\":{{}},\"code\":504}}\n"
            ),
        );
    }
    let header = text(&parts.headers, &header::ACCEPT);
    let mut response = if status.code == 406 && openapi::protobuf::only(header) {
        write::respond(406, openapi::protobuf::MEDIA, openapi::protobuf::status(status))
    } else {
        let form = Form::of(&parts.headers, query, accept::of_error(header));
        form.value(status.code, &status.to_value())
    };
    let headers = response.headers_mut();
    write::warn(headers, &status.warnings);
    if let Some(seconds) = status.retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    if status.code == 403 && status.reason == "Forbidden" {
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
    }
    response
}

fn common_headers(cluster: &Server, parts: &Parts, response: &mut Response<Body>) {
    const AUDIT: HeaderName = HeaderName::from_static("audit-id");
    let given = parts.headers.get(&AUDIT).filter(|id| !id.is_empty()).cloned();
    let audit = given.or_else(|| HeaderValue::from_str(&crate::random::new_uid()).ok());
    let unauthorized = response.status().as_u16() == 401;
    let headers = response.headers_mut();
    if let Some(audit) = audit {
        headers.insert(AUDIT, audit);
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-cache, private"));
    if !unauthorized {
        for (name, value) in cluster.fairness() {
            headers.insert(HeaderName::from_static(name), value.clone());
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

type Routed<T> = std::result::Result<T, Miss>;

const TIMED_OUT: &str = "Timeout: request did not complete within the allotted timeout";

async fn handled<B>(
    cluster: &Arc<Server>,
    parts: &Parts,
    query: &Query,
    body: &mut Option<B>,
) -> Routed<Response<Body>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // An escaped slash separates like any other.
    let path = percent_decoded(parts.uri.path(), false);
    let about = About::of(&parts.method, &path, query);
    let limit = time_limit(query)?;
    let certified = parts.extensions.get::<Certified>().map(|Certified(user)| user);
    let user = cluster
        .auth
        .authenticate(&cluster.store, cluster.timestamp(), &parts.headers, certified)?;
    let user = auth::impersonate::impersonated(cluster.access(), &parts.headers, user, &about)?;
    auth::policy::authorize(cluster.access(), &user, &about)?;
    if let Some((subresource, connector)) = cluster.connectors.of(&about) {
        let served = cluster
            .kinds()
            .find(&about.group, &about.version, &about.resource)
            .is_some();
        // What is passed on is the path as it came; if that was read in another way, it leads nowhere.
        let rest = subresource
            .rest(parts.uri.path(), &about.path_name)
            .filter(|_| served);
        let (Some(rest), Some(body)) = (rest, body.take()) else {
            return Err(Miss::Page);
        };
        let mut request =
            Request::from_parts(parts.clone(), body.map_err(std::io::Error::other).boxed_unsync());
        request.extensions_mut().remove::<Certified>();
        let connection = Connection {
            user,
            rest: rest.to_owned(),
            name: about.path_name,
            request,
        };
        // How long it may take is up to the connector: streams have no end.
        return Ok(connector.connect(connection).await);
    }
    let work = async {
        if about.resource_request {
            return resources(cluster, parts, query, &about, user, body).await;
        }
        outside(cluster, parts, query)
    };
    if about.verb == "watch" {
        return work.await;
    }
    tokio::select! {
        // The limit counts first: on a busy machine what waits for something else may be late as well.
        biased;
        () = tokio::time::sleep(limit) => Err(Status::new(504, "Timeout", TIMED_OUT).into()),
        answer = work => answer,
    }
}

/// `timeout=` of a request; nothing, zero and less are the longest time.
fn time_limit(query: &Query) -> Result<Duration> {
    let Some(asked) = query.get("timeout").filter(|text| !text.is_empty()) else {
        return Ok(LONGEST);
    };
    let seconds = duration::parse(asked).map_err(|error| {
        Status::bad_request(format!("invalid timeout specified in the request URL - {error}"))
    })?;
    if seconds <= 0.0 {
        return Ok(LONGEST);
    }
    Ok(Duration::try_from_secs_f64(seconds)
        .unwrap_or(LONGEST)
        .min(LONGEST))
}

/// Everything that is no resource: discovery, documents, health.
fn outside(cluster: &Arc<Server>, parts: &Parts, query: &Query) -> Routed<Response<Body>> {
    let path = parts.uri.path();
    if let Some(response) = documents::answer(cluster, parts, query) {
        return Ok(response);
    }
    let accept = text(&parts.headers, &header::ACCEPT);
    if path.starts_with("/api/") || path.starts_with("/apis/") || matches!(path, "/api" | "/apis") {
        return discovered(cluster, parts, query, accept);
    }
    match fixed::answer(cluster, path, query).ok_or(Miss::Page)? {
        Fixed::Text(code, body) => Ok(write::text(code, body)),
        Fixed::Json(_) | Fixed::JsonAs(..) if parts.method != Method::GET => {
            Err(Status::method_not_allowed().into())
        }
        Fixed::JsonAs(media, value) => {
            accept::only(accept, media)?;
            Ok(write::respond(200, media, json::compact(&value)))
        }
        Fixed::Json(value) => {
            let offer = if path == "/" || path == "/index.html" {
                Offer::Discovery
            } else {
                Offer::JsonOnly
            };
            let accepted = accept::negotiate(accept, offer)?;
            Ok(Form::of(&parts.headers, query, accepted).value(200, &value))
        }
    }
}

fn discovered(cluster: &Server, parts: &Parts, query: &Query, accept: &str) -> Routed<Response<Body>> {
    let kinds = cluster.kinds();
    let path = parts.uri.path();
    let words: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
    let missing = |group: &str| {
        if discovery::is_builtin(group) {
            Miss::Status(Status::no_such_path())
        } else {
            Miss::Page
        }
    };
    let (value, offer) = match words.as_slice() {
        ["api"] => (discovery::api(&server_address(&parts.headers)), Offer::Aggregated),
        ["apis"] => (discovery::apis(&kinds), Offer::Aggregated),
        ["api", version] => (
            discovery::version(&kinds, "", version).ok_or_else(|| missing(""))?,
            Offer::Discovery,
        ),
        ["apis", group] => (
            discovery::group(&kinds, group).ok_or_else(|| missing(group))?,
            Offer::Discovery,
        ),
        ["apis", group, version] => {
            let value = discovery::version(&kinds, group, version).ok_or_else(|| missing(group))?;
            (value, Offer::Discovery)
        }
        ["api", ..] => return Err(missing("")),
        _ => return Err(Miss::Page),
    };
    if parts.method != Method::GET {
        return Err(Status::method_not_allowed().into());
    }
    let accepted = accept::negotiate(accept, offer)?;
    let form = Form::of(&parts.headers, query, accepted);
    if !matches!(accepted.transform, Some((Transform::Discovery, _))) {
        let mut response = form.value(200, &value);
        if offer == Offer::Aggregated {
            response
                .headers_mut()
                .insert(header::VARY, HeaderValue::from_static("Accept"));
        }
        return Ok(response);
    }
    let (document, etag) = cluster.documents.discovery(&kinds, words == ["api"]);
    let media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    Ok(documents::tagged(parts, media, &etag, "Accept", document))
}

/// The address for clients: the one they used.
fn server_address(headers: &HeaderMap) -> String {
    let host = text(headers, &header::HOST);
    if host.contains(':') {
        host.to_owned()
    } else {
        "127.0.0.1:443".to_owned()
    }
}

async fn resources<B>(
    cluster: &Arc<Server>,
    parts: &Parts,
    query: &Query,
    about: &About,
    user: User,
    body: &mut Option<B>,
) -> Routed<Response<Body>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if about.path.starts_with("//") {
        return Err(Miss::Page);
    }
    let route = route::find(&cluster.kinds(), &parts.method, about)?;
    let resource = route.resource.clone();
    let answered = routed(cluster, parts, query, route, user, body).await;
    let Some(deprecation) = resource
        .custom
        .as_ref()
        .and_then(|custom| custom.deprecation.clone())
        .or_else(|| resource.rules.deprecation().map(str::to_owned))
    else {
        return answered;
    };
    let mut response = match answered {
        Err(Miss::Status(status)) => refusal(parts, query, &status),
        other => other?,
    };
    write::warn_first(response.headers_mut(), deprecation);
    Ok(response)
}

/// A request for a resource that is served.
async fn routed<B>(
    cluster: &Arc<Server>,
    parts: &Parts,
    query: &Query,
    route: Route,
    user: User,
    body: &mut Option<B>,
) -> Routed<Response<Body>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut query = query.clone();
    if route.old_watch {
        query.set("watch", "1");
        if !route.name.is_empty() {
            let given = query.get("fieldSelector").unwrap_or_default();
            let selector = Selection::of_one(given, &route.name)?;
            query.set("fieldSelector", &selector);
        }
    }
    let collection = route.method == Method::GET && (route.name.is_empty() || route.old_watch);
    let watch = collection && query.flag("watch");
    let offer = match (route.resource.custom.is_some(), collection) {
        (true, _) => Offer::Custom,
        (false, true) => Offer::Collection,
        (false, false) => Offer::Object,
    };
    let accept = text(&parts.headers, &header::ACCEPT);
    let accepted = if watch {
        accept::negotiate_watch(accept, offer)?
    } else if endpoint::is_review(&route.resource) {
        // A client that accepts a review in its own form, too, wants it so.
        accept::negotiate(accept, Offer::Review).or_else(|_| accept::negotiate(accept, offer))?
    } else {
        accept::negotiate(accept, offer)?
    };
    if matches!(accepted.transform, Some((Transform::Table, _))) {
        write::include(&query)?;
    }
    let call = call(parts, &query, route, user, body).await?;
    let form = Form::of(&parts.headers, &query, accepted);
    match endpoint::answer(&**cluster, &call).await? {
        Answer::Watch(watch) => Ok(stream::watched(cluster, &form, *watch)),
        Answer::Reply(reply) => Ok(form.reply(cluster.timestamp(), &call.resource, reply)?),
    }
}

async fn call<B>(parts: &Parts, query: &Query, route: Route, user: User, body: &mut Option<B>) -> Result<Call>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let name = if route.old_watch {
        String::new()
    } else {
        route.name
    };
    let body = match body.take() {
        Some(body) if route.method != Method::GET => read(body).await?,
        _ => Bytes::new(),
    };
    let mut content_type = parts
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let mut body = body;
    if route.resource.custom.is_none()
        && content_type.as_deref().is_some_and(protobuf::is)
        && !body.is_empty()
        && let Some(value) = protobuf::to_json(&body)
            .map_err(|unread| unread.status(&route.resource, &body, route.method == Method::DELETE))?
    {
        body = Bytes::from(json::compact(&value));
        content_type = Some("application/json".to_owned());
    }
    Ok(Call {
        method: route.method,
        resource: route.resource,
        namespace: route.namespace,
        name,
        subresource: route.subresource,
        query: query.clone(),
        user,
        agent: text(&parts.headers, &header::USER_AGENT).to_owned(),
        content_type,
        body,
    })
}

/// The whole body, if it is not too large.
async fn read<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large = || {
        let message = format!("Request entity too large: limit is {LARGEST}");
        Status::new(413, "RequestEntityTooLarge", message)
    };
    let mut body = std::pin::pin!(Limited::new(body, DRAINED));
    // One piece is kept as it came; more are put together as they come, so that many small ones cost no more than a large one.
    let mut whole = Bytes::new();
    let mut more = BytesMut::new();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let piece = frame.map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                too_large()
            } else {
                Status::bad_request(error.to_string())
            }
        })?;
        let Ok(piece) = piece.into_data() else { continue };
        size += piece.len();
        if size > LARGEST {
            (whole, more) = (Bytes::new(), BytesMut::new());
        } else if size == piece.len() {
            whole = piece;
        } else {
            if more.is_empty() {
                more.extend_from_slice(&std::mem::take(&mut whole));
            }
            more.extend_from_slice(&piece);
        }
    }
    if size > LARGEST {
        return Err(too_large());
    }
    Ok(if more.is_empty() { whole } else { more.freeze() })
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;

    use super::*;

    async fn gathered(pieces: Vec<&'static [u8]>) -> Result<Bytes> {
        let frames = pieces.into_iter().map(|piece| {
            Ok::<_, std::convert::Infallible>(http_body::Frame::data(Bytes::from_static(piece)))
        });
        read(StreamBody::new(futures::stream::iter(frames.collect::<Vec<_>>()))).await
    }

    #[tokio::test]
    async fn a_body_is_its_pieces_in_their_order_up_to_the_limit() {
        assert_eq!(gathered(vec![]).await.expect("read"), "");
        assert_eq!(gathered(vec![b"abc"]).await.expect("read"), "abc");
        assert_eq!(
            gathered(vec![b"", b"a", b"", b"bc", b"d"]).await.expect("read"),
            "abcd"
        );
        static MEBIBYTE: [u8; 1 << 20] = [0; 1 << 20];
        assert_eq!(gathered(vec![&MEBIBYTE; 3]).await.expect("read").len(), LARGEST);
        let refused = gathered(vec![&MEBIBYTE[..], &MEBIBYTE, &MEBIBYTE, b"x"]).await;
        assert_eq!(refused.expect_err("too large").code, 413);
    }
}
