#!/usr/bin/env python3
"""Records reuters.safetensors: 20 steps of the network of vkt-reuters, in float64 and in float32. Format: README.md.

A run has four epochs. An epoch has 4 batches of 32 rows and one batch of 20. A sequence has 300 ids below
1,000. The layers are PyTorch's. Nadam is Keras 3's formula (KerasLike in make_optim_golden.py).
Sequences and initial weights come from integer arithmetic (`texts`, `weights`), so the file does not store them. For a
large parameter, the file stores sums over the elements (`fold`).

    python3 tests/golden/make_reuters_golden.py    (a minute)
"""
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import safetensors_file
from make_mnist_golden import mix
from make_optim_golden import KerasLike

WORDS, WIDTH, LENGTH, CLASSES = 1000, 7, 300, 46
ROWS, BATCH, EPOCHS = 148, 32, 4
FOLD = 1021
# `texts` hashes the index of a text plus SALT. 0x30000000, 0x30001000, ... were tried. SALT is the first of these numbers for
# which the float32 runs stay near float64 (README.md).
SALT = 0x30001000
VARIANTS = (None, "no_mkldnn", "reversed_rows", "shuffled_rows", "as_products")


def texts():
    """Returns ids (ROWS, LENGTH) and labels (ROWS). A text is a start id and 20 to 419 words, truncated or padded at the front
    as by pad_sequences. About a quarter of the words depend on the class. Among the other words, low ids are frequent.
    Hashes are in wrapping u32."""
    u = np.uint32
    ids, labels = np.zeros((ROWS, LENGTH), np.int64), np.zeros(ROWS, np.int64)
    for i in range(ROWS):
        h = mix(np.array([i + SALT], u))[0]
        label, words = int(h >> u(4)) % CLASSES, 20 + int(h >> u(12)) % 400
        r = mix(np.arange(512 * i, 512 * i + words, dtype=u)).astype(np.int64)
        common = 3 + (r >> 2) % 997 * ((r >> 12) % 997) // 997
        text = np.concatenate([[1], np.where(r & 3 == 0, 3 + 21 * label + (r >> 2) % 21, common)])[-LENGTH:]
        ids[i, LENGTH - len(text):], labels[i] = text, label
    assert ids.max() < WORDS
    return ids, labels


def weights(number, shape, limit):
    """Returns numbers uniform in [-limit, limit), from the upper 24 bits of a hash. Only the product with limit is rounded."""
    h = mix(np.arange(np.prod(shape), dtype=np.uint32) + np.uint32((number + 16) << 24))
    return (((h >> np.uint32(8)).astype(np.float64) - 2**23) * (limit / 2**23)).astype(np.float32).reshape(shape)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.conv1, self.conv2 = nn.Conv1d(WIDTH, 64, 5), nn.Conv1d(64, 32, 3)
        self.fc = nn.Linear(2336, CLASSES)
        with torch.no_grad():
            for number, (name, p) in enumerate(self.named_parameters()):
                p.zero_()  # biases stay 0; weights are glorot_uniform, the embedding is in +-0.05
                if p.dim() > 1:
                    fan = (p.shape[0] + p.shape[1]) * p[0, 0].numel()
                    limit = 0.05 if name == "embedding.weight" else np.sqrt(6 / fan)
                    p.copy_(torch.from_numpy(weights(number, tuple(p.shape), limit)))

    def convolve(self, layer, x, variant):
        if variant != "as_products":
            return layer(x)
        windows = x.unfold(2, layer.kernel_size[0], 1)  # (batch, channels, positions, kernel size)
        return torch.einsum("bcqk,ock->boq", windows, layer.weight) + layer.bias[:, None]

    def forward(self, ids, variant):
        x = self.embedding(ids).transpose(1, 2)
        x = F.max_pool1d(F.relu(self.convolve(self.conv1, x, variant)), 2)
        x = F.max_pool1d(F.relu(self.convolve(self.conv2, x, variant)), 2)
        # The flattened x has the channel as its slow index. In Keras the channel is the fast index, so the columns of fc's
        # weights have another order.
        return self.fc(x.flatten(1))


def order(first, rows, variant):
    if variant == "reversed_rows":
        return torch.arange(rows).flip(0)
    if variant == "shuffled_rows":
        return torch.randperm(rows, generator=torch.Generator().manual_seed(first))
    return torch.arange(rows)


def fold(p):
    """Returns at most FOLD sums. Sum k is over the elements whose index is k modulo FOLD. Every element is in a sum, but the
    file stays small."""
    v = p.detach().double().numpy().reshape(-1)
    padded = np.zeros(-(-v.size // FOLD) * FOLD)
    padded[: v.size] = v
    return padded.reshape(-1, FOLD).sum(0)[: v.size]


def snapshot(model, part=lambda p: p):
    return {name: fold(part(p)) for name, p in model.named_parameters()}


def train(dtype, variant=None):
    """Returns the losses of all steps, and a dict (kind -> name -> array): for each parameter the gradient of the first step,
    and the value and the first moment after the last step. Each array has the sums that fold() makes."""
    ids, labels = (torch.from_numpy(x) for x in texts())
    model = Network().to(dtype)
    lr = float(np.float32(1e-3))  # rounded, because the engine's step state stores a float32
    groups = [dict(params=list(model.parameters()), lr=lr, weight_decay=0)]
    optimizer = KerasLike(groups, dict(kind="nadam", keras=True))
    losses, grad = [], None
    with torch.backends.mkldnn.flags(enabled=variant != "no_mkldnn"):
        for _ in range(EPOCHS):
            for first in range(0, ROWS, BATCH):
                rows = first + order(first, min(BATCH, ROWS - first), variant)
                model.zero_grad()
                loss = F.cross_entropy(model(ids[rows], variant), labels[rows])
                loss.backward()
                grad = grad or snapshot(model, lambda p: p.grad)
                optimizer.step()
                losses.append(loss.item())
    return np.array(losses), {"grad": grad, "final": snapshot(model),
                              "moment": snapshot(model, lambda p: optimizer.state[p]["m"])}


def main():
    torch.set_num_threads(2)
    losses, params = train(torch.float64)
    runs = [train(torch.float32, v) for v in VARIANTS]
    t = {"loss64": losses, "loss_dev": np.stack([np.abs(run[0] - losses) for run in runs])}
    for kind, of in params.items():
        t.update({"%s64/%s" % (kind, name): value for name, value in of.items()})
        t[kind + "_dev"] = np.array([[np.abs(run[1][kind][name] - of[name]).max() for name in of] for run in runs])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reuters.safetensors")
    metadata = {"runs": " ".join(v or "default" for v in VARIANTS), "torch": torch.__version__, "numpy": np.__version__}
    print(path, safetensors_file.write(path, t, metadata), "bytes")
    np.set_printoptions(precision=2, linewidth=130)
    for name in sorted(t):
        if "/" not in name:
            print(name, t[name], sep="\n")
    for kind, of in params.items():
        print(kind, {name: "%.2g" % np.abs(value).max() for name, value in of.items()})


if __name__ == "__main__":
    main()
