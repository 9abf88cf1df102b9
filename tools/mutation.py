"""One-line mutants of a C file, for tools/mutants: each makes one small mistake in a formula.

  drop       a term of a sum, a factor of a product, one side of a maximum or minimum
  factor     a value that is returned or assigned, times 1/2 or 2
  compare    < for <=, <= for <, > for >=, >= for >
  sign       + for -, - for +, a leading minus dropped
  constant   a number halved or doubled; the small e of a guard (1 + e) dropped
  one        an integer one larger or one smaller (off by one)
  swap       a maximum for a minimum and the other way round

The file is read as tokens; what is a binary operator is seen by the committed format (a space on both
sides). Mutants that do not compile, or that compile to the same code, are dropped by the runner."""
import collections
import re

Mutant = collections.namedtuple("Mutant", "kind function line old new text")
Token = collections.namedtuple("Token", "text start end")

NUMBER = (r"0[xX][0-9a-fA-F]+\.?[0-9a-fA-F]*(?:[pP][+-]?\d+)?[uUlLfF]*"
          r"|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[uUlLfF]*")
TOKEN = re.compile(rf"(?P<name>[A-Za-z_]\w*)|(?P<number>{NUMBER})"
                   r"|->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\S")
BLANK = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
DEFINE = re.compile(rf"^#define\s+\w+\s+(?:{NUMBER})\s*$")
FUNCTION = re.compile(r"^(?!typedef|enum|struct .*\{)((?:\w+[ \t]+)+\**)(\w+)\([^;{}]*\)\s*\{", re.M)
DEFINITION = re.compile(r"(?:^|[({;])\s*(?:const\s+)?(pare_ub|pare_lb|double|float)\s+(?![*(])", re.M)
ASSERT = re.compile(r"\b(?:PARE_ASSERT|static_assert|_Static_assert)\b")

OPEN, CLOSE = "([{", ")]}"
SUM, PRODUCT = ("+", "-"), ("*", "/", "%")
STOP = {",", ";", "?", ":", "<", ">", "<=", ">=", "==", "!=", "&&", "||", "=", "+=", "-=", "*=", "/=",
        "return", "&", "|", "<<", ">>"}
COMPARE = {"<=": "<", "<": "<=", ">=": ">", ">": ">="}
ARITHMETIC = re.compile(r"^(?:\w+_)?(add|mul|fma|max|min|sub)$")
PLAIN = {"fmax": "max", "fmin": "min", "fma": "fma", "plus": "add", "times": "mul"}
OTHER = {"max": "min", "min": "max"}
# Calls over matrices, f(k, &a, &b), with the call that does the opposite; and calls that add a term to
# their first matrix.
MATRICES = {"up_plus": None, "up_by": None, "up_least": "up_most", "up_most": "up_least",
            "imat_sum": "imat_diff", "imat_diff": "imat_sum"}
ADDS = re.compile(r"^(?:up_add|spread|add_\w+)$")


