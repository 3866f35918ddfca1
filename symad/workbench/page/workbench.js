// The page of the workbench: the question above, a pane for each view of it below, everything linked by `data-node`.
// It asks the server that it came from, and nobody else. What the server sends is HTML that it has escaped itself.

import { Lessons } from "./lessons.js";

const $ = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

const TITLES = {
  formula: "Derivative", expansion: "Expansion", stages: "Stages", graph: "Graph", program: "Program",
  code: "Machine code", errors: "Errors in ULP", routes: "Routes compared", confusion: "Confusion",
};
const WIDE = new Set(["formula", "code", "confusion"]);
const WIDE_BESIDE = new Set(["code", "confusion"]); // a lesson
const FIELDS = ["kind", "text", "point", "transform", "order"];
const EXTRAS = ["variable", "low", "high", "sharing"]; // of the question, but of one pane each
const PAUSE = 120; // milliseconds without a key before what is typed is computed
const SETTLED = 1200; // and before it is a step that "back" returns to

const start = { kind: "formula", text: "", point: "", transform: "grad", order: "2", variable: "0", low: "", high: "",
  sharing: "after", step: "", hide: "", big: "", lesson: "", at: "" };
const state = { ...start };
const panes = new Map(); // name -> { section, body, controller, began }
let about = null;
let lessons = null;
let pinned = false;
let timer = 0;
let settling = 0;
let asked = 0;

// ---------------------------------------------------------------- the state in the address

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(start)) state[name] = given.get(name) ?? start[name];
  if (!(state.transform in about.transforms)) state.transform = start.transform;
  if (!kinds().includes(state.kind)) state.kind = start.kind;
  if (!/^\d$/.test(state.order)) state.order = start.order;
  if (!Object.hasOwn(about.lessons, state.lesson)) state.lesson = "";
  return given;
}

function writeAddress(push) {
  const shown = Object.entries(state).filter(([name, value]) => value !== start[name]);
  const hash = "#" + new URLSearchParams(shown);
  if (hash === (location.hash || "#")) return;
  try {
    history[push ? "pushState" : "replaceState"](null, "", hash);
  } catch { } // Safari writes a hundred in half a minute: the next one that it writes has all of it
}

function settle() {
  clearTimeout(settling);
  settling = setTimeout(() => {
    const hash = location.hash; // an entry of its own, from which "back" leads to what stood there before
    if (hash !== settle.last) { history.replaceState(null, "", settle.last || "#"); history.pushState(null, "", hash); }
    settle.last = hash;
  }, SETTLED);
}

function kinds() {
  return ["formula", ...(about.file ? ["file"] : []), ...(about.allow_code ? ["code"] : [])];
}

function fillForm() {
  for (const name of FIELDS) {
    const field = $("#" + name);
    if (field.value !== state[name]) field.value = state[name];
  }
  const text = $("#text");
  text.hidden = state.kind === "file";
  text.classList.toggle("code", state.kind === "code");
  $("#text-label").textContent = state.kind === "file" ? about.file : state.kind === "code" ? "code" : "f =";
  $(".order").hidden = state.transform !== "derivative";
  $(".point").hidden = state.kind !== "formula";
  grow();
  document.body.classList.toggle("large", state.big === "1");
  $("#big").setAttribute("aria-pressed", state.big === "1");
}

function grow() {
  const text = $("#text");
  if (state.kind === "code") return;
  text.style.height = "auto";
  text.style.height = Math.min(text.scrollHeight + 2, 160) + "px";
}

// ---------------------------------------------------------------- asking

function question() {
  return { kind: state.kind, text: state.text, point: state.kind === "formula" ? state.point : "",
    transform: state.transform, order: Number(state.order), variable: Number(state.variable), low: state.low,
    high: state.high, sharing: state.sharing };
}

function hidden() {
  return new Set(state.hide.split(",").filter(Boolean));
}

function compute() {
  clearTimeout(timer);
  timer = 0;
  delete document.body.dataset.shown;
  writeAddress(false);
  settle();
  asked = performance.now();
  const empty = state.kind !== "file" && !state.text.trim();
  for (const [name, pane] of panes) {
    if (empty) { leave(pane); show(pane, ""); pane.files.replaceChildren(); pane.state.textContent = ""; }
    else if (!hidden().has(name)) ask(name);
  }
  if (empty) notice("");
  allThere();
}

