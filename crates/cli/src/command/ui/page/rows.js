// A table of any length: only the rows in sight are in the document.

import { h, fill } from "./dom.js";

const SPARE = 4;

// columns: {title, width, cell(row), sort?}; open(row): what Enter and a click do.
export class Rows {
  constructor({ label, columns, height = 48, open, empty, key = (row) => row.key, compact = false }) {
    Object.assign(this, { columns, height, open, key, rows: [], active: -1, activeKey: undefined, compact });
    this.id = `rows-${Rows.count++}`;
    const template = columns.map((column) => column.width).join(" ");
    this.head = h("div", { class: "row head", role: "row", "aria-rowindex": "1" });
    this.head.style.gridTemplateColumns = template;
    for (const column of columns) this.head.append(this.title(column));
    this.template = template;
    this.space = h("div", { class: "space", role: "rowgroup" });
    this.empty = h("p", { class: "empty" }, empty);
    this.body = h("div", {
      class: "body", tabindex: "0", role: "grid", "aria-label": label,
      onscroll: () => this.later(), onkeydown: (event) => this.pressed(event),
      onfocus: () => this.rows.length && this.active < 0 && this.select(0, false),
    }, h("div", { role: "rowgroup", class: "headgroup" }, this.head), this.space, this.empty);
    this.element = h("div", { class: `rows${compact ? " compact" : ""}` }, this.body);
    this.pool = new Map();
    this.observer = new ResizeObserver(() => this.later());
    this.observer.observe(this.body);
  }

  title(column) {
    const cell = h("div", { class: `cell ${column.class ?? ""}`, role: "columnheader" });
    if (!column.sort) {
      cell.append(column.title);
      return cell;
    }
    cell.setAttribute("aria-sort", column.sorted ? "ascending" : "none");
    cell.append(h("button", {
      type: "button", class: "sort", tabindex: "-1",
      onclick: () => {
        for (const each of this.head.children) if (each.hasAttribute("aria-sort")) each.setAttribute("aria-sort", "none");
        cell.setAttribute("aria-sort", "ascending");
        column.sort();
      },
    }, column.title));
    return cell;
  }

  // Shows these rows; the selected one stays selected.
  show(rows) {
    this.rows = rows;
    if (this.activeKey !== undefined && (!rows[this.active] || this.key(rows[this.active]) !== this.activeKey)) {
      const at = rows.findIndex((row) => this.key(row) === this.activeKey);
      this.active = at;
      if (at < 0) this.activeKey = undefined;
    }
    this.space.style.height = `${rows.length * this.height}px`;
    this.body.setAttribute("aria-rowcount", String(rows.length + 1));
    this.empty.hidden = rows.length > 0;
    this.draw();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const top = Math.max(0, this.body.scrollTop);
    const first = Math.max(0, Math.floor(top / this.height) - SPARE);
    const last = Math.min(this.rows.length, Math.ceil((top + this.body.clientHeight) / this.height) + SPARE);
    const used = new Map();
    for (let index = first; index < last; index += 1) {
      const row = this.rows[index];
      const key = this.key(row);
      let held = this.pool.get(key);
      if (!held || held.row !== row) {
        const element = this.build(row);
        if (held) held.element.replaceWith(element);
        else this.space.append(element);
        held = { row, element, index: -1 };
      }
      if (held.index !== index) {
        held.index = index;
        held.element.style.transform = `translateY(${index * this.height}px)`;
        held.element.setAttribute("aria-rowindex", String(index + 2));
        held.element.id = `${this.id}-${index}`;
      }
      held.element.setAttribute("aria-selected", String(index === this.active));
      used.set(key, held);
    }
    for (const [key, held] of this.pool) if (!used.has(key)) held.element.remove();
    this.pool = used;
    const active = this.active >= first && this.active < last ? `${this.id}-${this.active}` : "";
    if (active) this.body.setAttribute("aria-activedescendant", active);
    else this.body.removeAttribute("aria-activedescendant");
  }

  build(row) {
    const element = h("div", {
      class: "row", role: "row",
      onclick: (event) => {
        this.select(this.rows.indexOf(row), false);
        if (!event.target.closest("a, button") && !getSelection()?.toString()) this.open?.(row);
      },
    });
    element.style.gridTemplateColumns = this.template;
    element.style.height = `${this.height}px`;
    for (const column of this.columns) {
      element.append(h("div", { class: `cell ${column.class ?? ""}`, role: "gridcell" }, column.cell(row)));
    }
    return element;
  }

  // Draws all rows in sight again: ages grow.
  refresh() {
    for (const held of this.pool.values()) held.row = undefined;
    this.draw();
  }

  select(index, scroll = true) {
    if (!this.rows.length) return;
    this.active = Math.max(0, Math.min(index, this.rows.length - 1));
    this.activeKey = this.key(this.rows[this.active]);
    if (scroll) {
      const head = this.head.offsetHeight;
      const top = this.active * this.height;
      const sight = this.body.clientHeight - head;
      if (top < this.body.scrollTop) this.body.scrollTop = top;
      else if (top + this.height > this.body.scrollTop + sight) this.body.scrollTop = top + this.height - sight;
    }
    this.draw();
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.body.clientHeight / this.height) - 1);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page };
    if (event.key in moves) this.select(this.active + moves[event.key]);
    else if (event.key === "Home") this.select(0);
    else if (event.key === "End") this.select(this.rows.length - 1);
    else if (event.key === "Enter" && event.target === this.body && this.rows[this.active]) this.open?.(this.rows[this.active]);
    else return;
    event.preventDefault();
  }

  focus() {
    this.body.focus({ preventScroll: true });
  }

  end() {
    this.observer.disconnect();
    fill(this.element);
  }
}
Rows.count = 0;
