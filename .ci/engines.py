# The ranks of a run by Dask: a partial of each capture by worker processes, two of which are killed at work, and a tree of
# merges in an order by chance. Usage: engines.py EXPLAIN FOLDER CAPTURE…; leaves FOLDER/all.partial.
import os
import random
import signal
import subprocess
import sys

from distributed import Client, LocalCluster


def partial(explain, capture, out, mark):
    if mark and not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    subprocess.run([explain, "partial", capture, "--out", out, "--quiet"], check=True)
    return out


def merge(explain, parts, out):
    subprocess.run([explain, "merge", *parts, "--out", out, "--quiet"], check=True)
    return out


def main():
    explain, folder, *captures = sys.argv[1:]
    os.makedirs(folder)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        parts = [client.submit(partial, explain, c, f"{folder}/{i}.partial", f"{folder}/killed.{i}" if i in (2, 6) else "", pure=False)
                 for i, c in enumerate(captures)]
        random.seed(1)
        n = 0
        while len(parts) > 1:
            random.shuffle(parts)
            n += 1
            out = f"{folder}/all.partial" if len(parts) <= 4 else f"{folder}/tree{n}.partial"
            parts = parts[4:] + [client.submit(merge, explain, parts[:4], out, pure=False)]
        print("Dask:", parts[0].result(timeout=600), "after", sum(f.startswith("killed.") for f in os.listdir(folder)), "killed workers")


if __name__ == "__main__":
    main()
