# A chain of three cuts verifies. Every bound of every certificate made smaller, every hash, every
# seed and count, every hypothesis changed, one bit of one weight of every tensor of every file:
# exit 4, and the reason names what was changed.
pare data minesweeper --side 5 --seed 1 -q -o board.npz >/dev/null
pare data model -q --kind graph --dim 8 --heads 2 --layers 1 -o m.st >/dev/null
exec 2>&1
pare width m.st --data board.npz --dim 4 -q -o w.st >/dev/null
pare depth w.st --data board.npz --kind uniform --layers 0 -q -o d.st >/dev/null
pare ticket d.st --data board.npz --bits 8 -q -o t.st >/dev/null
pare compose w.st.cert.json d.st.cert.json t.st.cert.json -q -o chain.cert.json | head -n 4
pare verify chain.cert.json -q | tail -n 1
python3 - <<'PY'
import collections, concurrent.futures, copy, hashlib, json, os, shutil, struct, subprocess, sys

CERTS = ["w.st.cert.json", "d.st.cert.json", "t.st.cert.json", "chain.cert.json"]
MODELS = ["m.st", "w.st", "d.st", "t.st"]
BOUNDS = {"apriori", "proven", "measured", "rounding", "bound"}
number = 0


def leaves(v, path=()):
    if isinstance(v, (dict, list)):
        for k, x in v.items() if isinstance(v, dict) else enumerate(v):
            yield from leaves(x, path + (k,))
    else:
        yield path, v


def lie(path, v):
    """What sort of change, and every value that would be a lie."""
    key = path[-1]
    if key in BOUNDS:
        smaller = [1e9, 1.5] if v == "inf" else [v * 0.5, v * 0.998] if v else []
        return "bound", smaller + [-1e-9]
    if isinstance(v, str) and len(v) == 64 and set(v) <= set("0123456789abcdef"):
        return "hash", [("0" if v[0] != "0" else "1") + v[1:], v[:-1] + ("0" if v[-1] != "0" else "1")]
    if key == "holds":
        return "hypothesis", [x for x in (True, False, None) if x is not v]
    if key in ("value", "limit") or path[-2] == "paper_not_sound":
        return "figure", [0.5 if v in (None, 0, "inf") else v * 0.9]
    if key == "probability":
        return "probability", [v * (1 - 1e-9)]
    if key == "seed":
        return "seed", [str(int(v) + 1)]
    if key in ("count", "tokens", "first", "split"):
        return "which inputs", [v + 1]
    if key in ("name", "norm", "domain"):
        return "words", [v + " and more"]
    return None, []


def changed(cert):
    tree = json.load(open(cert))
    for path, v in leaves(tree):
        sort, lies = lie(path, v)
        for x in lies:
            again = copy.deepcopy(tree)
            at = again
            for k in path[:-1]:
                at = at[k]
            at[path[-1]] = x
            yield sort, ".".join(map(str, path)), again


def verify(folder, cert):
    r = subprocess.run(["pare", "verify", os.path.join(folder, cert), "-q", "-t", "1"],
                       capture_output=True, text=True)
    return r.returncode, r.stderr


def try_cert(sort, what, tree):
    global number
    number += 1
    name = f"lie{number}.cert.json"
    with open(name, "w") as f:
        json.dump(tree, f)
    return sort, what, name


def tensors(model):
    data = open(model, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return data, [(k, 8 + n + v["data_offsets"][0], 8 + n + v["data_offsets"][1])
                  for k, v in head.items() if k != "__metadata__"]


def main():
    pool = concurrent.futures.ThreadPoolExecutor(2)
    seen, jobs = collections.Counter(), []
    for cert in CERTS:
        for sort, what, tree in changed(cert):
            jobs.append((sort, cert + " " + what, try_cert(sort, what, tree)[2], "."))
    for i, model in enumerate(MODELS):
        data, list_ = tensors(model)
        for k, (name, a, b) in enumerate(list_):
            folder = f"f{i}.{k}"
            os.mkdir(folder)
            for f in MODELS + ["board.npz", "chain.cert.json"]:
                os.link(f, f"{folder}/{f}")
            os.unlink(f"{folder}/{model}")
            bad = bytearray(data)
            bad[a + (b - a) // 2 // 4 * 4] ^= 1
            open(f"{folder}/{model}", "wb").write(bad)
            jobs.append(("weight", f"{model} {name}", "chain.cert.json", folder))
    for at in (0, 200, -1):
        folder = f"b{at}"
        os.mkdir(folder)
        for f in MODELS + ["chain.cert.json"]:
            os.link(f, f"{folder}/{f}")
        bad = bytearray(open("board.npz", "rb").read())
        bad[at] ^= 1
        open(f"{folder}/board.npz", "wb").write(bad)
        jobs.append(("data", f"byte {at}", "chain.cert.json", folder))
    for (sort, what, _, _), (code, why) in zip(jobs, pool.map(lambda j: verify(j[3], j[2]), jobs)):
        seen[sort] += 1
        if code != 4 or not why.strip():
            print(f"{sort}: {what}: exit {code} {why.strip()}")
    print("refused:", ", ".join(sorted(seen)))
    print(len(jobs), file=open("count", "w"))


main()
PY
