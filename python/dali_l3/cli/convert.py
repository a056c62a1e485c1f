"""The command `dali-l3 convert`."""

from __future__ import annotations

import dataclasses
import enum
from typing import Annotated

import typer

from ..images import DEFAULT_MAX_PIXELS
from ..jobs.planning import PlanError
from ..jobs.workers import Limits
from .cluster import RayOption
from .common import (
    DryRun,
    KeepSuffix,
    MaxPixels,
    Overwrite,
    ReportFile,
    ResizeLonger,
    ResizePixels,
    ResizeShorter,
    Strict,
    Timeout,
    Workers,
    import_extra,
    require_target,
    resize_of,
)
from .parts import PartOption, parse_part
from .unit_options import MergeReports, OrderOption, PlanOnly, RetryFailed, Shards, Status


class Profile(str, enum.Enum):
    """The profiles that can be written."""

    RAW = "raw"
    PAPER = "paper"
    FAST = "fast"


class Palette(str, enum.Enum):
    """What to keep of images with a palette."""

    RGB = "rgb"
    INDEX = "index"


class Pages(str, enum.Enum):
    """What to do with files of several pages."""

    FIRST = "first"
    SPLIT = "split"


class ResizeFilter(str, enum.Enum):
    """How images are resampled."""

    LANCZOS = "lanczos"
    NEAREST = "nearest"


class SourceAs(str, enum.Enum):
    """How files that stay as they are get to their place."""

    COPY = "copy"
    REFLINK = "reflink"
    HARDLINK = "hardlink"


