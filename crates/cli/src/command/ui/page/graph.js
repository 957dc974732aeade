// The graph of an object: it, its dependencies, and the clusters of each. Columns from left to right; lines have the state of the copy.

import { h, svg, fill } from "./dom.js";
import { store, find, isUnknown } from "./store.js";
import { full, link, mark, ofCopy, ofPresence, plural } from "./words.js";

const NODE = { width: 232, height: 54, gap: 14, column: 128 };
// More clusters than this are drawn together where all their copies have the same states.
const SINGLE = 8;

// The model: objects with their depth and references, and copies. `tree` is the answer of the server, if it is there.
export function model(root, tree) {
  const objects = new Map();
  const edges = new Map();
  const id = (kind, namespace, name) => `${kind} ${full(namespace, name)}`;
  const add = (object, depth, more = {}) => {
    const key = id(object.kind, object.namespace ?? "", object.name);
    const held = objects.get(key);
    if (held) {
      held.depth = Math.max(held.depth, depth);
      return key;
    }
    objects.set(key, { key, depth, kind: object.kind, namespace: object.namespace ?? "", name: object.name, apiVersion: object.apiVersion, ...more });
    return key;
  };
  const connect = (from, to, optional) => edges.set(`${from}>${to}`, { from, to, optional });
  const walk = (node, depth, parent) => {
    const key = add(node.object, depth, { exists: node.exists, copies: node.clusters.map((each) => ({ c: each.cluster, s: each.presence, m: each.message })) });
    if (parent) connect(parent, key, node.optional);
    if (depth < 12) for (const each of node.dependencies) walk(each, depth + 1, key);
  };
  if (tree) walk(tree, 0);
  else add(root, 0);
  const first = id(root.kind, root.namespace, root.name);
  // What the watches have is newer than the tree, and may have more.
  const live = find(root.kind, root.namespace, root.name);
  for (const key of live ? store.needs.get(live.key) ?? [] : []) {
    const row = store.workloads.get(key);
    if (!row) continue;
    const known = objects.has(id(row.kind, row.namespace, row.name));
    const at = add(row, 1);
    if (!known) connect(first, at, false);
  }
  for (const object of objects.values()) {
    const into = [...edges.values()].filter((edge) => edge.to === object.key);
    object.optional = into.length > 0 && into.every((edge) => edge.optional);
    const row = find(object.kind, object.namespace, object.name);
    if (row) {
      object.copies = row.clusters;
      object.apiVersion = row.apiVersion;
      object.exists = true;
    }
    object.copies ??= [];
  }
  return { objects: [...objects.values()], edges: [...edges.values()], clusters: grouped([...objects.values()]) };
}

const wordsOf = (copy) => (isUnknown(copy.c) ? ofPresence("Unknown") : ofCopy(copy));

// The clusters; those with the same copies in the same states as one, if there are many.
function grouped(objects) {
  const clusters = new Map();
  for (const object of objects) {
    for (const copy of object.copies) {
      if (!clusters.has(copy.c)) clusters.set(copy.c, { names: [copy.c], copies: [] });
      clusters.get(copy.c).copies.push({ object: object.key, words: wordsOf(copy), copy });
    }
  }
  const all = [...clusters.values()].sort((a, b) => a.names[0].localeCompare(b.names[0], "en", { numeric: true }));
  if (all.length <= SINGLE) return all;
  const groups = new Map();
  for (const each of all) {
    const key = each.copies.map((copy) => `${copy.object}=${copy.words[0]}`).sort().join("|");
    if (groups.has(key)) groups.get(key).names.push(...each.names);
    else groups.set(key, each);
  }
  return [...groups.values()];
}

