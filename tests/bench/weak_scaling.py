#!/usr/bin/env python3
"""Measures weak scaling: a step of ResNet-20, or of the network of vkt-mnist, with one process and with two, each pinned to a
core of its own with one thread.

  python3 tests/bench/weak_scaling.py [--rounds 5] [--build build] [--mpirun mpirun.openmpi] [--network mnist] [--json FILE]

A process has the same work in all measurements: --batch images, in --shards shards of vktrain. With one shard, a single
process makes plain steps, without sums of shards, as on one device. A round measures three cases, each with vktrain
and then with PyTorch: one process (alone), two processes that train together (over MPI, or with
DistributedDataParallel over Gloo), and two independent processes. The efficiency of a round is the step time of one
process alone, divided by the step time of two processes together. Independent processes also slow each other
down, because the cores share the memory: their step time shows this part of the lost efficiency. The time of a process is
the median of its steps. The time of a case is the mean of the times of its processes. But for two processes of vktrain that
train together, it is the time of rank 0. The table has the medians of the rounds. The script needs an idle machine, the
data of samples/vkt-resnet or vkt-mnist, and Debian's python3-torch.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# MPI's launchers put the rank into one of these variables. A process without a launcher gets its core from $CORE.
PINNED = 'exec taskset -c "${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-$CORE}}" "$@"'


# ---- vktrain


def vktrain(a, ranks, independent):
    """Runs `ranks` processes. Returns the report of each process. If they train together, returns only the report of rank 0."""
    with tempfile.TemporaryDirectory() as folder:
        together = 1 if independent else ranks
        images = a.batch * together
        sample = "vkt-mnist" if a.network == "mnist" else "vkt-resnet"
        program = [f"{a.build}/samples/{sample}", "--epochs", "1", "--seed", "1", "-q"]
        program += ["--batch", str(images), "--shards", str(a.shards * together), "--bucket", a.bucket]
        if a.network == "resnet20":
            program += ["--network", "resnet20", "--from-scratch", "--limit", str(images * a.steps), "--no-augment"]
        pinned = ["sh", "-c", PINNED, "sh"] + program
        commands = []
        for i in range(ranks if independent else 1):
            launcher = [] if together == 1 else [a.mpirun, "-n", str(ranks)] + a.mpirun_args.split()
            commands.append((launcher + pinned + (["--mpi"] if launcher else []) + ["--run", f"{folder}/{i}"], i))
        running = [subprocess.Popen(c, env=environment(i), stdout=subprocess.DEVNULL) for c, i in commands]
        if any([p.wait() for p in running]):
            sys.exit(f"weak_scaling.py: {program[0]} failed, see above")
        return [json.loads(next(pathlib.Path(folder, str(i)).glob("**/results.json")).read_text()) for _, i in commands]


def environment(core):
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    return {**os.environ, **allowed, "LP_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "CORE": str(core)}


# ---- PyTorch


def torch_rank(rank, ranks, independent, a, meeting, out):
    """Trains, in a process of its own. Puts the median time of a step into `out`, in ms, without the first quarter of
    the steps."""
    os.sched_setaffinity(0, {rank})
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "golden"))
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    import make_mnist_golden
    import make_resnet_golden

    torch.set_num_threads(1)
    torch.manual_seed(1)
    mnist = a.network == "mnist"
    model = make_mnist_golden.Network() if mnist else make_resnet_golden.Network(3)
    if ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    if ranks > 1 and not independent:
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=a.torch_bucket)
    if mnist:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, foreach=True)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=True)
    x, target = torch.rand(a.batch, *((1, 28, 28) if mnist else (3, 32, 32))), torch.randint(10, (a.batch,))
    times = []
    if ranks > 1:
        dist.barrier()
    for _ in range(a.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), target).backward()
        optimizer.step()
        times.append((time.perf_counter() - begin) * 1e3)
    out.put(statistics.median(times[len(times) // 4:]))


def pytorch(a, ranks, independent):
    """Returns the median time of a step for each of `ranks` processes, in ms."""
    import torch.multiprocessing as mp

    context = mp.get_context("spawn")
    out = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=torch_rank, args=(i, ranks, independent, a, f"{folder}/meeting", out)) for i in range(ranks)
        ]
        for p in processes:
            p.start()
        for p in processes:
            p.join()
        if any(p.exitcode for p in processes):
            sys.exit("weak_scaling.py: PyTorch failed, see above")
        return [out.get() for _ in processes]


# ---- the table


def measure_round(a):
    results = {}
    for kind, ranks, independent in (("alone", 1, True), ("two", 2, False), ("independent", 2, True)):
        reports = vktrain(a, ranks, independent)
        results["vktrain " + kind] = statistics.mean(r["ms_per_step"] for r in reports)
        if kind == "two":
            results["ranks"] = reports[0]["ranks"]
        results["PyTorch " + kind] = statistics.mean(pytorch(a, ranks, independent))
    return results


def print_table(rounds):
    def median(f):
        return statistics.median(f(r) for r in rounds)

    print(f"{'':8} {'alone ms':>9} {'two ms':>9} {'efficiency':>11} {'independent ms':>15} {'of independent':>15}")
    for name in ("vktrain", "PyTorch"):
        alone, two, apart = (name + kind for kind in (" alone", " two", " independent"))
        print(f"{name:8} {median(lambda r: r[alone]):9.1f} {median(lambda r: r[two]):9.1f}"
              f" {median(lambda r: r[alone] / r[two]):11.3f} {median(lambda r: r[apart]):15.1f}"
              f" {median(lambda r: r[apart] / r[two]):15.3f}")
    exchange, exposed = (median(lambda r: r["ranks"][f"{kind}_ms_per_step"]) for kind in ("exchange", "exposed"))
    print(f"vktrain: {len(rounds[0]['ranks']['buckets'])} buckets, exchange {exchange:.2f} ms per step,"
          f" {exposed:.2f} ms of it exposed ({100 * exposed / exchange:.0f} %)")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--build", default="build", help="the build folder, with MPI (%(default)s)")
    p.add_argument("--mpirun", default="mpirun", help="launcher of that MPI (%(default)s)")
    p.add_argument("--mpirun-args", default="", help="more options for it")
    p.add_argument("--rounds", type=int, default=5, help="measurements of each (%(default)s)")
    p.add_argument("--network", choices=("resnet20", "mnist"), default="resnet20", help="(%(default)s)")
    p.add_argument("--batch", type=int, default=32, help="images of a rank and step (%(default)s)")
    p.add_argument("--shards", type=int, default=1, help="shards of a rank (%(default)s)")
    p.add_argument("--steps", type=int, default=40, help="steps of a measurement; vkt-mnist makes an epoch (%(default)s)")
    p.add_argument("--bucket", default="128KiB", help="vktrain's buckets (%(default)s)")
    p.add_argument("--torch-bucket", type=float, default=0.125, help="PyTorch's buckets in MB (%(default)s)")
    p.add_argument("--json", help="write all rounds to this file")
    a = p.parse_args()
    rounds = []
    for i in range(a.rounds):
        rounds.append(measure_round(a))
        print(f"round {i + 1} of {a.rounds}", file=sys.stderr)
        if a.json:
            pathlib.Path(a.json).write_text(json.dumps(rounds, indent=1))
    print_table(rounds)


if __name__ == "__main__":
    main()
