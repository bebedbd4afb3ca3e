// The sentences: which ones are shown, in which order, and each with its differing words.

const PAGE_SIZE = 50;
let found = []; // lines that are shown, in order

/** Find the lines that pass all filters, and sort them. */
function findLines() {
  const text = state.search.toLowerCase();
  const words = state.ngram ? wordsOf(state.ngram) : null;
  const shown = [data.source, data.reference, ...systemsShown().map(linesOf)].filter(Boolean);
  const passes = (line) =>
    (state.length === "all" || data.lengths[data.length_of[line]] === state.length) &&
    (state.winner === "all" || isWithReference() || sideOf(gain(line)) === state.winner) &&
    (!text || shown.some((lines) => lines[line].toLowerCase().includes(text))) &&
    (!words || hasNgram(line, words));
  found = [...data.reference.keys()].filter(passes);
  const keys = {
    difference: isWithReference() ? quality : (line) => -Math.abs(gain(line)),
    lowest: quality,
    highest: (line) => -quality(line),
    text: (line) => line,
    longest: (line) => -data.reference[line].length,
  };
  const key = data.reference.map((_, line) => keys[state.sort](line));
  found.sort((a, b) => key[a] - key[b] || a - b);
}

function systemsShown() {
  return [first(), second()].filter((system) => system !== REFERENCE);
}

/** Show a page of the lines that were found; only these become elements. */
function showPage() {
  const lastPage = Math.max(1, Math.ceil(found.length / PAGE_SIZE));
  const page = Math.min(+state.page, lastPage);
  const start = (page - 1) * PAGE_SIZE;
  const lines = found.slice(start, start + PAGE_SIZE);
  document.getElementById("sentences").replaceChildren(...lines.map(itemOf));
  const total = found.length.toLocaleString("en");
  const place = lines.length ? `${start + 1} to ${start + lines.length} of ${total}` : "";
  document.getElementById("place").textContent = place;
  document.getElementById("found").textContent =
    found.length === 1 ? "1 sentence" : `${found.length ? total : "no"} sentences`;
  document.getElementById("pages").hidden = lastPage === 1;
  document.getElementById("previous").disabled = page === 1;
  document.getElementById("next").disabled = page === lastPage;
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
