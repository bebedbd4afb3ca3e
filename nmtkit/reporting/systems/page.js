// The page: its controls, and what each of them changes.

const SHORT = 150; // milliseconds after which a typed text is searched
const ABOUT = {
  reference:
    "In the translations, marked words are not in the reference at this place. In the reference, " +
    "underlined words are missing in the translation of that colour; twice underlined: in both.",
  systems: "Marked words are not in the other translation at this place.",
};

const byId = (id) => document.getElementById(id);

/** Change the state and the address, and show the result. */
function change(values) {
  const names = Object.keys(values);
  const side = names.find((name) => name === "first" || name === "second");
  const keepsList = names.every((name) => name === "marks" || name === "order");
  const next = { ...state, page: keepsList ? state.page : "1", ...values };
  if (next.first === next.second) Object.assign(next, pairWith(next, side));
  if (side && !("ngram" in values)) next.ngram = "";
  history.replaceState(null, "", addressOf(next));
  show(next);
}

function show(next) {
  const previous = state;
  state = next;
  const isPairNew = ["first", "second"].some((name) => previous[name] !== next[name]);
  showControls();
  if (isPairNew) showPair();
  if (isPairNew || previous.order !== next.order) showNgrams();
  findLines();
  showPage();
}

/** Show everything that depends on the pair only. */
function showPair() {
  showHistogram();
  for (const plot of document.querySelectorAll(".plots svg")) emphasize(plot);
  document.querySelectorAll(".scores tbody tr").forEach((row, system) => tint(row, system));
}

/** Give the curves of the pair their colours, and pale the others. */
function emphasize(plot) {
  const legend = plot.querySelectorAll(".curve:not([data-x])");
  plot.querySelectorAll(".curve[data-x]").forEach((curve, index) => {
    const system = data.systems.indexOf(curve.dataset.name);
    for (const part of [curve, legend[index]].filter(Boolean)) tint(part, system);
  });
}

/** Set the classes of an element of a system: first, second or pale. */
function tint(part, system) {
  part.classList.toggle("first", system === first());
  part.classList.toggle("second", system === second());
  part.classList.toggle("pale", system !== first() && system !== second());
}

// ---------------------------------------------------------------------------------- controls

/** Offer values as a select: pairs of a value and its text. */
function offerSelect(id, choices) {
  const select = byId(id);
  const options = choices.map(([value, text]) => new Option(text, value));
  select.replaceChildren(...options);
  select.onchange = () => change({ [id]: select.value });
}

/** Offer values as radio buttons: pairs of a value and its text. */
function offerRadios(id, choices) {
  const labels = choices.map(([value, text]) => {
    const input = element("input", { type: "radio", name: id, value });
    input.onchange = () => change({ [id]: value });
    return element("label", {}, input, element("span", { textContent: text }));
  });
  byId(id).append(...labels);
}

function makeControls() {
  const systems = data.systems.map((name, index) => [String(index + 1), name]);
  offerSelect("first", systems);
  offerSelect("second", [...systems, [String(REFERENCE + 1), "the reference"]]);
  offerSelect("length", LENGTHS.map((one) => [one, one === "all" ? one : `${one} words`]));
  offerSelect("sort", Object.entries(SORTS));
  offerRadios("order", ORDERS.map((one) => [one, one]));
  offerRadios("winner", WINNERS.map((one) => [one, one]));
  offerRadios("marks", Object.entries(MARKS));
  byId("swap").onclick = () => change({ first: state.second, second: state.first });
  byId("all-ngrams").onclick = () => {
    change({ ngram: "" });
    byId("search").focus();
  };
  byId("previous").onclick = () => turnPage(-1);
  byId("next").onclick = () => turnPage(1);
  let timer = 0;
  byId("search").oninput = ({ target }) => {
    clearTimeout(timer);
    timer = setTimeout(() => change({ search: target.value }), SHORT);
  };
  for (const form of document.querySelectorAll("form")) {
    form.onsubmit = (event) => event.preventDefault();
  }
}

function turnPage(step) {
  change({ page: String(+state.page + step) });
  byId("found").scrollIntoView();
}

function showControls() {
  for (const id of ["first", "second", "length", "sort"]) byId(id).value = state[id];
  if (isWithReference() && state.sort === "difference") byId("sort").value = "lowest";
  byId("sort").options[0].hidden = isWithReference(); // the difference
  for (const id of ["order", "winner", "marks"]) {
    const inputs = byId(id).querySelectorAll("input");
    for (const input of inputs) input.checked = input.value === state[id];
  }
  if (document.activeElement !== byId("search")) byId("search").value = state.search;
  const winners = byId("winner").querySelectorAll("span");
  winners[1].textContent = nameOf(first());
  winners[2].textContent = nameOf(second());
  byId("winner").hidden = byId("marks").hidden = isWithReference();
  byId("swap").disabled = isWithReference();
  byId("chosen-ngram").hidden = !state.ngram;
  const other = nameOf(state.side === "first" ? second() : first());
  byId("all-ngrams").textContent = `${state.ngram} \u2014 missed by ${other} \u00d7`;
  byId("legend").textContent = ABOUT[isWithReference() ? "reference" : state.marks];
}

onhashchange = () => {
  show(readState(location.hash));
};
makeControls();
showControls();
showPair();
showNgrams();
findLines();
showPage();
