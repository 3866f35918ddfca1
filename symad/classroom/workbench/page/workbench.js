// The page of the workbench: the question above, a pane for each view of it below, everything linked by `data-node`.
// It asks the server that it came from, and nobody else. What the server sends is HTML that it has escaped itself.

import { kinds, readAddress, reloaded, settle, start, state, writeAddress } from "./address.js";
import { $, all, button, fill, fills, labelled, link, make, messages, reach, seconds, shared } from "./elements.js";
import { ErrorRange } from "./error_range.js";
import { Steps } from "./expansion_steps.js";
import { Lessons } from "./lessons.js";
import { isLit, isPinned, light, marksAt, pin, relight, walk } from "./links.js";
import { Practice } from "./practice.js";

const TITLES = {
  formula: "Derivative", expansion: "Expansion", stages: "Stages", graph: "Graph", program: "Program",
  code: "Machine code", errors: "Errors in ULP", routes: "Routes compared", confusion: "Confusion",
};
const WIDE = new Set(["formula", "code", "confusion"]);
const WIDE_BESIDE = new Set(["code", "confusion"]); // a lesson
const EXAMPLES = [
  ["x^2 sin(x)", "derivative", "a product, differentiated twice"], ["exp(x sin(x))", "grad", "a chain of functions"],
  ["x^y", "grad", "two variables"], ["x^3 y - 2 x y^2", "hessian", "a Hessian"],
  ["log(1 + exp(x))", "grad-grad", "a gradient of a gradient"], ["sqrt(x^2 + y^2)", "laplacian", "a Laplacian"],
];
const FIELDS = ["kind", "text", "point", "transform", "order"];
const PAUSE = 120; // milliseconds without a key before what is typed is computed

const panes = new Map(); // name -> { section, body, controller, began }
let about = null;
let lessons = null;
let practice = null;
let steps = null;
let range = null;
let timer = 0;
let asked = 0;

// ---------------------------------------------------------------- the form

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
  const long = state.text.length > about.longest; // more than the server reads
  const empty = state.kind !== "file" && (long || !state.text.trim());
  for (const [name, pane] of panes) {
    if (empty) { leave(pane); fill(pane.body, ""); pane.files.replaceChildren(); pane.state.textContent = ""; }
    else if (!hidden().has(name)) ask(name);
  }
  $("#panes").classList.toggle("empty", empty && !long && !state.lesson);
  if (empty) notice(long ? `a text of ${state.text.length} letters; give at most ${about.longest}` : "");
  allThere();
}

function again(name) {
  asked = performance.now();
  ask(name);
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
    if (!lost) fail(name, pane, { error: error.message });
  } finally {
    clearInterval(ticking);
    if (pane.controller === controller) { pane.controller = null; mark(name, false); }
  }
}

