// The n-grams that one of two systems gets right and the other one misses.

const NUM_NGRAMS = 20;

function showNgrams() {
  const tables = [tableOf(second(), first(), "second")];
  if (!isWithReference()) tables.unshift(tableOf(first(), second(), "first"));
  byId("telling").replaceChildren(...tables);
}

/** Return the n-grams of the chosen order that one system has more often than the other. */
function tellingNgrams(one, other) {
  const ratio = ([, , counts]) => (counts[one] + 1) / (counts[other] + 1);
  const excess = ([, , counts]) => counts[one] - counts[other];
  return data.ngrams
    .filter(([, order]) => state.order === "all" || +state.order === order)
    .filter((ngram) => excess(ngram) >= data.min_difference)
    .sort((a, b) => ratio(b) - ratio(a) || excess(b) - excess(a))
    .slice(0, NUM_NGRAMS);
}

function tableOf(one, other, side) {
  const found = tellingNgrams(one, other);
  const right = element("b", { className: side }, nameOf(one));
  const isReference = one === REFERENCE;
  const verb = isReference ? " has, " : " gets right, ";
  const title = element("h3", {}, right, verb, element("b", {}, nameOf(other)), " misses");
  if (!found.length) {
    const text = `No n-gram here occurs at least ${data.min_difference} times more often.`;
    return element("div", {}, title, element("p", { className: "note" }, text));
  }
  const columns = isReference ? [other, one] : [one, other, REFERENCE];
  const names = ["n-gram", ...columns.map((system) => {
    return system === REFERENCE ? "reference" : nameOf(system);
  })];
  const cell = (text) => element("th", { scope: "col", textContent: text });
  const head = element("thead", {}, element("tr", {}, ...names.map(cell)));
  const rows = found.map(([text, , counts]) => {
    const button = element("button", { type: "button", textContent: text, dir: "auto" });
    button.onclick = () => {
      change({ ngram: text, side, search: "", winner: "all", length: "all" });
      byId("found").scrollIntoView({ block: "center" });
      byId("all-ngrams").focus({ preventScroll: true });
    };
    const numbers = columns.map((system) => element("td", { textContent: counts[system] }));
    return element("tr", {}, element("td", {}, button), ...numbers);
  });
  const table = element("table", {}, head, element("tbody", {}, ...rows));
  return element("div", {}, title, element("div", { className: "wide" }, table));
}

/** Return whether one side has the chosen n-gram right in a line more often than the other one. */
function hasNgram(line, words) {
  if (!words.every((word) => data.reference[line].includes(word))) return false;
  const expected = countNgram(wordsOf(data.reference[line]), words);
  const matches = (system) => Math.min(expected, countNgram(wordsOf(linesOf(system)[line]), words));
  const difference = expected && matches(first()) - matches(second());
  return state.side === "first" ? difference > 0 : difference < 0;
}
