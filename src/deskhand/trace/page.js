"use strict";
// Everything of the trace is put in with textContent or as an attribute that is no code; nothing here builds markup.
const trace = JSON.parse(document.getElementById("trace").textContent);
const steps = trace.steps;
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const PROBLEM = new Set(["failed", "refused"]);
const state = { n: 0, mode: "both", marks: true, actual: false, flipped: false, split: 50 };

function el(name, className, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function duration(seconds) {
  if (typeof seconds !== "number") return "";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
}

function clock(seconds) {
  const tenths = Math.round(seconds * 10);
  return `${Math.floor(tenths / 600)}:${((tenths % 600) / 10).toFixed(1).padStart(4, "0")}`;
}

function tokenWords(tokens) {
  const read = tokens.input + tokens.cache_read + tokens.cache_write;
  const cached = tokens.cache_read ? ` (${tokens.cache_read.toLocaleString("en")} cached)` : "";
  return `${read.toLocaleString("en")} read${cached}, ${tokens.output.toLocaleString("en")} written`;
}

// Whatever the currency: only who gave the prices knows it.
const money = (cost) => (cost < 0.1 ? cost.toFixed(4) : cost.toFixed(2));

const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const plural = (count, word) => (count === 1 ? word : word.includes(" to ") ? word.replace(" to ", "s to ") : word.replace(/(s|ch)?$/, (end) => (end ? `${end}es` : "s")));

// ---- the head

const verdict = (check) => (check.ok === true ? "ok" : check.ok === false ? "failed" : "none");

function checkSign(check) {
  const sign = el("span", "sign", { ok: "✓", failed: "✗", none: "·" }[verdict(check)]);
  sign.setAttribute("role", "img");
  sign.setAttribute("aria-label", { ok: "passed", failed: "not passed", none: "no verdict" }[verdict(check)]);
  return sign;
}

function showChecks(list, checks) {
  list.className = "checks";
  list.replaceChildren(...checks.map((check) => {
    const facts = check.found.map(([name, value]) => el("div", "fact", el("span", "", name), el("code", "", plain(value))));
    return el("li", `check ${verdict(check)}`, checkSign(check), el("div", "", el("strong", "", check.name), ...facts));
  }));
  list.hidden = !checks.length;
}

function showHead() {
  const outcome = trace.outcome || "unfinished";
  $("kicker").textContent = trace.title ? `Deskhand trace · ${trace.title}` : "Deskhand trace";
  $("goal").textContent = trace.goal || "(no goal was given)";
  $("outcome").textContent = outcome;
  $("outcome").classList.add(trace.outcome || "stopped");
  $("outcome-text").textContent = trace.text;
  $("outcome-text").hidden = !trace.text;
  const date = new Date(trace.started * 1000);
  const counts = trace.counts;
  const entry = (name, value) => el("div", "", el("dt", "", name), el("dd", "", value));
  const time = el("time", "", date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }));
  time.dateTime = date.toISOString();
  const entries = [["when", time], ["took", duration(trace.elapsed_s)]];
  for (const [name, word] of [["batches", "batch"], ["actions", "action"], ["tools", "tool call"], ["approvals", "question to a person"]]) {
    if (counts[name] || name === "batches" || name === "actions") entries.push([plural(counts[name], word), String(counts[name])]);
  }
  if (trace.model) {
    entries.push([plural(trace.model.turns, "model turn"), `${trace.model.turns} in ${duration(trace.model.elapsed_s)}`]);
    entries.push(["tokens", tokenWords(trace.model.tokens)]);
    if (trace.model.cost !== null) entries.push(["cost", money(trace.model.cost)]);
  }
  const bad = steps.find((step) => PROBLEM.has(step.badge) && step.kind !== "finish");
  if (bad) {
    const link = el("a", "", String(steps.filter((step) => PROBLEM.has(step.badge) && step.kind !== "finish").length));
    link.href = `#step-${bad.n}`;
    entries.push(["with a problem", link]);
  }
  for (const [name, value] of Object.entries(trace.facts)) {
    entries.push([name, name === "screen" && Array.isArray(value) ? value.join("×") : plain(value)]);
  }
  $("numbers").append(...entries.map(([name, value]) => entry(name, value)));
  const checks = $("checks");
  checks.hidden = !trace.checks.length;
  checks.open = trace.checks.some((check) => check.ok === false);
  checks.firstChild.append("Checks", ...trace.checks.map((check) => el("span", verdict(check), checkSign(check), ` ${check.name}`)));
  showChecks(checks.lastChild, trace.checks);
  const notes = [];
  if (!trace.outcome) notes.push("The run ended without finishing its trace; this is what it had recorded.");
  if (trace.broken_lines) notes.push(`${trace.broken_lines} ${plural(trace.broken_lines, "line")} of trace.jsonl could not be read.`);
  if (!trace.embedded) {
    notes.push(`The pictures (${Math.round(trace.picture_bytes / 1e6)} MB) are files beside this page: keep the directory together.`);
  }
  $("note").textContent = notes.join(" ");
  $("note").hidden = !notes.length;
}

