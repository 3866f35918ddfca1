// What belongs together lights up in all panes: elements with a mark in common, by `data-node`; a click keeps it lit.

import { $, all } from "./elements.js";

let lit = new Set();
let pinned = false;

export const isPinned = () => pinned;
export const isLit = (mark) => lit.has(mark);

export function marksAt(element) {
  const found = element.closest?.("[data-node]") ?? $("[data-node]", element.closest?.("tr") ?? document.createElement("i"));
  if (!found || found.dataset.node === "field") return [];
  const marks = found.dataset.node.split(" ");
  const values = marks.filter((mark) => !/^L\d+$/.test(mark)); // a box belongs to levels, but it is not the level
  return values.length ? values : marks;
}

export function light(marks) {
  lit = new Set(marks);
  relight();
}

export function relight() {
  for (const element of all(".lit")) element.classList.remove("lit");
  if (!lit.size) return;
  for (const mark of lit) {
    for (const element of all(`[data-node~="${CSS.escape(mark)}"]`)) {
      element.classList.add("lit");
      const row = element.closest("tr");
      if (row && $("[data-node]", row) === element) row.classList.add("lit");
    }
  }
}

export function pin(marks) {
  pinned = marks.length > 0;
  document.body.classList.toggle("pinned", pinned);
  light(marks);
  if (!pinned) return;
  for (const body of all(".pane > .body")) {
    const first = $(".lit", body);
    if (!first) continue;
    const place = first.getBoundingClientRect(), frame = body.getBoundingClientRect();
    if (place.top < frame.top || place.bottom > frame.bottom) {
      body.scrollTop += place.top - frame.top - frame.height / 3;
    }
  }
}

export function walk(body, step) {
  const parts = all("tr, .formula[data-node], g[data-node]", body)
    .filter((part) => part.dataset.node !== "field" && marksAt(part).length && part.getClientRects().length);
  if (!parts.length) return;
  const at = parts.indexOf($(".here", body));
  const next = parts[at < 0 ? (step > 0 ? 0 : parts.length - 1) : Math.max(0, Math.min(parts.length - 1, at + step))];
  for (const part of all(".here")) part.classList.remove("here");
  next.classList.add("here");
  next.scrollIntoView({ block: "nearest" });
  pinned = false;
  light(marksAt(next));
}
