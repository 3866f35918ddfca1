// The lessons, in steps above the panes: prose, code, what the code shows. A step may say what the panes beside it show.
// The steps come from the server as they are written, and each once more when its code has been run.

import { button, fill, make, reach } from "./elements.js";

export class Lessons {
  // `page` has the state, the titles, and what a lesson does to the page: beside, write, ask, download.
  constructor(page) {
    this.page = page;
    this.open = "";
    this.steps = [];
    this.run = new Set();
    this.controller = null;
    this.section = null;
    this.select = document.querySelector("#lesson");
    this.select.append(new Option("no lesson", ""));
    for (const [number, title] of Object.entries(page.titles)) this.select.append(new Option(`${number} ${title}`, number));
    this.select.addEventListener("change", () => this.choose(this.select.value));
  }

  get at() {
    return Math.max(1, Math.min(this.steps.length || 1, Math.trunc(Number(this.page.state.at)) || 1));
  }

  choose(number) {
    Object.assign(this.page.state, { lesson: number, at: "" });
    if (!number) this.page.beside(null, true);
    this.arrive(true);
  }

  // The lesson of the state is shown; `fresh` where the address does not say what the panes show.
  arrive(fresh) {
    const number = this.page.state.lesson;
    this.select.value = number;
    if (number === this.open) { if (number) this.render(false); return; }
    this.controller?.abort();
    this.section?.remove();
    Object.assign(this, { open: number, steps: [], run: new Set(), section: null });
    if (!number) return;
    this.build(number);
    this.load(number, fresh);
  }

  async load(number, fresh) {
    const controller = this.controller = new AbortController();
    this.section.classList.add("busy");
    try {
      for await (const message of this.page.ask("lesson-" + number, controller.signal)) this.receive(message, fresh);
    } catch (error) {
      if (!controller.signal.aborted) this.tell("no answer: " + error.message);
    }
    if (this.controller === controller) this.section.classList.remove("busy");
  }

  receive(message, fresh) {
    if ("steps" in message) {
      this.steps = message.steps;
      if (fresh) this.go(this.at, false);
      else this.render(true);
    } else if ("run" in message) {
      this.steps[message.run - 1].html = message.html;
      this.run.add(message.run);
      this.tell(message.progress + " is run");
      if (message.run === this.at) this.render(false);
    } else if ("error" in message) {
      this.failed = message.error;
      this.tell("");
      this.render(false);
    } else if ("answer" in message) {
      this.tell("");
      this.files.replaceChildren(...message.answer.forms.map((form) => this.page.download("lesson-" + this.open, form, "The lesson")));
    }
  }

  build(number) {
    const title = `Lesson ${number}: ${this.page.titles[number]}`;
    this.failed = "";
    this.told = make("span", { className: "state" });
    this.files = make("span", { className: "files" });
    this.place = make("output", { id: "lesson-at" });
    this.body = make("div", { className: "body", tabIndex: 0 });
    this.body.setAttribute("role", "region");
    this.body.setAttribute("aria-label", title);
    this.before = button("lesson-back", "‹", "The step before (p)", () => this.go(this.at - 1, true));
    this.after = button("lesson-forward", "›", "The next step (n)", () => this.go(this.at + 1, true));
    this.section = make("section", { className: "pane wide lesson", id: "pane-lesson" },
      make("header", {}, make("h2", { textContent: title }), this.told, this.files,
        button("lesson-close", "✕", "Close the lesson", () => this.choose(""))),
      make("div", { className: "controls" }, this.before, this.place, this.after),
      this.body);
    this.section.dataset.pane = "lesson";
    document.querySelector("#panes").prepend(this.section);
  }

  go(step, push) {
    if (!this.steps.length) return;
    this.page.state.at = String(Math.max(1, Math.min(this.steps.length, step)));
    this.page.beside(this.steps[this.at - 1], push);
    this.render(true);
  }

  render(moved) {
    const step = this.steps[this.at - 1];
    if (!step) { if (this.failed) this.body.textContent = this.failed; return; }
    fill(this.body, step.html);
    if (!this.run.has(this.at)) {
      this.body.append(make("p", { className: this.failed ? "failed" : "state", textContent: this.failed || "The code is being run…" }));
    }
    if (moved) this.body.scrollTop = 0;
    reach();
    this.place.textContent = `step ${this.at} of ${this.steps.length}` + (step.title ? `: ${step.title}` : "");
    this.before.disabled = this.at <= 1;
    this.after.disabled = this.at >= this.steps.length;
    this.section.dataset.step = this.at;
    this.section.classList.toggle("wide", step.panes.every((name) => this.page.wide.has(name)));
    if (moved) this.section.scrollIntoView({ block: "nearest" });
  }

  tell(text) {
    this.told.textContent = text;
  }

  // Whether a key was one of a lesson's: n and p anywhere, the arrows where no other pane has them.
  key(event) {
    if (!this.open) return false;
    const here = event.target === document.body || this.section.contains(event.target);
    const by = { n: 1, p: -1, ...(here ? { ArrowRight: 1, ArrowLeft: -1 } : {}) }[event.key];
    if (by) this.go(this.at + by, true);
    return Boolean(by);
  }
}
