#!/usr/bin/env python3
"""readiness.py TABLE EXCEPTIONS [--write] NAME=FILE... - makes the tables of docs/gpu.md and checks them.

FILE is what the program `readiness` printed for NAME, which is a key of RULES. TABLE is docs/gpu.md. It has a table
for each NAME. The script makes new tables. It compares them with the old ones, or replaces the old ones (--write).
EXCEPTIONS has the kernels that break a limit, and the number of barriers of each network, with the reasons. Prints what is
wrong: a broken limit without an exception, an exception whose value differs from the measured value, an exception that is
not needed, an outdated table. Without --write, a FILE is skipped if its device, driver, subgroup size or support of cooperative
matrices differs from the table's (see head_of). The last line is "N passed, N failed, N skipped": FILEs without a fault,
with a fault, and skipped FILEs.
"""
import collections
import functools
import json
import re
import sys

import estimate

MIN_WAVES_PRODUCT, MIN_WAVES = 6, 8
MIN_MATH = 90  # percent of the vector instructions that are multiply-adds, in the busiest inner loop of a product
# For each matrix product in the busiest inner loop of a cooperative kernel: loads from shared memory, vector instructions.
MAX_SHARED_LOADS, MAX_VECTOR = 2.5, 4
MAX_SLOTS, MAX_SLOTS_CONV = 20, 40  # all instructions of this loop for each matrix product, on NVIDIA; _CONV: in convolutions
MIN_THREADS = 1024

# The rules for the FILE of each NAME. Threads and barriers depend on the engine and not on the compiler. So they are
# checked in only one FILE of f32 and one FILE of f16. Vega has no rule for waves: its maximum is 10 waves, and the
# limits are for RDNA, which has 16 or more.
RULES = {
    "gfx1100": ("spills", "waves", "math", "threads", "barriers"),
    "navi21": ("spills",),
    "vega10": ("spills",),
    "navi31-f32": ("spills", "waves", "math"),
    "navi31-f16": ("spills", "waves", "math", "shared_loads", "vector", "threads", "barriers"),
    "navi31-f32-split": ("spills", "waves", "shared_loads", "vector"),
    "dg2": ("spills",),
    "a740": ("spills",),
    "ada-f32": ("spills",),
    "ada-f16": ("spills", "slots"),
}
# The names that a driver gives to registers, bytes of shared memory, spills and waves. The four lines are for RADV, ANV, Turnip
# and NVK. ANV counts registers of 32 bytes, which the lanes share. ANV does not report waves. Turnip counts vec4 registers.
# ANV and Turnip count the instructions that spill.
STATISTICS = (
    ("VGPRs", "LDS size", "Spilled VGPRs", "Subgroups per SIMD"),
    ("Max live registers", "Workgroup Memory Size", "Spill Count", None),
    ("Registers used", None, "STP Count", "Max Waves Per Core"),
    ("Number of GPRs", None, "Spills to memory", "Max warps/SM"),
)
PRODUCT = re.compile(r"^(GEMM|CONV2D|CONV2D_DW)_(SHARED|COOP|SPLIT)(_DX)?$")
ATTENTION = re.compile(r"^ATTENTION_(SHARED|COOP)(_DQ|_DKV)?$")  # these kernels compute exponentials between several products


# ---- assembly of AMD's GPUs (printed by LLVM and ACO) and of NVIDIA's GPUs (printed by NAK) ----


def kind_of(op):
    """Returns what an instruction does; None for waits, delays, s_nop and s_clause."""
    if re.match(r"v_(wmma|swmmac|mfma)", op):
        return "matrix"
    if re.match(r"v_(dual_)?(pk_)?(fma|fmac|mac|mad|fmaak|fmamk|dot2|dot2c)_(f|legacy_f|mix)", op):
        return "multiply"
    if op.startswith("v_"):
        return "vector"
    if re.match(r"ds_(load|read)", op):
        return "shared load"
    if op.startswith("ds_"):
        return "shared store"
    if re.match(r"(buffer|global|flat|image|scratch)_", op):
        return "memory"
    if re.match(r"s_(waitcnt|wait|delay|nop|clause)", op):
        return None
    return "scalar"


class Block:
    def __init__(self):
        self.counts = collections.Counter()
        self.jumps = []
        self.falls_through = True


