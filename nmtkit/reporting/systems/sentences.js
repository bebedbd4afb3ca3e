// The sentences: which ones are shown, in which order, and each with its differing words.

const NUM_ADDED = 50; // sentences that become elements at first, and by a click on "more"
let found = []; // lines that pass all filters, in order

/** Find the lines that pass all filters, sort them, and show the first ones. */
function showSentences() {
  const text = state.search.toLowerCase();
  const words = state.ngram ? wordsOf(state.ngram) : null;
  const searched = [data.source, data.reference, ...systemsShown().map(linesOf)].filter(Boolean);
  const passes = (line) =>
    (state.length === "all" || data.lengths[data.length_of[line]] === state.length) &&
    (state.winner === "all" || isWithReference() || sideOf(gain(line)) === state.winner) &&
    (!text || searched.some((lines) => lines[line].toLowerCase().includes(text))) &&
    (!words || hasNgram(line, words));
  const keys = {
    difference: isWithReference() ? quality : (line) => -Math.abs(gain(line)),
    lowest: quality,
    highest: (line) => -quality(line),
    text: (line) => line,
    longest: (line) => -data.reference[line].length,
  };
  const key = data.reference.map((_, line) => keys[state.sort](line));
  found = [...data.reference.keys()].filter(passes).sort((a, b) => key[a] - key[b] || a - b);
  const total = found.length ? found.length.toLocaleString("en") : "no";
  byId("found").textContent = found.length === 1 ? "1 sentence" : `${total} sentences`;
  byId("sentences").replaceChildren();
  showMore();
}

function showMore() {
  const numShown = byId("sentences").childElementCount;
  const added = found.slice(numShown, numShown + NUM_ADDED);
  byId("sentences").append(...added.map(itemOf));
  byId("more").hidden = numShown + added.length === found.length;
}

function itemOf(line) {
  const rows = [];
  const add = (className, name, score, nodes) => {
    const label = element("dt", { className }, element("span", {}, name));
    if (score !== undefined) label.append(" ", element("b", {}, score.toFixed(2)));
    rows.push(label, element("dd", { dir: "auto" }, ...nodes));
  };
  if (data.source) add("", "source", undefined, [data.source[line]]);
  const reference = data.reference[line];
  add("", "reference", undefined, marked(reference, missedIn(line)));
  for (const side of isWithReference() ? ["first"] : ["first", "second"]) {
    const system = side === "first" ? first() : second();
    const nodes = marked(linesOf(system)[line], differingIn(line, side));
    add(side, nameOf(system), data.scores[system][line], nodes);
  }
  return element("li", {}, headOf(line), element("dl", {}, ...rows));
}

function headOf(line) {
  const parts = [element("b", {}, `Line ${(line + 1).toLocaleString("en")}`)];
  if (!isWithReference()) {
    const side = sideOf(gain(line));
    const size = Math.abs(gain(line)).toFixed(2);
    const name = nameOf(side === "first" ? first() : second());
    const text = side === "equal" ? "equal" : `${name} +${size}`;
    parts.push(" ", element("span", { className: side }, text));
  }
  return element("p", { className: "head" }, ...parts);
}

/** Return the function of a word's index that marks the words of a side's translation. */
function differingIn(line, side) {
  const [own, other] = side === "first" ? [first(), second()] : [second(), first()];
  const compared = state.marks === "systems" ? linesOf(other) : data.reference;
  const isCommon = commonWords(wordsOf(linesOf(own)[line]), wordsOf(compared[line]));
  return (index) => (isCommon[index] ? "" : side);
}

/** Return the function that marks the words of the reference which a system misses. */
function missedIn(line) {
  if (state.marks === "systems" && !isWithReference()) return () => "";
  const words = wordsOf(data.reference[line]);
  const isFound = systemsShown().map((system) => {
    return commonWords(words, wordsOf(linesOf(system)[line]));
  });
  return (index) => {
    const [byFirst, bySecond = true] = isFound.map((one) => one[index]);
    if (byFirst) return bySecond ? "" : "second missed";
    return bySecond ? "first missed" : "both missed";
  };
}