class Source:
    """A C file as text, tokens and the pairs of its brackets."""

    def __init__(self, text):
        self.text = text
        same = lambda m: re.sub(r"[^\n]", " ", m.group())
        bare = BLANK.sub(same, text)
        bare = DIRECTIVE.sub(lambda m: m.group() if DEFINE.match(m.group()) else same(m), bare)
        self.bare = re.sub(r"^#define\s+\w+", same, bare, flags=re.M)
        self.tokens = [Token(m.group(), m.start(), m.end()) for m in TOKEN.finditer(self.bare)]
        self.partner, stack = {}, []
        for i, t in enumerate(self.tokens):
            if t.text in OPEN:
                stack.append(i)
            elif t.text in CLOSE and stack:
                self.partner[i] = stack.pop()
                self.partner[self.partner[i]] = i
        self.functions = [(m.start(), m.end(), m.group(1).split(), m.group(2))
                          for m in FUNCTION.finditer(self.bare)]

    def function(self, at):
        """(words of the return type, name, where it begins) of the function around an offset."""
        inside = [f for f in self.functions if f[0] <= at]
        return (inside[-1][2], inside[-1][3], inside[-1][0]) if inside else ([], "-", 0)

    def spaced(self, i):
        """Whether token i stands between spaces: a binary operator."""
        t = self.tokens[i]
        return (self.text[t.start - 1:t.start] in (" ", "\n") and
                self.text[t.end:t.end + 1] in (" ", "\n"))

    def forward(self, i, stops):
        """Index of the first token from i on, outside brackets, that ends the operand."""
        while i < len(self.tokens):
            t = self.tokens[i].text
            if t in CLOSE or t in STOP and (t not in "&*|" or self.spaced(i)):
                return i
            if t in stops and self.spaced(i):
                return i
            i = self.partner.get(i, i) + 1 if t in OPEN else i + 1
        return i

    def backward(self, i, stops):
        """Index of the last token before i, outside brackets, that ends the operand."""
        while i >= 0:
            t = self.tokens[i].text
            if t in OPEN or t in STOP and (t not in "&*|" or self.spaced(i)):
                return i
            if t in stops and self.spaced(i):
                return i
            i = self.partner.get(i, i) - 1 if t in CLOSE else i - 1
        return i

    def span(self, first, behind):
        """Text of the tokens first .. behind - 1."""
        return self.text[self.tokens[first].start:self.tokens[behind - 1].end]

    def arguments(self, opening):
        """[(first token, token behind)] of the arguments of a call."""
        out, first, end = [], opening + 1, self.partner.get(opening, opening)
        i = first
        while i < end:
            if self.tokens[i].text == ",":
                out.append((first, i))
                first = i + 1
            i = self.partner.get(i, i) + 1 if self.tokens[i].text in OPEN else i + 1
        return out + [(first, end)] if end > opening + 1 else []


def numbers(s, t, guard):
    """(kind, text) for a number in the place of a number."""
    text = t.text.rstrip("uUlLfF") if not t.text.lower().startswith("0x") else t.text.rstrip("uUlL")
    if guard:
        return [("constant", "0")]
    if re.fullmatch(r"\d+", text):
        n = int(text)
        return [("one", str(n + 1))] + ([("one", str(n - 1))] if n > 0 else [])
    try:
        x = float.fromhex(text) if "p" in text.lower() else float(text)
    except ValueError:
        return []
    return [("constant", repr(x * k)) for k in (0.5, 2)] if x else []


def operators(s, i):
    """(kind, start, end, new text) for the operator at token i."""
    t, tokens = s.tokens[i], s.tokens
    if t.text in COMPARE and s.spaced(i):
        yield "compare", t.start, t.end, COMPARE[t.text]
    if t.text == "-" and not s.spaced(i) and s.text[t.end:t.end + 1] not in (" ", "\n", ">"):
        yield "sign", t.start, t.end, ""
    if t.text in ("+=", "-="):
        yield "sign", t.start, t.end, {"+=": "-=", "-=": "+="}[t.text]
    if t.text not in SUM + PRODUCT[:2] or not s.spaced(i):
        return
    sums = t.text in SUM
    stops = SUM if sums else SUM + PRODUCT
    right, left = s.forward(i + 1, stops), s.backward(i - 1, stops)
    yield "drop", tokens[i - 1].end, tokens[right - 1].end, ""
    if t.text != "/" and t.text != "-" and tokens[left].text not in stops:
        yield "drop", tokens[left + 1].start, tokens[i + 1].start, ""
    if sums:
        yield "sign", t.start, t.end, "-" if t.text == "+" else "+"


def calls(s, i):
    """The same for a call like pare_ub_add(a, b), up_max(a, b), fmin(a, b)."""
    name, tokens = s.tokens[i].text, s.tokens
    found = ARITHMETIC.match(name)
    what = PLAIN.get(name) or (found and found.group(1))
    if not what or i + 1 >= len(tokens) or tokens[i + 1].text != "(":
        return
    args = [s.span(*a) for a in s.arguments(i + 1) if a[1] > a[0]]
    if len(args) != (3 if what == "fma" else 2):
        return
    start, end = tokens[i].start, tokens[s.partner[i + 1]].end
    for arg in args[:2] if what != "fma" else args[2:]:
        yield "drop", start, end, arg
    if what == "fma":
        times = f"({args[0]}) * ({args[1]})" if name == "fma" else \
                f"{name[:-3]}mul({args[0]}, {args[1]})"
        yield "drop", start, end, times
    if what in OTHER:
        yield "swap", start, start + len(name), name[:-3] + OTHER[what]


