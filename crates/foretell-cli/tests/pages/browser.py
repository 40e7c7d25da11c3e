"""Chromium without a window, over the DevTools protocol on a pipe: the standard library is enough."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
PATIENCE = 60  # seconds for an answer, on a busy machine


def find():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, [os.environ.get("CHROMIUM", ""), *NAMES])), None)


class Browser:
    """A browser; tabs are opened one at a time."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_child, self.writer = os.pipe()
        self.reader, from_child = os.pipe()

        def wire():  # the pipe is expected at 3 and 4
            low, high = os.dup(to_child), os.dup(from_child)
            os.dup2(low, 3)
            os.dup2(high, 4)

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", "--no-first-run",
                 "--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen([find(), *flags], preexec_fn=wire, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        os.set_blocking(self.reader, False)
        self.numbers, self.buffer, self.events, self.session = itertools.count(1), b"", [], None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close", at_browser=True)
            self.process.wait(timeout=10)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def _messages(self):
        """What has arrived; nothing, if nothing has."""
        try:
            chunk = os.read(self.reader, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has gone")
            self.buffer += chunk
        except BlockingIOError:
            time.sleep(0.003)
        *whole, self.buffer = self.buffer.split(b"\0")
        return [json.loads(message) for message in whole]

    def call(self, method, at_browser=False, **params):
        """Sends a command and waits for its answer; events on the way are kept."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session and not at_browser:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        answer = None
        while answer is None:
            for received in self._messages():
                if received.get("id") == number:
                    answer = received
                elif "method" in received:
                    self.events.append(received)
            if time.monotonic() > until:
                raise RuntimeError(f"no answer to {method}")
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, path, width, height, dark, scripts=True, scale=1):
        """A page in a tab of its own, at a size and in light or dark."""
        if self.session:
            self.call("Target.closeTarget", at_browser=True, targetId=self.target)
        self.session = None
        self.target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600,
                  screenWidth=width, screenHeight=height)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme, {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        until = time.monotonic() + PATIENCE
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events += [message for message in self._messages() if "method" in message]
            if time.monotonic() > until:
                raise RuntimeError(f"{path} does not load")
        if scripts:  # charts are drawn once their size is known
            self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", script))
        return result["result"].get("value")

    def press(self, key):
        """A key goes down and up."""
        codes = {"ArrowRight": 39, "ArrowLeft": 37, "Tab": 9, "Enter": 13}
        for kind in ["keyDown", "keyUp"]:
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    def touch(self, x, y):
        """A finger taps."""
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def hover(self, x, y):
        """The mouse is moved to a place."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def complaints(self):
        """Messages on the console, exceptions, and requests that would need a network."""
        said = []
        for event in self.events:
            params = event["params"]
            if event["method"] == "Runtime.consoleAPICalled":
                said.append(f"console: {params['args']}")
            elif event["method"] == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                said.append(f"exception: {details.get('exception', {}).get('description', details['text'])}")
            elif event["method"] == "Log.entryAdded":
                said.append(f"log: {params['entry']['text']}")
            elif event["method"] == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:")):
                said.append(f"network: {params['request']['url']}")
        return said

    def screenshot(self, path, full=False):
        """A picture of what is seen, or of the whole page."""
        png = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"]
        Path(path).write_bytes(base64.b64decode(png))
