#!/usr/bin/env python3
"""Times the reference networks and matrix products in PyTorch and in vktrain, alternately on one machine. Prints a table.

  python3 tests/bench/compare_torch.py [--rounds 3] [--vkt build/samples/vkt-bench] [--filter mnist] [--device cuda]

A round measures each row of the table: PyTorch with its defaults, PyTorch with its best settings, then vkt-bench. Both sides
compute the same network or product on generated data of the same shapes. Each side has its own weights. The script compares
times, not results (tests/golden and the op tests compare results). PyTorch gets its best case: its data are in memory, as
normalised float32 numbers or as ids, and its loss is never read. The classifiers of vkt-bench gather each batch from a table on
the device, and report loss and accuracy, as in training.

Best settings of PyTorch: as many threads as cores, pinned to them; channels-last memory format for 2-D convolutions; foreach
optimizers; zero_grad(set_to_none=True); products into a tensor that is allocated once. A setting that this version of
PyTorch does not have is left out. If vkt-bench is missing, only PyTorch is measured. Use an idle machine, because other
work makes PyTorch's threads wait for each other.
"""
import argparse
import datetime
import inspect
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn as nn

WARMUP = 3


# ---- the timed work. The functions in the table CASES (below) prepare it: each returns a function, and one call of the
# returned function computes one training step or one matrix product.


def optimizer_of(kind, parameters, lr, best, **options):
    """Returns an optimizer. With `best`, the optimizer uses foreach if this version of PyTorch has foreach."""
    known = inspect.signature(kind).parameters
    if best and "foreach" in known:
        options["foreach"] = True
    return kind(parameters, lr=lr, **options)


def train_step(model, loss_of, optimizer, best, x, t):
    set_to_none = {"set_to_none": True} if best else {}

    def step():
        optimizer.zero_grad(**set_to_none)
        loss_of(model(x), t).backward()
        optimizer.step()

    return step


def classifier(model, device, best, batch, sample, classes, kind, lr, **options):
    layout = torch.channels_last if best else torch.contiguous_format
    model = model.to(device=device, memory_format=layout).train()
    x = torch.randn(batch, *sample, device=device).contiguous(memory_format=layout)
    t = torch.randint(classes, (batch,), device=device)
    return train_step(model, nn.CrossEntropyLoss(), optimizer_of(kind, model.parameters(), lr, best, **options), best, x, t)


def regression(model, device, best, batch, inputs, targets, lr):
    model = model.to(device).train()
    x = torch.randn(batch, inputs, device=device)
    t = torch.randn(batch, targets, device=device)
    return train_step(model, nn.MSELoss(), optimizer_of(torch.optim.Adam, model.parameters(), lr, best), best, x, t)


def linreg(device, best):
    return regression(nn.Linear(2, 1), device, best, 1000000, 2, 1, 0.1)


def mnist(device, best):
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.MaxPool2d(2), nn.Dropout2d(0.1),
                          nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return classifier(model, device, best, 128, (1, 28, 28), 10, torch.optim.Adam, 0.01)


def image(device, best):
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(2304, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 101))
    return classifier(model, device, best, 32, (3, 32, 32), 101, torch.optim.SGD, 0.001, momentum=0.9, dampening=0.1)


class Nadam:
    """Keras 3's Nadam, with the interface of torch.optim. (PyTorch's NAdam has another schedule of momentum.) With
    `foreach`, each torch call updates whole lists of tensors, as in torch.optim."""

    def __init__(self, parameters, lr, foreach=False):
        self.p, self.lr, self.foreach, self.t, self.product = list(parameters), lr, foreach, 0, 1.0
        self.m, self.v = ([torch.zeros_like(p) for p in self.p] for _ in range(2))

    def zero_grad(self, set_to_none=False):
        for p in self.p:
            p.grad = None if set_to_none or p.grad is None else p.grad.zero_()

    @torch.no_grad()
    def step(self):
        self.t += 1
        u, after = (0.9 * (1 - 0.5 * 0.96**t) for t in (self.t, self.t + 1))
        self.product *= u
        of_m, of_g = self.lr * after / (1 - self.product * after), self.lr * (1 - u) / (1 - self.product)
        root = (1 - 0.999**self.t) ** 0.5
        g = [p.grad for p in self.p]
        if self.foreach:
            torch._foreach_mul_(self.m, 0.9)
            torch._foreach_add_(self.m, g, alpha=0.1)
            torch._foreach_mul_(self.v, 0.999)
            torch._foreach_addcmul_(self.v, g, g, 0.001)
            down = torch._foreach_sqrt(self.v)
            torch._foreach_div_(down, root)
            torch._foreach_add_(down, 1e-7)
            torch._foreach_addcdiv_(self.p, self.m, down, -of_m)
            torch._foreach_addcdiv_(self.p, g, down, -of_g)
            return
        for p, d, m, v in zip(self.p, g, self.m, self.v):
            m.mul_(0.9).add_(d, alpha=0.1)
            v.mul_(0.999).addcmul_(d, d, value=0.001)
            down = v.sqrt().div_(root).add_(1e-7)
            p.addcdiv_(m, down, value=-of_m).addcdiv_(d, down, value=-of_g)


