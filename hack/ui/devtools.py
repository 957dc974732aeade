"""A headless Chromium, driven over the pipe of its DevTools protocol: no package is needed for that."""

import base64
import json
import os
import select
import subprocess
import tempfile
import time


class Failed(Exception):
    """A condition that did not come true, or an error of the page."""


class Browser:
    """One Chromium with one page."""

    def __init__(self, binary, width=1440, height=900):
        self.folder = tempfile.TemporaryDirectory(prefix="entourage-ui-", ignore_cleanup_errors=True)
        (self.from_us, to_them), (from_them, self.to_us) = os.pipe(), os.pipe()
        command = (
            f'exec "$0" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars=false '
            f"--no-first-run --disable-extensions --disable-background-networking --user-data-dir={self.folder.name} "
            f"--window-size={width},{height} --remote-debugging-pipe about:blank 3<&{self.from_us} 4>&{self.to_us}"
        )
        self.process = subprocess.Popen(
            ["bash", "-c", command, binary],
            pass_fds=(self.from_us, self.to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(self.from_us)
        os.close(self.to_us)
        self.writes, self.reads = to_them, from_them
        self.buffer, self.number, self.errors, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        # Durations are the processor's time of the page's main thread: other processes of the machine do not count.
        self.call("Performance.enable", timeDomain="threadTicks")
        self.size(width, height)

    def close(self):
        """Ends the browser."""
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def call(self, method, **params):
        """One call of the protocol."""
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writes, data) :]
        deadline = time.monotonic() + 60
        while True:
            answer = self.receive(deadline, method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise Failed(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.noticed(answer)

    def receive(self, deadline, what):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reads], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.reads, 1 << 20) if ready else b""
            if not data:
                raise Failed(f"the browser does not answer {what}")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def noticed(self, message):
        """Errors of scripts, and what the content security policy refused."""
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, value):
        """Light or dark, as the system of the user would say."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def value(self, expression):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Failed(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, expression, seconds=120):
        """Waits until an expression is true. Returns the seconds that it took."""
        begin = time.monotonic()
        while True:
            try:
                if self.value(f"Boolean({expression})"):
                    return time.monotonic() - begin
            except Failed:
                pass  # The page is on its way.
            if time.monotonic() - begin > seconds:
                text = self.value("document.body.innerText.slice(0, 1500)")
                raise Failed(f"not within {seconds} s: {expression}\nerrors: {self.errors}\n{text}")
            time.sleep(0.02)

    def key(self, key, text=None):
        """Presses a key."""
        codes = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "End": 35, "Home": 36, "PageDown": 34, "Tab": 9}
        code = codes.get(key, ord(key[0].upper()))
        down = {"type": "keyDown", "key": key, "windowsVirtualKeyCode": code}
        if key not in codes:
            down["text"] = key
        elif key == "Enter":
            down["text"] = "\r"
        self.call("Input.dispatchKeyEvent", **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, file):
        """What is in sight, as WebP: a quarter of the size of a PNG, and every browser shows it."""
        data = self.call("Page.captureScreenshot", format="webp", quality=85)["data"]
        with open(file, "wb") as out:
            out.write(base64.b64decode(data))

    def heap(self):
        """The JavaScript heap in bytes, after a collection."""
        self.call("HeapProfiler.collectGarbage")
        return int(self.metric("JSHeapUsedSize"))

    def metric(self, name):
        """A metric of the page, as the protocol names it."""
        return next(each["value"] for each in self.call("Performance.getMetrics")["metrics"] if each["name"] == name)
