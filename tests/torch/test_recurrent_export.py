"""Exported recurrent modules accept any batch size."""

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from quadric.torch import QuadraticRNN, QuadraticRNNCell  # noqa: E402

MODULES = {
    "cell": lambda: QuadraticRNNCell(3, 4),
    "rnn": lambda: QuadraticRNN(3, 4),
    "two layers, both directions": lambda: QuadraticRNN(3, 4, 2, bidirectional=True),
    "batch first": lambda: QuadraticRNN(3, 4, batch_first=True),
}
EVERY = pytest.mark.parametrize("name", MODULES)
STATES = pytest.mark.parametrize("with_state", [True, False])


def make(name):
    module, generator = MODULES[name]().double().eval(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.3, generator=generator)
    return module


def draw(module, batch, with_state):
    """Return the inputs, and which of their dimensions is the batch."""
    generator = torch.Generator().manual_seed(batch)
    if isinstance(module, QuadraticRNNCell):
        shapes, dimensions = [(batch, 3), (batch, 4)], [0, 0]
    else:
        shapes, dimensions = [(3, batch, 3), (len(module.cells), batch, 4)], [1, 1]
        if module.batch_first:
            shapes[0], dimensions[0] = (batch, 3, 3), 0
    count = 1 + with_state
    draws = (torch.randn(shape, generator=generator).double() for shape in shapes[:count])
    return tuple(draws), dimensions[:count]


def outputs_of(module, inputs):
    with torch.no_grad():
        outputs = module(*inputs)
    return outputs if isinstance(outputs, tuple) else (outputs,)


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.filterwarnings("ignore")  # of torch's tracing
@pytest.mark.parametrize("strict", [False, True])
@STATES
@EVERY
def test_an_exported_program_accepts_other_batch_sizes(name, with_state, strict):
    module = make(name)
    inputs, dimensions = draw(module, 3, with_state)
    batch = torch.export.Dim("batch")
    shapes = tuple({dimension: batch} for dimension in dimensions)
    program = torch.export.export(module, inputs, dynamic_shapes=shapes, strict=strict)
    for batch in (1, 2, 17):
        inputs, _ = draw(module, batch, with_state)
        torch.testing.assert_close(
            outputs_of(program.module(), inputs), outputs_of(module, inputs), rtol=1e-9, atol=1e-12
        )


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.filterwarnings("ignore")  # of torch's tracing, and the older exporter is deprecated
@pytest.mark.parametrize("dynamo", [True, False])
@STATES
@EVERY
def test_an_onnx_file_accepts_other_batch_sizes(name, with_state, dynamo):
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package, reason=f"needs {package}")
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    module = make(name)
    inputs, dimensions = draw(module, 3, with_state)
    file, names = io.BytesIO(), ["input", "hx"][: len(inputs)]
    batch = torch.export.Dim("batch") if dynamo else "batch"
    shapes = [{dimension: batch} for dimension in dimensions]
    if dynamo:
        program = torch.onnx.export(
            module, inputs, dynamo=True, verbose=False, dynamic_shapes=tuple(shapes)
        )
        file.write(program.model_proto.SerializeToString())
    else:
        axes = dict(zip(names, shapes, strict=True))
        torch.onnx.export(module, inputs, file, dynamo=False, input_names=names, dynamic_axes=axes)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    for entry, dimension in zip(session.get_inputs(), dimensions, strict=True):
        assert entry.shape[dimension] == "batch"
    for batch in (1, 2, 17):
        inputs, _ = draw(module, batch, with_state)
        given = {
            entry.name: tensor.numpy()
            for entry, tensor in zip(session.get_inputs(), inputs, strict=True)
        }
        for found, wanted in zip(session.run(None, given), outputs_of(module, inputs), strict=True):
            np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-9, atol=1e-12)
