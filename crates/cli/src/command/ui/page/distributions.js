// ResourceDistributions, and policies.

import { h, say } from "./dom.js";
import { store } from "./store.js";
import { Rows } from "./rows.js";
import { age, full, isTrouble, mark, number } from "./words.js";

function list(title, label, table, rows, empty) {
  const element = h("div", { class: "fills" }, h("h1", { class: "hidden" }, title), table.element);
  return {
    title, element, focus: () => table.focus(), end: () => table.end(),
    update() {
      say(table.empty, store.complete ? empty : "Reading the hub …");
      table.show(rows());
    },
  };
}

export function distributions() {
  const state = (row) => {
    if (row.failed > 0) return ["incomplete", "bad", "▲"];
    return row.succeeded < row.desired ? ["pending", "info", "◐"] : ["complete", "ok", "●"];
  };
  const table = new Rows({
    label: "Distributions",
    columns: [
      { title: "State", width: "130px", cell: (row) => mark(state(row)) },
      { title: "Distribution", width: "minmax(180px, 1.2fr)", cell: (row) => [h("div", { class: "main" }, row.name), h("div", { class: "sub" }, age(row.created))] },
      { title: "Object", width: "minmax(180px, 1.2fr)", cell: (row) => [h("div", { class: "main" }, row.object), h("div", { class: "sub" }, row.sourceNamespace ? `${row.kind} of ${row.sourceNamespace}` : row.kind)] },
      { title: "Namespaces", width: "100px", class: "right", cell: (row) => number(row.desired) },
      { title: "Ready", width: "80px", class: "right", cell: (row) => number(row.succeeded) },
      { title: "Failed", width: "80px", class: "right", cell: (row) => number(row.failed) },
      { title: "Conflicts", width: "90px", class: "right", cell: (row) => number(row.conflicts) },
      { title: "Message", width: "minmax(240px, 3fr)", cell: (row) => h("span", { class: "lines", title: row.message }, row.message) },
    ],
  });
  const rows = () => [...store.distributions.values()].sort((a, b) => b.failed - a.failed || a.name.localeCompare(b.name));
  return list("Distributions", "Distributions", table, rows, "No ResourceDistributions.");
}

export function policies() {
  const used = new Map();
  const name = (row) => full(row.namespace, row.name);
  const table = new Rows({
    label: "Policies", open: (row) => (location.hash = `#/workloads?q=${encodeURIComponent(`policy:${name(row)}`)}`),
    columns: [
      { title: "Policy", width: "minmax(220px, 2fr)", cell: (row) => [h("div", { class: "main" }, row.name), h("div", { class: "sub" }, row.namespace ? `PropagationPolicy · ${row.namespace}` : "ClusterPropagationPolicy")] },
      { title: "Objects", width: "110px", class: "right", cell: (row) => number(row.objects) },
      { title: "With problems", width: "130px", class: "right", cell: (row) => (row.bad ? h("strong", { class: "bad" }, number(row.bad)) : h("span", { class: "sub" }, "0")) },
      { title: "Age", width: "90px", class: "right", cell: (row) => age(row.created) },
      { title: "", width: "3fr", cell: () => "" },
    ],
  });
  const rows = () => {
    used.clear();
    for (const row of store.workloads.values()) {
      if (!row.policy) continue;
      const of = used.get(row.policy) ?? { objects: 0, bad: 0 };
      of.objects += 1;
      of.bad += isTrouble(row.state) ? 1 : 0;
      used.set(row.policy, of);
    }
    return [...store.policies.values()].map((row) => ({ ...row, ...(used.get(name(row)) ?? { objects: 0, bad: 0 }) })).sort((a, b) => b.bad - a.bad || name(a).localeCompare(name(b)));
  };
  return list("Policies", "Policies", table, rows, "No policies.");
}
