// The overview: the fleet in numbers, its members, what needs attention, and the latest changes.

import { h, fill } from "./dom.js";
import { store, troubled, find } from "./store.js";
import { Rows } from "./rows.js";
import { RANK, age, amount, clock, full, link, mark, number, ofState, plural } from "./words.js";

const LISTED = 7;

export function overview() {
  const tiles = h("section", { class: "tiles", "aria-label": "The fleet in numbers" });
  const members = new Rows({
    label: "Members", height: 56, compact: true, empty: "No members. `entourage join` adds one.",
    open: (row) => (location.hash = `#/workloads?q=${encodeURIComponent(`cluster:${row.name}`)}`),
    columns: [
      { title: "Member", width: "minmax(190px, 1.6fr)", cell: name },
      { title: "State", width: "minmax(150px, 1.1fr)", cell: ready },
      { title: "Version", width: "minmax(84px, .5fr)", cell: (row) => row.version || "–" },
      { title: "Mode", width: "56px", cell: (row) => row.mode || "–" },
      { title: "Room in use", width: "minmax(190px, 1.2fr)", cell: room },
      { title: "Copies", width: "72px", class: "right", cell: (row) => number(row.copies) },
      { title: "Failing", width: "72px", class: "right", cell: (row) => count(row.failing + row.unhealthy, "bad") },
      { title: "Pending", width: "76px", class: "right", cell: (row) => count(row.pending, "info") },
      { title: "Evicted", width: "76px", class: "right", cell: (row) => count(row.evicting + row.leaving, "warn") },
    ],
  });
  const attention = h("ol", { class: "list" });
  const latest = h("ol", { class: "list" });
  const element = h("div", { class: "overview" }, tiles,
    h("section", { class: "panel members", "aria-label": "Members" }, h("h2", {}, "Members"), members.element),
    h("div", { class: "pair" },
      h("section", { class: "panel" }, h("h2", {}, "Needs attention"), attention),
      h("section", { class: "panel" }, h("h2", {}, "Latest changes", h("a", { class: "more", href: "#/changes" }, "All")), latest)));
  return {
    title: "Overview",
    element,
    focus: () => members.focus(),
    update() {
      fill(tiles, numbers().map(tile));
      members.show([...store.members.values()].sort(order));
      members.element.style.height = `${Math.min(store.members.size || 1, 6) * 56 + 36}px`;
      fill(attention, troubles());
      fill(latest, changes());
    },
    end: () => members.end(),
  };
}

function numbers() {
  const members = [...store.members.values()];
  const ready = members.filter((row) => row.ready === "True").length;
  const states = {};
  for (const row of store.workloads.values()) states[row.state] = (states[row.state] ?? 0) + 1;
  const of = (...names) => names.reduce((sum, name) => sum + (states[name] ?? 0), 0);
  const bad = of("failing", "notScheduled", "dependencyMissing", "unhealthy");
  const evicting = members.reduce((sum, row) => sum + row.evicting, 0);
  const spread = [...store.distributions.values()];
  const short = spread.filter((row) => row.failed > 0 || row.succeeded < row.desired).length;
  const workloads = store.workloads.size;
  return [
    ["Members ready", number(ready), `of ${number(members.length)}`, members.length > ready ? "bad" : "ok", "#/"],
    ["Objects applied", number(of("applied")), `of ${number(workloads)}`, "ok", "#/workloads"],
    ["With problems", number(bad), bad ? `of ${number(workloads)} objects` : "none", bad ? "bad" : "ok", "#/workloads?state=problems"],
    ["Pending", number(of("pending")), "not on every cluster yet", of("pending") ? "info" : "off", "#/workloads?state=pending"],
    ["Evictions", number(evicting), "copies that leave a cluster", evicting ? "warn" : "off", "#/workloads?state=evicting"],
    ["Distributions", number(spread.length), short ? `${number(short)} incomplete` : "all complete", short ? "warn" : "off", "#/distributions"],
  ];
}

const tile = ([title, value, note, tone, href]) =>
  h("a", { class: `tile ${tone}`, href }, h("span", { class: "title" }, title), h("span", { class: "value" }, value), h("span", { class: "note" }, note));