// ---- the timeline

const ANSWERS = {
  allowed: "a person allowed", declined: "a person declined", nobody: "nobody there to ask", "no answer": "no answer in time",
  cancelled: "ended before the answer",
};

function settleWords(step) {
  if (!step.settle || step.settle === "none") return null;
  const words = { settled: "settled", timeout: "not settled in time", animating: "still animating" }[step.settle] || step.settle;
  const ms = typeof step.settle_ms === "number" ? ` · ${Math.round(step.settle_ms)} ms` : "";
  return el("span", step.settle === "settled" ? "" : "warn", words + ms);
}

function timelineEntry(step) {
  const body = el("div", "");
  if (step.said.length) body.append(el("div", "said", step.said.join(" ")));
  if (step.kind === "batch") {
    const shown = step.actions.slice(0, step.actions.length > 5 ? 4 : 5);
    for (const action of shown) body.append(el("div", `act ${action.status}`, action.words));
    const rest = step.actions.length - shown.length + step.more_actions;
    if (rest) body.append(el("div", "after", `and ${rest} more`));
    if (!step.actions.length) body.append(el("div", "act", step.name));
  } else if (step.kind === "finish") {
    body.append(el("div", "act", step.badge));
  } else if (step.kind === "approval") {
    body.append(el("div", `act ask ${step.badge}`, ANSWERS[step.answer] || step.answer), el("div", "after", step.name));
  } else if (step.kind === "tool") {
    body.append(el("div", "act tool", step.name));
  } else if (step.kind === "model") {
    body.append(el("div", "act model", step.asks.length ? `asks for ${step.asks.join(", ")}` : "model replies"));
    body.append(el("div", "after", `${duration(step.elapsed_s)} · ${step.tokens.output.toLocaleString("en")} tokens`));
  }
  const failed = (step.actions || []).find((action) => action.error);
  const why = step.error || (failed && failed.error);
  if (why) body.append(el("div", "why", why));
  if (step.kind === "batch") {
    const took = typeof step.elapsed_s === "number" ? el("span", "", ` of ${duration(step.elapsed_s)}`) : null;
    const settled = settleWords(step);
    if (settled) body.append(el("div", "after", settled, took));
  } else if (step.rows) {
    body.append(el("div", "after", `${step.rows.length} ${plural(step.rows.length, "item")}`));
  }
  const dot = el("span", `dot ${step.badge}`, String(step.n));
  dot.title = step.badge;
  const link = el("a", "", dot, body, el("span", "at", clock(step.at)));
  link.href = `#step-${step.n}`;
  link.setAttribute("aria-label", `Step ${step.n}, ${step.badge}: ${step.name}`);
  link.addEventListener("click", () => {
    // On a narrow page the timeline is under the stage.
    if (window.matchMedia("(max-width: 800px)").matches) $("stage").scrollIntoView();
  });
  return el("li", "", link);
}

// ---- the step's words

function actionEntry(action, index, mark) {
  const facts = el("span", "facts");
  if (action.point) facts.append(el("span", "", `at screen pixel (${action.point.join(", ")})`));
  for (const [name, value] of action.facts || []) facts.append(el("span", "", `${name} `, el("code", "", value)));
  if (action.status === "skipped") facts.append(el("span", "", "skipped"));
  const item = el("li", action.status, el("span", mark ? `number ${action.status} ${mark.kind}` : "number unplaced", String(index + 1)),
    el("div", "", el("span", "what", action.words), facts));
  if (action.error) item.lastChild.append(el("div", "error", action.error));
  return item;
}

