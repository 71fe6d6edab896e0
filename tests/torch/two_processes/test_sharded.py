"""Layers under `fully_shard`, on two processes."""

import warnings
from copy import deepcopy

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from tests.support.process_groups import batch, network, share_of, shared_directory

# torch warns about every random draw into a sharded tensor on a CPU
pytestmark = pytest.mark.filterwarnings(
    "ignore:DTensor random operators may not have complete support"
)

WHOLE = StateDictOptions(full_state_dict=True)
OFF_LOADED = StateDictOptions(full_state_dict=True, cpu_offload=True)
FROM_RANK_0 = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)


def sharded(model, **options):
    fully_shard(model[2], **options)
    return fully_shard(model, **options)


def check_same(model, expected):
    """Check that a sharded model has parameters bit-identical to those of a plain model."""
    state, wanted = model.state_dict(), expected.state_dict()
    assert list(state) == list(wanted)
    for name, tensor in state.items():
        assert isinstance(tensor, DTensor)
        assert torch.equal(tensor.full_tensor(), wanted[name]), name


def train(model, optimizer, X, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        model(X).square().mean().backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    return norm


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)


def test_Q_is_there_when_unsharded():
    model, plain = sharded(network()), network()
    for module in (model[2], model):
        with pytest.raises(RuntimeError, match=r"not available.*: call unshard\(\) on the module"):
            _ = model[2].Q
        module.unshard()
        if module is model:
            model[2].unshard()
        assert torch.equal(model[2].Q, plain[2].Q)
        module.reshard()
        model[2].reshard()
    with pytest.raises(RuntimeError, match="Q of a sharded layer is not available"):
        _ = model[2].Q


def test_Q_can_be_assigned():
    model, plain = sharded(network()), network()
    plain[2].Q = model[2].Q = torch.randn(7, 141, 141, dtype=torch.float64)
    check_same(model, plain)


def test_state_dict_holds_the_shares_themselves():
    model, plain = sharded(network()), network()
    packed = model.state_dict()["2.packed"]
    assert packed.shape == (10011, 7)
    assert packed.placements == (Shard(0),)
    assert packed.to_local().shape == (5006 - dist.get_rank(), 7)
    assert packed.to_local().data_ptr() == model[2].packed.to_local().data_ptr()
    check_same(model, plain)
    check_same(fully_shard(network()), plain)  # as part of the group of the whole model
    model[2].unshard()
    check_same(model, plain)
    with torch.no_grad():
        model(batch())  # leaves the outermost group unsharded
    check_same(model, plain)
    assert all(not tensor.requires_grad for tensor in model.state_dict().values())
    assert model.state_dict(keep_vars=True)["2.W"] is model[2].W
    model.reshard()
    if dist.get_rank() == 0:  # without communication, so one process can do this alone
        assert list(model.state_dict()) == list(plain.state_dict())


def test_sharded_state_dict_is_loaded():
    model, plain = sharded(network(1)), network()
    model.load_state_dict(sharded(network()).state_dict())
    check_same(model, plain)
    model(batch()).sum().backward()  # it computes with the loaded shares
    torch.testing.assert_close(model(batch()), plain(batch()))


def test_full_state_dict_is_read_and_set():
    plain, other = network(), network(1).state_dict()
    model = sharded(network(1))
    whole = get_model_state_dict(model, options=WHOLE)
    off_loaded = get_model_state_dict(model, options=OFF_LOADED)
    assert list(whole) == list(other)
    assert list(off_loaded) == (list(other) if dist.get_rank() == 0 else [])
    assert all(torch.equal(whole[name], other[name]) for name in other)
    assert all(torch.equal(off_loaded[name], other[name]) for name in off_loaded)

    set_model_state_dict(model, plain.state_dict(), options=WHOLE)
    check_same(model, plain)
    set_model_state_dict(model, get_model_state_dict(sharded(network(1))))
    check_same(model, network(1))
    only_rank_0 = plain.state_dict() if dist.get_rank() == 0 else {}
    set_model_state_dict(model, only_rank_0, options=FROM_RANK_0)
    check_same(model, plain)
    # a checkpoint with a different dtype
    only_rank_0 = plain.state_dict() if dist.get_rank() == 0 else {}
    single = sharded(network(1, torch.float32))
    set_model_state_dict(single, only_rank_0, options=FROM_RANK_0)
    check_same(single, plain.float())


