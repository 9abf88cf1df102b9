"""browser.py - drive chromium without a window over its debugging pipe (two file descriptors, JSON
messages ended by a zero byte): no web driver and no package is needed.

    with Browser() as b:
        b.open("page.html", width=390, scheme="dark")
        b.run("document.title")
        b.shot("page.png")
"""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile

PROGRAM = "chromium"
TIMEOUT = 120  # seconds for one answer


def available():
    return shutil.which(PROGRAM) is not None


class Browser:
    def __enter__(self):
        self.home = tempfile.TemporaryDirectory()
        to_child, self.write_fd = os.pipe()
        self.read_fd, from_child = os.pipe()

        def hand_over():  # chromium reads from 3 and writes to 4; first out of their way
            ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_child, from_child)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--force-device-scale-factor=1", "--remote-debugging-pipe",
             "--user-data-dir=" + self.home.name, "about:blank"],
            env=dict(os.environ, HOME=self.home.name), preexec_fn=hand_over, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.events, self.number, self.session = b"", [], 0, None
        target = [t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page"][0]
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"],
                                flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(domain + ".enable")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.write_fd)
        os.close(self.read_fd)
        shutil.rmtree(self.home.name, ignore_errors=True)

    def message(self):
        while b"\0" not in self.buffer:
            if not select.select([self.read_fd], [], [], TIMEOUT)[0]:
                raise TimeoutError("chromium does not answer")
            more = os.read(self.read_fd, 1 << 20)
            if not more:
                raise EOFError("chromium ended")
            self.buffer += more
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def ask(self, method, **params):
        self.number += 1
        question = {"id": self.number, "method": method, "params": params}
        if self.session:
            question["sessionId"] = self.session
        os.write(self.write_fd, json.dumps(question).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.message())

    def open(self, path, width=1400, height=900, scheme="light"):
        """Show a file in a window of this size; light or dark."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = []
        self.ask("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait_for("Page.loadEventFired")

    def run(self, script):
        """The value of a JavaScript expression, computed in the page."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True,
                          awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def complaints(self):
        """What the console reported since the page was opened."""
        return [json.dumps(e["params"])[:300] for e in self.events
                if e.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown",
                                       "Log.entryAdded")]

    def shot(self, path, clip=None):
        """A PNG of the whole page, or of clip = (x, y, width, height)."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        x, y, width, height = clip or (0, 0, size["width"], size["height"])
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                        clip={"x": x, "y": y, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as f:
            f.write(base64.b64decode(data["data"]))
