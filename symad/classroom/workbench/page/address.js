// The state of the page: all of it stands in the address, so that it is shared, reloaded, gone back to.

const SETTLED = 1200; // milliseconds without a key before a state is one that "back" returns to

export const start = { kind: "formula", text: "", point: "", transform: "grad", order: "2", variable: "0", low: "", high: "",
  sharing: "after", step: "", hide: "", big: "", lesson: "", at: "", practice: "", level: "1", seed: "" };
export const state = { ...start };
let settling = 0;

// A browser may take up a reload before it has heard of the address that was written last: the tab keeps that one too.
function keep(hash) {
  try { sessionStorage.setItem("address", hash); } catch { } // a browser that keeps nothing: the address alone is read
}

export function reloaded() {
  if (performance.getEntriesByType("navigation")[0]?.type !== "reload") return;
  try {
    const kept = sessionStorage.getItem("address");
    if (kept !== null && kept !== (location.hash || "#")) history.replaceState(null, "", kept);
  } catch { }
}

export function readAddress(about) {
  keep(location.hash || "#");
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(start)) state[name] = given.get(name) ?? start[name];
  if (!Object.hasOwn(about.transforms, state.transform)) state.transform = start.transform;
  if (!kinds(about).includes(state.kind)) state.kind = start.kind;
  if (!/^\d$/.test(state.order)) state.order = start.order;
  if (!Object.hasOwn(about.lessons, state.lesson)) state.lesson = "";
  if (!about.topics.includes(state.practice)) state.practice = "";
  if (!/^[123]$/.test(state.level)) state.level = start.level;
  return given;
}

export function writeAddress(push) {
  const shown = Object.entries(state).filter(([name, value]) => value !== start[name]);
  const hash = "#" + new URLSearchParams(shown);
  keep(hash);
  if (hash === (location.hash || "#")) return;
  try {
    history[push ? "pushState" : "replaceState"](null, "", hash);
  } catch { } // Safari writes a hundred in half a minute: the next one that it writes has all of it
}

export function settle() {
  clearTimeout(settling);
  settling = setTimeout(() => {
    const hash = location.hash; // an entry of its own, from which "back" leads to what stood there before
    if (hash !== settle.last) { history.replaceState(null, "", settle.last || "#"); history.pushState(null, "", hash); }
    settle.last = hash;
  }, SETTLED);
}

export function kinds(about) {
  return ["formula", ...(about.file ? ["file"] : []), ...(about.allow_code ? ["code"] : [])];
}