def test_wrong_state_dicts_are_refused():
    model, before = sharded(network()), network()
    state = model.state_dict()
    del state["2.packed"]
    for load in (model.load_state_dict, lambda state: set_model_state_dict(model, state)):
        with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "2.packed"'):
            load(dict(state))
    state = network(1).state_dict()
    state["2.packed"] = state["2.packed"][1:]
    with pytest.raises(RuntimeError, match=r"size mismatch for 2.packed.*10010, 7.*10011, 7"):
        set_model_state_dict(model, state, options=WHOLE)
    state = model.state_dict()
    state["2.Q"] = distribute_tensor(torch.zeros(7, 10011), model[2].packed.device_mesh)
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "2.Q"'):
        model.load_state_dict(state)
    assert torch.equal(model[2].packed.full_tensor(), before[2].packed)


def test_training_is_that_of_one_process():
    X = batch()
    model, plain = sharded(network()), network()
    norm = train(model, adam(model), share_of(X)).full_tensor()
    torch.testing.assert_close(norm, train(plain, adam(plain), X), rtol=1e-12, atol=0)
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.full_tensor(), theirs, rtol=1e-9, atol=1e-11)


def test_inputs_may_have_more_dimensions():
    X = batch()
    model, plain = sharded(network()), network()  # a view would make FSDP warn
    torch.testing.assert_close(model(X.reshape(2, 12, 9)), plain(X).reshape(2, 12, 3))
    torch.testing.assert_close(model(X[0]), plain(X[0]))


def test_training_resumes_from_a_checkpoint():
    X = share_of(batch())
    model = sharded(network())
    optimizer = adam(model)
    train(model, optimizer, X)
    state = {
        "model": get_model_state_dict(model),
        "optimizer": get_optimizer_state_dict(model, optimizer),
    }
    # a copy, because the step counts belong to the optimizer
    whole = deepcopy(get_optimizer_state_dict(model, optimizer, options=WHOLE))
    weights = get_model_state_dict(model, options=WHOLE)
    assert whole["state"]["2.packed"]["exp_avg"].shape == (10011, 7)
    with shared_directory() as directory:
        dcp.save(state, checkpoint_id=directory)
        train(model, optimizer, X)
        expected = get_model_state_dict(model, options=WHOLE)

        again = sharded(network(1))
        optimizer = adam(again)
        state = {
            "model": get_model_state_dict(again),
            "optimizer": get_optimizer_state_dict(again, optimizer),
        }
        dcp.load(state, checkpoint_id=directory)  # in place: the state's tensors are the shares
        plain = network(1)
        dcp.load({"model": plain.state_dict()}, checkpoint_id=directory)
    check_states(get_model_state_dict(again, options=WHOLE), weights)
    check_states(plain.state_dict(), weights)
    set_optimizer_state_dict(again, optimizer, state["optimizer"])
    train(again, optimizer, X)
    check_states(get_model_state_dict(again, options=WHOLE), expected)

    for options in (WHOLE, FROM_RANK_0):
        again = sharded(network(1))
        optimizer = adam(again)
        given = dist.get_rank() == 0 or options is WHOLE
        set_model_state_dict(again, dict(weights) if given else {}, options=options)
        set_optimizer_state_dict(
            again, optimizer, deepcopy(whole) if given else {}, options=options
        )
        train(again, optimizer, X)
        check_states(get_model_state_dict(again, options=WHOLE), expected)


def check_states(state, expected):
    assert list(state) == list(expected)
    for name, tensor in state.items():
        assert torch.equal(tensor, expected[name]), name


def test_frozen_parameters_may_be_left_out():
    for full in (False, True):
        options = StateDictOptions(ignore_frozen_params=True, strict=False, full_state_dict=full)
        model, other, expected = sharded(network(1)), sharded(network()), network(1)
        for each in (model, other):
            each[0].requires_grad_(False)
            each[2].packed.requires_grad_(False)
        state = get_model_state_dict(other, options=options)
        assert list(state) == ["2.W", "2.b", "4.W", "4.b", "4.U", "4.c"]
        set_model_state_dict(model, dict(state), options=options)  # it changes its argument
        trained = {name: tensor for name, tensor in network().state_dict().items() if name in state}
        expected.load_state_dict(trained, strict=False)
        check_same(model, expected)


