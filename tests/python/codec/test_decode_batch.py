"""decode_batch: what decode gives, for many images at once, in native threads; and what is wrong with which."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import smooth_image
from hypothesis import given
from hypothesis import strategies as st

import dali_l3
from dali_l3 import L3Error
from waiting import HANGS

SHAPES = [(1, 1), (70, 90), (64, 64, 1), (65, 130, 3), (33, 300, 4), (500, 700, 3)]
IMAGES = [smooth_image(shape, dtype, seed=3) for shape in SHAPES for dtype in (np.uint8, np.uint16)]
BLOBS = [dali_l3.encode(image) for image in IMAGES]


def assert_same(decoded, images):
    assert len(decoded) == len(images)
    for one, image in zip(decoded, images, strict=True):
        assert one.dtype == image.dtype
        np.testing.assert_array_equal(one, image)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    paths = [folder / f"{number}.l3" for number in range(len(BLOBS))]
    for path, blob in zip(paths, BLOBS, strict=True):
        path.write_bytes(blob)
    return paths


class TestImages:
    @pytest.mark.parametrize("threads", [None, 1, 2, 3, 64, np.int64(2)])
    def test_of_all_shapes_and_depths_in_order(self, paths, threads):
        assert_same(dali_l3.decode_batch(BLOBS, threads=threads), IMAGES)
        assert_same(dali_l3.decode_batch(paths, threads=threads), IMAGES)

    def test_bytes_and_paths_mixed(self, paths):
        mixed = [
            blob if number % 2 else str(path) for number, (blob, path) in enumerate(zip(BLOBS, paths, strict=True))
        ]
        mixed[0] = bytearray(BLOBS[0])
        mixed[1] = memoryview(BLOBS[1])
        mixed[3] = np.frombuffer(BLOBS[3], np.uint8)
        assert_same(dali_l3.decode_batch(mixed), IMAGES)
        assert_same(dali_l3.decode_batch(iter(mixed)), IMAGES)

    def test_an_empty_batch(self):
        assert dali_l3.decode_batch([]) == []
        assert dali_l3.decode_batch([], roi=[]) == []
        out = np.empty((0, 4, 4), np.uint8)
        assert dali_l3.decode_batch([], out=out) is out

    def test_many_images_in_many_threads(self):
        images = [smooth_image((20 + i % 7, 30, 3), np.uint8, seed=i) for i in range(300)]
        assert_same(dali_l3.decode_batch(map(dali_l3.encode, images), threads=8), images)

    def test_buffers_are_released(self):
        data = bytearray(BLOBS[0])
        dali_l3.decode_batch([data, data])
        with pytest.raises(L3Error):
            dali_l3.decode_batch([data, b"no image"])
        data.append(0)  # raises BufferError while anyone still holds the buffer

    @given(st.data())
    def test_drawn(self, data):
        numbers = data.draw(st.lists(st.integers(0, len(IMAGES) - 1), max_size=12))
        rois = []
        for number in numbers:
            height, width = IMAGES[number].shape[:2]
            top, left = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, width - 1))
            rows, columns = data.draw(st.integers(1, height - top)), data.draw(st.integers(1, width - left))
            rois.append(data.draw(st.sampled_from([None, (top, left, rows, columns)])))
        decoded = dali_l3.decode_batch(
            [BLOBS[number] for number in numbers], threads=data.draw(st.integers(1, 4)), roi=rois
        )
        parts = [(0, 0, *IMAGES[n].shape[:2]) if roi is None else roi for n, roi in zip(numbers, rois, strict=True)]
        assert_same(decoded, [IMAGES[n][y : y + h, x : x + w] for n, (y, x, h, w) in zip(numbers, parts, strict=True)])


class TestRegions:
    @pytest.mark.parametrize("roi", [(5, 6, 20, 30), [5, 6, 20, 30], np.array([5, 6, 20, 30])])
    def test_one_for_all(self, paths, roi):
        big = [number for number, image in enumerate(IMAGES) if min(image.shape[:2]) > 40]
        wanted = [IMAGES[number][5:25, 6:36] for number in big]
        assert_same(dali_l3.decode_batch([paths[number] for number in big], roi=roi), wanted)

    def test_one_for_each(self):
        rois = np.array([[0, 0, 10, 20], [30, 40, 10, 20]])
        decoded = dali_l3.decode_batch([BLOBS[-1], BLOBS[-1]], roi=rois)
        assert_same(decoded, [IMAGES[-1][:10, :20], IMAGES[-1][30:40, 40:60]])

    def test_not_one_for_each(self):
        with pytest.raises(ValueError, match="there are 1 regions for 2 images"):
            dali_l3.decode_batch(BLOBS[:2], roi=[(0, 0, 1, 1)])

    def test_outside_of_one_image(self, paths):
        rois = [(0, 0, 1, 1), (0, 0, 2, 1), (0, 0, 1, 1)]
        with pytest.raises(L3Error, match=r"^image 1: roi .* = \(0, 0, 2, 1\) is not inside the image"):
            dali_l3.decode_batch(BLOBS[:3], roi=rois)
        with pytest.raises(L3Error) as caught:
            dali_l3.decode_batch(paths[:3], roi=rois)
        assert str(caught.value).startswith(f"{paths[1]}: roi ")


class TestOut:
    images = [smooth_image((70, 80, 3), np.uint16, seed=i) for i in range(5)]
    blobs = [dali_l3.encode(image) for image in images]

    def test_is_filled_and_returned(self):
        out = np.empty((5, 70, 80, 3), np.uint16)
        assert dali_l3.decode_batch(self.blobs, out=out) is out
        np.testing.assert_array_equal(out, np.stack(self.images))

    def test_places_may_be_apart(self):
        canvas = np.full((10, 90, 100, 3), 7, np.uint16)
        expected = canvas.copy()
        expected[1::2, 5:75, 6:86] = self.images
        dali_l3.decode_batch(self.blobs, out=canvas[1::2, 5:75, 6:86])
        np.testing.assert_array_equal(canvas, expected)

    def test_two_dimensional(self):
        images = [image[:, :, 0] for image in self.images]
        out = np.empty((5, 70, 80), np.uint16)
        dali_l3.decode_batch(map(dali_l3.encode, images), out=out)
        np.testing.assert_array_equal(out, np.stack(images))

    def test_a_place_for_each(self):
        out = [np.empty_like(IMAGES[0]), bytearray(IMAGES[3].nbytes)]
        assert dali_l3.decode_batch([BLOBS[0], BLOBS[3]], out=out) is out
        np.testing.assert_array_equal(out[0], IMAGES[0])
        assert bytes(out[1]) == IMAGES[3].tobytes()

    def test_a_buffer(self):
        out = bytearray(5 * self.images[0].nbytes)
        assert dali_l3.decode_batch(self.blobs, out=out) is out
        assert bytes(out) == np.stack(self.images).tobytes()

    @pytest.mark.parametrize(
        ("out", "error", "match"),
        [
            (np.empty((4, 70, 80, 3), np.uint16), ValueError, "out has 4 places for 5 images"),
            (np.empty((6, 70, 80, 3), np.uint16), ValueError, "out has 6 places for 5 images"),
            (np.empty((5, 71, 80, 3), np.uint16), ValueError, r"image 0: out has shape \(71, 80, 3\)"),
            (np.empty((5, 70, 80, 3), np.uint8), TypeError, "image 0: out has dtype uint8"),
            (np.empty((70, 80, 3, 5), np.uint16).transpose(3, 0, 1, 2), ValueError, "image 0: .*contiguous"),
            (np.empty((), np.uint16), ValueError, r"out has shape \(\)"),
            ("text", TypeError, "out must be an array, a DLPack tensor or a buffer, not str"),
            ([1, 2, 3, 4, 5], TypeError, r"out\[0\] must be an array, a DLPack tensor or a buffer, not int"),
        ],
    )
    def test_unsuitable(self, out, error, match):
        with pytest.raises(error, match=match):
            dali_l3.decode_batch(self.blobs, out=out)

    def test_images_of_other_shapes_are_named(self, paths):
        out = np.empty((2, *IMAGES[0].shape), np.uint8)
        with pytest.raises(ValueError, match=r"2\.l3: out has shape \(1, 1\), but \(70, 90\) is decoded"):
            dali_l3.decode_batch([paths[0], paths[2]], out=out)


class TestErrors:
    @pytest.mark.parametrize("threads", [1, 2, 7])
    def test_the_first_bad_image_is_named_every_time(self, threads):
        blobs = [bytearray(blob) for blob in BLOBS]
        for number in (5, 6, 11):
            blobs[number][-17] ^= 0xFF  # its last tile
        for _ in range(10):
            with pytest.raises(L3Error, match=r"^image 5: tile \d+ ") as caught:
                dali_l3.decode_batch(blobs, threads=threads)
            assert caught.value.status == "checksum"
        with pytest.raises(L3Error, match=r"^image 6: tile"):
            dali_l3.decode_batch([*blobs[:5], BLOBS[5], *blobs[6:]], threads=threads)

    def test_the_first_bad_tile_is_named_every_time(self):
        data = bytearray(dali_l3.encode(smooth_image((1000, 1000, 3), np.uint8)))
        for position in range(len(data) // 2, len(data) - 16, 997):
            data[position] ^= 0xFF
        messages = set()
        for _ in range(10):
            with pytest.raises(L3Error) as caught:
                dali_l3.decode_batch([data], threads=4)
            messages.add(str(caught.value))
        with pytest.raises(L3Error) as caught:
            dali_l3.decode(data)
        assert messages == {f"image 0: {caught.value}"}

    def test_verify(self):
        blob = bytearray(dali_l3.encode(np.zeros((64, 64), np.uint8), profile="raw"))
        blob[-17] ^= 1
        assert dali_l3.decode_batch([blob])[0][-1, -1] == 1
        with pytest.raises(L3Error, match="checksum"):
            dali_l3.decode_batch([blob], verify=True)

    def test_files(self, paths, tmp_path):
        with pytest.raises(FileNotFoundError) as caught:
            dali_l3.decode_batch([*paths, tmp_path / "missing.l3", tmp_path / "another.l3"])
        assert caught.value.filename == str(tmp_path / "missing.l3")
        (tmp_path / "cut.l3").write_bytes(BLOBS[0][:50])
        with pytest.raises(L3Error) as caught:
            dali_l3.decode_batch([*paths, tmp_path / "cut.l3"])
        assert str(caught.value) == f"{tmp_path / 'cut.l3'}: truncated: 50 of {len(BLOBS[0])} bytes"

    @pytest.mark.parametrize(
        ("images", "message"),
        [
            ("image.l3", "images must be a sequence of bytes-like objects or paths, not str"),
            (BLOBS[0], "images must be a sequence of bytes-like objects or paths, not bytes"),
            (3, "images must be a sequence of bytes-like objects or paths, not int"),
            ([BLOBS[0], 3], "image 1 must be bytes-like or a path, not int"),
            ([None], "image 0 must be bytes-like or a path, not NoneType"),
        ],
    )
    def test_no_images(self, images, message):
        with pytest.raises(TypeError) as caught:
            dali_l3.decode_batch(images)
        assert str(caught.value) == message

    def test_gaps(self):
        with pytest.raises(BufferError, match="image 1: its bytes have gaps"):
            dali_l3.decode_batch([BLOBS[0], memoryview(BLOBS[0])[::2]])

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"threads": 0}, ValueError, "threads must be at least 1 and below 2**31, not 0"),
            ({"threads": -3}, ValueError, "threads must be at least 1 and below 2**31, not -3"),
            ({"threads": 2**31}, ValueError, f"threads must be at least 1 and below 2**31, not {2**31}"),
            ({"threads": 2**70}, ValueError, f"threads must be at least 1 and below 2**31, not {2**70}"),
            ({"threads": 1.5}, TypeError, "threads must be an integer, not float"),
            ({"verify": 1}, TypeError, "verify must be True or False, not int"),
            ({"roi": 3}, TypeError, "roi must be (top, left, height, width), or one for each image, not int"),
            ({"roi": (1, 2, 3)}, ValueError, "roi must have four values: top, left, height, width"),
            ({"roi": [(1, 2, 3)]}, ValueError, "roi must have four values: top, left, height, width"),
        ],
    )
    def test_arguments(self, arguments, error, message):
        with pytest.raises(error) as caught:
            dali_l3.decode_batch(BLOBS[:1], **arguments)
        assert str(caught.value) == message


class TestThreadsAndProcesses:
    def test_as_many_threads_as_asked_for(self, run_python):
        program = """if True:
            import os, threading, time, numpy as np, dali_l3
            image = np.random.default_rng(0).integers(0, 256, (4000, 4000, 3), np.uint8)
            data, seen, before = dali_l3.encode(image, profile="raw"), set(), len(os.listdir("/proc/self/task"))
            done = threading.Event()
            def decode():
                while 3 not in seen and not over.is_set():
                    dali_l3.decode_batch([data], threads=3)
                done.set()
            over = threading.Event()
            thread = threading.Thread(target=decode)
            thread.start()
            while not done.is_set():
                seen.add(len(os.listdir("/proc/self/task")) - before)
            thread.join()
            print(max(seen))
        """
        assert run_python(program) == "3"

    def test_no_more_threads_than_cpus_wait_for_the_next_call(self, run_python):
        program = """if True:
            import os, numpy as np, dali_l3
            def threads():
                return len(os.listdir("/proc/self/task")) - before
            blobs, before = [dali_l3.encode(np.zeros((64, 64), np.uint8))] * 20, len(os.listdir("/proc/self/task"))
            for threads_wanted in (1, 10, 1, 20):
                dali_l3.decode_batch(blobs, threads=threads_wanted)
                print(threads())
            if os.fork() == 0:
                dali_l3.decode_batch(blobs, threads=2)
                os._exit(0)
            print(threads(), os.wait()[1])
        """
        few, many = min(9, os.cpu_count()), min(19, os.cpu_count())
        assert run_python(program).split() == [str(number) for number in (0, few, few, many, 0, 0)]

    def test_its_threads_take_no_signals(self, run_python):
        program = """if True:
            import os, re, pathlib, numpy as np, dali_l3
            before = set(os.listdir("/proc/self/task"))
            dali_l3.decode_batch([dali_l3.encode(np.zeros((64, 64), np.uint8))] * 2, threads=2)
            for task in set(os.listdir("/proc/self/task")) - before:
                blocked = re.search(r"SigBlk:\\s*(\\w+)", pathlib.Path(f"/proc/self/task/{task}/status").read_text())[1]
                print(bool(int(blocked, 16) >> 1 & 1), bool(int(blocked, 16) >> 14 & 1))
        """
        assert run_python(program) == "True True"  # SIGINT, SIGTERM

    def test_forks_while_other_threads_decode(self, run_python):
        program = """if True:
            import os, threading, numpy as np, dali_l3
            blobs = [dali_l3.encode(np.full((64, 64), number, np.uint8)) for number in range(8)]
            over = threading.Event()
            def decode():
                while not over.is_set():
                    dali_l3.decode_batch(blobs, threads=3)
            threads = [threading.Thread(target=decode) for _ in range(2)]
            for thread in threads:
                thread.start()
            for _ in range(50):
                if os.fork() == 0:
                    os._exit(sum(int(part[0, 0]) for part in dali_l3.decode_batch(blobs, threads=3)))
                print(os.waitstatus_to_exitcode(os.wait()[1]))
            over.set()
        """
        assert run_python(program).split() == ["28"] * 50

    def test_called_from_many_threads(self):
        results = [None] * 8

        def work(number):
            results[number] = dali_l3.decode_batch(BLOBS, threads=3)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(results))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result in results:
            assert_same(result, IMAGES)

    def test_in_forked_and_spawned_processes(self, run_python):
        program = """if True:
            import multiprocessing, numpy as np, dali_l3
            image = np.random.default_rng(0).integers(0, 256, (300, 300, 3), np.uint8)
            blobs = [dali_l3.encode(image)] * 4
            wanted = [part.tobytes() for part in dali_l3.decode_batch(blobs, threads=2)]
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    for decoded in pool.map(dali_l3.decode_batch, [blobs] * 4):
                        assert [part.tobytes() for part in decoded] == wanted
                print(method)
        """
        assert run_python(program) == "fork\nspawn"

    def test_interrupted(self):
        """Ctrl-C ends a batch that would take minutes, before its last image."""
        program = """if True:
            import threading, time, numpy as np, dali_l3
            data = dali_l3.encode(np.random.default_rng(0).integers(1, 256, (2000, 2000), np.uint8))
            out, last = np.zeros((2, 2000, 2000), np.uint8)
            def tell():
                while not out[0, 0]:
                    time.sleep(0.01)
                print("decoding", flush=True)
            threading.Thread(target=tell).start()
            try:
                dali_l3.decode_batch([data] * 100_000, out=[out] * 99_999 + [last], threads=2)
            except KeyboardInterrupt:
                print("interrupted", last.any(), flush=True)
        """
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "decoding\n"
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=HANGS)
        finally:
            process.kill()
        assert rest == "interrupted False\n"
        assert process.returncode == 0