def blocks_of(text):
    """Returns the basic blocks, and for each label the index of its block."""
    blocks, index = [Block()], {}
    for line in text.split("\n"):
        label = re.match(r"^(BB\d+):", line)
        if label:
            index[label[1]] = len(blocks)
            blocks.append(Block())
            continue
        if not line.startswith("\t"):
            continue
        code = line.split(";")[0]
        for part in code.split("::"):  # a dual-issue instruction has two parts
            op = part.split()[0] if part.split() else ""
            kind = kind_of(op) if op else None
            if kind:
                blocks[-1].counts[kind] += 1
            if op.startswith(("s_cbranch", "s_branch")):
                blocks[-1].jumps += re.findall(r"\bBB\d+\b", part)
            if op in ("s_branch", "s_endpgm"):
                blocks[-1].falls_through = False
    return blocks, index


def followers(blocks, index):
    """Returns for each block the indices of the blocks that may come after it."""
    result = []
    for i, b in enumerate(blocks):
        after = {index[j] for j in b.jumps if j in index}
        if b.falls_through and i + 1 < len(blocks):
            after.add(i + 1)
        result.append(after)
    return result


NAK_KINDS = {"hmma": "matrix", "ffma": "multiply", "lds": "shared load", "ldsm": "shared load", "sts": "shared store"}


def nak_blocks_of(text):
    """Returns the basic blocks of NAK's assembly, and for each one the indices of the blocks that may come after it."""
    blocks, after = [], []
    for line in text.split("\n"):
        code = line.split("//")[0].strip()
        if re.match(r"block\S* \d+ ", code):
            blocks.append(Block())
        elif code.startswith("} -> ["):
            after.append({int(k) for k in re.findall(r"\d+", code)})
        elif code and blocks:
            op = re.sub(r"^@!?\S+ ", "", code).split(" = ", 1)[-1].split()[0].split(".")[0]
            blocks[-1].counts[NAK_KINDS.get(op, "other")] += 1
    return blocks, after


def dominators(after):
    """Returns two lists. For each block, one list has its dominators (the blocks on every path to this block), as bits. The
    other list has the indices of its predecessors (the blocks that may come directly before this block)."""
    n = len(after)
    before = [[i for i in range(n) if k in after[i]] for k in range(n)]
    dom = [1] + [(1 << n) - 1] * (n - 1)
    changed = True
    while changed:
        changed = False
        for k in range(1, n):
            new = (1 << n) - 1 if before[k] else 0
            for i in before[k]:
                new &= dom[i]
            new |= 1 << k
            changed = changed or new != dom[k]
            dom[k] = new
    return dom, before


def inner_loops(text):
    """Returns for each innermost loop how many instructions of each kind it has. The loops are natural loops (Aho, Lam, Sethi &
    Ullman, Compilers, section 9.6)."""
    if re.search(r"^block\S* 0 ", text, re.M):
        blocks, after = nak_blocks_of(text)
    else:
        blocks, index = blocks_of(text)
        after = followers(blocks, index)
    dom, before = dominators(after)
    loops = {}
    for i, targets in enumerate(after):
        for head in targets:
            if not dom[i] >> head & 1:
                continue
            body, todo = loops.setdefault(head, {head}), [i]
            while todo:
                k = todo.pop()
                if k not in body:
                    body.add(k)
                    todo += before[k]
    inner = [a for a in loops.values() if not any(b < a for b in loops.values())]
    return [sum((blocks[k].counts for k in body), collections.Counter()) for body in inner]


@functools.cache
def busiest_loop(text):
    """Returns the instruction counts of the inner loop with the most matrix products or multiply-adds; empty: no loop."""
    return max(inner_loops(text), key=lambda c: (50 * c["matrix"] + c["multiply"], sum(c.values())), default=collections.Counter())


# ---- one line for each kernel ----


