"""Writes safetensors files with numpy alone: the header's length in bytes (u64), JSON header, data (little endian)."""
import json
import struct

DTYPES = {"float64": "F64", "float32": "F32", "uint8": "U8"}


def write(path, tensors, metadata):
    """Writes a file. tensors: {name: numpy array}, metadata: {key: text}. The widest dtypes come first, so that every tensor
    is aligned. Returns the size of the file in bytes."""
    order = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)  # the sort is stable: equal widths keep their order
    header, end = {"__metadata__": metadata}, 0
    for name in order:
        t = tensors[name]
        header[name] = {"dtype": DTYPES[t.dtype.name], "shape": list(t.shape), "data_offsets": [end, end + t.nbytes]}
        end += t.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            f.write(tensors[name].astype(tensors[name].dtype.newbyteorder("<")).tobytes())
    return 8 + len(text) + end
