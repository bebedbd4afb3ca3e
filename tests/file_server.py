"""A server of files on the loopback interface, which can go wrong in the ways that servers do."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Behaviour:
    """How a server answers; may be changed while it runs.

    Attributes:
        has_ranges: it sends a part of a file when asked for one.
        tells_length: it says how long a file is.
        cuts: after so many bytes the connection ends, in one answer after another; then, whole.
        failures: the status of one answer after another; then, files.
        asked: what was asked for: path, and Range or "".
    """

    has_ranges: bool = True
    tells_length: bool = True
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
            if behaviour.tells_length:
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
