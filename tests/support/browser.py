"""A real browser for tests: Chromium without a window, driven through its DevTools protocol over a pair of pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60.0  # for an answer
KEYS = {
    "Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
}  # fmt: skip
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--disable-features=Translate,MediaRouter,OptimizationHints",
)  # fmt: skip
WITH_PIPES = "import os, sys; os.dup2(30, 3); os.dup2(31, 4); os.execv(sys.argv[1], sys.argv[1:])"


def program() -> str | None:
    """Return the path of Chromium, None where it is not installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A browser, and how one talks to it; each `page()` is a tab."""

    def __init__(self, folder: Path) -> None:
        command = program()
        assert command is not None, "Chromium is not installed (Debian: apt-get install chromium)"
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        kept = [os.dup2(to_browser, 30), os.dup2(from_browser, 31)]  # the browser has them as 3 and 4
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", WITH_PIPES, command, *OPTIONS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=kept, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (*kept, to_browser, from_browser):
            os.close(end)
        self._number, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.send("Browser.close")
        except (OSError, AssertionError):
            self._process.kill()
        self._process.wait(10)
        os.close(self._in)
        os.close(self._out)

    def send(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; what else comes meanwhile is kept in `events`."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for found in self._received(end):
                if found.get("id") == number:
                    assert "error" not in found, f"{method}: {found['error']}"
                    result: dict[str, Any] = found["result"]
                    return result
                self.events.append(found)
        raise AssertionError(f"{method}: no answer in {SECONDS:g} s")

    def page(self, address: str = "about:blank", width: int = 1280, height: int = 800) -> Page:
        """Open a tab."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.send(f"{domain}.enable")
        page.size(width, height)
        if address != "about:blank":
            page.open(address)
        return page

    def _received(self, end: float) -> list[dict[str, Any]]:
        ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
        if ready:
            part = os.read(self._in, 1 << 20)
            assert part, "the browser has ended"
            *whole, self._rest = (self._rest + part).split(b"\0")
            return [json.loads(each) for each in whole]
        return []


class Page:
    """A tab: what a person does in it, and what is seen."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to this tab."""
        return self.browser.send(method, self.session, **parameters)

    def size(self, width: int, height: int, scale: float = 1.0) -> None:
        """Give the tab a size; below 600 pixels it is a phone's."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def prefers(self, **features: str) -> None:
        """Say what the reader prefers: `color_scheme="dark"`, `reduced_motion="reduce"`."""
        told = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()]
        self.send("Emulation.setEmulatedMedia", features=told)

    def open(self, address: str) -> None:
        """Go to an address."""
        self.send("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """Return the value of JavaScript; an error in it is one here."""
        found = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str, seconds: float = 40.0) -> None:
        """Wait until JavaScript is true: for long, as the browser and the tests beside it share two cores."""
        end = time.monotonic() + seconds
        while True:
            found = self.send("Runtime.evaluate", expression=f"!!({condition})", returnByValue=True)
            if found["result"].get("value") and "exceptionDetails" not in found:
                return
            assert time.monotonic() < end, f"not within {seconds:g} s: {condition}"
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        """Return the text that is seen of an element."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def press(self, key: str, shift: bool = False) -> None:
        """Press a key."""
        code = KEYS[key] if key in KEYS else ord(key.upper()) if key.isalnum() else 0
        text = "\r" if key == "Enter" else "" if key in KEYS else key
        event: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.send("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, selector: str, text: str) -> None:
        """Type a text in the place of what stands in a field."""
        self.run(f"(e => {{ e.focus(); e.select?.(); }})(document.querySelector({json.dumps(selector)}))")
        self.send("Input.insertText", text=text)

    def place(self, selector: str) -> tuple[float, float]:
        """Return the middle of an element, scrolled into sight."""
        script = (
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect(); "
            f"return [r.left + r.width / 2, r.top + r.height / 2]; }})(document.querySelector({json.dumps(selector)}))"
        )
        x, y = self.run(script)
        return x, y

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Move, press or release the pointer."""
        told = {"move": "mouseMoved", "down": "mousePressed", "up": "mouseReleased"}[kind]
        held = {"button": "left", "clickCount": 1, "buttons": int(kind == "down")} if kind != "move" else {}
        self.send("Input.dispatchMouseEvent", type=told, x=x, y=y, **held)

    def point(self, selector: str) -> None:
        """Point at an element."""
        self.mouse("move", *self.place(selector))

    def click(self, selector: str) -> None:
        """Click an element."""
        place = self.place(selector)
        for kind in ("move", "down", "up"):
            self.mouse(kind, *place)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag the pointer from one place to another."""
        self.mouse("move", *start)
        self.mouse("down", *start)
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        for place in (middle, end):
            self.send("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1], button="left", buttons=1)
        self.mouse("up", *end)

    def picture(self, path: Path, whole: bool = False, of: str = "") -> Path:
        """Write what is seen (or the whole page, or one element) into a PNG file."""
        part: dict[str, Any] = {}
        if of:
            sides = self.run(
                "(r => [r.left + scrollX, r.top + scrollY, r.width, r.height])"
                f"(document.querySelector({json.dumps(of)}).getBoundingClientRect())"
            )
            part = {"clip": {**dict(zip(("x", "y", "width", "height"), sides, strict=True)), "scale": 1}}
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole or bool(of), **part)
        path.write_bytes(base64.b64decode(found["data"]))
        return path

    def told(self, chosen: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Return the events of this tab that are chosen; what is waiting is read before."""
        self.run("0")
        return [each for each in self.browser.events if each.get("sessionId") == self.session and chosen(each)]
