// Values of a plot's curves under the pointer, or at a cursor that the arrow keys move.

for (const plot of document.querySelectorAll("figure svg")) watch(plot, plot.nextElementSibling);

/** Show the values at the pointer or the cursor in a readout, else those at the curves' ends. */
function watch(plot, readout) {
  const curves = [...plot.querySelectorAll(".curve[data-x]")].map(curveOf);
  const stops = stopsOf(curves);
  const cursor = make(plot, "g", { class: "cursor" });
  let place = null; // index of a stop
  const show = (index) => {
    place = index;
    cursor.replaceChildren();
    if (place === null) {
      const ends = curves.map((curve) => ({ ...curve, point: curve.points.at(-1) }));
      describe(readout, "at the end: ", ends);
      return;
    }
    const { left, x } = stops[place];
    const there = curves.filter(({ points }) => reaches(points, left));
    const nearest = there.map((curve) => ({ ...curve, point: nearestTo(left, curve.points) }));
    describe(readout, `${x} ${plot.dataset.x}: `, nearest, x);
    mark(cursor, left, nearest, plot.querySelector("rect"));
  };
  plot.append(cursor);
  plot.onpointermove = ({ clientX }) => {
    const inside = new DOMPoint(clientX, 0).matrixTransform(plot.getScreenCTM().inverse());
    show(stops.indexOf(nearestTo(inside.x, stops)));
  };
  plot.onblur = () => show(null);
  plot.onpointerleave = () => plot.matches(":focus") || show(null);
  plot.onfocus = () => show(place ?? stops.length - 1);
  plot.onkeydown = (event) => {
    const last = stops.length - 1;
    const here = place ?? last;
    const places = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last };
    if (!(event.key in places)) return;
    event.preventDefault();
    show(Math.max(0, Math.min(last, places[event.key])));
  };
  show(null);
}

/** Return a curve's name, current classes and points: pixels of its line, values as text. */
function curveOf(curve) {
  const [xs, ys] = [curve.dataset.x.split(" "), curve.dataset.y.split(" ")];
  const pixels = curve.querySelector("path").getAttribute("d").matchAll(/([\d.]+),([\d.]+)/g);
  const points = [...pixels].map(([, left, top], index) => {
    return { left: +left, top: +top, x: xs[index], y: ys[index] };
  });
  const classes = () => curve.getAttribute("class");
  return { name: curve.dataset.name, classes, points };
}

/** Return the points of all curves from left to right, one per pixel position. */
function stopsOf(curves) {
  const points = curves.flatMap((curve) => curve.points);
  const found = new Map(points.map((point) => [point.left, point]));
  return [...found.values()].sort((one, other) => one.left - other.left);
}

function reaches(points, left) {
  return points[0].left <= left && left <= points.at(-1).left;
}

function nearestTo(left, points) {
  const distance = (point) => Math.abs(point.left - left);
  return points.reduce((best, point) => (distance(best) >= distance(point) ? point : best));
}

/** Write the values of curves; one that has no point at `x` is given with its own place. */
function describe(readout, place, curves, x) {
  const entries = curves.map(({ name, point }, index) => {
    const value = Object.assign(document.createElement("b"), { textContent: point.y });
    const entry = document.createElement("span");
    const own = x && point.x !== x ? ` (at ${point.x})` : "";
    entry.append(`${name} `, value, own, index < curves.length - 1 ? ", " : "");
    return entry;
  });
  readout.replaceChildren(place, ...entries);
}

/** Mark a place by a vertical line, and its points by dots. */
function mark(cursor, left, curves, frame) {
  const [top, height] = ["y", "height"].map((name) => frame.getAttribute(name));
  const line = make(cursor, "path", { class: "grid", d: `M${left},${top} v${height}` });
  const dots = curves.map(({ classes, point }) => {
    return make(cursor, "circle", { class: classes(), cx: point.left, cy: point.top, r: 4 });
  });
  cursor.append(line, ...dots);
}

function make(parent, name, attributes) {
  const element = document.createElementNS(parent.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
