"""The examples, the demo and the benchmarks run, at a small size, and tell the truth."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from waiting import HANGS

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
BENCHMARKS = ROOT / "benchmarks"

pytest.importorskip("skimage", reason="the examples take their photographs from scikit-image")
pytest.importorskip("matplotlib", reason="the demo and the benchmarks draw charts")


def run(script, *arguments, expect=0, **options):
    """Runs a script in a fresh interpreter; returns what it printed."""
    command = [sys.executable, str(script), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HANGS, **options)
    assert result.returncode == expect, result.stdout + result.stderr
    return result.stdout + result.stderr


def printed(script):
    """What the gallery says that an example prints."""
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    section = page[page.index(f"(../examples/{script})") :]
    return re.search(r"^```text\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[1]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder in which the gallery's first commands have been run: data/images, /masks, /l3, /mix and /shards."""
    folder = tmp_path_factory.mktemp("work")
    assert run(EXAMPLES / "photos.py", "data", cwd=folder) == printed("photos.py")
    targets = {
        "data/l3": (),
        "data/mix": ("--mix", "l3-fast:2,png:1,jpeg@95:1"),
        "data/shards": ("--shards", "1MiB"),
    }
    for target, options in targets.items():
        run("-m", "dali_l3.cli", "convert", "data/images", target, *options, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def photos(work):
    return work / "data" / "images"


def test_photos_have_masks_of_their_size(photos):
    from PIL import Image

    images = sorted(path.relative_to(photos) for path in photos.rglob("*.png"))
    assert len(images) == 48
    for path in images:
        image, mask = Image.open(photos / path), Image.open(photos.parent / "masks" / path)
        assert (image.size, image.mode) == ((300, 200), "RGB")
        assert (mask.size, mask.mode) == ((300, 200), "L")


def test_encode_decode():
    assert run(EXAMPLES / "encode_decode.py") == printed("encode_decode.py")


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("file_reader.py", ["data/l3"]),
        ("image_decoder.py", ["data/mix"]),
        ("long_tail.py", ["data/l3"]),
        ("masks.py", ["data/l3", "../masks/{dir}/{stem}.png"]),
        ("windows.py", ["data/l3"]),
        ("tar_shards.py", ["data/shards"]),
        ("resume.py", ["data/l3"]),
        ("dynamic_mode.py", ["data/l3"]),
    ],
)
def test_examples_print_what_the_gallery_shows(script, arguments, work, plugin):
    assert printed(script) in run(EXAMPLES / script, *arguments, cwd=work)


def test_convert_in_parts(work):
    output = run(EXAMPLES / "convert_in_parts.py", "data/images", "data/parts", cwd=work)
    assert output == printed("convert_in_parts.py")


def test_mix_jpegs(work, plugin):
    run("-m", "dali_l3.cli", "convert", "data/images", "data/jpeg", "--mix", "jpeg@90:1", cwd=work)
    assert printed("mix_jpegs.py") in run(EXAMPLES / "mix_jpegs.py", "data/jpeg", "data/jpeg-mix", cwd=work)


def test_pytorch_iterator(work, plugin, torch):
    assert printed("pytorch_iterator.py") in run(EXAMPLES / "pytorch_iterator.py", "data/l3", cwd=work)


@pytest.mark.parametrize("script", ["last_batch.py", "torchdata_nodes.py", "jax_sharding.py"])
def test_iterators_of_frameworks(script, work, plugin):
    for package in {"jax_sharding.py": ["jax"], "torchdata_nodes.py": ["torch", "torchdata"]}.get(script, ["torch"]):
        pytest.importorskip(package, reason=f"the example needs {package}")
    devices = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    assert printed(script) in run(EXAMPLES / script, "data/l3", cwd=work, env=os.environ | devices)


def test_proxy(work, plugin, torch):
    # A build of PyTorch without CUDA has no NVTX, which the proxy calls.
    without_nvtx = (
        "import runpy, sys; from torch.cuda import nvtx; nvtx.range_push = nvtx.range_pop = lambda *arguments: None; "
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    assert printed("proxy.py") in run("-c", without_nvtx, EXAMPLES / "proxy.py", "data/l3", cwd=work)


@pytest.fixture(scope="module")
def converted(photos, tmp_path_factory):
    """The photographs as L3 files, and what convert_folder.py printed about them."""
    folder = tmp_path_factory.mktemp("converted") / "l3"
    return folder, run(EXAMPLES / "convert_folder.py", photos, folder)


def test_convert_folder(converted):
    import dali_l3

    folder, output = converted
    assert len(re.findall("^done", output, re.MULTILINE)) == 48
    assert dali_l3.peek((folder / "chelsea/00.l3").read_bytes()).shape == (200, 300, 3)


def test_convert_folder_fails_when_a_file_does(photos, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "broken.png").write_bytes((photos / "chelsea/00.png").read_bytes()[:1000])
    assert "failed" in run(EXAMPLES / "convert_folder.py", source, tmp_path / "l3", expect=1)


def test_train_pipeline(converted, plugin):
    output = run(EXAMPLES / "train_pipeline.py", converted[0], "--batch-size", 8, "--size", 64)
    assert "6 batches of (3, 64, 64) images" in output


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="the example trains with PyTorch")


