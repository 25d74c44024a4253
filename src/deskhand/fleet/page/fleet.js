"use strict";
// Whatever comes from the fleet is put in with textContent; nothing here builds markup.
const $ = (id) => document.getElementById(id);
const LONGEST_PAUSE = 15000;
const MOST_SAMPLES = 720;
const FAILURES = new Set(["expired", "died", "failed", "refused", "fenced", "none_free", "left_over"]);
const WORDS = {
  given: "Leased", released: "Given back", reset: "Reset", expired: "Ran out", died: "Desktop died", failed: "Start failed",
  refused: "Not like the template", fenced: "Call refused", none_free: "None free", left_over: "Did not end",
};
const ORDER = ["leased", "died", "ready", "starting", "ending"];
const page = { source: null, pause: 1000, timer: 0, ahead: 0, samples: [], sampled: [], health: null, events: new Map(), onlyFailures: false, over: false };

function el(name, className, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const now = () => Date.now() / 1000 + page.ahead;
const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// ---- the stream

function connect() {
  clearTimeout(page.timer);
  if (page.source) page.source.close();
  page.over = false;
  const source = new EventSource("fleet/changes");
  page.source = source;
  let first = true;
  source.addEventListener("state", (event) => {
    const told = JSON.parse(event.data);
    if (first) page.samples = [];
    first = false;
    page.pause = 1000;
    take(told);
  });
  source.addEventListener("over", () => signedOut());
  source.onerror = () => {
    if (page.source !== source || page.over) return;
    source.close(); // it would try again by itself, and hammer a server that is gone
    page.source = null;
    lost();
  };
}

async function lost() {
  status("Not connected", "bad");
  document.body.classList.add("still");
  banner("The fleet's page can not be reached. Trying again.", true);
  const wait = page.pause * (0.75 + Math.random() / 2);
  page.pause = Math.min(page.pause * 2, LONGEST_PAUSE);
  page.timer = setTimeout(connect, wait);
  // The browser does not tell why it was refused.
  try {
    const answer = await fetch("fleet/session", { cache: "no-store" });
    if (answer.status === 401) signedOut();
  } catch {
    // not reachable: the timer goes on
  }
}

function signedOut() {
  clearTimeout(page.timer);
  page.over = true;
  if (page.source) page.source.close();
  page.source = null;
  status("Signed out", "bad");
  document.body.classList.add("still");
  banner("This view has ended. deskhand fleet status gives another address.", true);
}

function status(text, look) {
  $("status-text").textContent = text;
  $("status").className = `status ${look}`;
}

function banner(text, retry) {
  $("banner").hidden = !text;
  $("banner").className = "error";
  $("banner-text").textContent = text;
  $("retry").hidden = !retry;
}

// ---- what is told

function take(told) {
  page.ahead = told.now - Date.now() / 1000;
  page.health = told.health;
  page.sampled = told.sampled;
  page.samples.push(...told.samples);
  page.samples.splice(0, page.samples.length - MOST_SAMPLES);
  document.body.classList.remove("still");
  showAll();
}

function showAll() {
  const health = page.health;
  if (!health) return;
  const title = `Fleet ${health.name}`;
  $("name").textContent = title;
  document.title = `${title}: ${health.leased} of ${health.size} leased`;
  status(health.ok ? "Well" : "Not well", health.ok ? "live" : "bad");
  const trouble = health.hosts.filter((host) => !host.ok && host.failure);
  if (health.trouble) banner(`The fleet gives no answer: ${health.trouble}`, false);
  else banner(trouble.length ? `${health.hosts.length > 1 ? `${short(trouble[0].name)}: ` : ""}${trouble[0].failure}` : "", false);
  $("leased").textContent = `${health.leased} of ${health.size}`;
  $("meter").firstElementChild.style.transform = `scaleX(${health.size ? health.leased / health.size : 0})`;
  $("free").textContent = health.free;
  $("waiting").textContent = health.waiting;
  $("leases").textContent = health.hosts.reduce((all, host) => all + (host.leases || 0), 0);
  showHosts(health.hosts);
  showEvents(health.hosts);
  showCharts();
  tick();
}

function short(name) {
  const node = name.split("/host/")[1];
  return node ? `machine ${node.slice(0, 8)}` : name;
}

// ---- charts

const nowChart = new Chart($("now"), $("now-legend"), $("now-at"), [
  { key: "leased", label: "leased", look: "leased" },
  { key: "ready", label: "ready", look: "ready" },
  { key: "coming", label: "starting", look: "starting" },
], false);
const rateChart = new Chart($("rate"), $("rate-legend"), $("rate-at"), [
  { key: "leases", label: "leases", look: "leased" },
  { key: "resets", label: "resets", look: "reset" },
  { key: "failures", label: "failures", look: "failed" },
], true);
const FAILED = ["failed", "died", "expired", "fenced"]; // a desktop that is refused has failed too

function showCharts() {
  const at = Object.fromEntries(page.sampled.map((name, i) => [name, i + 1]));
  const time = now();
  const hosts = page.health.hosts;
  const total = hosts.reduce((all, host) => all + host.size + (host.spares || 0), 0);
  const points = page.samples.map((one) => ({ time: one[0], values: { leased: one[at.leased], ready: one[at.ready], coming: one[at.coming] } }));
  const latest = { leased: 0, ready: 0, coming: 0 };
  for (const host of hosts) for (const key of Object.keys(latest)) latest[key] += host[key] || 0;
  nowChart.show([...points, { time, values: latest }], time, total);
  // By the minute: what is counted since the host began, from sample to sample.
  const failures = (one) => FAILED.reduce((all, name) => all + one[at[name]], 0);
  const minutes = new Map();
  page.samples.forEach((one, i) => {
    if (!i) return;
    const before = page.samples[i - 1];
    const minute = Math.floor(one[0] / 60);
    const sums = minutes.get(minute) || { leases: 0, resets: 0, failures: 0 };
    // A host that was started again counts from nothing.
    sums.leases += Math.max(0, one[at.leases] - before[at.leases]);
    sums.resets += Math.max(0, one[at.resets] - before[at.resets]);
    sums.failures += Math.max(0, failures(one) - failures(before));
    minutes.set(minute, sums);
  });
  const current = Math.floor(time / 60);
  if (page.samples.length && !minutes.has(current)) minutes.set(current, { leases: 0, resets: 0, failures: 0 });
  const bars = [...minutes].sort((a, b) => a[0] - b[0]).map(([minute, values]) => ({ time: minute * 60, until: Math.min(minute * 60 + 60, time), values }));
  rateChart.show(bars, time, 4);
}

// ---- desktops

function showHosts(hosts) {
  const many = hosts.length > 1;
  const shown = new Set();
  for (const host of [...hosts].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    shown.add(host.name);
    const id = `host ${host.name}`;
    let node = document.getElementById(id);
    if (!node) {
      node = el("section", "host", el("div", "bar", el("h2"), el("span", "words")), table());
      node.id = id;
      $("hosts").append(node);
    }
    node.querySelector("h2").textContent = many ? short(host.name)[0].toUpperCase() + short(host.name).slice(1) : "All desktops";
    node.querySelector(".words").textContent = words(host);
    node.classList.toggle("bad", !host.ok);
    fill(node.querySelector("tbody"), desktops(host));
  }
  for (const node of [...$("hosts").children]) if (!shown.has(node.id.slice(5))) node.remove();
}

function words(host) {
  const counts = [plural(host.size, "desktop")];
  if (host.session) counts[0] = `${host.size} ${host.session} ${host.size === 1 ? "desktop" : "desktops"}`;
  if (host.spares !== undefined) counts.push(plural(host.spares, "spare"));
  if (host.resets) counts.push(plural(host.resets, "reset"));
  for (const [key, what] of [["failed", "failed"], ["died", "died"], ["expired", "ran out"]]) if (host[key]) counts.push(`${host[key]} ${what}`);
  if (host.fenced) counts.push(`${plural(host.fenced, "call")} refused`);
  return [host.ok ? "" : "not well", ...counts].filter(Boolean).join(" · ");
}

/** Of a pool that can not tell of each desktop, its leases. */
function desktops(host) {
  if (host.desktops) return [...host.desktops].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || natural(a.display, b.display));
  return (host.leases_now || []).map((lease) => ({ ...lease, state: lease.dead ? "died" : "leased", until: now() + lease.left_s }));
}

