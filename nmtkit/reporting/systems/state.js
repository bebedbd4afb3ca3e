// What the reader has chosen, and what follows for systems and lines.

const REFERENCE = data.systems.length; // its index, after those of the systems
const CHOICES = {
  order: [["all", "1 to 4"], "1", "2", "3", "4"],
  winner: [["all", "any"], "first", "second", "equal"],
  length: ["all", ...data.lengths.map((one) => [one, `${one} words`])],
  sort: [
    ["difference", "largest difference"],
    ["lowest", "lowest scores"],
    ["highest", "highest scores"],
    ["text", "as in the text"],
    ["longest", "longest reference"],
  ],
  marks: [["reference", "not in the reference"], ["systems", "not in the other"]],
};
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
};
const RESETS = { first: { ngram: "" }, second: { ngram: "" } };

const first = () => +state.first - 1;
/** Return the system to compare with: the reference, if a system would be with itself. */
const second = () => (state.second === state.first ? REFERENCE : +state.second - 1);
const isWithReference = () => second() === REFERENCE;
const systemsShown = () => [first(), second()].filter((system) => system !== REFERENCE);
const nameOf = (system) => data.systems[system] ?? "the reference";
const linesOf = (system) => data.translations[system] ?? data.reference;

/** Return how much better the first system translates a line, in points of the metric. */
function gain(line) {
  if (isWithReference()) return -Infinity;
  const difference = data.scores[first()][line] - data.scores[second()][line];
  return data.is_higher_better ? difference : -difference;
}

/** Return which side is better, by a gain. */
function sideOf(difference) {
  if (difference === 0) return "equal";
  return difference > 0 ? "first" : "second";
}

/** Return the mean score of the compared systems; higher is better. */
function quality(line) {
  const scores = systemsShown().map((system) => data.scores[system][line]);
  const sum = scores.reduce((total, score) => total + score);
  return ((data.is_higher_better ? 1 : -1) * sum) / scores.length;
}