@pytest.fixture(scope="module")
def mixed_photos(tmp_path_factory):
    """96 photographs in four class folders, half of them L3 and half PNG."""
    folder = tmp_path_factory.mktemp("mixed")
    run(EXAMPLES / "photos.py", folder, "--count", 24, "--height", 64, "--width", 64)
    target = folder / "mix"
    run("-m", "dali_l3.cli", "convert", folder / "images", target, "--mix", "l3-fast:1,png:1")
    return target


def check_training(output):
    """Four epochs of all 96 images, in which the model learns to tell the four classes better than by chance."""
    epochs = re.findall(r"^epoch \d: (\d+) images, loss ([\d.]+), accuracy ([\d.]+)$", output, re.MULTILINE)
    assert [images for images, _, _ in epochs] == ["96"] * 4, output
    losses = [float(loss) for _, loss, _ in epochs]
    assert losses[-1] < 0.9 * losses[0], output
    assert float(epochs[-1][2]) > 0.4, output


def test_train_torch(mixed_photos, plugin, torch):
    check_training(run(EXAMPLES / "train_torch.py", mixed_photos, "--cache-size", "200KiB"))


def test_train_torch_differs_in_one_line_from_dalis_reader(mixed_photos, tmp_path, plugin, torch):
    lines = (EXAMPLES / "train_torch.py").read_text().splitlines()
    [comment] = [i for i, line in enumerate(lines) if "# Before: " in line]
    assert "readers.liquid" in lines[comment + 1]
    lines[comment + 1] = lines[comment].replace("# Before: ", "")
    script = tmp_path / "before.py"
    script.write_text("\n".join(lines))
    check_training(run(script, mixed_photos))


def test_train_torch_in_two_processes(mixed_photos, plugin, torch):
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2)
    check_training(run(*torchrun, EXAMPLES / "train_torch.py", mixed_photos, "--cache-size", "100KiB"))


def test_profile_dataset(photos, tmp_path, plugin):
    target = tmp_path / "mix"
    output = run(EXAMPLES / "profile_dataset.py", photos, target, "--seconds", 0.02)
    recommended = re.search(r"^recommended: (\S+),", output, re.MULTILINE)[1]
    assert json.loads((target / "dali_l3_mix.json").read_text())["mix"] == {
        name: int(weight) for name, weight in (part.split(":") for part in recommended.split(","))
    }
    assert re.search(r"^predicted \d+ images/s, measured \d+$", output, re.MULTILINE)
    assert "a batch of 16 images, the first of shape (200, 300, 3)" in output
    assert sum(path.suffix in (".png", ".bmp", ".l3") for path in target.rglob("*")) == 48


def test_demo(tmp_path, plugin):
    output = run(EXAMPLES / "demo.py", "--out", tmp_path, "--height", 300, "--width", 128, "--seconds", 0.02)
    assert "All 24 L3 files decode to exactly the pixels" in output
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_codec_benchmark(photos, tmp_path):
    run(
        BENCHMARKS / "codec.py",
        photos / "chelsea",
        "--limit",
        1,
        "--rounds",
        1,
        "--encode-rounds",
        1,
        "--out",
        tmp_path,
    )
    results = json.loads((tmp_path / "codec.json").read_text())
    systems = results["groups"]["chelsea"]["systems"]
    assert systems["PNG (Pillow)"]["of_png"] == 1
    assert systems["memcpy"]["bytes"] == 200 * 300 * 3
    assert {target["name"] for target in results["targets"]} >= {"label maps: bytes / PNG", "extra memory, tiles"}
    assert (tmp_path / "codec.svg").exists()


def test_dali_benchmark(tmp_path, plugin):
    small = ("--sizes", "HD", "--files", 16, "--rounds", 1, "--seconds", 0.01)
    run(BENCHMARKS / "dali_decode.py", *small, "--out", tmp_path)
    results = json.loads((tmp_path / "dali_decode.json").read_text())
    assert results["sizes"]["HD"]["PNG"]["times_png"] == 1
    assert len(results["targets"]) == 2
    assert (tmp_path / "dali_decode.svg").exists()


