"""Chromium without a window, driven by its DevTools protocol over a pipe.

Source: https://chromedevtools.github.io/devtools-protocol/. With --remote-debugging-pipe, Chromium
reads messages from file descriptor 3 and writes them to 4, each ended by a null byte.
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
"""Where it is installed; None if it is not."""

_TIMEOUT_S = 60.0
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
_KEY_CODES = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}
_KEY_CODES |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}

_RENUMBER = """
import os, sys
from fcntl import F_DUPFD_CLOEXEC, fcntl
pipes = [fcntl(int(number), F_DUPFD_CLOEXEC, 10) for number in sys.argv[1:3]]
for number, pipe in enumerate(pipes, 3):
    os.dup2(pipe, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Gives two pipes the numbers that Chromium wants, and becomes Chromium."""


class Page:
    """A page in a browser that `browser` has started."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._received = b""
        self._number = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.messages: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, /, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write_fd, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, address: str, width: int = 1200, height: int = 900) -> None:
        """Load an address and wait until its scripts have run."""
        self.resize(width, height)
        self.messages.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        end = time.monotonic() + _TIMEOUT_S
        while self.evaluate("document.readyState") != "complete":
            assert time.monotonic() < end, "the page does not load"

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, scheme: str) -> None:
        """Have the reader prefer a "light" or a "dark" scheme."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        # Pages are told of it with the next picture, once it has come into force.
        self.evaluate(
            f"""new Promise((done) => {{
                const query = matchMedia("(prefers-color-scheme: {scheme})");
                const look = () => requestAnimationFrame(() => query.matches
                    ? requestAnimationFrame(() => setTimeout(done)) : look());
                look();
            }})"""
        )

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, or of its promise, as JSON."""
        how = {"returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", expression=expression, **how)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key, as a person does."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        own = {"key": key, "windowsVirtualKeyCode": _KEY_CODES.get(key, ord(key[0]))}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **own)
        self.call("Input.dispatchKeyEvent", type="keyUp", **own)

    def move_to(self, selector: str) -> None:
        """Move the pointer to the middle of an element."""
        place = self._middle(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        self.move_to(selector)
        for kind in ("mousePressed", "mouseReleased"):
            button = {"button": "left", "clickCount": 1, **self._middle(selector)}
            self.call("Input.dispatchMouseEvent", type=kind, **button)

    def screenshot(self) -> bytes:
        """Return what is seen as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def troubles(self) -> list[str]:
        """Return what went wrong since the page was opened: errors, and what was refused."""
        return [
            str(one["params"])
            for one in self.messages
            if one["method"] == "Runtime.exceptionThrown"
            or (one["method"] == "Log.entryAdded" and one["params"]["entry"]["level"] == "error")
        ]

    def requests(self) -> list[str]:
        """Return the addresses that the page has asked for, its own included."""
        return [
            one["params"]["request"]["url"]
            for one in self.messages
            if one["method"] == "Network.requestWillBeSent"
        ]

    def _middle(self, selector: str) -> dict[str, float]:
        element = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{element}.scrollIntoView({{block: 'nearest'}})")
        box = self.evaluate(f"{element}.getBoundingClientRect().toJSON()")
        return {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read_fd], [], [], _TIMEOUT_S)
            assert ready, "Chromium does not answer"
            data = os.read(self._read_fd, 2**20)
            assert data, "Chromium has ended"
            self._received += data
        text, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message and self._session is not None:
            self.messages.append(message)
        return message


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Start Chromium with an empty profile, and end it afterwards."""
    assert CHROMIUM is not None
    (its_input, output), (own_input, its_output) = os.pipe(), os.pipe()
    command = [CHROMIUM, *_OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        [sys.executable, "-c", _RENUMBER, str(its_input), str(its_output), *command],
        pass_fds=(its_input, its_output),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(its_input)
    os.close(its_output)
    try:
        yield Page(own_input, output)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(own_input)
        os.close(output)
