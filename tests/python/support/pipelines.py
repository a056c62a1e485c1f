"""Small DALI pipelines around a decoder, and the pixels, as PNG and as L3, that decoders are compared on."""

import imagecodecs
import numpy as np
from nvidia.dali import fn, pipeline_def, types

import dali_l3

OUTPUT_TYPES = {name: getattr(types, name) for name in ("RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA")}
# Output types by number of channels. DALI cannot keep the two channels of a PNG of gray and alpha.
CONVERSIONS = [
    (channels, name) for channels in (1, 2, 3, 4) for name in OUTPUT_TYPES if (channels, name) != (2, "ANY_DATA")
]

DTYPES = {name: getattr(types, name) for name in ("UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "FLOAT")}


def device_id(device):
    """The `device_id` of a pipeline whose decoders are on `device`, "cpu" or "mixed"."""
    return 0 if device == "mixed" else None


def to_arrays(output):
    """The samples of a pipeline's output, wherever it is."""
    output = output.as_cpu()
    return [np.array(output[i]) for i in range(len(output))]


def run_batch(decoder, files, *inputs, threads=2, device="cpu", **arguments):
    """Decodes a batch through a pipeline.

    Args:
        decoder: The operator, such as `fn.decoders.image`.
        files: Encoded files, bytes each.
        *inputs: Further inputs: each a list with an array for each file.
        threads: Threads of the pipeline.
        device: Of the operator, "cpu" or "mixed".
        **arguments: Arguments of the operator; a list of arrays becomes a tensor argument.

    Returns:
        list: For each output an array for each file.
    """

    def source(arrays):
        return fn.external_source(source=lambda: arrays, batch=True)

    @pipeline_def(batch_size=len(files), num_threads=threads, device_id=device_id(device), prefetch_queue_depth=1)
    def pipeline():
        encoded = source([np.frombuffer(file, np.uint8) for file in files])
        tensors = {name: source(value) if isinstance(value, list) else value for name, value in arguments.items()}
        outputs = decoder(encoded, *map(source, inputs), device=device, **tensors)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return list(map(to_arrays, pipeline().run()))


def decode_batch(decoder, files, *inputs, **arguments):
    """The same for a decoder of one output."""
    (arrays,) = run_batch(decoder, files, *inputs, **arguments)
    return arrays


def decode_one(decoder, file, *inputs, **arguments):
    """The same for one file, with an array for each further input."""
    (array,) = decode_batch(decoder, [file], *([value] for value in inputs), **arguments)
    return array


def decode_files(decoder, paths, device="cpu", **arguments):
    """Reads and decodes one batch of files with `fn.readers.file`."""

    @pipeline_def(batch_size=len(paths), num_threads=2, device_id=device_id(device), prefetch_queue_depth=1)
    def pipeline():
        encoded, _ = fn.readers.file(files=[str(path) for path in paths])
        return decoder(encoded, device=device, **arguments)

    (output,) = pipeline().run()
    return to_arrays(output)


def sample_pixels(bits, channels):
    """An image of all 8-bit or all 16-bit values in random order, a part of it gray, (300, 257, channels)."""
    generator = np.random.default_rng(bits + channels)
    pixels = generator.integers(0, 2**bits, (300, 257, channels), np.uint8 if bits == 8 else np.uint16)
    values = pixels.reshape(-1)
    values[: 2**bits] = generator.permutation(2**bits)
    pixels[-50:] = pixels[-50:, :, :1]
    return pixels


def as_png(pixels):
    """PNG of (height, width, channels), lossless at 8 and 16 bits."""
    return bytes(imagecodecs.png_encode(pixels[..., 0] if pixels.shape[2] == 1 else pixels))


def as_l3(pixels, **options):
    """L3 of the same pixels."""
    return dali_l3.encode(pixels, **options)