def test_small_images_benchmark(tmp_path, plugin):
    small = ("--batches", 1, "--rounds", 1, "--seconds", 0.01, "--sizes", "224x224")
    run(BENCHMARKS / "dali_small.py", *small, "--parts", "sizes", "masks", "--out", tmp_path)
    results = json.loads((tmp_path / "dali_small.json").read_text())
    assert results["sizes"]["224x224"]["PNG"]["times_png"] == {"images_per_s": 1, "cpu": 1}
    assert [target["at_most"] for target in results["targets"]] == [True] * 6
    assert [*results["masks"]["decoders.l3"]] == ["image alone", "with label mask", "with binary mask"]


def test_reader_check_benchmark(tmp_path, plugin):
    run(BENCHMARKS / "reader_check.py", "--files", 16, "--rounds", 1, "--seconds", 0.01, "--out", tmp_path)
    results = json.loads((tmp_path / "reader_check.json").read_text())
    for formats in results["sizes"].values():
        assert [*formats] == ["L3", "PNG"]
        assert [*formats["L3"]["reader alone"]] == ["none", "headers", "content"]


def test_reader_arguments_benchmark(tmp_path, plugin):
    few = ("--files", 16, "--starts", 1, "--rounds", 1, "--batches", 1)
    run(BENCHMARKS / "reader_arguments.py", *few, "--out", tmp_path)
    cases = json.loads((tmp_path / "reader_arguments.json").read_text())["cases"]
    expected = {
        "nothing",
        "weights",
        "subset",
        "label_columns",
        "equal_sizes",
        "an output of paths",
        "an output of sizes",
    }
    assert expected < set(cases)


def test_endurance_benchmark(plugin):
    output = run(BENCHMARKS / "endurance.py", "--batches", 1500, "--readers", "multi_format", "liquid")
    assert output.count("1500 batches, the statistics add up") == 2


def test_windows_benchmark(tmp_path, plugin):
    run(BENCHMARKS / "windows.py", "--rounds", 1, "--out", tmp_path)
    for ways in json.loads((tmp_path / "windows.json").read_text())["cases"].values():
        assert [*ways] == ["windows", "a decoder for each", "whole image, slices", "whole image alone"]


@pytest.mark.parametrize("document", ["docs/benchmarks.md", "docs/gpu.md", "docs/readers.md", "README.md"])
def test_tables_are_those_of_the_results(document):
    run(BENCHMARKS / "tables.py", "--check", ROOT / document)


def test_tables_follow_the_results(tmp_path):
    document = tmp_path / "document.md"
    document.write_text("before\n<!-- table: targets -->\nold\n<!-- end -->\nafter\n")
    run(BENCHMARKS / "tables.py", "--check", document, expect=1)
    run(BENCHMARKS / "tables.py", document)
    text = document.read_text()
    assert text.startswith("before\n<!-- table: targets -->\n| ")
    assert text.endswith("|\n<!-- end -->\nafter\n")
    run(BENCHMARKS / "tables.py", "--check", document)


@pytest.fixture(scope="module")
def datasets():
    spec = importlib.util.spec_from_file_location("datasets", BENCHMARKS / "datasets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_datasets_are_what_they_say(datasets):
    photo = datasets.bundled_photos()["chelsea"]
    large = datasets.enlarge(photo, 1000, 333)
    assert large.shape == (1000, 333, 3)
    assert np.array_equal(large[:300], photo[:, :333])
    assert np.array_equal(large[300], photo[-1, :333])

    deep = datasets.gray16(photo)
    assert deep.dtype == np.uint16
    assert deep.shape == (150, 225)
    assert len(np.unique(deep)) > 2000  # the photograph has 256
    assert datasets.gray12(photo).max() < 4096
    assert np.array_equal(datasets.gray12_shifted(photo), datasets.gray12(photo) * 16)
    repeated = datasets.gray8_repeated(photo)
    assert repeated.dtype == np.uint16
    assert repeated.shape == photo.shape[:2]
    assert np.array_equal(repeated >> 8, repeated & 255)
    assert datasets.rgb16(photo).shape == (150, 225, 3)
    for make, labels in ((datasets.labels_of_pixels, 8), (datasets.labels_of_superpixels, 12)):
        image = make(photo)
        assert image.shape == photo.shape[:2]
        assert image.dtype == np.uint8
        assert 4 < len(np.unique(image)) <= labels
    assert set(np.unique(datasets.mask_by_threshold(photo))) == {0, 255}
