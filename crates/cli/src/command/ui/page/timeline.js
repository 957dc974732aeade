// The time line of the fleet: transitions of conditions, scheduling, evictions, and Events of the control plane.

import { h, say } from "./dom.js";
import { store, find } from "./store.js";
import { Rows } from "./rows.js";
import { clock, day, full, link, number } from "./words.js";

export function timeline(parameters) {
  let warnings = false;
  const search = h("input", { type: "search", placeholder: "Search the changes", "aria-label": "Search changes", autocomplete: "off", spellcheck: "false", value: parameters.get("q") ?? "", oninput: () => update() });
  const only = h("button", {
    type: "button", class: "filter", "aria-pressed": "false",
    onclick: () => {
      warnings = !warnings;
      only.setAttribute("aria-pressed", String(warnings));
      update();
    },
  }, "Warnings and evictions only");
  const found = h("span", { class: "found", role: "status", "aria-live": "polite" });
  const target = (change) => {
    const row = find(change.kind, change.namespace, change.name);
    if (row) return link(row.apiVersion, row.kind, row.namespace, row.name);
    return change.kind === "Cluster" ? `#/workloads?q=${encodeURIComponent(`cluster:${change.name}`)}` : undefined;
  };
  const table = new Rows({
    label: "Changes", empty: "", key: (change) => change.id,
    open: (change) => {
      const href = target(change);
      if (href) location.hash = href;
    },
    columns: [
      { title: "Time", width: "130px", cell: (change) => [h("div", { class: "main" }, clock(change.time)), h("div", { class: "sub" }, day(change.time))] },
      { title: "Object", width: "minmax(220px, 1.2fr)", cell: (change) => [h("div", { class: "main" }, full(change.namespace, change.name)), h("div", { class: "sub" }, change.kind)] },
      { title: "Change", width: "minmax(220px, 1.3fr)", cell: (change) => [h("div", { class: `main ${tone(change)}` }, change.what), h("div", { class: "sub" }, change.source)] },
      { title: "Message", width: "minmax(240px, 3fr)", cell: (change) => h("span", { class: "lines", title: change.message }, change.message) },
    ],
  });
  const element = h("div", { class: "changes fills" }, h("div", { class: "bar-top" }, h("div", { class: "search" }, search, h("kbd", { "aria-hidden": "true" }, "/")), only, found), table.element);
  function update() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = store.changes.filter((change) => {
      if (warnings && !tone(change)) return false;
      const text = `${change.kind} ${change.namespace}/${change.name} ${change.what} ${change.message}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    say(table.empty, store.complete ? "No change matches." : "Reading the hub …");
    table.show(rows);
    say(found, `${number(rows.length)} of the latest ${number(store.changes.length)} changes`);
  }
  return {
    title: "Changes", element, update, focus: () => table.focus(), end: () => table.end(),
    search: () => search.focus(),
    back() {
      if (!search.value) return false;
      search.value = "";
      update();
      return true;
    },
  };
}

function tone(change) {
  if (change.warning || /=False|=Unknown/.test(change.what)) return "bad";
  return ["eviction", "taint", "health"].includes(change.source) ? "warn" : "";
}
