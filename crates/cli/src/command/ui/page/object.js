// One object: its graph, why it is on its clusters or not, and its history.

import { h, fill, say } from "./dom.js";
import { ask, store, find, isUnknown } from "./store.js";
import { draw } from "./graph.js";
import { age, clock, day, full, mark, ofCopy, ofPresence, ofState, plural } from "./words.js";

const TABS = [["graph", "Graph"], ["why", "Why is it here?"], ["history", "History"]];
// After a change of the watches, the tree is asked for again: not more often than this.
const AGAIN = 10_000;

export function objectView([word, space, name], parameters) {
  const [kind, namespace] = [word.split(".")[0], space === "-" ? "" : space];
  // A short name, such as `deploy`, and the namespace of the context become the real ones with the answer.
  const root = { kind, namespace, name, apiVersion: word.includes(".") ? `${word.slice(kind.length + 1)}/v1` : "v1" };
  const ending = new AbortController();
  let tab = TABS.some(([each]) => each === parameters.get("tab")) ? parameters.get("tab") : "graph";
  let answer;
  let past;
  let asked = 0;
  let drawn = "";

  const state = h("span", {});
  const title = h("h1", {});
  const facts = h("p", { class: "facts" });
  const problem = h("p", { class: "problem banner", role: "status", hidden: true });
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "About this object", onkeydown: turn });
  const plane = h("div", { class: "graph", tabindex: "0", role: "group", "aria-label": "The object, its dependencies and their clusters" });
  const reasons = h("div", { class: "reasons" });
  const legend = h("p", { class: "legend" }, [["applied", "ok", "●"], ["pending", "info", "◐"], ["unhealthy or leaving", "warn", "◆"], ["failing", "bad", "▲"], ["unknown or none", "off", "○"]].map((each) => mark(each)));
  const why = h("div", { class: "why" }, waiting("Asking the planners about the state of the hub …"));
  const history_ = h("div", { class: "history" }, waiting("Reading its records …"));
  const panels = { graph: h("div", {}, plane, legend, reasons), why, history: history_ };
  for (const [each, title] of TABS) {
    tabs.append(h("button", { type: "button", role: "tab", id: `tab-${each}`, "aria-controls": `panel-${each}`, onclick: () => show(each) }, title));
    Object.assign(panels[each], { id: `panel-${each}`, className: `panel tab ${panels[each].className}` });
    panels[each].setAttribute("role", "tabpanel");
    panels[each].setAttribute("aria-labelledby", `tab-${each}`);
  }
  const element = h("div", { class: "object" },
    h("div", { class: "headline" }, title, state), facts, problem, tabs, Object.values(panels));

  function turn(event) {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    step(move);
    tabs.querySelector("[aria-selected=true]").focus();
  }

  function step(move) {
    const at = TABS.findIndex(([each]) => each === tab);
    show(TABS[(at + move + TABS.length) % TABS.length][0]);
  }

  function show(next) {
    tab = next;
    for (const [each] of TABS) {
      const button = tabs.querySelector(`#tab-${each}`);
      button.setAttribute("aria-selected", String(each === tab));
      button.tabIndex = each === tab ? 0 : -1;
      panels[each].hidden = each !== tab;
    }
    const base = location.hash.split("?")[0];
    if (base.startsWith("#/object/")) history.replaceState(null, "", tab === "graph" ? base : `${base}?tab=${tab}`);
    if (tab === "history" && !past) read();
  }

  async function explain() {
    asked = Date.now();
    try {
      answer = await ask("explain", word, namespace, name, ending.signal);
      const { apiVersion, kind: known, namespace: within } = answer.why.object;
      Object.assign(root, { apiVersion, kind: known, namespace: within ?? "" });
      fill(why, explained(answer));
    } catch (error) {
      if (ending.signal.aborted) return;
      fill(why, failed("The explanation cannot be had", error), h("button", { type: "button", class: "primary", onclick: explain }, "Ask again"));
    }
    drawn = "";
    update();
  }

  async function read() {
    try {
      past = await ask("history", word, namespace, name, ending.signal);
      fill(history_, told(past));
    } catch (error) {
      if (!ending.signal.aborted) fill(history_, failed("The history cannot be had", error));
    }
  }

  function update() {
    const row = find(root.kind, root.namespace, name);
    fill(title, h("span", { class: "kind" }, root.kind), full(root.namespace, name));
    fill(state, row ? mark(ofState(row.state)) : store.complete ? mark(["not propagated", "off", "○"]) : "");
    const parts = row
      ? [`${plural(row.clusters.length, "cluster")}`, row.policy ? `policy ${row.policy}` : row.neededBy.length ? `needed by ${plural(row.neededBy.length, "object")}` : "no policy", `bound ${age(row.created)} ago`]
      : [answer ? (answer.exists ? "on the hub, without a binding" : "not on the hub") : " "];
    say(facts, parts.join(" · "));
    problem.hidden = !row?.problem;
    say(problem, row?.problem ?? "");
    // Equal rows are the same objects: nothing is drawn anew for changes elsewhere.
    const needs = row ? [...(store.needs.get(row.key) ?? [])].map((key) => store.workloads.get(key)) : [];
    const unready = [...store.members.values()].filter((member) => member.ready !== "True").map((member) => member.name);
    const now = JSON.stringify([row, needs, unready, Boolean(answer), asked]);
    if (now === drawn) return;
    const isChange = drawn !== "" && answer;
    drawn = now;
    const { objects } = draw(plane, root, answer?.tree);
    fill(reasons, causes(objects));
    if (isChange && Date.now() - asked > AGAIN) {
      past = undefined;
      explain();
      if (tab === "history") read();
    }
  }

  show(tab);
  explain();
  return {
    title: full(namespace, name),
    element,
    focus: () => tabs.querySelector("[aria-selected=true]").focus({ preventScroll: true }),
    turn: step,
    back() {
      history.length > 1 ? history.back() : (location.hash = "#/workloads");
      return true;
    },
    update,
    end: () => ending.abort(),
  };
}

