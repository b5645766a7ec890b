"""Makes metrics.safetensors: scikit-learn's scores of predictions, PyTorch's topk, and trainings with class weights, with label
smoothing and with both. Needs python3-sklearn 1.2 and python3-torch. See README.md."""
import os

import numpy as np
import torch
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

import safetensors_file

HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(5)
out, meta = {}, {}

# There are seven classes. Class 4 is never predicted. Class 5 has no samples. Class 6 has no samples and is never predicted.
K, N = 7, 230
labels = rng.choice(5, N, p=[0.4, 0.3, 0.15, 0.1, 0.05])
guesses = np.where(rng.random(N) < 0.6, labels, rng.choice([0, 1, 2, 3, 5], N))
guesses = np.where(guesses == 4, 0, guesses)
classes = list(range(K))
out["labels"] = labels.astype(np.float32)
out["predicted"] = guesses.astype(np.float32)
out["confusion"] = confusion_matrix(labels, guesses, labels=classes).astype(np.float64)
out["accuracy"] = np.array([accuracy_score(labels, guesses)])
for zero in (0, 1):
    each = precision_recall_fscore_support(labels, guesses, labels=classes, zero_division=zero)
    out[f"each{zero}"] = np.stack(each, 1).astype(np.float64)  # (K,4): precision, recall, F1, number of samples
    for mean in ("macro", "weighted"):
        m = precision_recall_fscore_support(labels, guesses, labels=classes, average=mean, zero_division=zero)
        out[f"{mean}{zero}"] = np.array(m[:3], dtype=np.float64)

# There are no ties: all scores of a sample differ.
scores = rng.permuted(np.tile(np.arange(K, dtype=np.float32), (N, 1)), axis=1) - np.float32(2.5)
out["scores"] = scores
out["top3"] = torch.topk(torch.tensor(scores), 3).indices.numpy().astype(np.float32)
for k in (1, 3):
    top = torch.topk(torch.tensor(scores), k).indices.numpy()
    out[f"top{k}_accuracy"] = np.array([(top == labels[:, None]).any(1).mean()])

# SGD trains a linear layer: 20 samples of 5 numbers, 4 classes, batches of 8, 8 and 4 samples in order, 3 epochs.
torch.set_default_dtype(torch.float64)
x = torch.tensor(rng.standard_normal((20, 5)).astype(np.float32)).double()
t = torch.tensor(rng.integers(0, 4, 20))
out["train_x"], out["train_t"] = x.numpy().astype(np.float32), t.numpy().astype(np.float32)
w0 = rng.standard_normal((4, 5)).astype(np.float32) * np.float32(0.5)
b0 = rng.standard_normal(4).astype(np.float32) * np.float32(0.5)
weights = np.array([0.5, 2, 0, 1.25], dtype=np.float32)
out["w0"], out["b0"], out["class_weights"] = w0, b0, weights
for name, cw, smoothing in (("weighted", weights, 0.0), ("smoothed", None, 0.1), ("both", weights, 0.2)):
    w = torch.tensor(w0.astype(np.float64), requires_grad=True)
    b = torch.tensor(b0.astype(np.float64), requires_grad=True)
    # The library stores label smoothing as a float32, so PyTorch gets the rounded number.
    loss = torch.nn.CrossEntropyLoss(weight=None if cw is None else torch.tensor(cw.astype(np.float64)),
                                     label_smoothing=float(np.float32(smoothing)))
    losses = []
    for epoch in range(3):
        total = 0
        for first in (0, 8, 16):
            xs, ts = x[first:first + 8], t[first:first + 8]
            value = loss(xs @ w.T + b, ts)
            gw, gb = torch.autograd.grad(value, (w, b))
            with torch.no_grad():
                w -= 0.5 * gw
                b -= 0.5 * gb
            total += value.item() * len(ts)
        losses.append(total / 20)
    out[f"{name}_w"], out[f"{name}_b"] = w.detach().numpy(), b.detach().numpy()
    out[f"{name}_loss"] = np.array(losses)
    plain = torch.nn.functional.cross_entropy(x @ w.T + b, t)
    out[f"{name}_val_loss"] = np.array([plain.item()])
safetensors_file.write(os.path.join(HERE, "metrics.safetensors"), out, meta)