function soon() {
  clearTimeout(timer);
  delete document.body.dataset.shown;
  timer = setTimeout(compute, PAUSE);
}

function quit(pane) {
  pane.controller?.abort();
  pane.controller = null;
}

function leave(pane) { // nobody waits for it any more
  quit(pane);
  for (const part of [pane.section, pane.chip]) part.classList.remove("busy");
  pane.body.setAttribute("aria-busy", false);
}

async function ask(name) {
  const pane = panes.get(name);
  quit(pane);
  const controller = new AbortController();
  pane.controller = controller;
  pane.began = performance.now();
  mark(name, true, "");
  const ticking = setInterval(() => tell(pane, seconds(performance.now() - pane.began) + " " + (pane.stage || "")), 500);
  try {
    for await (const message of messages(name, question(), controller.signal)) receive(name, pane, message);
    ended("");
  } catch (error) {
    if (controller.signal.aborted) return;
    const lost = error instanceof TypeError || error.name === "TypeError";
    ended(lost);
    tell(pane, "no answer");
    if (!lost) fail(name, pane, error.message);
  } finally {
    clearInterval(ticking);
    if (pane.controller === controller) { pane.controller = null; mark(name, false); }
  }
}

async function* messages(name, asked, signal) {
  const response = await fetch("pane/" + name, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked), signal, cache: "no-store",
  });
  if (!response.ok) throw new Error(await response.text());
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) yield JSON.parse(part);
  }
}

function receive(name, pane, message) {
  if ("progress" in message) { pane.stage = message.progress; tell(pane, message.progress); return; }
  pane.stage = "";
  const took = performance.now() - pane.began;
  tell(pane, "error" in message ? "" : seconds(took));
  pane.section.dataset.milliseconds = Math.round(performance.now() - asked);
  if ("error" in message) fail(name, pane, message.error);
  else arrive(name, pane, message.answer);
}

function seconds(milliseconds) {
  return milliseconds < 1000 ? Math.round(milliseconds) + " ms" : (milliseconds / 1000).toFixed(1) + " s";
}

function tell(pane, text) {
  pane.state.textContent = text;
}

function mark(name, busy) {
  const pane = panes.get(name);
  pane.section.classList.toggle("busy", busy);
  pane.body.setAttribute("aria-busy", busy);
  pane.chip.classList.toggle("busy", busy);
  allThere();
}

function allThere() {
  const count = [...panes.values()].filter((each) => each.controller).length;
  $("#stop").disabled = count === 0;
  if (count === 0 && !timer) document.body.dataset.shown = state.kind + ":" + state.text; // what all panes are about
  $("#status").textContent = count ? count + " panes are computed" : "all panes are there";
}

function stop() {
  for (const [name, pane] of panes) {
    if (!pane.controller) continue;
    quit(pane);
    mark(name, false);
    tell(pane, "stopped");
  }
}

function ended(lost) {
  if (lost) notice("The workbench has ended, or cannot be reached. What you typed is kept here and in the address;\n" +
    "start it again with: symad workbench");
  else if ($("#notice").dataset.lost) notice("");
  if (lost) $("#notice").dataset.lost = "1";
}

function notice(text) {
  const box = $("#notice");
  box.textContent = text;
  box.hidden = !text;
  delete box.dataset.lost;
  $("#text").setAttribute("aria-invalid", Boolean(text));
}

// ---------------------------------------------------------------- what arrives

function fail(name, pane, error) {
  if (name === "formula") notice(error);
  const unread = name !== "formula" && !$("#notice").hidden && $("#notice").textContent === error;
  pane.files.replaceChildren();
  pane.body.classList.add("failed");
  pane.body.textContent = unread ? "" : name === "formula" ? "" : error;
}

