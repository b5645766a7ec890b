#!/usr/bin/env python3
"""table.py BENCH.json AUDIT.json - prints first-run.md of tests/gpu/first_run.sh: the device, the result of the audit, and a
table. The table has the training steps of networks, and each op in the variant that the engine chooses."""
import json
import sys


def milliseconds(result):
    time = result["gpu_ns"] or result["wall_ns"]
    return time["median"] / 1e6 if time else float("nan")


def main():
    bench, audit = (json.load(open(path)) for path in sys.argv[1:3])
    device, roofline = bench["device"], bench["roofline"]
    print(f"{device['name']}, {device['driver']}, {bench['date'][:10]}, vktrain {bench['vktrain']}.")
    print(f"It computes {roofline['gflops']:,.0f} GFLOP/s from registers and copies {roofline['gbps']:,.0f} GB/s.")
    entries = [e for run in audit["runs"] for e in run["entries"]]
    wrong = sorted({e["op"] for e in entries if not e["right"]})
    print(f"The audit compared {len(entries)} cases: " + (f"WRONG: {', '.join(wrong)}." if wrong else "all right."))
    print("\n| experiment | ms | GFLOP/s | GB/s | % of the roofline | variant | check |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for r in bench["results"]:
        if r["kind"] != "micro" and r["preferred"]:
            name = " ".join(text for text in (r["op"], r["phase"], r["shape"]) if text)
            print(f"| {name} | {milliseconds(r):.3g} | {r['gflops']:,.0f} | {r['gbps']:,.0f} | {r['roofline_percent']:.0f} | "
                  f"{r['variant']} | {r['check']} |")


if __name__ == "__main__":
    main()
