#!/usr/bin/env python3
"""Records optim.safetensors: three parameters (1, 5 and 31 elements) after each of 20 runs, for each optimizer, in float64.
With micro-batches, several runs make one step; without them, each run makes one. Format: README.md.

For PyTorch's optimizers, torch.optim and torch.nn.utils run on float64 tensors. NAdam is PyTorch's documented formula,
because NAdam of torch 1.13 has an error: the product of the momenta u_1 to u_(t + 1) has the factor u_t twice. Keras'
optimizers follow Keras' documentation and source. Inputs, and the options of CASES that a vkt_optimizer stores as floats, are
float32 values, so that a float32 engine starts from the same numbers.
"""
import json
import os

import numpy as np
import torch

import safetensors_file

RUNS, SIZES = 20, (1, 5, 31)
N = sum(SIZES)
DECAY_LAST = [[1, 0], [1, 0], [1, 0.1]]  # a pair for each parameter: factor of the learning rate (-1: frozen), weight decay
MIXED = [[0.5, 0.3], None, [2, 0.05]]    # None instead of a pair: the parameter has the optimizer's settings
FROZEN = [None, [-1, 0], None]
CASES = {
    "sgd": dict(kind="sgd", lr=0.1),
    "sgd_decay": dict(kind="sgd", lr=0.1, weight_decay=0.01),
    "sgd_momentum": dict(kind="sgd", lr=0.05, momentum=0.9),
    "sgd_dampening": dict(kind="sgd", lr=0.05, momentum=0.9, dampening=0.1),
    "sgd_nesterov": dict(kind="sgd", lr=0.05, momentum=0.8, nesterov=True),
    "sgd_nesterov_decay": dict(kind="sgd", lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.02),
    "sgd_all_schedule": dict(kind="sgd", lr=0.05, momentum=0.9, dampening=0.1, weight_decay=0.01, schedule=True),
    "sgd_keras": dict(kind="sgd", lr=0.05, keras=True, momentum=0.9, schedule=True),
    "sgd_keras_nesterov": dict(kind="sgd", lr=0.05, keras=True, momentum=0.9, nesterov=True, schedule=True),
    "adam": dict(kind="adam", lr=0.01),
    "adam_decay": dict(kind="adam", lr=0.01, weight_decay=0.1),
    "adam_betas_eps": dict(kind="adam", lr=0.01, beta1=0.8, beta2=0.95, eps=1e-3),
    "adam_schedule": dict(kind="adam", lr=0.01, schedule=True),
    "adam_keras": dict(kind="adam", lr=0.01, keras=True),
    "adam_keras_betas_eps": dict(kind="adam", lr=0.01, keras=True, beta1=0.8, beta2=0.95, eps=1e-3),
    "adam_keras_schedule": dict(kind="adam", lr=0.01, keras=True, schedule=True),
    "adamw": dict(kind="adamw", lr=0.01),
    "adamw_decay_schedule": dict(kind="adamw", lr=0.01, weight_decay=0.3, schedule=True),
    "adamw_keras": dict(kind="adamw", lr=0.01, keras=True),
    "nadam": dict(kind="nadam", lr=0.01),
    "nadam_decay_schedule": dict(kind="nadam", lr=0.01, weight_decay=0.1, beta1=0.8, momentum_decay=0.02, schedule=True),
    "nadam_keras3": dict(kind="nadam", lr=0.01, keras=True),
    "nadam_tf_keras": dict(kind="nadam", lr=0.01, keras=True, momentum_decay=0.004),
    "rmsprop": dict(kind="rmsprop", lr=0.01),
    "rmsprop_momentum_decay": dict(kind="rmsprop", lr=0.01, momentum=0.9, weight_decay=0.1, schedule=True),
    "rmsprop_centered": dict(kind="rmsprop", lr=0.01, centered=True, alpha=0.9, eps=1e-3),
    "rmsprop_centered_momentum": dict(kind="rmsprop", lr=0.01, centered=True, momentum=0.5, eps=1e-3),
    "rmsprop_keras": dict(kind="rmsprop", lr=0.01, keras=True),
    "rmsprop_keras_all": dict(kind="rmsprop", lr=0.01, keras=True, centered=True, momentum=0.9, eps=1e-3, schedule=True),
    "adagrad": dict(kind="adagrad", lr=0.1),
    "adagrad_all": dict(kind="adagrad", lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator=0.5, eps=1e-3),
    "adagrad_keras": dict(kind="adagrad", lr=0.1, keras=True),
    "groups_sgd": dict(kind="sgd", lr=0.05, momentum=0.9, weight_decay=0.02, groups=MIXED),
    "groups_adamw": dict(kind="adamw", lr=0.01, groups=DECAY_LAST),
    "groups_rmsprop": dict(kind="rmsprop", lr=0.01, groups=MIXED, schedule=True),
    "frozen_adam": dict(kind="adam", lr=0.01, weight_decay=0.1, groups=FROZEN),
    "clip_norm_sgd": dict(kind="sgd", lr=0.05, momentum=0.9, clip_norm=3),
    "clip_norm_adam_groups": dict(kind="adam", lr=0.01, weight_decay=0.1, clip_norm=5, groups=MIXED),
    "clip_norm_frozen": dict(kind="sgd", lr=0.05, clip_norm=4, groups=FROZEN),
    "clip_value_sgd": dict(kind="sgd", lr=0.05, weight_decay=0.1, clip_value=0.5),
    "micro_sgd": dict(kind="sgd", lr=0.05, momentum=0.9, micro_batches=3),
    "micro_nadam_clip": dict(kind="nadam", lr=0.01, micro_batches=4, clip_norm=3, schedule=True),
    "adam_amsgrad": dict(kind="adam", lr=0.01, amsgrad=True, beta2=0.9),
    "adamw_amsgrad_groups_schedule": dict(kind="adamw", lr=0.01, amsgrad=True, beta2=0.9, groups=MIXED, schedule=True),
    "adam_keras_amsgrad": dict(kind="adam", lr=0.01, keras=True, amsgrad=True, beta2=0.9),
    "adam_no_momentum": dict(kind="adam", lr=0.01, beta1=0),
    "adamw_no_decay": dict(kind="adamw", lr=0.01, weight_decay=0),
    "rmsprop_no_memory": dict(kind="rmsprop", lr=0.01, alpha=0, eps=1e-3),
    "adagrad_keras_from_zero": dict(kind="adagrad", lr=0.1, keras=True, initial_accumulator=0),
    "groups_factor_zero": dict(kind="adam", lr=0.01, groups=[[0, 0.1], None, None]),
    "micro_adamw_groups": dict(kind="adamw", lr=0.01, micro_batches=2, groups=MIXED),
}

