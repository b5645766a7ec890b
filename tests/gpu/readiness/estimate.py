"""estimate.py - estimates how long a step of each network takes on real GPUs, from what readiness.py counts.

The time of a node is the time of its memory traffic or of its arithmetic, whichever is longer. The memory traffic is slower
if the node's largest dispatch has too few lanes to fill the device. Only the arithmetic of kernels with products (matrix
products, convolutions, attention) is included, because other kernels are bound by memory. This arithmetic is slower if the
dispatch has too few lanes. The time of a step is the sum of the times of its nodes and its barriers. The constants below are
further assumptions. No GPU has confirmed them.
"""

# "tera" is the peak of f32 in 10^12 operations per second. "matrix" is the peak of f16 matrix products with f32 sums, in
# the same unit; 0: not used. "gb" is the bandwidth of the memory in GB/s. "cores" is the number of SMs (NVIDIA),
# compute units (AMD) or Xe cores (Intel). These numbers are from vendors' data sheets. "barrier" is the time of a barrier in
# microseconds. This time is a guess.
DEVICES = {
    "RTX 4090": {"f32": "ada-f32", "f16": "ada-f16", "tera": 82.6, "matrix": 165, "gb": 1008, "cores": 128, "barrier": 3},
    "RX 7900 XTX": {"f32": "navi31-f32", "f16": "navi31-f16", "tera": 61.4, "matrix": 123, "gb": 960, "cores": 96, "barrier": 4},
    "Arc A770": {"f32": "dg2", "tera": 19.7, "matrix": 0, "gb": 560, "cores": 32, "barrier": 5},
}
PRODUCT_LANES, LANES = 128, 512  # lanes that fill a core: PRODUCT_LANES in the arithmetic of products, LANES in memory traffic
LATENCY = 0.75  # part of the time in which a product's loop is not waiting for memory
BANDWIDTH = 0.8  # part of the bandwidth that a kernel reaches
PRODUCT_SHARE = 0.5  # part of a product's instructions that multiply, if readiness.py has not counted them
CLOCKS = {"navi31-f16": (32, 2), "ada-f16": (16, 1)}  # clock cycles of a matrix product, and of any other instruction


def share_of(document, kernel):
    """Returns the part of the device's peak that a product can reach, from the instructions of its busiest inner loop."""
    matrix, other = CLOCKS.get(document, (1, 1))
    if kernel.vector is not None:
        return matrix / (matrix + other * kernel.vector)
    if kernel.slots is not None:
        return matrix / max(matrix, other * kernel.slots)
    return kernel.math / 100 if kernel.math is not None else PRODUCT_SHARE


def seconds_of(device, document, program, pipelines):
    """Returns the estimated time of a step and the time of its barriers, in seconds."""
    nodes = {}
    for d in program["dispatches"]:
        nodes.setdefault(str(d["node"]), []).append(d)
    total = 0
    for node, dispatches in nodes.items():
        cost = program["costs"][node]
        lanes = max(d["groups"] * d["lanes"] for d in dispatches)
        time = cost["bytes"] / (device["gb"] * 1e9 * BANDWIDTH) / min(1, lanes / (device["cores"] * LANES))
        for d in dispatches:
            k = pipelines[d["pipeline"]]
            if k.has_products:
                peak = device["matrix"] if k.vector is not None or k.slots is not None else device["tera"]
                fill = min(1, d["groups"] * d["lanes"] / (device["cores"] * PRODUCT_LANES))
                time = max(time, cost["flops"] / (peak * 1e12 * share_of(document, k) * LATENCY * fill))
        total += time
    barriers = program["barriers"] * device["barrier"] * 1e-6
    return total + barriers, barriers


def table_of(documents):
    """documents: name -> (JSON, Kernel of each pipeline). Returns the table of estimates; "" if a document is missing."""
    columns = [(name, p, d[p]) for name, d in DEVICES.items() for p in ("f32", "f16") if p in d]
    if any(document not in documents for _, _, document in columns):
        return ""
    lines = ["| network | " + " | ".join(f"{name}, {p}" for name, p, _ in columns) + " |", "| --- |" + " --- |" * len(columns)]
    for i, program in enumerate(documents[columns[0][2]][0]["programs"]):
        if not program["network"]:
            continue
        cells = []
        for name, _, document in columns:
            doc, pipelines = documents[document]
            all_of_it, barriers = seconds_of(DEVICES[name], document, doc["programs"][i], pipelines)
            cells.append(f"{1e3 * all_of_it:.2f} ({100 * barriers / all_of_it:.0f} %)")
        lines.append(f"| {program['name']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
