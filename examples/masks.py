"""Images with their masks: one reader delivers both, so that they stay together however they are shuffled.

python examples/masks.py data/l3 "../masks/{dir}/{stem}.png"
"""

import argparse

from nvidia.dali import fn, pipeline_def, types

import dali_l3.fn


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=0)
def pipeline(folder: str, masks: str):
    encoded, encoded_masks, labels = dali_l3.fn.readers.multi_format(
        file_root=folder,
        file_filters=["*.l3"],
        companions=[masks],  # relative to file_root
        random_shuffle=True,
    )
    images = fn.decoders.image(encoded)
    masks = fn.decoders.image(encoded_masks, output_type=types.GRAY)
    # Whatever moves pixels must treat both alike: one random number for both.
    mirror = fn.random.coin_flip()
    return fn.flip(images, horizontal=mirror), fn.flip(masks, horizontal=mirror), labels


def main() -> None:
    parser = argparse.ArgumentParser(description="Read a batch of images and masks with DALI.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    parser.add_argument("masks", help="path of an image's mask, with the fields dir, stem, name and relpath")
    arguments = parser.parse_args()

    images, masks, _ = pipeline(arguments.folder, arguments.masks).run()
    for i in range(3):
        image, mask = images.at(i), masks.at(i)[:, :, 0]
        bright, dark = image[mask > 0].mean(), image[mask == 0].mean()
        print(f"image {i}: brightness {bright:.0f} inside the mask, {dark:.0f} outside")


if __name__ == "__main__":
    main()
