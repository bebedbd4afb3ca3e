// How often one of two systems is better, and by how much.

const NUM_BARS = 10; // at most, on each side

function showHistogram() {
  const figure = document.getElementById("histogram");
  figure.hidden = isWithReference();
  if (figure.hidden) return;
  const gains = data.reference.map((_, line) => gain(line));
  const wins = { first: 0, second: 0, equal: 0 };
  for (const one of gains) wins[sideOf(one)]++;
  const count = (side, text) => element("span", {}, element("b", { className: side }, text));
  const number = (side) => wins[side].toLocaleString("en");
  const caption = element(
    "figcaption",
    {},
    count("first", nameOf(first())),
    ` is better in ${number("first")} sentences, `,
    count("second", nameOf(second())),
    ` in ${number("second")}; ${number("equal")} are equal`,
  );
  figure.replaceChildren(caption, drawnBars(gains));
}

function sideOf(difference) {
  if (difference === 0) return "equal";
  return difference > 0 ? "first" : "second";
}

/** Return a round step with which `NUM_BARS` of them reach the largest value. */
function roundStep(largest) {
  const power = 10 ** Math.floor(Math.log10(largest / NUM_BARS || 1));
  return [1, 2, 5, 10].map((one) => one * power).find((step) => step * NUM_BARS >= largest);
}

/** Draw the gains: sentences in which the second system is better on the left. */
function drawnBars(gains) {
  const step = roundStep(Math.max(...gains.map(Math.abs)));
  const bars = Array.from({ length: 2 * NUM_BARS }, () => 0);
  for (const one of gains) {
    if (one === 0) continue;
    const place = Math.min(NUM_BARS, Math.ceil(Math.abs(one) / step - 1e-9));
    bars[one < 0 ? NUM_BARS - place : NUM_BARS + place - 1]++;
  }
  const [width, height, bar] = [640, 120, 32];
  const most = Math.max(...bars, 1);
  const holder = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  holder.setAttribute("viewBox", `0 0 ${width} ${height + 44}`);
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", "Sentences by the difference of their scores");
  const add = (name, attributes, text = "") => {
    const part = make(holder, name, attributes);
    part.textContent = text;
    holder.append(part);
  };
  bars.forEach((number, index) => {
    const size = (number / most) * (height - 18);
    const side = index < NUM_BARS ? "second" : "first";
    const box = { x: index * bar + 1.5, y: height - size, width: bar - 3, height: size };
    add("rect", { ...box, class: side });
    if (number) add("text", { x: (index + 0.5) * bar, y: height - size - 4 }, number);
  });
  add("path", { d: `M0,${height} H${width}` });
  for (let index = 0; index <= 2 * NUM_BARS; index += 5) {
    const value = Math.abs(index - NUM_BARS) * step;
    const shift = index === 0 ? 12 : index === 2 * NUM_BARS ? -12 : 0;
    add("text", { x: index * bar + shift, y: height + 18 }, +value.toPrecision(6));
  }
  add("text", { x: width / 2, y: height + 38 }, `difference in ${data.metric}`);
  return holder;
}
