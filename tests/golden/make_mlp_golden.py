#!/usr/bin/env python3
"""Records mlp.safetensors: 20 steps of a small fully connected network, and of a linear regression, by PyTorch in float64 and
float32. Format: README.md."""
import os

import numpy as np
import torch
import torch.nn as nn

import safetensors_file

STEPS, LR = 20, 0.01
CASES = {"mlp": dict(batch=150, widths=(6, 17, 12, 3)), "line": dict(batch=1001, widths=(2, 1))}


def network(widths):
    layers = []
    for i, o in zip(widths, widths[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def train(widths, init, x, t, dtype):
    model = network(widths).to(dtype)
    model.load_state_dict({k: v.to(dtype) for k, v in init.items()})
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=LR), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.MSELoss()(model(x.to(dtype)), t.to(dtype))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), {k: v.numpy() for k, v in model.state_dict().items()}


def main():
    torch.manual_seed(20)
    tensors, metadata = {}, {"cases": " ".join(CASES), "lr": str(LR)}
    for name, case in CASES.items():
        widths = case["widths"]
        x, t = 2 * torch.rand(case["batch"], widths[0]) - 1, 2 * torch.rand(case["batch"], widths[-1]) - 1
        init = network(widths).state_dict()
        tensors[name + "/x"], tensors[name + "/t"] = x.numpy(), t.numpy()
        tensors[name + "/loss64"], final64 = train(widths, init, x, t, torch.float64)
        tensors[name + "/loss32"], final32 = train(widths, init, x, t, torch.float32)
        for l, key in enumerate(k for k in init if k.endswith("weight")):
            for part, k in (("w", key), ("b", key.replace("weight", "bias"))):
                tensors[f"{name}/init/{part}{l}"] = init[k].numpy()
                tensors[f"{name}/final64/{part}{l}"] = final64[k]
                tensors[f"{name}/final32/{part}{l}"] = final32[k]
        metadata[name] = '{"layers": %d}' % (len(widths) - 1)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mlp.safetensors")
    print(path, safetensors_file.write(path, tensors, metadata), "bytes")


if __name__ == "__main__":
    main()