const order = (a, b) => (a.ready === "True") - (b.ready === "True") || a.name.localeCompare(b.name, "en", { numeric: true });

const name = (row) => [
  h("div", { class: "main" }, row.name),
  h("div", { class: "sub" }, [row.provider, row.region].filter(Boolean).join(" · ") || "no region given"),
];

function ready(row) {
  const [word, tone, sign] = row.leaving
    ? ["being removed", "warn", "◆"]
    : { True: ["ready", "ok", "●"], False: ["not ready", "bad", "▲"] }[row.ready] ?? ["unknown", "off", "?"];
  const notes = [];
  if (row.since) notes.push(`for ${age(row.since)}`);
  if (row.paused) notes.push("removals paused");
  notes.push(...row.taints);
  const note = row.problem || notes.join(" · ");
  return [h("div", { class: "main" }, mark([word, tone, sign])), h("div", { class: "sub", title: note }, note)];
}

function room(row) {
  if (!row.room.length) return h("span", { class: "sub" }, "not reported");
  return h("div", { class: "meters" }, row.room.slice(0, 2).map((each) => {
    const part = each.total > 0 ? Math.min(1, each.used / each.total) : 0;
    const percent = Math.round(part * 100);
    const bar = h("span", { class: `fill ${part > 0.9 ? "bad" : part > 0.75 ? "warn" : ""}` });
    bar.style.width = `${percent}%`;
    const text = `${amount(each.resource, each.used)} of ${amount(each.resource, each.total)}`;
    return h("div", { class: "meter", title: `${each.resource}: ${text}` },
      h("span", { class: "what" }, each.resource === "memory" ? "mem" : each.resource),
      h("span", { class: "bar", role: "meter", "aria-label": each.resource, "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": percent, "aria-valuetext": text }, bar),
      h("span", { class: "part" }, `${percent}%`));
  }));
}

const count = (value, tone) => (value ? h("strong", { class: tone }, number(value)) : h("span", { class: "sub" }, "0"));

function troubles() {
  const rows = troubled().sort((a, b) => RANK[a.state] - RANK[b.state] || a.key.localeCompare(b.key));
  const down = [...store.members.values()].filter((row) => row.ready !== "True" || row.paused);
  const items = down.map((row) => h("li", {}, h("a", { href: `#/workloads?q=${encodeURIComponent(`cluster:${row.name}`)}` },
    mark(row.ready === "True" ? ["removals paused", "warn", "◆"] : ["not ready", "bad", "▲"]),
    h("span", { class: "main" }, `Cluster ${row.name}`),
    h("span", { class: "sub" }, row.problem || "removals are paused: see `entourage resume`"))));
  items.push(...rows.slice(0, Math.max(1, LISTED - items.length)).map((row) => h("li", {}, h("a", { href: link(row.apiVersion, row.kind, row.namespace, row.name) },
    mark(ofState(row.state)),
    h("span", { class: "main" }, `${row.kind} ${full(row.namespace, row.name)}`),
    h("span", { class: "sub" }, row.problem || row.clusters.find((copy) => copy.m)?.m || "")))));
  if (rows.length > LISTED) items.push(h("li", {}, h("a", { class: "all", href: "#/workloads?state=problems" }, `All ${plural(rows.length, "object")} with problems`)));
  if (items.length) return items.slice(0, LISTED + 1);
  return [h("li", { class: "quiet" }, store.complete ? "Nothing: all members are ready and all objects applied." : "Reading the hub …")];
}

function changes() {
  const rows = store.changes.slice(0, LISTED + 1).map((change) => {
    const row = find(change.kind, change.namespace, change.name);
    const about = `${change.kind} ${full(change.namespace, change.name)}`;
    const href = row ? link(row.apiVersion, row.kind, row.namespace, row.name) : "#/changes";
    return h("li", {}, h("a", { href, class: change.warning ? "warning" : "" },
      h("time", { class: "when" }, clock(change.time)), h("span", { class: "main" }, about),
      h("span", { class: "sub", title: change.message }, change.message ? `${change.what}: ${change.message}` : change.what)));
  });
  return rows.length ? rows : [h("li", { class: "quiet" }, store.complete ? "No changes are known." : "Reading the hub …")];
}