class Channels(nn.Module):
    def forward(self, x):  # (B, L, D) -> (B, D, L)
        return x.transpose(1, 2)


def reuters(device, best):
    model = nn.Sequential(nn.Embedding(30982, 7), Channels(), nn.Conv1d(7, 64, 5), nn.ReLU(), nn.MaxPool1d(2),
                          nn.Conv1d(64, 32, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(2336, 46)).to(device).train()
    x, t = torch.randint(30982, (32, 300), device=device), torch.randint(46, (32,), device=device)
    return train_step(model, nn.CrossEntropyLoss(), Nadam(model.parameters(), 0.001, foreach=best), best, x, t)


def mlp(batch):
    def make(device, best):
        model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
        return regression(model, device, best, batch, 32, 3, 0.001)
    return make


class Block(nn.Module):
    """A block of GPT-2. x is (B, T, D)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.ln_1, self.ln_2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attention(self, x):
        b, t, d = x.shape
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.c_attn(x).split(d, 2))
        if hasattr(nn.functional, "scaled_dot_product_attention"):
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
            y = torch.softmax((q @ k.transpose(2, 3) * q.shape[-1] ** -0.5).masked_fill(hidden, -float("inf")), -1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(b, t, d))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


def transformer(device, best):
    model = Block(768, 12).to(device).train()
    x, t = torch.rand(4, 256, 768, device=device) * 2 - 1, torch.rand(4, 256, 768, device=device) * 2 - 1
    return train_step(model, nn.MSELoss(), optimizer_of(torch.optim.AdamW, model.parameters(), 0.001, best), best, x, t)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                                  nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                                  nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity() if inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu_(self.body(x) + self.shortcut(x))


def resnet50(device, best):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for k in range(blocks):
            layers.append(Bottleneck(inputs, width, 2 if stage and k == 0 else 1))
            inputs = 4 * width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))
    return classifier(model, device, best, 8, (3, 224, 224), 1000, torch.optim.SGD, 0.001, momentum=0.9)


def gemm(n):
    def make(device, best):
        a, b = torch.randn(n, n, device=device), torch.randn(n, n, device=device)
        return (lambda out=torch.empty(n, n, device=device): torch.matmul(a, b, out=out)) if best else (lambda: torch.matmul(a, b))
    return make


# An entry: the name in the table, the function that prepares PyTorch's work (see "the timed work" above), the name of
# vkt-bench's result, and the value of vkt-bench's option --sizes.
CASES = [
    ("linear regression, 1e6 x 2, Adam", linreg, "step linreg-1e6 train", "net"),
    ("MNIST CNN, batch 128, Adam", mnist, "step mnist-b128 train", "net"),
    ("image CNN, batch 32, SGD", image, "step image-b32 train", "net"),
    ("Reuters CNN, batch 32, Keras' Nadam", reuters, "step reuters-b32 train", "net"),
    ("MLP 32-64-64-3, batch 16384, Adam", mlp(16384), "step mlp-b16384 train", "net"),
    ("MLP 32-64-64-3, batch 65536, Adam", mlp(65536), "step mlp-b65536 train", "net"),
    ("transformer block, 768 features, 12 heads, 4 x 256, AdamW", transformer, "step transformer-b4 train", "large"),
    ("ResNet-50, 224 x 224, batch 8, SGD", resnet50, "step resnet50-b8 train", "large"),
    ("GEMM 512", gemm(512), "matmul forward (512,512) (512,512)", "large"),
    ("GEMM 1024", gemm(1024), "matmul forward (1024,1024) (1024,1024)", "large"),
    ("GEMM 2048", gemm(2048), "matmul forward (2048,2048) (2048,2048)", "large"),
]


# ---- timing


def set_threads(best, threads):
    """Sets the number of threads. With the best settings, n threads run on n fixed cores. With the defaults, the system
    chooses the cores."""
    if best:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    torch.set_num_threads(threads)


def torch_ms(make, device, best, seconds):
    """Returns the ms of each call, without the first WARMUP calls. Repeats the call for about `seconds`, at least
    WARMUP + 5 times."""
    torch.manual_seed(1)
    step = make(device, best)
    sync = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    ms, end = [], time.perf_counter() + seconds
    for k in range(1000000):
        start = time.perf_counter()
        step()
        sync()
        if k >= WARMUP:
            ms.append((time.perf_counter() - start) * 1e3)
        if len(ms) >= 5 and time.perf_counter() > end:
            return ms


def vkt_result(command, name, sizes, seconds):
    """Runs vkt-bench for one experiment, with the variant that the engine chooses. Returns its JSON document and the result."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vkt.json")
        pattern = "^%s" % re.sub(r"([()])", r"\\\1", name)  # no $ at its end: attributes may follow the shapes
        run = command + ["--sizes", sizes, "--filter", pattern, "--preferred", "--min-time", str(int(seconds * 1e3)),
                         "--json", path]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(path) as f:
            document = json.load(f)
    return document, next(r for r in document["results"] if "trans_" not in r["shape"])