const natural = (a, b) => String(a || "").localeCompare(String(b || ""), undefined, { numeric: true });
const COLUMNS = [["State", "state"], ["Display", "display"], ["User", "user"], ["Leased by", "holder"], ["Time left", "left"], ["Batches", "batches"], ["Fencing token", "number"], ["Age", "age"]];

function table() {
  const head = el("tr", "", ...COLUMNS.map(([title, key]) => Object.assign(el("th", key, title), { scope: "col" })));
  return el("div", "wide", el("table", "", el("thead", "", head), el("tbody")));
}

function fill(body, rows) {
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  while (body.rows.length < rows.length) {
    const cells = COLUMNS.map(([title, key]) => {
      const cell = el("td", key);
      cell.dataset.title = title;
      cell.dataset.key = key;
      return cell;
    });
    body.append(el("tr", "", ...cells));
  }
  rows.forEach((desktop, i) => {
    const row = body.rows[i];
    row.className = desktop.state;
    const texts = {
      display: desktop.display || "–", user: desktop.user || "–", holder: desktop.holder || "–", batches: desktop.batches ?? "–",
      number: desktop.number ?? "–", left: "–", age: "–",
    };
    for (const cell of row.cells) {
      const key = cell.dataset.key;
      if (key === "state") {
        if (cell.textContent !== desktop.state) cell.replaceChildren(el("span", `pill ${desktop.state}`, desktop.state));
      } else {
        cell.textContent = texts[key];
        cell.title = key === "holder" && desktop.holder ? desktop.holder : "";
      }
    }
    row.until = desktop.until;
    row.ttl = desktop.ttl;
    row.since = desktop.since;
  });
}

