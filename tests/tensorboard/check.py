"""check.py VKT_MNIST FOLDER - runs VKT_MNIST with --run in FOLDER and reads the event files with tensorboard.

The last line is "N passed, N failed, N skipped"; the status is 0 only when nothing failed.
"""

import csv
import json
import logging
import random
import struct
import subprocess
import sys
import time
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

logging.getLogger("tensorboard").setLevel(logging.ERROR)  # tensorboard logs a line when a run restarts

SIDE, CLASSES = 16, 4
COLUMNS = {
    "loss/training": "train_loss",
    "loss/validation": "val_loss",
    "accuracy/training": "train_acc",
    "accuracy/validation": "val_acc",
    "run/learning rate": "lr",
}

passed = failed = 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(f"FAILED: {what}")


def write_images(folder, part, rows):
    """Writes IDX files of gray images. An image is noise with one brighter quarter. The index of this quarter is the class."""
    labels = bytes(i % CLASSES for i in range(rows))
    pixels = bytearray()
    for label in labels:
        for y in range(SIDE):
            for x in range(SIDE):
                bright = y // (SIDE // 2) * 2 + x // (SIDE // 2) == label
                pixels.append(random.randrange(120) + (100 if bright else 0))
    (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, rows, SIDE, SIDE) + pixels)
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, rows) + labels)


def train(program, folder, epochs, kill_after=None):
    """Runs the program to its end, or kills it when history.csv has `kill_after` epochs or more. Returns the status."""
    command = [program, "-q", "--data", folder / "data", "--batch", "32", "--schedule", "exponential=0.9"]
    child = subprocess.Popen(command + ["--run", folder / "run", "--epochs", str(epochs)])
    while kill_after is not None and child.poll() is None:
        history = folder / "run" / "history.csv"
        if history.exists() and len(history.read_text().splitlines()) > kill_after:
            child.kill()
        time.sleep(0.002)
    status = child.wait()
    # The name of an event file contains the second in which the file was made. tensorboard reads the files in the order of
    # their names. So the next file must be made in a later second.
    time.sleep(1.1)
    return status


def read(folder):
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0, "tensors": 0})
    events.Reload()
    return events


def as_f32(text):
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


def check_scalars(events, folder, when):
    """Checks that each tag of COLUMNS has the numbers of its column in history.csv, and no other numbers. Returns the steps."""
    with open(folder / "run" / "history.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    steps = [int(row["epoch"]) for row in rows]
    for tag, column in COLUMNS.items():
        scalars = events.Scalars(tag) if tag in events.Tags()["scalars"] else []
        check([s.step for s in scalars] == steps, f"{when}: steps of {tag} are {[s.step for s in scalars]}, want {steps}")
        # An event stores an f32. history.csv has nine digits of a float64. So as_f32 rounds the number to f32.
        values = [(s.value, as_f32(row[column])) for s, row in zip(scalars, rows)]
        wrong = [v for v in values if abs(v[0] - v[1]) > 1e-6 * abs(v[1])]
        check(values and not wrong, f"{when}: values of {tag} (read, written): {wrong}")
    return steps


def text_of(events, tag):
    """Returns the text of a tag, or "". Some versions of tensorboard add /text_summary to the tag."""
    for name in (tag, f"{tag}/text_summary"):
        if name in events.Tags()["tensors"]:
            return b"".join(events.Tensors(name)[-1].tensor_proto.string_val).decode()
    return ""


def check_texts(events, folder, when):
    options = text_of(events, "options")
    written = (folder / "run" / "options.json").read_text()
    check(written in options, f"{when}: options are not those of options.json: {options[:200]!r}")
    begin, end = options.find("{"), options.rfind("}")
    check(begin >= 0 and json.loads(options[begin : end + 1])["schema"] == "vktrain-options-1", f"{when}: options as JSON")
    check("conv1 (Conv2d)" in text_of(events, "summary"), f"{when}: the summary has the layers")


def check_image(events, steps, when):
    images = events.Images("history") if "history" in events.Tags()["images"] else []
    check([p.step for p in images] == steps, f"{when}: images at {[p.step for p in images]}, want {steps}")
    for p in images:
        size = struct.unpack(">2I", p.encoded_image_string[16:24])
        check(p.encoded_image_string[:8] == b"\x89PNG\r\n\x1a\n" and size == (p.width, p.height), f"{when}: a PNG")


def main():
    program, folder = sys.argv[1], Path(sys.argv[2])
    random.seed(1)
    (folder / "data").mkdir()
    write_images(folder / "data", "train", 90)
    write_images(folder / "data", "t10k", 30)

    check(train(program, folder, 2) == 0, "two epochs: status 0")
    events = read(folder / "run")
    check_scalars(events, folder, "two epochs")
    check_texts(events, folder, "two epochs")
    check_image(events, [2], "two epochs")

    check(train(program, folder, 5) == 0, "five epochs: status 0")
    events = read(folder / "run")
    check(check_scalars(events, folder, "five epochs") == [1, 2, 3, 4, 5], "five epochs: the history has them")
    check_texts(events, folder, "five epochs")
    check_image(events, [5], "five epochs")  # the second run continues at step 2, so TensorBoard drops that step's image

    check(train(program, folder, 5) == 0, "nothing left to do: status 0")
    check_scalars(read(folder / "run"), folder, "nothing left to do")
    check_image(read(folder / "run"), [5], "nothing left to do")

    train(program, folder, 200, kill_after=10)
    check(train(program, folder, 40) == 0, "after kill -9: status 0")
    check_scalars(read(folder / "run"), folder, "after kill -9")

    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
