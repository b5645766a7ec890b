#!/usr/bin/env python3
"""Records optim.safetensors: 12 updates of 37 parameters by each optimizer, in float64. Format: README.md.

SGD and Adam are torch.optim run on float64 tensors; the keras form of Adam is its formula (Keras documentation of Adam:
eps is added to the unscaled sqrt(v)). Inputs, and the numbers that a vkt_optimizer holds as floats, are float32 values, so
that a float32 engine starts from the same ones.
"""
import json
import os

import numpy as np
import torch

import safetensors_file

STEPS, N = 12, 37
CASES = {
    "sgd": dict(kind="sgd", lr=0.1),
    "sgd_decay": dict(kind="sgd", lr=0.1, weight_decay=0.01),
    "sgd_momentum": dict(kind="sgd", lr=0.05, momentum=0.9),
    "sgd_dampening": dict(kind="sgd", lr=0.05, momentum=0.9, dampening=0.1),
    "sgd_nesterov": dict(kind="sgd", lr=0.05, momentum=0.8, nesterov=True),
    "sgd_nesterov_decay": dict(kind="sgd", lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.02),
    "sgd_all_schedule": dict(kind="sgd", lr=0.05, momentum=0.9, dampening=0.1, weight_decay=0.01, schedule=True),
    "adam": dict(kind="adam", lr=0.01),
    "adam_decay": dict(kind="adam", lr=0.01, weight_decay=0.1),
    "adam_betas_eps": dict(kind="adam", lr=0.01, beta1=0.8, beta2=0.95, eps=1e-3),
    "adam_schedule": dict(kind="adam", lr=0.01, schedule=True),
    "adam_keras": dict(kind="adam", lr=0.01, keras=True, eps=1e-7),
    "adam_keras_betas_eps": dict(kind="adam", lr=0.01, keras=True, beta1=0.8, beta2=0.95, eps=1e-3),
    "adam_keras_schedule": dict(kind="adam", lr=0.01, keras=True, eps=1e-7, schedule=True),
}


for case in CASES.values():
    for key in ("momentum", "dampening", "weight_decay", "eps"):
        if key in case:
            case[key] = float(np.float32(case[key]))


def gradients(rng):
    """(STEPS, N), from 1e-9 (below eps) to 10; element 0 is always 0, element 1 from step 6 on."""
    g = rng.standard_normal((STEPS, N)) * 10.0 ** np.linspace(-9, 1, N)
    g[:, 0] = 0
    g[6:, 1] = 0
    return g.astype(np.float32)


def learning_rates(case):
    """Constant, or tenfold lower from step 5 and tripled from step 9, as the step state of a float32 engine holds them."""
    lr = np.full(STEPS, case["lr"])
    if case.get("schedule"):
        lr[4:] /= 10
        lr[8:] *= 3
    return lr.astype(np.float32)


def torch_run(case, p0, grads, lrs):
    p = torch.nn.Parameter(torch.from_numpy(p0.copy()))
    if case["kind"] == "sgd":
        keys = ("momentum", "dampening", "nesterov", "weight_decay")
        opt = torch.optim.SGD([p], lr=case["lr"], **{k: case[k] for k in keys if k in case})
    else:
        opt = torch.optim.Adam([p], lr=case["lr"], betas=(case.get("beta1", 0.9), case.get("beta2", 0.999)),
                               eps=case.get("eps", 1e-8), weight_decay=case.get("weight_decay", 0))
    out = []
    for g, lr in zip(grads, lrs):
        opt.param_groups[0]["lr"] = float(lr)
        p.grad = torch.from_numpy(g.copy())
        opt.step()
        out.append(p.detach().numpy().copy())
    return np.stack(out)


def keras_run(case, p0, grads, lrs):
    b1, b2, p = case.get("beta1", 0.9), case.get("beta2", 0.999), p0.copy()
    m, v, out = np.zeros_like(p), np.zeros_like(p), []
    for t, (g, lr) in enumerate(zip(grads, lrs), start=1):
        m += (1 - b1) * (g - m)
        v += (1 - b2) * (g * g - v)
        p = p - lr * np.sqrt(1 - b2**t) / (1 - b1**t) * m / (np.sqrt(v) + case["eps"])
        out.append(p)
    return np.stack(out)


def main():
    rng = np.random.Generator(np.random.PCG64(37))
    p0, grads = rng.standard_normal(N).astype(np.float32), gradients(rng)
    tensors, metadata = {"p0": p0, "gradients": grads}, {"cases": " ".join(CASES)}
    for name, case in CASES.items():
        lrs = learning_rates(case)
        tensors[name + "/lr"] = lrs
        run = keras_run if case.get("keras") else torch_run
        tensors[name + "/p"] = run(case, *(x.astype(np.float64) for x in (p0, grads, lrs)))
        metadata[name] = json.dumps({k: v for k, v in case.items() if k not in ("lr", "schedule")})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optim.safetensors")
    print(path, safetensors_file.write(path, tensors, metadata), "bytes,", len(CASES), "cases")


if __name__ == "__main__":
    main()