class Kernel:
    """The worst numbers of a kernel over all of its pipelines and dispatches in some programs of one device."""

    def __init__(self, name):
        self.name = name
        self.has_products = bool(PRODUCT.match(name) or ATTENTION.match(name))
        self.min_waves = MIN_WAVES_PRODUCT if PRODUCT.match(name) else MIN_WAVES
        self.registers = self.shared = self.spills = self.pipelines = self.dispatches = 0
        self.waves = self.threads = self.math = self.shared_loads = self.vector = self.slots = None

    def add_pipeline(self, p):
        s = p["statistics"]
        self.pipelines += 1
        registers, shared, spills, waves = next(names for names in STATISTICS if names[0] in s)
        self.registers = max(self.registers, s[registers])
        self.shared = max(self.shared, s.get(shared, 0))
        self.spills = max(self.spills, s[spills])
        if waves:
            self.waves = least(self.waves, s[waves])
        if not self.has_products or registers not in ("VGPRs", "Number of GPRs"):
            return
        c = busiest_loop(p["assembly"])
        if registers == "Number of GPRs":
            if c["matrix"]:
                self.slots = most(self.slots, sum(c.values()) / c["matrix"])
            elif c["multiply"]:
                self.math = least(self.math, 100 * c["multiply"] / sum(c.values()))
        elif c["matrix"]:
            self.shared_loads = most(self.shared_loads, c["shared load"] / c["matrix"])
            self.vector = most(self.vector, (c["vector"] + c["multiply"]) / c["matrix"])
        elif c["multiply"]:
            self.math = least(self.math, 100 * c["multiply"] / (c["multiply"] + c["vector"]))

    def add_dispatch(self, d):
        self.dispatches += 1
        self.threads = least(self.threads, d["groups"] * d["lanes"])

    def broken(self):
        """Returns (rule, measured value) of each limit that the kernel breaks."""
        if self.spills:
            yield "spills", self.spills
        if self.waves is not None and self.waves < self.min_waves:
            yield "waves", self.waves
        if self.math is not None and self.math < MIN_MATH:
            yield "math", round(self.math)
        if self.shared_loads is not None and self.shared_loads > MAX_SHARED_LOADS:
            yield "shared_loads", round(self.shared_loads, 1)
        if self.vector is not None and self.vector > MAX_VECTOR:
            yield "vector", round(self.vector, 1)
        if self.slots is not None and self.slots > (MAX_SLOTS_CONV if self.name.startswith("CONV2D") else MAX_SLOTS):
            yield "slots", round(self.slots, 1)
        if self.threads < MIN_THREADS:
            yield "threads", int(self.threads)


def least(a, b):
    return b if a is None else min(a, b)


def most(a, b):
    return b if a is None else max(a, b)


def networks_of(doc):
    return [p for p in doc["programs"] if p["network"]]


def cases_of(doc):
    return [p for p in doc["programs"] if not p["network"]]


def kernels_of(doc, programs):
    kernels = {}
    seen = set()
    for program in programs:
        for d in program["dispatches"]:
            k = kernels.setdefault(d["kernel"], Kernel(d["kernel"]))
            k.add_dispatch(d)
            if d["pipeline"] not in seen:
                k.add_pipeline(doc["pipelines"][d["pipeline"]])
            seen.add(d["pipeline"])
    return [kernels[name] for name in sorted(kernels)]


def pipelines_of(doc):
    """Returns a dictionary: the key is a pipeline, and the value is a Kernel with the numbers of this pipeline alone."""
    pipelines = {}
    for d in (d for program in doc["programs"] for d in program["dispatches"]):
        if d["pipeline"] not in pipelines:
            pipelines[d["pipeline"]] = Kernel(d["kernel"])
            pipelines[d["pipeline"]].add_pipeline(doc["pipelines"][d["pipeline"]])
    return pipelines


def text_of(value, digits=0):
    return "" if value is None else f"{value:,.{digits}f}"


def head_of(doc):
    device = re.sub(r"^.*Null hardware \((.*)\)$|\((R|tm)\)", r"\1", doc["device"])
    return (f"{device}, {doc['driver']}, subgroups of {doc['subgroup']}, "
            f"cooperative matrices: {'yes' if doc['cooperative'] else 'no'}.")


