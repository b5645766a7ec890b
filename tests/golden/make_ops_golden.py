#!/usr/bin/env python3
"""Records ops.safetensors: values and gradients of ops at awkward shapes, by PyTorch in float64. Format: README.md.

A case is (op, attributes, shapes of the inputs). Most shapes have dimensions that all differ, so that exchanged axes or
strides give wrong numbers. Inputs are random float32 numbers, so that a float32 engine starts from the same numbers.
"""
import json
import os

import numpy as np
import torch
import torch.nn.functional as F

import safetensors_file

CONV = {
    "plain": (dict(), (2, 3, 7, 9), (4, 3, 3, 2)),
    "no_bias": (dict(), (1, 2, 5, 4), (3, 2, 2, 3), None),
    "one_by_one": (dict(), (3, 5, 4, 2), (2, 5, 1, 1)),
    "whole_picture": (dict(), (2, 3, 4, 5), (3, 3, 4, 5)),
    "stride": (dict(stride=[2, 3]), (2, 2, 9, 11), (3, 2, 3, 2)),
    "stride_leaves_a_rest": (dict(stride=[3, 2]), (1, 2, 8, 10), (2, 2, 2, 3)),
    "stride_above_kernel": (dict(stride=[3, 4]), (2, 1, 8, 9), (3, 1, 2, 2)),
    "pad": (dict(pad=[2, 1]), (2, 3, 5, 6), (2, 3, 3, 4)),
    "pad_above_input": (dict(pad=[3, 4]), (1, 2, 2, 3), (3, 2, 4, 5)),
    "dilation": (dict(dilation=[2, 3]), (2, 2, 8, 11), (3, 2, 3, 2)),
    "groups": (dict(groups=2), (2, 4, 6, 5), (6, 2, 3, 2)),
    "depthwise": (dict(groups=3, pad=[1, 0]), (2, 3, 5, 7), (6, 1, 3, 2)),
    "all": (dict(stride=[2, 1], pad=[1, 3], dilation=[1, 2], groups=2), (3, 4, 7, 6), (2, 2, 2, 3)),
    "all_but_groups": (dict(stride=[3, 2], pad=[2, 1], dilation=[3, 2]), (2, 3, 9, 8), (5, 3, 2, 3)),
}
POOL = {
    "plain": (dict(kernel=[2, 2]), (2, 3, 6, 8)),
    "leaves_a_rest": (dict(kernel=[2, 3]), (2, 3, 7, 8)),
    "overlap": (dict(kernel=[3, 2], stride=[1, 1]), (2, 2, 5, 6)),
    "gaps": (dict(kernel=[2, 1], stride=[3, 2]), (1, 3, 9, 7)),
    "pad": (dict(kernel=[3, 4], stride=[2, 3], pad=[1, 2]), (2, 3, 7, 9)),
    "ceil": (dict(kernel=[3, 2], stride=[2, 2], ceil_mode=True), (2, 3, 8, 7)),
    "ceil_pad": (dict(kernel=[3, 4], stride=[3, 3], pad=[1, 2], ceil_mode=True), (2, 2, 9, 8)),
    "ceil_drops_a_window": (dict(kernel=[2, 2], stride=[3, 3], pad=[1, 1], ceil_mode=True), (1, 2, 6, 9)),
}
AVG_ONLY = {
    "exclude_pad": (dict(kernel=[3, 4], stride=[2, 3], pad=[1, 2], exclude_pad=True), (2, 3, 7, 9)),
    "exclude_pad_ceil": (dict(kernel=[3, 4], stride=[3, 3], pad=[1, 2], ceil_mode=True, exclude_pad=True), (2, 2, 9, 8)),
}
ADAPTIVE = {
    "to_one": (dict(out=[1, 1]), (3, 4, 4, 5)),
    "divides": (dict(out=[2, 3]), (2, 3, 6, 9)),
    "overlap": (dict(out=[3, 4]), (2, 3, 7, 9)),
    "grows": (dict(out=[5, 3]), (2, 2, 3, 7)),
    "same": (dict(out=[4, 3]), (1, 2, 4, 3)),
}
CONV_TRANSPOSE = {
    "plain": (dict(), (2, 3, 4, 5), (3, 2, 3, 2)),
    "stride": (dict(stride=[2, 3], pad=[1, 0], output_pad=[1, 2]), (2, 3, 4, 5), (3, 4, 3, 2)),
    "output_pad_by_dilation": (dict(dilation=[3, 2], output_pad=[2, 1]), (2, 2, 4, 3), (2, 3, 2, 3)),
    "all": (dict(stride=[3, 2], pad=[2, 1], dilation=[1, 2], groups=2, output_pad=[1, 0]), (3, 4, 5, 3), (4, 3, 4, 2), None),
}
CONV1D = {
    "plain": (dict(), (2, 3, 9), (4, 3, 5)),
    "all": (dict(stride=[2], pad=[3], dilation=[2], groups=2), (3, 4, 13), (6, 2, 3), None),
}
POOL1D = {
    "plain": (dict(kernel=[2]), (2, 3, 7)),
    "all": (dict(kernel=[4], stride=[3], pad=[2], ceil_mode=True), (2, 3, 9)),
}


