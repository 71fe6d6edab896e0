"""Recurrent layers match `torch.nn.RNN` if Q = 0, match the formula otherwise, and are stable."""

import copy
import importlib.util
import io
import itertools
import pickle
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jacfwd, jacrev, stack_module_state, vmap
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from quadric.torch import QuadraticRNN, QuadraticRNNCell

ROOT = Path(__file__).parents[2]
DOUBLE = {"dtype": torch.float64}


def draw(*shape, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, **{**DOUBLE, **options})


def randomize(module, scale=0.3, seed=0):
    """Draw all parameters at random, because the initial Q is partly zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, scale, generator=generator)
    return module


def weights_of(rnn):
    """Return (W_x, W_h, b) for each cell of a `torch.nn.RNN`."""
    suffixes = [
        f"l{layer}{direction}"
        for layer in range(rnn.num_layers)
        for direction in (("", "_reverse") if rnn.bidirectional else ("",))
    ]
    return [
        (
            getattr(rnn, f"weight_ih_{suffix}"),
            getattr(rnn, f"weight_hh_{suffix}"),
            getattr(rnn, f"bias_ih_{suffix}") + getattr(rnn, f"bias_hh_{suffix}")
            if rnn.bias
            else None,
        )
        for suffix in suffixes
    ]


@torch.no_grad()
def fill(cell, W_x, W_h, b):
    cell.neurons.packed.zero_()
    cell.neurons.W.copy_(torch.cat([W_x, W_h], dim=1))
    if b is not None:
        cell.neurons.b.copy_(b)


def pair(*sizes, **options):
    """Return a `torch.nn.RNN` and a `QuadraticRNN` with the same weights and Q = 0."""
    torch.manual_seed(0)
    theirs = nn.RNN(*sizes, **options, **DOUBLE)
    ours = QuadraticRNN(*sizes, **options, **DOUBLE)
    for cell, weights in zip(ours.cells, weights_of(theirs), strict=True):
        fill(cell, *weights)
    return theirs, ours


def sequences(seed=0):
    return [draw(length, 3, seed=seed + length) for length in (2, 5, 1, 4)]


def inputs(kind):
    return {
        "batch": lambda: draw(6, 5, 3),
        "one sequence": lambda: draw(6, 3),
        "one step": lambda: draw(1, 5, 3),
        "empty batch": lambda: draw(6, 0, 3),
        "packed": lambda: pack_sequence(sequences(), enforce_sorted=False),
        "packed, sorted": lambda: pack_sequence(sorted(sequences(), key=len, reverse=True)),
    }[kind]()


KINDS = ["batch", "one sequence", "one step", "empty batch", "packed", "packed, sorted"]


def first_states(x, cells, m):
    if isinstance(x, PackedSequence):
        return draw(cells, int(x.batch_sizes[0]), m)
    return draw(cells, *x.shape[1:-1], m)


def assert_same(ours, theirs, tolerance=1e-12):
    """Compare types, shapes and numbers of both results of two networks."""
    (output, h_n), (expected, h_expected) = ours, theirs
    assert type(output) is type(expected)
    if isinstance(output, PackedSequence):
        for name in ("batch_sizes", "sorted_indices", "unsorted_indices"):
            a, b = getattr(output, name), getattr(expected, name)
            assert (a is None and b is None) or torch.equal(a, b)
        output, expected = output.data, expected.data
    for a, b in ((output, expected), (h_n, h_expected)):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


def test_one_step_matches_hand_worked_numbers():
    cell = QuadraticRNNCell(1, 1, nonlinearity="relu", **DOUBLE)
    # u = [2, 1/2]: u'Q u = 1 * 4 + 2 * (1/2) * 1 + 2 / 4 = 5.5; w'u = 3 * 2 - 1/2 = 5.5; b = 1/4
    cell.neurons.Q = torch.tensor([[[1.0, 0.5], [0.5, 2.0]]], **DOUBLE)
    with torch.no_grad():
        cell.neurons.W.copy_(torch.tensor([[3.0, -1.0]]))
        cell.neurons.b.fill_(0.25)
    x, h = torch.tensor([2.0], **DOUBLE), torch.tensor([0.5], **DOUBLE)
    assert cell(x, h).tolist() == [11.25]
    assert cell(-x, h).tolist() == [0.0]  # 4 - 1 + 0.5 - 6 - 0.5 + 0.25 < 0


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
@pytest.mark.parametrize("bias", [True, False])
def test_cell_is_its_formula(nonlinearity, bias):
    cell = randomize(QuadraticRNNCell(3, 4, bias, nonlinearity, **DOUBLE))
    x, h = draw(5, 3), draw(5, 4, seed=1)
    u = torch.cat([x, h], dim=1)
    z = torch.einsum("bi,kij,bj->bk", u, cell.neurons.Q, u) + u @ cell.neurons.W.T
    z = z + cell.neurons.b if bias else z
    expected = torch.tanh(z) if nonlinearity == "tanh" else z.clamp(min=0)
    torch.testing.assert_close(cell(x, h), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(cell(x[2], h[2]), expected[2], rtol=0, atol=1e-12)
    assert torch.equal(cell(x), cell(x, torch.zeros(5, 4, **DOUBLE)))
    assert torch.equal(cell(x[0]), cell(x[0], torch.zeros(4, **DOUBLE)))
    assert (cell.neurons.b is None) is not bias


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
@pytest.mark.parametrize("bias", [True, False])
def test_cell_without_Q_matches_torch(nonlinearity, bias):
    theirs = nn.RNNCell(3, 4, bias, nonlinearity, **DOUBLE)
    ours = QuadraticRNNCell(3, 4, bias, nonlinearity, **DOUBLE)
    b = theirs.bias_ih + theirs.bias_hh if bias else None
    fill(ours, theirs.weight_ih, theirs.weight_hh, b)
    for x, h in [(draw(5, 3), draw(5, 4)), (draw(3), draw(4)), (draw(0, 3), draw(0, 4))]:
        torch.testing.assert_close(ours(x, h), theirs(x, h), rtol=0, atol=1e-12)
        torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False, "nonlinearity": "relu"},
        {"bidirectional": True},
        {"num_layers": 3, "nonlinearity": "relu"},
        {"num_layers": 2, "bidirectional": True, "batch_first": True},
    ],
    ids=str,
)
def test_rnn_without_Q_matches_torch(kind, options):
    theirs, ours = pair(3, 4, **options)
    x = inputs(kind)
    h_0 = first_states(x, len(ours.cells), 4)
    if theirs.batch_first and not isinstance(x, PackedSequence) and x.ndim == 3:
        x = x.transpose(0, 1)
    assert_same(ours(x), theirs(x))
    assert_same(ours(x, h_0), theirs(x, h_0))


@pytest.mark.parametrize("packed", [False, True])
def test_gradients_without_Q_match_torch(packed):
    theirs, ours = pair(3, 4, num_layers=2, bidirectional=True)
    x = inputs("packed" if packed else "batch")
    h_0 = first_states(x, 4, 4)
    starts = []
    for rnn in (theirs, ours):
        start = h_0.clone().requires_grad_()
        output, h_n = rnn(x, start)
        ((output.data if packed else output).square().sum() + h_n.sum()).backward()
        starts.append(start.grad)
    torch.testing.assert_close(*starts, rtol=0, atol=1e-12)
    for cell, suffix in zip(ours.cells, ["l0", "l0_reverse", "l1", "l1_reverse"], strict=True):
        slopes = [getattr(theirs, f"weight_{part}_{suffix}").grad for part in ("ih", "hh")]
        torch.testing.assert_close(cell.neurons.W.grad, torch.cat(slopes, 1), rtol=0, atol=1e-11)
        slope = getattr(theirs, f"bias_ih_{suffix}").grad
        torch.testing.assert_close(cell.neurons.b.grad, slope, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["batch", "packed"])
def test_dropout_matches_torch_exactly(kind):
    theirs, ours = pair(3, 4, num_layers=3, bidirectional=True, dropout=0.4)
    x = inputs(kind)
    results = []
    for rnn in (ours, theirs):
        torch.manual_seed(1)
        results.append(rnn(x))
    assert_same(*results)
    assert_same(ours.eval()(x), theirs.eval()(x))
    dropped = results[0][1]
    assert not torch.allclose(ours(x)[1], dropped)  # it had an effect, but not on the first layer
    torch.testing.assert_close(ours(x)[1][:2], dropped[:2], rtol=0, atol=1e-12)


def by_hand(cell, steps, h):
    states = []
    for x in steps:
        h = cell(x, h)
        states.append(h)
    return torch.stack(states), h


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_layers_and_directions_match_single_cells(nonlinearity):
    rnn = QuadraticRNN(3, 4, 2, nonlinearity, bidirectional=True, **DOUBLE)
    randomize(rnn, 0.1)
    x, h_0 = draw(6, 5, 3), draw(4, 5, 4)
    steps, last = x, []
    for layer in range(2):
        there, h = by_hand(rnn.cells[2 * layer], steps, h_0[2 * layer])
        back, g = by_hand(rnn.cells[2 * layer + 1], steps.flip(0), h_0[2 * layer + 1])
        steps = torch.cat([there, back.flip(0)], dim=2)
        last += [h, g]
    assert_same(rnn(x, h_0), (steps, torch.stack(last)))
    assert len(steps) > 0
    assert steps.abs().max() > 0.1


@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_match_single_sequences(bidirectional):
    rnn = randomize(QuadraticRNN(3, 4, 2, bidirectional=bidirectional, **DOUBLE))
    alone = sequences()
    h_0 = draw(len(rnn.cells), 4, 4)
    packed, h_n = rnn(pack_sequence(alone, enforce_sorted=False), h_0)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(packed)
    assert lengths.tolist() == [2, 5, 1, 4]
    for i, x in enumerate(alone):
        output, h = rnn(x, h_0[:, i])
        torch.testing.assert_close(padded[: len(x), i], output, rtol=0, atol=1e-12)
        torch.testing.assert_close(h_n[:, i], h, rtol=0, atol=1e-12)


def test_batch_first_transposes_only_inputs_and_outputs():
    rnn = randomize(QuadraticRNN(3, 4, 2, **DOUBLE))
    turned = QuadraticRNN(3, 4, 2, batch_first=True, **DOUBLE)
    turned.load_state_dict(rnn.state_dict())
    x, h_0 = draw(6, 5, 3), draw(2, 5, 4)
    output, h_n = rnn(x, h_0)
    assert_same(turned(x.transpose(0, 1), h_0), (output.transpose(0, 1), h_n))
    assert_same(turned(x[:, 0], h_0[:, 0]), rnn(x[:, 0], h_0[:, 0]))


def kind_of_error(call):
    try:
        call()
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize(
    ("x", "h"),
    [
        ((1, 2, 3), None),
        ((2, 5), None),
        ((5,), None),
        ((2, 3), (3, 4)),
        ((2, 3), (2, 5)),
        ((3,), (5,)),
        ((3,), (2, 4)),
        ((2, 3), (4,)),
        ((2, 3), (1, 2, 4)),
    ],
)
def test_cell_refuses_the_same_input_as_torch(x, h):
    arguments = [torch.zeros(shape) for shape in (x, h) if shape is not None]
    expected = kind_of_error(lambda: nn.RNNCell(3, 4)(*arguments))
    assert expected is not None
    with pytest.raises(expected, match=r"must have .* Got "):
        QuadraticRNNCell(3, 4)(*arguments)


@pytest.mark.parametrize(
    ("x", "h"),
    [
        ((3,), None),
        ((1, 5, 2, 3), None),
        ((5, 2, 4), None),
        ((5, 4), None),
        ((0, 2, 3), None),
        ((0, 3), None),
        ((5, 3), (4, 2, 4)),
        ((5, 2, 3), (4, 4)),
        ((5, 2, 3), (4, 3, 4)),
        ((5, 2, 3), (2, 2, 4)),
        ((5, 2, 3), (4, 2, 5)),
        ((5, 3), (4, 5)),
        ((5, 2, 3), (4,)),
    ],
)
def test_rnn_refuses_the_same_input_as_torch(x, h):
    arguments = [torch.zeros(shape) for shape in (x, h) if shape is not None]
    expected = kind_of_error(lambda: nn.RNN(3, 4, 2, bidirectional=True)(*arguments))
    assert expected is not None
    with pytest.raises(expected, match=r"must have .* Got "):
        QuadraticRNN(3, 4, 2, bidirectional=True)(*arguments)


def test_states_of_another_dimension_are_named_as_given():
    with pytest.raises(RuntimeError, match=r"3 dimensions, like the input. Got shape \(1, 4\)"):
        QuadraticRNN(3, 4)(torch.zeros(5, 2, 3), torch.zeros(1, 4))


def test_packed_input_and_dtypes_are_refused_as_in_torch():
    packed = pack_sequence([torch.zeros(4, 3), torch.zeros(2, 3)])
    wide = pack_sequence([torch.zeros(4, 5), torch.zeros(2, 5)])
    x, cell_x = torch.zeros(5, 2, 3), torch.zeros(2, 3)
    for arguments in [
        (wide,),
        (packed, torch.zeros(1, 3, 4)),
        (packed, torch.zeros(1, 4)),
        (x.double(),),
        (x.long(),),
        (x, torch.zeros(1, 2, 4).double()),
    ]:
        expected = kind_of_error(lambda arguments=arguments: nn.RNN(3, 4)(*arguments))
        assert expected is not None
        with pytest.raises(expected, match="must have"):
            QuadraticRNN(3, 4)(*arguments)
    for arguments in [(cell_x.double(),), (cell_x, torch.zeros(2, 4).double())]:
        assert kind_of_error(lambda arguments=arguments: nn.RNNCell(3, 4)(*arguments))
        with pytest.raises(RuntimeError, match="dtype"):
            QuadraticRNNCell(3, 4)(*arguments)


@pytest.mark.parametrize(
    ("option", "kind"),
    [
        ({"num_layers": 0}, ValueError),
        ({"num_layers": 1.5}, TypeError),
        ({"hidden_size": 0}, ValueError),
        ({"hidden_size": 1.5}, TypeError),
        ({"input_size": 0}, ValueError),
        ({"input_size": "3"}, TypeError),
        ({"dropout": 2}, ValueError),
        ({"dropout": -0.1}, ValueError),
        ({"dropout": True}, TypeError),
        ({"nonlinearity": "sigmoid"}, ValueError),
        ({"bias": None}, TypeError),
        ({"batch_first": 1}, TypeError),
        ({"bidirectional": "yes"}, TypeError),
    ],
)
def test_wrong_arguments_raise(option, kind):
    (name,) = option
    with pytest.raises(kind, match=f"{name} must be .* Got"):
        QuadraticRNN(**{"input_size": 3, "hidden_size": 4, **option})
    if name in ("hidden_size", "input_size", "bias", "nonlinearity"):
        with pytest.raises(kind, match=f"{name} must be .* Got"):
            QuadraticRNNCell(**{"input_size": 3, "hidden_size": 4, **option})


def test_dropout_of_a_single_layer_warns():
    with pytest.warns(UserWarning, match="has no effect with num_layers=1"):
        rnn = QuadraticRNN(3, 4, dropout=0.5)
    x = torch.zeros(5, 2, 3).normal_()
    assert torch.equal(rnn(x)[0], rnn(x)[0])


@pytest.mark.slow
@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_gradients_of_the_cell_match_differences(nonlinearity):
    cell = randomize(QuadraticRNNCell(2, 3, nonlinearity=nonlinearity, **DOUBLE))
    names, values = zip(*cell.named_parameters(), strict=True)

    def function(x, h, *values):
        return functional_call(cell, dict(zip(names, values, strict=True)), (x, h))

    arguments = [t.detach().requires_grad_() for t in (draw(2, 2), draw(2, 3, seed=1), *values)]
    assert torch.autograd.gradcheck(function, arguments)
    assert torch.autograd.gradgradcheck(function, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True])
def test_gradients_of_the_rnn_match_differences(packed):
    rnn = randomize(QuadraticRNN(2, 2, 2, bidirectional=True, **DOUBLE))
    names, values = zip(*rnn.named_parameters(), strict=True)

    def function(x, h_0, *values):
        if packed:  # two sequences with three and two steps
            x = pack_sequence([x[:, 0], x[:2, 1]])
        output, h_n = functional_call(rnn, dict(zip(names, values, strict=True)), (x, h_0))
        return output.data if packed else output, h_n

    arguments = [t.detach().requires_grad_() for t in (draw(3, 2, 2), draw(4, 2, 2), *values)]
    assert torch.autograd.gradcheck(function, arguments, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, arguments, fast_mode=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch
@pytest.mark.parametrize("module", ["cell", "rnn"])
def test_compiles_into_one_graph(module):
    torch.compiler.reset()
    if module == "cell":
        network, arguments = QuadraticRNNCell(3, 4), (draw(2, 3).float(), draw(2, 4).float())
    else:
        network = QuadraticRNN(3, 4, bidirectional=True)
        arguments = (draw(3, 2, 3).float(), draw(2, 2, 4).float())
    randomize(network)
    # this backend traces the forward and backward graph, but does not call the C++ compiler
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    gradients = []
    for call in (network, compiled):
        network.zero_grad()
        result = call(*arguments)
        (result if module == "cell" else result[0]).square().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in network.parameters()])
    torch.testing.assert_close(compiled(*arguments), network(*arguments))
    torch.testing.assert_close(*gradients)


def test_copies_and_pickles_keep_the_numbers():
    for network, x in [
        (QuadraticRNNCell(3, 4, nonlinearity="relu"), draw(2, 3).float()),
        (QuadraticRNN(3, 4, 2, dropout=0.1, batch_first=True).eval(), draw(2, 5, 3).float()),
    ]:
        expected = network(x)[0]
        for other in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
            assert torch.equal(other(x)[0], expected)
            randomize(other)
            assert not torch.equal(other(x)[0], expected)
        assert torch.equal(network(x)[0], expected)


def test_state_dict_holds_the_parameters_of_the_neurons():
    rnn = randomize(QuadraticRNN(3, 4, 2, bidirectional=True, **DOUBLE))
    state = rnn.state_dict()
    assert list(state) == [
        f"cells.{i}.neurons.{name}" for i in range(4) for name in ("packed", "W", "b")
    ]
    rows, columns = torch.triu_indices(7, 7)
    Q = rnn.cells[1].neurons.Q
    assert torch.equal(state["cells.1.neurons.packed"], Q[:, rows, columns].T)
    assert state["cells.2.neurons.packed"].shape == (12 * 13 // 2, 4)
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    other = QuadraticRNN(3, 4, 2, bidirectional=True, **DOUBLE)
    other.load_state_dict(torch.load(file, weights_only=True))
    x = draw(6, 5, 3)
    assert_same(other(x), rnn(x), tolerance=0)
    names = list(QuadraticRNN(3, 4, bias=False).state_dict())
    assert names == ["cells.0.neurons.packed", "cells.0.neurons.W"]


@pytest.mark.slow
def test_vmap_over_an_ensemble_matches_a_loop():
    ensemble = [
        randomize(QuadraticRNN(3, 4, 2, bidirectional=True, **DOUBLE), seed=i) for i in range(3)
    ]
    parameters, buffers = stack_module_state(ensemble)
    x = draw(5, 2, 3)

    def loss(parameters, x):
        return functional_call(ensemble[0], (parameters, buffers), (x,))[0].square().sum()

    slopes = vmap(grad(loss), in_dims=(0, None))(parameters, x)
    losses = vmap(loss, in_dims=(0, None))(parameters, x)
    for i, rnn in enumerate(ensemble):
        own = rnn(x)[0].square().sum()
        torch.testing.assert_close(losses[i], own)
        own.backward()
        for name, parameter in rnn.named_parameters():
            torch.testing.assert_close(slopes[name][i], parameter.grad)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_forward_mode_matches_backward_mode():
    rnn = randomize(QuadraticRNN(3, 4, 2, bidirectional=True, **DOUBLE))
    x = draw(4, 2, 3)
    forwards, backwards = (by(lambda x: rnn(x)[0])(x) for by in (jacfwd, jacrev))
    torch.testing.assert_close(forwards, backwards, rtol=0, atol=1e-12)


def test_half_precision_and_autocast_keep_their_dtype():
    x = draw(5, 2, 3).float()
    half = QuadraticRNN(3, 4, 2, bidirectional=True, dtype=torch.bfloat16)
    output, h_n = half(x.bfloat16())
    assert output.dtype == h_n.dtype == torch.bfloat16
    rnn = QuadraticRNN(3, 4, 2, bidirectional=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, h_n = rnn(x)
        packed = rnn(pack_sequence([x[:, 0], x[:2, 1]]))
    assert output.dtype == h_n.dtype == packed[1].dtype == torch.bfloat16
    torch.testing.assert_close(output.float(), rnn(x)[0], rtol=0.05, atol=0.01)


def test_new_initial_values_come_from_the_generator():
    rnn = QuadraticRNN(3, 4, 2)
    before = torch.random.get_rng_state()
    states = []
    for seed in (0, 0, 1):
        rnn.reset_parameters(torch.Generator().manual_seed(seed))
        states.append(copy.deepcopy(rnn.state_dict()))
    assert torch.equal(before, torch.random.get_rng_state())
    for name in states[0]:
        assert torch.equal(states[0][name], states[1][name])
        assert torch.equal(states[0][name], states[2][name]) is not name.endswith(".W")
    cell = QuadraticRNNCell(3, 4)
    cell.reset_parameters(generator=torch.Generator().manual_seed(0))
    assert torch.equal(cell.neurons.W, states[0]["cells.0.neurons.W"])


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_initial_values_are_the_documented_ones(dtype, nonlinearity):
    torch.manual_seed(0)
    neurons = QuadraticRNNCell(40, 30, nonlinearity=nonlinearity, dtype=dtype).neurons
    W_x, W_h = neurons.W[:, :40].double(), neurons.W[:, 40:].double()
    tolerance = 10 * torch.finfo(dtype).eps
    torch.testing.assert_close(W_h.T @ W_h, torch.eye(30, **DOUBLE), rtol=0, atol=tolerance)
    assert torch.equal(W_h, torch.eye(30, **DOUBLE)) is (nonlinearity == "relu")
    assert 0.95e-2 < W_x.std() * 40**0.5 < 1.05e-2
    assert (neurons.packed == 0).all()
    assert (neurons.b == 0).all()


SIZES = [(1, 1), (1, 8), (3, 32), (140, 10)]


def noise(n, batch=16):
    return draw(500, batch, n, dtype=torch.float32)


def states_and_slopes(rnn, x, h_0):
    """Return the states and, for each sequence, the norm of d h_n / d h_0."""
    h_0 = h_0.clone().requires_grad_()
    output, h_n = rnn(x, h_0)
    direction = draw(*h_n.shape, seed=9, dtype=x.dtype)
    direction = direction / direction.norm(dim=-1, keepdim=True)
    (slope,) = torch.autograd.grad((h_n * direction).sum(), h_0)
    return output.detach(), slope.norm(dim=-1)


def size(states):
    """Return the root mean square at each step."""
    return states.square().mean((1, 2)).sqrt()


@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_states_and_gradients_last_five_hundred_steps(n, m, nonlinearity):
    torch.manual_seed(0)
    rnn = QuadraticRNN(n, m, nonlinearity=nonlinearity)
    one_sided = noise(n)[:1].abs().expand(500, 16, n)
    x = torch.cat([noise(n), torch.zeros(500, 16, n), one_sided], dim=1)
    h_0 = draw(1, 48, m, dtype=torch.float32).abs() / 10
    states, slopes = states_and_slopes(rnn, x, h_0)
    assert slopes.max() < 1 + 1e-4  # by W_h'W_h = 1 and g' <= 1
    for part, slope in zip(states.split(16, 1), slopes.split(16, 1), strict=True):
        assert size(part).min() > 0.01
        assert slope.mean() > 1e-3
    assert size(states[:, :32]).max() < 0.5
    # tanh bounds the effect of a constant input; with relu, it adds up to 500 times about 0.01 |x|
    assert size(states[:, 32:]).max() < (1 if nonlinearity == "tanh" else 10)


@pytest.mark.slow
def test_other_initial_values_vanish_or_explode():
    """This shows that the test above can fail."""
    torch.manual_seed(0)
    x, h_0 = noise(3), torch.zeros(1, 16, 32)
    _, slopes = states_and_slopes(nn.RNN(3, 32), x, h_0)
    assert slopes.max() < 1e-20
    rnn = QuadraticRNN(3, 32, nonlinearity="relu")
    rnn.cells[0].neurons.packed.data.normal_(0, 0.05)
    assert not rnn(x, h_0)[0].isfinite().all()


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_states_and_gradients_last_five_hundred_steps_in_layers(nonlinearity):
    torch.manual_seed(0)
    rnn = QuadraticRNN(3, 16, 2, nonlinearity, bidirectional=True)
    h_0 = draw(4, 4, 16, dtype=torch.float32).abs() / 10
    states, slopes = states_and_slopes(rnn, noise(3, batch=4), h_0)
    assert size(states).min() > 0.01
    assert size(states).max() < 2
    assert slopes.max() < 10  # through all layers above
    assert (slopes.mean(1) > 1e-3).all()


@pytest.fixture(scope="module")
def parity():
    path = ROOT / "examples" / "torch_parity.py"
    spec = importlib.util.spec_from_file_location("torch_parity", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_sequences_of_the_example_are_parities(parity):
    bits, products = parity.sequences(7, 20, torch.Generator().manual_seed(0))
    assert set(bits.flatten().tolist()) == {-1.0, 1.0}
    for count, t in itertools.product(range(20), range(7)):
        negative = int((bits[: t + 1, count] < 0).sum())
        assert products[t, count] == (-1) ** negative


@pytest.mark.slow
def test_only_quadratic_neurons_learn_parity(parity, capsys):
    quadratic, rival, larger, patient = parity.contestants()
    assert quadratic.parameters() == 4 * 15 + 4 * 5 + 4 + 5
    assert rival.hidden == quadratic.hidden
    assert larger.parameters() >= quadratic.parameters()
    assert (patient.hidden, patient.patience) == (larger.hidden, 10)
    task = parity.Task(length=20, steps=80, learning_rate=0.03)
    seeds = range(1)
    solved = parity.run(quadratic, task, seeds)
    assert min(solved.same_length) >= 0.99
    assert min(solved.ten_times) >= 0.99
    for other in (rival, larger):
        result = parity.run(other, task, seeds)
        assert max(result.same_length) < 0.9
        assert max(result.ten_times) < 0.6
    assert "seed 0: 100.0%" in capsys.readouterr().err
