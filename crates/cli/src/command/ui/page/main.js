// The page: views by address, keyboard, theme, and the state of the connection.

import { fill, h, say } from "./dom.js";
import { follow, store, subscribe, takeToken } from "./store.js";
import { distributions, policies } from "./distributions.js";
import { objectView } from "./object.js";
import { overview } from "./overview.js";
import { timeline } from "./timeline.js";
import { workloads } from "./workloads.js";
import { number } from "./words.js";

const VIEWS = [
  ["", "Overview", overview, () => undefined],
  ["workloads", "Objects", workloads, () => store.workloads.size],
  ["policies", "Policies", policies, () => store.policies.size],
  ["distributions", "Distributions", distributions, () => store.distributions.size],
  ["changes", "Changes", timeline, () => undefined],
];
const THEMES = ["auto", "light", "dark"];

const view = document.getElementById("view");
let shown;
let routed = false;

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [first, ...rest] = path.split("/").map(decodeURIComponent);
  const parameters = new URLSearchParams(query);
  const known = VIEWS.find(([name]) => name === first) ?? VIEWS[0];
  shown?.end();
  shown = first === "object" && rest.length === 3 ? objectView(rest, parameters) : known[2](parameters);
  shown.name = first === "object" ? "workloads" : known[0];
  fill(view, shown.element);
  document.title = `${shown.title} · Entourage`;
  update();
  // The first view leaves the focus where the browser has it.
  if (routed) shown.focus?.();
  routed = true;
}

function update() {
  shown?.update();
  fill(document.getElementById("nav"), VIEWS.map(([name, title, , count], index) => h("a", { href: `#/${name}`, "aria-current": shown?.name === name ? "page" : undefined, title: `${title} (${index + 1})` }, title, count() !== undefined && h("span", { class: "count" }, number(count())))));
  connection();
}

function connection() {
  const link = document.getElementById("link");
  const words = { live: store.complete ? "live" : "reading the hub", connecting: "connecting", lost: "connection lost", refused: "no access" };
  link.className = `link ${store.link} ${store.complete ? "complete" : ""}`;
  say(link, words[store.link]);
  document.documentElement.dataset.complete = String(store.complete);
  const notice = document.getElementById("notice");
  const unread = Object.entries(store.sources).filter(([, source]) => source.error);
  let text = unread.map(([name, source]) => `${name} cannot be read, and are shown as last known: ${source.error}`).join("; ");
  if (store.link === "refused") text = `${store.problem}. Open the address that \`entourage ui\` printed.`;
  if (store.link === "lost") text = `The connection to \`entourage ui\` is lost: what is shown is of before. ${store.problem}`;
  notice.hidden = !text;
  say(notice, text);
}

function theme(next) {
  const stored = localStorage.getItem("theme");
  const current = next ?? (THEMES.includes(stored) ? stored : "auto");
  localStorage.setItem("theme", current);
  if (current === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = current;
  const button = document.getElementById("theme");
  say(button, { auto: "Auto", light: "Light", dark: "Dark" }[current]);
  button.title = "Light, dark, or as the system (t)";
  button.setAttribute("aria-label", `Colours: ${current}`);
  button.dataset.current = current;
}

function turnTheme() {
  const at = THEMES.indexOf(document.getElementById("theme").dataset.current);
  theme(THEMES[(at + 1) % THEMES.length]);
}

function openAsk() {
  document.getElementById("ask").showModal();
  document.getElementById("ask-object").select();
}

function askNow() {
  const [kind, name] = document.getElementById("ask-object").value.trim().split("/");
  if (!kind || !name) {
    document.getElementById("ask-object").focus();
    return;
  }
  const namespace = document.getElementById("ask-namespace").value.trim() || "-";
  document.getElementById("ask").close();
  location.hash = `#/object/${[kind, namespace, name].map(encodeURIComponent).join("/")}?tab=why`;
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest?.("input, textarea, select");
  const dialog = document.querySelector("dialog[open]");
  if (dialog) {
    if (dialog.id === "ask" && event.key === "Enter" && typing) askNow();
    return;
  }
  if (event.key === "Escape") {
    if (typing && !typing.value) typing.blur();
    if (shown?.back?.()) event.preventDefault();
    return;
  }
  if (typing) return;
  const index = Number(event.key) - 1;
  if (VIEWS[index]) location.hash = `#/${VIEWS[index][0]}`;
  else if (event.key === "/") shown?.search ? shown.search() : (location.hash = "#/workloads");
  else if (event.key === "?") document.getElementById("keys").showModal();
  else if (event.key === "a") openAsk();
  else if (event.key === "t") turnTheme();
  else if (["ArrowLeft", "ArrowRight"].includes(event.key) && shown?.turn) shown.turn(event.key === "ArrowRight" ? 1 : -1);
  else return;
  event.preventDefault();
}

takeToken();
theme();
document.getElementById("theme").addEventListener("click", turnTheme);
document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());
document.getElementById("asks").addEventListener("click", openAsk);
document.getElementById("ask-now").addEventListener("click", askNow);
for (const button of document.querySelectorAll("[data-close]")) button.addEventListener("click", () => button.closest("dialog").close());
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  view.focus();
});
addEventListener("keydown", pressed);
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) {
    takeToken();
    location.reload();
    return;
  }
  route();
});
subscribe(update);
setInterval(() => shown?.tick?.(), 10_000);
route();
follow();
