"""States that a power cut may leave of a folder: only synced data is certain to survive.

After a cut, a file that was written since its last fsync has one of four contents: as last synced,
torn in the middle of the new data, of full length with zeros, or complete. Each creation, renaming
or deletion in a folder since its last fsync is done or not, independently; a renaming is one
change. A file system may do better; none does worse.
Source: Pillai et al., All File Systems Are Not Created Equal, OSDI 2014; fsync(2).

`Disk.watching` records the states before each change that a writer makes through `os`.
`Disk.states` holds every state that a cut at one of these moments permits. Two rules bound them:

- Content under a hidden name that nobody reads (partial, removed, lock) does not vary; only whether
  the name exists does.
- If a moment permits more than `MOST_AT_ONCE` states of a folder, only states with a single change
  done or a single change missing count. A writer that syncs as it should stays below.
"""

import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from tests.faults.harness import CHANGES, WRITING_FLAGS

MOST_AT_ONCE = 128
NOBODY_READS = re.compile(r"\..+\.nmtkit-(partial|removed|lock)|\.lock", re.DOTALL)

State = Mapping[str, bytes | None]
"""Content of each file by its path; None for a folder."""

Choice = TypeVar("Choice")


@dataclass
class File:
    """A file: its content as read now, and as last synced."""

    content: bytes = b""
    synced: bytes = b""

    def after_cut(self) -> list[bytes]:
        """Return the possible contents, from last synced to as written."""
        if self.content == self.synced:
            return [self.content]
        kept = self.synced if self.content.startswith(self.synced) else b""
        new = self.content[len(kept) :]
        torn, zeros = new[: len(new) // 2], bytes(len(new))
        return [self.synced, kept + torn, kept + zeros, self.content]


@dataclass(frozen=True)
class Change:
    """A change of the names in a folder."""

    removed: str | None = None
    added: "tuple[str, Node] | None" = None


@dataclass
class Folder:
    """A folder: its names as last synced, and the changes since, in order."""

    synced: "dict[str, Node]" = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def names(self, are_done: Sequence[bool]) -> "dict[str, Node]":
        """Return the names if the given changes are done."""
        names = dict(self.synced)
        for change, is_done in zip(self.changes, are_done, strict=True):
            if is_done and change.removed is not None:
                names.pop(change.removed, None)
            if is_done and change.added is not None:
                names[change.added[0]] = change.added[1]
        return names

    def now(self) -> "dict[str, Node]":
        """Return the names without a cut."""
        return self.names([True] * len(self.changes))


Node = File | Folder


class Disk:
    """Watches the changes in a folder; at first, everything in it is synced.

    Attributes:
        states: permitted by a cut at any watched moment, each state once.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.states: list[State] = []
        self._seen: set[frozenset[tuple[str, bytes | None]]] = set()
        self._tree = Folder()
        self._lock = threading.RLock()  # checkpoints are written by a thread
        self._look(self._tree, root)
        _sync_all(self._tree)

    @contextmanager
    def watching(self, *, is_synced: bool) -> Iterator[None]:
        """Record every change in the block; without `is_synced`, fsync does nothing."""
        originals = {name: getattr(os, name) for name in CHANGES}
        try:
            for name, original in originals.items():
                setattr(os, name, self._watched(name, original, is_synced))
            yield
        finally:
            for name, original in originals.items():
                setattr(os, name, original)
        self._note()

    def states_now(self) -> list[State]:
        """Return the states that a cut at this moment permits."""
        with self._lock:
            self._look(self._tree, self.root)
            return _states_of(self._tree)

    def _watched(
        self, name: str, original: Callable[..., Any], is_synced: bool
    ) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if name == "open" and not arguments[1] & WRITING_FLAGS:
                return original(*arguments, **keywords)
            with self._lock:
                self._note()
                if name == "fsync":
                    return self._sync(arguments[0]) if is_synced else None
                result = original(*arguments, **keywords)
                self._apply(name, arguments)
                return result

        return call

    def _note(self) -> None:
        for state in self.states_now():
            key = frozenset(state.items())
            if key not in self._seen:
                self._seen.add(key)
                self.states.append(state)

    def _look(self, folder: Folder, path: Path) -> None:
        """Add files that were created and content that was written since."""
        names = folder.now()
        for entry in path.iterdir():
            if entry.name not in names:
                names[entry.name] = Folder() if entry.is_dir() else File()
                folder.changes.append(Change(added=(entry.name, names[entry.name])))
            node = names[entry.name]
            if isinstance(node, Folder):
                self._look(node, entry)
            else:
                content = entry.read_bytes()
                if content != node.content:  # equal states are found faster if they share it
                    node.content = content

    def _apply(self, name: str, arguments: Sequence[Any]) -> None:
        """Apply a call of `os` to the names; `_look` finds what it created."""
        if name in ("rename", "replace"):
            source, target = Path(arguments[0]), Path(arguments[1])
            assert source.parent == target.parent, f"{source} moves to another folder"
            folder = self._folder(source.parent)
            folder.changes.append(Change(source.name, (target.name, folder.now()[source.name])))
        elif name in ("unlink", "rmdir"):
            path = Path(arguments[0])
            self._folder(path.parent).changes.append(Change(removed=path.name))

    def _sync(self, descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            folder = self._folder(path)
            folder.synced, folder.changes = folder.now(), []
        else:
            file = self._folder(path.parent).now()[path.name]
            assert isinstance(file, File), path
            file.synced = file.content

    def _folder(self, path: Path) -> Folder:
        folder = self._tree
        for name in path.relative_to(self.root).parts:
            node = folder.now()[name]
            assert isinstance(node, Folder), path
            folder = node
        return folder


def restore(state: State, root: Path) -> Path:
    """Write a state into an empty folder."""
    root.mkdir()
    for path in sorted(state):
        content = state[path]
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)
    return root


def seen_of(state: State) -> State:
    """Return the part of a state that somebody reads."""
    return {
        path: content
        for path, content in state.items()
        if not any(NOBODY_READS.fullmatch(name) for name in path.split("/"))
    }


def with_most_left(states: Iterable[State]) -> list[State]:
    """Return, of states that differ only in unread files, the one with most of them."""
    most: dict[frozenset[tuple[str, bytes | None]], State] = {}
    for state in states:
        key = frozenset(seen_of(state).items())
        most[key] = max(most.get(key, state), state, key=len)
    return list(most.values())


def _sync_all(node: Node) -> None:
    if isinstance(node, File):
        node.synced = node.content
        return
    node.synced, node.changes = node.now(), []
    for inner in node.synced.values():
        _sync_all(inner)


def _states_of(folder: Folder) -> list[State]:
    """Return the states of a folder that a cut permits, with paths relative to it."""
    nodes = {id(node): (name, node) for name, node in _all_names(folder)}
    inner = {key: _inner_states(name, node) for key, (name, node) in nodes.items()}
    states: list[State] = []
    for are_done in choices([[False, True]] * len(folder.changes)):
        names = folder.names(are_done)
        for chosen in choices([inner[id(node)] for node in names.values()]):
            state: dict[str, bytes | None] = {}
            for name, part in zip(names, chosen, strict=True):
                state.update({name + path: content for path, content in part.items()})
            states.append(state)
    return states


def _all_names(folder: Folder) -> Iterator[tuple[str, Node]]:
    """Yield every name that a node of a folder may have; names that somebody reads come last."""
    added = [change.added for change in folder.changes if change.added is not None]
    names = [*folder.synced.items(), *added]
    yield from sorted(names, key=lambda item: not NOBODY_READS.fullmatch(item[0]))


def _inner_states(name: str, node: Node) -> list[State]:
    """Return the states of a node that a cut permits, with relative paths; its own is empty."""
    if NOBODY_READS.fullmatch(name):
        return [_unchanged(node)]
    if isinstance(node, File):
        return [{"": content} for content in node.after_cut()]
    return [_below(state) for state in _states_of(node)]


def _unchanged(node: Node) -> State:
    if isinstance(node, File):
        return {"": node.content}
    state: dict[str, bytes | None] = {}
    for name, inner in node.now().items():
        state.update({name + path: content for path, content in _unchanged(inner).items()})
    return _below(state)


def _below(state: State) -> State:
    return {"": None, **{f"/{path}": content for path, content in state.items()}}


def choices(options: Sequence[Sequence[Choice]]) -> Iterator[tuple[Choice, ...]]:
    """Yield each combination; of too many, those that differ from a usual one in at most one place.

    Args:
        options: possible values of each item, from last synced to current.
    """
    if math.prod(len(one) for one in options) <= MOST_AT_ONCE:
        yield from product(*options)
        return
    for place in (0, -1):
        usual = [one[place] for one in options]
        yield tuple(usual)
        for number, one in enumerate(options):
            for other in one:
                yield (*usual[:number], other, *usual[number + 1 :])