function showWords(step) {
  const words = $("words");
  words.replaceChildren();
  for (const text of step.said) words.append(el("blockquote", "", text));
  if (step.kind === "batch") {
    const marks = new Map(step.marks.map((mark) => [mark.n - 1, mark]));
    words.append(el("ol", "actions", ...step.actions.map((action, i) => actionEntry(action, i, marks.get(i)))));
    if (step.more_actions) words.append(el("p", "facts", `and ${step.more_actions} more actions, in trace.jsonl`));
  } else if (step.kind === "tool") {
    words.append(el("p", "", "Called ", el("code", "", step.name), "."));
    if (step.rows) words.append(el("ul", "rows", ...step.rows.map((row) => el("li", "", row))));
  } else if (step.kind === "approval") {
    words.append(el("p", "", "Needs a person: ", el("b", "", step.name)));
    words.append(el("p", "", "Answer: ", el("span", `badge ${step.badge}`, ANSWERS[step.answer] || step.answer), step.once && step.badge === "ok" ? " for the rest of the session" : ""));
    if (step.asked) words.append(el("ol", "calls", el("li", "", el("code", "", step.asked))));
  } else if (step.kind === "model") {
    words.append(el("p", "", "Asked ", el("code", "", step.name), step.calls.length ? ", which asked for:" : "."));
    words.append(el("ol", "calls", ...step.calls.map((call) => el("li", "", el("code", "", call)))));
    if (step.given.length) {
      const given = el("details", "given", el("summary", "", "What it was told since its last turn"));
      given.append(el("ul", "", ...step.given.map((line) => el("li", "", line))));
      words.append(given);
    }
  } else if (step.kind === "finish") {
    words.append(el("p", "", trace.text || "No more was said."));
    const list = el("ul", "");
    showChecks(list, trace.checks);
    words.append(list);
  }
  const error = step.error && !(step.actions || []).some((action) => action.error === step.error);
  if (error) words.append(el("p", "error", step.error));
  const facts = el("div", "facts-line");
  if (step.kind === "model") {
    facts.append(el("span", "", "tokens ", el("b", "", tokenWords(step.tokens))));
    if (step.cost !== null) facts.append(el("span", "", "cost ", el("b", "", money(step.cost))));
    if (step.sent_pictures) facts.append(el("span", "", "pictures sent ", el("b", "", String(step.sent_pictures))));
    if (step.retries) facts.append(el("span", "warn", "asked again ", el("b", "", `${step.retries}×`)));
    if (step.reason) facts.append(el("span", "", "ended ", el("code", "", step.reason)));
  }
  if (step.kind === "approval") {
    facts.append(el("span", "", "asked by ", el("b", "", step.source)), el("span", "", "for ", el("code", "", step.verb)));
  }
  const settled = settleWords(step);
  if (settled) facts.append(el("span", "", "screen ", el("b", "", settled)));
  if (step.sent && step.badge !== "ok") facts.append(el("span", "warn", "input sent: ", el("b", "", step.sent)));
  if (step.window) facts.append(el("span", "", "window ", el("b", "", step.window)));
  if (step.space && step.space !== "screen") facts.append(el("span", "", "space ", el("code", "", plain(step.space))));
  if (step.after && step.before === step.after) facts.append(el("span", "warn", "the picture is the same to the byte"));
  if (facts.childNodes.length) words.append(facts);
  words.hidden = !words.childNodes.length;
}

// ---- the pictures

const source = (name) => (trace.embedded ? document.getElementById(name).textContent : name);
const there = (name) => Boolean(name) && trace.pictures.includes(name);

function image(name, alt, className) {
  const img = el("img", className || "");
  img.alt = alt;
  img.src = source(name);
  img.draggable = false;
  return img;
}

function figure(caption, detail, frame, extra) {
  const view = el("div", "window", frame);
  frame.addEventListener("click", () => { state.actual = !state.actual; showStep(); });
  return el("figure", state.actual ? "actual" : "", el("figcaption", "", el("b", "", caption), detail), view, extra);
}

function picture(name, alt, marks) {
  const frame = el("div", "frame", image(name, alt));
  overlay(frame, marks);
  return frame;
}

