// The range over which errors are measured: typed, zoomed, moved by keys, dragged in the picture.

import { $, button, labelled, make } from "./elements.js";

export class ErrorRange {
  // `changed` is called when the variable or the range of the state is another one.
  constructor(state, body, changed) {
    Object.assign(this, { state, body, changed, ends: [0, 1] });
  }

  controls() {
    const select = make("select", { id: "variable" });
    select.addEventListener("change", () => { this.state.variable = select.value; this.set("", ""); });
    const [low, high] = ["low", "high"].map((id) => {
      const input = make("input", { id, inputMode: "decimal" });
      input.addEventListener("change", () => {
        const value = Number(input.value);
        if (input.value.trim() && Number.isFinite(value)) this.set(...(id === "low" ? [value, this.ends[1]] : [this.ends[0], value]));
      });
      return input;
    });
    return [labelled("over", select), labelled("from", low), labelled("to", high),
      button("out", "−", "A wider range", () => this.zoom(2)), button("in", "+", "A narrower range", () => this.zoom(0.5)),
      button("around", "around the point", "The range around the point", () => this.set("", ""))];
  }

  variables(names) {
    const select = $("#variable");
    select.replaceChildren(...names.map((name, k) => new Option(name, String(k))));
    if (Number(this.state.variable) >= names.length) this.state.variable = "0";
    select.value = this.state.variable;
  }

  arrived(answer) {
    this.ends = answer.range;
    for (const [id, value] of [["low", this.ends[0]], ["high", this.ends[1]]]) {
      $("#" + id).value = this.state[id] || Number(value.toPrecision(6));
    }
    const svg = $("svg", this.body);
    if (svg) svg.addEventListener("pointerdown", (event) => this.drag(event));
  }

  field() {
    return $('[data-node="field"] > rect', this.body)?.getBoundingClientRect();
  }

  drag(event) {
    const area = this.field();
    if (!area || event.button !== 0) return;
    event.preventDefault();
    const body = this.body;
    const band = body.appendChild(make("div", { className: "band" }));
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
        const at = (x) => this.ends[0] + ((x - area.left) / area.width) * (this.ends[1] - this.ends[0]);
        this.set(at(left), at(right));
      }
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", done);
    addEventListener("pointercancel", done);
    move(event);
  }

  set(low, high) {
    this.state.low = low === "" ? "" : String(Number(low.toPrecision(9)));
    this.state.high = high === "" ? "" : String(Number(high.toPrecision(9)));
    this.changed();
  }

  zoom(factor, shift = 0) {
    const [low, high] = this.ends;
    const middle = (low + high) / 2 + shift * (high - low), half = ((high - low) / 2) * factor;
    this.set(middle - half, middle + half);
  }
}
