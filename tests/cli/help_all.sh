# Every option of every command and of every kind of `pare data` is explained in words: in `--help all` and in
# the man page. The commands are those that src/cli has files for. What is not explained is named and counted.
python3 - "$PARE_ROOT" <<'END'
import glob, os, re, subprocess, sys


def pare(*words):
    p = subprocess.run(["pare", *words], capture_output=True, text=True, check=False)
    if p.returncode != 0 or p.stderr:
        print(f"pare {' '.join(words)}: exit {p.returncode} {p.stderr.strip()}")
    return p.stdout


def explained(text):
    """At least three words besides the default in brackets and the list of what to choose from."""
    text = re.sub(r"\[[^]]*\]", " ", text)
    text = re.sub(r":(?:\s+[\w.-]+,)+\s+[\w.-]+", " ", text)
    return len(re.findall(r"[A-Za-z]{2,}|\ba\b", text)) >= 3


def options_of_help(text):
    """[(name, what stands behind it, with the lines below it)]"""
    found = []
    for line in text.split("\n"):
        start = re.match(r"  (?:-\w, )?--([a-z0-9-]+)(.*)$", line)
        if start:
            rest = re.sub(r"^ \[?[A-Z][A-Za-z0-9.,:|/\[\]-]*(?=\s|$)", "", start.group(2))
            found.append([start.group(1), rest])
        elif found and re.match(r"\s{4,}\S", line):
            found[-1][1] += " " + line.strip()
        elif line.strip():  # a heading
            found.append(["", ""])
    return [f for f in found if f[0]]


def options_of_man(page):
    """{command: [(name, explanation)]}"""
    plain = re.sub(r"\\f[A-Z]", "", page).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
    parts, name, waiting = {}, None, False
    for line in plain.split("\n"):
        head = re.match(r'\.SS "?pare ([a-z ]+)"?$', line)
        if head:
            name = parts.setdefault(head.group(1).strip(), [])
        elif line.startswith(".SH") or line.startswith(".SS"):
            name = None
        elif line.startswith(".TP"):
            waiting = True
        elif name is not None and waiting:
            option = re.match(r"(?:-\w, )?--([a-z0-9-]+)", line)
            name.append([option.group(1) if option else "", ""])
            waiting = False
        elif name and not line.startswith("."):
            name[-1][1] += " " + line
    return parts


commands = sorted(os.path.basename(f)[4:-2] for f in glob.glob(sys.argv[1] + "/src/cli/cmd_*.c"))
kinds = re.findall(r"^    'data (\w+)'\)", pare("help", "--completion"), re.M)
listed = re.findall(r"^  ([a-z]+)  ", pare("--help"), re.M)
print("not in pare --help:", " ".join(sorted(set(commands) - set(listed))) or "none")
print("kinds of data:", " ".join(kinds))
man = options_of_man(pare("help", "--man"))
count = bare = absent = bare_man = 0
for name in [c for c in commands if c != "data"] + ["data " + k for k in kinds]:
    options = options_of_help(pare(*name.split(), "--help", "all"))
    if not options:
        print(f"pare {name} --help all: no options")
    for option, text in options:
        count += 1
        if not explained(text):
            bare += 1
            print(f"pare {name} --help all: --{option} is not explained:{text}")
    page = dict(man.get(name, []))
    for option, _ in options:
        if option == "help":
            continue
        if option not in page:
            absent += 1
            print(f"man page, pare {name}: --{option} is not there")
        elif not explained(page[option]):
            bare_man += 1
            print(f"man page, pare {name}: --{option} is not explained:{page[option]}")
print("more than 300 options" if count > 300 else f"only {count} options")
print(f"without an explanation: {bare} in --help all, {bare_man} in the man page, {absent} absent there")
for text in ("[as it is]", " width [as it is]", " draws: greedy, sample [greedy]", ": pca, minmax [pca]", ""):
    if explained(text):
        print(f"taken for an explanation: {text}")
END