def table_of(doc, kernels):
    lines = [head_of(doc), ""]
    lines += ["| network | dispatches | barriers | below 1,024 threads |", "| --- | --- | --- | --- |"]
    for p in networks_of(doc):
        few = sum(d["groups"] * d["lanes"] < MIN_THREADS for d in p["dispatches"])
        lines.append(f"| {p['name']} | {len(p['dispatches'])} | {p['barriers']} | {few} |")
    lines += ["", "| kernel | pipelines | registers | shared bytes | waves | spills | products, % | shared loads | vector "
              "| slots | threads, at least |", "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for k in kernels:
        lines.append(f"| {k.name} | {k.pipelines} | {k.registers} | {k.shared:,} | {text_of(k.waves)} | {k.spills} | "
                     f"{text_of(k.math)} | "
                     f"{text_of(k.shared_loads, 1)} | {text_of(k.vector, 1)} | "
                     f"{text_of(k.slots, 1)} | {text_of(k.threads)} |")
    return "\n".join(lines) + "\n"


# ---- limits and exceptions ----


def read_exceptions(path):
    """Returns a dictionary of dictionaries: [document][rule, kernel or network] is the worst value that is accepted."""
    accepted = {name: {} for name in RULES}
    for line in open(path):
        fields = line.split(None, 4)
        if not fields or fields[0].startswith("#"):
            continue
        names = [n for n in RULES if fields[0] in (n, "all") and len(fields) > 1 and fields[1] in RULES[n]]
        if len(fields) < 5 or not names:
            sys.exit(f"{path}: want DOCUMENT RULE NAME VALUE REASON, got: {line.strip()}")
        for name in names:
            accepted[name][fields[1], fields[2]] = float(fields[3])
    return accepted


def is_worse(rule, value, limit):
    return value < limit if rule in ("waves", "math", "threads") else value > limit


def faults(found, accepted):
    """Returns a line for each limit that is broken and not accepted, and for each exception that is not needed or
    whose value is not the measured value."""
    for (rule, name), value in sorted(found.items()):
        limit = accepted.get((rule, name))
        if limit is None:
            yield f"{name}: {rule} is {value:g}, which breaks the limit"
        elif is_worse(rule, value, limit):
            yield f"{name}: {rule} is {value:g}; the exception allows {limit:g}"
        elif value != limit:
            yield f"{name}: {rule} is only {value:g} now; the exception still has {limit:g}"
    for rule, name in sorted(set(accepted) - set(found)):
        yield f"{name}: {rule} needs no exception any more"


def is_of(doc, page, name):
    """Returns whether the document is of the same device and driver as its table in the page (head_of has all that must be the
    same). Returns True if the page has no such table."""
    part = re.search(rf"<!-- begin {re.escape(name)} -->\n(.*?)<!-- end {re.escape(name)} -->", page, re.S)
    return not part or not part[1].strip() or head_of(doc) in part[1]


def replace_part(page, name, text):
    """Returns the page with a new text between the comments <!-- begin NAME --> and <!-- end NAME -->."""
    part = re.compile(rf"(<!-- begin {re.escape(name)} -->\n).*?(<!-- end {re.escape(name)} -->)", re.S)
    if not part.search(page):
        sys.exit(f"readiness: the page has no part <!-- begin {name} -->")
    return part.sub(lambda m: m[1] + "\n" + text + "\n" + m[2], page)


def examine(name, doc, page, accepted, write):
    """Returns the page with the new tables of a document, and the faults of this document."""
    kernels = kernels_of(doc, networks_of(doc))
    found = {(rule, k.name): value for k in kernels for rule, value in k.broken() if rule in RULES[name]}
    for k in kernels_of(doc, cases_of(doc)):
        if k.spills:
            found["spills", k.name] = max(k.spills, found.get(("spills", k.name), 0))
    if "barriers" in RULES[name]:
        found.update({("barriers", p["name"]): p["barriers"] for p in networks_of(doc)})
    lines = list(faults(found, accepted))
    fresh = replace_part(page, name, table_of(doc, kernels))
    if fresh != page and not write:
        lines.append("the table is old: sh tests/gpu/readiness.sh --write writes a new one")
    return fresh, lines


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    write = "--write" in sys.argv
    if len(arguments) < 2 or any(a.split("=")[0] not in RULES for a in arguments[2:]):
        sys.exit(__doc__)
    page, accepted = open(arguments[0]).read(), read_exceptions(arguments[1])
    failed = skipped = 0
    documents = {}
    for argument in arguments[2:]:
        name, path = argument.split("=", 1)
        doc = json.load(open(path))
        documents[name] = doc, pipelines_of(doc)
        if not write and not is_of(doc, page, name):
            print(f"SKIPPED: kernels of {name}: the table is not of \"{head_of(doc)}\"")
            skipped += 1
            continue
        page, lines = examine(name, doc, page, accepted[name], write)
        failed += bool(lines)
        for line in lines:
            print(f"readiness: {name}: {line}")
    estimates = estimate.table_of(documents)
    if write and estimates:
        page = replace_part(page, "estimates", estimates)
    if write:
        open(arguments[0], "w").write(page)
    print(f"{len(arguments) - 2 - failed - skipped} passed, {failed} failed, {skipped} skipped")


if __name__ == "__main__":
    main()
