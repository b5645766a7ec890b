#!/usr/bin/env python3
"""Records ddp.safetensors: two processes train a small CNN with PyTorch's DistributedDataParallel over Gloo, in float64 and in
float32. Format: README.md.

    python3 tests/golden/make_ddp_golden.py             (a minute)
    python3 tests/golden/make_ddp_golden.py search N    (searches the first N seeds for CASES; README.md has the reason)

Initial weights and images come from integer arithmetic (`draw`, and `samples` of make_resnet_golden.py), so the file does not
store them.
"""
import math
import os
import sys
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import safetensors_file
from make_mnist_golden import VARIANTS, deviation, mix
from make_resnet_golden import batch

RANKS, OWN, ROWS, STEPS = 2, 8, 80, 40  # eight epochs of five steps; a rank has OWN rows of each step
CASES = {  # batch norm, optimizer, seed
    "sgd": (True, lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4), 65),
    "adam": (False, lambda p: torch.optim.Adam(p, lr=0.003), 24),
}


class Network(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=not norm)
        self.bn1 = nn.BatchNorm2d(8) if norm else nn.Identity()
        self.conv2 = nn.Conv2d(8, 16, 3, 1, 1, bias=not norm)
        self.bn2 = nn.BatchNorm2d(16) if norm else nn.Identity()
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = F.avg_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))


def draw(model, seed):
    """Sets the weights of convolutions and of the last layer by a hash of the seed, the tensor's index and the element's index.
    The biases of these layers become 0. Norms keep their initial values."""
    for k, (name, p) in enumerate(model.named_parameters()):
        if "bn" in name:
            continue
        if p.dim() == 1:
            p.data.zero_()
            continue
        bound = math.sqrt(6 / p[0].numel())
        h = mix(np.uint32(seed << 24 | k << 16) + np.arange(p.numel(), dtype=np.uint32)) >> np.uint32(8)
        w = (h.astype(np.float32) - np.float32(1 << 23)) * np.float32(bound / (1 << 23))
        p.data.copy_(torch.from_numpy(w).view(p.shape))


def first_row(step, rank):
    return step * RANKS * OWN % ROWS + rank * OWN


def mean_over_ranks(x):
    x = x.detach().double().clone()
    dist.all_reduce(x)
    return x / RANKS


def train(case, dtype, variant, rank):
    """Returns (losses, final parameters and statistics), averaged over the ranks. All ranks have the same parameters."""
    norm, make, seed = CASES[case]
    torch.manual_seed(1)
    model = Network(norm)
    draw(model, seed)
    # Each rank keeps its own running statistics. (By default, the other ranks get the statistics of rank 0 before each
    # step. In training, no loss and no weight depends on running statistics.)
    ddp = DistributedDataParallel(model.to(dtype), broadcast_buffers=False)
    optimizer = make(ddp.parameters())
    losses = []
    with torch.backends.mkldnn.flags(enabled=variant != "no_mkldnn"):
        for s in range(STEPS):
            x, t = batch(first_row(s, rank), OWN, dtype, variant)
            optimizer.zero_grad()
            loss = F.cross_entropy(ddp(x), t)
            loss.backward()
            optimizer.step()
            losses.append(mean_over_ranks(loss).item())
    state = {}
    for name, p in model.state_dict().items():
        if "tracked" in name:
            continue
        mean = mean_over_ranks(p)
        assert "running" in name or torch.equal(mean, p.double()), name
        state[name] = mean.numpy().reshape(-1).copy()
    return np.array(losses), state


def record(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", "file://%s/meet" % folder, rank=rank, world_size=RANKS)
    t, metadata = {}, {"runs": " ".join(("default",) + VARIANTS), "torch": torch.__version__, "numpy": np.__version__}
    np.set_printoptions(precision=2, linewidth=120)
    for case in CASES:
        loss64, final64 = train(case, torch.float64, None, rank)
        runs = [train(case, torch.float32, v, rank) for v in (None,) + VARIANTS]
        t.update({case + "/final64/" + name: value for name, value in final64.items()})
        t[case + "/loss64"] = loss64
        t[case + "/loss_dev"] = np.stack([np.abs(loss - loss64) for loss, _ in runs])
        t[case + "/final_dev"] = np.stack([deviation(final, final64) for _, final in runs])
        metadata[case] = " ".join(final64)
        if rank == 0:
            print(case, "loss", loss64, "\nloss deviations", t[case + "/loss_dev"].max(1), "\nfinal",
                  t[case + "/final_dev"].max(1))
    if rank == 0:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ddp.safetensors")
        print(path, safetensors_file.write(path, t, metadata), "bytes")
    dist.destroy_process_group()


def margin(case, seed):
    """Makes the steps in one process, in float64. Returns the smallest magnitude of an input of a ReLU, and the smallest
    magnitude of a gradient of the first step. Both should be large. If an input of a ReLU is near 0, rounding decides whether
    a gradient passes. If a gradient of the first step is near 0, rounding decides its sign, and so the direction in which Adam
    moves the parameter: in its first step, Adam divides each gradient by the gradient's magnitude."""
    norm, make, _ = CASES[case]
    relu, least = F.relu, [math.inf]

    def watched(x):
        least[0] = min(least[0], x.abs().min().item())
        return relu(x)

    F.relu = watched
    model = Network(norm)
    draw(model, seed)
    model.double()
    optimizer, smallest = make(model.parameters()), None
    for s in range(STEPS):
        optimizer.zero_grad()
        for rank in range(RANKS):
            x, t = batch(first_row(s, rank), OWN, torch.float64, None)
            (F.cross_entropy(model(x), t) / RANKS).backward()
        if smallest is None:
            smallest = min(p.grad.abs().min().item() for p in model.parameters())
        optimizer.step()
    F.relu = relu
    return least[0], smallest


def main():
    if sys.argv[1:2] == ["search"]:
        for case in CASES:
            print(case, sorted(((margin(case, seed), seed) for seed in range(int(sys.argv[2]))), reverse=True)[:8])
        return
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(record, (folder,), RANKS)


if __name__ == "__main__":
    main()