function arrive(name, pane, answer) {
  if (name === "formula") {
    notice("");
    $("#point").placeholder = answer.point || "x=0.7";
    variables(answer.variables);
  }
  show(pane, answer.html);
  pane.section.setAttribute("aria-label", TITLES[name] + ": " + answer.title);
  pane.files.replaceChildren(...answer.forms.map((form) => link(name, form, TITLES[name], question())));
  if (name === "expansion") steps(true);
  if (name === "errors") range(answer);
  if (name === "graph") fills(pane);
  reach();
  relight();
}

function reach() {
  // Of what may have to scroll, Tab stops at what does: the page says which, as wide as it is now.
  for (const part of all(".body [role=group][aria-label^='wide ']")) {
    if (part.clientWidth) part.tabIndex = part.scrollWidth > part.clientWidth ? 0 : -1;
  }
}

function show(pane, html) {
  pane.body.classList.remove("failed");
  const made = document.createElement("template");
  made.innerHTML = html;
  const top = pane.body.scrollTop;
  pane.body.replaceChildren(made.content);
  pane.body.scrollTop = top;
}

function link(name, form, title, asked) {
  const anchor = document.createElement("a");
  anchor.href = "export/" + name + form + "?question=" + encodeURIComponent(JSON.stringify(asked));
  anchor.download = "symad-" + name + form;
  anchor.textContent = form;
  anchor.setAttribute("aria-label", title + " as " + form);
  return anchor;
}

function fills(pane) {
  // A small graph fills its frame, up to twice its size; a large one is as large as it is, and scrolls.
  const svg = $("svg", pane.body);
  if (!svg) return;
  const room = pane.body.clientWidth - 40, width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
  const scale = Math.max(1, Math.min(2, room / width, 560 / height));
  svg.setAttribute("width", Math.round(width * scale));
  svg.setAttribute("height", Math.round(height * scale));
}

// ---------------------------------------------------------------- links

let lit = new Set();

function marksAt(element) {
  const found = element.closest?.("[data-node]") ?? $("[data-node]", element.closest?.("tr") ?? document.createElement("i"));
  if (!found || found.dataset.node === "field") return [];
  const marks = found.dataset.node.split(" ");
  const values = marks.filter((mark) => !/^L\d+$/.test(mark)); // a box belongs to levels, but it is not the level
  return values.length ? values : marks;
}

function light(marks) {
  lit = new Set(marks);
  relight();
}

