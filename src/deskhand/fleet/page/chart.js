"use strict";
// Charts of a fleet: areas on each other (what there is) and bars on each other (what has happened), over time.

const SVG = "http://www.w3.org/2000/svg";
const LEAST_SPAN = 5 * 60; // seconds

function draw(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** The top of an axis that holds `most`: a value that a person likes to read. */
function ceiling(most) {
  if (most <= 10) return [1, 2, 4, 6, 8, 10].find((value) => value >= most);
  const scale = 10 ** Math.floor(Math.log10(most));
  return [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10].map((step) => Math.round(step * scale)).find((value) => value >= most);
}

/**
 * One chart in the element `at`. `series` is a list of {key, label, look}, drawn from the bottom up; `points` a list of
 * {time, values, until?}; with `bars` each stands for the time from its own to `until`.
 */
class Chart {
  constructor(at, legend, clock, series, bars) {
    this.at = at;
    this.clock = clock;
    this.series = series;
    this.bars = bars;
    this.points = [];
    this.chosen = null;
    this.read = new Map();
    for (const one of series) {
      const value = document.createElement("b");
      const item = document.createElement("li");
      const swatch = document.createElement("i");
      swatch.className = `swatch ${one.look}`;
      item.append(swatch, one.label, " ", value);
      legend.append(item);
      this.read.set(one.key, value);
    }
    at.setAttribute("role", "img");
    at.addEventListener("pointermove", (event) => this.choose(event));
    at.addEventListener("pointerleave", () => this.choose(null));
  }

  choose(event) {
    if (event === null || !this.points.length) this.chosen = null;
    else {
      const box = this.at.getBoundingClientRect();
      const time = this.from + ((event.clientX - box.left) / box.width) * (this.to - this.from);
      this.chosen = this.points.reduce((best, one) => (Math.abs(this.middle(one) - time) < Math.abs(this.middle(best) - time) ? one : best));
    }
    this.tell();
  }

  middle(point) {
    return point.until ? (point.time + point.until) / 2 : point.time;
  }

  show(points, now, least) {
    this.points = points;
    this.to = now;
    this.from = Math.min(now - LEAST_SPAN, points.length ? points[0].time : now);
    const sum = (point) => this.series.reduce((all, one) => all + point.values[one.key], 0);
    this.top = ceiling(Math.max(least, 1, ...points.map(sum)));
    const body = this.bars ? this.drawBars() : this.drawAreas();
    const grid = [0.5, 1].map((part) => draw("line", { class: "grid", x1: 0, x2: 1000, y1: 100 - part * 100, y2: 100 - part * 100 }));
    this.cursor = draw("line", { class: "cursor", y1: 0, y2: 100, x1: -9, x2: -9 });
    const svg = draw("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" }, ...grid, ...body, this.cursor);
    const labels = [[this.top, "top"], [Number.isInteger(this.top / 2) ? this.top / 2 : "", "half"]].map(([text, className]) => {
      const label = document.createElement("span");
      label.className = `axis ${className}`;
      label.textContent = text;
      return label;
    });
    const ago = document.createElement("span");
    ago.className = "axis ago";
    ago.textContent = `${Math.round((this.to - this.from) / 60)} min ago`;
    this.at.replaceChildren(svg, ...labels, ago);
    if (this.chosen) this.chosen = points.find((one) => one.time === this.chosen.time) || null;
    this.tell();
  }

  x(time) {
    return (1000 * (time - this.from)) / Math.max(1, this.to - this.from);
  }

  y(value) {
    return 100 - (100 * value) / this.top;
  }

  drawAreas() {
    const points = this.points.length ? [...this.points, { ...this.points.at(-1), time: this.to }] : [];
    const below = points.map(() => 0);
    return this.series.map((one) => {
      // Steps: a desktop is one thing or another, and nothing in between.
      let up = "";
      let down = "";
      points.forEach((point, i) => {
        const from = below[i];
        below[i] += point.values[one.key];
        const x = this.x(point.time).toFixed(1);
        const end = (i + 1 < points.length ? this.x(points[i + 1].time) : 1000).toFixed(1);
        up += `${i ? "L" : "M"}${x} ${this.y(below[i]).toFixed(2)}L${end} ${this.y(below[i]).toFixed(2)}`;
        down = `L${end} ${this.y(from).toFixed(2)}L${x} ${this.y(from).toFixed(2)}${down}`;
      });
      return draw("path", { class: `area ${one.look}`, d: up ? `${up}${down}Z` : "" });
    });
  }

  drawBars() {
    const drawn = [];
    for (const point of this.points) {
      let below = 0;
      const left = this.x(point.time);
      const width = Math.max(1, this.x(point.until) - left - 2);
      for (const one of this.series) {
        const value = point.values[one.key];
        if (!value) continue;
        const y = this.y(below + value);
        drawn.push(draw("rect", { class: `area ${one.look}`, x: left.toFixed(1), width: width.toFixed(1), y: y.toFixed(2), height: (this.y(below) - y).toFixed(2) }));
        below += value;
      }
    }
    return drawn;
  }

  tell() {
    const point = this.chosen || this.points.at(-1);
    for (const one of this.series) this.read.get(one.key).textContent = point ? point.values[one.key] : "–";
    if (this.cursor) {
      const x = this.chosen ? this.x(this.middle(point)) : -9;
      this.cursor.setAttribute("x1", x);
      this.cursor.setAttribute("x2", x);
    }
    const clock = (time) => new Date(time * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
    this.clock.textContent = this.chosen ? (point.until ? `${clock(point.time)} to ${clock(point.until)}` : clock(point.time)) : this.bars ? "this minute" : "now";
    this.at.setAttribute("aria-label", point ? this.series.map((one) => `${one.label} ${point.values[one.key]}`).join(", ") : "nothing yet");
  }
}