def matrices(s, i):
    """The same for calls over matrices: one of the two dropped, or a term that is not added."""
    name, tokens = s.tokens[i].text, s.tokens
    if i == 0 or i + 1 >= len(tokens) or tokens[i + 1].text != "(":
        return
    end = s.partner.get(i + 1, i)
    args = [s.span(*a) for a in s.arguments(i + 1) if a[1] > a[0]]
    if name in MATRICES and len(args) == 3:
        for arg in args[1:2] if name == "up_by" else args[1:]:
            yield "drop", tokens[i].start, tokens[end].end, f"*({arg})"
        if MATRICES[name]:
            yield "swap", tokens[i].start, tokens[i].end, MATRICES[name]
    if ADDS.match(name) and tokens[i - 1].text in "{};)" and tokens[end + 1].text == ";":
        yield "drop", tokens[i].start, tokens[end].end, "(void)0"


def values(s, i):
    """A returned or assigned double or bound, times 1/2 and 2. Fields of structures are tried as
    both: the compiler says which it is."""
    t, tokens = s.tokens[i], s.tokens
    if t.text not in ("return", "=", "+="):
        return
    words, _, begin = s.function(t.start)
    kinds = []
    if t.text == "return":
        kinds = [w for w in words if w in ("double", "float", "pare_ub", "pare_lb")]
        if "*" in "".join(words):
            kinds = []
    elif i > 1 and re.match(r"\w", tokens[i - 1].text):
        name, before = tokens[i - 1].text, tokens[i - 2].text
        if before in (".", "->"):
            kinds = ["double", "pare_ub"]
        elif before != "*":
            declared = re.findall(rf"\b(pare_ub|pare_lb|double|float|\w+)\s+(?:const\s+)?"
                                  rf"(?:[^;()]*,\s*)?{name}\b\s*(?:=|,|;|\))",
                                  s.bare[begin:t.start + 2])
            kinds = [d for d in declared[-1:] if d in ("double", "float", "pare_ub", "pare_lb")]
    elif tokens[i - 1].text == "]":
        kinds = ["double", "pare_ub"]
    behind = i + 1
    while behind < len(tokens) and tokens[behind].text not in (",", ";", *CLOSE):
        behind = s.partner.get(behind, behind) + 1 if tokens[behind].text in OPEN else behind + 1
    if not kinds or behind <= i + 1:
        return
    value = s.span(i + 1, behind)
    if "?" not in value and re.search(r" (<|>|<=|>=|==|!=|&&|\|\||=) ", value):
        return
    if re.fullmatch(r"(?:pare_ub_exact\()?-?(?:0|INFINITY|NAN)\)?|pare_ub_inf\(\)|NULL|&.*", value):
        return
    for kind in kinds:
        for k in ("0.5", "2"):
            new = f"{k} * ({value})" if kind in ("double", "float") else \
                  f"{kind}_mul({kind}_exact({k}), {value})"
            yield "factor", tokens[i + 1].start, tokens[behind - 1].end, new


def changes(s):
    for i, t in enumerate(s.tokens):
        if re.match(NUMBER, t.text) and not t.text[0].isalpha():
            before = s.tokens[i - 1].text if i else ""
            guard = before in SUM and i > 1 and s.tokens[i - 2].text == "1" and \
                (i < 3 or s.tokens[i - 3].text == "(") and s.tokens[i + 1].text == ")"
            for kind, new in numbers(s, t, guard):
                yield kind, t.start, t.end, new
        else:
            yield from operators(s, i)
            yield from calls(s, i)
            yield from matrices(s, i)
            yield from values(s, i)


def squeeze(text):
    return " ".join(text.split())


def mutants(text):
    """Every mutant of a file, each once, in the order of the lines."""
    s, seen, out = Source(text), set(), []
    for kind, start, end, new in changes(s):
        mutated = s.text[:start] + new + s.text[end:]
        if mutated in seen or mutated == text:
            continue
        seen.add(mutated)
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        old = squeeze(text[first:last])
        if ASSERT.search(old):
            continue
        out.append(Mutant(kind, s.function(start)[1], text.count("\n", 0, start) + 1, old,
                          squeeze(text[first:start] + new + text[end:last]), mutated))
    return sorted(out, key=lambda m: m.line)
