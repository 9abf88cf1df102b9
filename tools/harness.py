"""What tools/run-tests, tools/docs-check and tests/cli/run share: the environment of a command
under test, expected output with holes in it, and results in TAP."""
import os
import re
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIP_EXIT = 77


def shared():
    """The folder of reference data beside the project, or '' when there is none."""
    path = os.path.join(os.path.dirname(ROOT), "shared")
    return path if os.path.isdir(path) else ""


def environment(build, tmp):
    env = dict(os.environ)
    # A make inside a test is not a part of the make that runs the tests.
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "SANITIZE", "WERROR"):
        env.pop(name, None)
    build = os.path.abspath(build)
    env.update(PATH=build + os.pathsep + env.get("PATH", ""), TMPDIR=tmp, PARE_ROOT=ROOT,
               PARE_BUILD=build, SHARED=shared(), NO_COLOR="1", LC_ALL="C.UTF-8")
    return env


def run(argv, cwd, env, timeout, merge=False):
    """(exit code or None after a timeout, stdout, stderr); ends the whole process group."""
    p = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT if merge else subprocess.PIPE,
                         start_new_session=True)
    try:
        out, err = p.communicate(timeout=timeout)
        code = p.returncode
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
        code = None
    text = lambda b: (b or b"").decode("utf-8", "replace")
    return code, text(out), text(err)


def line_matcher(pattern, style):
    """A test of one line. Styles: 'exact'; 'glob', where * and ? are wild (brackets are not:
    shapes and JSON are full of them); 'dots', where ... stands for anything."""
    if style == "exact":
        return lambda line: line == pattern
    if style == "glob":
        rx = "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    else:
        rx = ".*".join(re.escape(part) for part in pattern.split("..."))
    compiled = re.compile(rx, re.S)
    return lambda line: compiled.fullmatch(line) is not None


def first_difference(expected, got, style):
    """None when the lines match, else (index of the expected line, index of the line got) where
    the longest match ends. Unless exact, a line of only ... is any number of lines."""
    many = [style != "exact" and e.strip() == "..." for e in expected]
    test = [line_matcher(e, style) for e in expected]
    furthest = (0, 0)
    i = j = 0
    retry = None  # (expected index after the last ..., line of got it may swallow next)
    while True:
        furthest = max(furthest, (i, j))
        if i < len(expected) and many[i]:
            i += 1
            retry = (i, j)
        elif i < len(expected) and j < len(got) and test[i](got[j]):
            i, j = i + 1, j + 1
        elif i == len(expected) and j == len(got):
            return None
        elif retry is not None and retry[1] < len(got):
            retry = (retry[0], retry[1] + 1)
            i, j = retry
        else:
            return furthest


class Tap:
    """Collects results and prints them in TAP, or for a reader when tap is False."""

    def __init__(self, tap):
        self.tap = tap
        self.count = self.failed = self.skipped = 0

    def report(self, ok, name, notes=()):
        self.count += 1
        self.failed += not ok
        if self.tap:
            print(f"{'ok' if ok else 'not ok'} {self.count} - {name}")
        elif not ok:
            print(f"failed  {name}")
        for note in notes:
            for line in note.split("\n"):
                print(f"# {line}" if self.tap else f"    {line}")
        sys.stdout.flush()

    def skip(self, name, why):
        self.count += 1
        self.skipped += 1
        print(f"SKIP {name}: {why}")
        if self.tap:
            print(f"ok {self.count} # SKIP {name}")
        sys.stdout.flush()

    def finish(self):
        if self.tap:
            print(f"1..{self.count}")
        else:
            passed = self.count - self.failed - self.skipped
            print(f"{passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0
