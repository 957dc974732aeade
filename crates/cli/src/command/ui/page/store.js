// What the page knows: rows by key, the time line, the state of the connection. It follows the server's changes.

import { full, isTrouble } from "./words.js";

const CHANGES = 1000;

export const store = {
  members: new Map(),
  workloads: new Map(),
  distributions: new Map(),
  policies: new Map(),
  // By `kind namespace/name`: the key of the workload.
  byObject: new Map(),
  // By the key of a workload: the keys of those it needs.
  needs: new Map(),
  changes: [],
  sources: {},
  link: "connecting",
  problem: "",
  // True once all rows of the first state are here.
  complete: false,
  version: 0,
};

const maps = { m: store.members, b: store.workloads, d: store.distributions, p: store.policies };
const seenChanges = new Set();
const listeners = new Set();
let position = { run: "", revision: 0 };
let scheduled = false;
let token = "";

// Calls back after changes, once a frame at the most. Returns what ends that.
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function changed() {
  store.version += 1;
  if (scheduled) return;
  scheduled = true;
  // A hidden page has no frames.
  const after = document.hidden ? (call) => setTimeout(call, 250) : requestAnimationFrame;
  after(() => {
    scheduled = false;
    for (const listener of [...listeners]) listener();
  });
}

// The token of the page's address, which then leaves it: an address is copied and shown.
export function takeToken() {
  const given = /^#token=([0-9a-f]+)$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem("token", given[1]);
    history.replaceState(null, "", "#/");
  }
  token = sessionStorage.getItem("token") ?? "";
}

const headers = () => ({ Authorization: `Bearer ${token}` });

// An answer about one object.
export async function ask(question, kind, namespace, name, signal) {
  const query = `object=${encodeURIComponent(`${kind}/${name}`)}&namespace=${encodeURIComponent(namespace)}`;
  const answer = await fetch(`api/${question}?${query}`, { headers: headers(), signal });
  const text = await answer.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(text.trim() || `the server answered ${answer.status}`);
  }
  if (!answer.ok) throw new Error(value.error ?? `the server answered ${answer.status}`);
  return value;
}

// Follows the changes, and connects again when the connection ends.
export async function follow() {
  let pause = 500;
  for (;;) {
    try {
      await read(() => {
        pause = 500;
      });
      store.problem = "the connection ended";
    } catch (error) {
      store.problem = error.message;
      if (error.final) {
        store.link = "refused";
        changed();
        return;
      }
    }
    store.link = "lost";
    changed();
    await new Promise((wake) => setTimeout(wake, pause));
    pause = Math.min(pause * 2, 10_000);
  }
}

async function read(begun) {
  const query = `run=${position.run}&since=${position.revision}`;
  const answer = await fetch(`api/changes?${query}`, { headers: headers() });
  if (!answer.ok) {
    const error = new Error((await answer.text()).trim());
    error.final = answer.status === 401 || answer.status === 403;
    throw error;
  }
  begun();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let parts = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    // A large message comes in many pieces: they are joined once.
    let rest = value;
    let end;
    if (parts.length && parts.at(-1).endsWith("\n") && rest.startsWith("\n")) {
      message(parts.join("").slice(0, -1));
      parts = [];
      rest = rest.slice(1);
    }
    while ((end = rest.indexOf("\n\n")) >= 0) {
      message(parts.join("") + rest.slice(0, end));
      parts = [];
      rest = rest.slice(end + 2);
    }
    if (rest) parts.push(rest);
  }
}

function message(text) {
  let data = "";
  for (const line of text.split("\n")) {
    if (line.startsWith("data: ")) data = line.slice(6);
    else if (line.startsWith("id: ")) {
      const [run, revision] = line.slice(4).split("/");
      position = { run, revision: Number(revision) };
    }
  }
  if (data) take(JSON.parse(data));
}

// Takes in a message of the server.
export function take(message) {
  if (message.reset) {
    for (const map of Object.values(maps)) map.clear();
    store.byObject.clear();
    store.needs.clear();
    store.changes = [];
    seenChanges.clear();
    store.complete = false;
  }
  for (const [key, row] of Object.entries(message.rows)) {
    if (key[0] === "b") workload(key, row);
    else if (key[0] === "m") member(key, row);
    else maps[key[0]]?.set(key, { key, ...row });
  }
  for (const key of message.gone) {
    if (key[0] === "b") unlink(store.workloads.get(key));
    maps[key[0]]?.delete(key);
  }
  for (const change of message.changes) note(change);
  if (message.changes.length) {
    store.changes.sort((a, b) => b.time - a.time);
    for (const old of store.changes.splice(CHANGES)) seenChanges.delete(old.id);
  }
  if (message.sources) store.sources = message.sources;
  if (message.complete) store.complete = Object.values(store.sources).every((source) => source.synced || source.error);
  store.link = "live";
  store.problem = "";
  changed();
}

function member(key, row) {
  store.members.set(key, { key, ...row.member, ...row.tally });
}

function workload(key, row) {
  unlink(store.workloads.get(key));
  row.key = key;
  row.neededBy ??= [];
  row.applied = row.clusters.filter((copy) => copy.s === "Applied").length;
  const clusters = row.clusters.map((copy) => copy.c).join(" ");
  row.text = `${row.kind} ${full(row.namespace, row.name)} ${row.policy} ${clusters}`.toLowerCase();
  store.workloads.set(key, row);
  store.byObject.set(`${row.kind} ${full(row.namespace, row.name)}`, key);
  for (const referrer of row.neededBy) {
    if (!store.needs.has(referrer)) store.needs.set(referrer, new Set());
    store.needs.get(referrer).add(key);
  }
}

function unlink(row) {
  if (!row) return;
  store.byObject.delete(`${row.kind} ${full(row.namespace, row.name)}`);
  for (const referrer of row.neededBy) {
    const needs = store.needs.get(referrer);
    needs?.delete(row.key);
    if (needs?.size === 0) store.needs.delete(referrer);
  }
}

function note(change) {
  change.id = `${change.time} ${change.kind} ${full(change.namespace, change.name)} ${change.what}`;
  if (seenChanges.has(change.id)) return;
  seenChanges.add(change.id);
  store.changes.push(change);
}

// The workload of a name; undefined if none is propagated.
export const find = (kind, namespace, name) => store.workloads.get(store.byObject.get(`${kind} ${full(namespace, name)}`));

export const troubled = () => [...store.workloads.values()].filter((row) => isTrouble(row.state));

// True if what is recorded of a member may be old.
export const isUnknown = (cluster) => {
  const row = store.members.get(`m/${cluster}`);
  return row !== undefined && row.ready !== "True";
};
