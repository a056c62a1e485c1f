"""Nodes of torchdata around a reader and a decoder of DALI's dynamic mode, resumed in the middle of an epoch.

python examples/torchdata_nodes.py data/l3
"""

import argparse
import math

import torchdata.nodes as tn

import dali_l3  # noqa: F401  isort: skip  (before dynamic mode, which shows what is registered when it is imported)
import nvidia.dali.experimental.dynamic as ndd  # isort: skip


class Reader(tn.BaseNode):
    """Batches of encoded images and labels, with a state, which the nodes.Reader of DALI 2.4 lacks."""

    def __init__(self, batch_size: int, **arguments):
        super().__init__()
        self.batch_size, self.arguments = batch_size, arguments
        self.reader = None

    def reset(self, initial_state: dict | None = None) -> None:
        super().reset(initial_state)
        if self.reader is None or initial_state:
            self.reader = ndd.readers.Liquid(
                max_batch_size=self.batch_size, enable_checkpointing=True, pad_last_batch=True, **self.arguments
            )
        if initial_state:
            self.reader.set_state(initial_state["reader"])
        meta = self.reader.get_metadata()
        samples = meta["epoch_size_padded"] // meta["number_of_shards"]
        self.left = initial_state["left"] if initial_state else math.ceil(samples / self.batch_size)  # batches
        self.epoch = self.reader.next_epoch(batch_size=self.batch_size)

    def next(self):
        if self.left == 0:  # next_epoch would take a resumed epoch for a whole one
            raise StopIteration
        self.left -= 1
        return next(self.epoch)

    def get_state(self) -> dict:
        return {"reader": str(self.reader.get_state()), "left": self.left}


def decode(batch):
    encoded, labels = batch
    return ndd.decoders.l3(encoded).torch(), labels.torch().flatten()


def make_loader(folder: str) -> tn.Loader:
    reader = Reader(10, file_root=folder, file_filters=["*.l3"], cache_size=500_000, seed=1)
    return tn.Loader(tn.Mapper(reader, decode))


def main() -> None:
    parser = argparse.ArgumentParser(description="Load images with nodes of torchdata.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    arguments = parser.parse_args()

    loader = make_loader(arguments.folder)
    expected = []
    for epoch in range(2):
        for number, batch in enumerate(loader):  # a training step would go here
            if (epoch, number) == (1, 1):
                state = loader.state_dict()
            elif (epoch, number) > (1, 1):
                expected.append(batch[1].tolist())
        print(f"epoch {epoch}: {number + 1} batches, the last of shape {tuple(batch[0].shape)}")

    resumed = make_loader(arguments.folder)
    resumed.load_state_dict(state)
    assert [labels.tolist() for _, labels in resumed] == expected
    print(f"the resumed loader delivers the other {len(expected)} batches of epoch 1")


if __name__ == "__main__":
    main()
