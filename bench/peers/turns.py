#!/usr/bin/env python3
"""bench/peers/turns.py [--rounds N] [--csv] COMMAND COMMAND... - programs that do the same work, in turns.

Each COMMAND speaks the protocol of docs/bench.md: it says "pare-peer 1 NAME", then answers "run N"
with the milliseconds of N runs. One run of each, over and over, each followed by the next, so that
what else the machine does meets all of them alike. Printed: the lower quartile of each, and the
first program's beside the others'."""
import shlex
import subprocess
import sys


class Peer:
    def __init__(self, command):
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        hello = self.process.stdout.readline().split()
        if hello[:2] != ["pare-peer", "1"]:
            sys.exit(f"turns.py: {command}: does not begin with \"pare-peer 1 NAME\"")
        self.name, self.ms = hello[2], []

    def run(self, n):
        self.process.stdin.write(f"run {n}\n")
        self.process.stdin.flush()
        word, *times = self.process.stdout.readline().split() or ["nothing"]
        if word != "ms":
            sys.exit(f"turns.py: {self.name}: {word} {' '.join(times)}")
        self.ms += [float(t) for t in times]

    def quartile(self):
        return sorted(self.ms)[len(self.ms) // 4]


def main():
    words, rounds = sys.argv[1:], 100
    if words[:1] == ["--help"] or not words:
        print(__doc__)
        return
    if words[0] == "--rounds":
        rounds, words = int(words[1]), words[2:]
    peers = [Peer(w) for w in words]
    for p in peers:
        p.run(2)
        p.ms.clear()
    for _ in range(rounds):
        for p in peers:
            p.run(1)
    print("program,lower_quartile_ms,least_ms,times_as_fast_as_first")
    for p in peers:
        print(f"{p.name},{p.quartile():.4f},{min(p.ms):.4f},{peers[0].quartile() / p.quartile():.3f}")
        p.process.stdin.close()
        p.process.wait()


main()
