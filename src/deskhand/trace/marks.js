// ---- drawing on a picture: sizes are in pixels of the page, so that a mark is as easy to see on a phone

const COLOURS = { moving: "#ff8a1f", zoom: "#1f5fd0", failed: "#e5251f", skipped: "#6b7280" };

function drawMarks(svg, img, marks) {
  const k = img.naturalWidth / img.clientWidth;
  svg.setAttribute("viewBox", `0 0 ${img.naturalWidth} ${img.naturalHeight}`);
  svg.replaceChildren();
  const labels = [];
  for (const mark of marks) {
    const colour = COLOURS[mark.kind] || COLOURS[mark.status] || "#e6007a";
    const dashed = mark.kind === "moving" || mark.status === "failed" || mark.status === "skipped";
    const pen = { svg, k, colour, dashed };
    if (mark.rect) drawRect(pen, mark);
    else if (mark.kind === "drag") drawDrag(pen, mark.points);
    else if (mark.kind === "scroll") drawScroll(pen, mark);
    else if (mark.kind === "move") drawCross(pen, mark.points[0]);
    else drawRing(pen, mark.points[0], mark.count || 1);
    if (mark.n) labels.push([pen, mark]);
  }
  const taken = [];
  for (const [pen, mark] of labels) drawNumber(pen, mark, img, taken);
}

function shape(svg, name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  svg.append(node);
}

// A white line under the coloured one shows on any picture.
function stroke({ svg, k, colour, dashed }, name, attributes, width = 2.5) {
  const common = { ...attributes, fill: "none", "stroke-linecap": "round", "stroke-linejoin": "round" };
  shape(svg, name, { ...common, stroke: "#fff", "stroke-width": (width + 2.5) * k, "stroke-opacity": 0.9 });
  shape(svg, name, { ...common, stroke: colour, "stroke-width": width * k, ...(dashed ? { "stroke-dasharray": `${5 * k} ${5 * k}` } : {}) });
}

function drawRing(pen, [x, y], count) {
  for (let i = 0; i < Math.min(count, 3); i += 1) stroke(pen, "circle", { cx: x, cy: y, r: (12 + 5 * i) * pen.k });
  shape(pen.svg, "circle", { cx: x, cy: y, r: 2 * pen.k, fill: pen.colour });
}

function drawCross(pen, [x, y]) {
  const r = 9 * pen.k;
  stroke(pen, "path", { d: `M${x - r} ${y}H${x + r}M${x} ${y - r}V${y + r}` }, 2);
}

function arrowHead(pen, [x, y], angle, size = 10) {
  const r = size * pen.k;
  const leg = (turn) => `${x - r * Math.cos(angle + turn)} ${y - r * Math.sin(angle + turn)}`;
  stroke({ ...pen, dashed: false }, "path", { d: `M${leg(0.5)}L${x} ${y}L${leg(-0.5)}` });
}

function drawDrag(pen, points) {
  stroke(pen, "polyline", { points: points.map((point) => point.join(",")).join(" ") });
  const [x, y] = points[0];
  shape(pen.svg, "circle", { cx: x, cy: y, r: 5 * pen.k, fill: pen.colour, stroke: "#fff", "stroke-width": 1.5 * pen.k });
  const end = points[points.length - 1];
  const from = points.slice(0, -1).reverse().find((point) => Math.hypot(end[0] - point[0], end[1] - point[1]) > 3 * pen.k) || points[0];
  arrowHead(pen, end, Math.atan2(end[1] - from[1], end[0] - from[0]), 12);
}

function drawScroll(pen, mark) {
  const [x, y] = mark.points[0];
  shape(pen.svg, "circle", { cx: x, cy: y, r: 3 * pen.k, fill: pen.colour, stroke: "#fff", "stroke-width": 1.5 * pen.k });
  for (const [dx, dy] of [[mark.way[0], 0], [0, mark.way[1]]]) {
    if (!dx && !dy) continue;
    const tip = [x + dx * 40 * pen.k, y + dy * 40 * pen.k];
    stroke(pen, "path", { d: `M${x + dx * 8 * pen.k} ${y + dy * 8 * pen.k}L${tip[0]} ${tip[1]}` });
    arrowHead(pen, tip, Math.atan2(dy, dx));
    arrowHead(pen, [x + dx * 29 * pen.k, y + dy * 29 * pen.k], Math.atan2(dy, dx));
  }
}

function drawRect(pen, mark) {
  const [x, y, width, height] = mark.rect;
  // A caret is a pixel wide: the box stands around what it shows.
  const room = 3 * pen.k;
  stroke({ ...pen, dashed: true }, "rect", { x: x - room, y: y - room, width: width + 2 * room, height: height + 2 * room, rx: 2 * pen.k }, 2);
}

function drawNumber(pen, mark, img, taken) {
  const { svg, k, colour } = pen;
  const r = 9 * k;
  const [ax, ay] = mark.rect ? [mark.rect[0], mark.rect[1]] : mark.points[0];
  const side = ax + 60 * k > img.naturalWidth ? -1 : 1;
  const up = ay - 40 * k < 0 ? 1 : -1;
  const within = (value, most) => Math.min(Math.max(value, r), most - r);
  let x = ax + side * 17 * k;
  const y = within(ay + up * 17 * k, img.naturalHeight);
  while (taken.some(([tx, ty]) => Math.hypot(tx - x, ty - y) < 2 * r)) x += side * 2.1 * r;
  x = within(x, img.naturalWidth);
  taken.push([x, y]);
  shape(svg, "circle", { cx: x, cy: y, r, fill: colour, stroke: "#fff", "stroke-width": 1.5 * k });
  const text = document.createElementNS(SVG, "text");
  text.textContent = String(mark.n);
  for (const [key, value] of Object.entries({ x, y: y + 0.5 * k, fill: "#fff", "font-size": 11 * k })) text.setAttribute(key, value);
  svg.append(text);
}
