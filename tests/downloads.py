"""Archives in the layout of WMT14, and a file server that can fail."""

import gzip
import html
import io
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Pairs = Sequence[tuple[str, str]]

SEGMENTS_A_DOCUMENT = 7


def write_wmt14(folder: Path, lang: str, training: Pairs, valid: Pairs, test: Pairs) -> None:
    """Write the archives that `make en-LANG-base` downloads.

    Args:
        folder: is created.
        lang: de or fr.
        training: distributed over the training corpora.
        valid, test: newstest2013 and newstest2014.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pair = f"{lang}-en"
    plain = [
        ("training-parallel-europarl-v7.tgz", f"training/europarl-v7.{pair}"),
        ("training-parallel-commoncrawl.tgz", f"commoncrawl.{pair}"),
        ("training-parallel-nc-v9.tgz", f"training/news-commentary-v9.{pair}"),
    ]
    if lang == "de":
        name = f"training-parallel-nc-v11/news-commentary-v11.{pair}"
        plain.append(("training-parallel-nc-v11.tgz", name))
    if lang == "fr":
        plain.append(("training-parallel-un.tgz", f"un/undoc.2000.{pair}"))
    num_parts = len(plain) + (lang == "fr")
    for number, (archive, name) in enumerate(plain):
        sides = plain_text(training[number::num_parts])
        files = {f"{name}.{suffix}": text for suffix, text in zip(("en", lang), sides, strict=True)}
        write_tar(folder / archive, {f"{name}.annotation": b"of no use\n", **files})
    if lang == "fr":
        sides = plain_text(training[len(plain) :: num_parts])
        name = "giga-fren.release2.fixed"
        giga = {
            f"{name}.{s}.gz": gzip.compress(t) for s, t in zip(("en", "fr"), sides, strict=True)
        }
        write_tar(folder / "training-giga-fren.tar", giga)
    write_tar(
        folder / "test.tgz",
        {
            "test/newstest2013-src.en.sgm": sgm([source for source, _ in valid], "srcset"),
            f"test/newstest2013-src.{lang}.sgm": sgm([target for _, target in valid], "srcset"),
        },
    )
    name = f"test-full/newstest2014-{lang}en"
    write_tar(
        folder / "test-full.tgz",
        {
            f"{name}-src.en.sgm": sgm([source for source, _ in test], "srcset"),
            f"{name}-src.{lang}.sgm": sgm(["wrong file"] * len(test), "srcset"),
            f"{name}-ref.{lang}.sgm": sgm([target for _, target in test], "refset"),
            f"{name}-ref.en.sgm": sgm(["wrong file"] * len(test), "refset"),
        },
    )


def plain_text(pairs: Pairs) -> tuple[bytes, bytes]:
    """Return source and target, one line per sentence."""
    source, target = ("".join(f"{line}\n" for line in side) for side in zip(*pairs, strict=True))
    return source.encode(), target.encode()


def sgm(lines: Sequence[str], kind: str) -> bytes:
    """Return a test set as WMT writes it."""
    text = [f'<{kind} setid="newstest" srclang="any">\n']
    for first in range(0, len(lines), SEGMENTS_A_DOCUMENT):
        text.append(f'<doc sysid="ref" docid="news.{first}" genre="news" origlang="en">\n<p>\n')
        for number, line in enumerate(lines[first : first + SEGMENTS_A_DOCUMENT], 1):
            text.append(f'<seg id="{number}">{html.escape(line)}</seg>\n')
        text.append("</p>\n</doc>\n")
    return "".join([*text, f"</{kind}>\n"]).encode()


def write_tar(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a tar archive, gzipped unless it is called .tar."""
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


# ------------------------------------------------------------------------------------- servers


@dataclass
class Behaviour:
    """The behaviour of a server; it may change while the server runs.

    Attributes:
        has_ranges: it answers requests for a byte range.
        sends_length: it sends the length of a file.
        cuts: number of bytes after which the connection ends, per answer; later answers are whole.
        failures: HTTP status per answer; later answers are files.
        asked: path and Range ("" = none) of each request.
    """

    has_ranges: bool = True
    sends_length: bool = True
    cuts: list[int] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def serve(folder: Path, behaviour: Behaviour) -> Iterator[str]:
    """Serve the files of a folder; yields the folder's address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_range = self.headers.get("Range", "")
            behaviour.asked.append((self.path, asked_range))
            path = folder / self.path.lstrip("/")
            if behaviour.failures:
                self.send_error(behaviour.failures.pop(0))
            elif not path.is_file():
                self.send_error(404)
            else:
                self.answer(path.read_bytes(), asked_range)

        def answer(self, content: bytes, asked_range: str) -> None:
            total = len(content)
            if asked_range and behaviour.has_ranges:
                begin = int(asked_range.removeprefix("bytes=").removesuffix("-"))
                if begin >= total:
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{total}")
                    self.end_headers()
                    return
                content = content[begin:]
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {begin}-{total - 1}/{total}")
            else:
                self.send_response(200)
            if behaviour.sends_length:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: behaviour.cuts.pop(0)] if behaviour.cuts else content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