FLOATS = ("momentum", "dampening", "weight_decay", "eps", "lr_decay", "initial_accumulator", "clip_norm", "clip_value")
for case in CASES.values():
    for key in FLOATS:
        if key in case:
            case[key] = float(np.float32(case[key]))
    if "groups" in case:
        case["groups"] = [g and [float(np.float32(x)) for x in g] for g in case["groups"]]


def gradients(rng):
    """Returns gradients (RUNS, N). From element to element, the standard deviation grows from 1e-9 (below Adam's eps) to 10.
    Element 0 is always 0. Element 1 is 0 from run 6 on (counted from 0)."""
    g = rng.standard_normal((RUNS, N)) * 10.0 ** np.linspace(-9, 1, N)
    g[:, 0] = 0
    g[6:, 1] = 0
    return g.astype(np.float32)


def learning_rates(case):
    """Returns the learning rate of each run, rounded to float32 as in the engine's step state. Without a schedule, the
    rate is constant. With a schedule, runs 4 to 7 have 0.1 times the first rate, and runs 8 to 19 have 0.3 times the
    first rate. Runs are counted from 0."""
    lr = np.full(RUNS, case["lr"])
    if case.get("schedule"):
        lr[4:] /= 10
        lr[8:] *= 3
    return lr.astype(np.float32)


class KerasLike:
    """Keras' optimizers, and NAdam by PyTorch's formula, with the part of torch.optim's interface that this script needs."""

    def __init__(self, groups, case):
        self.param_groups, self.case, self.t, self.state, self.product = groups, case, 0, {}, 1.0
        self.u = lambda t: self.beta1 * (1 - 0.5 * 0.96 ** (self.momentum_decay * t))
        keras = case.get("keras", False)
        self.beta1, self.beta2 = case.get("beta1", 0.9), case.get("beta2", 0.999)
        self.momentum_decay = case.get("momentum_decay", 1 if keras else 0.004)
        self.eps = case.get("eps", float(np.float32(1e-7 if keras else 1e-8)))

    def step(self):
        self.t += 1
        self.product *= self.u(self.t)
        for group in self.param_groups:
            for p in group["params"]:
                with torch.no_grad():
                    getattr(self, self.case["kind"])(p, p.grad, group, self.state.setdefault(p, {}))

    def moments(self, g, state, beta1, beta2):
        m, v = state.get("m", torch.zeros_like(g)), state.get("v", torch.zeros_like(g))
        state["m"], state["v"] = m + (1 - beta1) * (g - m), v + (1 - beta2) * (g * g - v)
        return state["m"], state["v"]

    def sgd(self, p, g, group, state):
        momentum = self.case["momentum"]
        state["buf"] = momentum * state.get("buf", 0) + group["lr"] * g
        p -= group["lr"] * g + momentum * state["buf"] if self.case.get("nesterov") else state["buf"]

    def adam(self, p, g, group, state):
        m, v = self.moments(g, state, self.beta1, self.beta2)
        scale = np.sqrt(1 - self.beta2**self.t) / (1 - self.beta1**self.t)
        if self.case.get("amsgrad"):
            v = state["most"] = torch.maximum(state.get("most", torch.zeros_like(v)), v)
        p -= group["lr"] * scale * m / (torch.sqrt(v) + self.eps)

    def adamw(self, p, g, group, state):
        p -= group["lr"] * group["weight_decay"] * p
        self.adam(p, g, group, state)

    def nadam(self, p, g, group, state):
        g = g + group["weight_decay"] * p
        m, v = self.moments(g, state, self.beta1, self.beta2)
        u, after = self.u(self.t), self.u(self.t + 1)
        ahead = after * m / (1 - self.product * after) + (1 - u) * g / (1 - self.product)
        p -= group["lr"] * ahead / (torch.sqrt(v / (1 - self.beta2**self.t)) + self.eps)

    def rmsprop(self, p, g, group, state):
        rho = self.case.get("alpha", 0.9)
        a, v = self.moments(g, state, rho, rho)
        spread = v - a * a if self.case.get("centered") else v
        state["buf"] = self.case.get("momentum", 0) * state.get("buf", 0) + group["lr"] * g / torch.sqrt(spread + self.eps)
        p -= state["buf"]

    def adagrad(self, p, g, group, state):
        start = torch.full_like(g, self.case.get("initial_accumulator", float(np.float32(0.1))))
        state["sum"] = state.get("sum", start) + g * g
        p -= group["lr"] * g / torch.sqrt(state["sum"] + self.eps)


