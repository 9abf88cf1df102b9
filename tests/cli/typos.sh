# A word with one letter wrong, missing, doubled or swapped with the next is answered with the right word: every
# command, every kind of data, every long option of every command. Where the wrong word is as near to another
# word of the same list, that one may be named instead.
python3 - <<'END'
import re, subprocess


def pare(*words):
    return subprocess.run(["pare", *words], capture_output=True, text=True, check=False)


def slips(word, at):
    """The four mistakes at one place of the word."""
    other = "z" if word[at] != "z" else "y"
    pair = word[at:at + 2] if at + 1 < len(word) else word[at - 1:at + 1]
    start = min(at, len(word) - 2)
    return {"wrong": word[:at] + other + word[at + 1:], "missing": word[:at] + word[at + 1:],
            "doubled": word[:at] + word[at] + word[at:],
            "swapped": word[:start] + pair[::-1] + word[start + 2:]}


def near(a, b):
    """Whether one letter wrong, missing, too many or swapped with the next makes a of b."""
    if a == b or abs(len(a) - len(b)) > 1:
        return a == b
    i = next((k for k in range(min(len(a), len(b))) if a[k] != b[k]), min(len(a), len(b)))
    return (a[i + 1:] == b[i + 1:] or a[i:] == b[i + 1:] or a[i + 1:] == b[i:] or
            (a[i:i + 2] == b[i:i + 2][::-1] and a[i + 2:] == b[i + 2:]))


tried = dict.fromkeys(("command", "help", "kind", "option"), 0)
failed = 0


def ask(what, argv, start, wrong, right, words, dashes=""):
    """One wrong word; the answer begins with `start`, names the word and the right one, and exits with 1."""
    global failed
    if wrong in words or wrong.startswith("-") or len(wrong) < 2:
        return  # a word of its own, a third dash, or a letter that could be anything
    p = pare(*argv)
    tried[what] += 1
    m = re.match(re.escape(f"{start} '{dashes}{wrong}'; did you mean '") + r"([^']*)'\?\n", p.stderr)
    named = m.group(1)[len(dashes):] if m else None
    good = named == right or (named in words and near(wrong, named))
    if not good or p.returncode != 1 or p.stdout:
        failed += 1
        if failed <= 20:
            print(f"pare {' '.join(argv)}: exit {p.returncode}, not '{dashes}{right}': {p.stderr.splitlines()[:1]}")


completion = pare("help", "--completion").stdout
commands = [w for w in re.search(r"compgen -W '([^']*)'", completion).group(1).split() if w[0] != "-"]
options = {c: re.search(r"options='([^']*)'", text).group(1).split()
           for c, text in re.findall(r"^    '([a-z ]+)'\)\n(.*?);;$", completion, re.M | re.S) if "options='" in text}
kinds = [c.split()[1] for c in options if c.startswith("data ")]

for word in commands:
    for at in range(len(word)):
        for wrong in slips(word, at).values():
            ask("command", [wrong], "pare: unknown command", wrong, word, commands)
    for wrong in slips(word, len(word) // 2).values():
        ask("help", ["help", wrong], "pare: unknown command", wrong, word, commands)
for word in kinds:
    for at in range(len(word)):
        for wrong in slips(word, at).values():
            ask("kind", ["data", wrong, "-o", "x"], "pare data: unknown kind", wrong, word, kinds)
place, known = 0, set()
for command, longs in options.items():
    names = [o[2:] for o in longs]
    for name in names:
        place += 1  # another place each time: the first letter, a middle one, the last one
        wrongs = list(slips(name, place % len(name)).values())
        if name in known:  # of a command before: one of the four mistakes
            wrongs = [wrongs[place % 4]]
        known.add(name)
        for wrong in wrongs:
            ask("option", command.split() + ["--" + wrong], f"pare {command}: unknown option", wrong, name, names, "--")

print(f"commands: {len(commands)}, kinds of data: {len(kinds)}")
for what, least in (("command", 300), ("help", 50), ("kind", 80), ("option", 700)):
    print(f"{what}: " + (f"more than {least} wrong words" if tried[what] > least else f"only {tried[what]} wrong words"))
print(f"{failed} answered without the right word")
END
