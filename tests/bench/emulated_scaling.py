#!/usr/bin/env python3
"""Compares the model of docs/scaling.md with a trainer that is one rank of an emulated cluster.

  python3 tests/bench/emulated_scaling.py [--build build] [--net resnet20] [--rounds 5] [--profile FILE]

The rank is real, and its messages take time. Only the other ranks are missing. A round first runs the trainer with
messages that take no time (a free run). Then it runs the trainer for each number of ranks. FILE gets the profile of the
free run with the median step time. For each round and number of ranks, the script computes a ratio: the step time
divided by the step time of the free run of the same round. For each number of ranks, the measured step time in the
table is the step time of the profile, multiplied by the median ratio. The device computes with one thread
(LP_NUM_THREADS=1). The host exchanges on another core.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys


def step(a, ranks, alpha, beta):
    command = [f"{a.build}/tests/bench_emulate", a.net] + [str(v) for v in (ranks, a.batch, a.steps, a.bucket, alpha, beta)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "LP_NUM_THREADS": "1"}).stdout
    return json.loads(out)


def median_profile(runs):
    """Returns the profile of the run with the median step time, in the form that vkt-scaling reads."""
    run = sorted(runs, key=lambda r: r["forward_ms"] + r["backward_ms"] + r["update_ms"])[len(runs) // 2]
    return {k: run[k] for k in ("forward_ms", "backward_ms", "update_ms", "buckets")}


def predictions(a):
    """Returns for each number of ranks what vkt-scaling predicts: (ms of a step, exposed ms)."""
    command = [f"{a.build}/samples/vkt-scaling", a.profile, "--alpha", str(a.alpha), "--beta", str(a.beta), "--ranks", a.ranks]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {int(n): (float(ms), float(exposed)) for n, ms, exposed in re.findall(r"^ *(\d+) +([\d.]+) +([\d.]+) ", out, re.M)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build", help="the build folder, with bench_emulate (%(default)s)")
    p.add_argument("--net", default="resnet20", help="resnet20 or mnist (%(default)s)")
    p.add_argument("--ranks", default=",".join(str(2**i) for i in range(1, 13)), help="numbers of ranks (%(default)s)")
    p.add_argument("--batch", type=int, default=32, help="samples of a rank (%(default)s)")
    p.add_argument("--steps", type=int, default=14, help="steps of a run (%(default)s)")
    p.add_argument("--bucket", type=int, default=128, help="KiB of a bucket (%(default)s)")
    p.add_argument("--alpha", type=float, default=50, help="latency of a message in microseconds (%(default)s)")
    p.add_argument("--beta", type=float, default=0.125, help="GB/s of a message (%(default)s: Gigabit Ethernet)")
    p.add_argument("--rounds", type=int, default=5, help="measurements of each (%(default)s)")
    p.add_argument("--profile", default="profile.json", help="file for the profile (%(default)s)")
    a = p.parse_args()
    ranks = [int(n) for n in a.ranks.split(",")]
    free, emulated = [], {n: [] for n in ranks}
    for i in range(a.rounds):
        free.append(step(a, 2, 0, 0))
        for n in ranks:
            emulated[n].append(step(a, n, a.alpha, a.beta))
        print(f"round {i + 1} of {a.rounds}", file=sys.stderr)
    profile = median_profile(free)
    buckets = ",\n".join("    " + json.dumps(b) for b in profile["buckets"])
    numbers = "".join(f'  "{k}": {profile[k]},\n' for k in ("forward_ms", "backward_ms", "update_ms"))
    pathlib.Path(a.profile).write_text(f'{{\n{numbers}  "buckets": [\n{buckets}\n  ]\n}}\n')
    alone = sum(profile[k] for k in ("forward_ms", "backward_ms", "update_ms"))
    predicted = predictions(a)
    print(f"one rank: {alone:.1f} ms, {len(profile['buckets'])} buckets; alpha {a.alpha} us, beta {a.beta} GB/s")
    print("| ranks | step predicted, ms | measured, ms | exchange, ms | exposed predicted, ms | measured, ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n in ranks:
        ratio = statistics.median(r["ms_per_step"] / f["ms_per_step"] for r, f in zip(emulated[n], free))
        exchange, exposed = (statistics.median(r[k] for r in emulated[n]) for k in ("exchange_ms", "exposed_ms"))
        ms, waits = predicted[n]
        print(f"| {n} | {ms:.1f} | {ratio * alone:.1f} | {exchange:.1f} | {waits:.2f} | {exposed:.2f} |")


if __name__ == "__main__":
    main()
