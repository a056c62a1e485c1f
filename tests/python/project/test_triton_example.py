"""The model repository for Triton, as far as it goes without a server: what the server would read, load and run."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dali_l3
from dali_l3 import _adapter
from waiting import HANGS

REPOSITORY = Path(__file__).parents[3] / "examples" / "triton_models"
NAME = "l3_images"

# What DALI's backend does to serialize a pipeline whose Python it finds.
AUTOSERIALIZE = """
import importlib.util, sys
from nvidia.dali._utils.autoserialize import invoke_autoserialize
spec = importlib.util.spec_from_file_location("autoserialize_mod", {script!r})
module = importlib.util.module_from_spec(spec)
sys.modules["autoserialize_mod"] = module
spec.loader.exec_module(module)
invoke_autoserialize(module, {model!r})
"""

# And with the model, without this package: it loads the plugin, and chooses batch size, threads and device.
SERVE = """
import sys
import numpy as np
from nvidia.dali import Pipeline, plugin_manager

plugin_manager.load_library({adapter!r})
pipe = Pipeline.deserialize(filename={model!r}, batch_size={batch_size}, num_threads=2, device_id=None)
pipe.build()
files = np.load("files.npz")
pipe.feed_input({input!r}, [files[name] for name in files])
outputs = pipe.run()
np.savez("outputs.npz", *[output.as_array() for output in outputs])
assert "dali_l3" not in sys.modules
"""


@pytest.fixture(scope="module")
def messages():
    """What a configuration is written in."""
    return pytest.importorskip("tritonclient.grpc.model_config_pb2", reason="it reads Triton's configurations")


@pytest.fixture(scope="module")
def config(messages):
    from google.protobuf import text_format

    text = (REPOSITORY / NAME / "config.pbtxt").read_text(encoding="utf-8")
    return text_format.Parse(text, messages.ModelConfig())


@pytest.fixture(params=["serialized before", "serialized by the server"])
def model(request, tmp_path, plugin, run_python):
    """The pipeline as a file, made in either way."""
    folder = tmp_path / NAME / "1"
    shutil.copytree(REPOSITORY / NAME / "1", folder, ignore=shutil.ignore_patterns("model.dali"))
    script, model = folder / "dali.py", folder / "model.dali"
    if request.param == "serialized before":
        subprocess.run([sys.executable, str(script)], check=True, timeout=HANGS)
    else:
        run_python(AUTOSERIALIZE.format(script=str(script), model=str(model)))
    return model


def normalized(image):
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    return ((image / 255 - mean) / std).transpose(2, 0, 1)


def test_the_server_runs_the_model_without_the_package(messages, config, model, tmp_path, run_python):
    import nvidia.dali

    adapter = _adapter.packaged().get(nvidia.dali.__version__)
    if adapter is None:
        pytest.skip("an adapter that was compiled here does not find the library by itself")
    image = np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)  # which is not resized
    gray = np.full((50, 70), 200, np.uint8)  # which is
    files = [np.frombuffer(dali_l3.encode(pixels), np.uint8) for pixels in (image, gray)]
    files.append(np.pad(files[1], (0, len(files[0]) - len(files[1]))))  # a client may fill up to a common length
    np.savez(tmp_path / "files.npz", *files)

    (source,) = config.input
    assert list(source.dims) == [-1]
    program = SERVE.format(adapter=str(adapter), model=str(model), batch_size=config.max_batch_size, input=source.name)
    run_python(program)
    outputs = np.load(tmp_path / "outputs.npz")
    assert len(outputs.files) == len(config.output) == 1
    (images,) = outputs.values()
    assert images.shape[1:] == tuple(config.output[0].dims)
    pixels_of_gray = np.full((224, 224, 3), 200, np.uint8)
    expected = [normalized(pixels) for pixels in (image, pixels_of_gray, pixels_of_gray)]
    np.testing.assert_allclose(images, expected, atol=1e-5)
    assert (images.dtype, config.output[0].data_type) == (np.float32, messages.TYPE_FP32)
    assert (files[0].dtype, source.data_type) == (np.uint8, messages.TYPE_UINT8)


def test_the_configuration_is_for_dalis_backend(config):
    assert config.backend == "dali"
    assert not config.name  # then the folder's name is the model's
    assert config.max_batch_size > 0
    assert config.input[0].allow_ragged_batch
    assert config.HasField("dynamic_batching")
