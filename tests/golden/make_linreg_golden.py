#!/usr/bin/env python3
"""Records linreg.safetensors: 20 steps of the linear regression of vkt-linreg by PyTorch, on fewer points than
vkt-linreg has. The five float32 runs have the points in different orders. The float64 run has them in the
original order. Format: README.md."""
import os

import numpy as np
import torch

import safetensors_file

ROWS, STEPS, LR = 4096, 20, 0.1


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.fc(x)


def train(x, t, init, dtype):
    """Returns the loss of each step, computed before the step's update, and two dicts (name -> array): the gradients of the first
    step, and the parameters after the last step."""
    model = Line().to(dtype)
    model.load_state_dict({k: v.to(dtype) for k, v in init.items()})
    optimizer, losses, gradients = torch.optim.Adam(model.parameters(), lr=LR), [], None
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x.to(dtype)), t.to(dtype))
        loss.backward()
        gradients = gradients or {k: p.grad.double().numpy().copy() for k, p in model.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), gradients, {k: p.detach().double().numpy() for k, p in model.named_parameters()}


def deviation(a, b):
    return [np.abs(a[k] - b[k]).max() for k in a]


def main():
    torch.set_num_threads(2)
    torch.manual_seed(2)
    x = 10 * torch.rand(ROWS, 2) - 5
    t = x @ torch.tensor([[2.0], [-3.0]]) + 10 + 2 * torch.randn(ROWS, 1)
    init = {"fc.weight": torch.randn(1, 2), "fc.bias": torch.zeros(1)}
    orders = {"default": torch.arange(ROWS), "reversed": torch.arange(ROWS).flip(0)}
    for i in range(3):
        orders[f"shuffled{i}"] = torch.randperm(ROWS)
    loss64, grad64, final64 = train(x, t, init, torch.float64)
    runs = [train(x[o], t[o], init, torch.float32) for o in orders.values()]
    tensors = {"x": x.numpy(), "t": t.numpy(), "loss64": loss64,
               "loss_dev": np.stack([np.abs(loss - loss64) for loss, _, _ in runs]),
               "grad_dev": np.stack([deviation(grad, grad64) for _, grad, _ in runs]),
               "final_dev": np.stack([deviation(final, final64) for _, _, final in runs])}
    for k in init:
        tensors["init/" + k], tensors["grad64/" + k], tensors["final64/" + k] = init[k].numpy(), grad64[k], final64[k]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "linreg.safetensors")
    metadata = {"runs": " ".join(orders), "torch": torch.__version__, "numpy": np.__version__}
    print(path, safetensors_file.write(path, tensors, metadata), "bytes")
    print(tensors["loss_dev"].max(0), tensors["grad_dev"], tensors["final_dev"], sep="\n")


if __name__ == "__main__":
    main()
