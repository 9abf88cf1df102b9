#!/usr/bin/env python3
"""tools/unicode-table.py - writes src/text/unicode_table.c: letters, numbers, white space and simple lower case.

    python3 tools/unicode-table.py > src/text/unicode_table.c

The table is committed, so that a build needs no Python and does not change with its version.
"""
import sys
import textwrap
import unicodedata

LAST = 0x110000


def kind(c):
    """The class of a code point in the pre-tokenizer's pattern; '' for all others."""
    ch = chr(c)
    # str.isspace() also takes 1C..1F, which do not have the property White_Space.
    if ch.isspace() and not 0x1C <= c <= 0x1F:
        return "S"
    letter = unicodedata.category(ch)[0]
    return letter if letter in "LN" else ""


def class_ranges():
    start, current = 0, ""
    for c in range(LAST + 1):
        k = kind(c) if c < LAST else None
        if k != current:
            if current:
                yield start, c - 1, current
            start, current = c, k


def lower_ranges():
    """Runs (first, last, step, delta) of code points whose lower case is one code point."""
    pairs = [(c, ord(low) - c) for c in range(LAST) if len(low := chr(c).lower()) == 1 and ord(low) != c]
    runs = []
    for c, delta in pairs:
        if runs and runs[-1][3] == delta:
            first, last, step, _ = runs[-1]
            gap = c - last
            if gap in (1, 2) and step in (0, gap):
                runs[-1] = (first, c, gap, delta)
                continue
        runs.append((c, c, 0, delta))
    return [(first, last, step or 1, delta) for first, last, step, delta in runs]


def table(head, rows):
    body = textwrap.fill(" ".join(f"{{{r}}}," for r in rows), 100, initial_indent="    ",
                         subsequent_indent="    ", break_long_words=False)
    return f"{head}[] = {{\n{body}\n}};\n"


def main():
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return
    out = sys.stdout.write
    out(f"/* Written by tools/unicode-table.py from Unicode {unicodedata.unidata_version}; "
        "do not edit. */\n#include \"unicode.h\"\n\n/* clang-format off */\n"
        "enum { L = PARE_CHAR_LETTER, N = PARE_CHAR_NUMBER, S = PARE_CHAR_SPACE };\n\n")
    ranges = list(class_ranges())
    out(table("const pare_char_range pare_char_ranges",
              (f"0x{first:X},0x{last:X},{k}" for first, last, k in ranges)))
    out(f"const size_t pare_char_range_count = {len(ranges)};\n\n")
    lower = lower_ranges()
    out(table("const pare_lower_range pare_lower_ranges",
              (f"0x{first:X},0x{last:X},{step},{delta}" for first, last, step, delta in lower)))
    out(f"const size_t pare_lower_range_count = {len(lower)};\n/* clang-format on */\n")


main()
