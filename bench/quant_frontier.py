#!/usr/bin/env python3
"""bench/quant_frontier.py MINILM_FOLDER TEXT_FOLDER [options] - bytes and cosine of a quantized sentence encoder, as CSV.

MINILM_FOLDER: all-MiniLM-L6-v2 in f16 (`tools/get-models minilm`). TEXT_FOLDER: wt2_train.txt, wt2_test.txt,
sst_dev.tsv, tinystories_1000.txt. Fitted to sentences of WikiText-2's training split alone; the cosines are to the
original, on sentences of its test split, of SST and of TinyStories. Shares are those of the weights file of
the folder; the bytes are those of the written file without the vocabulary, with its header and everything else."""
import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

MEASURED = ("wt2", "sst", "stories")


def wikitext(path):
    for line in open(path, encoding="utf-8"):
        line = line.strip().replace(" @-@ ", "-").replace(" @,@ ", ",").replace(" @.@ ", ".")
        if not line or line.startswith("="):
            continue
        for s in re.split(r'(?<= [.!?]) (?=[A-Z"])', line):
            if 5 <= len(s.split()) <= 60 and "<unk>" not in s:
                yield s.strip()


def sentences(folder):
    def path(name):
        return os.path.join(folder, name)
    sst = [line.split("\t")[0].strip() for line in open(path("sst_dev.tsv"), encoding="utf-8").read().split("\n")[1:]]
    stories = [s.strip() for line in open(path("tinystories_1000.txt"), encoding="utf-8")
               for s in re.split(r'(?<=[.!?]) (?=[A-Z"])', line.strip()) if 5 <= len(s.split()) <= 60]
    return {"fit": (wikitext(path("wt2_train.txt")), 1200), "wt2": (wikitext(path("wt2_test.txt")), 300),
            "sst": (filter(None, sst), 200), "stories": (stories, 200)}


def pick(lines, n):
    lines = list(dict.fromkeys(lines))
    random.Random(1).shuffle(lines)
    return lines[:n]


def vocabulary_bytes(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    at = head.get("vocab", {}).get("data_offsets", [0, 0])
    return at[1] - at[0]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("text")
    p.add_argument("--pare", default="build/pare")
    p.add_argument("--methods", default="rtn,gptq,trellis")
    p.add_argument("--shares", default="50,40,30,25,20,16", help="percent of the weights file")
    p.add_argument("--state-bits", default="15")
    p.add_argument("--prove", default="8", help="held-out sentences to prove the cosine on")
    p.add_argument("--threads", default="2")
    args = p.parse_args()
    weights = [f for f in os.listdir(args.model) if f.endswith(".safetensors")]
    whole = os.path.getsize(os.path.join(args.model, weights[0]))
    with tempfile.TemporaryDirectory() as tmp:
        def at(name):
            return os.path.join(tmp, name)

        def pare(*words):
            done = subprocess.run([os.path.abspath(args.pare), *words, "--json", "-q", "-t", args.threads],
                                  capture_output=True, text=True)
            if done.returncode not in (0, 3):
                sys.exit(done.stderr or done.stdout)
            return json.loads(done.stdout) if done.returncode == 0 else None

        for name, (lines, n) in sentences(args.text).items():
            with open(at(name + ".txt"), "w", encoding="utf-8") as f:
                f.write("\n".join(pick(lines, n)) + "\n")
        pare("import", args.model, "--pool", "mean", "--normalize", "-o", at("m.st"))
        vocabulary = vocabulary_bytes(at("m.st"))
        print("method,share,bytes," + ",".join("cosine_" + m for m in MEASURED) + ",proven_least_cosine,seconds")
        for share in args.shares.split(","):
            for method in args.methods.split(","):
                budget = int(whole * float(share) / 100) + vocabulary
                more = ["--state-bits", args.state_bits] if method == "trellis" else []
                began = time.time()
                done = pare("quant", at("m.st"), "--method", method, "--max-bytes", str(budget), "--data", at("fit.txt"),
                            "--heldout", at("wt2.txt"), "--prove", args.prove, "--tokens", "24", "-f", "-o", at("q.st"), *more)
                if done is None:
                    print(f"{method},{share},not so small", flush=True)
                    continue
                seconds = time.time() - began
                size = os.path.getsize(at("q.st")) - vocabulary_bytes(at("q.st"))
                cert = json.load(open(at("q.st.cert.json")))
                gap = max((t["bound"] for t in cert["theorems"] if t["kind"] == "cosine.distance"), default=float("nan"))
                cosines = [pare("eval", at("q.st"), "--reference", at("m.st"), "--data", at(m + ".txt"))["metric"]["value"]
                           for m in MEASURED]
                print(f"{method},{100 * size / whole:.2f},{size}," + ",".join(f"{c:.5f}" for c in cosines) +
                      f",{1 - gap:.5f},{seconds:.0f}", flush=True)


main()
