// What all parts of the page are made with: elements found and made, a question asked of the server that the page is from.

export const $ = (selector, within = document) => within.querySelector(selector);
export const all = (selector, within = document) => [...within.querySelectorAll(selector)];

export function make(tag, options = {}, ...children) {
  const made = Object.assign(document.createElement(tag), options);
  made.append(...children);
  return made;
}

export function reach() {
  // Of what may have to scroll, Tab stops at what does: the page says which, as wide as it is now.
  for (const part of all(".body [role=group][aria-label^='wide ']")) {
    if (part.clientWidth) part.tabIndex = part.scrollWidth > part.clientWidth ? 0 : -1;
  }
}

export function link(name, form, title, asked) {
  const href = "export/" + name + form + "?question=" + encodeURIComponent(JSON.stringify(asked));
  const anchor = make("a", { href, download: "symad-" + name + form, textContent: form });
  anchor.setAttribute("aria-label", title + " as " + form);
  return anchor;
}

export function fills(body) {
  // A small graph fills its frame, up to twice its size; a large one is as large as it is, and scrolls.
  const svg = $("svg", body);
  if (!svg) return;
  const room = body.clientWidth - 40, width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
  const scale = Math.max(1, Math.min(2, room / width, 560 / height));
  svg.setAttribute("width", Math.round(width * scale));
  svg.setAttribute("height", Math.round(height * scale));
}

export function button(id, text, title, action) {
  const made = make("button", { type: "button", id, textContent: text, title });
  made.setAttribute("aria-label", title);
  made.addEventListener("click", action);
  return made;
}

export function labelled(text, element) {
  return make("label", {}, text + " ", element);
}

export function seconds(milliseconds) {
  return milliseconds < 1000 ? Math.round(milliseconds) + " ms" : (milliseconds / 1000).toFixed(1) + " s";
}

export const shared = globalThis.SHARED; // on a page without a server: what one would send

export async function* messages(name, asked, signal) {
  if (shared) { yield shared.answers[name]; return; }
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

export function fill(body, html) {
  body.classList.remove("failed");
  const made = document.createElement("template");
  made.innerHTML = html;
  const top = body.scrollTop;
  body.replaceChildren(made.content);
  body.scrollTop = top;
}