def vkt_ms(result):
    """Returns the median wall time in ms. A product is measured from its submission to its end, as for PyTorch. Training
    steps run in a loop without waits. The time of the loop is divided by the number of steps. (PyTorch is synchronized
    after each step.)"""
    return result["wall_ns"]["median"] / 1e6


# ---- the table


def text(ms):
    return "-" if ms is None else "%.3g" % ms if ms < 100 else "%.0f" % ms


def print_table(rows):
    print("| median ms | PyTorch, defaults | PyTorch, best settings | vktrain | vktrain / defaults | vktrain / best |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, plain, best, ours in rows:
        med = [statistics.median(v) if v else None for v in (plain, best, ours)]
        ratio = ["%.2f" % (med[2] / m) if med[2] and m else "-" for m in med[:2]]
        print("| %s | %s | %s | %s | %s | %s |" % (name, text(med[0]), text(med[1]), text(med[2]), *ratio))


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--vkt", default="build/samples/vkt-bench", help="our program (%(default)s)")
    p.add_argument("--vkt-args", default="", help="more options for it, e.g. '--device 1'")
    p.add_argument("--rounds", type=int, default=3, help="measurements of each (%(default)s)")
    p.add_argument("--seconds", type=float, default=1.0, help="per measurement (%(default)s)")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="PyTorch's threads (%(default)s)")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="PyTorch's device (%(default)s)")
    p.add_argument("--filter", default="", help="regular expression: only rows whose name matches")
    p.add_argument("--json", help="write all samples to this file")
    a = p.parse_args()
    if a.rounds < 1 or a.seconds <= 0:
        p.error("want --rounds >= 1 and --seconds > 0")
    return a


def measure(a, command, rows):
    """Runs one round. Returns vkt-bench's last document."""
    document, cores = None, os.sched_getaffinity(0)
    for name, make, ours, sizes in CASES:
        if not re.search(a.filter, name):
            continue
        row = rows.setdefault(name, ([], [], []))
        for best in (False, True):
            set_threads(best, a.threads)
            row[best].append(statistics.median(torch_ms(make, a.device, best, a.seconds)))
            os.sched_setaffinity(0, cores)
        if command:
            document, result = vkt_result(command, ours, sizes, a.seconds)
            row[2].append(vkt_ms(result))
        print("%s: PyTorch %s, best %s, vktrain %s" % (name, *(text(v[-1] if v else None) for v in row)), file=sys.stderr)
    return document


def main():
    a = arguments()
    command = [a.vkt] + shlex.split(a.vkt_args)
    if not os.access(a.vkt, os.X_OK):
        print("no program %s: measuring PyTorch alone" % a.vkt, file=sys.stderr)
        command = None
    rows, document = {}, None
    for k in range(a.rounds):
        print("round %d of %d" % (k + 1, a.rounds), file=sys.stderr)
        document = measure(a, command, rows)
    print("%s: %d rounds, medians of medians.  " % (datetime.date.today(), a.rounds))
    print("PyTorch %s on %s, %d threads, %s.  " % (torch.__version__,
          torch.cuda.get_device_name() if a.device == "cuda" else "the CPU", a.threads, platform.machine()))
    if document:
        print("vktrain on %s, %s; ceilings %.0f GFLOP/s, %.1f GB/s.  " % (document["device"]["name"], document["device"]["driver"],
              document["roofline"]["gflops"], document["roofline"]["gbps"]))
    print("Command: `%s`\n" % shlex.join(["python3"] + sys.argv))
    print_table([(name, *row) for name, row in rows.items()])
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"ms": {name: dict(zip(("torch", "torch_best", "vktrain"), row)) for name, row in rows.items()}}, f, indent=1)


if __name__ == "__main__":
    main()