/** What changes by itself with time. */
function tick() {
  const time = now();
  for (const row of document.querySelectorAll("tbody tr")) {
    row.querySelector(".age").textContent = row.since ? span(time - row.since) : "–";
    const left = row.querySelector(".left");
    left.textContent = row.until ? span(row.until - time) : "–";
    left.classList.toggle("soon", Boolean(row.until) && row.until - time < 0.25 * (row.ttl || 0));
  }
  const began = Math.min(...(page.health ? page.health.hosts : []).map((host) => host.began || Infinity));
  $("up").textContent = Number.isFinite(began) ? span(time - began) : "–";
  for (const when of document.querySelectorAll("time")) when.textContent = `${span(time - Number(when.dataset.at))} ago`;
}

// ---- events

function showEvents(hosts) {
  for (const host of hosts) {
    for (const event of host.events || []) {
      // A host that was started again counts from one.
      const key = `${host.name} ${host.began} ${event.n}`;
      if (!page.events.has(key)) page.events.set(key, { ...event, host: hosts.length > 1 ? short(host.name) : "" });
    }
  }
  const all = [...page.events].sort((a, b) => b[1].time - a[1].time || b[1].n - a[1].n);
  page.events = new Map(all.slice(0, 200));
  const list = $("outcomes");
  const shown = [...page.events].filter(([, event]) => !page.onlyFailures || FAILURES.has(event.what)).slice(0, 60);
  const there = new Map([...list.children].map((item) => [item.dataset.key, item]));
  list.replaceChildren(...shown.map(([key, event]) => there.get(key) || item(key, event)));
  $("nothing").hidden = shown.length > 0;
  $("nothing").textContent = page.onlyFailures ? "Nothing has failed." : "Nothing has happened yet. Leases, resets and failures are told as they happen.";
}

function item(key, event) {
  const look = event.what === "given" ? "ok" : event.what === "expired" || event.what === "fenced" || event.what === "none_free" ? "refused" : FAILURES.has(event.what) ? "failed" : "";
  const when = el("time", "");
  when.dataset.at = event.time;
  when.title = new Date(event.time * 1000).toLocaleString();
  when.textContent = `${span(now() - event.time)} ago`;
  const where = [event.display, event.host].filter(Boolean).join(" · ");
  const top = el("div", "top", el("span", "badge", WORDS[event.what] || event.what), el("span", "who", where), when);
  // Of the usual ones the badge says all but whose lease it was.
  const node = el("li", look, top, el("div", "text", FAILURES.has(event.what) || !event.holder ? event.text : event.holder));
  node.dataset.key = key;
  return node;
}

// ---- the page itself

$("retry").onclick = () => {
  page.pause = 1000;
  connect();
};
$("only").onclick = () => {
  page.onlyFailures = !page.onlyFailures;
  $("only").setAttribute("aria-pressed", page.onlyFailures);
  if (page.health) showEvents(page.health.hosts);
};
setInterval(() => {
  if (!document.hidden && !document.body.classList.contains("still")) tick();
}, 1000);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !page.source && !page.over) connect();
});
connect();
