"""A DataLoader of PyTorch that has its images decoded by DALI: workers hand over paths, DALI's server does the rest.

The order, the shards and the end of an epoch are the DataLoader's, as without DALI; a reader of DALI has no part in it.

python examples/proxy.py data/l3
"""

import argparse
from pathlib import Path

import numpy as np
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.pytorch.experimental import proxy
from torch.utils.data import Dataset

import dali_l3  # noqa: F401  (registers fn.decoders.l3)

BATCH_SIZE = 10


@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, device_id=None)
def decoding():
    paths = fn.external_source(name="path", no_copy=True)
    return fn.decoders.l3(fn.io.file.read(paths))


class Images(Dataset):
    def __init__(self, folder: Path, decode):
        self.paths = sorted(folder.rglob("*.l3"))
        self.classes = sorted({path.parent.name for path in self.paths})
        self.decode = decode

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int):
        path = self.paths[index]
        image = self.decode(np.frombuffer(bytes(path), np.int8))  # a promise, which the loader redeems
        return image, self.classes.index(path.parent.name)


def main() -> None:
    parser = argparse.ArgumentParser(description="Decode the images of a PyTorch DataLoader with DALI.")
    parser.add_argument("folder", type=Path, help="folder with a subfolder of .l3 files for each class")
    arguments = parser.parse_args()

    with proxy.DALIServer(decoding()) as server:
        images = Images(arguments.folder, server.proxy)
        loader = proxy.DataLoader(server, images, batch_size=BATCH_SIZE, shuffle=True, num_workers=2)
        for epoch in range(2):
            sizes = [len(labels) for batch, labels in loader if batch.shape == (len(labels), 200, 300, 3)]
            print(f"epoch {epoch}: batches of {sizes}")


if __name__ == "__main__":
    main()