function overlay(frame, marks) {
  if (!state.marks || !marks.length) return;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("aria-hidden", "true");
  frame.append(svg);
  const img = frame.querySelector("img");
  // An image that the next step replaced can still load: it has no width.
  const draw = () => img.naturalWidth && img.clientWidth && drawMarks(svg, img, marks);
  img.addEventListener("load", () => {
    draw();
    scrollToMark(frame, marks);
    const out = marks.some((mark) => mark.points?.every(([x, y]) => x < 0 || y < 0 || x > img.naturalWidth || y > img.naturalHeight));
    if (out) $("legend").append(" A number at the edge: outside of what this picture shows.");
  });
  new ResizeObserver(draw).observe(img);
}

function scrollToMark(frame, marks) {
  const first = marks.find((mark) => mark.points);
  if (!state.actual || !first || !frame.parentNode) return;
  frame.parentNode.scrollTo(first.points[0][0] - frame.parentNode.clientWidth / 2, first.points[0][1] - frame.parentNode.clientHeight / 2);
}

const compared = {
  both: (step, before, after) => [
    figure("Before", "what the agent looked at", picture(step.before, before, step.marks)),
    figure("After", "what it got back", picture(step.after, after, movingMarks(step))),
  ],
  flip: (step, before, after) => {
    const swap = el("button", "", state.flipped ? "Show before" : "Show after");
    swap.addEventListener("click", flip);
    const frame = state.flipped ? picture(step.after, after, movingMarks(step)) : picture(step.before, before, step.marks);
    return [figure(state.flipped ? "After" : "Before", swap, frame)];
  },
  slider: (step, before, after) => {
    const frame = el("div", "frame", image(step.before, before), image(step.after, after, "over"));
    const line = el("div", "line");
    frame.append(line);
    const clip = () => {
      frame.children[1].style.clipPath = `inset(0 0 0 ${state.split}%)`;
      line.style.left = `${state.split}%`;
    };
    const range = el("input", "");
    Object.assign(range, { type: "range", min: 0, max: 100, value: state.split });
    range.setAttribute("aria-label", "Where before ends and after begins, percent of the width");
    range.addEventListener("input", () => { state.split = Number(range.value); clip(); });
    clip();
    overlay(frame, step.marks);
    return [figure("Before | after", "move the slider", frame, range)];
  },
  difference: (step, before, after) => {
    const frame = el("div", "frame difference", image(step.before, before), image(step.after, after, "over"));
    return [figure("Difference", "black did not change", frame)];
  },
};

const overlaid = new Set(["slider", "difference"]);
const movingMarks = (step) => step.moving.map((rect) => ({ kind: "moving", rect }));

function showPictures(step) {
  const before = there(step.before);
  const after = there(step.after);
  const both = before && after;
  $("modes").hidden = !both;
  // Pictures of different parts of the screen can not be laid over each other.
  const mode = !step.comparable && overlaid.has(state.mode) ? "both" : state.mode;
  for (const button of $("modes").children) {
    button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    button.disabled = !step.comparable && overlaid.has(button.dataset.mode);
  }
  $("marks").setAttribute("aria-pressed", String(state.marks));
  $("actual").setAttribute("aria-pressed", String(state.actual));
  let figures = [];
  if (both) {
    figures = compared[mode](step, `The screen before step ${step.n}`, `The screen after step ${step.n}`);
  } else if (after) {
    figures = [figure("After", "the first picture", picture(step.after, `The screen after step ${step.n}`, movingMarks(step)))];
  } else if (before) {
    figures = [figure("Before", "no picture came back", picture(step.before, `The screen before step ${step.n}`, step.marks))];
  } else if (there(step.last)) {
    const model = step.kind === "model";
    figures = [figure(model ? "What the model saw" : "The last picture", model ? "the newest picture it had" : "of an earlier step", picture(step.last, "The last picture of an earlier step", []))];
  }
  $("pictures").className = figures.length === 2 && !state.actual ? "two" : both ? "" : state.actual ? "" : "small";
  const missing = [step.before, step.after].filter((name) => name && !there(name));
  if (missing.length) figures.push(el("p", "error", `${missing.join(", ")} is not beside the trace any more.`));
  $("pictures").replaceChildren(...figures);
  $("tools").hidden = !figures.length;
  const legend = [];
  if (step.marks?.length && before) legend.push("Numbers on the picture are the actions' numbers.");
  if (step.marks?.some((mark) => PROBLEM.has(mark.status) || mark.status === "skipped")) legend.push("Dashed: failed or never done.");
  if (step.moving?.length) legend.push("Dashed boxes: still changing when the picture was taken.");
  $("legend").textContent = legend.join(" ");
  $("legend").hidden = !legend.length || !state.marks;
}

