// The expansion, step by step: what comes after the step of the state is hidden, and what it shows arrives.

import { $, all, button, make, reach } from "./elements.js";

export class Steps {
  // `changed` is called when the step of the state is another one.
  constructor(state, body, changed) {
    Object.assign(this, { state, body, changed });
  }

  controls() {
    return [button("first", "«", "First step", () => this.go("first")), button("back", "‹", "One step back", () => this.go(-1)),
      make("output", { id: "step" }),
      button("forward", "›", "One step forward", () => this.go(1)), button("everything", "»", "All steps", () => this.go("last"))];
  }

  parts() {
    const parts = [];
    for (const block of all(".symad > :not(style, h1)", this.body)) {
      const rows = all("tbody > tr", block);
      if (rows.length) rows.forEach((row, k) => parts.push(k ? [row] : [block, row]));
      else parts.push([block]);
    }
    return parts;
  }

  render(arrived) {
    const parts = this.parts();
    const last = parts.length;
    const at = this.state.step === "" ? last : Math.max(1, Math.min(last, Number(this.state.step) || last));
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

  go(by) {
    const last = this.parts().length;
    if (!last) return;
    const at = this.state.step === "" ? last : Number(this.state.step) || last;
    const next = by === "first" ? 1 : by === "last" ? last : Math.max(1, Math.min(last, at + by));
    this.state.step = next === last ? "" : String(next);
    this.render(false);
    this.changed();
  }
}
