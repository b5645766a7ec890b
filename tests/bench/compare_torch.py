#!/usr/bin/env python3
"""Times the MNIST network in PyTorch on the CPU and in vkt-mnist, in turns on one machine, and prints a table.

  python3 tests/bench/compare_torch.py [--rounds 3] [--vkt build/samples/vkt-mnist] [--data DIR] [--channels-last]

A round is one epoch of PyTorch, then `vkt-mnist --epochs 1`. Both train on the same IDX files at batch 128 with Adam 0.01,
dropout on, from their own random weights: this compares time, not numbers (tests/golden does). PyTorch is given its best
case: the images lie normalised in memory, the loss is never read, and its epoch is the training steps alone. Ours is what
vkt-mnist reports. Where vkt-mnist is missing, PyTorch is measured alone.
"""
import argparse
import datetime
import gzip
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn

BATCH, LR, WARMUP_STEPS = 128, 0.01, 5


def open_idx(folder, name):
    for opener, path in ((open, name), (gzip.open, name + ".gz")):
        path = os.path.join(folder, path)
        if os.path.exists(path):
            return opener(path, "rb")
    raise FileNotFoundError(os.path.join(folder, name) + "[.gz]")


def read_idx(folder, name):
    with open_idx(folder, name) as f:
        data = f.read()
    rank = data[3]
    shape = np.frombuffer(data, ">u4", rank, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load_train(given):
    """Returns (folder, x (N,1,28,28) f32 normalised, t (N) i64)."""
    root = os.environ.get("VKT_DATA")
    folders = [given] if given else ([os.path.join(root, "mnist")] if root else []) + ["data/mnist", "../shared/data/mnist"]
    for folder in folders:
        try:
            pixels = torch.tensor(read_idx(folder, "train-images-idx3-ubyte"))
            labels = torch.tensor(read_idx(folder, "train-labels-idx1-ubyte"), dtype=torch.int64)
            return folder, ((pixels.float() / 255 - 0.1307) / 0.3081).unsqueeze(1), labels
        except FileNotFoundError:
            continue
    sys.exit("MNIST's IDX files were found in none of: " + ", ".join(folders))


def network():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.MaxPool2d(2), nn.Dropout2d(0.1),
                         nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def torch_epoch(x, t, channels_last, max_steps):
    """One epoch from new weights. Returns (ms of each step after the warm-up, seconds per epoch)."""
    layout = torch.channels_last if channels_last else torch.contiguous_format
    model = network().to(memory_format=layout).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    loss_of = nn.CrossEntropyLoss()
    ms, order = [], torch.randperm(len(x)).split(BATCH)
    for rows in order[:max_steps]:
        start = time.perf_counter()
        optimizer.zero_grad()
        loss_of(model(x[rows].contiguous(memory_format=layout)), t[rows]).backward()
        optimizer.step()
        ms.append((time.perf_counter() - start) * 1e3)
    seconds = sum(ms) / 1e3 * len(order) / len(ms)
    return ms[WARMUP_STEPS:], seconds


def vkt_epoch(command):
    """Runs vkt-mnist; returns its JSON object."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vkt.json")
        subprocess.run(command + ["--json", path], check=True, stdout=subprocess.DEVNULL)
        with open(path) as f:
            return json.load(f)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", help="folder of the IDX files; else $VKT_DATA/mnist, data/mnist, ../shared/data/mnist")
    p.add_argument("--vkt", default="build/samples/vkt-mnist", help="our program (%(default)s)")
    p.add_argument("--vkt-args", default="", help="more options for it, e.g. '--device 1'")
    p.add_argument("--rounds", type=int, default=3, help="epochs of each (%(default)s)")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="PyTorch's threads (%(default)s)")
    p.add_argument("--steps", type=int, default=None, help="cut PyTorch's epochs after so many steps, and scale the seconds")
    p.add_argument("--channels-last", action="store_true", help="PyTorch in its channels-last memory format")
    a = p.parse_args()
    if a.rounds < 1 or (a.steps is not None and a.steps <= WARMUP_STEPS):
        p.error("want --rounds >= 1 and --steps > %d" % WARMUP_STEPS)
    return a


def print_table(torch_ms, torch_s, vkt):
    med = statistics.median
    ours = [med(v["ms_per_step"] for v in vkt), med(e["seconds"] for v in vkt for e in v["epochs"])] if vkt else [None] * 2
    print("| median | PyTorch | vktrain | vktrain / PyTorch |\n| --- | --- | --- | --- |")
    for name, theirs, mine in zip(("ms per step", "s per epoch"), (med(torch_ms), med(torch_s)), ours):
        print("| %s | %.2f | " % (name, theirs) + ("%.2f | %.2f |" % (mine, mine / theirs) if vkt else "- | - |"))
    if vkt:
        print("| ms to the first step | - | %.0f | - |" % med(v["first_step_ms"] for v in vkt))
        print("| peak device MiB | - | %.1f | - |" % (max(v["peak_device_bytes"] for v in vkt) / 2**20))


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    folder, x, t = load_train(a.data)
    command = [a.vkt, "--epochs", "1", "--quiet", "--data", folder] + shlex.split(a.vkt_args)
    have_vkt = os.access(a.vkt, os.X_OK)
    if not have_vkt:
        print("no program %s: measuring PyTorch alone" % a.vkt, file=sys.stderr)

    torch_ms, torch_s, vkt = [], [], []
    for k in range(a.rounds):
        ms, seconds = torch_epoch(x, t, a.channels_last, a.steps)
        torch_ms += ms
        torch_s.append(seconds)
        if have_vkt:
            vkt.append(vkt_epoch(command))
        ours = ", vktrain %.2f" % vkt[-1]["ms_per_step"] if vkt else ""
        print("round %d: PyTorch %.2f ms per step%s" % (k + 1, statistics.median(ms), ours), file=sys.stderr)

    print("%s: MNIST network, %d rows, batch %d, %d rounds of one epoch in turns.  "
          % (datetime.date.today(), len(x), BATCH, a.rounds))
    print("PyTorch %s, %d threads%s%s, %s.  " % (torch.__version__, a.threads, ", channels last" if a.channels_last else "",
          ", %d steps a round" % a.steps if a.steps else "", platform.machine()))
    if vkt:
        print("vktrain on %s, %s, %d parameters: `%s`.  " % (vkt[0]["device"], vkt[0]["driver"], vkt[0]["parameters"],
              shlex.join(command)))
    print("Command: `%s`\n" % shlex.join(["python3"] + sys.argv))
    print_table(torch_ms, torch_s, vkt)


if __name__ == "__main__":
    main()
