// All propagated objects, with search.

import { h, fill, say } from "./dom.js";
import { store, isUnknown } from "./store.js";
import { Rows } from "./rows.js";
import { RANK, age, isTrouble, link, mark, number, ofCopy, ofPresence, ofState } from "./words.js";

const CHIPS = 4;
const FILTERS = [["", "All"], ["problems", "Problems"], ["pending", "Pending"], ["evicting", "Evictions"], ["suspended", "Suspended"], ["applied", "Applied"]];
const FIELDS = {
  kind: (row) => row.kind,
  ns: (row) => row.namespace,
  namespace: (row) => row.namespace,
  name: (row) => row.name,
  policy: (row) => row.policy,
  state: (row) => `${row.state} ${ofState(row.state)[0]}`,
};

export function workloads(parameters) {
  let order = ORDERS.trouble;
  let state = parameters.get("state") ?? "";
  const search = h("input", {
    type: "search", id: "search", placeholder: "Search: web   kind:Deployment   ns:shop   cluster:member1   policy:gold", "aria-label": "Search objects",
    autocomplete: "off", spellcheck: "false", value: parameters.get("q") ?? "",
    oninput: () => apply(true),
    onkeydown: (event) => {
      if (event.key === "ArrowDown" || event.key === "Enter") {
        event.preventDefault();
        table.select(Math.max(0, table.active));
        table.focus();
      }
    },
  });
  const filters = h("div", { class: "filters", role: "group", "aria-label": "States" });
  const found = h("span", { class: "found", role: "status", "aria-live": "polite" });
  const table = new Rows({
    label: "Objects", empty: "", open: (row) => (location.hash = link(row.apiVersion, row.kind, row.namespace, row.name)),
    columns: [
      { title: "State", width: "minmax(150px, .7fr)", sort: () => sort(ORDERS.trouble), sorted: true, cell: (row) => mark(ofState(row.state)) },
      { title: "Object", width: "minmax(220px, 1.5fr)", sort: () => sort(ORDERS.name), cell: object },
      { title: "Clusters", width: "minmax(300px, 2fr)", cell: clusters },
      { title: "Applied", width: "76px", class: "right", cell: (row) => `${row.applied}/${row.clusters.length}` },
      { title: "Policy", width: "minmax(110px, .8fr)", cell: policy },
      { title: "Age", width: "56px", class: "right", sort: () => sort(ORDERS.newest), cell: (row) => age(row.created) },
      { title: "Problem", width: "minmax(160px, 1.6fr)", cell: problem },
    ],
  });
  const element = h("div", { class: "workloads fills" },
    h("div", { class: "bar-top" }, h("div", { class: "search" }, search, h("kbd", { "aria-hidden": "true" }, "/")), filters, found),
    table.element);

  function sort(by) {
    order = by;
    apply();
  }

  function apply(typed = false) {
    const matches = matcher(search.value);
    const counts = {};
    const rows = [];
    for (const row of store.workloads.values()) {
      if (!matches(row)) continue;
      for (const [filter] of FILTERS) if (isIn(filter, row)) counts[filter] = (counts[filter] ?? 0) + 1;
      if (isIn(state, row)) rows.push(row);
    }
    rows.sort(order);
    if (typed) table.body.scrollTop = 0;
    say(table.empty, store.complete ? "No object matches." : "Reading the hub …");
    table.show(rows);
    say(found, `${number(rows.length)} of ${number(store.workloads.size)} objects`);
    fill(filters, FILTERS.map(([filter, title]) => h("button", {
      type: "button", class: "filter", "aria-pressed": String(filter === state),
      onclick: () => {
        state = filter;
        apply(true);
        filters.querySelector("[aria-pressed=true]")?.focus();
      },
    }, title, h("span", { class: "count" }, number(counts[filter] ?? 0)))));
    if (typed) remember();
  }

  function remember() {
    const query = new URLSearchParams();
    if (search.value) query.set("q", search.value);
    if (state) query.set("state", state);
    history.replaceState(null, "", `#/workloads${query.size ? `?${query}` : ""}`);
  }

  return {
    title: "Objects",
    element,
    focus: () => table.focus(),
    search: () => {
      search.focus();
      search.select();
    },
    back() {
      if (!search.value && !state) return false;
      search.value = "";
      state = "";
      apply(true);
      return true;
    },
    update: () => apply(),
    tick: () => table.refresh(),
    end: () => table.end(),
    table,
  };
}

const byName = (a, b) => a.sortName < b.sortName ? -1 : a.sortName > b.sortName ? 1 : 0;
const named = (row) => (row.sortName ??= `${row.namespace}/${row.name} ${row.kind}`);
const ORDERS = {
  trouble: (a, b) => RANK[a.state] - RANK[b.state] || (named(a), named(b), byName(a, b)),
  name: (a, b) => (named(a), named(b), byName(a, b)),
  newest: (a, b) => (b.created ?? 0) - (a.created ?? 0),
};

const isIn = (filter, row) => !filter || (filter === "problems" ? isTrouble(row.state) && row.state !== "evicting" : row.state === filter);

// All words must match; `field:word` only that field, `cluster:word` exactly one of the clusters.
export function matcher(text) {
  const tests = text.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const [, field, value] = /^([a-z]+):(.*)$/.exec(word) ?? [];
    if (field === "cluster" && value) return (row) => row.clusters.some((copy) => copy.c === value);
    if (FIELDS[field]) return (row) => FIELDS[field](row).toLowerCase().includes(value);
    return (row) => row.text.includes(word);
  });
  return (row) => tests.every((test) => test(row));
}

const object = (row) => [
  h("a", { class: "main", tabindex: "-1", href: link(row.apiVersion, row.kind, row.namespace, row.name) }, row.name),
  h("div", { class: "sub" }, row.namespace ? `${row.kind} · ${row.namespace}` : row.kind),
];

function clusters(row) {
  let shown = row.clusters;
  if (shown.length > CHIPS) {
    // Those with trouble are among the first.
    const trouble = (copy) => (copy.s === "Applied" && copy.h !== "Unhealthy" ? 1 : 0);
    shown = [...shown].sort((a, b) => trouble(a) - trouble(b)).slice(0, CHIPS - 1);
  }
  const rest = row.clusters.length - shown.length;
  return h("div", { class: "chips" }, shown.map(chip), rest > 0 && h("span", { class: "chip off rest" }, `+${number(rest)}`));
}

export function chip(copy) {
  const words = isUnknown(copy.c) ? ofPresence("Unknown") : ofCopy(copy);
  const replicas = copy.r !== undefined ? `×${copy.r}` : "";
  return h("span", { class: `chip ${words[1]}`, title: `${copy.c}: ${words[0]}${copy.m ? `: ${copy.m}` : ""}` },
    h("span", { class: "sign", "aria-hidden": "true" }, words[2]), h("span", { class: "name" }, copy.c), replicas && h("span", { class: "replicas" }, replicas), h("span", { class: "hidden" }, ` ${words[0]}`));
}

function problem(row) {
  const text = row.problem || row.clusters.find((copy) => copy.m)?.m || "";
  return h("span", { class: "problem", title: text }, text);
}

const policy = (row) => (row.policy ? h("span", { title: row.policy }, row.policy.startsWith(`${row.namespace}/`) ? row.policy.slice(row.namespace.length + 1) : row.policy) : h("span", { class: "sub" }, row.neededBy.length ? "by its referrers" : "–"));
