"""The picture of docs/architecture.md shows the rooms of the code, and who imports whom.

A node's label lists what lies in it: folders and modules below nmtkit/, or nmtkit_cli. An arrow is
an import. Imports that follow from two or more arrows are not drawn. Dotted lines lead from a guest
to the rooms whose tables name it.
"""

import re
from collections.abc import Iterable
from graphlib import TopologicalSorter

import pytest

from tests.architecture.source_tree import PACKAGES, ROOT, Source, imported_modules, sources
from tests.architecture.test_layers import LAYERS, is_within, part

GUEST = "nmtkit.parsing"
Graph = dict[str, set[str]]
"""The rooms that each room imports, or leads an arrow to."""


def picture() -> str:
    """Return the text of the only picture."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    (text,) = re.findall(r"^```mermaid\n(.*?)^```$", page, re.M | re.S)
    assert isinstance(text, str)
    return text


def rooms(text: str) -> dict[str, list[str]]:
    """Return the modules and folders of each node, by the node's name."""
    nodes = re.findall(r'^ *(\w+)\["([^"]+)"\]$', text, re.M)
    return {name: list(map(entry, re.split(r"<br>|, ", label))) for name, label in nodes}


def entry(path: str) -> str:
    """Return the module that a path of a label stands for."""
    return path if path.startswith("nmtkit") else f"nmtkit.{path.replace('/', '.')}"


def room_of(module: str, nodes: dict[str, list[str]]) -> str:
    """Return the node with the longest entry that a module lies in; `nmtkit` is its own file."""
    found = [
        (len(one), name)
        for name, entries in nodes.items()
        for one in entries
        if module == one or (one != "nmtkit" and is_within(module, one))
    ]
    assert found, f"{module} lies in no room of the picture"
    return max(found)[1]


def arrows(text: str, nodes: Iterable[str]) -> Graph:
    """Return the arrows of the picture, `a --> b & c`."""
    drawn: Graph = {name: set() for name in nodes}
    for start, ends in re.findall(r"^ *(\w+) --> ([\w &]+)$", text, re.M):
        drawn[start] |= set(ends.split(" & "))
    return drawn


def imports_between(nodes: dict[str, list[str]], tree: tuple[Source, ...]) -> Graph:
    """Return the rooms that each room imports, and itself never."""
    modules = {source.module for source in tree}
    found: Graph = {name: set() for name in nodes}
    for source in tree:
        own = room_of(source.module, nodes)
        found[own] |= {room_of(name, nodes) for _, name in imported_modules(source, modules)}
    return {name: others - {name} for name, others in found.items()}


def without_guest(graph: Graph, guest: str) -> Graph:
    return {name: others - {guest} for name, others in graph.items() if name != guest}


def reduced(graph: Graph) -> Graph:
    """Return the arrows of a graph without rings that do not follow from others."""
    reached: Graph = {}
    for name in TopologicalSorter(graph).static_order():
        reached[name] = graph[name].union(*(reached[other] for other in graph[name]))
    return {
        name: {one for one in others if not any(one in reached[other] for other in others)}
        for name, others in graph.items()
    }


def as_lines(graph: Graph) -> list[str]:
    """Write arrows as the picture has them, to be copied into it."""
    return [f"    {name} --> {' & '.join(sorted(graph[name]))}" for name in graph if graph[name]]


@pytest.fixture(scope="module")
def nodes() -> dict[str, list[str]]:
    return rooms(picture())


@pytest.fixture(scope="module")
def guest(nodes: dict[str, list[str]]) -> str:
    return room_of(GUEST, nodes)


@pytest.fixture(scope="module")
def imported(nodes: dict[str, list[str]]) -> Graph:
    return imports_between(nodes, sources(*PACKAGES))


def test_every_folder_and_module_lies_in_a_room_and_every_room_has_some(
    nodes: dict[str, list[str]],
) -> None:
    modules = [source.module for source in sources(*PACKAGES)]
    named = [one for entries in nodes.values() for one in entries]
    assert len(named) == len(set(named))
    assert {room_of(module, nodes) for module in modules} == set(nodes)
    for one in named:
        assert any(is_within(module, one) for module in modules), f"{one} is not there"


def test_the_table_of_rooms_names_folders_and_files_that_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w/]+)/` \| .* \| `(\w+\.py)` \|$", page, re.M)
    folders = {source.path.rpartition("/")[0] for source in sources(*PACKAGES)}
    named = {entry(folder).replace(".", "/") for folder, _ in rows}
    inner = {"nmtkit", "nmtkit/parsing/evalb"}
    inner |= {"nmtkit/reporting/attention", "nmtkit/reporting/systems"}
    assert named == folders - inner
    for folder, file in rows:
        assert (ROOT / entry(folder).replace(".", "/") / file).is_file(), f"{folder}/{file}"


def test_the_arrows_are_the_imports_that_follow_from_no_others(imported: Graph, guest: str) -> None:
    wanted = reduced(without_guest(imported, guest))
    drawn = without_guest(arrows(picture(), imported), guest)
    assert drawn == wanted, "draw these arrows instead:\n" + "\n".join(as_lines(wanted))


def test_dotted_lines_lead_from_the_guest_to_the_rooms_that_name_it(
    imported: Graph, guest: str
) -> None:
    (line,) = re.findall(rf"^ *{guest} -\.- ([\w &]+)$", picture(), re.M)
    assert set(line.split(" & ")) == {name for name in imported if guest in imported[name]}


def test_no_arrow_leads_to_a_higher_layer(nodes: dict[str, list[str]], guest: str) -> None:
    modules = [source.module for source in sources(*PACKAGES)]
    layers = {
        name: [LAYERS[part(module)] for module in modules if room_of(module, nodes) == name]
        for name in nodes
    }
    for start, ends in without_guest(arrows(picture(), nodes), guest).items():
        for end in ends:
            assert max(layers[start]) > min(layers[end]), f"{start} --> {end}"


def test_an_arrow_that_follows_from_others_is_not_drawn() -> None:
    chain = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}
    assert reduced(chain) == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set()}
    diamond = {"a": {"b", "c", "d"}, "b": {"d"}, "c": {"d"}, "d": set()}
    assert reduced(diamond) == {"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}