const waiting = (text) => h("p", { class: "wait", role: "status" }, text);
const failed = (what, error) => h("p", { class: "problem banner", role: "alert" }, `${what}: ${error.message}`);

// The copies that are not as they should be, each with its reason.
function causes(objects) {
  const rows = [];
  for (const object of objects) {
    if (object.exists === false && !object.optional) rows.push([`${object.kind} ${full(object.namespace, object.name)}`, "the hub", ["missing", "bad", "▲"], "it is referred to, and is not on the hub"]);
    for (const copy of object.copies) {
      const words = isUnknown(copy.c) ? ofPresence("Unknown") : ofCopy(copy);
      if (words[1] === "ok" && !copy.m) continue;
      rows.push([`${object.kind} ${full(object.namespace, object.name)}`, copy.c, words, copy.m || (isUnknown(copy.c) ? `${copy.c} is not ready: the last known state counts` : "")]);
    }
  }
  if (!rows.length) return h("p", { class: "quiet" }, "All copies are as they should be.");
  return h("table", {}, h("caption", {}, "Copies with a reason"),
    h("thead", {}, h("tr", {}, ["Object", "Cluster", "State", "Reason"].map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, rows.slice(0, 200).map(([object, cluster, words, reason]) => h("tr", {}, h("td", {}, object), h("td", {}, cluster), h("td", {}, mark(words)), h("td", {}, reason)))));
}

function explained({ why, at, remarks }) {
  const groups = new Map();
  for (const each of why.clusters) {
    const key = JSON.stringify([each.presence, each.steps]);
    if (groups.has(key)) groups.get(key).names.push(each.cluster);
    else groups.set(key, { names: [each.cluster], ...each });
  }
  const rank = { KeptAway: 0, Pending: 1, Leaving: 2, Unknown: 3, Present: 4, Absent: 5 };
  const sorted = [...groups.values()].sort((a, b) => (rank[a.presence] ?? 9) - (rank[b.presence] ?? 9));
  return [
    h("section", {}, h("h2", {}, "For all clusters"), steps(why.steps)),
    sorted.map((group) => h("section", {}, h("h2", {}, mark(ofPresence(group.presence)), h("span", { class: "names" }, group.names.join(", "))), steps(group.steps))),
    remarks.length > 0 && h("section", {}, h("h2", {}, "Remarks"), h("ul", { class: "remarks" }, remarks.map((remark) => h("li", {}, remark)))),
    h("p", { class: "sub" }, `The state of the hub at ${clock(at)}, asked as the controllers decide. `, h("code", {}, "entourage why"), " prints the same."),
  ];
}

function steps(all) {
  const passed = all.filter((step) => step.rule === "filter" && step.effect === "note");
  const shown = all.filter((step) => !passed.includes(step));
  const items = shown.map((step) => h("li", { class: step.effect },
    h("span", { class: "effect", "aria-label": { for: "puts it there", against: "keeps it away", note: "note" }[step.effect] }, { for: "+", against: "−", note: "·" }[step.effect]),
    h("span", { class: "rule" }, step.filter ?? step.rule), h("span", { class: "text" }, step.message)));
  if (passed.length) items.push(h("li", { class: "note" }, h("span", { class: "effect", "aria-label": "note" }, "·"), h("span", { class: "rule" }, "filters"), h("span", { class: "text sub" }, `passed: ${passed.map((step) => step.filter).join(", ")}`)));
  return h("ul", { class: "steps" }, items);
}

function told({ entries, exists, remarks }) {
  if (!entries.length) return h("p", { class: "quiet" }, exists ? "No change is recorded." : "The hub has no such object, and no Event about it.");
  const days = new Map();
  for (const entry of [...entries].reverse()) {
    const key = day(entry.time);
    if (!days.has(key)) days.set(key, []);
    days.get(key).push(entry);
  }
  return [
    [...days].map(([date, all]) => h("section", {}, h("h2", {}, date), h("ol", { class: "timeline" }, all.map((entry) => h("li", { class: entry.source },
      h("time", {}, clock(entry.time)), h("span", { class: "what" }, entry.what), h("span", { class: "sub" }, entry.object), entry.message && h("p", { class: "text" }, entry.message)))))),
    remarks.map((remark) => h("p", { class: "problem" }, remark)),
  ];
}
