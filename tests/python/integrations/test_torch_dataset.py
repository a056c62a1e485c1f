"""dali_l3.torch in DataLoaders: every sample once, windows, targets, workers of both kinds, and what is refused."""

import functools
import gc
import os
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import smooth_image
from hypothesis import given
from hypothesis import strategies as st

import dali_l3

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.utils.data import ConcatDataset, DataLoader, Subset  # noqa: E402

from dali_l3 import _lending  # noqa: E402
from dali_l3.torch import L3Folder, collate  # noqa: E402

SHAPE = (150, 200, 3)
COUNT = 10


@pytest.fixture(scope="module")
def images():
    return {f"{'ab'[n % 2]}/{n}.l3": smooth_image(SHAPE, np.uint8, seed=n) for n in range(COUNT)}


@pytest.fixture(scope="module")
def root(tmp_path_factory, images):
    root = tmp_path_factory.mktemp("images")
    for file, image in images.items():
        (root / file).parent.mkdir(exist_ok=True)
        dali_l3.imwrite(root / file, image)
    (root / "a" / "notes.txt").write_text("no image")
    (root / "a" / ".hidden.l3").write_bytes(b"no image")
    return root


@pytest.fixture(scope="module")
def masks(tmp_path_factory, images):
    root = tmp_path_factory.mktemp("masks")
    for file, image in images.items():
        (root / file).parent.mkdir(exist_ok=True)
        dali_l3.imwrite(root / file, image[:, :, 0] // 16)
    return root


def sorted_images(images):
    return [images[file] for file in sorted(images)]


class TestItems:
    def test_files_and_classes(self, root, images):
        dataset = L3Folder(root)
        assert dataset.classes == ["a", "b"]
        assert [sample.path for sample in dataset] == [str(root / file) for file in sorted(images)]
        assert [sample.label for sample in dataset] == dataset.labels == [0] * 5 + [1] * 5
        assert {sample.window for sample in dataset} == {None}

    def test_files_without_a_class(self, root):
        dataset = L3Folder(root / "a")
        assert (dataset.classes, {sample.label for sample in dataset}) == ([], {-1})

    def test_windows_in_the_middle(self, root):
        assert L3Folder(root, window=(50, 60), position="center")[3].window == (50, 70, 50, 60)

    def test_random_windows_are_inside_differ_and_follow_the_seed(self, root):
        dataset = L3Folder(root, window=(149, 60))
        torch.manual_seed(1)
        windows = [dataset[0].window for _ in range(100)]
        tops, lefts, heights, widths = map(set, zip(*windows, strict=True))
        assert (heights, widths, tops) == ({149}, {60}, {0, 1})
        assert min(lefts) >= 0
        assert 100 < max(lefts) <= 140
        torch.manual_seed(1)
        assert [dataset[0].window for _ in range(100)] == windows

    def test_a_window_larger_than_the_image(self, root):
        with pytest.raises(
            ValueError, match=r"0\.l3: the image of \(150, 200\) is smaller than the window of \(151, 1\)"
        ):
            L3Folder(root, window=(151, 1))[0]

    def test_no_files(self, tmp_path):
        with pytest.raises(ValueError, match="no L3 files in this folder or below"):
            L3Folder(tmp_path)
        with pytest.raises(OSError, match="missing.*: folder cannot be read: No such file"):
            L3Folder(tmp_path / "missing")

    def test_links(self, root, tmp_path):
        (tmp_path / "class").symlink_to(root / "a")
        (tmp_path / "loop").symlink_to(tmp_path)
        assert len(L3Folder(tmp_path)) == COUNT / 2
        (tmp_path / "nowhere.l3").symlink_to(tmp_path / "missing")
        with pytest.raises(OSError, match=r"nowhere\.l3: dangling symbolic link"):
            L3Folder(tmp_path)

    def test_missing_targets(self, root, tmp_path):
        message = f"10 of 10 images in {root} have no target; a/0.l3 has none at {tmp_path}/a/0.l3"
        with pytest.raises(ValueError, match=re.escape(message)):
            L3Folder(root, targets=tmp_path)
        message = f"9 of 10 images in {root} have no target; a/2.l3 has none at {root}/a/1.l3"
        with pytest.raises(ValueError, match=re.escape(message)):
            L3Folder(root, targets=lambda path: path if path.endswith("a/0.l3") else root / "a" / "1.l3")

    def test_targets_named_otherwise(self, tmp_path):
        """As in Cityscapes, whose names differ in their suffixes."""
        for number, city in enumerate(["aachen", "zürich"]):
            for kind, value in [("leftImg8bit", 100), ("gtFine_labelIds", 7)]:
                folder = tmp_path / kind.split("_")[0] / "train" / city
                folder.mkdir(parents=True)
                dali_l3.imwrite(folder / f"{city}_0_{kind}.l3", np.full((20, 30), value + number, np.uint8))

        def label_map(image):
            path = image.replace("/leftImg8bit/", "/gtFine/").replace("_leftImg8bit", "_gtFine_labelIds")
            return Path(path)

        dataset = L3Folder(tmp_path / "leftImg8bit" / "train", window=(5, 6), targets=label_map)
        images, targets = collate([dataset[0], dataset[-1]])
        assert images[:, 0, 0].tolist() == [100, 101]
        assert torch.equal(targets, torch.tensor([7, 8], dtype=torch.uint8).view(2, 1, 1).expand(2, 5, 6))
        workers = DataLoader(dataset, batch_size=2, collate_fn=collate, num_workers=1, multiprocessing_context="fork")
        assert [batch[1].shape for batch in workers] == [(2, 5, 6)]

    def test_targets_of_another_size_share_no_window(self, root, tmp_path, images):
        for file, image in images.items():
            (tmp_path / file).parent.mkdir(exist_ok=True)
            dali_l3.imwrite(tmp_path / file, image[:, :-1, 0])
        message = f"{tmp_path / 'a/0.l3'}: the target of {(SHAPE[0], SHAPE[1] - 1)} pixels cannot share a window with "
        with pytest.raises(ValueError, match=re.escape(message)):
            L3Folder(root, window=(8, 8), targets=tmp_path)[0]

    @pytest.mark.parametrize("window", [(0, 5), (5, -1)])
    def test_an_empty_window(self, root, window):
        with pytest.raises(ValueError, match="window must have at least one row and column"):
            L3Folder(root, window=window)

    @pytest.mark.parametrize("window", [256, (25.5, 3), (1, 2, 3), ()])
    def test_a_window_of_another_type(self, root, window):
        with pytest.raises(TypeError, match="window"):
            L3Folder(root, window=window)

    def test_an_unknown_position(self, root):
        with pytest.raises(ValueError, match="position must be 'random' or 'center', not 'left'"):
            L3Folder(root, position="left")


class TestBatches:
    @pytest.mark.parametrize("threads", [None, 1, 2])
    def test_images_and_labels(self, root, images, threads):
        loader = DataLoader(L3Folder(root), batch_size=4, collate_fn=functools.partial(collate, threads=threads))
        batches = list(loader)
        assert [len(batch) for batch, _ in batches] == [4, 4, 2]
        batch = torch.cat([batch for batch, _ in batches])
        assert batch.shape == (COUNT, 3, 150, 200)
        np.testing.assert_array_equal(batch.permute(0, 2, 3, 1).numpy(), np.stack(sorted_images(images)))
        assert batches[0][0].is_contiguous(memory_format=torch.channels_last)
        labels = torch.cat([labels for _, labels in batches])
        assert (labels.dtype, labels.tolist()) == (torch.int64, [0] * 5 + [1] * 5)

    def test_windows_of_images_and_targets_are_the_same(self, root, masks):
        loader = DataLoader(L3Folder(root, window=(70, 80), targets=masks), batch_size=5, collate_fn=collate)
        for batch, targets in loader:
            assert (batch.shape, targets.shape) == ((5, 3, 70, 80), (5, 70, 80))
            assert torch.equal(batch[:, 0] // 16, targets)

    @given(st.data())
    def test_any_windows(self, root, images, data):
        window = data.draw(st.tuples(st.integers(1, 150), st.integers(1, 200)))
        torch.manual_seed(data.draw(st.integers(0, 1000)))
        dataset = L3Folder(root, window=window)
        samples = [dataset[number] for number in data.draw(st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=5))]
        batch, _ = collate(samples)
        for sample, tensor in zip(samples, batch, strict=True):
            top, left, height, width = sample.window
            image = dali_l3.imread(sample.path)[top : top + height, left : left + width]
            np.testing.assert_array_equal(tensor.permute(1, 2, 0).numpy(), image)

    @pytest.mark.parametrize("shape", [(20, 30), (20, 30, 1), (20, 30, 4)])
    def test_sixteen_bits_and_other_channels(self, tmp_path, shape):
        image = smooth_image(shape, np.uint16)
        dali_l3.imwrite(tmp_path / "a.l3", image)
        batch, _ = collate([L3Folder(tmp_path)[0]] * 2)
        assert batch.dtype == torch.uint16
        decoded = batch[1].numpy() if len(shape) == 2 else batch[1].permute(1, 2, 0).numpy()
        np.testing.assert_array_equal(decoded, image)

    def test_parts_and_sums_of_data_sets(self, root, images):
        dataset = L3Folder(root)
        loader = DataLoader(ConcatDataset([Subset(dataset, [7]), dataset]), batch_size=11, collate_fn=collate)
        ((batch, _),) = loader
        wanted = sorted_images(images)
        np.testing.assert_array_equal(batch.permute(0, 2, 3, 1).numpy(), np.stack([wanted[7], *wanted]))

    def test_other_shapes_are_named(self, root, tmp_path):
        dali_l3.imwrite(tmp_path / "small.l3", np.zeros((4, 4, 3), np.uint8))
        samples = [L3Folder(root)[0], L3Folder(tmp_path)[0]]
        with pytest.raises(
            ValueError, match=r"small\.l3 is uint8 of shape \(4, 4, 3\), but .*a/0\.l3 is uint8 of shape"
        ):
            collate(samples)

    @pytest.mark.parametrize("worker", [False, True])
    def test_another_default_device(self, root, images, worker, monkeypatch):
        """A GPU often is; here, one that holds nothing."""
        monkeypatch.setattr(dali_l3.torch, "get_worker_info", lambda: worker or None)
        with torch.device("meta"):
            dataset = L3Folder(root, window=(150, 200))
            batch, labels = collate([dataset[number] for number in range(COUNT)])
        assert (batch.device, labels.device) == (torch.device("cpu"), torch.device("cpu"))
        np.testing.assert_array_equal(batch.permute(0, 2, 3, 1).numpy(), np.stack(sorted_images(images)))

    def test_no_samples(self):
        with pytest.raises(ValueError, match="samples is empty"):
            collate([])

    def test_broken_files_are_named(self, root, tmp_path):
        (tmp_path / "broken.l3").write_bytes((root / "a" / "0.l3").read_bytes()[:-20])
        with pytest.raises(dali_l3.L3Error, match=r"broken\.l3: truncated"):
            collate([L3Folder(root)[0], L3Folder(tmp_path)[0]])


class TestWorkers:
    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_every_sample_once_in_shared_memory(self, run_python, root, method):
        """In a fresh interpreter, which is alone with its threads when it forks."""
        program = f"""if True:
            import numpy as np, torch, dali_l3
            from torch.utils.data import DataLoader
            from dali_l3.torch import L3Folder, collate

            def main():
                torch.manual_seed(0)
                dataset = L3Folder({str(root)!r})
                loader = DataLoader(
                    dataset, batch_size=3, shuffle=True, num_workers=2, collate_fn=collate,
                    multiprocessing_context={method!r},
                )
                for epoch in range(2):
                    sums = []
                    for images, labels in loader:
                        assert images.is_shared()
                        sums += [(int(image.sum()), int(label)) for image, label in zip(images, labels)]
                    wanted = [(int(dali_l3.imread(sample.path).sum()), sample.label) for sample in dataset]
                    print(sums != wanted, sorted(sums) == sorted(wanted))

            if __name__ == "__main__":
                main()
        """
        assert run_python(program) == "True True\nTrue True"

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_what_is_held_stays_as_it_is(self, run_python, root, masks, method):
        """Whether as a batch or as a part of one, while the worker goes on with memory that came back."""
        program = f"""if True:
            import re, numpy as np, torch, dali_l3
            from pathlib import Path
            from torch.utils.data import DataLoader
            from dali_l3.torch import L3Folder, collate

            def mapped():
                return set(re.findall(r"(\\d+) +/memfd:dali_l3", Path("/proc/self/maps").read_text()))

            def main():
                dataset = L3Folder({str(root)!r}, targets={str(masks)!r})
                wanted = [dali_l3.imread(sample.path).astype(int).sum() for sample in dataset]
                loader = DataLoader(
                    dataset, batch_size=1, num_workers=1, collate_fn=collate, persistent_workers=True,
                    multiprocessing_context={method!r},
                )
                files = set()
                for epoch in range(4):
                    for images, targets in loader:
                        files |= mapped()
                print(len(files) < 4 * 2 * len(dataset) / 4, end=" ")
                held = [batch for epoch in range(3) for batch in loader]
                for images, targets in loader:  # which uses again what is not held
                    assert torch.equal(images[:, 0] // 16, targets)
                print([int(images.sum()) for images, _ in held] == wanted * 3, end=" ")
                print(all(torch.equal(images[:, 0] // 16, targets) for images, targets in held), end=" ")
                parts = [images[0, :, :2, :2].numpy() for images, _ in held]
                copies = [part.copy() for part in parts]
                del held, images, targets
                for images, targets in loader:
                    assert torch.equal(images[:, 0] // 16, targets)
                print(all(map(np.array_equal, parts, copies)))

            if __name__ == "__main__":
                main()
        """
        assert run_python(program) == "True True True True"

    def test_batches_that_a_worker_goes_on_with(self, run_python, root):
        """What a worker makes of a batch, and PyTorch's other way to share memory."""
        program = f"""if True:
            import torch, dali_l3
            from torch.utils.data import DataLoader
            from dali_l3.torch import L3Folder, collate

            def scaled(samples):
                images, labels = collate(samples)
                return images.float() / 255, images[:, :1], labels

            def share_by_name(number):
                torch.multiprocessing.set_sharing_strategy("file_system")

            dataset = L3Folder({str(root)!r})
            wanted = [torch.from_numpy(dali_l3.imread(sample.path)).permute(2, 0, 1) for sample in dataset]
            for init in (None, share_by_name):
                loader = DataLoader(dataset, num_workers=1, collate_fn=scaled, worker_init_fn=init)
                batches = [batch for epoch in range(2) for batch in loader]
                same = [
                    torch.equal(images[0], image.float() / 255) and torch.equal(red[0], image[:1])
                    for (images, red, _), image in zip(batches, wanted * 2, strict=True)
                ]
                print(all(same))
        """
        assert run_python(program).split() == ["True", "True"]

    def test_workers_draw_different_windows(self, root):
        loader = DataLoader(
            L3Folder(root, window=(10, 10)), batch_size=5, num_workers=2, collate_fn=list, generator=torch.Generator()
        )
        first, second = ([sample.window for sample in batch] for batch in loader)
        assert first != second


class TestLending:
    """Of memory, within one process."""

    @pytest.fixture(autouse=True)
    def _nothing_kept(self):
        _lending._kept.clear()

    def test_what_is_back_is_used_again(self):
        memory, storage = _lending.lend(1000)
        memory[:3] = b"abc"
        tensor = torch.empty(0, dtype=torch.uint8).set_(storage)
        assert (tensor.shape, bytes(tensor[:3].numpy())) == ((1000,), b"abc")
        part = tensor[5:].numpy()
        del storage, tensor
        assert _lending.lend(10)[0] is not memory
        del part
        assert _lending.lend(1000)[0] is memory

    def test_what_another_process_has_is_not_back(self):
        memory, storage = _lending.lend(1000)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)  # until the parent closes the pipe
            os._exit(0)
        del storage
        other = _lending.lend(1000)[0]
        os.close(writer)
        os.waitpid(child, 0)
        os.close(reader)
        assert other is not memory
        assert _lending.lend(1000)[0] is memory

    def test_too_small_memory_makes_room(self):
        for size in (10, 20, 30):
            _lending.lend(size)
        assert [memory.size for memory in _lending._kept] == [30]

    def test_the_smallest_that_suffices(self):
        lent = [_lending.lend(size) for size in (30, 10, 20)]
        memories = [memory for memory, _ in lent]
        lent.clear()
        assert _lending.lend(15)[0] is memories[2]

    def test_no_more_is_kept_than_so_many(self):
        lent = [_lending.lend(10) for _ in range(_lending.KEPT + 3)]
        assert len({id(memory) for memory, _ in lent}) == _lending.KEPT + 3
        assert len(_lending._kept) == _lending.KEPT

    def test_descriptors_are_closed(self):
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        lent = [_lending.lend(10) for _ in range(50)]
        lent.clear()
        assert len(os.listdir("/proc/self/fd")) <= before + 2 * _lending.KEPT

    def test_a_child_keeps_nothing_of_its_parent(self):
        _lending.lend(10)
        child = os.fork()
        if child == 0:
            os._exit(len(_lending._kept))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
