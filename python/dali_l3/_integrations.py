"""Makes L3 known to Pillow and imageio, at no cost to programs that use neither."""

from __future__ import annotations

import importlib
import sys

from ._import_hook import when_imported


def install() -> None:
    """Arranges for both to handle .l3 files once they have been imported, before or after this package."""
    when_imported("PIL.Image", _tell_pillow)
    when_imported("imageio.config", _tell_imageio)


def _tell_pillow() -> None:
    importlib.import_module("dali_l3.pillow")


def _tell_imageio() -> None:
    config = sys.modules["imageio.config"]
    name = "dali_l3"
    if name in config.known_plugins:
        return
    config.known_plugins[name] = config.PluginConfig(name, "L3Plugin", "dali_l3.imageio", install_name="dali-l3")
    extension = config.FileExtension(extension=".l3", priority=[name], name="L3 lossless image")
    config.extension_list.append(extension)
    config.known_extensions.setdefault(extension.extension, []).append(extension)
