"""Makes tests/golden/images: images, and Pillow's results for them (see README.md).

python3 tests/golden/make_image_golden.py          writes the files
python3 tests/golden/make_image_golden.py DATA     prints checksums of real data sets, for tests/data/test_images.c
"""
import csv
import os
import sys
import zlib

import numpy
from PIL import Image, ImageOps

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "images")
SIZES = [(1, 1), (7, 5), (20, 20), (31, 64), (53, 20), (52, 38), (100, 37), (80, 90)]  # target sizes; the source has 53 x 37


def path(name):
    return os.path.join(FOLDER, name)


def save(image, name):
    image.save(path(name), optimize=True)


def noise(width, height):
    """Returns an image with flat parts, ramps and noise from 0 to 255. So errors of averages and of rounding change the resized
    image."""
    rng = numpy.random.default_rng(3)
    pixels = rng.integers(0, 256, (height, width, 3))
    pixels[:, : width // 3] = numpy.linspace(0, 255, height)[:, None, None]
    pixels[: height // 4] = 255 * (numpy.arange(width)[None, :, None] // 5 % 2)
    pixels[-height // 5 :, :, 1] = 0
    return Image.fromarray(pixels.astype(numpy.uint8), "RGB")


def scene(width, height):
    """Returns an image of smooth colours with one edge. JPEG stores it in few bytes."""
    y, x = numpy.mgrid[0:height, 0:width]
    red = 255 * x / (width - 1)
    green = 255 * y / (height - 1)
    blue = 128 + 100 * numpy.sin(x / 5) * numpy.cos(y / 4)
    pixels = numpy.stack([red, green, blue], axis=-1)
    pixels[(x - width / 3) ** 2 + (y - height / 2) ** 2 < height * height / 16] = (250, 20, 60)
    return Image.fromarray(pixels.round().astype(numpy.uint8), "RGB")


def checksum(table, prepare):
    """Returns the CRC-32 of the bytes of all images, each as (C,H,W), in the order of the table."""
    crc = 0
    with open(table, newline="") as lines:
        for row in csv.DictReader(lines):
            image = prepare(Image.open(os.path.join(os.path.dirname(table), row["path"])).convert("RGB"))
            crc = zlib.crc32(numpy.asarray(image).transpose(2, 0, 1).tobytes(), crc)
    return crc


def cut_middle(image, shorter, width, height):
    """Does Resize(shorter) and CenterCrop((height, width)) of torchvision."""
    w, h = image.size
    image = image.resize((shorter * w // min(w, h), shorter * h // min(w, h)), Image.BILINEAR)
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


def print_checksums(data):
    print(f"cifar10-jpeg  {checksum(data + '/cifar10-jpeg/test.csv', lambda i: i):#010x}")
    caltech = data + "/caltech101/valid.csv"
    print(f"stretched     {checksum(caltech, lambda i: i.resize((64, 48), Image.BILINEAR)):#010x}")
    print(f"cut           {checksum(caltech, lambda i: cut_middle(i, 40, 37, 30)):#010x}")


def main():
    if len(sys.argv) > 1:
        return print_checksums(sys.argv[1])
    os.makedirs(FOLDER, exist_ok=True)
    source = noise(53, 37)
    save(source, "noise.png")
    for width, height in SIZES:
        save(source.resize((width, height), Image.BILINEAR), f"noise_{width}x{height}.png")
        save(source.convert("L").resize((width, height), Image.BILINEAR), f"gray_{width}x{height}.png")

    image = scene(43, 29)
    kinds = {
        "420": (image, {"subsampling": "4:2:0"}),
        "444": (image, {"subsampling": "4:4:4"}),
        "progressive": (image, {"progressive": True}),
        "gray": (image.convert("L"), {}),
        "cmyk": (image.convert("CMYK"), {}),
    }
    for name, (image, options) in kinds.items():
        image.save(path(f"{name}.jpg"), quality=85, **options)
        decoded = Image.open(path(f"{name}.jpg"))
        save(decoded.convert("RGB"), f"{name}_rgb.png")
        save(decoded.convert("RGB").convert("L"), f"{name}_l.png")

    small = scene(24, 17)
    small.save(path("turned.jpg"), quality=85)
    decoded = Image.open(path("turned.jpg")).convert("RGB")
    for orientation in range(1, 9):
        carrier = decoded.copy()
        carrier.getexif()[0x0112] = orientation
        save(ImageOps.exif_transpose(carrier), f"turned_{orientation}.png")


main()
