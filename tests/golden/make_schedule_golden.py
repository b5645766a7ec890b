#!/usr/bin/env python3
"""Records schedules.txt: learning rates of PyTorch's schedulers, step by step, and of Keras' ReduceLROnPlateau as its
documentation defines it. The first line has VALUES. Each other line has a name, then the rates. test_schedule.c has the same
settings under the same name. At each step, ReduceLROnPlateau gets the next number of VALUES."""
import math
import os

import torch
from torch.optim import lr_scheduler as sched

STEPS = 40
# The values fall, rise, stay within the threshold, fall again, and stay. So ReduceLROnPlateau takes each of its branches.
VALUES = [1.0, 0.8, 0.9, 0.79995, 0.85, 0.9, 0.95, 0.7, 0.7, 0.7, 0.69999, 0.6, 0.65, 0.66, 0.67, 0.68, 0.69, 0.5, 0.5, 0.49] + 20 * [0.49]


def rates(make, metric=False, lr=0.1):
    opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    s, out = make(opt), []
    for t in range(STEPS):
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        s.step(VALUES[t]) if metric else s.step()
    return out


def keras_plateau(lr=0.1, factor=0.1, patience=10, min_delta=1e-4, cooldown=0, min_lr=0.0, maximise=False):
    best, wait, cooling, out = (-1 if maximise else 1) * float("inf"), 0, 0, []
    for value in VALUES:
        out.append(lr)
        if cooling > 0:
            cooling -= 1
            wait = 0
        if value > best + min_delta if maximise else value < best - min_delta:
            best, wait = value, 0
        elif cooling == 0:
            wait += 1
            if wait >= patience and lr > min_lr:
                lr, cooling, wait = max(lr * factor, min_lr), cooldown, 0
    return out


def warmup_cosine(t, warmup, total):
    """Computes get_cosine_schedule_with_warmup of the Transformers library up to step `total`. Then the factor stays 0."""
    return t / warmup if t < warmup else 0.5 * (1 + math.cos(math.pi * min((t - warmup) / (total - warmup), 1)))


def table():
    return {
        "step": rates(lambda o: sched.StepLR(o, 7)),
        "step_gamma": rates(lambda o: sched.StepLR(o, 3, gamma=0.7)),
        "multi_step": rates(lambda o: sched.MultiStepLR(o, [3, 11, 12, 30], gamma=0.5)),
        "exponential": rates(lambda o: sched.ExponentialLR(o, 0.93)),
        "cosine": rates(lambda o: sched.CosineAnnealingLR(o, 25)),
        "cosine_min": rates(lambda o: sched.CosineAnnealingLR(o, 39, eta_min=0.003)),
        "one_cycle": rates(lambda o: sched.OneCycleLR(o, 0.1, total_steps=STEPS + 1, cycle_momentum=False)),
        "one_cycle_other": rates(lambda o: sched.OneCycleLR(o, 0.1, total_steps=60, pct_start=0.1, div_factor=10,
                                                            final_div_factor=100, cycle_momentum=False)),
        "one_cycle_linear": rates(lambda o: sched.OneCycleLR(o, 0.1, total_steps=STEPS, anneal_strategy="linear",
                                                             cycle_momentum=False)),
        "warmup": rates(lambda o: sched.LinearLR(o, total_iters=6)),
        "warmup_cosine": rates(lambda o: sched.SequentialLR(o, [sched.LinearLR(o, 0.01, total_iters=5),
                                                                sched.CosineAnnealingLR(o, 35)], [5])),
        "warmup_cosine_in_one": rates(lambda o: sched.LambdaLR(o, lambda t: warmup_cosine(t, 6, 35))),
        "warmup_from_zero": rates(lambda o: sched.LambdaLR(o, lambda t: min(t / 8, 1))),
        "lambda": rates(lambda o: sched.LambdaLR(o, lambda t: 1 / (1 + t))),
        "plateau": rates(lambda o: sched.ReduceLROnPlateau(o), True),
        "plateau_2": rates(lambda o: sched.ReduceLROnPlateau(o, patience=2, factor=0.5, cooldown=3, min_lr=0.004), True),
        "plateau_0": rates(lambda o: sched.ReduceLROnPlateau(o, patience=0, factor=0.7), True),
        "plateau_max": rates(lambda o: sched.ReduceLROnPlateau(o, mode="max", patience=4, factor=0.3), True),
        "plateau_absolute": rates(lambda o: sched.ReduceLROnPlateau(o, patience=3, threshold=0.02, threshold_mode="abs"), True),
        "plateau_absolute_max": rates(lambda o: sched.ReduceLROnPlateau(o, mode="max", patience=2, factor=0.5, threshold=0.3,
                                                                        threshold_mode="abs"), True),
        "plateau_any": rates(lambda o: sched.ReduceLROnPlateau(o, patience=1, factor=0.6, threshold=0), True),
        "plateau_eps_zero": rates(lambda o: sched.ReduceLROnPlateau(o, patience=0, factor=0.01, eps=0), True),
        "keras_plateau_any": keras_plateau(patience=2, min_delta=0),
        "keras_plateau": keras_plateau(),
        "keras_plateau_2": keras_plateau(patience=2, factor=0.5, cooldown=3, min_lr=0.004),
        "keras_plateau_0": keras_plateau(patience=0, factor=0.7),
        "keras_plateau_max": keras_plateau(maximise=True, patience=4, factor=0.3),
    }


if __name__ == "__main__":
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "schedules.txt"), "w") as f:
        f.write("values " + " ".join(map(repr, VALUES)) + "\n")
        for name, lr in table().items():
            f.write(name + " " + " ".join(repr(float(x)) for x in lr) + "\n")