function receive(name, pane, message) {
  if ("progress" in message) { pane.stage = message.progress; tell(pane, message.progress); return; }
  pane.stage = "";
  const took = performance.now() - pane.began;
  tell(pane, "error" in message ? "" : seconds(took));
  pane.section.dataset.milliseconds = Math.round(performance.now() - asked);
  if ("error" in message) fail(name, pane, message);
  else arrive(name, pane, message.answer);
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

// An unread question concerns all panes: the notice says why, and a pane keeps what it shows while a formula is half typed.
function fail(name, pane, { error, unread = name === "formula" }) {
  if (unread) notice(error);
  if (unread && pane.body.childElementCount) { tell(pane, "of the formula before"); return; }
  pane.files.replaceChildren();
  pane.body.classList.add("failed");
  pane.body.textContent = unread ? "" : error;
}

function arrive(name, pane, answer) {
  if (name === "formula") {
    notice("");
    $("#point").placeholder = answer.point || "x=0.7";
    range.variables(answer.variables);
  }
  fill(pane.body, answer.html);
  pane.section.setAttribute("aria-label", TITLES[name] + ": " + answer.title);
  pane.files.replaceChildren(...answer.forms.map((form) => link(name, form, TITLES[name], question())));
  if (name === "expansion") steps.render(true);
  if (name === "errors") range.arrived(answer);
  if (name === "graph") fills(pane.body);
  reach();
  relight();
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

// ---------------------------------------------------------------- the page

function build() {
  for (const [name, title] of Object.entries(about.transforms)) $("#transform").append(new Option(title, name));
  $("#order").max = about.highest_order;
  for (const kind of kinds(about)) $("#kind").append(new Option({ formula: "formula", file: "file", code: "Python" }[kind], kind));
  $(".kind").hidden = kinds(about).length < 2;
  $("#code-note").textContent = about.allow_code
    ? "Python code that is typed here is run on this machine, as the workbench was started with --allow-code."
    : "Python code that is typed here is not run: the workbench was started without --allow-code.";
  about.panes.forEach(buildPane);
  controls();
  const examples = EXAMPLES.map(([text, transform, shows]) => {
    const start = button("", text, text + ": " + shows, () => { Object.assign(state, { text, transform }); fillForm(); compute(); });
    start.removeAttribute("id");
    return make("li", {}, start, " " + shows);
  });
  $("#panes").append(make("section", { id: "examples" }, make("h2", { textContent: "Type a formula above, or try one of these" }),
    make("ul", {}, ...examples)));
}

function buildPane(name, number) {
  const title = TITLES[name];
  const told = make("span", { className: "state" }), files = make("span", { className: "files" });
  const full = make("button", { type: "button", textContent: "⤢", title: "The whole pane, as large as it is" });
  full.setAttribute("aria-label", title + ": whole pane");
  full.setAttribute("aria-pressed", "false");
  full.addEventListener("click", () => full.setAttribute("aria-pressed", section.classList.toggle("full")));
  const body = make("div", { className: "body", tabIndex: 0 });
  body.setAttribute("role", "region");
  body.setAttribute("aria-label", title);
  const section = make("section", { className: "pane" + (WIDE.has(name) ? " wide" : ""), id: "pane-" + name },
    make("header", {}, make("h2", { textContent: title }), told, files, full), body);
  section.dataset.pane = name;
  $("#panes").append(section);
  const chip = $("#chips").appendChild(make("button", { type: "button", textContent: title, title: "Key " + (number + 1) }));
  chip.addEventListener("click", () => toggle(name));
  panes.set(name, { section, body, state: told, files, chip, controller: null, began: 0, stage: "" });
}

function toggle(name) {
  const closed = hidden();
  if (!closed.delete(name)) closed.add(name);
  state.hide = [...closed].join(",");
  arrange();
  writeAddress(false);
  if (!closed.has(name) && (state.kind === "file" || state.text.trim())) again(name);
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
  panes.get(pane).body.before(make("div", { className: "controls" }, ...parts));
}

function controls() {
  steps = new Steps(state, panes.get("expansion").body, () => writeAddress(false));
  control("expansion", ...steps.controls());
  const both = make("input", { type: "checkbox", id: "sharing" });
  both.addEventListener("change", () => { state.sharing = both.checked ? "both" : "after"; writeAddress(true); again("graph"); });
  const fit = make("input", { type: "checkbox", id: "fit" });
  fit.addEventListener("change", () => panes.get("graph").section.classList.toggle("fit", fit.checked));
  control("graph", labelled("beside the expression tree", both), labelled("fit the pane", fit));
  range = new ErrorRange(state, panes.get("errors").body, () => { writeAddress(true); settle.last = location.hash; again("errors"); });
  control("errors", ...range.controls());
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
  if (pane?.[0] === "errors" && sideways) range.zoom(1, sideways * 0.2);
  else if (pane?.[0] === "errors" && (event.key === "+" || event.key === "-")) range.zoom(event.key === "+" ? 0.5 : 2);
  else if (sideways) steps.go(sideways);
  else if (pane && downwards) walk(pane[1].body, downwards);
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
  main.addEventListener("pointerover", (event) => { if (!isPinned()) light(marksAt(event.target)); });
  main.addEventListener("pointerleave", () => { if (!isPinned()) light([]); });
  main.addEventListener("click", (event) => {
    if (event.target.closest("button, a, input, select, label")) return;
    const marks = marksAt(event.target);
    if (marks.length || isPinned()) pin(isPinned() && marks.every(isLit) ? [] : marks);
  });
  addEventListener("keydown", keys);
  addEventListener("resize", reach);
  addEventListener("popstate", () => {
    const given = readAddress(about);
    fillForm();
    arrange();
    settle.last = location.hash;
    compute();
    lessons.arrive(state.lesson && !given.has("hide"));
    practice.arrive();
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

about = shared ? shared.about : await (await fetch("about.json", { cache: "no-store" })).json();
build();
if (shared) {
  Object.assign(start, shared.state);
  for (const field of all("#question input, #question select, #question textarea")) field.disabled = true;
}
lessons = new Lessons({
  state, titles: about.lessons, beside, wide: WIDE_BESIDE,
  ask: (name, signal) => messages(name, {}, signal),
  download: (name, form, title) => link(name, form, title, {}),
});
practice = new Practice({ state, topics: about.topics, write: writeAddress, ask: messages });
reloaded();
const given = readAddress(about);
fillForm();
arrange();
listen();
settle.last = location.hash;
compute();
lessons.arrive(!given.has("hide"));
practice.arrive();
if (lessons.open) lessons.body.focus({ preventScroll: true }); // its keys are no letters of the formula
