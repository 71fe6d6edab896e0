"""Layers under `DistributedDataParallel`, on two processes."""

import warnings
from copy import deepcopy

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.nn.parallel import DistributedDataParallel

from tests.support.process_groups import batch, network, share_of, shared_directory


def loss(model, X):
    return model(X).square().mean()


def check_gradients(model, plain):
    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        close = {"rtol": 1e-12, "atol": 1e-14}
        torch.testing.assert_close(ours.grad, theirs.grad, **close, msg=lambda m, n=name: n + m)


def check_steps(model, plain, steps=3):
    """Check that gradients, and parameters after some steps, match those of one process."""
    optimizers = [
        torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
        for each in (model, plain)
    ]
    for step in range(steps):
        X = batch(step)
        pairs = ((model, share_of(X)), (plain, X))
        for (each, rows), optimizer in zip(pairs, optimizers, strict=True):
            optimizer.zero_grad()
            loss(each, rows).backward()
        check_gradients(model, plain)
        for optimizer in optimizers:
            optimizer.step()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)
        first = ours.detach().clone()
        dist.broadcast(first, 0)
        assert torch.equal(first, ours)  # both processes are bit-identical


def test_training_is_that_of_one_process():
    # process 1 uses the values that process 0 has drawn
    check_steps(DistributedDataParallel(network(dist.get_rank())), network())


def test_gradients_may_be_views_of_buckets():
    # buckets so small that Q alone needs more than one bucket
    model = DistributedDataParallel(network(), gradient_as_bucket_view=True, bucket_cap_mb=0.01)
    check_steps(model, network())


def test_graph_may_be_static():
    model = DistributedDataParallel(network(), static_graph=True)
    check_steps(model, network())


def test_gradients_accumulate_without_synchronizing():
    model, plain = DistributedDataParallel(network()), network()
    with model.no_sync():
        for seed in (1, 2):
            loss(model, share_of(batch(seed))).backward()
    loss(model, share_of(batch(3))).backward()
    for seed in (1, 2, 3):
        loss(plain, batch(seed)).backward()
    check_gradients(model, plain)


def test_model_may_be_compiled():
    model = torch.compile(DistributedDataParallel(network()), backend="aot_eager")
    with warnings.catch_warnings():
        # torch warns about every compiled autograd.Function
        warnings.filterwarnings("ignore", ".*should not be instantiated", DeprecationWarning)
        warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf")
        check_steps(model, network())


def check_same(model, plain):
    state = plain.state_dict()
    assert list(get_model_state_dict(model)) == list(state)
    assert all(torch.equal(t, state[name]) for name, t in get_model_state_dict(model).items())


def test_states_are_those_of_the_layers():
    model, plain = DistributedDataParallel(network(1)), network()
    assert list(model.state_dict()) == [f"module.{name}" for name in plain.state_dict()]
    assert model.state_dict()["module.2.packed"].shape == (10011, 7)
    set_model_state_dict(model, plain.state_dict())
    check_same(model, plain)
    assert torch.equal(model.module[2].Q, plain[2].Q)
    model.load_state_dict(DistributedDataParallel(network(1)).state_dict())
    check_same(model, network(1))
    compiled = torch.compile(model, backend="aot_eager")
    set_model_state_dict(compiled, plain.state_dict())
    check_same(compiled, plain)


def test_states_of_one_part_are_read_and_set():
    model, plain = DistributedDataParallel(network(1)), network()
    with warnings.catch_warnings():
        # torch gives a deprecation warning for every model
        warnings.simplefilter("ignore", FutureWarning)
        part = get_model_state_dict(plain, submodules={plain[2]})
        assert list(part) == ["2.packed", "2.W", "2.b"]
    set_model_state_dict(model, part, options=StateDictOptions(strict=False))
    expected = network(1)
    expected[2].load_state_dict(plain[2].state_dict())
    check_same(model, expected)


def test_frozen_parameters_may_be_left_out():
    only_trained = StateDictOptions(ignore_frozen_params=True, strict=False)
    model, plain = DistributedDataParallel(network(1)), network()
    for each in (model.module, plain):
        each[0].requires_grad_(False)
        each[2].packed.requires_grad_(False)
    state = get_model_state_dict(plain, options=only_trained)
    assert list(state) == ["2.W", "2.b", "4.W", "4.b", "4.U", "4.c"]
    set_model_state_dict(model, dict(state), options=only_trained)  # it changes its argument
    expected = network(1)
    expected.load_state_dict(state, strict=False)
    check_same(model, expected)


def test_checkpoints_are_loaded_in_place():
    def made(seed):
        model = DistributedDataParallel(network(seed))
        return model, torch.optim.AdamW(model.parameters(), lr=0.01)

    def state_of(model, optimizer):
        return {
            "model": get_model_state_dict(model),
            "optimizer": get_optimizer_state_dict(model, optimizer),
        }

    def train(model, optimizer):
        optimizer.zero_grad()
        loss(model, share_of(batch())).backward()
        optimizer.step()

    model, optimizer = made(0)
    train(model, optimizer)
    before = deepcopy(model.module)
    again, second = made(1)
    with shared_directory() as directory:
        dcp.save(state_of(model, optimizer), checkpoint_id=directory)
        state = state_of(again, second)
        dcp.load(state, checkpoint_id=directory)
    check_same(again, before)  # the entries of the state share memory with the parameters
    set_optimizer_state_dict(again, second, state["optimizer"])
    train(model, optimizer)
    train(again, second)
    check_same(again, model.module)