function relight() {
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

function pin(marks) {
  pinned = marks.length > 0;
  document.body.classList.toggle("pinned", pinned);
  light(marks);
  if (!pinned) return;
  for (const pane of panes.values()) {
    const first = $(".lit", pane.body);
    if (!first) continue;
    const place = first.getBoundingClientRect(), frame = pane.body.getBoundingClientRect();
    if (place.top < frame.top || place.bottom > frame.bottom) {
      pane.body.scrollTop += place.top - frame.top - frame.height / 3;
    }
  }
}

function walk(pane, step) {
  const parts = all("tr, .formula[data-node], g[data-node]", pane.body)
    .filter((part) => part.dataset.node !== "field" && marksAt(part).length && part.getClientRects().length);
  if (!parts.length) return;
  const at = parts.indexOf($(".here", pane.body));
  const next = parts[at < 0 ? (step > 0 ? 0 : parts.length - 1) : Math.max(0, Math.min(parts.length - 1, at + step))];
  for (const part of all(".here")) part.classList.remove("here");
  next.classList.add("here");
  next.scrollIntoView({ block: "nearest" });
  pinned = false;
  light(marksAt(next));
}

// ---------------------------------------------------------------- the expansion, step by step

function stepParts() {
  const pane = panes.get("expansion");
  const parts = [];
  for (const block of all(".symad > :not(style, h1)", pane.body)) {
    const rows = all("tbody > tr", block);
    if (rows.length) rows.forEach((row, k) => parts.push(k ? [row] : [block, row]));
    else parts.push([block]);
  }
  return parts;
}

function steps(arrived) {
  const parts = stepParts();
  const last = parts.length;
  const at = state.step === "" ? last : Math.max(1, Math.min(last, Number(state.step) || last));
  parts.forEach((part, k) => part.forEach((element) => {
    element.hidden = k >= at;
    element.classList.toggle("now", !arrived && k === at - 1);
  }));
  if (!arrived && at) parts[at - 1].at(-1).scrollIntoView({ block: "nearest" });
  $("#step").textContent = last ? `step ${at} of ${last}` : "";
  $("#back").disabled = at <= 1;
  $("#forward").disabled = at >= last;
  reach();
}

function goStep(by) {
  const last = stepParts().length;
  if (!last) return;
  const at = state.step === "" ? last : Number(state.step) || last;
  const next = by === "first" ? 1 : by === "last" ? last : Math.max(1, Math.min(last, at + by));
  state.step = next === last ? "" : String(next);
  steps(false);
  writeAddress(false);
}

// ---------------------------------------------------------------- beside a lesson

// The panes show what a step of a lesson says; all of them are open, and the formula stays, where there is no step.
function beside(step, push) {
  const { text, point, transform, order, kind, variable, low, high, sharing } = start;
  if (step) Object.assign(state, { text, point, transform, order, kind, ...step.question });
  Object.assign(state, { variable, low, high, sharing, step: "" });
  state.hide = step ? about.panes.filter((name) => !step.panes.includes(name)).join(",") : "";
  fillForm();
  arrange();
  writeAddress(push);
  settle.last = location.hash;
  compute();
}

// ---------------------------------------------------------------- errors over a range

let ends = [0, 1];

function variables(names) {
  const select = $("#variable");
  select.replaceChildren(...names.map((name, k) => new Option(name, String(k))));
  if (Number(state.variable) >= names.length) state.variable = "0";
  select.value = state.variable;
}

function range(answer) {
  ends = answer.range;
  for (const [id, value] of [["low", ends[0]], ["high", ends[1]]]) {
    $("#" + id).value = state[id] || Number(value.toPrecision(6));
  }
  const svg = $("svg", panes.get("errors").body);
  if (svg) svg.addEventListener("pointerdown", drag);
}

function field() {
  return $('[data-node="field"] > rect', panes.get("errors").body)?.getBoundingClientRect();
}

function drag(event) {
  const area = field();
  if (!area || event.button !== 0) return;
  event.preventDefault();
  const body = panes.get("errors").body;
  const band = body.appendChild(Object.assign(document.createElement("div"), { className: "band" }));
  const within = (x) => Math.max(area.left, Math.min(area.right, x));
  const first = within(event.clientX);
  const move = (moved) => {
    const frame = body.getBoundingClientRect();
    const [left, right] = [first, within(moved.clientX)].sort((a, b) => a - b);
    band.style.left = left - frame.left + body.scrollLeft + "px";
    band.style.width = right - left + "px";
    band.style.top = area.top - frame.top + body.scrollTop + "px";
    band.style.height = area.height + "px";
    return [left, right];
  };
  const done = (last) => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", done);
    removeEventListener("pointercancel", done);
    const [left, right] = move(last);
    band.remove();
    if (last.type === "pointerup" && right - left > 4) {
      const at = (x) => ends[0] + ((x - area.left) / area.width) * (ends[1] - ends[0]);
      setRange(at(left), at(right));
    }
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", done);
  addEventListener("pointercancel", done);
  move(event);
}

function setRange(low, high) {
  state.low = low === "" ? "" : String(Number(low.toPrecision(9)));
  state.high = high === "" ? "" : String(Number(high.toPrecision(9)));
  writeAddress(true);
  settle.last = location.hash;
  asked = performance.now();
  ask("errors");
}

function zoom(factor, shift = 0) {
  const middle = (ends[0] + ends[1]) / 2 + shift * (ends[1] - ends[0]), half = ((ends[1] - ends[0]) / 2) * factor;
  setRange(middle - half, middle + half);
}

// ---------------------------------------------------------------- the page

function build() {
  for (const [name, title] of Object.entries(about.transforms)) $("#transform").append(new Option(title, name));
  $("#order").max = about.highest_order;
  for (const kind of kinds()) $("#kind").append(new Option({ formula: "formula", file: "file", code: "Python" }[kind], kind));
  $(".kind").hidden = kinds().length < 2;
  $("#code-note").textContent = about.allow_code
    ? "Python code that is typed here is run on this machine, as the workbench was started with --allow-code."
    : "Python code that is typed here is not run: the workbench was started without --allow-code.";
  about.panes.forEach(buildPane);
  controls();
}

function buildPane(name, number) {
  const section = document.createElement("section");
  section.className = "pane" + (WIDE.has(name) ? " wide" : "");
  section.dataset.pane = name;
  section.id = "pane-" + name;
  const header = section.appendChild(document.createElement("header"));
  const title = header.appendChild(document.createElement("h2"));
  title.textContent = TITLES[name];
  const told = header.appendChild(Object.assign(document.createElement("span"), { className: "state" }));
  const files = header.appendChild(Object.assign(document.createElement("span"), { className: "files" }));
  const full = header.appendChild(Object.assign(document.createElement("button"), { type: "button", textContent: "⤢" }));
  full.title = "The whole pane, as large as it is";
  full.setAttribute("aria-label", TITLES[name] + ": whole pane");
  full.setAttribute("aria-pressed", "false");
  full.addEventListener("click", () => full.setAttribute("aria-pressed", section.classList.toggle("full")));
  const body = document.createElement("div");
  body.className = "body";
  body.tabIndex = 0;
  body.setAttribute("role", "region");
  body.setAttribute("aria-label", TITLES[name]);
  section.append(body);
  $("#panes").append(section);
  const chip = $("#chips").appendChild(Object.assign(document.createElement("button"), { type: "button" }));
  chip.textContent = TITLES[name];
  chip.title = "Key " + (number + 1);
  chip.addEventListener("click", () => toggle(name));
  panes.set(name, { section, body, state: told, files, chip, controller: null, began: 0, stage: "" });
}

function toggle(name) {
  const closed = hidden();
  if (!closed.delete(name)) closed.add(name);
  state.hide = [...closed].join(",");
  arrange();
  writeAddress(false);
  if (!closed.has(name) && (state.kind === "file" || state.text.trim())) { asked = performance.now(); ask(name); }
}

function arrange() {
  for (const [name, pane] of panes) {
    const closed = hidden().has(name);
    pane.section.hidden = closed;
    pane.chip.setAttribute("aria-pressed", !closed);
    if (closed) leave(pane);
  }
  reach();
}

function control(pane, ...parts) {
  const row = Object.assign(document.createElement("div"), { className: "controls" });
  row.append(...parts);
  panes.get(pane).body.before(row);
}

function button(id, text, title, action) {
  const made = Object.assign(document.createElement("button"), { type: "button", id, textContent: text, title });
  made.setAttribute("aria-label", title);
  made.addEventListener("click", action);
  return made;
}

function labelled(text, element) {
  const label = document.createElement("label");
  label.append(text + " ", element);
  return label;
}

function controls() {
  control("expansion", button("first", "«", "First step", () => goStep("first")), button("back", "‹", "One step back", () => goStep(-1)),
    Object.assign(document.createElement("output"), { id: "step" }),
    button("forward", "›", "One step forward", () => goStep(1)), button("everything", "»", "All steps", () => goStep("last")));
  const both = Object.assign(document.createElement("input"), { type: "checkbox", id: "sharing" });
  both.addEventListener("change", () => { state.sharing = both.checked ? "both" : "after"; writeAddress(true); asked = performance.now(); ask("graph"); });
  const fit = Object.assign(document.createElement("input"), { type: "checkbox", id: "fit" });
  fit.addEventListener("change", () => panes.get("graph").section.classList.toggle("fit", fit.checked));
  control("graph", labelled("beside the expression tree", both), labelled("fit the pane", fit));
  const select = Object.assign(document.createElement("select"), { id: "variable" });
  select.addEventListener("change", () => { state.variable = select.value; setRange("", ""); });
  const [low, high] = ["low", "high"].map((id) => {
    const input = Object.assign(document.createElement("input"), { id, inputMode: "decimal" });
    input.addEventListener("change", () => {
      const value = Number(input.value);
      if (input.value.trim() && Number.isFinite(value)) setRange(...(id === "low" ? [value, ends[1]] : [ends[0], value]));
    });
    return input;
  });
  control("errors", labelled("over", select), labelled("from", low), labelled("to", high),
    button("out", "−", "A wider range", () => zoom(2)), button("in", "+", "A narrower range", () => zoom(0.5)),
    button("around", "around the point", "The range around the point", () => setRange("", "")));
}

function keys(event) {
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "Escape") { stop(); pin([]); for (const part of all(".here")) part.classList.remove("here"); return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (lessons.key(event)) { event.preventDefault(); return; }
  const pane = [...panes.entries()].find(([, each]) => each.section.contains(event.target));
  if (event.key === "/") { $("#text").focus(); event.preventDefault(); return; }
  if (/^[1-9]$/.test(event.key)) {
    const name = about.panes[Number(event.key) - 1];
    if (!name) return;
    if (hidden().has(name)) toggle(name);
    panes.get(name).body.focus();
    panes.get(name).section.scrollIntoView({ block: "nearest" });
    return;
  }
  const sideways = { ArrowLeft: -1, ArrowRight: 1 }[event.key], downwards = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (pane?.[0] === "errors" && sideways) zoom(1, sideways * 0.2);
  else if (pane?.[0] === "errors" && (event.key === "+" || event.key === "-")) zoom(event.key === "+" ? 0.5 : 2);
  else if (sideways) goStep(sideways);
  else if (pane && downwards) walk(pane[1], downwards);
  else if (pane && event.key === "Enter" && $(".here", pane[1].body)) pin(marksAt($(".here", pane[1].body)));
  else return;
  event.preventDefault();
}

function listen() {
  $("#question").addEventListener("submit", (event) => { event.preventDefault(); compute(); });
  $("#question").addEventListener("input", (event) => {
    const field = event.target;
    if (!FIELDS.includes(field.id)) return;
    state[field.id] = field.value;
    if (field.id === "order" && !/^[1-8]$/.test(field.value)) state.order = start.order;
    if (["text", "kind"].includes(field.id)) Object.assign(state, { low: "", high: "", step: "" });
    if (field.id === "transform") state.step = "";
    fillForm();
    writeAddress(false); // at once: who reloads now finds it again
    soon();
  });
  $("#text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && state.kind !== "code" && !event.shiftKey) { event.preventDefault(); compute(); }
  });
  $("#stop").addEventListener("click", stop);
  $("#big").addEventListener("click", () => { state.big = state.big === "1" ? "" : "1"; fillForm(); writeAddress(false); });
  $("#share").addEventListener("click", share);
  const main = $("#panes");
  main.addEventListener("pointerover", (event) => { if (!pinned) light(marksAt(event.target)); });
  main.addEventListener("pointerleave", () => { if (!pinned) light([]); });
  main.addEventListener("click", (event) => {
    if (event.target.closest("button, a, input, select, label")) return;
    const marks = marksAt(event.target);
    if (marks.length || pinned) pin(pinned && marks.every((mark) => lit.has(mark)) ? [] : marks);
  });
  addEventListener("keydown", keys);
  addEventListener("resize", reach);
  addEventListener("popstate", () => {
    const given = readAddress();
    fillForm();
    arrange();
    settle.last = location.hash;
    compute();
    lessons.arrive(state.lesson && !given.has("hide"));
  });
  addEventListener("pagehide", () => writeAddress(false));
}

async function share() {
  writeAddress(false);
  try {
    await navigator.clipboard.writeText(location.href);
    $("#share").textContent = "Copied";
  } catch {
    $("#share").textContent = "It is in the address bar";
  }
  setTimeout(() => { $("#share").textContent = "Copy link"; }, 1500);
}

about = await (await fetch("about.json", { cache: "no-store" })).json();
build();
lessons = new Lessons({
  state, titles: about.lessons, beside, reach, wide: WIDE_BESIDE,
  ask: (name, signal) => messages(name, {}, signal),
  download: (name, form, title) => link(name, form, title, {}),
});
const given = readAddress();
fillForm();
arrange();
listen();
settle.last = location.hash;
compute();
lessons.arrive(!given.has("hide"));
if (lessons.open) lessons.body.focus({ preventScroll: true }); // its keys are no letters of the formula
