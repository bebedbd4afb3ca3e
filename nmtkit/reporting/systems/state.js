// What the reader has chosen. The address keeps it after "#", so that a view can be shared.

const data = JSON.parse(document.getElementById("data").textContent);
const REFERENCE = data.systems.length; // its index, after those of the systems
const NUM_LINES = data.reference.length;
const ORDERS = ["all", "1", "2", "3", "4"];
const WINNERS = ["all", "first", "second", "equal"];
const LENGTHS = ["all", ...data.lengths];
const SORTS = {
  difference: "largest difference",
  lowest: "lowest scores",
  highest: "highest scores",
  text: "as in the text",
  longest: "longest reference",
};
const MARKS = { reference: "not in the reference", systems: "not in the other" };
const INITIAL = {
  first: "1",
  second: String(data.second + 1),
  order: "all",
  winner: "all",
  length: "all",
  sort: "difference",
  marks: "reference",
  search: "",
  ngram: "", // its words, joined by spaces
  side: "first", // the one that gets the n-gram right
  page: "1",
};
let state = readState(location.hash);

/** Read a state from an address; missing or impossible values are the initial ones. */
function readState(address) {
  const given = Object.fromEntries(new URLSearchParams(address.slice(1)));
  const isNumber = (text, max) => /^[1-9]\d*$/.test(text) && +text <= max;
  const isPossible = {
    first: (value) => isNumber(value, REFERENCE),
    second: (value) => isNumber(value, REFERENCE + 1),
    order: (value) => ORDERS.includes(value),
    winner: (value) => WINNERS.includes(value),
    length: (value) => LENGTHS.includes(value),
    sort: (value) => Object.hasOwn(SORTS, value),
    marks: (value) => Object.hasOwn(MARKS, value),
    search: () => true,
    ngram: () => true,
    side: (value) => ["first", "second"].includes(value),
    page: (value) => isNumber(value, NUM_LINES),
  };
  const read = { ...INITIAL };
  for (const [name, value] of Object.entries(given)) {
    if (Object.hasOwn(INITIAL, name) && isPossible[name](value)) read[name] = value;
  }
  return read.first === read.second ? { ...read, ...pairWith(read, "first") } : read;
}

/** Return the pair when one side has become equal to the other one: the other one changes. */
function pairWith(chosen, side) {
  const other = side === "first" ? "second" : "first";
  const isFree = (index) => String(index) !== chosen[side];
  const candidates = [+INITIAL[other], 1, 2].filter(isFree);
  return { [other]: String(candidates[0]) };
}

function addressOf(chosen) {
  const changed = Object.entries(chosen).filter(([name, value]) => value !== INITIAL[name]);
  return `#${new URLSearchParams(changed)}`;
}

const first = () => +state.first - 1;
const second = () => +state.second - 1;
const isWithReference = () => second() === REFERENCE;
const nameOf = (system) => data.systems[system] ?? "the reference";
const linesOf = (system) => data.translations[system] ?? data.reference;

/** Return how much better the first system translates a line, in points of the metric. */
function gain(line) {
  if (isWithReference()) return -Infinity;
  const difference = data.scores[first()][line] - data.scores[second()][line];
  return data.is_higher_better ? difference : -difference;
}

/** Return the mean score of the compared systems; higher is better. */
function quality(line) {
  const chosen = [first(), second()].filter((system) => system !== REFERENCE);
  const sum = chosen.reduce((total, system) => total + data.scores[system][line], 0);
  return ((data.is_higher_better ? 1 : -1) * sum) / chosen.length;
}
