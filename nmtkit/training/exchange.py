"""Values that ranks send to each other, as JSON: a rank never runs code that another one sent.

A value is None, a bool, int, float or str, or a list or dictionary of such values, at any depth.
Every rank receives it unchanged, also floats that are not finite and ints beyond 64 bits. Anything
else is refused by the sender, because it would arrive as something else: a tuple as a list.

A module of its own: `nmtkit.training.distributed` adds what happens if a rank is lost.
"""

import json
from collections.abc import Iterable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from nmtkit.storage.manifest import Json

Value = TypeVar("Value", bound=Json)

_PLAIN = (type(None), bool, int, float, str)


def broadcast(value: Json, group: dist.ProcessGroup | None, rank: int) -> Any:
    """Return the value of rank 0.

    Args:
        value: the value; those of other ranks are ignored.
        group: a group on the host; None = the default group.
        rank: number of this process.

    Raises:
        TypeError: the value cannot be sent.
    """
    content = _encode(value if rank == 0 else None)
    length = torch.tensor(len(content))
    dist.broadcast(length, src=0, group=group)
    content = content.new_empty(int(length)) if rank else content
    dist.broadcast(content, src=0, group=group)
    return _decode(content)


def gather(value: Value, group: dist.ProcessGroup | None, size: int) -> list[Value]:
    """Return the values of all ranks, ordered by rank.

    Args:
        value: the value of this rank.
        group: a group on the host; None = the default group.
        size: number of ranks.

    Raises:
        TypeError: the value cannot be sent.
    """
    content = _encode(value)
    lengths = torch.zeros(size, dtype=torch.int64)
    dist.all_gather(list(lengths.split(1)), torch.tensor([len(content)]), group=group)
    padded = content.new_zeros(int(lengths.max()))
    padded[: len(content)] = content
    contents = [torch.empty_like(padded) for _ in range(size)]
    dist.all_gather(contents, padded, group=group)
    return [_decode(one[:length]) for one, length in zip(contents, lengths.tolist(), strict=True)]


def _encode(value: Json) -> Tensor:
    """Return the bytes of a value, (bytes,), uint8; TypeError if it is not one to send."""
    _check(value)
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _decode(content: Tensor) -> Any:
    return json.loads(content.numpy().tobytes())


def _check(value: object) -> None:
    inner: Iterable[object] = ()
    if type(value) is dict and all(type(name) is str for name in value):
        inner = value.values()
    elif type(value) is list:
        inner = value
    elif type(value) not in _PLAIN:
        raise TypeError(f"ranks cannot exchange a {type(value).__name__}: {value!r}")
    for one in inner:
        _check(one)
