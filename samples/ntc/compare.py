#!/usr/bin/env python3
"""Compares the PSNR and FLIP of vkt-ntc with those of BC7/BC4, BC1/BC4, ASTC 12x12 and JPEG XL, for the same images.

    python3 samples/ntc/compare.py FOLDER SET.vtc...

SET.vtc is a file that vkt-ntc has made, with a name of the form NAME-RATE.vtc. The original images of this file, a set, are
FOLDER/NAME/{albedo,normal,gloss}.png. Needs numpy, Pillow, etcpak, texture2ddecoder and flip-evaluator of PyPI, and the
programs vkt-ntc, astcenc, cjxl and djxl in PATH. Prints a table in Markdown. PSNR is over all channels of a set; a gray image
counts as one channel. FLIP is the mean over the images of the set.
"""
import math
import os
import subprocess
import sys
import tempfile

import etcpak
import flip_evaluator
import numpy
import texture2ddecoder
from PIL import Image

KINDS = ("albedo", "normal", "gloss")


def load(path):
    image = numpy.asarray(Image.open(path).convert("RGB"))
    gray = (image == image[:, :, :1]).all()
    return image[:, :, :1] if gray else image


def rgb(image):
    return image if image.shape[2] == 3 else numpy.repeat(image, 3, axis=2)


def call(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def score(original, decoded):
    """Returns the PSNR over all channels, and the mean FLIP."""
    squares = count = flip = 0.0
    for a, b in zip(original, decoded):
        b = b[:, :, : a.shape[2]]
        squares += ((a.astype(float) - b) ** 2).sum()
        count += a.size
        ref, test = (rgb(x).astype(numpy.float32) / 255 for x in (a, b))
        flip += flip_evaluator.evaluate(ref, test, "LDR", applyMagma=False)[1]
    return 10 * math.log10(255**2 * count / squares), flip / len(original)


def blocks(original, colour):
    """Compresses colour images to `colour` ("bc7" or "bc1"), gray images to BC4. Returns the decoded images,
    and the compressed size in bytes."""
    out, size = [], 0
    for image in original:
        height, width, channels = image.shape
        pixels = numpy.dstack([rgb(image), numpy.full((height, width), 255, numpy.uint8)])
        kind = colour if channels == 3 else "bc4"
        if kind == "bc7":
            data = etcpak.compress_bc7(pixels.tobytes(), width, height)
        elif kind == "bc1":
            data = etcpak.compress_bc1(pixels[:, :, [0, 1, 2, 3]].tobytes(), width, height)
        else:
            data = etcpak.compress_bc4(pixels.tobytes(), width, height)
        decode = getattr(texture2ddecoder, "decode_" + kind)
        bgra = numpy.frombuffer(decode(data, width, height), numpy.uint8).reshape(height, width, 4)
        back = bgra[:, :, [2, 1, 0]]
        if (kind == "bc1") and score([rgb(image)], [back])[0] < score([rgb(image)], [back[:, :, ::-1]])[0]:
            back = back[:, :, ::-1]  # the order of channels differs between versions of etcpak
        out.append(back)
        size += len(data)
    return out, size


def astc(paths, folder):
    out, size = [], 0
    for path in paths:
        call("astcenc", "-cl", path, folder + "/x.astc", "12x12", "-thorough")
        call("astcenc", "-dl", folder + "/x.astc", folder + "/x.png")
        out.append(numpy.asarray(Image.open(folder + "/x.png").convert("RGB")))
        size += os.path.getsize(folder + "/x.astc")
    return out, size


def jxl(paths, folder, most):
    """Finds approximately the smallest distance (-d of cjxl) at which all files together have at most `most` bytes. Returns the
    decoded images, and the compressed size in bytes. None: the files are larger even with the largest -d that is tried."""
    low, high, best = 0.05, 25.0, None
    for _ in range(9):
        distance = math.sqrt(low * high)
        out, size = [], 0
        for path in paths:
            call("cjxl", path, folder + "/x.jxl", "-d", str(distance))
            call("djxl", folder + "/x.jxl", folder + "/x.png")
            out.append(numpy.asarray(Image.open(folder + "/x.png").convert("RGB")))
            size += os.path.getsize(folder + "/x.jxl")
        if size <= most:
            best, high = (out, size), distance
        else:
            low = distance
    return best


def ntc(path, folder):
    call("vkt-ntc", "unpack", path, "-o", folder)
    return [numpy.asarray(Image.open(f"{folder}/{k}.png").convert("RGB")) for k in KINDS], os.path.getsize(path)


def main():
    root, files = sys.argv[1], sys.argv[2:]
    print("| set | coder | bits a pixel and channel | PSNR | FLIP |\n| --- | --- | --- | --- | --- |")
    shown = set()
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            name = os.path.basename(file).rsplit("-", 1)[0]
            paths = [f"{root}/{name}/{k}.png" for k in KINDS]
            original = [load(p) for p in paths]
            values = sum(image.size for image in original)
            rows = []
            if name not in shown:
                shown.add(name)
                rows += [("BC7, BC4", blocks(original, "bc7")), ("BC1, BC4", blocks(original, "bc1"))]
                rows += [("ASTC 12x12", astc(paths, folder))]
            packed = ntc(file, folder)
            rows += [("vkt-ntc", packed), ("JPEG XL", jxl(paths, folder, packed[1]))]
            for coder, result in rows:
                if result is None:
                    print(f"| {name} | {coder} | no file is that small | | |")
                    continue
                psnr, flip = score(original, result[0])
                print(f"| {name} | {coder} | {8 * result[1] / values:.3f} | {psnr:.2f} | {flip:.4f} |", flush=True)


if __name__ == "__main__":
    main()