def convert(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="SRC", help="An image file, a folder of them, or tar shards such as 'train-*.tar'.")
    ],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="DST", help="A folder, or for a single file a name that ends in .l3.", show_default=False
        ),
    ] = None,
    profile: Annotated[
        Profile | None,
        typer.Option(
            help="fast: small, quick to decode. raw: stored pixels. paper: for comparison.", show_default="fast"
        ),
    ] = None,
    effort: Annotated[
        int, typer.Option(min=1, max=3, help="Effort of the L3 encoder. 1: quickest, 3: smallest files.")
    ] = 2,
    mix: Annotated[
        str | None,
        typer.Option(metavar="FORMAT:WEIGHT,...", help="Convert to several formats in these proportions."),
    ] = None,
    source_as: Annotated[
        SourceAs | None,
        typer.Option(
            help="How files that stay as they are with --mix source:… get to DST: as copies, as reflinks (which share "
            "their blocks with the source), or as hard links (other names of the same file).",
            show_default="reflinks where the file system has them, else copies",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed for the draw of formats with --mix, or of the order in shards.", show_default="0"),
    ] = None,
    palette: Annotated[
        Palette,
        typer.Option(
            help="For images with a palette: rgb keeps the colours, index keeps the numbers of the palette entries as "
            "gray pixels. Use index for masks whose numbers are labels."
        ),
    ] = Palette.RGB,
    pages: Annotated[
        Pages | None,
        typer.Option(
            help="For TIFF files of several pages: first takes the first page, split writes a-1.l3, a-2.l3, ….",
            show_default="refuse them",
        ),
    ] = None,
    resize_shorter: ResizeShorter = None,
    resize_longer: ResizeLonger = None,
    resize_pixels: ResizePixels = None,
    resize_filter: Annotated[
        ResizeFilter,
        typer.Option(help="lanczos is antialiased. nearest makes no new values: use it for masks of labels."),
    ] = ResizeFilter.LANCZOS,
    shards: Shards = None,
    order: OrderOption = None,
    part: PartOption = None,
    ray: RayOption = None,
    plan_only: PlanOnly = False,
    retry_failed: RetryFailed = False,
    status: Status = False,
    merge_reports: MergeReports = False,
    workers: Workers = None,
    overwrite: Overwrite = False,
    keep_suffix: KeepSuffix = False,
    max_pixels: MaxPixels = DEFAULT_MAX_PIXELS,
    timeout: Timeout = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    report: ReportFile = None,
) -> None:
    """Convert an image or a folder of images to L3, or to a mix of formats.

    Reads PNG, JPEG, WebP, BMP, TIFF, PNM and NPY; the content of a file decides, not its name. Keeps 16 bits, alpha and
    metadata, expands palettes, and applies the EXIF orientation. Refuses CMYK, animations, several pages and float
    samples. Never changes source files. The target mirrors the folders of the source.

    Each target is decoded and compared before it gets its name and the modification time of its source. To continue
    after a run was stopped or killed, repeat the command: it keeps the files that are done, unless the time of the
    source, the profile, --palette or the size has changed. Ctrl-C finishes the files at work first; a second Ctrl-C
    does not.

    With --mix, each folder gets the formats in the given proportions. Formats are l3-fast, l3-raw, l3-paper, png, tiff,
    bmp, webp, the lossy jpeg@Q and webp@Q with a quality Q, and source, files as they are. DST/dali_l3_mix.json records
    the format of each image.

    With --shards, DST gets tar shards, as webdataset has them, with companions, labels and indices. With --part,
    several runs share the work. Both keep a manifest and records in DST.conversion, and go on from them after a kill.

    Exits with 0 on success, 1 if any file failed, 2 if the arguments are wrong, 130 after Ctrl-C.

    Examples:

    \b
    dali-l3 convert photo.png photo.l3
    dali-l3 convert train/ train-l3/ --dry-run
    dali-l3 convert train/ train-l3/ --workers 8
    dali-l3 convert train/ train-l3/ --effort 3 --report report.jsonl
    dali-l3 convert masks/ masks-l3/ --palette index
    dali-l3 convert scans/ scans-l3/ --pages split
    dali-l3 convert train/ train-mix/ --mix l3-fast:7,bmp:3
    dali-l3 convert photos/ photos-l3/ --resize-shorter 256
    dali-l3 convert jpegs/ jpegs-mix/ --mix source:7,l3-fast:3
    dali-l3 convert train/ train-l3/ --shards 1GiB
    dali-l3 convert 'shards/*.tar' train-l3/ --part 3/16
    dali-l3 convert --status train-l3/
    """
    in_files, in_units = import_extra("convert", "cli.in_files", "cli.in_units")
    if status or merge_reports:
        in_units.tell(context, source, target, status, merge_reports, report)
        return
    target = require_target(source, target)
    resize = resize_of(resize_shorter, resize_longer, resize_pixels, resize_filter.value)
    if resize and palette is Palette.INDEX and resize.filter != "nearest":
        raise PlanError("--palette index keeps numbers, which have no averages: add --resize-filter nearest")
    if not resize and resize_filter is not ResizeFilter.LANCZOS:
        raise PlanError("--resize-filter needs --resize-shorter, --resize-longer or --resize-pixels")
    if not in_units.is_needed(source, target, shards or part or plan_only or ray):
        in_units.refuse_without_units(order, retry_failed)
        in_files.convert_files(
            source,
            target,
            mix=mix,
            source_as=source_as and source_as.value,
            seed=seed,
            profile=profile and profile.value,
            effort=effort,
            palette=palette.value,
            pages=pages and pages.value,
            resize=resize,
            keep_suffix=keep_suffix,
            max_pixels=max_pixels,
            overwrite=overwrite,
            workers=workers,
            limits=Limits(timeout),
            dry_run=dry_run,
            strict=strict,
            report=report,
        )
        return
    in_units.refuse_beside_units(
        {"--mix": mix, "--pages split": pages is Pages.SPLIT, "--overwrite": overwrite, "--source-as": source_as}
    )
    settings = dataclasses.replace(
        in_units.settings_of(source, shards, order and order.value, seed),
        profile=(profile or Profile.FAST).value,
        effort=effort,
        palette=palette.value,
        max_pixels=max_pixels,
        first_page=pages is Pages.FIRST,
        resize=resize,
        keep_suffix=keep_suffix,
    )
    in_units.convert_in_units(
        target,
        settings,
        parse_part(part) if part else None,
        plan_only=plan_only,
        retry_failed=retry_failed,
        workers=workers,
        limits=Limits(timeout),
        dry_run=dry_run,
        strict=strict,
        report=report,
        ray=ray,
    )
