"use strict";
// Whatever comes over the socket is put in with textContent or drawn on the canvas; nothing here builds markup.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg"; // marks.js draws with it
const canvas = $("canvas");
const pen = canvas.getContext("2d", { alpha: false });
const LONGEST_PAUSE = 15000;
// Without a word for so long the connection is looked at: a computer that slept may have lost it without notice.
const QUIET = 30000;
const page = { socket: null, me: 0, state: {}, ahead: 0, pause: 500, timer: 0, heard: 0, seen: false, over: false, kept: 30, mayTakeOver: false };

function el(name, className, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

// ---- the connection

function streamAddress() {
  const address = new URL("live/stream", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  address.search = address.hash = "";
  return address;
}

function connect() {
  clearTimeout(page.timer);
  if (page.socket) return;
  const socket = new WebSocket(streamAddress());
  socket.binaryType = "arraybuffer";
  page.socket = socket;
  // One turn at a time: the next comes only after this one was acknowledged.
  socket.onmessage = (event) => {
    page.heard = Date.now();
    take(socket, event.data).catch(() => socket.close());
  };
  socket.onclose = (event) => {
    if (page.socket !== socket) return;
    page.socket = null;
    lost(event);
  };
}

async function lost(event) {
  const connected = page.seen;
  page.seen = false;
  showControl(null);
  if (event.code === 4401) return signedOut();
  const wait = page.pause * (0.75 + Math.random() / 2);
  page.pause = Math.min(page.pause * 2, LONGEST_PAUSE);
  if (event.code === 4429) page.pause = LONGEST_PAUSE;
  cover("Not connected", event.reason && event.code >= 4000 ? event.reason : connected ? "The connection ended. Trying again." : "computerd can not be reached. Trying again.", true);
  status("Not connected", "bad");
  page.timer = setTimeout(connect, wait);
  if (connected) return undefined;
  // The browser does not tell why it was refused.
  try {
    const answer = await fetch("live/session", { cache: "no-store" });
    if (answer.status === 401 && !page.socket?.readyState) signedOut();
  } catch {
    // not reachable: the timer goes on
  }
  return undefined;
}

function signedOut() {
  clearTimeout(page.timer);
  const socket = page.socket;
  page.socket = null;
  if (socket) socket.close();
  page.over = true;
  status("Signed out", "bad");
  cover("This view has ended", "Open a new one with deskhand view, on a machine that has computerd's token.", true);
}

function again() {
  page.pause = 500;
  page.over = false;
  if (!page.socket) connect();
}

async function stillThere() {
  if (document.hidden || !page.socket || Date.now() - page.heard < QUIET) return;
  const socket = page.socket;
  try {
    const answer = await fetch("live/session", { cache: "no-store", signal: AbortSignal.timeout(8000) });
    if (answer.status === 401) signedOut();
    else page.heard = Date.now();
  } catch {
    if (page.socket !== socket) return;
    page.socket = null;
    socket.close();
    lost({ code: 1006, reason: "" });
  }
}

function say(what) {
  if (page.socket && page.socket.readyState === WebSocket.OPEN) page.socket.send(JSON.stringify(what));
}

// ---- a turn

async function take(socket, data) {
  const length = new DataView(data).getUint32(0);
  const turn = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  if (turn.hello) hello(turn.hello);
  if (turn.images) await drawImages(turn, data, 4 + length);
  if (page.socket !== socket) return;
  if (turn.state) showState(turn.state);
  if (turn.outcomes) turn.outcomes.forEach(showOutcome);
  if (turn.did) turn.did.forEach(done);
  socket.send(JSON.stringify({ ack: turn.turn }));
}

function hello(said) {
  page.me = said.you;
  page.ahead = said.now - Date.now() / 1000;
  page.seen = true;
  page.pause = 500;
  page.kept = said.kept;
  page.state = {};
  page.mayTakeOver = said.may_take_over;
  $("take").hidden = !said.may_take_over;
  $("name").textContent = `Desktop ${said.display}`;
  document.title = `Desktop ${said.display}`;
  $("outcomes").replaceChildren(); // they are told anew
  input.waiting = [];
  input.sent = null;
  if (document.hidden) say({ watching: false });
}

async function drawImages(turn, data, at) {
  const pictures = turn.images.map(([, , , , format, size]) => {
    const blob = new Blob([new Uint8Array(data, at, size)], { type: `image/${format}` });
    at += size;
    return createImageBitmap(blob, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
  });
  const decoded = await Promise.all(pictures);
  if (turn.of[0] !== canvas.width || turn.of[1] !== canvas.height) {
    [canvas.width, canvas.height] = turn.of;
    fit();
  }
  decoded.forEach((picture, i) => {
    pen.drawImage(picture, turn.images[i][0], turn.images[i][1]);
    picture.close();
  });
  document.body.classList.remove("empty");
}

// ---- what is so

function status(text, kind) {
  $("status").className = `status ${kind}`;
  $("status-text").textContent = text;
}

function cover(title, text, retry) {
  document.body.classList.toggle("still", Boolean(title));
  $("cover").hidden = !title;
  $("cover-title").textContent = title || "";
  $("cover-text").textContent = text || "";
  $("retry").hidden = !retry;
}

function showState(changed) {
  Object.assign(page.state, changed);
  const state = page.state;
  if ("trouble" in changed) {
    if (state.trouble) {
      status("Display gone", "bad");
      cover("The display is gone", sentence(state.trouble), false);
    } else {
      status("Live", "live");
      cover(null);
    }
  }
  if ("pointer" in changed) movePointer();
  if ("viewers" in changed) $("viewers").textContent = state.viewers === 1 ? "only you" : `${state.viewers} people`;
  if ("budget" in changed) showBudget(state.budget);
  if ("lease" in changed) showLease();
  if ("control" in changed) showControl(state.control);
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

function showBudget(budget) {
  $("budget").hidden = !budget;
  if (!budget) return;
  const limited = budget.limit !== null && budget.limit !== undefined;
  const used = budget.used || 0;
  $("budget-text").textContent = limited ? `${used} of ${budget.limit}` : `${used}, no limit`;
  $("budget").title = budget.session ? `Session ${budget.session}` : "";
  $("meter").hidden = !limited;
  $("meter").firstChild.style.transform = `scaleX(${limited ? Math.min(1, used / Math.max(1, budget.limit)) : 0})`;
  $("meter").classList.toggle("low", limited && used >= 0.8 * budget.limit);
}

function showLease() {
  const lease = page.state.lease;
  const left = lease ? lease.until - page.ahead - Date.now() / 1000 : 0;
  if (!lease || left <= 0) $("lease").textContent = "nobody";
  else {
    const minutes = Math.floor(left / 60);
    const time = minutes >= 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : minutes ? `${minutes} min` : `${Math.ceil(left)} s`;
    $("lease").textContent = `${lease.holder} · ${time} left`;
  }
}

// ---- what happened

const RECENT = 6; // seconds in which a click is still drawn

function showOutcome(outcome) {
  const kind = outcome.ok ? "ok" : outcome.sent === "none" ? "refused" : "failed";
  const when = new Date(outcome.time * 1000);
  const time = el("time", "", when.toLocaleTimeString([], { hour12: false }));
  time.dateTime = when.toISOString();
  const who = outcome.person ? "a person" : outcome.session || "an agent";
  const item = el("li", kind, el("div", "top", time, el("span", "who", who), el("span", "badge", outcome.ok ? "done" : kind)));
  for (const action of outcome.actions) item.append(el("div", `act ${action.status}`, action.words));
  if (outcome.more) item.append(el("div", "after", `and ${outcome.more} more`));
  if (!outcome.ok) item.append(el("div", "why", outcome.text));
  else if (!outcome.actions.length) item.append(el("div", "act", outcome.text));
  const settled = { settled: "settled", timeout: "not settled in time", animating: "still animating" }[outcome.settle];
  if (settled) item.append(el("div", "after", `${settled} after ${Math.round(outcome.settle_ms)} ms`));
  const list = $("outcomes");
  list.prepend(item);
  while (list.children.length > page.kept) list.lastChild.remove();
  $("nothing").hidden = true;
  if (outcome.marks.length && Date.now() / 1000 + page.ahead - outcome.time < RECENT) showMarks(outcome.marks);
}

function showMarks(marks) {
  const svg = document.createElementNS(SVG, "svg");
  // What was done last is what the eye should find.
  while ($("marks").children.length > 2) $("marks").firstChild.remove();
  $("marks").append(svg);
  drawMarks(svg, { naturalWidth: canvas.width, naturalHeight: canvas.height, clientWidth: canvas.clientWidth || canvas.width }, marks);
  svg.addEventListener("animationend", () => svg.remove());
}

// ---- size and pointer

function fit() {
  const stage = $("stage");
  const actual = stage.classList.contains("actual");
  const narrow = matchMedia("(max-width: 800px)").matches;
  const room = narrow ? 0 : 24;
  const wide = (stage.clientWidth - room) / canvas.width;
  const high = narrow ? Infinity : (stage.clientHeight - room) / canvas.height;
  const scale = actual ? 1 / devicePixelRatio : Math.max(0.05, Math.min(wide, high));
  $("screen").style.width = `${canvas.width * scale}px`;
  $("screen").style.height = `${canvas.height * scale}px`;
  movePointer();
}

function movePointer() {
  const at = page.state.pointer;
  $("pointer").toggleAttribute("hidden", !at);
  if (!at) return;
  const scale = canvas.clientWidth / canvas.width;
  $("pointer").style.transform = `translate(${(at[0] + 0.5) * scale - 1}px, ${(at[1] + 0.5) * scale - 1}px)`;
}

// ---- taking over

const input = { waiting: [], sent: null, number: 0, down: null };
const DRAG = 4; // pixels of this page that make a drag of a click
const mine = () => page.state.control === page.me && page.socket !== null;

function showControl(holder) {
  page.state.control = holder;
  const me = holder !== null && holder !== undefined && holder === page.me;
  document.body.classList.toggle("mine", me);
  $("keys").hidden = !me;
  $("back").hidden = !me;
  $("take").hidden = !page.mayTakeOver || !page.seen || me;
  $("take").disabled = holder !== null && holder !== undefined;
  if (me) {
    const how = matchMedia("(pointer: coarse)").matches ? "Tap, drag and type." : "Ctrl+V pastes from your computer; Ctrl+Alt+Q gives back.";
    banner(`You have taken over: agents wait. ${how}`, "mine");
    $("keys").focus({ preventScroll: true });
  } else {
    input.waiting = [];
    input.down = null;
    banner(holder ? "A person has taken over. Agents wait until they give it back." : "", "");
  }
}

function banner(text, kind) {
  $("banner").hidden = !text;
  $("banner").className = kind;
  $("banner-text").textContent = text;
}

function act(action) {
  if (!mine()) return;
  const last = input.waiting[input.waiting.length - 1];
  if (last && action.action === "move" && last.action === "move") input.waiting[input.waiting.length - 1] = action;
  else if (last && action.action === "type" && last.action === "type" && !last.method && !action.method && last.text.length < 2000) last.text += action.text;
  else if (last && action.action === "scroll" && last.action === "scroll" && Math.abs(last.dy + action.dy) <= 100 && Math.abs(last.dx + action.dx) <= 100 && (last.dx + action.dx || last.dy + action.dy)) {
    last.dx += action.dx;
    last.dy += action.dy;
  } else input.waiting.push(action);
  flush();
}

function flush() {
  if (input.sent !== null || !input.waiting.length || !mine()) return;
  input.number += 1;
  input.sent = input.number;
  say({ act: input.waiting.splice(0, 50), id: input.number });
}

function done(did) {
  if (did.id === null) {
    if (did.error) banner(sentence(did.error), "error");
    return;
  }
  if (did.id !== input.sent) return;
  input.sent = null;
  if (did.error && mine()) {
    input.waiting = [];
    banner(`That did not work: ${did.error}`, "mine");
  }
  flush();
}

function position(event) {
  const box = canvas.getBoundingClientRect();
  const within = (value, most) => Math.max(0, Math.min(most - 1, Math.floor(value)));
  return {
    x: within(((event.clientX - box.left) * canvas.width) / box.width, canvas.width),
    y: within(((event.clientY - box.top) * canvas.height) / box.height, canvas.height),
  };
}

function modifiers(event) {
  return [["ctrlKey", "ctrl"], ["altKey", "alt"], ["shiftKey", "shift"], ["metaKey", "super"]].filter(([key]) => event[key]).map(([, name]) => name);
}

const BUTTONS = ["left", "middle", "right", "back", "forward"];

canvas.addEventListener("pointerdown", (event) => {
  if (!mine()) return;
  event.preventDefault();
  canvas.setPointerCapture(event.pointerId);
  $("keys").focus({ preventScroll: true });
  const button = BUTTONS[event.button];
  if (input.down || !button) return;
  input.down = { button, at: position(event), from: [event.clientX, event.clientY], dragging: false, modifiers: modifiers(event) };
});
canvas.addEventListener("pointermove", (event) => {
  if (!mine()) return;
  const down = input.down;
  if (down && !down.dragging) {
    if (Math.hypot(event.clientX - down.from[0], event.clientY - down.from[1]) < DRAG) return;
    down.dragging = true;
    act({ action: "mouse_down", ...down.at, button: down.button });
  }
  act({ action: "move", ...position(event) });
});
canvas.addEventListener("pointerup", (event) => {
  const down = input.down;
  input.down = null;
  if (!mine() || !down) return;
  if (down.dragging) act({ action: "mouse_up", ...position(event), button: down.button });
  else act({ action: "click", ...down.at, button: down.button, modifiers: down.modifiers });
});
canvas.addEventListener("pointercancel", (event) => {
  const down = input.down;
  input.down = null;
  if (down && down.dragging) act({ action: "mouse_up", ...position(event), button: down.button });
});
canvas.addEventListener("contextmenu", (event) => {
  if (!mine()) return;
  event.preventDefault();
  // A long press of a finger; a mouse's right button has been told already.
  if (event.pointerType === "touch") {
    input.down = null;
    act({ action: "click", ...position(event), button: "right" });
  }
});
const wheel = { x: 0, y: 0 };
canvas.addEventListener("wheel", (event) => {
  if (!mine()) return;
  event.preventDefault();
  const unit = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 100 : 3;
  wheel.x += event.deltaX / unit;
  wheel.y += event.deltaY / unit;
  const [dx, dy] = [Math.trunc(wheel.x), Math.trunc(wheel.y)];
  wheel.x -= dx;
  wheel.y -= dy;
  if (dx || dy) act({ action: "scroll", ...position(event), dx: Math.max(-100, Math.min(100, dx)), dy: Math.max(-100, Math.min(100, dy)) });
}, { passive: false });

const NAMES = { " ": "space", "+": "plus" };
const ALONE = new Set(["Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock", "NumLock", "ScrollLock", "Fn", "Hyper", "Super", "Dead", "Unidentified", "Process", "Compose"]);

function pressed(event) {
  if (!mine() || event.isComposing || ALONE.has(event.key)) return;
  if (event.ctrlKey && event.altKey && event.key.toLowerCase() === "q") {
    event.preventDefault();
    giveBack();
    return;
  }
  const printable = [...event.key].length === 1;
  const pasting = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "v";
  // A character of the keyboard comes as input, so that compositions and other keyboards do too.
  if (pasting || (printable && (event.getModifierState("AltGraph") || !(event.ctrlKey || event.altKey || event.metaKey)))) return;
  event.preventDefault();
  const letter = printable && event.key.toLowerCase() !== event.key.toUpperCase();
  const held = modifiers(event).filter((name) => name !== "shift" || !printable || letter);
  const key = NAMES[event.key] || (printable ? event.key.toLowerCase() : event.key);
  act({ action: "key", keys: [...held, key].join("+") });
}

function typed() {
  const text = $("keys").value;
  $("keys").value = "";
  if (text) act({ action: "type", text });
}

function giveBack() {
  say({ give_back: true });
}

$("keys").addEventListener("keydown", pressed);
$("keys").addEventListener("input", (event) => { if (!event.isComposing) typed(); });
$("keys").addEventListener("compositionend", typed);
$("keys").addEventListener("paste", (event) => {
  event.preventDefault();
  const text = event.clipboardData.getData("text/plain").replace(/\r\n?/g, "\n");
  // Long text is pasted there too: typed, it would take minutes.
  if (text) act({ action: "type", text: text.slice(0, 100000), method: text.length > 500 ? "paste" : "keys" });
});
$("take").addEventListener("click", () => say({ take: true }));
$("back").addEventListener("click", giveBack);

// ---- the rest

$("retry").addEventListener("click", again);
$("size").addEventListener("click", () => {
  const actual = $("stage").classList.toggle("actual");
  $("size").setAttribute("aria-pressed", String(actual));
  fit();
});
$("full").addEventListener("click", () => {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen().catch(() => {});
});
new ResizeObserver(fit).observe($("stage"));
window.addEventListener("online", () => { if (!page.over) again(); });
document.addEventListener("visibilitychange", () => {
  say({ watching: !document.hidden });
  if (!document.hidden && !page.over) {
    if (!page.socket) again();
    else stillThere();
  }
});
setInterval(() => { showLease(); stillThere(); }, 5000);
document.body.classList.add("empty");
connect();
