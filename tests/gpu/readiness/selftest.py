#!/usr/bin/env python3
"""selftest.py - plants a fault for each rule of readiness.py into a small document, and checks that the rule finds it.

The last line is "N passed, N failed, N skipped".
"""
import copy
import sys

import readiness

# An inner loop as RADV prints it: 20 multiply-adds, two other vector instructions and two loads from shared memory.
LOOP = "BB0:\n\ts_mov_b32 s0, 0\nBB1:\n" + "\tv_fma_f32 v0, v1, v2, v0\n" * 20 + "\tv_add_u32_e32 v1, v2, v3\n" * 2 + \
       "\tds_load_b128 v[0:3], v4\n" * 2 + "\ts_cbranch_scc1 BB1\nBB2:\n\ts_endpgm\n"
MATRIX = LOOP.replace("v_fma_f32 v0, v1, v2, v0", "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]")
KERNELS = {"GEMM_SHARED": LOOP, "GEMM_COOP": MATRIX, "ATTENTION_SHARED_DQ": LOOP, "ADAM": "", "UNARY": ""}
GOOD = {
    "device": "a device",
    "driver": "a driver",
    "subgroup": 64,
    "cooperative": True,
    "programs": [{
        "name": "a-network",
        "network": True,
        "barriers": 3,
        "dispatches": [{"kernel": k, "pipeline": k, "groups": 16.0, "lanes": 64} for k in KERNELS if k != "UNARY"],
    }, {
        "name": "a case",
        "network": False,
        "barriers": 9,
        "dispatches": [{"kernel": "UNARY", "pipeline": "UNARY", "groups": 1.0, "lanes": 64}],
    }],
    "pipelines": {
        k: {"statistics": {"VGPRs": 96, "LDS size": 0, "Spilled VGPRs": 0, "Subgroups per SIMD": 8}, "assembly": text}
        for k, text in KERNELS.items()
    },
}
# A loop of a cooperative kernel as NAK prints it: 2 matrix products, 20 additions and a branch.
NAK = "block.u 0 L1 [] -> {\n} -> [1]\nblock 1 L2 [0, 1] -> {\n" + \
      " r0..4 = hmma.m16n8k16.f32 r4..8 r8..10 r0..4 // delay=1\n" * 2 + \
      " r1 = iadd3 r1 r2 rZ // delay=2\n" * 20 + " @p0 bra L2 // delay=1\n} -> [2, 1]\nblock 2 L3 [1] -> {\n exit\n} -> []\n"
PAGE = "<!-- begin navi31-f16 -->\n<!-- end navi31-f16 -->\n"
ACCEPTED = {("barriers", "a-network"): 3}


def statistic(kernel, name, value):
    return lambda d: d["pipelines"][kernel]["statistics"].update({name: value})


def assembly(kernel, old, new):
    return lambda d: d["pipelines"][kernel].update(assembly=d["pipelines"][kernel]["assembly"].replace(old, new, 1))


PLANTED = {
    "ADAM: spills is 1": statistic("ADAM", "Spilled VGPRs", 1),
    "ADAM: spills is 2": lambda d: d["pipelines"]["ADAM"].update(statistics={"Max live registers": 99, "Spill Count": 2}),
    "ADAM: spills is 3": lambda d: d["pipelines"]["ADAM"].update(
        statistics={"Registers used": 48, "STP Count": 3, "Max Waves Per Core": 8}),
    "UNARY: spills is 4": statistic("UNARY", "Spilled VGPRs", 4),  # a kernel of a case in cases.txt, not of a network
    "ADAM: waves is 7": statistic("ADAM", "Subgroups per SIMD", 7),
    "GEMM_SHARED: waves is 5": statistic("GEMM_SHARED", "Subgroups per SIMD", 5),
    "GEMM_SHARED: math is 87": assembly("GEMM_SHARED", "\tv_add", "\tv_add_u32 v0, v0, v0\n\tv_add"),
    "GEMM_COOP: shared_loads is 2.6": assembly("GEMM_COOP", "\tds_load", "\tds_load_b32 v0, v1\n" * 50 + "\tds_load"),
    "GEMM_COOP: vector is 4.1": assembly("GEMM_COOP", "\tv_add", "\tv_add_u32 v0, v0, v0\n" * 80 + "\tv_add"),
    "ATTENTION_SHARED_DQ: math is 87": assembly("ATTENTION_SHARED_DQ", "\tv_add", "\tv_add_u32 v0, v0, v0\n\tv_add"),
    "ATTENTION_SHARED_DQ: waves is 7": statistic("ATTENTION_SHARED_DQ", "Subgroups per SIMD", 7),
    "ADAM: threads is 960": lambda d: d["programs"][0]["dispatches"][-1].update(groups=15.0),
    "a-network: barriers is 4": lambda d: d["programs"][0].update(barriers=4),
    "a-network: barriers is only 2 now": lambda d: d["programs"][0].update(barriers=2),
    "a-network: barriers needs no exception": lambda d: d.update(programs=[]),
}


def faults_of(doc):
    return readiness.examine("navi31-f16", doc, PAGE, ACCEPTED, True)[1]


def main():
    failed = 0 if faults_of(GOOD) == [] else 1
    if failed:
        print(f"selftest: the good document has faults: {faults_of(GOOD)}")
    for text, plant in PLANTED.items():
        doc = copy.deepcopy(GOOD)
        plant(doc)
        lines = faults_of(doc)
        if len(lines) != 1 or not lines[0].startswith(text):
            print(f"selftest: want \"{text}\" alone, got {lines}")
            failed += 1
    page = readiness.examine("navi31-f16", GOOD, PAGE, ACCEPTED, True)[0]
    if readiness.examine("navi31-f16", GOOD, page, ACCEPTED, False)[1] or not readiness.examine(
            "navi31-f16", GOOD, page.replace("ADAM", "SGD"), ACCEPTED, False)[1]:
        print("selftest: an old table is not found, or a new one is called old")
        failed += 1
    ada = copy.deepcopy(GOOD)
    for k, p in ada["pipelines"].items():
        p["statistics"] = {"Number of GPRs": 96, "Spills to memory": 0, "Max warps/SM": 20}
        p["assembly"] = NAK if k == "GEMM_COOP" else ""
    ada_page = PAGE.replace("navi31-f16", "ada-f16")
    fine = readiness.examine("ada-f16", ada, ada_page, {}, True)[1]
    ada["pipelines"]["GEMM_COOP"]["assembly"] = NAK.replace(" r1 = iadd3", " r1 = iadd3 r1 r2 rZ\n" * 20 + " r1 = iadd3", 1)
    if fine or readiness.examine("ada-f16", ada, ada_page, {}, True)[1] != ["GEMM_COOP: slots is 21.5, which breaks the limit"]:
        print("selftest: too many issue slots are not found, or few are called too many")
        failed += 1
    other = dict(GOOD, driver="another driver")
    if not readiness.is_of(GOOD, page, "navi31-f16") or readiness.is_of(other, page, "navi31-f16"):
        print("selftest: a table of another driver is not found, or one of this driver is called another")
        failed += 1
    print(f"{len(PLANTED) + 4 - failed} passed, {failed} failed, 0 skipped")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
