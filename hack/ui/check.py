"""Checks the page of `entourage ui` in headless Chromium. See hack/ui.sh.

  check.py recorded FOLDER            the page's files, with 10,000 objects made from recorded rows, served from here
  check.py live FOLDER URL PROCESS    a page that `entourage` serves; PROCESS is its id, for its memory
"""

import copy
import http.server
import json
import os
import pathlib
import socketserver
import sys
import threading
import time
import urllib.parse

from devtools import Browser, Failed

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "crates/cli/src/command/ui/page"
RECORDED = ROOT / "crates/cli/testdata/ui/page.json"
CHROMIUM = os.environ.get("CHROMIUM", "chromium")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
OBJECTS = int(os.environ.get("OBJECTS", "10000"))
# Each of these frames shows other rows altogether, and is painted without a graphics card. 33 are smooth on a machine with nothing else to
# do; the limit leaves room for a busy one.
FRAME_MS = float(os.environ.get("FRAME_MS", "100"))
FRAMES = 90
COMPLETE = "document.documentElement.dataset.complete === 'true'"
ROWS = "document.querySelectorAll('.space .row').length"


def main():
    lane, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    browser = Browser(CHROMIUM)
    try:
        if lane == "recorded":
            recorded(browser, folder)
        else:
            live(browser, folder, sys.argv[3], int(sys.argv[4]))
        expect(browser.errors == [], f"errors of the page: {browser.errors}")
    finally:
        browser.close()


# ---- 10,000 objects from recorded rows ----