// Draws the graph into an element.
export function draw(element, root, tree) {
  const { objects, edges, clusters } = model(root, tree);
  const depth = Math.max(...objects.map((object) => object.depth));
  const columns = Array.from({ length: depth + 1 }, (_, at) => objects.filter((object) => object.depth === at));
  columns.push(clusters);
  const step = NODE.height + NODE.gap;
  const most = Math.max(1, ...columns.map((column) => column.length));
  // Room for lines above the first row and below the last.
  const [width, height] = [columns.length * NODE.width + (columns.length - 1) * NODE.column, most * step + NODE.gap];
  const at = new Map();
  columns.forEach((column, x) => {
    const top = (height - (column.length * step - NODE.gap)) / 2;
    column.forEach((node, y) => at.set(node, { x: x * (NODE.width + NODE.column), y: top + y * step }));
  });
  const byKey = new Map(objects.map((object) => [object.key, object]));
  const lines = [];
  const used = new Map();
  // A line across other columns goes through a gap of each.
  const route = (from, to, style, ends) => {
    const [start, end] = [at.get(from), at.get(to)];
    const points = [[start.x + NODE.width, start.y + NODE.height / 2]];
    const [target, first, last] = [[end.x, end.y + NODE.height / 2], columns.findIndex((each) => each.includes(from)), columns.findIndex((each) => each.includes(to))];
    for (let x = first + 1; x < last; x += 1) {
      const left = x * (NODE.width + NODE.column);
      const straight = points[0][1] + ((target[1] - points[0][1]) * (x - first)) / (last - first);
      const gaps = columns[x].map((node) => at.get(node).y - NODE.gap / 2);
      if (gaps.length) gaps.push(gaps.at(-1) + step);
      const gap = gaps.length ? gaps.reduce((best, each) => (Math.abs(each - straight) < Math.abs(best - straight) ? each : best)) : straight;
      // Lines of one gap lie beside each other.
      const nth = used.get(`${x} ${gap}`) ?? 0;
      used.set(`${x} ${gap}`, nth + 1);
      const beside = gap + ((nth % 5) - 2) * 2.2;
      points.push([left, beside], [left + NODE.width, beside]);
    }
    points.push(target);
    return curve(points, style, ends);
  };
  for (const edge of edges) {
    lines.push(route(byKey.get(edge.from), byKey.get(edge.to), `line needs${edge.optional ? " optional" : ""}`, [edge.from, edge.to]));
  }
  for (const cluster of clusters) {
    for (const copy of cluster.copies) {
      lines.push(route(byKey.get(copy.object), cluster, `line ${copy.words[1]}`, [copy.object, cluster.names[0]]));
    }
  }
  // Trouble lies on top.
  lines.sort((a, b) => weight(a) - weight(b));
  const nodes = [...objects.map((object) => objectNode(object)), ...clusters.map((cluster) => clusterNode(cluster))];
  [...objects, ...clusters].forEach((node, index) => {
    nodes[index].style.transform = `translate(${at.get(node).x}px, ${at.get(node).y}px)`;
    const key = node.key ?? node.names[0];
    const only = (on) => () => {
      element.classList.toggle("aimed", on);
      for (const line of lines) line.classList.toggle("aimed", on && line.ends.includes(key));
    };
    for (const [event, on] of [["mouseenter", true], ["focus", true], ["mouseleave", false], ["blur", false]]) nodes[index].addEventListener(event, only(on));
  });
  const plane = h("div", { class: "plane" }, svg("svg", { width, height, "aria-hidden": "true" }, lines), nodes);
  plane.style.width = `${width}px`;
  plane.style.height = `${height}px`;
  const held = { left: element.scrollLeft, top: element.scrollTop };
  fill(element, plane);
  element.scrollTo(held.left, held.top);
  return { objects, clusters };
}

const weight = (line) => ["off", "ok", "needs", "info", "warn", "bad"].findIndex((tone) => line.classList.contains(tone));

// Bends between columns, straight through a gap.
function curve(points, style, ends) {
  let path = `M${points[0]}`;
  for (let index = 1; index < points.length; index += 1) {
    const [[x1, y1], [x2, y2]] = [points[index - 1], points[index]];
    const bend = (x2 - x1) / 2;
    path += index % 2 ? `C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` : `L${x2} ${y2}`;
  }
  const line = svg("path", { d: path, class: style });
  line.ends = ends;
  return line;
}

function objectNode(object) {
  const bad = object.copies.filter((copy) => ["bad", "warn"].includes(wordsOf(copy)[1])).length;
  const applied = object.copies.filter((copy) => wordsOf(copy)[1] === "ok").length;
  const state = object.exists === false
    ? object.optional ? ["optional, missing", "off", "○"] : ["missing on the hub", "bad", "▲"]
    : object.copies.length === 0
      ? ["on no cluster", "off", "○"]
      : [`${applied} of ${plural(object.copies.length, "cluster")}`, bad ? "bad" : applied === object.copies.length ? "ok" : "info", bad ? "▲" : applied === object.copies.length ? "●" : "◐"];
  return h("a", { class: `node ${object.depth === 0 ? "root" : ""} ${state[1]}`, href: link(object.apiVersion, object.kind, object.namespace, object.name) },
    h("span", { class: "kind", title: object.kind }, object.kind), h("span", { class: "main", title: full(object.namespace, object.name) }, object.name), mark(state));
}

function clusterNode(cluster) {
  const worst = ["bad", "warn", "info", "off", "ok"].find((tone) => cluster.copies.some((copy) => copy.words[1] === tone)) ?? "off";
  const words = cluster.copies.find((copy) => copy.words[1] === worst)?.words;
  const one = cluster.names.length === 1;
  const name = one ? cluster.names[0] : plural(cluster.names.length, "cluster");
  const replicas = cluster.copies.find((copy) => copy.copy.r !== undefined)?.copy.r;
  return h("a", { class: `node cluster ${worst}`, title: cluster.names.join(", "), href: one ? `#/workloads?q=${encodeURIComponent(`cluster:${name}`)}` : "#/" },
    h("span", { class: "kind" }, "Cluster"), h("span", { class: "main" }, one && replicas !== undefined ? `${name} ×${replicas}` : name), words && mark(words));
}