{{marks}}
// ---- paging

function showStep() {
  const step = steps[state.n];
  if (!step) {
    $("stage").hidden = true;
    return;
  }
  $("here").textContent = `Step ${step.n} of ${steps.length}`;
  $("here").href = `#step-${step.n}`;
  $("badge").textContent = step.badge === "none" ? "" : step.badge;
  $("badge").className = `badge ${step.badge}`;
  $("when").textContent = `at ${clock(step.at)}${typeof step.elapsed_s === "number" ? ` · took ${duration(step.elapsed_s)}` : ""}`;
  $("first").disabled = $("previous").disabled = state.n === 0;
  $("end").disabled = $("next").disabled = state.n === steps.length - 1;
  showWords(step);
  showPictures(step);
  showRaw();
  [...$("timeline").children].forEach((item, index) => {
    if (index === state.n) item.firstChild.setAttribute("aria-current", "step");
    else item.firstChild.removeAttribute("aria-current");
  });
  const nav = document.querySelector("nav");
  const item = $("timeline").children[state.n];
  if (nav.scrollHeight > nav.clientHeight) {
    const top = item.getBoundingClientRect().top - nav.getBoundingClientRect().top;
    if (top < 0 || top + item.offsetHeight > nav.clientHeight) nav.scrollTop += top - nav.clientHeight / 3;
  }
}

function showRaw() {
  // Written only when open: an answer can be long.
  $("raw").hidden = !steps[state.n].raw;
  $("raw").querySelector("pre").textContent = $("raw").open ? JSON.stringify(steps[state.n].raw, null, 2) : "";
}

function go(n) {
  state.n = Math.min(Math.max(n, 0), steps.length - 1);
  state.flipped = false;
  // Paging is no travel: it must not fill the browser's history.
  history.replaceState(null, "", `#step-${state.n + 1}`);
  showStep();
}

function fromAddress() {
  const match = /^#step-(\d+)$/.exec(location.hash);
  // Where nothing is named: the first step that shows a screen, as a run often begins with a list.
  const opening = steps.findIndex((step) => there(step.before) || there(step.after));
  state.n = Math.min(Math.max(match ? Number(match[1]) - 1 : opening, 0), Math.max(steps.length - 1, 0));
  state.flipped = false;
  showStep();
}

function flip() {
  state.mode = "flip";
  state.flipped = !state.flipped;
  showStep();
}

function toggle(name) {
  state[name] = !state[name];
  showStep();
}

function nextProblem() {
  const later = [...steps.slice(state.n + 1), ...steps.slice(0, state.n + 1)];
  const step = later.find((candidate) => PROBLEM.has(candidate.badge));
  if (step) go(step.n - 1);
}

const keys = {
  ArrowLeft: () => go(state.n - 1), ArrowRight: () => go(state.n + 1), Home: () => go(0), End: () => go(steps.length - 1),
  n: nextProblem, b: flip, m: () => toggle("marks"), z: () => toggle("actual"),
};

showHead();
$("timeline").append(...steps.map(timelineEntry));
$("first").addEventListener("click", () => go(0));
$("previous").addEventListener("click", () => go(state.n - 1));
$("next").addEventListener("click", () => go(state.n + 1));
$("end").addEventListener("click", () => go(steps.length - 1));
$("marks").addEventListener("click", () => toggle("marks"));
$("actual").addEventListener("click", () => toggle("actual"));
$("raw").addEventListener("toggle", () => steps.length && showRaw());
for (const button of $("modes").children) {
  button.addEventListener("click", () => { state.mode = button.dataset.mode; state.flipped = false; showStep(); });
}
window.addEventListener("hashchange", fromAddress);
document.addEventListener("keydown", (event) => {
  if (!steps.length || event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "INPUT") return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
fromAddress();
