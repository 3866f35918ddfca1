// Practice: an exercise above the panes, an answer that is judged line by line while it is typed, and hints one by one.
// The whole answer comes when it is asked for, and not before.

import { button, fill, labelled, make, reach } from "./elements.js";

const PAUSE = 400; // milliseconds without a key before an answer is judged

export class Practice {
  // `page` has the state, the topics, and what practice does to the page: write, ask.
  constructor(page) {
    Object.assign(this, { page, open: "", hints: 0, solution: false, section: null, controller: null, timer: 0 });
    this.select = document.querySelector("#practice");
    this.select.append(new Option("no practice", ""), ...page.topics.map((topic) => new Option(topic, topic)));
    this.select.addEventListener("change", () => this.choose({ practice: this.select.value, seed: "" }));
  }

  choose(changed) {
    Object.assign(this.page.state, changed);
    this.page.write(true);
    this.arrive();
  }

  // The exercise of the state is shown.
  arrive() {
    const { practice, level, seed } = this.page.state, key = practice && [practice, level, seed].join("|");
    this.select.value = practice;
    if (key === this.open) return;
    this.controller?.abort();
    clearTimeout(this.timer);
    if (!this.section || !practice) this.section?.remove();
    if (practice && !this.section?.isConnected) this.build();
    Object.assign(this, { open: key, hints: 0, solution: false });
    if (!practice) return;
    this.level.value = level;
    this.mine.value = "";
    this.load();
  }

  build() {
    this.told = make("span", { className: "state" });
    this.heading = make("h2", { textContent: "Practice" });
    this.level = make("select", { id: "practice-level" }, ...["1", "2", "3"].map((level) => new Option(level, level)));
    this.level.addEventListener("change", () => this.choose({ level: this.level.value, seed: "" }));
    this.body = make("div", { className: "body", tabIndex: 0 });
    this.body.setAttribute("role", "region");
    this.body.setAttribute("aria-label", "Practice");
    this.question = make("div");
    this.mine = make("textarea", { id: "practice-answer", rows: 3, spellcheck: false, autocapitalize: "off" });
    this.mine.addEventListener("input", () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.load(), PAUSE); });
    this.verdict = make("div", { id: "practice-verdict" });
    this.verdict.setAttribute("role", "status");
    this.steps = make("ol", { id: "practice-hints" });
    this.solved = make("div", { id: "practice-solution" });
    this.hint = button("practice-hint", "Hint", "Name the rule", () => { this.hints += 1; this.load(); });
    this.body.append(this.question, labelled("your answer, a line for each step", this.mine), this.verdict, this.steps, this.solved);
    this.section = make("section", { className: "pane wide practice", id: "pane-practice" },
      make("header", {}, this.heading, this.told, button("practice-close", "✕", "Close the practice", () => this.choose({ practice: "" }))),
      make("div", { className: "controls" }, labelled("level", this.level), this.hint,
        button("practice-solve", "Solution", "The whole answer", () => { this.solution = true; this.load(); }),
        button("practice-next", "Another", "Another exercise of this topic",
          () => this.choose({ seed: String((Number(this.page.state.seed) || 0) + 1) }))),
      this.body);
    document.querySelector("#panes").prepend(this.section);
  }

  async load() {
    this.controller?.abort();
    const controller = this.controller = new AbortController(), { practice, level, seed } = this.page.state;
    const asked = { topic: practice, level: Number(level), seed: Math.trunc(Number(seed)) || 0, mine: this.mine.value,
      hints: this.hints, solution: this.solution };
    this.section.classList.add("busy");
    try {
      for await (const message of this.page.ask("practice", asked, controller.signal)) this.receive(message);
    } catch (error) {
      if (!controller.signal.aborted) this.told.textContent = "no answer: " + error.message;
    }
    if (this.controller === controller) this.section.classList.remove("busy");
  }

  receive(message) {
    if ("error" in message) { this.told.textContent = message.error; return; }
    const { title, html, hints, more, verdict, solution } = message.answer;
    this.told.textContent = "";
    this.heading.textContent = title;
    fill(this.question, html);
    fill(this.verdict, verdict.html);
    if (verdict.error) this.verdict.replaceChildren(make("pre", { textContent: verdict.error }));
    this.section.dataset.right = verdict.right;
    this.steps.replaceChildren(...hints.map((hint) => make("li", { textContent: hint })));
    this.hint.textContent = hints.length ? "Next step" : "Hint";
    this.hint.disabled = !more;
    fill(this.solved, solution);
    reach();
  }
}
