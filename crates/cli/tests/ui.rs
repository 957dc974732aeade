//! The server of `entourage ui` on an embedded hub: its refusals, its stream of changes, its answers, and what never leaves it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{collections::BTreeMap, time::Duration};

use entourage::{
    command::ui::{Page, UiOptions},
    fleet::{self, Fleet, Place},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The timeout of a condition, for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A page about a hub with one member.
struct Served {
    fleet: Fleet,
    page: Page,
    stop: CancellationToken,
}

impl Served {
    async fn start() -> Self {
        entourage::install_tls_provider();
        let fleet = Fleet::start(1, &Place::Nowhere, fleet::options()).await.unwrap();
        let stop = CancellationToken::new();
        let hub = fleet.hub.client();
        let page = Page::start(hub, UiOptions::default(), stop.clone())
            .await
            .unwrap();
        Self { fleet, page, stop }
    }

    fn host(&self) -> &str {
        let rest = self.page.address.strip_prefix("http://").unwrap();
        rest.split_once('/').unwrap().0
    }

    fn token(&self) -> &str {
        self.page.address.split_once("#token=").unwrap().1
    }

    /// Head and body of the response to a request with these header lines.
    async fn ask(&self, request: &str, headers: &str) -> (u16, String, String) {
        let mut socket = self.send(request, headers).await;
        let mut answer = String::new();
        timeout(PATIENCE, socket.read_to_string(&mut answer))
            .await
            .unwrap()
            .unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    async fn send(&self, request: &str, headers: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.host()).await.unwrap();
        // A response of HTTP/1.0 is not cut into chunks.
        let text = format!("{request} HTTP/1.0\r\n{headers}\r\n");
        socket.write_all(text.as_bytes()).await.unwrap();
        socket
    }

    fn own(&self) -> String {
        format!(
            "Host: {}\r\nAuthorization: Bearer {}\r\n",
            self.host(),
            self.token()
        )
    }

    async fn answer(&self, path: &str) -> (u16, Value) {
        let (status, _, body) = self.ask(&format!("GET {path}"), &self.own()).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    async fn follow(&self, query: &str) -> Follower {
        let socket = self.send(&format!("GET /api/changes{query}"), &self.own()).await;
        Follower {
            socket,
            read: String::new(),
            rows: BTreeMap::new(),
            position: String::new(),
            messages: Vec::new(),
        }
    }

    async fn apply(&self, path: &str, object: &Value) {
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(object.to_string().into_bytes())
            .unwrap();
        self.fleet.hub.client().request::<Value>(request).await.unwrap();
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.page.ended()).await.unwrap();
        self.fleet.end().await.unwrap();
    }
}

/// A page that takes messages.
struct Follower {
    socket: TcpStream,
    read: String,
    rows: BTreeMap<String, Value>,
    position: String,
    messages: Vec<Value>,
}

impl Follower {
    /// Takes messages until the rows are as wanted.
    async fn until(&mut self, what: &str, is_so: impl Fn(&BTreeMap<String, Value>) -> bool) {
        let waited = timeout(PATIENCE, async {
            while !is_so(&self.rows) {
                self.message().await;
            }
        });
        waited
            .await
            .unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"));
    }

    async fn message(&mut self) {
        loop {
            let begin = self.read.find("data: ");
            if let Some((begin, end)) =
                begin.zip(begin.and_then(|at| self.read[at..].find("\n\n").map(|end| at + end)))
            {
                let id = self.read[..begin].rfind("id: ").unwrap();
                self.position = self.read[id + 4..begin].lines().next().unwrap().to_owned();
                let message: Value = serde_json::from_str(&self.read[begin + 6..end]).unwrap();
                self.read.drain(..end + 2);
                self.take(message);
                return;
            }
            let mut bytes = [0; 16_384];
            let count = self.socket.read(&mut bytes).await.unwrap();
            assert!(count > 0, "the stream ended: {}", self.read);
            self.read.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
    }

    fn take(&mut self, message: Value) {
        if message["reset"] == true {
            self.rows.clear();
        }
        for (key, row) in message["rows"].as_object().unwrap() {
            self.rows.insert(key.clone(), row.clone());
        }
        for key in message["gone"].as_array().unwrap() {
            self.rows.remove(key.as_str().unwrap());
        }
        self.messages.push(message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_page_of_this_server_with_its_token_reads_data() {
    let it = Served::start().await;
    let (host, token) = (it.host().to_owned(), it.token().to_owned());
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let own = format!("Host: {host}\r\n");
    let other = format!(
        "Host: rebound.example.com:{}\r\n",
        host.split_once(':').unwrap().1
    );
    for (request, headers, wanted) in [
        ("GET /", own.clone(), 200),
        ("GET /main.js", own.clone(), 200),
        ("GET /", other.clone(), 421),
        ("GET /", String::new(), 421),
        ("GET /nothing", own.clone(), 404),
        ("POST /", own.clone(), 405),
        ("DELETE /api/changes", own.clone() + &bearer, 405),
        ("GET /api/changes", own.clone(), 401),
        ("GET /api/explain?object=cm/x", own.clone(), 401),
        ("GET /api/history?object=cm/x", own.clone(), 401),
        (
            "GET /api/changes",
            own.clone() + "Authorization: Bearer 0\r\n",
            401,
        ),
        ("GET /api/changes", format!("{other}{bearer}"), 421),
        (
            "GET /api/changes",
            format!("{own}{bearer}Origin: https://example.com\r\n"),
            403,
        ),
        (
            "GET /api/changes",
            format!("{own}{bearer}Sec-Fetch-Site: cross-site\r\n"),
            403,
        ),
        ("GET /api/other", own.clone() + &bearer, 404),
    ] {
        let (status, head, body) = it.ask(request, &headers).await;
        assert_eq!(status, wanted, "{request} {headers}");
        assert!(!head.contains("access-control-allow"), "{head}");
        assert!(
            !body.contains(&token) && !body.contains("member1"),
            "{request}: {body}"
        );
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self';",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(header), "{request} has no {header}: {head}");
        }
    }
    it.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_gets_all_rows_and_then_each_change() {
    let it = Served::start().await;
    let mut page = it.follow("").await;
    page.until("the member is ready", |rows| {
        rows.get("m/member1")
            .is_some_and(|row| row["member"]["ready"] == "True")
    })
    .await;
    it.apply(
        "/api/v1/namespaces/default/configmaps",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}),
    )
    .await;
    it.apply(
        "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies",
        &policy(),
    )
    .await;
    let key = "b/default/settings-configmap";
    page.until("the copy is applied and counted", |rows| {
        let applied = rows.get(key).is_some_and(|row| row["state"] == "applied");
        applied && rows["m/member1"]["tally"]["applied"] == 1 && rows.contains_key("p/default/all")
    })
    .await;
    let before = page.position.clone();
    let (run, since) = before.split_once('/').unwrap();

    let mut again = it.follow(&format!("?run={run}&since={since}")).await;
    let delete = http::Request::delete("/api/v1/namespaces/default/configmaps/settings").body(Vec::new());
    it.fleet
        .hub
        .client()
        .request::<Value>(delete.unwrap())
        .await
        .unwrap();
    page.until("the row is gone", |rows| !rows.contains_key(key))
        .await;
    again
        .until("only changes since then", |rows| {
            rows.get("m/member1")
                .is_some_and(|row| row["tally"]["copies"] == 0)
        })
        .await;
    assert!(again.messages.iter().all(|message| message["reset"] == false));
    assert!(!again.rows.contains_key("p/default/all"), "it did not change");
    let mut other = it.follow(&format!("?run=former&since={since}")).await;
    other
        .until("all rows", |rows| rows.contains_key("p/default/all"))
        .await;
    assert_eq!(other.messages[0]["reset"], true);
    let changes = page
        .messages
        .iter()
        .flat_map(|message| message["changes"].as_array().unwrap());
    let whats: Vec<&str> = changes.map(|change| change["what"].as_str().unwrap()).collect();
    assert!(whats.contains(&"Scheduled=True (Success)"), "{whats:?}");
    it.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_why_and_history_and_no_secret_leaves() {
    const CANARY: &str = "Y2FuYXJ5LW9mLWEtc2VjcmV0";
    let it = Served::start().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"password": CANARY}});
    it.apply("/api/v1/namespaces/default/secrets", &secret).await;
    it.apply(
        "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies",
        &policy(),
    )
    .await;
    let mut embedded = secret.clone();
    embedded["metadata"]["name"] = json!("spread");
    it.apply(
        "/apis/apps.kruise.io/v1alpha1/resourcedistributions",
        &json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": "spread"},
            "spec": {"resource": embedded, "targets": {"includedNamespaces": {"list": [{"name": "default"}]}}}}),
    )
    .await;
    let mut page = it.follow("").await;
    page.until("both are shown", |rows| {
        let applied = rows
            .get("b/default/login-secret")
            .is_some_and(|row| row["state"] == "applied");
        applied && rows.get("d/spread").is_some_and(|row| row["succeeded"] == 1)
    })
    .await;
    let (status, answer) = it
        .answer("/api/explain?object=secret%2Flogin&namespace=default")
        .await;
    assert_eq!((status, &answer["exists"]), (200, &json!(true)), "{answer}");
    let cluster = &answer["why"]["clusters"][0];
    assert_eq!(
        (&cluster["cluster"], &cluster["presence"]),
        (&json!("member1"), &json!("Present"))
    );
    assert_eq!(answer["tree"]["object"]["name"], "login");
    let (status, history) = it
        .answer("/api/history?object=secret%2Flogin&namespace=default")
        .await;
    assert_eq!(status, 200);
    let whats: Vec<&str> = history["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["what"].as_str())
        .collect();
    assert!(whats.contains(&"created"), "{whats:?}");
    let (status, absent) = it.answer("/api/explain?object=cm%2Fnone&namespace=default").await;
    assert_eq!((status, &absent["exists"]), (200, &json!(false)));
    let (status, refused) = it.answer("/api/explain?object=nonsense%2Fx").await;
    assert_eq!(status, 502);
    assert!(
        refused["error"].as_str().unwrap().contains("serves no kind"),
        "{refused}"
    );
    for text in [
        answer.to_string(),
        history.to_string(),
        json!(page.messages).to_string(),
    ] {
        assert!(
            !text.contains(CANARY) && !text.contains("canary-of-a-secret"),
            "{text}"
        );
    }
    it.end().await;
}

fn policy() -> Value {
    let select = |kind: &str| json!({"apiVersion": "v1", "kind": kind});
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "all"},
        "spec": {"resourceSelectors": [select("ConfigMap"), select("Secret")],
            "placement": {"clusterAffinity": {"clusterNames": ["member1"]}}}})
}
