#!/usr/bin/env python3
"""tests/report/browser.py PAGE [FOLDER [plots] [once]] - looks at a report with chromium as a reader
would: 1280 and 390 pixels wide, light and dark. Says what it saw; exit 1 when a plot is missing or
blank, when the page is wider than the window, or when the console complains. Pictures stay in FOLDER.
plots: a page without bars and heat maps. once: 1280 pixels, light, and no more."""
import html
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

CHROMIUM = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--allow-file-access-from-files", "--virtual-time-budget=4000",
            "--enable-logging=stderr"]
# The page in a frame: a window of its own would not become as narrow as a phone.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<style>body{margin:0}iframe{border:0;display:block}</style>
<iframe id="f" src="%s" width="%d" height="%d"></iframe><pre id="seen"></pre>
<script>addEventListener('load', () => {
  const d = document.getElementById('f').contentDocument, all = s => [...d.querySelectorAll(s)];
  const drawn = p => p.getBBox().width > 1;
  document.getElementById('seen').textContent = JSON.stringify({
    sections: all('section').length, plots: all('svg.plot').length,
    empty: all('svg.plot').filter(s => ![...s.querySelectorAll('path.series,circle')].some(drawn))
           .length,
    bars: all('.fill').length, flat: all('.tiers').filter(t =>
           ![...t.querySelectorAll('.fill')].some(f => f.getBoundingClientRect().width > 1)).length,
    heat: all('table.heat td').length, width: d.documentElement.scrollWidth,
    small: all('svg text').filter(t => t.getBoundingClientRect().height < 7).length});
});</script>"""


def chromium(*args):
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, HOME=home)
        return subprocess.run(CHROMIUM + ["--user-data-dir=" + home] + list(args), env=env,
                              capture_output=True, text=True, timeout=120)


def pixels(path):
    """Rows of an 8-bit RGB or RGBA picture, as bytes."""
    data = open(path, "rb").read()
    at, idat = 8, b""
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + n]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            idat += body
        at += 12 + n
    step = {2: 3, 6: 4}[colour]
    raw, row, rows = zlib.decompress(idat), bytes(width * step), []
    for y in range(height):
        line = raw[y * (width * step + 1):(y + 1) * (width * step + 1)]
        row = unfilter(line[0], bytearray(line[1:]), row, step)
        rows.append(row)
    return rows, step


def unfilter(kind, line, above, step):
    for i in range(len(line)) if kind else ():
        a = line[i - step] if i >= step else 0
        b, c = above[i], above[i - step] if i >= step else 0
        if kind == 1:
            add = a
        elif kind == 2:
            add = b
        elif kind == 3:
            add = (a + b) // 2
        else:
            p = a + b - c
            add = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        line[i] = (line[i] + add) & 255
    return bytes(line)


def window(width, scheme):
    return ["--blink-settings=preferredColorScheme=%d" % (0 if scheme == "dark" else 1),
            f"--window-size={max(width, 500)},900"]


def complaints(run):
    return [s for s in run.stderr.splitlines() if ":CONSOLE" in s]


def measure(page, folder, width):
    """What stands where does not depend on the colours."""
    frame = os.path.join(folder, f"frame-{width}.html")
    with open(frame, "w", encoding="utf-8") as f:
        f.write(FRAME % (os.path.abspath(page), width, 900))
    dom = chromium(*window(width, "light"), "--dump-dom", "file://" + os.path.abspath(frame))
    seen = json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', dom.stdout, re.S)[1]))
    wrong = complaints(dom) + [f"{key}: {seen[key]}" for key in ("empty", "flat", "small")
                               if seen[key]]
    if seen["width"] > width:
        wrong.append(f"the page is {seen['width']} wide")
    return seen, wrong


def look(page, folder, width, scheme):
    shot = os.path.join(folder, f"report-{width}-{scheme}.png")
    taken = chromium(*window(width, scheme), "--screenshot=" + shot,
                     "file://" + os.path.abspath(page))
    rows, step = pixels(shot)
    colours = {row[i:i + 3] for row in rows[::7] for i in range(0, len(row), step * 5)}
    ground = sum(rows[-1][:3]) / 3
    return complaints(taken), len(colours), ground


def main():
    page = sys.argv[1]
    folder = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()
    once = "once" in sys.argv[3:]
    needs = [a for a in sys.argv[3:] if a != "once"] or ["plots", "bars", "heat"]
    bad = 0
    for width in (1280,) if once else (1280, 390):
        seen, misplaced = measure(page, folder, width)
        for scheme in ("light",) if once else ("light", "dark"):
            wrong, colours, ground = look(page, folder, width, scheme)
            wrong += misplaced
            if not all(seen[key] for key in needs) or colours < 12:
                wrong.append(f"blank: {seen}, {colours} colours")
            if (ground < 128) != (scheme == "dark"):
                wrong.append(f"the ground is {ground:.0f}")
            print(f"{width} {scheme}:", "; ".join(wrong) if wrong else
                  f"{seen['sections']} boxes, {seen['plots']} plots, all drawn, all in the window")
            bad += len(wrong)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
