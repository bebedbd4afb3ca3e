// Words of a text as nmtkit counts them, and the words in which two texts differ.

// Spaces and letters as in Python's regular expressions, which JavaScript's own classes are not.
const SPACE = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const WORD = new RegExp(`[\\p{L}\\p{N}_]+|[^\\p{L}\\p{N}_${SPACE}]`, "gu");
const MAX_CELLS = 4e6; // a larger table takes too long; the differing middles are marked whole

function wordsOf(text) {
  return text.match(WORD) ?? [];
}

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

function element(name, properties, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}
