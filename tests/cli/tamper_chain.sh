# A chain of three cuts verifies. Every bound of every certificate made smaller, every hash, every
# seed and count, every hypothesis changed, one bit of one weight of every tensor of every file:
# exit 4, and the reason names what was changed.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data minesweeper --side 5 --seed 1 -q -o board.npz >/dev/null
pare data model -q --kind graph --dim 8 --heads 2 --layers 1 -o m.st >/dev/null
exec 2>&1
pare width m.st --data board.npz --dim 4 -q -o w.st >/dev/null
pare depth w.st --data board.npz --kind uniform --layers 0 -q -o d.st >/dev/null
pare ticket d.st --data board.npz --bits 8 --allow-larger -q -o t.st >/dev/null
pare compose w.st.cert.json d.st.cert.json t.st.cert.json -q -o chain.cert.json | grep -A 2 '^chain' | digits
pare verify chain.cert.json -q | grep -oE '^verdict +[A-Z]+'
python3 - <<'PY'
import collections, concurrent.futures, copy, hashlib, json, os, struct, subprocess

CERTS = ["w.st.cert.json", "d.st.cert.json", "t.st.cert.json", "chain.cert.json"]
MODELS = ["m.st", "w.st", "d.st", "t.st"]
BOUNDS = {"proven", "measured", "bound"}
number = 0


def leaves(v, path=()):
    if isinstance(v, (dict, list)):
        for k, x in v.items() if isinstance(v, dict) else enumerate(v):
            yield from leaves(x, path + (k,))
    else:
        yield path, v


def lie(path, v):
    """What sort of change, and every value that would be a lie."""
    key, inside = path[-1], path[-2] if len(path) > 1 else None
    if key in BOUNDS:
        lower = key == "bound" and LOWER.get(path[:-1])
        better = [v * 1.002] if lower else [1e9, 1.5] if v == "inf" else [v * 0.5, v * 0.998] if v else []
        return "bound", better + [-1e-9]
    if isinstance(v, str) and len(v) == 64 and set(v) <= set("0123456789abcdef"):
        return "hash", [v[:-1] + ("0" if v[-1] != "0" else "1")]
    if key == "holds":
        return "hypothesis", [x for x in (True, False, None) if x is not v]
    if key in ("value", "limit") and v is not None:
        if "evidence" in path and v != "inf" and v < 1e-9:
            return None, []  # below what f64 sees of the rows
        return "figure", [0.5 if v in (0, "inf") else v * 0.1]
    if key == "seed":
        return None, []  # drawn from it are random inputs alone: the writer's word here
    if key in ("count", "first", "split"):
        return "which inputs", [v + 1]
    if key == "sound":
        return "soundness", [True]
    if key == "tolerance":
        return "tolerance", [10 * v]
    if inside == "parameters":
        return "parameter", [v + 1 if isinstance(v, (int, float)) else v + " and more"]
    if key in ("norm", "domain", "sentence", "kind", "side", "name"):
        return "words", [v + " and more"]
    return None, []


LOWER = {}


def changed(cert):
    tree = json.load(open(cert))
    LOWER.clear()
    LOWER.update({path[:-1]: v == "lower" for path, v in leaves(tree) if path[-1] == "side"})
    for path, v in leaves(tree):
        if "tensors" in path and cert != "chain.cert.json":
            continue  # they are in the chain as well
        sort, lies = lie(path, v)
        for x in lies:
            again = copy.deepcopy(tree)
            at = again
            for k in path[:-1]:
                at = at[k]
            at[path[-1]] = x
            yield sort, ".".join(map(str, path)), again


def verify(folder, cert):
    r = subprocess.run(["pare", "verify", os.path.join(folder, cert), "-q", "-t", "1", "--evidence"],
                       capture_output=True, text=True)
    return r.returncode, r.stderr


def write(tree):
    global number
    number += 1
    name = f"lie{number}.cert.json"
    with open(name, "w") as f:
        json.dump(tree, f)
    return name


def tensors(model):
    data = open(model, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return data, [(k, 8 + n + v["data_offsets"][0], 8 + n + v["data_offsets"][1])
                  for k, v in head.items() if k != "__metadata__"]


def folder_with(name, model, data, chain=None):
    """The files of the chain in a folder of their own, one of them another one."""
    os.mkdir(name)
    for f in MODELS + ["board.npz", "chain.cert.json"]:
        if f != model and not (chain and f == "chain.cert.json"):
            os.link(f, f"{name}/{f}")
    open(f"{name}/{model}", "wb").write(data)
    if chain:
        json.dump(chain, open(f"{name}/chain.cert.json", "w"))


def one_bit(jobs):
    """Of one weight of every tensor of every model, and of the data."""
    for model in MODELS:
        data, list_ = tensors(model)
        for name, a, b in list_:
            bad = bytearray(data)
            bad[a + (b - a) // 2 // 4 * 4] ^= 1
            folder_with(f"{model}.{name}", model, bad)
            jobs.append(("weight", f"{model} {name}", "chain.cert.json", f"{model}.{name}"))
    data = open("board.npz", "rb").read()
    for at in (0, 200, -1):
        bad = bytearray(data)
        bad[at] ^= 1
        folder_with(f"b{at}", "board.npz", bad)
        jobs.append(("data", f"byte {at}", "chain.cert.json", f"b{at}"))


def repaired(jobs):
    """A weight is changed and every hash of it corrected: the proof itself must fail."""
    for model in MODELS[:3]:
        data, list_ = tensors(model)
        for name, a, b in list_:
            if not name.endswith(("wv", "out.weight", "map.weight", "ffn.0.weight")):
                continue
            values = [1.5 * x for x in struct.unpack(f"<{(b - a) // 4}f", data[a:b])]
            bad = data[:a] + struct.pack(f"<{len(values)}f", *values) + data[b:]
            chain = json.load(open("chain.cert.json"))
            for cert in [chain] + chain["chain"]:
                for end in (cert["input"], cert["output"]):
                    if end["path"] == model:
                        end["sha256"] = end["files"][model] = hashlib.sha256(bad).hexdigest()
                        end["tensors"][name] = hashlib.sha256(bad[a:b]).hexdigest()
            folder_with(f"{model}.{name}.again", model, bad, chain)
            jobs.append(("weight and its hashes", f"{model} {name}", "chain.cert.json",
                         f"{model}.{name}.again"))


def other_chains(jobs):
    """Links left out, twice, or in another order."""
    tree = json.load(open("chain.cert.json"))
    a, b, c = tree["chain"]
    for links in ([a, b], [b, c], [a, c], [b, a, c], [a, b, b, c], [c]):
        again = dict(tree, chain=links)
        jobs.append(("links", str(len(links)), write(again), "."))


def main():
    pool = concurrent.futures.ThreadPoolExecutor(2)
    seen, jobs = collections.Counter(), []
    for cert in CERTS:
        for sort, what, tree in changed(cert):
            jobs.append((sort, cert + " " + what, write(tree), "."))
    one_bit(jobs)
    repaired(jobs)
    other_chains(jobs)
    for (sort, what, _, _), (code, why) in zip(jobs, pool.map(lambda j: verify(j[3], j[2]), jobs)):
        seen[sort] += 1
        if code not in ((2, 4) if sort in ("words", "parameter", "bound") else (4,)) or not why.strip():
            print(f"{sort}: {what}: exit {code} {why.strip()}")
    print("refused:", ", ".join(sorted(seen)))


main()
PY