def torch_optimizer(case, groups):
    pick = lambda **names: {k: case[v] for k, v in names.items() if v in case}
    adam = dict(betas=(case.get("beta1", 0.9), case.get("beta2", 0.999)), **pick(eps="eps", amsgrad="amsgrad"))
    make = {
        "sgd": lambda: torch.optim.SGD(groups, case["lr"], **pick(momentum="momentum", dampening="dampening", nesterov="nesterov")),
        "adam": lambda: torch.optim.Adam(groups, **adam),
        "adamw": lambda: torch.optim.AdamW(groups, **adam),
        "rmsprop": lambda: torch.optim.RMSprop(groups, **pick(alpha="alpha", eps="eps", momentum="momentum", centered="centered")),
        "adagrad": lambda: torch.optim.Adagrad(
            groups, **pick(lr_decay="lr_decay", initial_accumulator_value="initial_accumulator", eps="eps")),
    }
    return make[case["kind"]]()


def run(case, p0, grads, lrs, rows):
    usual = case.get("weight_decay", {"adamw": 0.004 if case.get("keras") else 0.01}.get(case["kind"], 0))
    usual = float(np.float32(usual))
    params = [torch.nn.Parameter(p.clone()) for p in torch.split(torch.from_numpy(p0), SIZES)]
    rules = [rule or [1, usual] for rule in case.get("groups", [None] * len(SIZES))]
    free = [(p, f, wd) for p, (f, wd) in zip(params, rules) if f >= 0]
    groups = [dict(params=[p], lr=case["lr"], weight_decay=wd) for p, f, wd in free]
    own = case.get("keras") or case["kind"] == "nadam"
    opt, k, out = (KerasLike(groups, case) if own else torch_optimizer(case, groups)), case.get("micro_batches", 1), []
    for i in range(RUNS):
        if i % k == k - 1:
            part = slice(i - k + 1, i + 1)
            g = torch.from_numpy((grads[part] * (rows[part] / rows[part].sum())[:, None]).sum(0) if k > 1 else grads[i].copy())
            for p, piece in zip(params, torch.split(g, SIZES)):
                p.grad = piece.clone()
            if "clip_norm" in case:
                torch.nn.utils.clip_grad_norm_([p for p, _, _ in free], case["clip_norm"])
            if "clip_value" in case:
                torch.nn.utils.clip_grad_value_([p for p, _, _ in free], case["clip_value"])
            for group, (_, factor, _) in zip(opt.param_groups, free):
                group["lr"] = float(lrs[i]) * factor
            opt.step()
        out.append(torch.cat([p.detach() for p in params]).numpy().copy())
    return np.stack(out)


def main():
    rng = np.random.Generator(np.random.PCG64(37))
    p0, grads = rng.standard_normal(N).astype(np.float32), gradients(rng)
    rows = rng.integers(1, 40, RUNS).astype(np.float32)
    tensors, metadata = {"p0": p0, "gradients": grads, "rows": rows}, {"cases": " ".join(CASES)}
    for name, case in CASES.items():
        lrs = learning_rates(case)
        tensors[name + "/lr"] = lrs
        tensors[name + "/p"] = run(case, *(x.astype(np.float64) for x in (p0, grads, lrs, rows)))
        metadata[name] = json.dumps({k: v for k, v in case.items() if k not in ("lr", "schedule")})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optim.safetensors")
    print(path, safetensors_file.write(path, tensors, metadata), "bytes,", len(CASES), "cases")


if __name__ == "__main__":
    main()