def test_wrapped_layers_keep_their_names():
    model, plain = network(1), network()
    model[2] = checkpoint_wrapper(model[2])
    model = sharded(model)
    assert list(get_model_state_dict(model)) == list(plain.state_dict())
    set_model_state_dict(model, plain.state_dict(), options=WHOLE)
    check_states(get_model_state_dict(model, options=WHOLE), plain.state_dict())
    X = batch()
    train(model, adam(model), share_of(X))
    train(plain, adam(plain), X)
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.full_tensor(), theirs, rtol=1e-9, atol=1e-11)


def test_parameters_may_be_bfloat16():
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model, plain = sharded(network(dtype=torch.float32), mp_policy=policy), network()
    X = batch().float()
    z = model(X)
    assert torch.equal(z, plain.float().bfloat16()(X.bfloat16()))
    z.square().mean().backward()
    for parameter in model.parameters():
        assert parameter.grad.dtype == torch.float32
        assert 0 < parameter.grad.full_tensor().abs().sum() < torch.inf
    model[2].unshard()
    assert model[2].Q.dtype == torch.bfloat16
    model[2].reshard()
    check_same(model, network(dtype=torch.float32))


def meta_network():
    with torch.device("meta"):
        return sharded(network())


def test_made_on_the_meta_device():
    plain = network()
    model = meta_network()
    model.to_empty(device="cpu")
    torch.manual_seed(dist.get_rank())
    for module in model:
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        assert ours.shape == theirs.shape
        # drawn uniformly up to a bound
        largest = ours.full_tensor().abs().max()
        torch.testing.assert_close(largest, theirs.abs().max(), rtol=0.3, atol=0)
    train(model, adam(model), share_of(batch()))

    model = meta_network()
    only_rank_0 = plain.state_dict() if dist.get_rank() == 0 else {}
    with warnings.catch_warnings():
        # torch warns about the device of the group
        warnings.filterwarnings("ignore", "`_get_pg_default_device` will be deprecated")
        warnings.filterwarnings("ignore", "Multiple backends are registered with this ProcessGroup")
        set_model_state_dict(model, only_rank_0, options=FROM_RANK_0)
    check_same(model, plain)
    torch.testing.assert_close(model(batch()), plain(batch()))

    model = meta_network()
    state = {
        name: distribute_tensor(plain.state_dict()[name], empty.device_mesh, empty.placements)
        for name, empty in model.state_dict().items()
    }
    model.load_state_dict(state, assign=True)
    check_same(model, plain)
    torch.testing.assert_close(model(batch()), plain(batch()))


def test_initial_values_are_drawn():
    model = sharded(network())
    model[2].reset_parameters("identity")
    assert torch.equal(whole_Q(model), torch.eye(141, dtype=torch.float64).expand(7, 141, 141))
    torch.manual_seed(dist.get_rank())
    model[2].reset_parameters("normal", scale=2.0)
    Q = whole_Q(model)
    off = Q[:, ~torch.eye(141, dtype=torch.bool)]
    on = Q.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(off.std().item(), 2 * 0.5**0.5, rtol=0.05, atol=0)
    torch.testing.assert_close(on.std().item(), 2.0, rtol=0.15, atol=0)


def whole_Q(model):
    model[2].unshard()
    Q = model[2].Q.detach().clone()
    model[2].reshard()
    return Q


def test_replicated_and_sharded():
    for shape in ((1, 2), (2, 1)):
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard"))
        model, plain = sharded(network(1), mesh=mesh), network()
        set_model_state_dict(model, plain.state_dict(), options=WHOLE)
        check_same(model, plain)
        model.load_state_dict(sharded(network(1), mesh=mesh).state_dict())
        check_same(model, network(1))
        only_rank_0 = plain.state_dict() if dist.get_rank() == 0 else {}
        set_model_state_dict(model, only_rank_0, options=FROM_RANK_0)
        check_same(model, plain)
