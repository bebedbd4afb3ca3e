// Words of a text as nmtkit counts them, and the words in which two texts differ.

// Characters as nmtkit/text/words.py classifies them, which has the rules.
const SPACE = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200b\\u2028\\u2029\\u202f\\u205f\\u3000";
const SPACELESS =
  "[\\u2e80-\\u2fff\\u3001-\\u312f\\u3190-\\ua4cf\\uf900-\\ufaff\\u{16fe0}-\\u{18dff}" +
  "\\u{1aff0}-\\u{1b2ff}\\u{20000}-\\u{3ffff}\\uff01-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff3e" +
  "\\uff40\\uff5b-\\uff9f\\u0e00-\\u109f\\u1780-\\u17ff\\u1950-\\u19ff\\u1a20-\\u1aaf" +
  "\\ua9e0-\\ua9ff\\uaa60-\\uaadf\\u{11700}-\\u{1174f}]";
const UNSEEN = `(?![${SPACE}])\\p{Cf}`;
const MARK =
  `(?:${UNSEEN}|(?<=\\u0e4d)\\u0e32|(?<=\\u0ecd)\\u0eb2` +
  "|[\\p{M}\\u0e33\\u0eb3\\uff9e\\uff9f\\u{1f3fb}-\\u{1f3ff}])";
const LETTER = `(?!${SPACELESS})[\\p{L}\\p{N}_]`;
const FLAG = "[\\u{1f1e6}-\\u{1f1ff}]{2}";
const STACKED = `(?<=[\\u1039\\u17d2\\u1a60])(?=\\p{L})${SPACELESS}`;
const WORD = new RegExp(
  `(?:(?!${MARK})${SPACELESS}(?:${MARK}|${STACKED})*|${LETTER}(?:${LETTER}|${MARK})*` +
    `|(?:${FLAG}|(?!${UNSEEN})[^${SPACE}])(?:${MARK}|(?<=\\u200d)\\p{S})*)(?<!${UNSEEN})`,
  "gu",
);

function wordsOf(text) {
  return text.match(WORD) ?? [];
}

const MAX_CELLS = 4e6; // a larger table takes too long; the differing middles are marked whole

/** Return, per word of one list, whether it belongs to the longest common subsequence of both. */
function commonWords(one, other) {
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start++;
  let end = 0; // words of the common end
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  const rows = one.length - start - end;
  const columns = other.length - start - end;
  const isCommon = one.map((_, index) => index < start || index >= one.length - end);
  if (rows * columns === 0 || rows * columns > MAX_CELLS) return isCommon;
  // lengths[i, j] is the length for the words from i and from j on.
  const width = columns + 1;
  const lengths = new Uint16Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      const cell = i * width + j;
      const isSame = one[start + i] === other[start + j];
      const longest = Math.max(lengths[cell + width], lengths[cell + 1]);
      lengths[cell] = isSame ? lengths[cell + width + 1] + 1 : longest;
    }
  }
  for (let i = 0, j = 0; i < rows && j < columns; ) {
    if (one[start + i] === other[start + j]) isCommon[start + i++] = Boolean(++j);
    else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i++;
    else j++;
  }
  return isCommon;
}

/** Count how often a list of words has an n-gram. */
function countNgram(words, ngram) {
  const isAt = (_, start) => ngram.every((word, offset) => words[start + offset] === word);
  return words.filter(isAt).length;
}

/**
 * Return the nodes of a text; neighbouring words with the same mark become one element.
 * `classOf` returns the class of the word with an index, or "".
 */
function marked(text, classOf) {
  const nodes = [];
  let [place, open, index] = [0, "", 0];
  const add = (end, name) => {
    const part = text.slice(place, end);
    if (part) nodes.push(name ? element("mark", { className: name }, part) : part);
    place = end;
  };
  let last = 0; // where the last word ends
  for (const match of text.matchAll(WORD)) {
    const name = classOf(index++);
    if (name !== open) {
      add(open ? last : match.index, open);
      if (open) add(match.index, "");
    }
    open = name;
    last = match.index + match[0].length;
  }
  add(last, open);
  add(text.length, "");
  return nodes;
}
