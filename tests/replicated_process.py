"""Checks of layers under `DistributedDataParallel`, for two processes: see `two_processes`."""

import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.nn.parallel import DistributedDataParallel

from quadric.torch import Linear, Quadratic, Reduced


def network(seed=0, *, recompute=False):
    """141 inputs: Q has rectangles beside its triangles."""
    torch.manual_seed(seed)
    layers = (
        Linear(9, 141), nn.Sigmoid(), Quadratic(141, 7, recompute=recompute),
        nn.Tanh(), Reduced(7, 3),
    )  # fmt: skip
    return nn.Sequential(*layers).double()


def batch(seed=1):
    """The same on both processes; their shares are the even and the odd rows."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(24, 9, dtype=torch.float64, generator=generator)


def mine(X):
    return X[dist.get_rank() :: 2]


def loss(model, X):
    return model(X).square().mean()


def check_gradients(model, plain):
    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        close = {"rtol": 1e-12, "atol": 1e-14}
        torch.testing.assert_close(ours.grad, theirs.grad, **close, msg=lambda m, n=name: n + m)


def check_steps(model, plain, steps=3):
    """Gradients, and the parameters after some steps, are those of one process."""
    optimizers = [
        torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
        for each in (model, plain)
    ]
    for step in range(steps):
        X = batch(step)
        for each, share, optimizer in zip((model, plain), (mine(X), X), optimizers, strict=True):
            optimizer.zero_grad()
            loss(each, share).backward()
        check_gradients(model, plain)
        for optimizer in optimizers:
            optimizer.step()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)
        first = ours.detach().clone()
        dist.broadcast(first, 0)
        assert torch.equal(first, ours)  # not a bit apart from each other


def training_is_that_of_one_process():
    # what process 1 draws gives way to what process 0 has drawn
    check_steps(DistributedDataParallel(network(dist.get_rank())), network())


def gradients_may_be_views_of_buckets():
    # small enough that Q alone is more than one bucket
    model = DistributedDataParallel(network(), gradient_as_bucket_view=True, bucket_cap_mb=0.01)
    check_steps(model, network())


def graph_may_be_static():
    model = DistributedDataParallel(network(recompute=True), static_graph=True)
    check_steps(model, network())


def gradients_accumulate_without_synchronising():
    model, plain = DistributedDataParallel(network()), network()
    with model.no_sync():
        for seed in (1, 2):
            loss(model, mine(batch(seed))).backward()
    loss(model, mine(batch(3))).backward()
    for seed in (1, 2, 3):
        loss(plain, batch(seed)).backward()
    check_gradients(model, plain)


def model_may_be_compiled():
    model = torch.compile(DistributedDataParallel(network()), backend="aot_eager")
    with warnings.catch_warnings():
        # torch's own, of how it compiles any autograd.Function
        warnings.filterwarnings("ignore", ".*should not be instantiated", DeprecationWarning)
        warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf")
        check_steps(model, network())


def states_are_those_of_the_layers():
    model, plain = DistributedDataParallel(network(1)), network()
    state = plain.state_dict()
    assert list(model.state_dict()) == [f"module.{name}" for name in state]
    assert model.state_dict()["module.2.Q"].shape == (7, 10011)
    assert list(get_model_state_dict(model)) == list(state)
    set_model_state_dict(model.module, state)
    assert all(torch.equal(t, state[name]) for name, t in get_model_state_dict(model).items())
    assert torch.equal(model.module[2].Q, plain[2].Q)


CHECKS = [
    training_is_that_of_one_process,
    gradients_may_be_views_of_buckets,
    graph_may_be_static,
    gradients_accumulate_without_synchronising,
    model_may_be_compiled,
    states_are_those_of_the_layers,
]
