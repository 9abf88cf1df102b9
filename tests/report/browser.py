#!/usr/bin/env python3
"""tests/report/browser.py PAGE [FOLDER] [cards|plots|bars|heat ...] [once] - looks at a report with chromium as
a reader would: 1400 and 390 pixels wide, light and dark, every fold of the page opened. Exit 1, and a line
for each defect, when
  - the page scrolls sideways, or something sticks out of its card,
  - a table or another box hides a part of itself and says so nowhere,
  - two words of a picture overlap, leave the picture, or are too small to read,
  - a plot or a group of bars is empty (or there is none at all: cards, plots, bars, heat; the last three by default),
  - a link of the page leads nowhere, or to a card that stays closed,
  - text has too little contrast, or the console complains.
Pictures of the page as it opens are left in FOLDER. once: 1400 pixels, light, and no more."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
from browser import Browser  # noqa: E402

LOOK = r"""(() => {
  const all = s => [...document.querySelectorAll(s)], wrong = [];
  const name = e => e.tagName.toLowerCase() + (e.className.length ? '.' + e.className : '');
  const say = s => { if (wrong.length < 12) wrong.push(s); };
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) say(`the page is ${page.scrollWidth} wide`);
  /* Links, as the page opens: following one shows what it leads to. */
  for (const a of all('a[href^="#"]')) {
    const to = document.getElementById(a.getAttribute('href').slice(1));
    if (!to) { say('no ' + a.getAttribute('href')); continue; }
    a.click();
    if (!to.checkVisibility({contentVisibilityAuto: true})) say('closed: ' + a.getAttribute('href'));
  }
  all('details').forEach(d => d.open = true);
  if (page.scrollWidth > innerWidth) say(`opened, the page is ${page.scrollWidth} wide`);
  /* What is cut off, and what sticks out. */
  for (const e of all('main *')) {
    if (e.closest('svg') || !e.clientWidth || e.matches('.track, .track *')) continue;
    const how = getComputedStyle(e).overflowX;
    if (how !== 'visible' && e.scrollWidth > e.clientWidth + 1) {
      const hint = e.closest('figure') && e.closest('figure').querySelector('.hint');
      if (how === 'hidden' || how === 'clip') say(`clipped: ${name(e)}`);
      else if (!hint || !hint.offsetHeight) say(`clipped without a hint: ${name(e)}`);
    }
  }
  for (const e of all('main section *')) {
    const box = e.closest('.wide') ? null : e.closest('section');
    if (!box || !e.getBoundingClientRect().width) continue;
    const r = e.getBoundingClientRect(), b = box.getBoundingClientRect();
    if (r.right > b.right + 1 || r.left < b.left - 1) say(`sticks out: ${name(e)}`);
  }
  /* Cells of a row must not run into one another. */
  for (const c of all('td, th')) {
    const next = c.nextElementSibling, range = document.createRange();
    if (!next || getComputedStyle(c).display !== 'table-cell') continue;
    range.selectNodeContents(c);
    if (range.getBoundingClientRect().right > next.getBoundingClientRect().left + 1 && c.textContent)
      say(`runs into the next cell: ${c.textContent.slice(0, 40)}`);
  }
  /* Words of pictures. */
  for (const svg of all('svg')) {
    const words = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    const b = svg.getBoundingClientRect();
    words.forEach(([word, r], i) => {
      if (r.height < 8) say(`too small: ${word}`);
      if (r.left < b.left - 1 || r.right > b.right + 1 || r.top < b.top - 1 || r.bottom > b.bottom + 1)
        say(`leaves its picture: ${word}`);
      for (const [other, o] of words.slice(0, i))
        if (Math.min(r.right, o.right) - Math.max(r.left, o.left) > 1 &&
            Math.min(r.bottom, o.bottom) - Math.max(r.top, o.top) > 3)
          say(`overlap: ${other} / ${word}`);
    });
  }
  /* Plots and bars with nothing in them. */
  const drawn = p => p.getBBox().width > 1 || p.getBBox().height > 1;
  for (const s of all('svg.plot'))
    if (![...s.querySelectorAll('path.series,path.mark')].some(drawn)) say('empty plot');
  for (const t of all('.tiers'))
    if (t.querySelector('.fill') &&
        ![...t.querySelectorAll('.fill')].some(f => f.getBoundingClientRect().width > 1))
      say('flat bars');
  /* Contrast of plain text with the ground of its card. */
  const light = c => {
    const v = c.match(/[\d.]+/g).slice(0, 3).map(x => x / 255)
               .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
  };
  const box = document.querySelector('section');
  const ground = light(getComputedStyle(box || document.body).backgroundColor);
  for (const e of all('p, td, th, dt, dd, .dim, .chip, .good, .bad, .warn, figcaption, a')) {
    const c = getComputedStyle(e).color;
    if (!c.startsWith('rgb')) continue;
    const v = light(c), ratio = (Math.max(v, ground) + 0.05) / (Math.min(v, ground) + 0.05);
    if (ratio < 4.5) { say(`contrast ${ratio.toFixed(1)}: ${name(e)}`); break; }
  }
  return {cards: all('section.card').length, plots: all('svg.plot,svg.plan').length,
          bars: all('.fill').length, heat: all('table.heat td').length, dark: ground < 0.2, wrong};
})()"""


def look(browser, page, folder, width, scheme, needs):
    browser.open(page, width=width, scheme=scheme)
    browser.shot(os.path.join(folder, f"report-{width}-{scheme}.png"))
    seen = browser.run(LOOK)
    wrong = seen["wrong"] + browser.complaints()
    wrong += [f"no {key}" for key in needs if not seen[key]]
    if seen["dark"] != (scheme == "dark"):
        wrong.append(f"not {scheme}")
    return seen, wrong


def main():
    words = sys.argv[1:]
    once = "once" in words
    needs = [w for w in words if w in ("plots", "bars", "heat", "cards")] or ["plots", "bars", "heat"]
    page, folder = ([w for w in words if w not in ("once", "plots", "bars", "heat", "cards")] + ["."])[:2]
    bad = 0
    with Browser() as browser:
        for width in (1400,) if once else (1400, 390):
            for scheme in ("light",) if once else ("light", "dark"):
                seen, wrong = look(browser, page, folder, width, scheme, needs)
                print(f"{width} {scheme}:", "; ".join(wrong) if wrong else
                      f"{seen['cards']} cards, {seen['plots']} plots: nothing clipped, no words "
                      "overlap, nothing scrolls sideways")
                bad += len(wrong)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
