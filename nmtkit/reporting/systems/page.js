// The page: its controls, and what each of them changes.

const ABOUT = {
  reference:
    "In the translations, marked words are not in the reference at this place. In the reference, " +
    "underlined words are missing in the translation of that colour; twice underlined: in both.",
  systems: "Marked words are not in the other translation at this place.",
};

function show() {
  showControls();
  document.querySelectorAll(".plots svg").forEach(emphasize);
  document.querySelectorAll(".scores tbody tr").forEach(tint);
  showNgrams();
  showWins();
  showSentences();
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

function showControls() {
  display({ ...state, second: String(second() + 1) });
  if (document.activeElement !== byId("search")) byId("search").value = state.search;
  byId("winner").options[1].text = nameOf(first());
  byId("winner").options[2].text = nameOf(second());
  if (isWithReference() && state.sort === "difference") byId("sort").value = "lowest";
  byId("sort").options[0].hidden = isWithReference(); // the difference
  for (const id of ["winner", "marks"]) byId(id).parentElement.hidden = isWithReference();
  byId("swap").disabled = isWithReference();
  byId("chosen-ngram").hidden = !state.ngram;
  const other = nameOf(state.side === "first" ? second() : first());
  byId("all-ngrams").textContent = `${state.ngram} \u2014 missed by ${other} \u00d7`;
  byId("legend").textContent = ABOUT[isWithReference() ? "reference" : state.marks];
}

/** Show how often each system is better, and by how much. */
function showWins() {
  const gains = data.reference.map((_, line) => gain(line));
  const of = (side) => gains.filter((one) => sideOf(one) === side);
  const describe = (side, system) => {
    const sizes = of(side).map(Math.abs);
    const sum = sizes.reduce((total, size) => total + size, 0);
    const mean = sizes.length ? `, by ${(sum / sizes.length).toFixed(2)} on average` : "";
    const name = element("b", { className: side }, nameOf(system));
    return [name, ` is better in ${sizes.length.toLocaleString("en")} sentences${mean}; `];
  };
  const equal = `${of("equal").length.toLocaleString("en")} are equal`;
  const parts = [...describe("first", first()), ...describe("second", second()), equal];
  byId("wins").replaceChildren(...parts);
  byId("wins").hidden = isWithReference();
}

const systems = data.systems.map((name, index) => [index + 1, name]);
offer("first", systems);
offer("second", [...systems, [REFERENCE + 1, "the reference"]]);
for (const [id, choices] of Object.entries(CHOICES)) offer(id, choices);
byId("search").oninput = ({ target }) => change({ search: target.value });
byId("swap").onclick = () => change({ first: state.second, second: state.first });
byId("more").onclick = showMore;
byId("all-ngrams").onclick = () => {
  change({ ngram: "" });
  byId("search").focus();
};
for (const form of document.forms) form.onsubmit = (event) => event.preventDefault();
readState();
