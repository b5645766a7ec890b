#!/usr/bin/env python3
"""The training steps of vkt-ntc in PyTorch, to compare the speed: the same grids, network, tile, optimizer and loss.

    python3 samples/ntc/recipe.py [STEPS]

The images have 256 x 256 texels of 7 channels. A block has 2 x 2 texels, a tile has 128 x 128 texels. There are three grids, in
the form SCALE:FEATURES:BITS of vkt-ntc's --grids: 2:1:4, 2:2:2 and 4:3:4:corners. A cell of the first two grids covers one block.
vkt-ntc chooses the same grids for this size and --bppc 0.5. Unlike in vkt-ntc, the learning rate is constant, and all steps
train the latents. Prints steps per second.
"""
import sys
import time

import torch
import torch.nn.functional as F

SIDE, TILE, OUTPUTS, HIDDEN = 128, 64, 28, 32  # SIDE and TILE count blocks; 28 outputs: 4 texels of a block x 7 channels
FINE, COARSE = ((1, 4), (2, 2)), (3, 4)  # features and bits of each grid


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, steps):
        return torch.floor(x.clamp(0, 1) * steps + 0.5) / steps

    @staticmethod
    def backward(ctx, dy):
        return dy, None


def quantize(x, bits, noise):
    steps = 2**bits - 1
    return x.clamp(0, 1) + (torch.rand_like(x) - 0.5) / steps if noise else Round.apply(x, steps)


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    torch.manual_seed(1)
    image = torch.rand(OUTPUTS, SIDE, SIDE)
    grids = [torch.rand(f, SIDE, SIDE) * 0.4 + 0.3 for f, _ in FINE] + [torch.rand(COARSE[0], SIDE // 2, SIDE // 2) * 0.4 + 0.3]
    for grid in grids:
        grid.requires_grad_()
    inputs = sum(f for f, _ in FINE) + 4 * COARSE[0] + 3
    net = torch.nn.Sequential(
        torch.nn.Linear(inputs, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, OUTPUTS))
    adam = torch.optim.Adam([{"params": grids, "lr": 0.02}, {"params": net.parameters(), "lr": 0.006}],
                            betas=(0.9, 0.95), eps=1e-12)
    axis = torch.arange(SIDE)
    cell = torch.div(2 * axis + 3, 4, rounding_mode="floor")
    first, second = (cell - 1).clamp(min=0), cell.clamp(max=SIDE // 2 - 1)
    place = 2 * ((2 * axis + 3) % 4) / 4 - 1
    v, u = place[:, None].expand(SIDE, SIDE), place[None, :].expand(SIDE, SIDE)
    position = torch.stack([u, v, u * v])

    def step(number):
        tile = number % 4
        y0, x0 = tile // 2 * TILE, tile % 2 * TILE
        rows, columns = slice(y0, y0 + TILE), slice(x0, x0 + TILE)
        noise = number < 0.85 * steps
        own = [quantize(grid, bits, noise)[:, rows, columns] for grid, (_, bits) in zip(grids, FINE)]
        coarse = quantize(grids[-1], COARSE[1], noise)
        corners = [coarse[:, p[rows]][:, :, q[columns]] for p in (first, second) for q in (first, second)]
        x = torch.cat([*own, *corners, position[:, rows, columns]]).reshape(inputs, -1).t()
        loss = F.mse_loss(net(x), image[:, rows, columns].reshape(OUTPUTS, -1).t())
        adam.zero_grad()
        loss.backward()
        adam.step()

    for i in range(5):
        step(i)
    start = time.perf_counter()
    for i in range(steps):
        step(i)
    print(f"{steps / (time.perf_counter() - start):.1f} steps/s with {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
