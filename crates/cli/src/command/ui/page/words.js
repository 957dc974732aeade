// Words, marks and forms of what is shown.

import { h } from "./dom.js";

// The states of a workload, the worst first: word, tone, mark.
export const STATES = {
  notScheduled: ["not scheduled", "bad", "▲"],
  failing: ["failing", "bad", "▲"],
  dependencyMissing: ["dependency missing", "bad", "▲"],
  unhealthy: ["unhealthy", "warn", "◆"],
  evicting: ["being evicted", "warn", "◆"],
  pending: ["pending", "info", "◐"],
  suspended: ["suspended", "off", "■"],
  unplaced: ["on no cluster", "off", "○"],
  applied: ["applied", "ok", "●"],
};

// The states of a copy: those of `entourage get copies`, and the presences of `entourage why`.
const COPIES = {
  Applied: ["applied", "ok", "●"],
  Present: ["present", "ok", "●"],
  Pending: ["pending", "info", "◐"],
  Suspended: ["suspended", "off", "■"],
  Leaving: ["leaving", "warn", "◆"],
  Evicting: ["being evicted", "warn", "◆"],
  Conflict: ["conflict", "bad", "▲"],
  Override: ["override fails", "bad", "▲"],
  InterpretError: ["interpreter fails", "bad", "▲"],
  Contended: ["contended", "bad", "▲"],
  Refused: ["refused", "bad", "▲"],
  NotAllowed: ["not allowed", "bad", "▲"],
  NotApplied: ["not applied", "bad", "▲"],
  KeptAway: ["kept away", "bad", "▲"],
  Unhealthy: ["unhealthy", "warn", "◆"],
  Unknown: ["unknown", "off", "?"],
  Absent: ["absent", "off", "○"],
};

export const ofState = (state) => STATES[state] ?? [state, "off", "?"];
export const ofCopy = (copy) =>
  copy.s === "Applied" && copy.h === "Unhealthy" ? COPIES.Unhealthy : ofPresence(copy.s);
export const ofPresence = (state) => COPIES[state] ?? [state, "off", "?"];
export const RANK = Object.fromEntries(Object.keys(STATES).map((state, index) => [state, index]));
export const isTrouble = (state) => RANK[state] <= RANK.evicting;

// A mark in its colour, with its word.
export const mark = ([word, tone, sign], label = word) =>
  h("span", { class: `state ${tone}`, title: word },
    h("span", { class: "sign", "aria-hidden": "true" }, sign), label && h("span", { class: "word" }, label));

export const number = (value) => value.toLocaleString("en");

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

// `5s`, `3m`, `7h`, `9d`: as `entourage get` has it.
export function age(time, now = Date.now()) {
  if (!time) return "–";
  const seconds = Math.max(0, Math.floor((now - time) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

export const clock = (time) => TIME.format(time);
export const day = (time) => DAY.format(time);
export const moment = (time) => (time ? `${day(time)}, ${clock(time)}` : "");

// `1.5`, `12.3 GiB`.
export function amount(resource, value) {
  if (resource !== "memory") return value >= 100 ? number(Math.round(value)) : String(Math.round(value * 10) / 10);
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${Math.round(value * 10) / 10} ${units[unit]}`;
}

// The group of `apps/v1`; empty for `v1`.
export const group = (apiVersion) => (apiVersion?.includes("/") ? apiVersion.split("/")[0] : "");

// The address of an object's page.
export function link(apiVersion, kind, namespace, name) {
  const of = group(apiVersion);
  return `#/object/${encodeURIComponent(of ? `${kind}.${of}` : kind)}/${encodeURIComponent(namespace || "-")}/${encodeURIComponent(name)}`;
}

export const full = (namespace, name) => (namespace ? `${namespace}/${name}` : name);
