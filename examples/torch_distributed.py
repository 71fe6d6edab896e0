"""Train quadratic layers on several processes, with the same results as on one process.

    torchrun --standalone --nproc-per-node 2 examples/torch_distributed.py
    torchrun --standalone --nproc-per-node 2 examples/torch_distributed.py --strategy fsdp
    python examples/torch_distributed.py

Each process trains on its share of every batch. Process 0 also trains the same network alone on the
full batches and compares the results. The exit code is 1 if they differ by more than rounding.
"""

import argparse
import gc
import os
import sys
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from quadric.datasets import digits
from quadric.torch import Quadratic

# the largest difference, relative to the largest entry of the tensor
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
SHARE = 32  # images per process in each batch


def images(dtype):
    """Return scikit-learn's digits, enlarged from 8 x 8 to 24 x 24 pixels, with a margin of 2."""
    data = digits()
    pixels = data.X_train.reshape(-1, 8, 8) / data.largest
    large = pixels.repeat(3, axis=1).repeat(3, axis=2)
    framed = np.pad(large, ((0, 0), (2, 2), (2, 2))).reshape(-1, 784)
    return torch.from_numpy(framed).to(dtype), torch.from_numpy(data.y_train)


def network(width, dtype):
    """Return a network with 784 inputs, a sigmoid layer and one quadratic neuron per digit."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(784, width), nn.Sigmoid(), Quadratic(width, 10)).to(dtype)


def distributed(model, strategy):
    """Wrap the model for all processes."""
    if strategy == "ddp":
        return DistributedDataParallel(model)
    fully_shard(model[-1])
    return fully_shard(model)


def train(model, X, y, *, steps, batch, rank=0, processes=1):
    """Train on a share of every batch; return the first gradients, final parameters and losses."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    losses = []
    for step in range(steps):
        first = step * batch % (len(X) - batch)
        mine = slice(first + rank * batch // processes, first + (rank + 1) * batch // processes)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(X[mine]), y[mine])
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            gradients = [whole(p.grad) for p in model.parameters()]
        optimizer.step()
    return gradients, [whole(p) for p in model.parameters()], losses


def whole(tensor):
    """Return a full copy of a tensor, sharded or not. Every process must call it."""
    tensor = tensor.detach()
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor.clone()


def difference(tensors, expected):
    """Return the largest difference, relative to the largest entry of each expected tensor."""
    pairs = zip(tensors, expected, strict=True)
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in pairs)


def run(width, strategy, options, rank, processes):
    """Train on all processes, and on the first one alone; return whether the results agree."""
    dtype = getattr(torch, options.dtype)
    X, y = images(dtype)
    model = network(width, dtype)
    if dist.is_initialized():
        model = distributed(model, strategy)
    size = {"steps": options.steps, "batch": SHARE * processes}
    gradients, parameters, losses = train(model, X, y, **size, rank=rank, processes=processes)
    if rank > 0:
        return True
    print(
        f"784-{width}-10, {options.dtype}: loss {losses[0]:.2f}, "
        f"after {options.steps} steps {losses[-1]:.2f}"
    )
    if processes == 1:
        return True
    alone = train(network(width, dtype), X, y, **size)
    apart = [difference(gradients, alone[0]), difference(parameters, alone[1])]
    agree = max(apart) <= TOLERANCE[dtype]
    print(
        f"  {'the same as' if agree else 'DIFFERENT FROM'} one process: largest differences "
        f"{apart[0]:.1e} in gradients, {apart[1]:.1e} in parameters"
    )
    return agree


def main():
    """Train networks of both widths and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategy", choices=["ddp", "fsdp"], help="default: both")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()

    rank, processes = 0, 1
    if "RANK" in os.environ:  # torchrun has set it
        dist.init_process_group("gloo", timeout=timedelta(seconds=60))
        rank, processes = dist.get_rank(), dist.get_world_size()
    else:
        print("one process, nothing to compare with; to compare, start two processes with torchrun")

    strategies = [options.strategy] if options.strategy else ["ddp", "fsdp"]
    agree = []
    for strategy in strategies if dist.is_initialized() else [None]:
        if rank == 0 and strategy:
            print(f"{processes} processes, {strategy}")
        for width in (30, 100):
            agree.append(run(width, strategy, options, rank, processes))

    if dist.is_initialized():
        gc.collect()  # a remaining model would keep the process group and its threads alive
        dist.destroy_process_group()
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