def grids(a, dims):
    """Returns for each level of a hash grid: the number of cells along an axis, the number of entries in the table, and whether
    the entry of a corner is found by a hash. The formulas are those of Mueller et al. 2022, but the number of entries is
    rounded up to a multiple of 8."""
    most, levels = 2 ** a["log2_table_size"], []
    for level in range(a["levels"]):
        cells = int(a["base_resolution"] * a["per_level_scale"] ** level + 1e-9)
        corners = (cells + 1) ** dims
        levels.append((cells, min(most, -(-corners // 8) * 8), corners > most))
    return levels


def hash_grid(x, table, a):
    """Computes the hash grid of Mueller et al. 2022, section 3. x is clamped to [0,1]. For the gradient, the index of
    the cell is a constant."""
    dims, first, features = x.shape[1], 0, []
    for cells, entries, hashed in grids(a, dims):
        p = x.clamp(0, 1) * cells
        cell = p.detach().floor().clamp(max=cells - 1)
        y = 0
        for k in range(2 ** dims):
            bits = torch.tensor([k >> d & 1 for d in range(dims)])
            corner = (cell + bits).long()
            if hashed:
                index = torch.zeros_like(corner[:, 0])
                for d, prime in zip(range(dims), (1, 2654435761, 805459861)):
                    index ^= corner[:, d] * prime % 2 ** 32
            else:
                index = (corner * torch.tensor([(cells + 1) ** d for d in range(dims)])).sum(1)
            weight = torch.where(bits == 1, p - cell, 1 - (p - cell)).prod(1, keepdim=True)
            y = y + weight * table[first + index % entries]
        features.append(y)
        first += entries
    return torch.cat(features, 1)


def frequency(x, frequencies):
    """Computes the frequency encoding of Mildenhall et al. 2020, equation 4."""
    angles = x[:, :, None] * np.pi * 2.0 ** torch.arange(frequencies)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def rope(x, first, a):
    """Rotates pairs of numbers in each head (Su et al. 2021). Frequencies are computed in float32, as in the library
    transformers of Hugging Face. Angles, sines and cosines are computed in float64."""
    heads = a.get("heads", 0)
    y = x.unflatten(2, (heads, -1)).transpose(1, 2) if heads else x
    dims = a.get("dims", y.shape[-1])
    frequency = 1.0 / (a.get("base", 10000.0) ** (torch.arange(0, dims, 2).float() / dims)) / a.get("factor", 1.0)
    if "factors" in a:
        frequency = frequency / torch.tensor(a["factors"])
    at = a.get("position", 0) + torch.arange(y.shape[-2], dtype=torch.float64)
    if first is not None:
        at = at + first.reshape([-1] + [1] * (y.dim() - 2))
    angle = at.unsqueeze(-1) * frequency.double()
    rotated = a.get("rotated", y.shape[1])  # number of heads that are rotated; used only with `heads`
    turned, copied = (y[:, :rotated], y[:, rotated:]) if heads else (y, None)
    part, behind = turned[..., :dims], turned[..., dims:]
    if a.get("neighbours"):
        u, v = part[..., 0::2], part[..., 1::2]
    else:
        u, v = part[..., :dims // 2], part[..., dims // 2:]
    pair = [u * angle.cos() - v * angle.sin(), v * angle.cos() + u * angle.sin()]
    part = torch.stack(pair, -1).flatten(-2) if a.get("neighbours") else torch.cat(pair, -1)
    y = torch.cat([part, behind], -1)
    y = torch.cat([y, copied], 1) if heads else y
    return y.transpose(1, 2).flatten(2) if heads and not a.get("split") else y


def latent_grid(grid, origin, a):
    """Reads a grid (F,H,W) for the texels of a tile. Without `corners`, PyTorch interpolates the whole grid bilinearly, and the
    function returns the texels of the tile. With `corners`, the function returns the four cells around each texel, without
    interpolation. The grid then gets a margin of copied cells, so that texels at the edge also have four cells."""
    scale, (rows, columns) = a.get("factor", 1), a["tile"]
    top, left = (min(int(o), n * scale - t) for o, n, t in zip(origin[0], grid.shape[1:], a["tile"]))
    if not a.get("corners"):
        image = F.interpolate(grid[None], scale_factor=scale, mode="bilinear", align_corners=False)[0]
        return image[:, top:top + rows, left:left + columns].flatten(1).T
    wide = F.pad(grid[None], (1, 1, 1, 1), mode="replicate")[0]
    v, u = ((2 * torch.arange(o, o + n) + 1 + scale) // (2 * scale) for o, n in ((top, rows), (left, columns)))
    cells = [wide[:, v + i][:, :, u + k].flatten(1) for i in (0, 1) for k in (0, 1)]  # each (F, texels)
    return torch.stack(cells, 1).flatten(0, 1).T


def philox(counter, key):
    """Computes Philox4x32-10 (Salmon et al. 2011): makes four random words from a counter of four words and a key of 64 bits."""
    c, k = list(counter), [key & 0xffffffff, key >> 32]
    for _ in range(10):
        a, b = 0xd2511f53 * c[0], 0xcd9e8d57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xffffffff, a >> 32 ^ c[3] ^ k[1], a & 0xffffffff]
        k = [k[0] + 0x9e3779b9 & 0xffffffff, k[1] + 0xbb67ae85 & 0xffffffff]
    return c


def noise(shape, seed, draw, salt):
    """Returns the random numbers in [0,1) that vkt_quantize uses: number i is for element i."""
    n = int(np.prod(shape))
    words = [w >> 8 for i in range(-(-n // 4)) for w in philox((i, draw, salt, 8), seed)]
    return torch.tensor(words[:n], dtype=torch.float64).reshape(shape) / 2 ** 24


class Inside(torch.autograd.Function):
    """Clamps to [0,1]. If a step of gradient descent would move a number further outside, its gradient is 0."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(0, 1)

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        return dy.masked_fill((x < 0) & (dy > 0) | (x > 1) & (dy < 0), 0)


def quantize(x, a):
    """Rounds to 2^bits levels, or adds noise. Gradients are straight-through: they treat the change as a constant."""
    t, steps = Inside.apply(x), 2 ** a["bits"] - 1
    if a.get("noise"):
        return t + (noise(x.shape, a["seed"], a["draw"], a.get("salt", 0)) - 0.5) / steps
    at = steps * t.detach() + 0.5
    assert (at - at.round()).abs()[(t > 0) & (t < 1)].min() > 1e-5  # so float32 rounds to the same level
    return t + (at.floor() / steps - t).detach()


def table():
    """Returns name -> (op, attributes, input shapes; None: the input is absent)."""
    t = {}
    for name, (attr, x, w, *bias) in CONV.items():
        t["conv2d_" + name] = ("conv2d", attr, x, w, None if bias else (w[0],))
    for op, rows in (("max_pool2d", POOL), ("avg_pool2d", {**POOL, **AVG_ONLY}),
                     ("adaptive_max_pool2d", ADAPTIVE), ("adaptive_avg_pool2d", ADAPTIVE)):
        for name, (attr, x) in rows.items():
            t[op + "_" + name] = (op, attr, x)
    for name, (attr, x, w, *bias) in CONV_TRANSPOSE.items():
        t["conv_transpose2d_" + name] = ("conv_transpose2d", attr, x, w, None if bias else (w[1],))
    t["conv_transpose1d"] = ("conv_transpose1d", dict(stride=[2], pad=[1], output_pad=[1]), (2, 3, 7), (3, 4, 5), (4,))
    for name, (attr, x, w, *bias) in CONV1D.items():
        t["conv1d_" + name] = ("conv1d", attr, x, w, None if bias else (w[0],))
    for name, (attr, x) in POOL1D.items():
        t["max_pool1d_" + name] = ("max_pool1d", attr, x)
        t["avg_pool1d_" + name] = ("avg_pool1d", dict(attr, exclude_pad=True) if "pad" in attr else attr, x)
    for kind in ("max", "avg"):
        t["adaptive_%s_pool1d" % kind] = ("adaptive_%s_pool1d" % kind, dict(out=[4]), (2, 3, 7))
        t["global_%s_pool" % kind] = ("global_%s_pool" % kind, {}, (2, 3, 7))
        t["global_%s_pool_pictures" % kind] = ("global_%s_pool" % kind, {}, (3, 2, 5, 4))
    t["linear"] = ("linear", {}, (5, 7), (3, 7), (3,))
    t["linear_no_bias"] = ("linear", {}, (2, 11), (13, 11), None)
    t["linear_one"] = ("linear", {}, (1, 1), (1, 1), (1,))
    for ta in (False, True):
        for tb in (False, True):
            a, b = (5, 3) if ta else (3, 5), (7, 5) if tb else (5, 7)
            name, attr = "matmul_%s%s" % ("nt"[ta], "nt"[tb]), dict(trans_a=ta, trans_b=tb)
            t[name] = ("matmul", attr, a, b)
            t[name + "_batched"] = ("matmul", attr, (2, 3) + a, (2, 3) + b)
            t[name + "_shared_b"] = ("matmul", attr, (4,) + a, b)
            t[name + "_shared_a"] = ("matmul", attr, a, (4,) + b)
    for op in ("add", "mul"):
        t[op + "_same"] = (op, {}, (3, 4, 5), (3, 4, 5))
        t[op + "_channel"] = (op, {}, (2, 3, 4, 5), (3, 1, 1))
        t[op + "_last"] = (op, {}, (4, 7), (7,))
        t[op + "_scalar"] = (op, {}, (3, 5), ())
        t[op + "_both_ways"] = (op, {}, (4, 1, 3), (2, 1, 5, 1))
        t[op + "_smaller_first"] = (op, {}, (1, 6), (5, 1))
    t["relu"] = ("relu", {}, (3, 7, 5))
    for op in ("sum", "mean"):
        t[op] = (op, {}, (3, 5, 2, 7))
        t[op + "_one"] = (op, {}, (1,))
    for name, shape, rows in (("", (6, 10), 6), ("_two_classes", (5, 2), 5), ("_one_row", (1, 7), 1),
                              ("_many_classes", (3, 129), 3), ("_partial", (8, 11), 5)):
        t["softmax_cross_entropy" + name] = ("softmax_cross_entropy", dict(rows=rows), shape, shape[:1])
    t["softmax_cross_entropy_large"] = ("softmax_cross_entropy", dict(rows=4, scale=80), (4, 9), (4,))
    t["permute_heads"] = ("permute", dict(perm=[0, 2, 1, 3]), (2, 5, 3, 4))
    t["permute_turned"] = ("permute", dict(perm=[2, 0, 3, 1]), (3, 4, 7, 8))
    t["transpose"] = ("transpose", dict(axis0=-1, axis1=0), (5, 3, 7))
    t["slice"] = ("slice", dict(axis=1, start=1, stop=6, step=2), (3, 7, 5))
    t["slice_from_the_end"] = ("slice", dict(axis=-1, start=-5, stop=99, step=3), (3, 2, 7))
    t["flip"] = ("flip", dict(axis=-2), (2, 5, 3))
    t["concat"] = ("concat", dict(axis=1), (2, 3, 4), (2, 1, 4), (2, 5, 4))
    t["pad"] = ("pad", dict(before=[0, 2, 1], after=[1, 0, 3], value=-0.5), (2, 3, 5))
    t["expand"] = ("expand", dict(shape=[4, 3, 5, 2]), (3, 1, 2))
    for name, attr, x in (("nearest", dict(size=[7, 4]), (3, 2, 3, 8)), ("nearest_twice", dict(size=[6, 8]), (2, 3, 3, 4)),
                          ("bilinear", dict(size=[7, 4], mode=1), (3, 2, 3, 9)),
                          ("bilinear_twice", dict(size=[8, 6], mode=1), (2, 3, 4, 2)),
                          ("bilinear_corners", dict(size=[8, 3], mode=1, align_corners=True), (2, 2, 3, 7)),
                          ("bilinear_one", dict(size=[1, 5], mode=1, align_corners=True), (2, 3, 4, 1))):
        t["upsample2d_" + name] = ("upsample2d", attr, x)
    t["mse"] = ("mse", dict(rows=5), (5, 3, 2), (5, 3, 2))
    t["mse_partial"] = ("mse", dict(rows=4), (7, 3), (7, 3))
    t["cross_entropy"] = ("cross_entropy", dict(rows=9, ignore_index=2, label_smoothing=0.125), (11, 5), (11,), (5,))
    t["cross_entropy_sum"] = ("cross_entropy", dict(rows=6, reduction="sum", ignore_index=0), (6, 7), (6,), (7,))
    t["cross_entropy_smooth"] = ("cross_entropy", dict(rows=5, label_smoothing=0.375), (5, 6), (5,), None)
    t["cross_entropy_tokens"] = ("cross_entropy_tokens", dict(rows=3, ignore_index=1), (4, 6, 5), (4, 6), (5,))
    t["nll_loss"] = ("nll_loss", dict(rows=7, ignore_index=3), (9, 5), (9,), (5,))
    t["nll_loss_sum"] = ("nll_loss", dict(rows=4, reduction="sum"), (4, 3), (4,), None)
    for op, attr in (("mse_loss", dict(reduction="sum")), ("l1_loss", {}), ("smooth_l1_loss", dict(beta=0.5)),
                     ("huber_loss", dict(delta=0.75)), ("huber_loss", dict(delta=1.5, reduction="sum")),
                     ("binary_cross_entropy", {}), ("kl_div", dict(reduction="batchmean")),
                     ("kl_div", dict(reduction="mean", log_target=True))):
        t["_".join([op] + sorted(attr))] = (op, dict(attr, rows=5), (6, 3, 4), (6, 3, 4))
    logits = "binary_cross_entropy_with_logits"
    t[logits] = (logits, dict(rows=4), (5, 7), (5, 7), None)
    t[logits + "_weighted"] = (logits, dict(rows=5, reduction="sum"), (6, 3, 4), (6, 3, 4), (3, 1))
    for op in ("softmax", "log_softmax"):
        t[op + "_last"] = (op, dict(axis=-1), (3, 4, 7))
        t[op + "_channel"] = (op, dict(axis=1), (2, 5, 3, 4))
        t[op + "_first"] = (op, dict(axis=0), (6, 5))
        t[op + "_long"] = (op, dict(axis=1), (2, 131))
    t["softmax_scaled"] = ("softmax_of_scores", dict(factor=0.25), (2, 3, 5))
    t["softmax_causal"] = ("softmax_of_scores", dict(factor=0.5, causal=True), (2, 7, 5))
    t["softmax_causal_wide"] = ("softmax_of_scores", dict(factor=0.5, causal=True), (2, 3, 6, 76))
    t["embedding"] = ("embedding", dict(bound=11), (3, 8), (11, 5))
    t["embedding_padding"] = ("embedding", dict(bound=7, padding=2), (2, 3, 9), (7, 4))
    t["embedding_channels"] = ("embedding", dict(bound=13, padding=0, channels=True), (5, 7), (13, 3))
    t["index_select"] = ("index_select", dict(bound=6), (9,), (6, 2, 3))
    for op, attr in (("leaky_relu", dict(slope=float(np.float32(0.01)))), ("elu", dict(alpha=1.5)), ("gelu", {}), ("gelu_tanh", {}),
                     ("silu", {}), ("sigmoid", {}), ("tanh", {}), ("softplus", dict(beta=2.0, threshold=5.0)),
                     ("hardswish", {}), ("exp", {}), ("log", {}), ("sqrt", {}), ("abs", {}),
                     ("clamp", dict(min=-0.5, max=1.0)), ("scale", dict(factor=-2.5, shift=0.75))):
        t[op] = (op, dict(attr, scale=4) if op in ("softplus", "hardswish") else attr, (3, 7, 5))
    for op in ("sub", "div", "minimum", "maximum", "pow"):
        t[op + "_same"] = (op, {}, (3, 4, 5), (3, 4, 5))
        t[op + "_channel"] = (op, {}, (2, 3, 4, 5), (3, 1, 1))
        t[op + "_both_ways"] = (op, {}, (4, 1, 3), (2, 1, 5, 1))
    for op in ("max_over", "min_over"):
        t[op + "_last"] = (op, dict(axes=[2]), (3, 4, 7))
        t[op + "_outer"] = (op, dict(axes=[0, 2], keepdim=True), (5, 3, 4, 2))
        t[op + "_all"] = (op, dict(axes=[0, 1]), (6, 11))
    t["prelu"] = ("prelu", {}, (2, 3, 4, 5), (3,))
    t["prelu_one"] = ("prelu", {}, (4, 7), (1,))
    t["where"] = ("where", {}, (5, 1), (3, 5, 2), (2,))
    t["masked_fill"] = ("masked_fill", dict(value=-7.5), (3, 5, 2), (5, 1))
    t["linear_rows"] = ("linear_rows", {}, (2, 3, 7), (5, 7), (5,))
    t["attention"] = ("attention", {}, (2, 3, 5, 7), (2, 3, 6, 7), (2, 3, 6, 4))
    t["attention_scaled"] = ("attention", dict(factor=0.75), (3, 5, 2), (3, 9, 2), (3, 9, 6))
    t["attention_causal"] = ("attention", dict(causal=True), (2, 2, 7, 4), (2, 2, 7, 4), (2, 2, 7, 5))
    t["attention_causal_wide"] = ("attention", dict(causal=True), (3, 5, 8), (3, 11, 8), (3, 11, 4))
    for name, points, a in (("planes", (13, 2), dict(levels=5, features=2, log2_table_size=6, base_resolution=3, per_level_scale=1.5)),
                            ("space", (9, 3), dict(levels=3, features=4, log2_table_size=7, base_resolution=2, per_level_scale=2.25)),
                            ("one", (1, 3), dict(levels=1, features=1, log2_table_size=3, base_resolution=1, per_level_scale=1)),
                            ("many", (7, 2), dict(levels=4, features=8, log2_table_size=4, base_resolution=1, per_level_scale=6.3))):
        t["hash_grid_" + name] = ("hash_grid", a, points, (sum(n for _, n, _ in grids(a, points[1])), a["features"]))
    t["frequency"] = ("frequency", dict(frequencies=7), (5, 3))
    t["relative_l2_loss"] = ("relative_l2_loss", dict(rows=5), (6, 3, 4), (6, 3, 4))
    t["relative_l2_loss_sum"] = ("relative_l2_loss", dict(rows=4, epsilon=0.25, reduction="sum"), (5, 7), (5, 7))
    t["attention_even"] = ("attention", {}, (2, 3, 5, 8), (2, 3, 6, 8), (2, 3, 6, 8))
    t["attention_packed"] = ("attention_packed", dict(heads=3, causal=True), (2, 7, 36))
    t["huber_loss_none"] = ("huber_loss", dict(delta=0.75, reduction="none"), (5, 3, 2), (5, 3, 2))
    t[logits + "_none"] = (logits, dict(reduction="none"), (6, 3), (6, 3), (3,))
    for name, x, y in (("one_a", (1, 5, 3), (4, 3, 7)), ("one_b", (2, 4, 5, 3), (1, 1, 3, 7)), ("crossed", (2, 1, 5, 3), (1, 4, 3, 7)),
                       ("partly", (2, 1, 5, 3), (2, 4, 3, 7)), ("missing", (4, 5, 3), (2, 4, 3, 7)), ("missing_b", (2, 3, 5, 4), (3, 4, 6))):
        t["matmul_broadcast_" + name] = ("matmul_broadcast", dict(trans_a=False, trans_b=False), x, y)
    t["matmul_broadcast_turned"] = ("matmul_broadcast", dict(trans_a=True, trans_b=True), (2, 1, 3, 5), (4, 7, 3))
    for name, q, mask in (("even", (2, 3, 5, 8), (5, 6)), ("heads", (2, 3, 5, 7), (2, 1, 5, 6)), ("all", (2, 3, 5, 4), (2, 3, 5, 6)),
                          ("keys", (2, 3, 5, 8), (2, 1, 1, 6))):
        t["attention_mask_" + name] = ("attention", dict(factor=0.5), q, q[:2] + (6,) + q[3:], q[:2] + (6,) + q[3:], mask)
    t["attention_mask_causal"] = ("attention", dict(causal=True), (2, 7, 4), (2, 7, 4), (2, 7, 4), (7, 7))
    t["attention_packed_mask"] = ("attention_packed_masked", dict(heads=3), (2, 7, 36), (2, 1, 7, 7))
    t["cross_entropy_none"] = ("cross_entropy", dict(reduction="none", ignore_index=2, label_smoothing=0.125), (9, 5), (9,), (5,))
    t["nll_loss_none"] = ("nll_loss", dict(reduction="none"), (5, 7), (5,), None)
    t["cross_entropy_pictures"] = ("cross_entropy_pictures", dict(ignore_index=1), (2, 5, 3, 4), (2, 3, 4), (5,))
    t["cross_entropy_pictures_none"] = ("cross_entropy_pictures", dict(reduction="none", label_smoothing=0.25), (3, 4, 7), (3, 7), None)
    for name, attr, x in (("", dict(kernel=[2, 3], stride=[2, 1], dilation=[3, 2]), (2, 3, 9, 8)),
                          ("_pad", dict(kernel=[3, 4], stride=[2, 3], pad=[1, 2], dilation=[2, 2]), (2, 3, 9, 11)),
                          ("_ceil", dict(kernel=[2, 2], stride=[3, 2], dilation=[2, 3], ceil_mode=True), (2, 2, 10, 9))):
        t["max_pool2d_dilation" + name] = ("max_pool2d", attr, x)
    t["max_pool1d_dilation"] = ("max_pool1d", dict(kernel=[3], stride=[2], pad=[1], dilation=[3]), (2, 3, 13))
    t["swiglu"] = ("swiglu", dict(scale=3), (3, 7, 5), (3, 7, 5))
    t["swiglu_packed"] = ("swiglu_packed", {}, (2, 5, 24))
    t["swiglu_packed_odd"] = ("swiglu_packed_odd", {}, (5, 3, 14))
    t["rms_norm"] = ("rms_norm", dict(eps=float(np.float32(1e-5))), (2, 5, 24), (24,))
    t["rms_norm_odd"] = ("rms_norm", dict(eps=0.25), (5, 7), (7,))
    for name, a, x, *first in (("halves", {}, (2, 3, 5, 16)), ("neighbours", dict(neighbours=True), (2, 3, 5, 16)),
                               ("far", dict(base=500000.0, position=131000), (1, 2, 7, 64)),
                               ("far_neighbours", dict(base=100000.0, position=131000, neighbours=True), (1, 2, 7, 64)),
                               ("part", dict(dims=6, base=1000.0), (3, 5, 10)),
                               ("part_neighbours", dict(dims=8, neighbours=True, factor=4.0), (2, 5, 12)),
                               ("factors", dict(factors=[1.0, 1.5, 3.0, 8.0], factor=2.0), (2, 3, 5, 8)),
                               ("heads", dict(heads=3, position=77), (2, 5, 24)), ("split", dict(heads=3, split=True), (2, 5, 24)),
                               ("packed", dict(heads=6, rotated=4, neighbours=True), (2, 5, 48)),
                               ("first", {}, (2, 3, 5, 8), (1,)), ("firsts", dict(heads=2, split=True, position=9), (3, 5, 12), (3,))):
        t["rope_" + name] = ("rope", a, x, first[0] if first else None)
    for name, kv_heads, causal, q, keys in (("", 2, False, (2, 6, 5, 8), 7), ("_one", 1, True, (2, 3, 9, 4), 9),
                                            ("_causal", 2, True, (10, 7, 8), 11), ("_each", 3, False, (2, 3, 5, 4), 6),
                                            ("_odd", 3, True, (1, 9, 5, 7), 6)):
        kv = q[:-3] + (kv_heads, keys, q[-1])
        t["attention_groups" + name] = ("attention", dict(kv_heads=kv_heads, causal=causal), q, kv, kv)
    t["attention_groups_mask"] = ("attention", dict(kv_heads=2, factor=0.5), (2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3), (4, 5, 6))
    t["attention_packed_groups"] = ("attention_packed", dict(heads=6, kv_heads=2, causal=True), (2, 7, 40))
    t["attention_packed_groups_one"] = ("attention_packed", dict(heads=3, kv_heads=1), (2, 9, 20))
    t["attention_packed_groups_mask"] = ("attention_packed_masked", dict(heads=4, kv_heads=2), (2, 7, 32), (2, 1, 7, 7))
    for name, attr, grid, origin in (
            ("", dict(tile=[3, 8], factor=2), (3, 5, 7), (2, 3)), ("_one", dict(tile=[4, 12]), (2, 9, 17), (3, 5)),
            ("_whole", dict(tile=[9, 12], factor=3), (2, 3, 4), (0, 0)), ("_edge", dict(tile=[6, 8], factor=4), (5, 4, 6), (10, 16)),
            ("_moved", dict(tile=[5, 4], factor=2), (1, 6, 3), (99, 77)), ("_one_cell", dict(tile=[7, 4], factor=8), (3, 1, 1), (1, 2)),
            ("_large_cells", dict(tile=[2, 4], factor=5), (4, 3, 5), (7, 9))):
        for corners in (False, True):
            t["latent_grid" + name + "_corners" * corners] = ("latent_grid", dict(attr, corners=corners, origin=origin), grid, (1, 2))
    for name, bits, shape, inside in (("inside", 3, (4, 5, 7), True), ("outside", 2, (3, 7, 6), False), ("one_bit", 1, (2, 9), True),
                                      ("many_bits", 12, (5, 3, 4), False), ("level_bits", 8, (3, 33), False)):
        t["quantize_" + name] = ("quantize", dict(bits=bits, inside=inside), shape)
    for name, bits, shape, inside in (("inside", 4, (3, 5, 7), True), ("outside", 2, (2, 9, 5), False)):
        t["quantize_noise_" + name] = ("quantize", dict(bits=bits, inside=inside, noise=True, seed=0x123456789abcde, draw=29), shape)
    op = "linear_cross_entropy"
    t[op] = (op, {}, (9, 8), (13, 8), (9,))
    t[op + "_sum"] = (op, dict(reduction="sum", ignore_index=3), (7, 12), (5, 12), (7,))
    t[op + "_tokens"] = (op + "_tokens", dict(ignore_index=1), (3, 5, 16), (6, 16), (3, 5))
    return t


ACTIVATIONS = {
    "leaky_relu": lambda x, a: F.leaky_relu(x, a["slope"]),
    "elu": lambda x, a: F.elu(x, a["alpha"]),
    "gelu_tanh": lambda x, a: F.gelu(x, approximate="tanh"),
    "softplus": lambda x, a: F.softplus(x, a["beta"], a["threshold"]),
    "clamp": lambda x, a: torch.clamp(x, a["min"], a["max"]),
    "scale": lambda x, a: x * a["factor"] + a["shift"],
    **{op: lambda x, a, op=op: getattr(F, op)(x) for op in ("gelu", "silu", "hardswish")},
}


LABELS = ("softmax_cross_entropy", "cross_entropy", "cross_entropy_tokens", "cross_entropy_pictures", "nll_loss")
EVEN = ("mse", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")  # losses whose target has a gradient
LOSSES = LABELS[1:] + EVEN[1:] + ("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "relative_l2_loss")


def loss(op, options, x):
    if op == "binary_cross_entropy_with_logits":
        return F.binary_cross_entropy_with_logits(x[0], x[1], pos_weight=x[2], **options)
    if op == "relative_l2_loss":  # tiny-cuda-nn's loss: its gradient treats the divisor as a constant
        each = (x[0] - x[1]) ** 2 / (x[0].detach() ** 2 + options.get("epsilon", float(np.float32(0.01))))
        return each.sum() if options.get("reduction") == "sum" else each.mean()
    if op not in LABELS:
        return getattr(F, op)(*x, **options)
    z, t = x[0], x[1].long()
    if op == "cross_entropy_tokens":  # in torch, dimension 1 has the classes
        z = z.transpose(1, 2)
    op = "cross_entropy" if op.startswith("cross") else op
    return getattr(F, op)(z, t, x[2], **options)


def evaluate(op, a, x):
    """Computes the op on its inputs x (None: absent) with attributes a."""
    stride, pad, dilation = a.get("stride"), a.get("pad", [0, 0]), a.get("dilation", [1, 1])
    if op == "conv2d":
        return F.conv2d(*x, stride or [1, 1], pad, dilation, a.get("groups", 1))
    if op.startswith("conv_transpose"):
        return getattr(F, op)(*x, stride or 1, a.get("pad", 0), a.get("output_pad", 0), a.get("groups", 1),
                              a.get("dilation", 1))
    if op == "conv1d":
        return F.conv1d(*x, stride or 1, a.get("pad", 0), a.get("dilation", 1), a.get("groups", 1))
    if op.startswith("max_pool"):
        return getattr(F, op)(x[0], a["kernel"], stride, a.get("pad", 0), a.get("dilation", 1), a.get("ceil_mode", False))
    if op.startswith("avg_pool"):
        return getattr(F, op)(x[0], a["kernel"], stride, a.get("pad", 0), a.get("ceil_mode", False),
                              not a.get("exclude_pad", False))
    if op == "global_max_pool":
        return torch.flatten(getattr(F, "adaptive_max_pool%dd" % (x[0].dim() - 2))(x[0], 1), 1)
    if op == "global_avg_pool":
        return torch.flatten(getattr(F, "adaptive_avg_pool%dd" % (x[0].dim() - 2))(x[0], 1), 1)
    if op.startswith("adaptive"):
        return getattr(F, op)(x[0], a["out"])
    if op == "linear_rows":
        return F.linear(*x)
    if op.startswith("matmul"):
        p = x[0].transpose(-1, -2) if a["trans_a"] else x[0]
        return p @ (x[1].transpose(-1, -2) if a["trans_b"] else x[1])
    if op in ("softmax", "log_softmax"):
        return getattr(F, op)(x[0], a["axis"])
    if op == "softmax_of_scores":
        hidden = torch.ones(x[0].shape[-2:]).tril() == 0 if a.get("causal") else torch.zeros(x[0].shape[-2:]) == 1
        return F.softmax((x[0] * a["factor"]).masked_fill(hidden, -np.inf), -1)
    if op.startswith("attention_packed"):
        kv_heads = a.get("kv_heads", a["heads"])
        by_head = x[0].unflatten(2, (a["heads"] + 2 * kv_heads, -1)).transpose(1, 2)
        parts = list(by_head.split([a["heads"], kv_heads, kv_heads], 1)) + x[1:]
        return evaluate("attention", a, parts).transpose(1, 2).flatten(2)
    if op == "attention":  # the formula of torch's documentation, because torch 1.13 has no public function for attention
        if "kv_heads" in a:  # as torch's enable_gqa does
            x = [x[0]] + [v.repeat_interleave(x[0].shape[-3] // a["kv_heads"], -3) for v in x[1:3]] + x[3:]
        scores = x[0] @ x[1].transpose(-2, -1) * a.get("factor", x[0].shape[-1] ** -0.5) + (x[3] if len(x) > 3 else 0)
        hidden = torch.ones(scores.shape[-2:]).tril() == 0 if a.get("causal") else torch.zeros(scores.shape[-2:]) == 1
        return torch.softmax(scores.masked_fill(hidden, -np.inf), -1) @ x[2]
    if op == "embedding":
        y = F.embedding(x[0].long(), x[1], a.get("padding"))
        return y.movedim(-1, 1) if a.get("channels") else y
    if op == "hash_grid":
        return hash_grid(x[0], x[1], a)
    if op == "frequency":
        return frequency(x[0], a["frequencies"])
    if op == "swiglu":
        return F.silu(x[0]) * x[1]
    if op.startswith("swiglu_packed"):
        return F.silu(x[0].chunk(2, -1)[0]) * x[0].chunk(2, -1)[1]
    if op == "rms_norm":  # as LlamaRMSNorm of transformers
        return x[1] * (x[0] * torch.rsqrt(x[0].pow(2).mean(-1, keepdim=True) + a["eps"]))
    if op == "rope":
        return rope(x[0], x[1], a)
    if op == "latent_grid":
        return latent_grid(x[0], x[1], a)
    if op == "quantize":
        return quantize(x[0], a)
    if op == "index_select":
        return torch.index_select(x[1], 0, x[0].long())
    if op.startswith("linear_cross_entropy"):
        return F.cross_entropy(F.linear(x[0], x[1]).flatten(0, -2), x[2].flatten().long(), **a)
    if op == "softmax_cross_entropy":
        return F.cross_entropy(x[0][:a["rows"]], x[1][:a["rows"]].long())
    if op == "permute":
        return x[0].permute(a["perm"])
    if op == "transpose":
        return x[0].transpose(a["axis0"], a["axis1"])
    if op == "slice":
        at = [slice(None)] * x[0].dim()
        at[a["axis"]] = slice(a["start"], a["stop"], a["step"])
        return x[0][tuple(at)]
    if op == "flip":
        return x[0].flip(a["axis"])
    if op == "concat":
        return torch.cat(x, a["axis"])
    if op == "pad":
        pairs = [n for both in zip(reversed(a["before"]), reversed(a["after"])) for n in both]
        return F.pad(x[0], pairs, value=a["value"])
    if op == "expand":
        return x[0].expand(a["shape"])
    if op == "upsample2d":
        mode, corners = ("nearest", None) if not a.get("mode") else ("bilinear", a.get("align_corners", False))
        return F.interpolate(x[0], a["size"], mode=mode, align_corners=corners)
    if op == "mse":
        return F.mse_loss(x[0][:a["rows"]], x[1][:a["rows"]])
    if op in LOSSES:
        return loss(op, {k: v for k, v in a.items() if k != "rows"},
                    [v if k == 2 else v[:a.get("rows")] for k, v in enumerate(x)])
    if op in ACTIVATIONS:
        return ACTIVATIONS[op](x[0], a)
    if op == "where":
        return torch.where(x[0] != 0, x[1], x[2])
    if op.endswith("_over"):
        return {"max": torch.amax, "min": torch.amin}[op[:3]](x[0], a["axes"], a.get("keepdim", False))
    if op == "masked_fill":
        return x[0].masked_fill(x[1] != 0, a["value"])
    return getattr(F if op in ("linear", "relu", "prelu") else torch, op)(*x)  # the other ops have torch's names


def is_mask(op, k):
    return (op, k) in (("where", 0), ("masked_fill", 1))


def has_no_gradient(op, attr, k):
    """Returns whether input k has no gradient because it has masks, ids, labels of linear_cross_entropy, the origin of a tile
    or a first position. For the other losses, the result means nothing: record() decides which of their inputs have a
    gradient."""
    return (is_mask(op, k) or k == 0 and "bound" in attr or (op, k) in (("latent_grid", 1), ("rope", 1))
            or op.startswith("linear_cross") and k == 2)


def draw(rng, op, attr, k, shape, first_shape):
    """Makes input k of an op, as float32: labels, weights, probabilities, ids, positions, an origin, a mask or random numbers, as
    the op needs."""
    if op in LABELS and k == 1:
        return rng.integers(0, first_shape[1 if op.endswith("pictures") else -1], shape).astype(np.float32)
    if op in LOSSES and k == 2 or op == "binary_cross_entropy" or op.startswith(("binary", "kl")) and k == 1:
        x = rng.uniform(0.05, 0.95, shape)
        return (np.log(x) if attr.get("log_target") else x).astype(np.float32)
    if "bound" in attr and k == 0:
        return rng.integers(0, attr["bound"], shape).astype(np.float32)
    if op.startswith("linear_cross") and k == 2:
        return rng.integers(0, 5, shape).astype(np.float32)
    if (op, k) == ("rope", 1):
        return rng.integers(0, 131072, shape).astype(np.float32)
    if op == "hash_grid" and k == 0:
        return rng.uniform(-0.1, 1.1, shape).astype(np.float32)
    if op == "latent_grid" and k == 1:
        return np.array([attr["origin"]], np.float32)
    if op == "quantize":
        return rng.uniform(*(0, 1) if attr["inside"] else (-0.5, 1.5), shape).astype(np.float32)
    x = np.asarray(rng.standard_normal(shape) * attr.get("scale", 1)).astype(np.float32)
    if is_mask(op, k):
        x = (x > 0).astype(np.float32)
    if op in ("log", "sqrt") or op == "pow" and k == 0 or op == "div" and k == 1:
        x = np.abs(x) + np.float32(0.25)
    if op.endswith("_over"):
        x = np.round(2 * x) / 2  # so that some elements are equal
    if op in ("relu", "abs"):
        x.flat[::5] = 0  # some inputs are 0; the gradient there is 0
    return x


def record(rng, name, case, tensors):
    op, attr, *shapes = case
    inputs, has_gradient = [], []
    for k, shape in enumerate(shapes):
        inputs.append(None if shape is None else torch.from_numpy(draw(rng, op, attr, k, shape, shapes[0])).double())
        has_gradient.append(shape is not None and (k == 0 or op not in LABELS + LOSSES or k == 1 and op in EVEN)
                            and not has_no_gradient(op, attr, k))
        if has_gradient[k]:
            inputs[k].requires_grad_()
    out = evaluate(op, attr, inputs)
    grad_out = torch.from_numpy(draw(rng, "", {}, 0, tuple(out.shape), None)).double()
    out.backward(grad_out)
    for k, x in enumerate(inputs):
        if x is not None:
            tensors["%s/in%d" % (name, k)] = x.detach().float().numpy()
        if has_gradient[k]:
            tensors["%s/grad_in%d" % (name, k)] = x.grad.numpy()
    tensors[name + "/out"] = out.detach().numpy()
    tensors[name + "/grad_out"] = grad_out.float().numpy()


def main():
    torch.set_num_threads(1)
    rng = np.random.Generator(np.random.PCG64(4))
    cases, tensors = table(), {}
    metadata = {"cases": " ".join(cases)}
    for name, case in cases.items():
        record(rng, name, case, tensors)
        metadata[name] = json.dumps({"op": case[0], **{k: v for k, v in case[1].items() if k not in ("scale", "bound", "inside", "origin")}})
    tensors = {name: np.ascontiguousarray(t).reshape(t.shape) for name, t in tensors.items()}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops.safetensors")
    print(path, safetensors_file.write(path, tensors, metadata), "bytes,", len(cases), "cases")


if __name__ == "__main__":
    main()