def recorded(browser, folder):
    server = Recorded()
    url = f"http://127.0.0.1:{server.port}/#token=00"
    browser.scheme("light")
    begin = time.monotonic()
    browser.open(url)
    browser.until(f"{COMPLETE} && {ROWS} > 0")
    say(f"{OBJECTS:,} objects are shown after {time.monotonic() - begin:.2f} s")
    expect("token" not in browser.value("location.href"), "the token leaves the address")
    browser.screenshot(folder / "overview-light.webp")
    browser.scheme("dark")
    expect(browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(14, 18, 24)", "dark follows the system")
    browser.screenshot(folder / "overview-dark.webp")
    browser.key("t")
    expect(browser.value("document.documentElement.dataset.theme") == "light", "the switch wins over the system")
    expect(browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(245, 246, 249)", "light by the switch")
    browser.key("t")
    browser.key("t")
    browser.scheme("light")

    browser.key("2")
    browser.until(f"document.querySelector('.workloads') && {ROWS} > 5")
    expect(browser.value(f"{ROWS} < 60"), "only the rows in sight are in the document")
    count = browser.value("document.querySelector('[role=grid]').getAttribute('aria-rowcount')")
    expect(int(count) == OBJECTS + 1, f"{count} rows are known to a screen reader")
    browser.screenshot(folder / "objects.webp")
    smooth(browser)
    shifts(browser)

    browser.key("End")
    browser.until(f"document.querySelector('[aria-selected=true]')?.getAttribute('aria-rowindex') === '{OBJECTS + 1}'")
    browser.key("Home")
    browser.key("j")
    browser.until("document.querySelector('[aria-selected=true]')?.getAttribute('aria-rowindex') === '3'")
    browser.key("/")
    browser.until("document.activeElement.id === 'search'")
    name = [row["name"] for row in server.rows.values() if row.get("kind") == "Deployment" and len(row["clusters"]) > 1][-1]
    browser.type(f"kind:deployment {name}")
    browser.until("document.querySelector('.found').textContent.startsWith('1 of')")
    browser.key("Enter")
    browser.until("document.activeElement.getAttribute('role') === 'grid'")
    browser.key("Enter")
    browser.until("location.hash.startsWith('#/object/Deployment.apps/')")
    browser.until("document.querySelectorAll('.node').length > 3")
    browser.screenshot(folder / "graph-light.webp")
    expect(browser.value("document.querySelectorAll('.node.cluster').length > 1"), "the clusters are nodes")
    browser.key("ArrowRight")
    browser.until("document.querySelector('#panel-why .steps')")
    browser.screenshot(folder / "why.webp")
    browser.key("ArrowRight")
    browser.until("document.querySelector('#panel-history .timeline')")
    browser.key("Escape")
    browser.until("location.hash.startsWith('#/workloads')")
    names(browser)

    browser.key("Escape")
    server.change = True
    browser.until("document.querySelector('.found').textContent.includes(' of 9,999')" if OBJECTS == 10000 else "true")
    browser.key("?")
    browser.until("document.getElementById('keys').open")
    browser.key("Escape")
    browser.until("!document.getElementById('keys').open")
    browser.key("5")
    browser.until(f"document.querySelector('.changes') && {ROWS} > 0")
    browser.screenshot(folder / "changes.webp")
    browser.key("4")
    browser.until("location.hash === '#/distributions'")
    browser.key("3")
    browser.until("location.hash === '#/policies'")
    say(f"the page's heap is {browser.heap() / 1e6:.1f} MB")

    server.drop = True
    browser.until("document.getElementById('link').textContent === 'connection lost'")
    expect(browser.value("!document.getElementById('notice').hidden"), "a lost connection is said")
    server.drop = False
    browser.until("document.getElementById('link').textContent === 'live'")
    # The browser itself reports the connection that was cut.
    browser.errors = [error for error in browser.errors if "ERR_" not in error and "500" not in error]


def smooth(browser):
    """Scrolls through all rows; the page's work for a frame must be short."""
    before = browser.metric("TaskDuration")
    browser.value(
        f"""(async () => {{
            const body = document.querySelector('.rows .body');
            for (let step = 1; step <= {FRAMES}; step += 1) {{
                body.scrollTop = (step / {FRAMES}) * (body.scrollHeight - body.clientHeight);
                await new Promise((done) => requestAnimationFrame(done));
            }}
            body.scrollTop = 0;
        }})()"""
    )
    each = (browser.metric("TaskDuration") - before) * 1000 / FRAMES
    say(f"a frame of scrolling takes the page {each:.1f} ms")
    expect(each < FRAME_MS, f"scrolling is smooth: {each:.1f} ms")


def shifts(browser):
    """The sum of layout shifts that the user did not cause, as browsers count it."""
    score = browser.value(
        """new Promise((done) => {
            let sum = 0;
            new PerformanceObserver((list) => {
                for (const each of list.getEntries()) if (!each.hadRecentInput) sum += each.value;
            }).observe({ type: 'layout-shift', buffered: true });
            setTimeout(() => done(sum), 100);
        })"""
    )
    say(f"the layout shift score is {score:.3f}")
    expect(score < 0.1, f"nothing moves by itself: {score}")


def names(browser):
    """Everything that takes the focus has a name, as the accessibility tree has it."""
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    nameless = [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored")
        and node["role"]["value"] in ("button", "link", "grid", "tab", "searchbox", "textbox", "main-content")
        and not node.get("name", {}).get("value")
    ]
    expect(not nameless, f"controls without a name: {nameless}")


class Recorded:
    """Serves the page's files, and rows that are made from the recorded ones."""

    def __init__(self):
        self.change = self.drop = False
        self.rows, self.changes, self.sources = multiplied()
        self.explain, self.history = answers()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.answer(self)

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

        server = Server(("127.0.0.1", 0), Handler)
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def answer(self, request):
        path = request.path.split("?")[0]
        if path == "/api/changes":
            return self.stream(request)
        if path in ("/api/explain", "/api/history"):
            answer = self.explain if path.endswith("explain") else self.history
            if path.endswith("explain"):
                query = urllib.parse.parse_qs(request.path.partition("?")[2])
                kind, _, name = query["object"][0].partition("/")
                answer["why"]["object"].update(kind=kind.split(".")[0], name=name, namespace=query["namespace"][0])
            return respond(request, json.dumps(answer).encode(), "application/json")
        file = PAGE / ("index.html" if path == "/" else path[1:])
        if not file.is_file():
            return request.send_error(404)
        return respond(request, file.read_bytes(), TYPES[file.suffix])

    def stream(self, request):
        if self.drop:
            return request.send_error(500)
        request.send_response(200)
        request.send_header("content-type", "text/event-stream")
        request.end_headers()
        keys = list(self.rows)
        for at in range(0, len(keys), 2000):
            part, last = keys[at : at + 2000], at + 2000 >= len(keys)
            send(request, at + len(part), {"reset": at == 0, "complete": last, "rows": {key: self.rows[key] for key in part},
                                           "gone": [], "changes": self.changes if last else [], "sources": self.sources})
        changed = False
        while not self.drop:
            time.sleep(0.1)
            if self.change and not changed:
                changed = True
                gone = [key for key in keys if key.startswith("b/")][-1]
                send(request, len(keys) + 1, {"reset": False, "complete": True, "rows": {}, "gone": [gone], "changes": []})
        request.connection.close()


def send(request, revision, message):
    message["revision"] = revision
    data = json.dumps(message, separators=(",", ":"))
    request.wfile.write(f"id: run/{revision}\nevent: change\ndata: {data}\n\n".encode())
    request.wfile.flush()


def respond(request, body, kind):
    request.send_response(200)
    request.send_header("content-type", kind)
    request.send_header("content-length", str(len(body)))
    # As crates/cli/src/command/ui/server.rs sends it.
    request.send_header("content-security-policy", policy())
    request.end_headers()
    request.wfile.write(body)


def policy():
    text = (ROOT / "crates/cli/src/command/ui/server.rs").read_text()
    text = text.split('CONTENT_SECURITY_POLICY: &str = "')[1].split('";')[0]
    return " ".join(text.replace("\\\n", " ").split())


def multiplied():
    """The recorded message, with its workloads repeated under other names."""
    message = json.loads(RECORDED.read_text())
    rows = {key: row for key, row in message["rows"].items() if not key.startswith("b/")}
    given = [row for key, row in message["rows"].items() if key.startswith("b/")]
    for number in range(OBJECTS):
        row = copy.deepcopy(given[number % len(given)])
        namespace = f"team-{number % 40:02}"
        row["name"] = f"{row['name']}-{row['kind'].lower()}-{number}"
        row["namespace"] = namespace
        row.pop("neededBy", None)
        rows[f"b/{namespace}/{number}"] = row
    wanted = [key for key in rows if key.startswith("b/")]
    # Each Deployment needs the three objects before it.
    for at, key in enumerate(wanted):
        if rows[key]["kind"] == "Deployment":
            for needed in wanted[max(0, at - 3) : at]:
                rows[needed].setdefault("neededBy", []).append(key)
    return rows, message["changes"], message["sources"]


def answers():
    name = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "team-01", "name": "web"}
    steps = [{"rule": "policy", "effect": "for", "message": "PropagationPolicy shop/web claims it"}]
    clusters = [{"cluster": "east", "presence": "Present", "steps": [{"rule": "placement", "effect": "for", "message": "a target"}]}]
    why = {"object": name, "steps": steps, "clusters": clusters}
    explain = {"exists": True, "at": 1767229200000, "why": why, "tree": None, "remarks": []}
    entry = {"time": 1767229200000, "source": "event", "object": "Deployment web", "what": "Scheduled", "message": "to east"}
    return explain, {"exists": True, "entries": [entry], "remarks": []}


# ---- a page of the binary ----


def live(browser, folder, url, process):
    begin = time.monotonic()
    browser.open(url)
    browser.until(f"{COMPLETE} && {ROWS} > 0", 120)
    say(f"the page is usable after {time.monotonic() - begin:.2f} s")
    browser.screenshot(folder / "live-overview.webp")
    browser.key("2")
    browser.until(f"{ROWS} > 1")
    say(browser.value("document.querySelector('.found').textContent"))
    browser.screenshot(folder / "live-objects.webp")
    browser.value("[...document.querySelectorAll('.space .row a.main')].find((a) => a.hash.startsWith('#/object/Deployment'))?.click()")
    browser.until("location.hash.startsWith('#/object/Deployment') && document.querySelector('#panel-why .steps')", 120)
    browser.until("document.querySelectorAll('.node.cluster').length > 0")
    browser.screenshot(folder / "live-graph.webp")
    browser.key("ArrowRight")
    browser.screenshot(folder / "live-why.webp")
    browser.key("ArrowRight")
    browser.until("document.querySelector('#panel-history .timeline')", 60)
    browser.screenshot(folder / "live-history.webp")
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(("VmRSS", "VmHWM")):
            say(f"the process: {' '.join(line.split())}")
    say(f"the page's heap is {browser.heap() / 1e6:.1f} MB")


def expect(condition, what):
    if not condition:
        raise Failed(what)


def say(text):
    print(f"ui: {text}", flush=True)


try:
    main()
except Failed as failed:
    sys.exit(f"ui: {failed}")
